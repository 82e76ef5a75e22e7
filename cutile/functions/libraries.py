"""The libraries of arrays that functions take and return: how each allocates, and its current stream.

None of them is imported here. NumPy, PyTorch and CuPy allocate; arrays of other libraries get outputs of one of these
that is loaded. JAX's arrays go another way (functions/traced.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from cutile.dtypes import INFO, DType, float4_e2m1fn, lowest, of_storage
from cutile.errors import refusal
from cutile.gpu.streams import check_on_host, handle
from cutile.runtime.arguments import array_of
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.arrays import type_name

Make = Callable[[Any], Any]  # an output, from the first array (None if there is none)
StreamOf = Callable[[Any], Any]  # the current stream of the library of the first array, where that is

Fill = bool | int | float | None
# What makes an output on one device, as C code takes it: a function, its arguments (None: it takes the first array),
# those by keyword or None, and what to fill the result with or None
Recipe = tuple[Callable[..., Any], tuple | None, dict[str, Any] | None, Any]


class Library:
    """What allocates arrays of one library.

    lasts   whether what it makes serves for all arrays of the class of the first one, wherever they are
    """

    lasts = True

    def maker(self, shape: tuple[int, ...], dtype: DType, fill: Fill, device: Any) -> Make:
        """A function that makes an output: on a device, or if that is None where the first array is."""
        raise NotImplementedError

    def recipe(self, shape: tuple[int, ...], dtype: DType, fill: Fill, device: Any, first: Any) -> Recipe:
        """The same for C code, beside a first array that is on the same device as this one."""
        return self.maker(shape, dtype, fill, device), None, None, None

    def stream(self) -> StreamOf:
        """What gives the current stream."""
        return _no_stream

    def stream_in_c(self, c: Any, first: Any) -> tuple[Any, int | None]:
        """The same for C code, and a GPU or None: STREAM_OF and GPU in runtime/_calls.c. c: the compiled module"""
        return self.stream(), None


def _no_stream(first: Any) -> None:
    return None


def beginning(storage: np.dtype) -> Any:
    """What elements of an output without fill begin as, as NumPy stores them."""
    return _value(None, of_storage(storage))[()]


# ------------------------------------------------------------------ NumPy


class _NumPy(Library):
    def maker(self, shape, dtype, fill, device):
        storage, value = INFO[dtype].storage, _value(fill, dtype)

        def make(first: Any) -> np.ndarray:
            a = np.empty(shape, storage)
            a.fill(value)
            return a

        return make

    def recipe(self, shape, dtype, fill, device, first):
        return np.empty, (shape, INFO[dtype].storage), None, _value(fill, dtype)


class _Foreign(_NumPy):
    """For arrays in CPU memory of a library that is not known."""

    lasts = False


def _value(fill: Fill, dtype: DType) -> Any:
    """The number that elements begin as, as NumPy stores it."""
    number = lowest(dtype) if fill is None else fill
    with np.errstate(all="ignore"):
        return np.asarray(number).astype(INFO[dtype].storage)


# ------------------------------------------------------------------ PyTorch


class _Torch(Library):
    def __init__(self, torch: Any):
        self.torch = torch

    def maker(self, shape, dtype, fill, device):
        torch, kind = self.torch, self._kind(dtype)
        if dtype is float4_e2m1fn:
            shape = _pairs(shape)
        filled = self._filled(shape, kind, dtype, _value(fill, dtype), device)
        if fill is not None:
            return filled
        if device is None:
            return lambda first: first.new_empty(shape, dtype=kind) if first.is_cuda else filled(first)
        return filled if torch.device(device).type == "cpu" else lambda first: torch.empty(shape, dtype=kind,
                                                                                          device=device)

    def recipe(self, shape, dtype, fill, device, first):
        if first is not None:
            device = first.device
        if fill is not None or device is None or device.type != "cuda" or dtype is float4_e2m1fn:
            return super().recipe(shape, dtype, fill, device, first)
        return self.empty(shape, self._kind(dtype), device)

    def empty(self, shape: tuple[int, ...], kind: Any, device: Any) -> Recipe:
        """An uninitialised tensor. PyTorch reads a tensor in half the time that it takes for sizes, dtype and device,
        so there is one with a single element in memory.
        """
        if all(n > 1 for n in shape):  # other strides of 0 would be kept
            with self.torch.inference_mode(False):
                one = self.torch.empty((), dtype=kind, device=device).expand(shape)
            return self.torch.empty_like, (one,), None, None
        return self.torch.empty, (shape,), {"dtype": kind, "device": device}, None

    def _kind(self, dtype: DType) -> Any:
        kind = getattr(self.torch, _TORCH_NAMES.get(dtype.name, dtype.name), None)
        if kind is None:
            raise TypeError(f"PyTorch {self.torch.__version__} has no dtype {dtype.name}")
        return kind

    def _filled(self, shape: tuple, kind: Any, dtype: DType, value: np.ndarray, device: Any) -> Make:
        if dtype.bitwidth < 16 and INFO[dtype].floating or dtype.name == "bfloat16":
            return self._by_bits(shape, kind, value, device)
        torch, number = self.torch, value.item()
        if device is None:
            return lambda first: first.new_full(shape, number, dtype=kind)
        return lambda first: torch.full(shape, number, dtype=kind, device=device)

    def _by_bits(self, shape: tuple, kind: Any, value: np.ndarray, device: Any) -> Make:
        """Elements of dtypes that PyTorch may not fill, by their bits."""
        torch = self.torch
        plain, bits = _as_bits(torch, kind, value)
        if device is None:
            return lambda first: first.new_full(shape, bits, dtype=plain).view(kind)
        return lambda first: torch.full(shape, bits, dtype=plain, device=device).view(kind)

    def stream(self):
        raw = getattr(self.torch._C, "_cuda_getCurrentRawStream", None)  # a fifth of the time of the public way
        if raw is not None:
            return lambda first: raw(first.get_device()) if first.is_cuda else None
        current = self.torch.cuda.current_stream
        return lambda first: current(first.device).cuda_stream if first.is_cuda else None

    def on(self, device: Any, stream: Any) -> AbstractContextManager[Any]:
        """Makes a stream current on a device, if it is a GPU."""
        if device.type != "cuda":
            return _on_host(stream)
        cuda, number = self.torch.cuda, handle(stream)
        if isinstance(stream, cuda.Stream):
            return cuda.stream(stream)
        # 1 is the default stream, too, and PyTorch takes odd numbers for streams of its own
        return cuda.stream(cuda.default_stream(device) if number < 2 else cuda.ExternalStream(number, device=device))

    def stream_in_c(self, c, first):
        exchange = getattr(type(first), "__dlpack_c_exchange_api__", None)  # since PyTorch 2.10
        address = None if exchange is None or not first.is_cuda else c.streams_of(exchange)
        return (self.stream(), None) if address is None else (address, first.get_device())


_TORCH_NAMES = {"bool_": "bool", "float4_e2m1fn": "float4_e2m1fn_x2"}


def _as_bits(torch: Any, kind: Any, value: np.ndarray) -> tuple[Any, int]:
    """A dtype of PyTorch that can be filled in the place of another, and the bits of a value."""
    plain, unsigned = {1: (torch.uint8, np.uint8), 2: (torch.int16, np.int16)}[value.itemsize]
    bits = int(value.view(unsigned))
    return plain, bits | bits << 4 if kind == getattr(torch, "float4_e2m1fn_x2", None) else bits


def _pairs(shape: tuple[int, ...]) -> tuple[int, ...]:
    if not shape or shape[-1] % 2:
        raise ValueError(f"PyTorch keeps two elements of float4_e2m1fn in a byte, so the last size of {shape} must be "
                         f"even")
    return (*shape[:-1], shape[-1] // 2)


# ------------------------------------------------------------------ CuPy


class _CuPy(Library):
    def __init__(self, cupy: Any, foreign: bool = False):
        self.cupy, self.lasts = cupy, not foreign

    def maker(self, shape, dtype, fill, device):
        cupy, storage, current = self.cupy, INFO[dtype].storage, self.cupy.cuda.runtime.getDevice
        fixed = self.ordinal(device) if device is not None else None

        def empty() -> Any:
            return cupy.empty(shape, storage) if fill is None else cupy.full(shape, fill, storage)

        def make(first: Any) -> Any:
            ordinal = self.home(first) if fixed is None else fixed
            if current() == ordinal:
                return empty()
            with cupy.cuda.Device(ordinal):
                return empty()

        return make

    def recipe(self, shape, dtype, fill, device, first):
        if fill is not None or device is not None or not self.lasts:
            return super().recipe(shape, dtype, fill, device, first)
        return self.cupy.ndarray, (shape, INFO[dtype].storage), None, None  # C code runs with the array's GPU current

    def ordinal(self, device: Any) -> int:
        if isinstance(device, str):
            return int(device.partition(":")[2] or self.cupy.cuda.runtime.getDevice())
        return int(getattr(device, "id", device))

    def stream(self):
        current, stream = self.cupy.cuda.runtime.getDevice, self.cupy.cuda.get_current_stream

        def of(first: Any) -> Any:
            ordinal = self.home(first)
            if current() == ordinal:
                return stream()
            with self.cupy.cuda.Device(ordinal):
                return stream()

        return of

    def stream_in_c(self, c, first):
        """CuPy's own function, told which GPU: without that it asks CUDA."""
        current, ordinal = self.cupy.cuda.get_current_stream, self.home(first)
        try:
            known = self.lasts and type(current) is type(len) and current(ordinal).ptr == self.stream()(first).ptr
        except TypeError:  # of a version whose function takes no GPU
            known = False
        return (current, ordinal) if known else (self.stream(), None)

    def on(self, ordinal: int, stream: Any) -> AbstractContextManager[Any]:
        """Makes a stream current on a GPU."""
        number = handle(stream)
        return self._on(ordinal, number)

    @contextmanager
    def _on(self, ordinal: int, number: int) -> Iterator[None]:
        with self.cupy.cuda.Device(ordinal):
            with self.cupy.cuda.ExternalStream(number):
                yield

    def home(self, first: Any) -> int:
        """The GPU of an array of any library."""
        if self.lasts:
            return first.data.device_id
        ref = array_of(first)
        if ref is not None and ref.device is not None:
            return ref.device
        from cutile.gpu.driver import driver

        return driver().device_of_pointer(ref.pointer) if ref is not None and ref.pointer else 0


