"""Which checks a launch runs with, and the program with their ops."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from cutile import settings
from cutile.ir.nodes import Kernel

IN_PROGRAM = ("bounds",)  # checks that add ops, in the order in which they do; each is the module of that name
AT_LAUNCH = ("alias",)  # checks of the arguments alone


def checks() -> tuple[str, ...]:
    """The checks that the settings ask for, as the interpreter runs them."""
    asked = settings.get("SANITIZE")
    return tuple(c for c in (*AT_LAUNCH, *IN_PROGRAM) if c in asked)


def instrument(kernel: Kernel, wanted: Sequence[str]) -> Kernel:
    """The program with the ops of these checks."""
    for name in IN_PROGRAM:
        if name in wanted:
            kernel = importlib.import_module(f"cutile.interp.sanitize.{name}").instrument(kernel)
    return kernel
