"""Readers of array objects: NumPy's own, and those of other libraries in CPU or GPU memory.

There is one reader per class of arrays. It appends one part to the key of a launch and one value to its launch values;
together they say everything that a launch needs to know, so nothing is read twice:

    in CPU memory  (library, dtype, sizes, strides)                             the NumPy array or PackedArray
    in GPU memory  (library, dtype, sizes, strides, GPU, address & 15, writable)   the address

`array_ref.py` makes an `ArrayRef` of the two, and names the items of a part that other files look at. None of the
libraries is imported here: PyTorch and CuPy are known by what `sys.modules` holds, all others by their protocols
(`__cuda_array_interface__`, DLPack, `__array_interface__`).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from operator import index
from typing import Any, NoReturn

import numpy as np

from cutile._support.strides import check_strides, row_major
from cutile.dtypes import (
    INFO,
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    from_foreign,
    of_storage,
)
from cutile.runtime import interfaces
from cutile.runtime.array_ref import CUPY, NUMPY, OTHER, TORCH, checked
from cutile.runtime.float4_packing import PackedArray

Reader = Callable[[Any, list, list], None]  # of an array, which appends to a key and to launch values


class NoArrayError(LookupError):
    """An object that is no array."""


def type_name(value: Any) -> str:
    """The name of an object in messages, by its type."""
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def reader_of(cls: type) -> Reader:
    """The reader of arrays of a class. A subclass of another library's class gets a more careful reader."""
    if issubclass(cls, np.ndarray):
        return read_numpy if cls is np.ndarray else _read_numpy_subclass
    if issubclass(cls, np.generic | type):
        return _read_nothing
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")  # perhaps only partly imported
    tensor = getattr(torch, "Tensor", None)
    if cls in (tensor, getattr(getattr(torch, "nn", None), "Parameter", None)):
        return read_torch
    if tensor is not None and issubclass(cls, tensor):
        return read_torch_subclass
    return read_cupy if cls is getattr(cupy, "ndarray", None) else read_other


def _read_nothing(obj: Any, key: list, values: list) -> None:
    raise NoArrayError


def _append_host(library: str, a: np.ndarray | PackedArray, dtype: Any, key: list, values: list) -> None:
    key.append((library, dtype, a.shape, a.strides))
    values.append(a)


def _append_gpu(pointer: int, shape: tuple, strides: tuple, dtype: DType, device: int | None, writable: bool, key: list,
            values: list) -> None:
    """An array in GPU memory that is read by a protocol; where only the driver knows its GPU, `device` is None."""
    key.append((OTHER, dtype, shape, strides, device, pointer & 15, writable))
    values.append(pointer)


# ------------------------------------------------------------------ NumPy


def read_numpy(a: np.ndarray, key: list, values: list) -> None:
    key.append((NUMPY, a.dtype, a.shape, a.strides))
    values.append(a)


def _read_numpy_subclass(a: np.ndarray, key: list, values: list) -> None:
    read_numpy(plain_array(a), key, values)


def plain_array(a: np.ndarray) -> np.ndarray:
    """What kernels take of an array: a plain np.ndarray; TypeError if its memory does not say what it holds."""
    if issubclass(type(a), getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())):
        raise TypeError("kernels know no masked arrays; pass its data, or filled(...), and the mask as an array")
    return base_array(a)


def base_array(a: np.ndarray) -> np.ndarray:
    """The array as a plain np.ndarray, without the behaviour of its subclass: memory, as on a GPU."""
    return a if type(a) is np.ndarray else np.ndarray.view(a, np.ndarray)


# ------------------------------------------------------------------ PyTorch

_TENSOR_DTYPES: dict[Any, DType] = {}  # of tensors in GPU memory that were read
_HOST_DTYPES: dict[Any, tuple[DType, Any]] = {}  # of tensors in CPU memory that were read, each with `_bits`


def read_torch(t: Any, key: list, values: list) -> None:
    try:
        if not t.is_neg() and (pointer := t.data_ptr()):
            if t.is_cuda:
                key.append((TORCH, _TENSOR_DTYPES[t.dtype], t.shape, t.stride(), t.get_device(), pointer & 15, True))
                return values.append(pointer)
            dtype, bits = _HOST_DTYPES[t.dtype]
            if t.requires_grad:
                t = t.detach()
            return _append_host(TORCH, _memory(t, dtype, bits), dtype, key, values)  # torch refuses most that is wrong
    except (KeyError, RuntimeError, ValueError, TypeError):  # a dtype not met before; or what is wrong is said below
        pass
    read_torch_subclass(t, key, values)