# ------------------------------------------------------------------ arrays of callers


def filler(fill: Fill, dtype: DType) -> Callable[[Any], None]:
    """A function that sets all elements of an array, of any library, to what an output declares [JIT-7].

    It raises a TypeError for an array in GPU memory where no library is loaded that can.
    """
    value = _value(fill, dtype)

    def fill_array(a: Any) -> None:
        torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
        if torch is not None and isinstance(a, getattr(torch, "Tensor", ())):
            _fill_tensor(torch, a.detach(), dtype, value)
        elif isinstance(owner := getattr(array_of(a), "owner", None), np.ndarray):
            owner[...] = value
        elif cupy is not None:
            b = a if isinstance(a, cupy.ndarray) else cupy.asarray(a)
            with cupy.cuda.Device(b.data.device_id):
                b.fill(value)
        else:
            raise TypeError(f"to fill {type_name(a)} in GPU memory needs CuPy; import cupy before")

    return fill_array


def _fill_tensor(torch: Any, a: Any, dtype: DType, value: np.ndarray) -> None:
    """PyTorch may not fill some dtypes: these are filled by their bits."""
    if dtype.bitwidth < 16 and INFO[dtype].floating or dtype.name == "bfloat16":
        plain, bits = _as_bits(torch, a.dtype, value)
        a.view(plain).fill_(bits)
    else:
        a.fill_(value.item())


