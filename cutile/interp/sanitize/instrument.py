"""Which checks a launch runs with, and the program with their ops."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from cutile import settings
from cutile.ir.nodes import Kernel
from cutile.passes.lift import Masks, lift

# Checks that add ops, in the order in which they add them; each with its module.
IN_PROGRAM = {"undetermined": "undetermined", "extrema": "undetermined", "bounds": "bounds", "race": "race",
              **dict.fromkeys(settings.TRAPS, "traps")}
AT_LAUNCH = ("alias",)  # checks of the arguments alone


def checks() -> tuple[str, ...]:
    """The checks that the settings ask for, as the interpreter runs them. Under CUTILE_UNDETERMINED=poison, `extrema`
    is added: poison is NaN or the lowest integer, which max and min would hide.
    """
    asked = settings.get("SANITIZE")
    if settings.get("UNDETERMINED") == "poison" and "undetermined" not in asked:
        asked = {*asked, "extrema"}
    return tuple(c for c in (*AT_LAUNCH, *IN_PROGRAM) if c in asked)


def instrument(kernel: Kernel, elements: Kernel | None, wanted: Sequence[str]) -> Kernel:
    """The program with the ops of these checks. `elements`: as it was before its element functions were lifted, if it
    has any.
    """
    masks = Masks()
    if elements is not None:
        kernel = lift(elements, masks)
    for module in dict.fromkeys(IN_PROGRAM[name] for name in IN_PROGRAM if name in wanted):
        kernel = importlib.import_module(f"cutile.interp.sanitize.{module}").instrument(kernel, wanted, masks)
    return kernel
