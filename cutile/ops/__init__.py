"""All ops, by family. Importing this package fills the registry."""

from cutile.ops import (
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

FAMILIES = (arithmetic, math, bits, compare, select, convert, create, shape, grid, memory, views, atomics, reduce, scan,
            mma, debug)
