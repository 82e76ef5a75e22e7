"""The interpreter: a back end of the IR that runs kernels on NumPy arrays.

`emit_block` and `emit_batch` turn a kernel into Python code that carries the user's file, lines and names; `schedule`
runs it over a grid; `memory` stands behind array operands; `launch` starts from host arrays. Neither the front end nor
any syntax of the user's is known here.
"""

from cutile.interp.launch import launch
from cutile.interp.schedule import run

__all__ = ["launch", "run"]
