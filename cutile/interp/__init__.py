"""The interpreter: a back end of the IR that runs kernels on NumPy arrays.

In: a typed program, a grid, NumPy arrays and numbers. Out: what the kernel stores and prints. It may not know the front
end or any syntax of the user's, nor GPUs. `launch` starts from host arrays, `codegen` makes Python code that carries
the user's file, lines and names, `schedule` runs it over a grid with what is in `exec`, `memory` stands behind arrays.
"""

from cutile.interp.launch import launch
from cutile.interp.schedule import run

__all__ = ["launch", "run"]
