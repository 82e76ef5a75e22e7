"""A second opinion on what bytecode means: Tile IR programs, read back and run on NumPy from the specification.

`evaluate(bytecode, entry, grid, args)` shares nothing with the ops of the language but `cutile.ops._numeric`, so that
a kernel run by the interpreter and its bytecode run here agree only if the lowering is right.
"""

from tests.tileir_eval.launch import Pointer, evaluate
from tests.tileir_eval.messages import AssertionFailed
from tests.tileir_eval.registry import EvaluationError

__all__ = ["AssertionFailed", "EvaluationError", "Pointer", "evaluate"]