def read_torch_subclass(t: Any, key: list, values: list) -> None:
    """A tensor of any class, or of a dtype not met before; of a subclass, its plain memory is read."""
    torch, cls = sys.modules["torch"], type(t)
    try:
        if cls is torch.Tensor:
            return _read_tensor(torch, t, key, values)
        if cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            raise TypeError(f"a torch tensor {_state(torch, t)}")
        with torch._C.DisableTorchFunctionSubclass():  # and none of what the class has in the place of methods
            return _read_tensor(torch, torch.Tensor.as_subclass(t, torch.Tensor), key, values)
    except (RuntimeError, ValueError) as e:
        why = _state(torch, t) or _transformed(torch) or f"cannot be read ({e})"
        raise TypeError(f"a torch tensor {why}") from None


def _transformed(torch: Any) -> str | None:
    """Why a tensor of outside cannot be read inside of a transform."""
    if torch._C._functorch.peek_interpreter_stack() is None:
        return None
    return ("cannot be read inside vmap, grad or another transform of torch.func, even if it was made outside; launch "
            "outside of it, or make the launch a torch.library.custom_op that says how it is transformed")


def _state(torch: Any, obj: Any) -> str | None:
    """Why a tensor has no memory that a launch could use, and what to pass instead; None where that is not known."""
    if type(obj).__name__ == "FakeTensor":
        return ("that is fake has a shape and a dtype, but no memory; pass a real one. In a program that torch.export "
                "or torch.compile traces, import cutile.torch: launches become operators, and cutile.torch.op makes "
                "operators of functions")
    if type(obj).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return f"of class {type(obj).__qualname__} has no memory of its own; pass the tensors that it is made of"
    if torch._C._functorch.is_functorch_wrapped_tensor(obj):
        return ("inside vmap, grad or another transform of torch.func has no memory of its own; launch outside of it, "
                "or make the launch a torch.library.custom_op that says how it is transformed")
    if obj.is_nested:
        return "that is nested is no array; pass its parts, x.unbind(), as a list"
    if obj._is_zerotensor():
        return "that stands for zeros, as autograd makes them, has no memory; x.clone() makes one that has"
    return None


def _read_tensor(torch: Any, t: Any, key: list, values: list) -> None:
    """Read a tensor, with all that may be wrong with it. RuntimeError or ValueError where torch or NumPy refuses."""
    dtype = from_foreign(t.dtype)
    if packed := dtype is None and str(t.dtype) == "torch.float4_e2m1fn_x2":
        dtype = float4_e2m1fn
    if dtype is None:
        raise TypeError(f"a torch tensor of dtype {t.dtype} cannot be passed to a kernel; convert it first")
    if t.layout is not torch.strided:
        raise TypeError(f"a torch tensor of layout {t.layout} cannot be passed to a kernel; x.to_dense() makes one "
                        f"that can")
    if t.is_neg() or t.is_conj():
        raise TypeError("a torch tensor that is a lazily negated or conjugated view cannot be passed to a kernel; "
                        "x.resolve_neg() or x.resolve_conj() makes one that can")
    if t.device.type == "cuda":
        if packed:
            _refuse_packed()
        _TENSOR_DTYPES[t.dtype] = dtype
        pointer = t.data_ptr()
        key.append((TORCH, dtype, tuple(t.shape), t.stride(), t.device.index, pointer & 15, True))
        return values.append(pointer)
    if t.device.type != "cpu":
        how = "torch.empty_like(x, device='cpu') makes one that has memory" if t.device.type == "meta" else (
            "x.cpu() or x.cuda() brings it to memory that can be used")
        raise TypeError(f"a torch tensor on device {t.device} cannot be passed to a kernel; {how}")
    if not t.data_ptr() and t.numel():  # NumPy would make memory of its own
        raise TypeError(f"a torch tensor {_state(torch, t) or 'whose storage was given back has no memory'}")
    if packed:
        return _append_host(TORCH, PackedArray(t.detach().view(torch.uint8).numpy()), dtype, key, values)
    _HOST_DTYPES[t.dtype] = dtype, _bits(torch, dtype)
    _append_host(TORCH, _memory(t.detach(), *_HOST_DTYPES[t.dtype]), dtype, key, values)


def _bits(torch: Any, dtype: DType) -> Any:
    """The dtype of PyTorch through which a tensor's memory is read; None for its own. NumPy knows no bfloat16 and fp8
    of PyTorch.
    """
    storage = INFO[dtype].storage
    own = storage.kind in "biuf" and storage.isbuiltin == 1
    return None if own else {1: torch.uint8, 2: torch.int16}[storage.itemsize]


