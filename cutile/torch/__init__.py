"""cutile.torch: kernels inside torch.compile and torch.export, and kernels as operators of PyTorch.

The only module of cutile that imports torch. Once it is imported, `ct.launch` no longer breaks the graph of a compiled
function (launching.py), and `cutile.torch.op` makes an operator of a function made by `ct.jit` (operators.py).
"""

from cutile.torch import launching, no_gradient
from cutile.torch.operators import op

no_gradient.register()
launching.register()

__all__ = ["op"]
