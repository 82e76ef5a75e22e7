"""Lowering rules, a file for each family of ops; importing this package fills the table."""

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
