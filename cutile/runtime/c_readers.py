"""How C code (runtime/_arguments.c) reads arguments of a class.

Tensors of PyTorch are read by the C interface that the library has for compiled models. It does not say whether a
tensor is negated or conjugated, so the functions of C++ behind the methods are called. That needs to know where in a
Python object the tensor of C++ is: `_cdata` tells. Only tensors whose object of C++ is of the plain class are read so:
others, of sparse layouts or inside transforms, have no memory, or not in the usual form. Of CuPy's arrays it is found
out where their objects have what their attributes say. All of it is tried first, on tensors and arrays whose properties
are known, and not used if anything is not as expected.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
    if reader is read_cupy and _has_fields(c, cls):
        return c.CUPY_FIELDS
    return {read_bool: c.BOOL, read_int: c.INT, read_float: c.FLOAT, read_torch: c.TORCH,
            read_cupy: c.CUPY, read_numpy: c.NUMPY}.get(reader)


# ------------------------------------------------------------------ PyTorch

# Functions of PyTorch in the order of runtime/_arguments.c: `bool at::native::is_neg(const at::Tensor &)`, the same for
# `is_conj`, and those of its C interface, each with the type of what it writes.
_ANSWERS = "_ZN2at6native6is_negERKNS_6TensorE", "_ZN2at6native7is_conjERKNS_6TensorE"
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
        functions = [getattr(library, name) for name in (*_ANSWERS, *_SHIMS)]
        cpu, gpu = library.aoti_torch_device_type_cpu(), library.aoti_torch_device_type_cuda()
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            plain = torch.ones(3, 4, device="cpu")
            pairs = torch.ones(3, dtype=torch.complex64, device="cpu")
            tensors = [plain, torch._neg_view(plain), plain.t()[1:], torch.ones((), dtype=torch.int8, device="cpu"),
                       pairs, pairs.conj()]
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
    is_neg, is_conj, *shims = functions
    is_neg.restype = is_conj.restype = ctypes.c_bool
    answers: list = []
    at = ctypes.c_void_p(id(t) + place)
    for shim, of in zip(shims, _SHIMS.values(), strict=True):
        answers.append(of())
        if shim(at, ctypes.byref(answers[-1])) != 0:
            return False
    rank, sizes, strides, dtype, device_type, _, pointer = answers
    code = getattr(library, "aoti_torch_dtype_" + str(t.dtype).removeprefix("torch."))()
    return (is_neg(at) == t.is_neg() and is_conj(at) == t.is_conj() and rank.value == t.dim()
            and tuple(sizes[:t.dim()]) == t.shape and tuple(strides[:t.dim()]) == t.stride()
            and dtype.value == code and pointer.value == t.data_ptr()
            and device_type.value == library.aoti_torch_device_type_cpu())


# ------------------------------------------------------------------ CuPy


_WORD = ctypes.sizeof(ctypes.c_void_p)
_SHAPES = (5,), (), (3, 4, 6), (7, 2), (2, 1, 9, 3)  # of different ranks, so that a vector is known by its length


@functools.cache
def _has_fields(c: Any, array: type) -> bool:
    """Whether it is known where arrays have sizes, strides, dtype and memory; C code has been told of it then."""
    try:
        arrays = [_array(sys.modules["cupy"].cuda, array, n, shape) for n, shape in enumerate(_SHAPES)]
    except (AttributeError, TypeError, ValueError, RuntimeError):  # another version
        return False
    memories = [a.data for a in arrays]
    memory = type(memories[0])
    strides = [a.strides for a in arrays]
    places = (_vector(array, arrays, _SHAPES), _vector(array, arrays, strides),
              _word(array, arrays, [id(a.dtype) for a in arrays]), _word(array, arrays, list(map(id, memories))),
              _word(memory, memories, [m.ptr for m in memories]),
              _word(memory, memories, [m.device_id for m in memories], ctypes.c_int))
    if None in places or {type(m) for m in memories} != {memory}:
        return False
    c.cupy_fields(array, memory, places)
    return True


def _array(cuda: Any, cls: type, n: int, shape: tuple[int, ...]) -> Any:
    """An array that is nowhere, with properties of its own. CuPy does not look at the memory before it is used."""
    memory = cuda.UnownedMemory(0x7000_0000 + 4096 * n, 1 << 16, None, 1 + n % 3)
    strides = tuple(2 * s + 8 * n for s in row_major(shape))
    return cls(shape, np.dtype(("i4", "f2", "u1", "f8", "i2")[n]), cuda.MemoryPointer(memory, 48 * n), strides)


def _word(cls: type, objects: list, wanted: list[int], of: Any = ctypes.c_size_t) -> int | None:
    """Where objects of a class have these numbers, in bytes; None if there is no such place, or more than one."""
    found = [at for at in range(object.__basicsize__, cls.__basicsize__ - ctypes.sizeof(of) + 1, ctypes.sizeof(of))
             if all(of.from_address(id(o) + at).value == n for o, n in zip(objects, wanted, strict=True))]
    return found[0] if len(found) == 1 else None


def _vector(cls: type, objects: list, wanted: Sequence[tuple[int, ...]]) -> int | None:
    """The same for vectors of C++. What stands there is followed only if it has the right length for all objects."""
    found = []
    for at in range(object.__basicsize__, cls.__basicsize__ - 2 * _WORD + 1, _WORD):
        ends = [(ctypes.c_size_t * 2).from_address(id(o) + at)[:] for o in objects]
        if (all(end - first == 8 * len(n) and (first or not n) for (first, end), n in zip(ends, wanted, strict=True))
                and all(tuple((ctypes.c_int64 * len(n)).from_address(first)) == n
                        for (first, _), n in zip(ends, wanted, strict=True) if n)):
            found.append(at)
    return found[0] if len(found) == 1 else None
