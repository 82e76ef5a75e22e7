"""What a tuned function remembers a configuration by: kernel, device, dtypes, and the class of the sizes [TUN-3]."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import of_storage
from cutile.errors import refusal
from cutile.functions import libraries
from cutile.functions.binding import read_array
from cutile.functions.rules import nearest

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction
    from cutile.functions.tuned import Tuned

INTERPRETER = "interpreter"
HINTS = ("num_ctas", "occupancy", "opt_level", "num_worker_warps")


@structure(frozen=True)
class TuningKey:
    """function  its name;  content: a digest of the kernel's source, of what is tuned, and of the reference and check
    device    name of the GPU, or "interpreter"
    inputs    dtypes and sizes, in words
    """

    function: str
    content: str
    device: str
    inputs: str

    @property
    def digest(self) -> str:
        text = "\n".join((self.function, self.content, self.device, self.inputs))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def key_of(tuned: Tuned, args: tuple, named: Mapping[str, Any]) -> TuningKey:
    """The key of a call."""
    words: list[str] = []
    device = INTERPRETER
    wanted = tuned.settings.key
    for name, value in _by_name(tuned, args, named).items():
        for item, x in libraries.arrays_in(value, name):
            a = _of_jax(x) if libraries.is_jax(x) else read_array(x)
            if a is None:
                words.append(f"{item} = {x!r}" if isinstance(x, bool | str | None) else f"{item}: {type(x).__name__}")
                continue
            shape, dtype, ordinal = a
            if ordinal is not None:
                device = _device(ordinal)
            sizes = ("_" if wanted is not None else f"≤{_class(n)}" for n in shape)
            words.append(f"{item}: {dtype}[{', '.join(sizes)}]")
    if wanted is not None:
        words += [f"{n} = {value}" for n, value in _values(tuned, wanted, tuned._names(args, named)).items()]
    return TuningKey(tuned.__name__, _content(tuned), device, ", ".join(words))


def _of_jax(x: Any) -> tuple[tuple[int, ...], str, int | None]:
    """As `read_array`, for an array of JAX. One that JAX traces counts as being on JAX's default device."""
    import jax

    traced = isinstance(x, jax.core.Tracer)
    device = jax.devices()[0] if traced else min(x.devices(), key=lambda d: d.id)
    dtype = of_storage(x.dtype) if isinstance(x.dtype, np.dtype) else None  # None: the call says what is wrong with it
    place = None if device.platform == "cpu" else device.local_hardware_id
    return tuple(x.shape), str(x.dtype) if dtype is None else dtype.name, place


def _by_name(tuned: Tuned, args: tuple, named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call in the order of the function's parameters; those of a factory by their positions."""
    if not hasattr(tuned.function, "parameters"):
        return {**{f"argument {i}": a for i, a in enumerate(args)}, **dict(sorted(named.items()))}
    given = tuned.call_arguments(tuned.function, args, named)
    order = list(tuned.function.parameters)
    return dict(sorted(given.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def check_names(key: Collection[str], f: TileFunction, tuned: Collection[str]) -> None:
    """ValueError for a name in `key=` that is no named size and no number among the arguments of a function.

    tuned   what configurations give
    """
    numbers = [n for n in f.parameters if f.specs[n].array is None and n not in tuned]
    known = list(dict.fromkeys((*f.named, *numbers)))
    for n in key:
        if n in f.parameters and f.specs[n].array is not None:
            raise ValueError(_array_as_key(f.__name__, n))
        if n not in known:
            raise ValueError(f"{f.__name__}: key `{n}` is no named size and no argument{nearest(n, known)}; there are "
                             f"{', '.join(known) or 'none'}")


def _values(tuned: Tuned, wanted: Collection[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """What the names in `key=` are in a call. ValueError for one that has no value, or an array."""
    for n in wanted:
        if n not in names:
            known = [k for k, v in names.items() if not _is_array(v)]
            raise refusal(ValueError(f"{tuned.__name__}: key `{n}` is no named size and no argument that is given"
                                     f"{nearest(n, known)}; there are {', '.join(known) or 'none'}"))
        if _is_array(names[n]):
            raise refusal(ValueError(_array_as_key(tuned.__name__, n)))
    return {n: names[n] for n in wanted}


def _is_array(value: Any) -> bool:
    return any(read_array(x) is not None for _, x in libraries.arrays_in(value, ""))


def _array_as_key(name: str, n: str) -> str:
    return (f"{name}: key `{n}` is an array; a key is a named size, as M of ct.Array[\"M N\"], or a number. Dtypes and "
            f"the numbers of axes count anyway")


def _class(size: int) -> int:
    """A size rounded up to a power of two."""
    return 1 << max(size - 1, 0).bit_length() if size else 0


def _device(ordinal: int) -> str:
    from cutile.gpu.driver import driver

    return driver().name(ordinal)


def _content(tuned: Tuned) -> str:
    """A digest of what a result depends on besides the inputs: the source of the kernel or factory, the declaration of
    the function, the configurations, and what the configurations were compared with and by.
    """
    f: Any = tuned.function
    function = f.kernel.function if hasattr(f, "kernel") else f.__wrapped__
    s = tuned.settings
    parts = [_source(function), _text(s.configs), *(f"{n} = {_text(v)}" for n, v in sorted(f.given.items()))]
    parts += [f"{n} = {_text(v)}" for n, v in (("reference", s.reference), ("check", s.check)) if v is not None]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _text(given: Any) -> str:
    """What was given to a decorator, in words; functions by their source."""
    if isinstance(given, Mapping):
        return "{" + ", ".join(f"{k}: {_text(v)}" for k, v in given.items()) + "}"
    if isinstance(given, tuple | list):
        return "(" + ", ".join(map(_text, given)) + ")"
    if isinstance(given, functools.partial):
        return f"partial of {_text((given.func, given.args, given.keywords))}"
    return f"{_source(given)}{_captured(given)}" if callable(given) and not isinstance(given, type) else repr(given)


@functools.lru_cache(1000)
def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        named = next((n for k in ("__qualname__", "__name__") if (n := getattr(function, k, None))), None)
        return (named or type(function).__qualname__) + ("" if code is None else _code(code))


def _code(code: types.CodeType) -> str:
    """What code does, in the place of a source that cannot be found."""
    inner = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {inner}"


def _captured(function: Any) -> str:
    """The numbers and texts that a function has captured, and its defaults."""
    cells = [c.cell_contents for c in getattr(function, "__closure__", None) or () if c != types.CellType()]
    values = [*cells, *(getattr(function, "__defaults__", None) or ())]
    return repr([v if isinstance(v, bool | int | float | str | None) else type(v).__qualname__ for v in values])