def _memory(t: Any, dtype: DType, bits: Any) -> np.ndarray:
    return t.numpy() if bits is None else t.view(bits).numpy().view(INFO[dtype].storage)


# ------------------------------------------------------------------ CuPy

_CUPY_DTYPES: dict[Any, DType] = {}  # of arrays that were read


def read_cupy(a: Any, key: list, values: list) -> None:
    memory = a.data
    pointer = memory.ptr
    try:
        dtype = _CUPY_DTYPES[a.dtype]
    except KeyError:
        dtype = _CUPY_DTYPES[a.dtype] = _interface_dtype(a, a.dtype.str)
    key.append((CUPY, dtype, a.shape, a.strides, memory.device_id, pointer & 15, True))
    values.append(pointer)


# ------------------------------------------------------------------ protocols


def read_other(obj: Any, key: list, values: list) -> None:
    """Whatever has one of the protocols."""
    if isinstance(obj, getattr(sys.modules.get("torch"), "Tensor", ())):  # an object that claims to be a Tensor
        return read_torch_subclass(obj, key, values)
    if hasattr(obj, "__array_interface__"):
        try:
            a = np.asarray(obj)
        except (TypeError, ValueError, OverflowError) as e:
            raise interfaces.of_host(obj, e) from None
        return _append_host(OTHER, a, a.dtype, key, values)
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is not None:
        return _read_cuda_interface(obj, interface, key, values)
    if hasattr(obj, "__dlpack__"):
        return _read_dlpack(obj, key, values)
    raise NoArrayError


# ------------------------------------------------------------------ GPU memory by __cuda_array_interface__


