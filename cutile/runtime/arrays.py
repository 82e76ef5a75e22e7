"""Array objects of other libraries: NumPy views of what is in CPU memory, descriptors of what is in GPU memory.

None of the libraries is imported here: PyTorch and CuPy are known by what `sys.modules` holds, all others by their
protocols (`__cuda_array_interface__`, DLPack, `__array_interface__`).
"""

from __future__ import annotations

import ctypes
import sys
from math import prod
from typing import Any, NoReturn

import numpy as np

from cutile._support.structs import structure
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
from cutile.runtime.float4_packing import PackedArray


@structure(frozen=True, slots=True)
class DeviceArray:
    """An array in GPU memory.

    pointer  address of element (0, …), 0 if there is none
    shape    sizes;  strides: in elements
    device   ordinal of the GPU; None where only the driver knows, by the address
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: int | None
    writable: bool = True

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return INFO[self.dtype].storage.itemsize

    @property
    def size(self) -> int:
        return prod(self.shape)


Array = np.ndarray | PackedArray | DeviceArray


def layout(a: Array) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    """Of an array on either side: address, sizes, strides in elements, bytes of an element."""
    if isinstance(a, np.ndarray):
        return a.ctypes.data, a.shape, tuple(s // a.itemsize for s in a.strides), a.itemsize
    return a.pointer, a.shape, a.strides, a.itemsize


def kind(value: Any) -> str:
    """How messages call an object."""
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")


def find_array(obj: Any) -> tuple[Array, DType] | None:
    """The array that an object stands for, and its dtype; None if it is no array.

    TypeError if it is one that cannot be used, for example of a dtype that tile code does not have.
    """
    if issubclass(type(obj), np.ndarray):
        if issubclass(type(obj), getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())):
            raise TypeError("kernels know no masked arrays; pass its data, or filled(...), and the mask as an array")
        return _checked(plain(obj))
    if isinstance(obj, np.generic | type):
        return None
    torch = sys.modules.get("torch")  # which another thread may be importing, so without any tensor yet
    if isinstance(obj, getattr(torch, "Tensor", ())):
        return read_tensor(torch, obj)
    if hasattr(obj, "__array_interface__"):
        return _checked(np.asarray(obj))
    interface = getattr(obj, "__cuda_array_interface__", None)
    if interface is not None:
        found = _cuda_interface(obj, interface)
        return found, found.dtype
    if hasattr(obj, "__dlpack__"):
        return _dlpack(obj)
    return None


# ------------------------------------------------------------------ CPU memory


def plain(a: np.ndarray) -> np.ndarray:
    """An array without what its subclass does when it is indexed, written to or computed with: memory, as on a GPU."""
    return a if type(a) is np.ndarray else np.ndarray.view(a, np.ndarray)


def _checked(array: np.ndarray) -> tuple[np.ndarray, DType]:
    dtype = of_storage(array.dtype)
    if dtype is None:
        native = array.dtype.newbyteorder("=") in [i.storage for i in INFO.values()]
        what = "byte order is not the machine's" if native else "dtype is not supported"
        raise TypeError(f"an array of dtype {array.dtype} cannot be passed to a kernel: its {what}; convert it first")
    if any(s % array.itemsize for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        raise TypeError(
            f"an array whose strides {array.strides} are no multiples of its {array.itemsize}-byte elements "
            f"cannot be passed to a kernel; copy it first"
        )
    return array, dtype


def read_tensor(torch: Any, obj: Any) -> tuple[Array, DType]:
    """A torch tensor. Of subclasses, their plain memory."""
    cls = type(obj)
    try:
        if cls is torch.Tensor:
            return _tensor_in_memory(torch, obj)
        if cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            raise TypeError(f"a torch tensor {_state(torch, obj)}")
        with torch._C.DisableTorchFunctionSubclass():
            return _tensor_in_memory(torch, obj)
    except (RuntimeError, ValueError) as e:
        raise TypeError(f"a torch tensor {_state(torch, obj) or f'cannot be read ({e})'}") from None


def _state(torch: Any, obj: Any) -> str | None:
    """Why a tensor has no memory to give, and what to pass instead; None where that is not known."""
    if type(obj).__name__ == "FakeTensor":
        return "that is fake has a shape and a dtype, but no memory; pass a real one"
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


def _tensor_in_memory(torch: Any, obj: Any) -> tuple[Array, DType]:
    """NumPy cannot read bfloat16 and fp8 of the CPU through DLPack, so these go by their bits.

    RuntimeError or ValueError where torch or NumPy refuses.
    """
    dtype = from_foreign(obj.dtype)
    if packed := dtype is None and str(obj.dtype) == "torch.float4_e2m1fn_x2":
        dtype = float4_e2m1fn
    if dtype is None:
        raise TypeError(f"a torch tensor of dtype {obj.dtype} cannot be passed to a kernel; convert it first")
    if obj.layout is not torch.strided:
        raise TypeError(f"a torch tensor of layout {obj.layout} cannot be passed to a kernel; x.to_dense() makes one "
                        f"that can")
    if obj.is_neg() or obj.is_conj():
        raise TypeError("a torch tensor that is a lazily negated or conjugated view cannot be passed to a kernel; "
                        "x.resolve_neg() or x.resolve_conj() makes one that can")
    if obj.device.type == "cuda":
        if packed:
            _refuse_packed()
        return DeviceArray(obj.data_ptr(), tuple(obj.shape), obj.stride(), dtype, obj.device.index), dtype
    if obj.device.type != "cpu":
        how = "torch.empty_like(x, device='cpu') makes one that has memory" if obj.device.type == "meta" else (
            "x.cpu() or x.cuda() brings it to memory that can be used")
        raise TypeError(f"a torch tensor on device {obj.device} cannot be passed to a kernel; {how}")
    if not obj.data_ptr() and obj.numel():  # NumPy would make memory of its own
        raise TypeError(f"a torch tensor {_state(torch, obj) or 'whose storage was given back has no memory'}")
    tensor = obj.detach()
    if packed:
        return PackedArray(tensor.view(torch.uint8).numpy()), dtype
    storage = INFO[dtype].storage
    if storage.kind in "biuf" and storage.isbuiltin == 1:
        return tensor.numpy(), dtype
    bits = {1: torch.uint8, 2: torch.int16}[storage.itemsize]
    return tensor.view(bits).numpy().view(storage), dtype


# ------------------------------------------------------------------ GPU memory by __cuda_array_interface__


def _cuda_interface(obj: Any, interface: dict) -> DeviceArray:
    dtype = _interface_dtype(obj, interface["typestr"])
    item = INFO[dtype].storage.itemsize
    shape = tuple(map(int, interface["shape"]))
    pointer, read_only = interface["data"]
    steps = interface.get("strides")
    if steps is None:
        strides = row_major(shape)
    else:
        if any(s % item for s, n in zip(steps, shape, strict=True) if n > 1):
            raise TypeError(f"an array whose strides {tuple(steps)} are no multiples of its {item}-byte elements "
                            f"cannot be passed to a kernel; copy it first")
        strides = tuple(int(s) // item for s in steps)
    return DeviceArray(int(pointer or 0), shape, strides, dtype, _ordinal(obj), not read_only)


def _interface_dtype(obj: Any, typestr: str) -> DType:
    """The interface has no names for the dtypes of ml_dtypes, but for bfloat16 by custom: the object may have more."""
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


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of packed elements, the last axis fastest."""
    return tuple(prod(shape[k + 1:]) for k in range(len(shape)))


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


