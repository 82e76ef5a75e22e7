"""The annotations of kernel parameters that influence compilation; all others are ignored [ANN-1…7]."""

from __future__ import annotations

import ast
import types
import typing
from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import numpy as np

from cutile._support.structs import replace, structure
from cutile.dtypes import DType, int32, int64
from cutile.front.sizes import Sizes

T = TypeVar("T")


class ConstantAnnotation:
    """Says that an argument becomes a constant of the kernel. `ct.Constant[T]` is `Annotated[T, ConstantAnnotation()]`.

    Notes
    -----
    [ANN-1] Each value of the argument makes a program of its own. Shapes of tiles must be constants.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(out, n: ct.Constant[int]):
    ...     ct.store(out, 0, ct.full(n, 1, out.dtype))
    >>> out = np.zeros(4, np.int32)
    >>> ct.launch(None, (1,), kernel, (out, 2))
    >>> print(out)
    [1 1 0 0]
    >>> ct.Constant[int].__metadata__
    (ConstantAnnotation(),)
    """

    def __repr__(self) -> str:
        return "ConstantAnnotation()"

    def __eq__(self, other) -> bool:
        return type(other) is ConstantAnnotation

    def __hash__(self) -> int:
        return hash(ConstantAnnotation)


@structure(frozen=True)
class ScalarAnnotation:
    """Says in which dtype an integer argument is passed.

    `ct.ScalarInt64[T]` is `Annotated[T, ScalarAnnotation(int64)]`.

    Parameters
    ----------
    dtype : DType, default int32
        int32 or int64.

    Attributes
    ----------
    dtype : DType
        int32 or int64.

    Raises
    ------
    ValueError
        Any other dtype.

    Notes
    -----
    [ANN-2]

    Examples
    --------
    >>> from typing import Annotated
    >>> @ct.kernel
    ... def kernel(out, n: Annotated[int, ct.ScalarAnnotation(ct.int64)]):
    ...     ct.store(out, 0, n + 1)
    >>> out = np.zeros(1, np.int64)
    >>> ct.launch(None, (1,), kernel, (out, 1 << 40))
    >>> print(out)
    [1099511627777]
    """

    dtype: DType = int32

    def __post_init__(self):
        if self.dtype not in (int32, int64):
            raise ValueError(f"ScalarAnnotation dtype must be int32 or int64, not {self.dtype!r}")


@structure(frozen=True, kw_only=True)
class ArrayAnnotation:
    """Says how an array argument is indexed, and which of its sizes and strides become constants of the kernel.

    `ct.IndexedWithInt64[T]` is `Annotated[T, ArrayAnnotation(index_dtype=int64)]`.

    Parameters
    ----------
    index_dtype : DType, default int32
        int32, or int64 for arrays with sizes or strides of 2**31 and more.
    static_shape_dims : tuple of int, default ()
        The axes whose sizes are constants.
    static_stride_dims : tuple of int, default ()
        The axes whose strides are constants.

    Attributes
    ----------
    index_dtype : DType
        int32 or int64.
    static_shape_dims : tuple of int
        The axes whose sizes are constants.
    static_stride_dims : tuple of int
        The axes whose strides are constants.

    Raises
    ------
    ValueError
        Another dtype, or an axis that is named twice.
    TypeError
        Axes that are no tuple of ints.

    Notes
    -----
    [ANN-3]

    Examples
    --------
    >>> from typing import Annotated
    >>> @ct.kernel
    ... def ones(out: Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(0,))]):
    ...     ct.store(out, 0, ct.full(out.shape[0], 1, out.dtype))
    >>> out = np.zeros(8, np.int32)
    >>> ct.launch(None, (1,), ones, (out,))
    >>> print(out)
    [1 1 1 1 1 1 1 1]
    """

    index_dtype: DType = int32
    static_shape_dims: tuple[int, ...] = ()
    static_stride_dims: tuple[int, ...] = ()

    def __post_init__(self):
        if self.index_dtype not in (int32, int64):
            raise ValueError(f"ArrayAnnotation index_dtype must be int32 or int64, not {self.index_dtype!r}")
        for name in ("static_shape_dims", "static_stride_dims"):
            dims = getattr(self, name)
            if not isinstance(dims, tuple) or not all(isinstance(d, int) and not isinstance(d, bool) for d in dims):
                raise TypeError(f"{name} must be a tuple of ints, not {dims!r}")
            if len(set(dims)) < len(dims):
                raise ValueError(f"{name} names a dim twice: {dims!r}")


@structure(frozen=True, kw_only=True)
class ListAnnotation:
    """Says how the arrays of a list argument are indexed, and which of their sizes and strides become constants.

    Parameters
    ----------
    element : ArrayAnnotation
        What holds for each array, or a type that is annotated with it.

    Attributes
    ----------
    element : ArrayAnnotation
        What holds for each array.

    Raises
    ------
    TypeError
        Anything else.

    Notes
    -----
    [ANN-4]

    Examples
    --------
    >>> from typing import Annotated
    >>> Long = Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation(index_dtype=ct.int64))]
    >>> @ct.kernel
    ... def total(arrays: Long, out):
    ...     ct.store(out, 0, ct.load(arrays[0], 0, 1) + ct.load(arrays[1], 0, 1))
    >>> out = np.zeros(1)
    >>> ct.launch(None, (1,), total, ([np.ones(3), np.ones(5)], out))
    >>> print(out)
    [2.]
    """

    element: Any

    def __post_init__(self):
        e = self.element
        if get_origin(e) is Annotated:
            found = [m for m in get_args(e)[1:] if isinstance(m, ArrayAnnotation)]
            if len(found) == 1:
                object.__setattr__(self, "element", found[0])
                return
        if not isinstance(e, ArrayAnnotation):
            raise TypeError(f"ListAnnotation takes an ArrayAnnotation, or a type annotated with one, not {e!r}")


