"""cutile.torch: kernels inside torch.compile and torch.export, and kernels as operators of PyTorch.

The only module of cutile that imports torch. Once it is imported, `ct.launch` (launching.py) and functions made by
`ct.jit` (traced_functions.py) no longer break the graph of a compiled function, and `cutile.torch.op` makes an operator
of a function made by `ct.jit` (operators.py).
"""

from cutile.torch import launching, no_gradient, traced_functions
from cutile.torch.operators import op

no_gradient.register()
launching.register()
traced_functions.register()

__all__ = ["op"]