def _dlpack(obj: Any) -> tuple[Array, DType]:
    where = int(obj.__dlpack_device__()[0]) if hasattr(obj, "__dlpack_device__") else ON_CPU[0]
    if where not in (*ON_CPU, *ON_GPU):
        raise TypeError(f"{kind(obj)} is on a device of DLPack type {where}; kernels take arrays of the CPU and of "
                        f"CUDA GPUs")
    try:
        if where in ON_CPU:
            return _on_cpu(obj)
        capsule = _capsule(obj)
    except (BufferError, RuntimeError, TypeError) as e:
        raise TypeError(f"{kind(obj)} could not be read through DLPack: {e}") from None
    found = _of_tensor(_Tensor.from_address(_in_capsule(capsule, b"dltensor")))
    return found, found.dtype


def _capsule(obj: Any) -> Any:
    ready = getattr(obj, "block_until_ready", None)
    if ready is None:
        return obj.__dlpack__(stream=-1)  # -1: order is the caller's, by the stream of the launch
    ready()  # JAX computes on streams of its own, and takes -1 for the handle of one
    return obj.__dlpack__()


def _of_tensor(t: _Tensor) -> DeviceArray:
    dtype = _DLPACK_DTYPES.get((t.code, t.bits))
    if dtype is float4_e2m1fn:
        _refuse_packed()
    if dtype is None or t.lanes != 1:
        raise TypeError(f"an array of DLPack type code {t.code} with {t.bits} bits and {t.lanes} lane(s) cannot be "
                        f"passed to a kernel: its dtype is not supported; convert it first")
    shape = tuple(t.shape[:t.ndim])
    strides = tuple(t.strides[:t.ndim]) if t.strides else row_major(shape)
    return DeviceArray((t.data or 0) + t.byte_offset if t.data else 0, shape, strides, dtype, t.device_id)


def _refuse_packed() -> NoReturn:
    raise TypeError("an array of float4_e2m1fn in GPU memory, packed two to a byte, cannot be passed to a kernel: no "
                    "calling convention has a name for it; pass the bytes as uint8 (of a torch tensor, "
                    "x.view(torch.uint8)) and use ct.unpack_from_bytes")


def _on_cpu(obj: Any) -> tuple[Array, DType]:
    try:
        return _checked(np.from_dlpack(obj))
    except (BufferError, RuntimeError, TypeError):  # as for all of float4, which NumPy does not know
        found = _packed(obj)
        if found is None:
            raise
        return found, float4_e2m1fn


def _packed(obj: Any) -> PackedArray | None:
    """An array of float4 elements or pairs of them. It is read-only, as NumPy takes all that comes without flags."""
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
    """Memory that NumPy makes an array of, and keeps together with it."""

    def __init__(self, owner: Any, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]):
        self.owner = owner
        self.__array_interface__ = {"data": (pointer, True), "shape": shape, "strides": strides, "typestr": "|u1",
                                    "version": 3}
