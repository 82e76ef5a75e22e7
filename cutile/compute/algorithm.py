"""What algorithms share: objects that check their calls, temporary storage, and kernels by what they depend on.

An algorithm is one file, as `transform.py` and `reduce.py` are. To add one:

1. A function that makes its kernel from operands, operators and types. A kernel takes the states of its operands, under
   `it.annotation(wide)`. `it.reader()` and `it.writer()` are called outside of it. The kernel reads tile number i by
   the reader's `tile(state, Place(i, size, n, whole))`, and stores by the writer's `put(state, place, value)`
   (`readers.py` has the whole protocol, `blocks.py` operators on tiles). The file has no `from __future__ import
   annotations`, since annotations of kernels are objects.
2. A subclass of `Algorithm`. `__init__` takes the arguments of `make_X`, `__call__` those of a call, in the order of
   the documentation. Both call `self.input("d_in", d_in)`, `self.output`, `self.operator` and `self.initial` for each
   argument; a call whose argument is of another kind is a TypeError. `__call__` then checks the count (`check_count`),
   returns `bytes_of(arrays)` if `temp_storage` is None, and otherwise launches `kernels_for(key, make, …)`, with arrays
   from `carved(temp_storage, arrays)`, as operands `Stored(type, arrays)`. The key begins with the algorithm's name and
   has the kind of each operand, the key of each operator, and all else that `make` depends on.
3. `make_X` and the one-shot function `X`, which wraps its arguments once (`as_input`, `as_output`, `operator`), and
   takes its storage from `allocated`; both in the list of `__init__.py`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import cutile as ct
from cutile._support.lru import LruDict
from cutile.compute.arrays import DeviceArray, array_of
from cutile.compute.iterators import (
    INT64,
    ArrayIterator,
    IteratorBase,
    as_input,
    as_output,
    bits_of,
    constant_reader,
    type_of_value,
)
from cutile.compute.operators import Operator, operator
from cutile.compute.readers import First
from cutile.compute.value_types import Number, Struct, ValueType
from cutile.dtypes import DType, info

WIDE = 1 << 31  # from that many items on, positions are int64
ALIGNMENT = 256  # of the arrays in temporary storage, and of temporary storage on a GPU
KEPT = 1000  # kernels of all algorithms

_kernels: LruDict[tuple, Any] = LruDict(KEPT)


def kernels_for(key: tuple, make: Callable[..., Any], *args: Any) -> Any:
    """make(*args), called once for each key: the kernels of an algorithm. Equal keys mean equal kernels."""
    found = _kernels.get(key)
    if found is None:
        found = make(*args)
        _kernels.keep(key, found)
    return found


def clear_all_caches() -> None:
    """Forget all kernels. Objects that are still there keep theirs."""
    _kernels.clear()


class Algorithm:
    """The base of the objects that `make_…` gives. An object is never changed, so threads may share it.

    Subclasses call `self.input(name, value)` and its like for each argument in `__init__`, where `self.made` notes what
    the argument was, and again in `__call__`, where another kind of argument is a TypeError.
    """

    backend = "own"

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def input(self, name: str, value: Any) -> IteratorBase:
        return self.same(name, as_input(value, name))

    def output(self, name: str, value: Any) -> IteratorBase:
        return self.same(name, as_output(value, name))

    def operator(self, name: str, value: Any) -> Operator:
        op = operator(value, name)
        if self._made.setdefault(name, op.key) != op.key:
            raise TypeError(f"argument `{name}`: this object was made for another operator; make a new one")
        return op

    def same(self, name: str, it: IteratorBase) -> IteratorBase:
        """The iterator, which must be of the kind that the object was made for."""
        if self._made.setdefault(name, it.kind) != it.kind:
            raise TypeError(f"argument `{name}`: this object was made for {text(self._made[name])}, "
                            f"got {text(it.kind)}")
        return it

    def initial(self, name: str, value: Any) -> Initial | None:
        """An initial value as kernels take it; None for None."""
        t = None if value is None else type_of_value(value)
        if self._made.setdefault(name, t) != t:
            raise TypeError(f"argument `{name}`: this object was made for {self._made[name]}, got {t}")
        return None if t is None else Initial(t, tuple(
            bits_of(x, d) for x, d in zip(t.numbers(value), t.dtypes, strict=True)))


class Initial(NamedTuple):
    """An initial value: its type, and the ints in which it travels ."""

    type: ValueType
    state: tuple[int, ...]

    @property
    def kind(self) -> tuple:
        return "constant", self.type

    def reader(self) -> Any:
        return constant_reader(self.type)

    def annotation(self, wide: bool) -> Any:
        return ints(self.type, True)


class FromMemory:
    """An initial value that an array in GPU memory holds when kernels run."""

    def __init__(self, array: IteratorBase):
        self.type, self.kind, self.state = array.value_type, array.kind, array.state(1)
        self._array = array

    def reader(self) -> Any:
        return First(self._array.reader(), self.type)

    def annotation(self, wide: bool) -> Any:
        return self._array.annotation(wide)


def ints(t: ValueType, there: bool) -> Any:
    """The annotation of a parameter that takes an initial value's state; `()` where there is none."""
    return tuple[(INT64,) * len(t.dtypes)] if there else tuple[()]


def position(wide: bool) -> Any:
    """The annotation of a parameter that counts items."""
    return INT64 if wide else int