# ------------------------------------------------------------------ which one


def is_jax(value: Any) -> bool:
    """Whether it is an array of JAX, or stands for one in a trace."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, getattr(jax, "Array", ()))


def in_numpy(value: Any) -> Any:
    """A copy in NumPy of an array of JAX, also inside tuples and lists; other values as they are. TypeError where JAX
    traces, so that there is no value yet.
    """
    if isinstance(value, tuple | list):
        return type(value)([in_numpy(v) for v in value])
    if not is_jax(value):
        return value
    if isinstance(value, sys.modules["jax"].core.Tracer):
        raise refusal(TypeError("an array that JAX traces has no value yet; call this outside of jax.jit and other "
                                "transformations"))
    return np.array(value)


def of_array(value: Any, ref: ArrayRef, allocates: bool) -> Library:
    """The library of an array, which `allocates` outputs beside it. TypeError if no library can."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _Torch(torch)
    if cupy is not None and isinstance(value, getattr(cupy, "ndarray", ())):
        return _CuPy(cupy)
    if ref.owner is not None:
        return _NumPy() if isinstance(value, np.ndarray) else _Foreign()
    if cupy is not None:
        return _CuPy(cupy, foreign=True)
    if not allocates:
        return _Foreign()
    raise TypeError(f"outputs beside {type_name(value)} in GPU memory need CuPy; import cupy before, or pass them by "
                    f"out=")


