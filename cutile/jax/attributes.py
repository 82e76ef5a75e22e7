"""What a compiled program of JAX keeps of a call: the attributes that the handlers read (_handlers.c, host.py).

    grid    three sizes
    places  for each parameter the number of the buffer that it is, or -1 for a number
    image   8 bytes for each parameter: the numbers
    batch   sizes of axes over which the launch is repeated;  steps: for each of them, bytes from item to item of each
            buffer
    key     a digest of what is run

    fresh   on a CPU, the numbers of the outputs that begin as no input does

On a GPU parameters are those of the machine code, and `code`, `architectures`, `ends` and `symbol` have the cubins. On
a CPU they are those of the IR, and `program` is its text.
"""

from __future__ import annotations

import ctypes
import hashlib
import zlib
from typing import Any

import numpy as np

from cutile import settings
from cutile.dtypes import info
from cutile.errors import TileUnsupportedFeatureError
from cutile.ir.text import to_text
from cutile.jax import host
from cutile.jax.description import Call
from cutile.jax.targets import handlers
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.launch_plan import compiled, dims_of


def _common(call: Call) -> dict[str, Any]:
    steps = np.zeros((len(call.batch), len(call.batched) + len(call.outputs)), np.int64)
    for a in call.arrays():
        for i in {call.buffer(a), a.input} - {None}:
            steps[:, i] = call.steps(a)
    if len(call.batch) > handlers().AXES:
        raise NotImplementedError(f"vmap of a kernel is nested at most {handlers().AXES} times")
    return {"grid": np.array(call.grid, np.int64), "batch": np.array(call.batch, np.int64), "steps": steps.ravel()}


def _digest(*parts: bytes) -> bytes:
    out = hashlib.sha256()
    for p in parts:
        out.update(len(p).to_bytes(8, "little") + p)
    return out.digest()


# ------------------------------------------------------------------ for a CPU


def for_cpu(call: Call) -> dict[str, Any]:
    """The attributes for the interpreter. In this process it also finds the program by its key, with what a debugger
    shows.
    """
    params, arrays = call.program.kernel.params, iter(call.arrays())
    places, image = [], b""
    for p, x in zip(params, call.flat(), strict=True):
        array = isinstance(x, ArrayRef)
        places.append(call.buffer(next(arrays)) if array else -1)
        number = 0 if array else x
        image += bytes((ctypes.c_double if not array and info(p.type.dtype).floating else ctypes.c_int64)(number))
    text = _text(call)
    begun = {o for _, o in call.aliases}
    fresh = [len(call.batched) + o for o in range(len(call.outputs)) if o not in begun]
    given = {**_common(call), "places": np.array(places, np.int32), "image": image, "program": zlib.compress(text),
             "fresh": np.array(fresh, np.int32)}
    shapes = repr([a.shape for a in call.arrays()]).encode()
    key = _digest(text or str(id(call.program)).encode(), shapes, *map(bytes, given.values()))
    host.remember(key, compiled(call.program))
    return {**given, "key": key}


def _text(call: Call) -> bytes:
    """The IR as text; empty for one that has none, which only this process can run."""
    try:
        return to_text(call.program.kernel).encode()
    except TypeError:
        return b""


# ------------------------------------------------------------------ for a GPU


def for_gpu(call: Call) -> dict[str, Any]:
    """The attributes for a GPU: machine code, and parameters as the driver takes them."""
    from cutile.compilation.launch_signature import of_launch
    from cutile.gpu.parameters import packing

    flat = call.flat()
    constraints, symbol = of_launch(call.kernel, call.arguments())
    types, dims = [p.type for p in call.program.kernel.params], list(map(dims_of, flat))
    packed, arrays, numbers = packing(types, dims), iter(call.arrays()), iter(flat)
    places, image = [], b""
    for c_type, value in zip(packed.types, packed.values, strict=True):
        place = -1
        if value is None:  # which a launch gives
            value = next(numbers)
            if isinstance(value, ArrayRef):
                place, value = call.buffer(next(arrays)), 0
        places.append(place)
        image += bytes(c_type(value)).ljust(8, b"\0")
    if len(places) > handlers().PARAMETERS:
        raise TileUnsupportedFeatureError(f"kernel {call.kernel.__name__} has {len(places)} parameters, more than "
                                          f"{handlers().PARAMETERS}")
    targets = _targets(call)
    codes = [_code(call, constraints, symbol, t, dims) for t in targets]
    return {**_common(call), "places": np.array(places, np.int32), "image": image,
            "key": _digest(symbol.encode(), *codes), "symbol": symbol.encode(), "code": b"".join(codes),
            "architectures": np.array([t.number for t in targets], np.int32),
            "ends": np.cumsum(list(map(len, codes)), dtype=np.int64)}


def _targets(call: Call) -> list[Any]:
    """The architectures to compile for."""
    from cutile.gpu.target import of_device, parse_target

    names = (call.target or settings.get("TARGET") or "").replace(",", " ").split()
    if names:
        found = map(parse_target, names)
    else:
        import jax

        try:
            devices = jax.local_devices(backend="cuda")
        except RuntimeError:  # there are none
            raise TileUnsupportedFeatureError(
                f"it is open for which GPU to compile kernel {call.kernel.__name__}, because JAX sees none",
                help="set CUTILE_TARGET=sm_90, or write ct.jit(..., target=\"sm_90\")") from None
        found = (of_device(*map(int, d.compute_capability.split("."))) for d in devices)
    return [t for _, t in sorted({t.number: t for t in found}.items())]


def _code(call: Call, constraints: Any, symbol: str, target: Any, dims: list[Any]) -> bytes:
    """The best code for a launch of this grid on arrays of these sizes."""
    from cutile.gpu import selection, unchecked

    wanted = constraints, target, call.kernel.options, symbol
    first = selection.for_first_launch(call.program.kernel, *wanted)
    if settings.memcheck():
        return first.code
    found = unchecked.unchecked(call.program.kernel, first.uses_tma)
    if found is not None and found.for_arrays(dims)(call.grid):
        return selection.build(found.kernel, *wanted)
    return first.code if first.settled else selection.build(call.program.kernel, *wanted)