def text(kind: tuple) -> str:
    """The kind of an iterator in words: array of float32, zip of (…)."""
    name, *rest = kind
    inner = [text(k) if isinstance(k, tuple) and k and isinstance(k[0], str) else str(k) for k in rest
             if isinstance(k, Number | Struct) or isinstance(k, tuple) and k and isinstance(k[0], str)]
    return f"{name} of {', '.join(inner)}"


# ------------------------------------------------------------------ sizes


def check_count(name: str, n: int, **operands: IteratorBase) -> int:
    """The number of items. ValueError if it is negative, or more than an array has."""
    n = int(n)
    if n < 0:
        raise ValueError(f"argument `{name}` is negative: {n}")
    for argument, it in operands.items():
        size = it.size()
        if size is not None and n > size:
            raise ValueError(f"argument `{name}` is {n}, but `{argument}` has {size} items")
    return n


def check_apart(written: dict[str, IteratorBase], read: dict[str, IteratorBase], n: int) -> None:
    """ValueError if one of the first n items of an operand that is written shares memory with another operand's."""
    lines = {name: list(_lines(it, n)) for name, it in (written | read).items()}
    names = list(lines)
    for k, one in enumerate(names[:len(written)]):
        for other in names[k + 1:]:
            if any(_share_memory(a, b) for a in lines[one] for b in lines[other]):
                raise ValueError(f"arguments `{one}` and `{other}` share memory; pass another array as `{one}`")


def _lines(it: IteratorBase, n: int | None) -> Iterator[tuple[int, int, int, int]]:
    """Where the first n items lie, or all that there are: an address, a number, a stride and a size, in bytes."""
    if isinstance(it, ArrayIterator):
        size = it.size() if n is None else min(n, it.size())
        yield it.array.pointer + it.start * it.array.stride, size, it.array.stride, it.array.itemsize
    for c in it.children:
        yield from _lines(c, n if it.in_order else None)


def _share_memory(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    (at, size, stride, item), (other, other_size, other_stride, other_item) = a, b
    if size <= 0 or other_size <= 0:
        return False
    low, high = min(at, at + (size - 1) * stride), max(at, at + (size - 1) * stride) + item
    other_end = other + (other_size - 1) * other_stride
    if high <= min(other, other_end) or max(other, other_end) + other_item <= low:
        return False
    step = math.gcd(stride, other_stride)
    between = (other - at) % step if step else 0
    return not item <= between <= step - other_item


def is_wide(n: int, *operands: IteratorBase) -> bool:
    """Whether positions need int64."""
    return n >= WIDE or any(a.size * a.stride // max(1, a.itemsize) >= WIDE for it in operands for a in it.arrays())


def power_below(n: int, most: int) -> int:
    """The largest power of two that is at most n and `most`; n is 1 or more."""
    return min(most, 1 << (n.bit_length() - 1))


# ------------------------------------------------------------------ temporary storage


def device_of(*operands: IteratorBase) -> DeviceArray | None:
    """An array in GPU memory among the operands; None if there is none."""
    return next((a for it in operands for a in it.arrays() if a.host is None), None)


def bytes_of(arrays: Sequence[tuple[int, DType]]) -> int:
    """The bytes of temporary storage for arrays of these sizes and dtypes; one at least, as in CUB."""
    total = 0
    for size, dtype in arrays:
        total += -(-size * info(dtype).storage.itemsize // ALIGNMENT) * ALIGNMENT
    return max(total, 1)


def carved(storage: Any, arrays: Sequence[tuple[int, DType]]) -> list[Any]:
    """Arrays in temporary storage, as arguments of kernels. ValueError if it is too small or misaligned."""
    whole = array_of(storage)
    need, have = bytes_of(arrays), whole.size * whole.itemsize
    if have < need:
        raise ValueError(f"argument `temp_storage` has {have} bytes, and {need} are needed; ask for another number of "
                         f"items anew")
    if whole.stride != whole.itemsize:
        raise ValueError("argument `temp_storage` must be contiguous")
    largest = max((info(d).storage.itemsize for _, d in arrays), default=1)
    if whole.pointer % largest:
        raise ValueError(f"argument `temp_storage` lies at {whole.pointer:#x}, which is no multiple of {largest}")
    found, at = [], 0
    raw = None if whole.host is None else whole.host.view(np.uint8)
    for size, dtype in arrays:
        n = size * info(dtype).storage.itemsize
        if raw is not None:
            found.append(raw[at:at + n].view(info(dtype).storage))
        else:
            found.append(DeviceArray(Number(dtype), whole.pointer + at, size, info(dtype).storage.itemsize,
                                     whole.device, True, None, whole))
        at += -(-n // ALIGNMENT) * ALIGNMENT
    return found


def allocated(nbytes: int, stream: Any, *operands: IteratorBase) -> Any:
    """Temporary storage where the operands are: in host memory, or on their GPU, by the library of an array there."""
    there = device_of(*operands)
    if there is None:
        return np.empty(nbytes, np.uint8)
    library = type(there.owner).__module__.partition(".")[0]
    if library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(nbytes, dtype=torch.uint8, device=there.owner.device)
    cupy = sys.modules.get("cupy")
    if cupy is None:
        import cupy  # type: ignore[no-redef]
    return cupy.empty(nbytes, np.uint8)


def launch(stream: Any, blocks: int, kernel: Any, *args: Any) -> None:
    ct.launch(stream, (blocks,), kernel, args)
