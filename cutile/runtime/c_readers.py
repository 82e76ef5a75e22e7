"""How C code (runtime/_arguments.c) reads arguments of a class.

Tensors of PyTorch are read by the C interface that the library has for compiled models. It does not say whether a
tensor is negated, so the function of C++ behind the method is called. That needs to know where in a Python object the
tensor of C++ is: `_cdata` tells. Only tensors whose object of C++ is of the plain class are read so: others, of sparse
layouts or inside transforms, have no memory, or not in the usual form. Arrays of CuPy are read by the C functions
behind their attributes. All of it is tried first, on tensors and arrays whose properties are known, and not used if
anything is not as expected.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import types
from pathlib import Path
from typing import Any

from cutile._support.strides import row_major
from cutile.runtime.arrays import read_cupy, read_numpy, read_torch
from cutile.runtime.launch_key import find_reader, read_bool, read_float, read_int


def c_reader(c: Any, value: Any) -> int | None:
    """How C code reads arguments of the class of `value`: one of its kinds, or what its `lender` gave; None if it does
    not. c: the compiled module
    """
    cls = type(value)
    reader = find_reader(cls)
    if reader is read_torch and _has_shims(c, sys.modules["torch"].Tensor):
        return c.TORCH_SHIM
    exchange = getattr(cls, "__dlpack_c_exchange_api__", None)
    if reader is read_torch and exchange is not None and (lender := c.lender(exchange)) is not None:
        return lender
    if reader is read_cupy and _has_fields(c, cls, type(value.data)) and all(map(_as_expected, _views(value))):
        return c.CUPY_FIELDS
    return {read_bool: c.BOOL, read_int: c.INT, read_float: c.FLOAT, read_torch: c.TORCH,
            read_cupy: c.CUPY, read_numpy: c.NUMPY}.get(reader)


# ------------------------------------------------------------------ PyTorch

# Functions of PyTorch in the order of runtime/_arguments.c: `bool at::native::is_neg(const at::Tensor &)`, and those of
# its C interface, each with the type of what it writes.
_IS_NEG = "_ZN2at6native6is_negERKNS_6TensorE"
_NUMBERS = ctypes.POINTER(ctypes.c_int64)
_SHIMS = {f"aoti_torch_get_{name}": of for name, of in (
    ("dim", ctypes.c_int64), ("sizes", _NUMBERS), ("strides", _NUMBERS), ("dtype", ctypes.c_int32),
    ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32), ("data_ptr", ctypes.c_size_t))}


@functools.cache
def _has_shims(c: Any, tensor: type) -> bool:
    """Whether the C interface of PyTorch describes tensors as it should; C code has been told of it then."""
    torch = sys.modules["torch"]
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))  # loaded already
        functions = [getattr(library, name) for name in (_IS_NEG, *_SHIMS)]
        cpu, gpu = library.aoti_torch_device_type_cpu(), library.aoti_torch_device_type_cuda()
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            plain = torch.ones(3, 4, device="cpu")
            tensors = [plain, torch._neg_view(plain), plain.t()[1:], torch.ones((), dtype=torch.int8, device="cpu")]
            other = plain.to_sparse()
        place, classes = _place(tensor, tensors), {_class_of(t) for t in tensors}
        right = (place > 0 and len(classes) == 1 and _class_of(other) not in classes
                 and all(_described(library, functions, place, t) for t in tensors))
    except (AttributeError, OSError, TypeError, ValueError, RuntimeError):  # another version, or another system
        return False
    if right:
        c.torch_shims(tuple(ctypes.cast(f, ctypes.c_void_p).value for f in functions), place,
                      classes.pop(), cpu, gpu)
    return right


def _place(tensor: type, tensors: list) -> int:
    """Where Python objects of a class have the tensor of C++, in bytes: what is there is `_cdata`. 0 if not known."""
    for at in range(object.__basicsize__, tensor.__basicsize__ - 7, 8):
        if all(ctypes.c_size_t.from_address(id(t) + at).value == t._cdata for t in tensors):
            return at
    return 0


def _class_of(t: Any) -> int:
    """The first word of a tensor's object of C++, by which it finds the functions of its class."""
    return ctypes.c_size_t.from_address(t._cdata).value


def _described(library: Any, functions: list, place: int, t: Any) -> bool:
    """Whether the functions say of a tensor in CPU memory what its attributes say."""
    is_neg, *shims = functions
    is_neg.restype, answers = ctypes.c_bool, []
    at = ctypes.c_void_p(id(t) + place)
    for shim, of in zip(shims, _SHIMS.values(), strict=True):
        answers.append(of())
        if shim(at, ctypes.byref(answers[-1])) != 0:
            return False
    rank, sizes, strides, dtype, device_type, _, pointer = answers
    code = getattr(library, "aoti_torch_dtype_" + str(t.dtype).removeprefix("torch."))()
    return (is_neg(at) == t.is_neg() and rank.value == t.dim() and tuple(sizes[:t.dim()]) == t.shape
            and tuple(strides[:t.dim()]) == t.stride() and dtype.value == code and pointer.value == t.data_ptr()
            and device_type.value == library.aoti_torch_device_type_cpu())


# ------------------------------------------------------------------ CuPy


def _has_fields(c: Any, cls: type, memory: type) -> bool:
    """Whether C functions are behind the attributes that C code reads, and it has been told of them."""
    array = _definer(cls, "data", "dtype", "size", "ndim", "_c_contiguous", "_shape", "_strides")
    pointer = _definer(memory, "ptr", "device_id")
    return None not in (array, pointer) and c.cupy_fields(array, pointer, memory)


def _definer(cls: type, *names: str) -> type | None:
    """The class that defines these attributes in C, of itself and of `cls`; None if there is no such class."""
    found = [getattr(cls, n, None) for n in names]
    definers = {a.__objclass__ if type(a) is types.GetSetDescriptorType else None for a in found}
    return definers.pop() if len(definers) == 1 else None


def _views(a: Any) -> tuple:
    return a, a.T, a[None], a[..., None], a[:0] if a.ndim else a


def _as_expected(a: Any) -> bool:
    """Whether attributes that are not public say what the public ones do."""
    steps = tuple(n * a.dtype.itemsize for n in row_major(a.shape))
    follows = all(n > 1 for n in a.shape) and a._c_contiguous  # the strides, from the sizes
    return (tuple(a._shape) == a.shape and tuple(a._strides) == a.strides and a.ndim == len(a.shape)
            and a.size == math.prod(a.shape) and (not a.shape or len(a) == a.shape[0])
            and (not follows or a.strides == steps))