def of_device(device: Any) -> tuple[Library, Any]:
    """The library for a function without arrays, and the device as it takes it. None is its current device.

    TypeError if no loaded library has such a device.
    """
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if device is None:
        if torch is not None:
            default = torch.get_default_device()
            return _Torch(torch), "cuda" if default.type == "cpu" and torch.cuda.is_available() else default
        if cupy is not None:
            return _CuPy(cupy), "cuda"
        raise TypeError('without arrays among the arguments, it is open where outputs are: write device="cpu" or '
                        'device="cuda" in ct.Out, or pass out=')
    if torch is not None and isinstance(device, torch.device):
        return _Torch(torch), device
    if cupy is not None and isinstance(device, cupy.cuda.Device):
        return _CuPy(cupy), device
    if device == "cpu":
        return _NumPy(), None
    if isinstance(device, str) and device.partition(":")[0] == "cuda":
        if torch is not None:
            return _Torch(torch), device
        if cupy is not None:
            return _CuPy(cupy), device
        raise TypeError(f"device={device!r} needs PyTorch or CuPy; import one of them before")
    raise TypeError(f'device is "cpu", "cuda", "cuda:1", or a device of PyTorch or CuPy, not {device!r:.100}')


def on(a: Any, stream: Any, device: Any = None) -> AbstractContextManager[Any]:
    """Makes a stream the current one of the library of an array, on its GPU: what makes arrays or fills them is queued
    there then. A launch takes the stream in the same forms. In CPU memory there is nothing to do. TypeError for what is
    no stream.

    device   for what is made beside no array: of ct.Out
    """
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if a is None:
        library, where = of_device(device)
        if isinstance(library, _Torch):
            return library.on(library.torch.device(where), stream)
        return library.on(library.ordinal(where), stream) if isinstance(library, _CuPy) else _on_host(stream)
    if torch is not None and isinstance(a, getattr(torch, "Tensor", ())):
        return _Torch(torch).on(a.device, stream)
    ref = array_of(a)
    if ref is None or ref.owner is not None or cupy is None:
        return _on_host(stream)
    library = _CuPy(cupy, foreign=not isinstance(a, getattr(cupy, "ndarray", ())))
    return library.on(library.home(a), stream)


def _on_host(stream: Any) -> AbstractContextManager[Any]:
    check_on_host(stream)
    return nullcontext()


def of_given(arrays: Sequence[Any] | None) -> Library:
    """The library of arrays that a caller gives for outputs, where there are no others."""
    ref = array_of(arrays[0]) if arrays else None
    return Library() if ref is None or arrays is None else of_array(arrays[0], ref, allocates=False)


def current_stream(value: Any) -> Any:
    """The current stream of the library of an array in GPU memory; None for anything else."""
    if value is None or isinstance(value, bool | int | float | str):
        return None
    ref = array_of(value)
    return None if ref is None or ref.owner is not None else of_array(value, ref, allocates=False).stream()(value)


def arrays_in(value: Any, name: str) -> Sequence[tuple[str, Any]]:
    """The items of an argument, those of lists and tuples one by one, with their names."""
    if type(value) in (list, tuple):
        return [x for i, item in enumerate(value) for x in arrays_in(item, f"{name}[{i}]")]
    return [(name, value)]
