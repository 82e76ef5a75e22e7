"""The public classes of kernel values: `ct.Tile`, `ct.Array`, `ct.TiledView`, `ct.RawArrayMemory`.

They serve as annotations, and for help() and completion: they have the attributes and methods that such values have in
tile code. Their methods come from the registry of ops. Inside `ct.static_eval(...)`, where real Python runs, a run-time
tile or array is an object of one of these classes, a proxy. Its operators append to the kernel's IR [SEVAL-2, SEVAL-3].
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, Any

import numpy as np

from cutile._support.structs import cached
from cutile.dtypes import DType
from cutile.errors import TileTypeError
from cutile.front.sizes import sizes_of
from cutile.ir.terms import Leaf
from cutile.ops import arithmetic, views
from cutile.ops._op import EAGER, Documented, OpDef, meaning_doc, methods
from cutile.tracebacks import declares


class Evaluator:
    """Evaluates operators and attributes of proxies while a static construct runs; static.py implements it."""

    def binary(self, symbol: str, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def unary(self, symbol: str, x: Any) -> Any:
        raise NotImplementedError

    def attribute(self, leaf: Leaf, name: str) -> Any:
        raise NotImplementedError


EVALUATOR: ContextVar[Evaluator | None] = ContextVar("cutile_static_evaluator", default=None)


def _doc(method: Method) -> str:
    from cutile.ops._documentation import document_method  # only help needs it

    signature = method_signature(method.op) if method.receiver else method.op.__signature__
    return document_method(method.op, meaning_doc(method.op) or "", method.owner, method.__name__, signature)


class Method:
    __doc__ = Documented("A method of a class of kernel values; calling it applies an op.", _doc)

    def __init__(self, op: OpDef, cls: type, name: str, *, receiver: bool = True):
        self.op, self.receiver = op, receiver
        self.__name__, self.__qualname__, self.__module__ = name, f"{cls.__name__}.{name}", "cutile"
        self.owner = RECEIVERS[cls] if receiver else f"ct.{cls.__name__}"

    @cached
    def __signature__(self) -> inspect.Signature:
        if not self.receiver:
            return self.op.__signature__
        return inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
                                  *method_signature(self.op).parameters.values()])

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None or not self.receiver else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if EAGER.apply is None:
            raise RuntimeError(f"ct.{self.__qualname__}() works in tile code only: call it inside a @ct.kernel "
                               f"function that ct.launch runs")
        return self.op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<method {self.__qualname__}>"


def method_signature(op: OpDef) -> inspect.Signature:
    """The signature of an op as a method: without the receiver. All parameters may be given by name [METH-1]."""
    _, *rest = op.__signature__.parameters.values()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([p.replace(kind=kind) if p.kind is p.POSITIONAL_ONLY else p for p in rest])


def _attribute(name: str, doc: str) -> property:
    """An attribute that exists only while a static construct runs."""
    return property(lambda self: EVALUATOR.get().attribute(self._leaf, name), doc=doc)


def _of_type(name: str, doc: str) -> property:
    """An attribute of the value's type, which can still be read when the static construct has ended."""
    return property(lambda self: getattr(self._leaf.type, name), doc=doc)


class _Value:
    """A value that exists only in tile code."""

    __slots__ = ()

    def __init__(self, *args, **kwargs):
        raise TypeError(f"ct.{type(self).__name__} objects exist only in tile code and inside ct.static_eval(...)")

    dtype: DType = _of_type("dtype", "The element dtype.")


class Proxy(_Value):
    """A run-time value inside a static construct."""

    __slots__ = ("_leaf",)

    ndim: int = _of_type("ndim", "The rank.")

    def __bool__(self):
        raise ValueError(f"{self!r} is known only at run time and has no truth value in a static construct; "
                         f"decide on it in tile code")

    __int__ = __index__ = __float__ = __bool__

    # Without these methods, NumPy would turn a proxy into an array of dtype object, and compute with that array.

    def __array__(self, *args, **kwargs):
        raise _not_for_numpy(self, "numpy.asarray()")

    def __array_function__(self, function, kinds, args, kwargs):
        if function in (np.shape, np.ndim) and len(args) == 1 and args[0] is self and not kwargs:
            return getattr(self, function.__name__)
        raise _not_for_numpy(self, f"numpy.{function.__name__}()")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        symbol = _UFUNCS.get(ufunc.__name__)
        # comparisons of NumPy's scalars make arrays without axes of them
        inputs = tuple(x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in inputs)
        if symbol is None or method != "__call__" or kwargs or any(isinstance(x, np.ndarray) for x in inputs):
            raise _not_for_numpy(self, f"numpy.{ufunc.__name__}()")
        return EVALUATOR.get().binary(symbol, *inputs)

    def __repr__(self) -> str:
        return f"<run-time {self._leaf.type.describe()}>"


def _not_for_numpy(x: Proxy, what: str) -> TileTypeError:
    return TileTypeError(
        f"{what} cannot take {x._leaf.type.describe()}, which is known only at run time",
        help="NumPy computes with values that are known when the kernel is compiled; use the functions of cutile, "
             "such as ct.sum or ct.exp")


_UFUNCS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%",
           "power": "**", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
           "greater_equal": ">=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<",
           "right_shift": ">>"}  # called for operators with a NumPy scalar on the left


def _binary(symbol: str, reflected: bool = False) -> Callable:
    def method(self, other):
        x, y = (other, self) if reflected else (self, other)
        return EVALUATOR.get().binary(symbol, x, y)
    return method


def _unary(symbol: str) -> Callable:
    def method(self):
        return EVALUATOR.get().unary(symbol, self)
    return method


