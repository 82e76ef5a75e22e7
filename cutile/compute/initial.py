"""Initial values of reductions and scans: numbers and structs of the host, and those that GPU memory holds."""

from __future__ import annotations

from typing import Any, NamedTuple

from cutile.compute.arrays import Held
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.values import INT64, constant_reader, held, type_of_value
from cutile.compute.proxies import ProxyValue
from cutile.compute.readers import First
from cutile.compute.value_types import ValueType


class Initial(NamedTuple):
    """An initial value: its type, and the numbers in which it travels."""

    type: ValueType
    state: tuple[Held, ...]

    @property
    def kind(self) -> tuple:
        return "constant", self.type

    def slots(self) -> tuple[Held, ...]:
        return self.state

    def reader(self) -> Any:
        return constant_reader(self.type)

    def annotation(self, wide: bool) -> Any:
        return ints(self.type, True)

    def on_some_gpu(self, n: int) -> Initial:
        return Initial(self.type, held(self.type, (0,) * len(self.type.dtypes)))


class FromMemory:
    """An initial value that an array in GPU memory holds when kernels run."""

    def __init__(self, array: IteratorBase):
        self.type, self.kind, self.state = array.value_type, array.kind, array.state(1)
        self._array = array

    def slots(self) -> Any:
        return self._array.slots()

    def reader(self) -> Any:
        return First(self._array.reader(), self.type)

    def annotation(self, wide: bool) -> Any:
        return self._array.annotation(wide)

    def on_some_gpu(self, n: int) -> FromMemory:
        return FromMemory(self._array.on_some_gpu(1))


def initial_value(value: Any, name: str) -> Initial | None:
    if value is None:
        return None
    if isinstance(value, ProxyValue):
        return Initial(value.value_type, value.state)
    try:
        t = type_of_value(value)
        return Initial(t, held(t, t.numbers(value)))
    except (TypeError, ValueError) as e:
        raise type(e)(f"argument `{name}`: {e}") from None


def ints(t: ValueType, there: bool) -> Any:
    """The annotation of a parameter that takes an initial value's state; `()` where there is none."""
    return tuple[(INT64,) * len(t.dtypes)] if there else tuple[()]
