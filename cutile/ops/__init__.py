"""All ops, a module for each family. Importing this package fills the registry.

In: to type a call, its terms and the builder of the IR; to compute, NumPy arrays. Out: terms and nodes; NumPy arrays.
It may not know the front end, passes or back ends: these read what an op declares (`_op.py`). Modules with an
underscore hold what families share; other rooms may use them too.
"""

from cutile.ops import (
    arithmetic,
    atomics,
    bits,
    compare,
    convert,
    create,
    debug,
    elementwise,
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
            mma, elementwise, debug)
