"""Implementations that lack a part of the API: the tests of that part are collected, and counted as *absent*.

Tests see the module with an `Absent` for each missing name, and `NoSuchError` for each missing error class. While
tests are collected, an `Absent` can be used in tables of cases and in annotations. A test that mentions one, or uses
one while it runs, ends with `Lacks`.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

NAMES = """
Array ArrayAnnotation ByTarget Constant ConstantAnnotation DType IndexedWithInt64 ListAnnotation MemoryOrder MemoryScope
PaddingMode RawArrayMemory RoundingMode ScalarInt64 Slice StaticException Tile TileError TileInternalError
TileStaticEvalError TileTypeError TileUnsupportedFeatureError TiledView abs add arange argmax argmin assert_
assume_divisible_by astile astype atan2 atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg
atomic_xor bfloat16 bid bitcast bitwise_and bitwise_lshift bitwise_not bitwise_or bitwise_rshift bitwise_xor bool_
broadcast_to cat cdiv ceil cos cosh cumprod cumsum divmod elementwise ensure_constant equal exp exp2 expand_dims extract
float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e5m2 float8_e5m3fnu float8_e8m0fnu floor floordiv
foreign_pointer_dtype full function gather greater greater_equal grid_dependency_control_launch_dependents
grid_dependency_control_wait insert int16 int32 int64 int8 isnan kernel launch less less_equal load
load_advanced_indexing log log2 matmul max maximum min minimum mma mma_scaled mod mul negative not_equal num_blocks
num_tiles ones pack_to_bytes permute pow print printf prod reduce reshape rsqrt scan scatter sin sinh sqrt static_assert
static_eval static_exception static_iter store store_advanced_indexing sub sum tan tanh tfloat32 transpose truediv
uint16 uint32 uint64 uint8 unpack_from_bytes where zeros compilation compiler_timeout compute
""".split()


class Lacks(Exception):
    """A test needs a part of the API that the implementation lacks."""


class NoSuchError(Exception):
    """Stands for an error class that the implementation lacks; nobody raises it."""


class Absent:
    """Stands for a name that the implementation lacks."""

    running = False  # whether a test runs

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<ct.{self.name}, which is absent>"

    def _used(self, *args: Any, **options: Any) -> Absent:
        if Absent.running:
            raise Lacks(f"ct.{self.name}")
        return self

    __call__ = __getitem__ = _used

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._used()

    def __iter__(self) -> Iterator[Absent]:
        return iter((self._used(),))


class Filled(types.ModuleType):
    """A module with more names. The module itself is not changed: `max` may be a function of Python there."""

    def __init__(self, module: types.ModuleType, more: dict[str, Any]):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(more)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def filled(module: types.ModuleType) -> tuple[types.ModuleType, frozenset[str]]:
    """The module as tests see it, and the names that it lacks."""
    more = {n: NoSuchError if n.endswith("Error") else Absent(n) for n in NAMES if not hasattr(module, n)}
    return Filled(module, more) if more else module, frozenset(n for n, x in more.items() if x is not NoSuchError)


@contextmanager
def running() -> Iterator[None]:
    """While a test runs, absent things cannot be used."""
    Absent.running = True
    try:
        yield
    finally:
        Absent.running = False


def mentioned(values: Collection[Any], names: frozenset[str]) -> set[str]:
    """The names that functions among the values mention as `ct.name`, or that are values themselves."""
    found: set[str] = set()
    for v in values if names else ():
        if isinstance(v, Absent):
            found.add(v.name)
        elif isinstance(v, types.FunctionType):
            found |= names & set(_attributes(v.__code__))
    return found


def _attributes(code: types.CodeType) -> Iterator[str]:
    """x of every `ct.x` in a function and in those that it defines."""
    before = None
    for i in dis.get_instructions(code):
        if i.opname in ("LOAD_ATTR", "LOAD_METHOD") and before.opname.startswith("LOAD_") and before.argval == "ct":
            yield i.argval
        before = i
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _attributes(c)
