"""Whole programs, generated: well typed, terminating and free of races by construction, over the full language.

    program = generate(seed)
    program.source("cuda.tile")     # an ordinary kernel, its arrays and its launch, as a file to run or to paste
    reference.run(program)          # what it means, from NumPy alone

The generator knows the language from its specification: it has its own types and promotion table, and for every op that
it writes the op's meaning in NumPy. It imports no implementation.
"""

from conformance.generate.build import Options, generate
from conformance.generate.tree import Program

__all__ = ["Options", "Program", "generate"]
