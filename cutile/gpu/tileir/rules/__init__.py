"""Lowering rules, a file for each family of ops; importing this package fills the table.

What needs the whole table imports it from here. A module of the package alone may be there before: Python keeps those
that were imported when an interrupt ended the import of the package.
"""

from cutile.gpu.tileir.rules import (  # noqa: F401
    _regular,
    arithmetic,
    atomics,
    bits,
    compare,
    convert,
    create,
    debug,
    grid,
    math,
    memory,
    mma,
    reduce,
    scan,
    select,
    shape,
    views,
)
from cutile.gpu.tileir.rules._regular import lowering_rule

__all__ = ["lowering_rule"]