def _read_cuda_interface(obj: Any, interface: dict, key: list, values: list) -> None:
    try:
        typestr, (pointer, read_only) = interface["typestr"], interface["data"]
        shape, steps, pointer = tuple(map(index, interface["shape"])), interface.get("strides"), index(pointer or 0)
        steps = None if steps is None else tuple(map(index, steps))
        right = (typestr[2:].isdecimal() and min(shape, default=0) >= 0
                 and (steps is None or len(steps) == len(shape)))
    except (AttributeError, KeyError, TypeError, ValueError):
        right = False
    if not right:
        raise interfaces.of_cuda(obj, interface)
    dtype = _interface_dtype(obj, typestr)
    item = INFO[dtype].storage.itemsize
    if steps is None:
        strides = row_major(shape)
    else:
        check_strides(steps, shape, item)
        strides = tuple(s // item for s in steps)
    _append_gpu(pointer, shape, strides, dtype, _ordinal(obj), not read_only, key, values)


def _interface_dtype(obj: Any, typestr: str) -> DType:
    """The dtype of an array. The object's own `dtype` comes first, because the interface has no names for the dtypes of
    ml_dtypes, apart from a convention for bfloat16.
    """
    own = from_foreign(getattr(obj, "dtype", None))
    if own is not None and own.bitwidth == 8 * int(typestr[2:] or 0):
        return own
    if typestr in ("<V2", "|V2"):
        return bfloat16
    found = of_storage(np.dtype(typestr)) if typestr[1] in "biuf" else None
    if found is None:
        raise TypeError(f"an array of type {typestr} cannot be passed to a kernel: its dtype is not supported; "
                        f"convert it first")
    return found


def _ordinal(obj: Any) -> int | None:
    """The GPU that an array says it is on: by CuPy's attribute, by DLPack's method, or None."""
    if type(obj).__module__.partition(".")[0] == "cupy":
        return obj.data.device_id
    where = getattr(obj, "__dlpack_device__", None)
    if where is None:
        return None
    device, ordinal = where()
    return int(ordinal) if int(device) in ON_GPU else None


# ------------------------------------------------------------------ DLPack

ON_CPU = (1, 3)  # kDLCPU, kDLCUDAHost
ON_GPU = (2, 13)  # kDLCUDA, kDLCUDAManaged

# By DLPack's type code and the number of bits.
_DLPACK_DTYPES: dict[tuple[int, int], DType] = {
    **{("iuf".index(i.kind), d.bitwidth): d for d, i in INFO.items() if i.kind in "iuf" and i.storage.isbuiltin == 1
       and of_storage(i.storage) is d},
    (4, 16): bfloat16, (6, 8): bool_, (10, 8): float8_e4m3fn, (12, 8): float8_e5m2, (14, 8): float8_e8m0fnu,
    (17, 4): float4_e2m1fn,
}


class _Tensor(ctypes.Structure):
    """DLTensor, the head of what a capsule holds."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_in_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_in_capsule.restype, _in_capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _read_dlpack(obj: Any, key: list, values: list) -> None:
    device = obj.__dlpack_device__() if hasattr(obj, "__dlpack_device__") else ON_CPU
    try:
        where = int(device[0])
    except (TypeError, ValueError, IndexError):
        raise interfaces.of_device(obj, device) from None
    if where not in (*ON_CPU, *ON_GPU):
        raise TypeError(f"{type_name(obj)} is on a device of DLPack type {where}; kernels take arrays of the CPU and "
                        f"of CUDA GPUs")
    try:
        if where in ON_CPU:
            return _read_dlpack_on_host(obj, key, values)
        capsule = _capsule(obj)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        if is_traced(obj):
            raise TypeError("an array that JAX traces has no memory yet; inside of jax.jit and other transformations "
                            "call the kernel by cutile.jax.cutile_call(grid, kernel, args), or a function by ct.jit"
                            ) from None
        raise TypeError(f"{type_name(obj)} could not be read through DLPack: {e}") from None
    _read_dlpack_on_gpu(_Tensor.from_address(_in_capsule(capsule, b"dltensor")), key, values)


def is_traced(obj: Any) -> bool:
    """Whether this stands for an array while JAX traces a function."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(obj, jax.core.Tracer)


def _capsule(obj: Any) -> Any:
    ready = getattr(obj, "block_until_ready", None)
    if ready is None:
        return obj.__dlpack__(stream=-1)  # -1: order is the caller's, by the stream of the launch
    ready()  # JAX computes on streams of its own, and takes -1 for the handle of one
    return obj.__dlpack__()


def _read_dlpack_on_gpu(t: _Tensor, key: list, values: list) -> None:
    dtype = _DLPACK_DTYPES.get((t.code, t.bits))
    if dtype is float4_e2m1fn:
        _refuse_packed()
    if dtype is None or t.lanes != 1:
        raise TypeError(f"an array of DLPack type code {t.code} with {t.bits} bits and {t.lanes} lane(s) cannot be "
                        f"passed to a kernel: its dtype is not supported; convert it first")
    shape = tuple(t.shape[:t.ndim])
    strides = tuple(t.strides[:t.ndim]) if t.strides else row_major(shape)
    _append_gpu((t.data or 0) + t.byte_offset if t.data else 0, shape, strides, dtype, t.device_id, True, key, values)


def _refuse_packed() -> NoReturn:
    raise TypeError("an array of float4_e2m1fn in GPU memory, packed two to a byte, cannot be passed to a kernel: no "
                    "calling convention has a name for it; pass the bytes as uint8 (of a torch tensor, "
                    "x.view(torch.uint8)) and use ct.unpack_from_bytes")


def _read_dlpack_on_host(obj: Any, key: list, values: list) -> None:
    try:
        a: np.ndarray | PackedArray = np.from_dlpack(obj)
        dtype = checked(a)
    except (BufferError, RuntimeError, TypeError):  # as for all of float4, which NumPy does not know
        found = _packed(obj)
        if found is None:
            raise
        a, dtype = found, float4_e2m1fn
    _append_host(OTHER, a, dtype, key, values)


def _packed(obj: Any) -> PackedArray | None:
    """An array of float4 elements or pairs of them. It is read-only, like every NumPy array imported without flags."""
    capsule = obj.__dlpack__()
    t = _Tensor.from_address(_in_capsule(capsule, b"dltensor"))
    if _DLPACK_DTYPES.get((t.code, t.bits)) is not float4_e2m1fn or t.lanes not in (1, 2):
        return None
    shape = tuple(t.shape[:t.ndim])
    strides = tuple(t.strides[:t.ndim]) if t.strides else row_major(shape)
    if t.lanes == 1 and shape:
        outer = zip(shape[:-1], strides[:-1], strict=True)
        if shape[-1] % 2 or shape[-1] and strides[-1] != 1 or any(s % 2 for n, s in outer if n > 1):
            raise TypeError(f"rows of {shape[-1]} float4_e2m1fn elements, strides {strides}, are no whole bytes")
        shape, strides = (*shape[:-1], shape[-1] // 2), (*(s // 2 for s in strides[:-1]), 1)
    return PackedArray(np.asarray(_Bytes(capsule, (t.data or 0) + t.byte_offset, shape, strides)))


class _Bytes:
    """Memory from which NumPy makes an array; the array keeps this object alive."""

    def __init__(self, owner: Any, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]):
        self.owner = owner
        self.__array_interface__ = {"data": (pointer, True), "shape": shape, "strides": strides, "typestr": "|u1",
                                    "version": 3}