Constant = Annotated[T, ConstantAnnotation()]
ScalarInt64 = Annotated[T, ScalarAnnotation(dtype=int64)]
IndexedWithInt64 = Annotated[T, ArrayAnnotation(index_dtype=int64)]


@structure(frozen=True)
class ParameterSpec:
    """What the annotation of a parameter asks for.

    listed    the specs of A and B in tuple[A, B]
    each      the spec of A in tuple[A, ...]
    is_tuple  whether it is one of these two
    items     the specs of the items of a tuple argument, to zip with them: without end, unless they are listed
    sizes     named sizes of an array, which functions made by `ct.jit` check
    number    whether it is int, float, a dtype or the like: launches ignore that; functions have no output there
    """

    if TYPE_CHECKING:
        is_tuple: bool
        items: Iterable[ParameterSpec]

    constant: bool = False
    scalar: ScalarAnnotation | None = None
    array: ArrayAnnotation | None = None
    list: ListAnnotation | None = None
    listed: tuple[ParameterSpec, ...] | None = None
    each: ParameterSpec | None = None
    sizes: Sizes | None = None
    number: bool = False

    def __post_init__(self):
        items = repeat(self.each or self) if self.listed is None else self.listed
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "is_tuple", self.listed is not None or self.each is not None)


PLAIN = ParameterSpec()
NUMBER = ParameterSpec(number=True)
ANY_ARRAY = ArrayAnnotation()  # of an array whose parameter has no annotation


def spec_of(annotation: Any, name: str) -> ParameterSpec:
    """The spec of one parameter. TypeError if its annotations contradict each other [ANN-6]."""
    if get_origin(annotation) is not Annotated:
        return _tuple_spec(annotation, name)
    inner, *metadata = get_args(annotation)
    base = spec_of(inner, name)
    fields: dict[str, Any] = {}
    for m in metadata:
        field = _FIELDS.get(type(m))
        if field is not None:
            if fields or base.constant or base.scalar or base.array or base.list:
                raise TypeError(
                    f"parameter `{name}`: only one of Constant, scalar, array and list annotations can be given"
                )
            fields[field] = m
    if (sizes := next((m for m in metadata if isinstance(m, Sizes)), None)) is not None:
        fields = _with_sizes(name, fields, sizes)
    return base if not fields else _all_constant(base) if "constant" in fields else replace(base, **fields)


def _with_sizes(name: str, fields: dict[str, Any], sizes: Sizes) -> dict[str, Any]:
    """The fields of an array's spec with named sizes."""
    array = fields.setdefault("array", ANY_ARRAY)
    if len(fields) > 1:
        raise TypeError(f"parameter `{name}`: only an array has named sizes")
    if sizes.constants:
        if array.static_shape_dims:
            raise TypeError(f"parameter `{name}`: either = in {sizes} or static_shape_dims says which sizes are "
                            f"constants, not both")
        array = replace(array, static_shape_dims=sizes.constants)
    return {"array": array, "sizes": sizes}


_FIELDS = {ConstantAnnotation: "constant", ScalarAnnotation: "scalar", ArrayAnnotation: "array", ListAnnotation: "list"}


def _tuple_spec(annotation: Any, name: str) -> ParameterSpec:
    if get_origin(annotation) is not tuple:
        return NUMBER if _is_number(annotation) else PLAIN
    args = get_args(annotation)
    if len(args) == 2 and args[1] is Ellipsis:
        return ParameterSpec(each=spec_of(args[0], name))
    return ParameterSpec(listed=tuple(spec_of(a, name) for a in args))


def _is_number(annotation: Any) -> bool:
    if get_origin(annotation) in (types.UnionType, typing.Union):
        return all(a is types.NoneType or _is_number(a) for a in get_args(annotation))
    if isinstance(annotation, type):
        return issubclass(annotation, int | float | np.number | np.bool_)
    return isinstance(annotation, DType)


def _all_constant(spec: ParameterSpec) -> ParameterSpec:
    """A Constant tuple makes every item constant [ANN-5]."""
    return ParameterSpec(True, listed=None if spec.listed is None else tuple(map(_all_constant, spec.listed)),
                         each=None if spec.each is None else _all_constant(spec.each))


def _is_expression(text: str) -> bool:
    """Whether an annotation is one, also the text in quotes that another text is."""
    try:
        inner = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    return not (isinstance(inner, ast.Constant) and isinstance(inner.value, str)) or _is_expression(inner.value)


def _quoted(text: str | None) -> str:
    return '"' + (text or "M N").strip("\"' \n") + '"'


def specs_of(fn: types.FunctionType) -> dict[str, ParameterSpec]:
    """Specs of all annotated parameters; string annotations are resolved (NameError if they cannot be) [KERN-1]."""
    annotations = fn.__annotations__
    if any(isinstance(a, str) for a in annotations.values()):
        try:
            annotations = typing.get_type_hints(fn, include_extras=True)
        except NameError as e:
            raise NameError(
                f"{e.name!r} in an annotation of {fn.__qualname__} means nothing when the function is defined: import "
                f"it outside of `if TYPE_CHECKING:`, or annotate arrays with ct.Array", name=e.name) from None
        except SyntaxError as e:
            text = next((a for a in annotations.values() if isinstance(a, str) and not _is_expression(a)), e.text)
            raise TypeError(f"the annotation {text!r} in {fn.__qualname__} is no expression of Python; named sizes of "
                            f"an array are written ct.Array[{_quoted(text)}]") from None
    return {n: spec_of(a, n) for n, a in annotations.items() if n != "return"}
