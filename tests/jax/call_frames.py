"""Calls as XLA makes them, built by hand, for handlers of cutile/jax/_handlers.c. Needs no JAX."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

INSTANTIATE, PREPARE, INITIALIZE, EXECUTE = range(4)
S32, S64 = 4, 5
ARRAY, STRING = 1, 4


class Extension(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p)]


class Version(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("major", ctypes.c_int),
                ("minor", ctypes.c_int)]


class Metadata(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32),
                ("state", ctypes.c_int64)]


class MetadataExtension(ctypes.Structure):
    _fields_ = [("base", Extension), ("metadata", ctypes.POINTER(Metadata))]


class ErrorCreate(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("message", ctypes.c_char_p),
                ("code", ctypes.c_int)]


class StreamGet(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("stream", ctypes.c_void_p)]


class ErrorDestroy(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("error", ctypes.c_void_p)]


CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ErrorCreate))
DESTROY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ErrorDestroy))
STREAM = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(StreamGet))


class Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("version", Version),
                ("internal", ctypes.c_void_p), ("error_create", CREATE), ("error_message", ctypes.c_void_p),
                ("error_destroy", DESTROY), ("handler_register", ctypes.c_void_p), ("stream_get", STREAM),
                ("others", ctypes.c_void_p * 13)]


class Span(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Array(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]


class Buffer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("dtype", ctypes.c_int),
                ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]


class Buffers(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("types", ctypes.c_void_p), ("items", ctypes.c_void_p)]


class Attributes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("types", ctypes.c_void_p), ("names", ctypes.c_void_p), ("items", ctypes.c_void_p)]


class Frame(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("api", ctypes.POINTER(Api)),
                ("context", ctypes.c_void_p), ("stage", ctypes.c_int), ("arguments", Buffers), ("results", Buffers),
                ("attributes", Attributes)]


class Calls:
    """Calls of one handler. An answer is None, or the code and the text of an error.

    no_stream   whether XLA has no stream for the call;  destroyed: how many errors the handler gave back
    """

    def __init__(self, capsule: Any):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self.handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Frame))(get(capsule, None))
        self.errors: list[tuple[int, str]] = []
        self.no_stream, self.destroyed = False, 0
        self.api = Api(ctypes.sizeof(Api), None, Version(ctypes.sizeof(Version), None, 0, 3), None,
                       CREATE(self._create), None, DESTROY(self._destroy), None, STREAM(self._stream))

    def _create(self, given: Any) -> int:
        self.errors.append((given[0].code, given[0].message.decode()))
        return len(self.errors)

    def _destroy(self, given: Any) -> None:
        self.destroyed += 1

    def _stream(self, given: Any) -> int | None:
        if self.no_stream:
            self.errors.append((12, "no stream here"))
            return len(self.errors)
        given[0].stream = given[0].context
        return None

    def metadata(self) -> Metadata:
        """What the handler says of itself."""
        m = Metadata(ctypes.sizeof(Metadata) - 8, Version(ctypes.sizeof(Version)))
        e = MetadataExtension(Extension(ctypes.sizeof(Extension), 1, None), ctypes.pointer(m))
        frame = Frame(ctypes.sizeof(Frame), ctypes.addressof(e), ctypes.pointer(self.api))
        assert self.handler(ctypes.byref(frame)) is None
        return m

    def __call__(self, attributes: Mapping[str, Any], arguments: Sequence[tuple[int, tuple]] = (),
                 results: Sequence[tuple[int, tuple]] = (), stream: int = 0x100, stage: int = EXECUTE) -> Any:
        """Call the handler. Buffers are addresses and sizes; attributes are bytes and arrays of int32 or int64."""
        kept: list[Any] = []
        frame = Frame(ctypes.sizeof(Frame), None, ctypes.pointer(self.api), stream, stage, _buffers(arguments, kept),
                      _buffers(results, kept), _attributes(attributes, kept))
        error = self.handler(ctypes.byref(frame))
        return None if error is None else self.errors[error - 1]


def _pointers(items: Sequence[Any], kept: list[Any]) -> int:
    array = (ctypes.c_void_p * max(len(items), 1))(*map(ctypes.addressof, items))
    kept += [array, items]
    return ctypes.addressof(array)


def _ints(values: Sequence[int], kept: list[Any]) -> int:
    kept.append((ctypes.c_int * max(len(values), 1))(*values))
    return ctypes.addressof(kept[-1])


def _buffers(given: Sequence[tuple[int, tuple]], kept: list[Any]) -> Buffers:
    items = []
    for address, shape in given:
        dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        kept.append(dims)
        items.append(Buffer(ctypes.sizeof(Buffer), None, 11, address, len(shape), dims))
    return Buffers(ctypes.sizeof(Buffers), None, len(items), _ints([1] * len(items), kept), _pointers(items, kept))


def _attributes(given: Mapping[str, Any], kept: list[Any]) -> Attributes:
    items, types, names = [], [], []
    for name, value in sorted(given.items()):
        names.append(Span(name.encode(), len(name)))
        if isinstance(value, bytes):
            memory = ctypes.create_string_buffer(value, len(value) + 1)
            kept.append(memory)
            items.append(Span(ctypes.cast(memory, ctypes.c_char_p), len(value)))
        else:
            a = np.ascontiguousarray(value)
            kept.append(a)
            items.append(Array({4: S32, 8: S64}[a.itemsize], a.size, a.ctypes.data))
        types.append(STRING if isinstance(value, bytes) else ARRAY)
    return Attributes(ctypes.sizeof(Attributes), None, len(items), _ints(types, kept), _pointers(names, kept),
                      _pointers(items, kept))
