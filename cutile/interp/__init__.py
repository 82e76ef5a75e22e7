"""The interpreter: a back end of the IR that runs kernels on NumPy arrays.

In: a typed program, a grid, NumPy arrays and numbers. Out: what the kernel stores and prints. It may not know the front
end, the user's syntax or GPUs.

`launch` starts from host arrays. `schedule` chooses how blocks run. `codegen` makes Python code that carries the user's
file, lines and names. `run_blocks` runs that code over a grid; `exec` has the running blocks, `memory` the arrays that
they access. `sanitize` puts checks into programs, `traces` ops that tell what each block does; `profile` measures by
them. `prepared` makes what launches over one grid have in common.
"""

from cutile.interp.host_launch import HostLaunch, launch, run
from cutile.interp.schedule import CompiledKernel

__all__ = ["CompiledKernel", "HostLaunch", "launch", "run"]
