"""What a tuned function remembers a configuration by: kernel, device, dtypes, and the class of the sizes [TUN-3]."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.functions import libraries
from cutile.functions.binding import read_array

if TYPE_CHECKING:
    from cutile.functions.tuned import Tuned

INTERPRETER = "interpreter"


@structure(frozen=True)
class TuningKey:
    """function  its name;  content: a digest of the kernel's source and of what is tuned
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
    for name, value in [*((str(i), a) for i, a in enumerate(args)), *sorted(named.items())]:
        for item, x in libraries.arrays_in(value, name):
            if libraries.is_jax(x):
                raise refusal(TypeError(f"{tuned.__name__}(): a search cannot run on arrays of JAX; search with arrays "
                                        f"of NumPy, PyTorch or CuPy, and give the configuration in the call"))
            a = read_array(x)
            if a is None:
                words.append(f"{item} {x!r}" if isinstance(x, bool | str | None) else f"{item} {type(x).__name__}")
                continue
            shape, dtype, ordinal = a
            if ordinal is not None:
                device = _device(ordinal)
            words.append(f"{item} {dtype} {len(shape) if wanted is not None else [_class(n) for n in shape]}")
    if wanted is not None:
        names = tuned._names(args, named)
        words += [f"{n} = {names[n]}" for n in wanted]
    return TuningKey(tuned.__name__, _content(tuned), device, ", ".join(words))


def _class(size: int) -> int:
    """A size rounded up to a power of two."""
    return 1 << max(size - 1, 0).bit_length() if size else 0


def _device(ordinal: int) -> str:
    from cutile.gpu.driver import driver

    return driver().name(ordinal)


def _content(tuned: Tuned) -> str:
    """A digest of the source of the kernel or factory, and of the configurations."""
    f: Any = tuned.function
    function = f.kernel.function if hasattr(f, "kernel") else f.__wrapped__
    configs = tuned.settings.configs
    text = f"{_source(function)}\n{_source(configs) if callable(configs) else configs!r}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.lru_cache(1000)
def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", repr(function))