class Tile(Proxy):
    """A tile: elements of one dtype in a shape of powers of two. It never changes: ops make new tiles.

    It exists in tile code only, where it has the operators of Python. As an annotation, `t: ct.Tile` helps editors.

    Attributes
    ----------
    dtype : DType
        The dtype of the elements.
    shape : tuple of int
        The shape, known when the kernel is compiled; () for a scalar.
    ndim : int
        The number of axes.

    Notes
    -----
    [TILE-1] A method can also be called as `ct.Tile.reshape(tile, shape)`.

    Examples
    --------
    >>> def centred(t: ct.Tile):
    ...     return t - ct.sum(t) / t.shape[0]
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, centred(ct.load(x, 0, 4)))
    >>> x, out = np.float32([1, 2, 3, 6]), np.zeros(4, np.float32)
    >>> ct.launch(None, (1,), kernel, (x, out))
    >>> print(out)
    [-2. -1.  0.  3.]
    """

    __slots__ = ()
    __hash__ = None

    shape: tuple[int, ...] = _of_type("shape", "The shape.")


for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
                       "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}.items():
    setattr(Tile, f"__{_name}__", _binary(_symbol))
    setattr(Tile, f"__r{_name}__", _binary(_symbol, reflected=True))
for _name, _symbol in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Tile, f"__{_name}__", _binary(_symbol))
for _name, _symbol in {"neg": "-", "pos": "+", "invert": "~"}.items():
    setattr(Tile, f"__{_name}__", _unary(_symbol))


Tile.__divmod__ = lambda self, other: arithmetic.divmod(self, other)
Tile.__rdivmod__ = lambda self, other: arithmetic.divmod(other, self)


class Array(Proxy):
    """An array in global memory, with sizes and strides. Kernels get it as an argument, and load tiles of it.

    It exists in tile code only. As an annotation, `x: ct.Array` helps editors, and `x: ct.Array["M K", ct.float16]`
    names the sizes for functions made by `ct.jit`.

    Attributes
    ----------
    dtype : DType
        The dtype of the elements.
    shape : tuple
        The sizes: ints where they are constants, else scalars.
    strides : tuple
        The strides, counted in elements: ints where they are constants, else scalars.
    ndim : int
        The number of axes.
    foreign_pointer : scalar
        The address of the first element, for `ct.Array.from_foreign`.

    Notes
    -----
    [ARR-1]

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x: ct.Array, out: ct.Array):
    ...     ct.store(out, 0, x.shape[0] * x.ndim)
    >>> out = np.zeros(1, np.int32)
    >>> ct.launch(None, (1,), kernel, (np.zeros((5, 7)), out))
    >>> print(out)
    [10]
    """

    __slots__ = ()

    shape: tuple = _attribute("shape", "The sizes: ints where static, else run-time scalars.")
    strides: tuple = _attribute("strides", "The strides in elements: ints where static, else run-time scalars.")
    foreign_pointer: Tile = _attribute("foreign_pointer", "The address of the first element, a scalar.")

    __eq__, __ne__ = _binary("=="), _binary("!=")  # an error, as in tile code; Python would compare the objects
    __hash__ = object.__hash__

    @classmethod
    @declares
    def __class_getitem__(cls, sizes: Any) -> Any:
        return Annotated[cls, sizes_of(sizes)]


class TiledView(_Value):
    """The tiles of an array, as `array.tiled_view(tile_shape)` gives them. It exists in tile code only.

    Attributes
    ----------
    dtype : DType
        The dtype of the elements.
    tile_shape : tuple of int
        The shape of a tile.
    traversal_steps : tuple of int
        How many elements there are from one tile to the next, along each axis.

    Notes
    -----
    [TV-1] No static construct may hold one [TV-5].

    Examples
    --------
    >>> def weighted(tiles: ct.TiledView, i):
    ...     return tiles.load(i) * tiles.tile_shape[0]
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, weighted(x.tiled_view(2), 1))
    >>> out = np.zeros(2)
    >>> ct.launch(None, (1,), kernel, (np.arange(4.0), out))
    >>> print(out)
    [4. 6.]
    """

    __slots__ = ()

    tile_shape: tuple[int, ...] = _attribute("tile_shape", "The shape of a tile.")
    traversal_steps: tuple[int, ...] = _attribute("traversal_steps", "Elements from one tile to the next, by axis.")


class RawArrayMemory(_Value):
    """The memory of an array, addressed by offsets: `array.get_raw_memory()` gives it. It exists in tile code only.

    Offsets count elements from the first one of the array. Sizes and strides play no part.

    Attributes
    ----------
    dtype : DType
        The dtype of the elements.

    Notes
    -----
    [RAWMEM-1] No static construct may hold one.

    Examples
    --------
    >>> def element(memory: ct.RawArrayMemory, i):
    ...     return memory.load_offset(i)
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, element(x.get_raw_memory(), 3))
    >>> out = np.zeros(1)
    >>> ct.launch(None, (1,), kernel, (np.arange(6.0).reshape(2, 3), out))
    >>> print(out)
    [3.]
    """

    __slots__ = ()


Scalar = Tile | int | float  # in annotations of helper functions

# The class of each kind of receiver of methods.
RECEIVERS: dict[type, str] = {Tile: "tile", Array: "array", TiledView: "view", RawArrayMemory: "raw"}

for _class, _kind in RECEIVERS.items():
    for (_of, _name), _op in methods().items():
        if _of == _kind:
            setattr(_class, _name, Method(_op, _class, _name))
Array.from_foreign = Method(views.from_foreign, Array, "from_foreign", receiver=False)


def proxy(leaf: Leaf, cls: type[Proxy]) -> Proxy:
    """The proxy of a run-time value."""
    p = object.__new__(cls)
    p._leaf = leaf
    return p
