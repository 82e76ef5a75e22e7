"""Stand-ins for arguments that do not exist yet when an object is made, and for which GPUs it is made [AOT-*]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from cutile.compute.arrays import NOWHERE, DeviceArray
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.value_types import storage, value_type


class Missing:
    """The slot of a stand-in, which no call can fill. `what`: the stand-in."""

    part = None

    def __init__(self, what: str):
        self.what = what

    @property
    def root(self) -> NoReturn:
        raise RuntimeError  # check_given says why


def check_given(argument: str, operand: Any) -> None:
    """RuntimeError if an operand of a call is a stand-in, or made of one."""
    for slot in operand.slots() if hasattr(operand, "slots") else ():
        if isinstance(slot, Missing):
            raise RuntimeError(f"argument `{argument}`: {slot.what} stands for an argument where an object is made; a "
                               f"call needs the argument")


class ProxyArray(IteratorBase):
    """An array of a dtype, of any size, for `make_…`. A call with it is a RuntimeError.

    Parameters
    ----------
    dtype : dtype or struct
        Of the items.

    Examples
    --------
    >>> items, out = ct.compute.ProxyArray(np.float32), ct.compute.ProxyArray(np.float32)
    >>> negate = ct.compute.make_unary_transform(items, out, lambda v: -v)
    >>> x = np.arange(3, dtype=np.float32)
    >>> negate(x, x, lambda v: -v, 3)
    >>> x
    array([-0., -1., -2.], dtype=float32)
    """

    def __init__(self, dtype: Any):
        self.value_type = value_type(dtype)
        self.kind = ("array", self.value_type)

    def slots(self) -> Iterator[Any]:
        yield Missing("a ProxyArray")

    def size(self) -> int | None:
        return None

    def advanced(self, k: int) -> ProxyArray:
        return self

    def on_some_gpu(self, n: int) -> IteratorBase:
        return ArrayIterator(DeviceArray(self.value_type, NOWHERE, n, storage(self.value_type).itemsize, 0, True, None,
                                         None))


class ProxyValue:
    """An initial value of a dtype, for `make_…`. A call with it is a RuntimeError.

    Parameters
    ----------
    dtype : dtype or struct
        Of the value.

    Examples
    --------
    >>> items = ct.compute.ProxyArray(np.int32)
    >>> total = ct.compute.make_reduce_into(items, items, lambda a, b: a + b, ct.compute.ProxyValue(np.int32))
    """

    def __init__(self, dtype: Any):
        self.value_type = value_type(dtype)
        self.state = tuple(Missing("a ProxyValue") for _ in self.value_type.dtypes)


def capabilities(given: Any) -> tuple[tuple[int, int], ...] | None:
    """Compute capabilities as pairs: of 90, (9, 0), "9.0", "90", or a list of these; None for None.

    ValueError for an empty list, and for what is no compute capability.
    """
    if given is None:
        return None
    several = given if isinstance(given, list) or isinstance(given, tuple) and not _is_pair(given) else [given]
    if not several:
        raise ValueError("compute_capability is empty; name one compute capability at least, such as 90")
    return tuple(map(_capability, several))


def _is_pair(given: tuple) -> bool:
    return len(given) == 2 and all(type(n) is int for n in given) and given[0] < 50


def _capability(given: Any) -> tuple[int, int]:
    if isinstance(given, tuple) and _is_pair(given):
        return given  # type: ignore[return-value]
    text = str(given).removeprefix("sm_") if isinstance(given, int | str) and not isinstance(given, bool) else ""
    major, _, minor = text.partition(".") if "." in text else (text[:-1], "", text[-1:])
    if not (major.isdecimal() and minor.isdecimal() and len(minor) == 1 and int(major) > 1):
        raise ValueError(f"compute_capability: {given!r} is no compute capability; write 90, (9, 0), '9.0' or '90'")
    return int(major), int(minor)
