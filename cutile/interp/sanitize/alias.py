"""The check `alias`: arguments that overlap where the kernel writes to one of them [ARR-6]."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from cutile.analysis.aliasing import memory_classes
from cutile.interp.memory.array_view import ArrayView
from cutile.interp.memory.per_block_array import ArrayList
from cutile.interp.sanitize.findings import CheckedLaunch, Report, index_words
from cutile.interp.sanitize.sites import parameter_names
from cutile.ir.nodes import Kernel, Op, Value
from cutile.ir.walk import walk
from cutile.ops._op import ATOMIC, WRITE

EFFORT = 1 << 20  # steps after which the search for a common element is given up; then nothing is reported
SEARCHED = 1 << 22  # elements: of larger arrays the report does not name a common element

_Argument = tuple[Value, str, ArrayView]  # a parameter, the name of the array, the array


def check(launch: CheckedLaunch, kernel: Kernel, args: Sequence) -> None:
    """Report each pair of arrays that share an element, and of which the kernel may write to one. Arrays of one list
    may overlap [MEM-4].
    """
    arrays: list[_Argument] = []
    for (p, name), given in zip(parameter_names(kernel).items(), args, strict=True):
        if isinstance(given, ArrayView):
            arrays.append((p, name, given))
        elif isinstance(given, ArrayList):
            arrays += ((p, f"{name}[{i}]", a) for i, a in enumerate(given))
    for one, other in combinations(arrays, 2):
        (p, _, x), (q, _, y) = one, other
        if p is not q and (x.writable or y.writable) and _overlap(x.buffer.array, y.buffer.array):
            _report(launch, kernel, *((one, other) if x.writable else (other, one)))


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=EFFORT)
    except np.exceptions.TooHardError:
        return False


def _report(launch: CheckedLaunch, kernel: Kernel, written: _Argument, other: _Argument) -> None:
    (p, name, x), (_, second, y) = written, other
    found = _common(x.buffer.array, y.buffer.array)
    where = "" if found is None else \
        f": element {index_words(found[0])} of the one is element {index_words(found[1])} of the other"
    memory = memory_classes(kernel)
    stores = [n for n in walk(kernel.body) if isinstance(n, Op) and n.op.accesses and n.op.effect in (WRITE, ATOMIC)
              and memory(n.operands[0]) is memory(p)]
    notes = (("the kernel writes to memory here", stores[0].span),) if stores else ()
    launch.add("alias", kernel.span, Report(
        f"the kernel writes to `{name}`, which shares memory with `{second}`{where}", name,
        None if found is None else found[0],
        f"pass arrays that do not overlap, for example a copy of `{second}`: a GPU may read elements of one before "
        "or after it writes those of the other", notes))


def _common(a: np.ndarray, b: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The indices of an element in two arrays that share memory."""
    if max(a.size, b.size) > SEARCHED:
        return None
    x, y = _addresses(a), _addresses(b)
    for shift in sorted(range(1 - b.itemsize, a.itemsize), key=abs):  # elements may overlap in part
        _, i, j = np.intersect1d(x + shift, y, return_indices=True)
        if i.size:
            return tuple(map(int, np.unravel_index(i[0], a.shape))), tuple(map(int, np.unravel_index(j[0], b.shape)))
    return None


def _addresses(a: np.ndarray) -> np.ndarray:
    """The address of each element, in row-major order."""
    at = np.asarray(a.__array_interface__["data"][0], np.int64)
    for k, (n, s) in enumerate(zip(a.shape, a.strides, strict=True)):
        at = at + (np.arange(n) * s).reshape([-1 if j == k else 1 for j in range(a.ndim)])
    return at.reshape(-1)
