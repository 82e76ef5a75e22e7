"""Annotations of kernel parameters: only these influence compilation [ANN-1…7]."""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, TypeVar, get_args, get_origin

from cutile._support.structs import structure
from cutile.dtypes import DType, int32, int64

T = TypeVar("T")


class ConstantAnnotation:
    """The argument is embedded in the kernel as a constant [ANN-1]. Used in `Annotated[T, ConstantAnnotation()]`."""

    def __repr__(self) -> str:
        return "ConstantAnnotation()"

    def __eq__(self, other) -> bool:
        return type(other) is ConstantAnnotation

    def __hash__(self) -> int:
        return hash(ConstantAnnotation)


@structure(frozen=True)
class ScalarAnnotation:
    """The dtype in which an integer argument is passed: int32 or int64 [ANN-2]."""

    dtype: DType = int32

    def __post_init__(self):
        if self.dtype not in (int32, int64):
            raise ValueError(f"ScalarAnnotation dtype must be int32 or int64, not {self.dtype!r}")


@structure(frozen=True, kw_only=True)
class ArrayAnnotation:
    """The index dtype of an array argument, and the sizes and strides that become constants [ANN-3]."""

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
    """The annotation of the elements of a list of arrays [ANN-4]."""

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
    """What the annotation of a parameter asks for."""

    constant: bool = False
    scalar: ScalarAnnotation | None = None
    array: ArrayAnnotation | None = None
    list: ListAnnotation | None = None
    items: tuple[ParameterSpec, ...] | None = None
    repeat: bool = False  # tuple[A, ...]: items[0] for every item

    def item(self, i: int) -> ParameterSpec:
        """The spec of item i of a tuple argument; a Constant tuple makes every item constant [ANN-5]."""
        inner = PLAIN if self.items is None else self.items[0] if self.repeat else self.items[i]
        return ParameterSpec(True, items=inner.items, repeat=inner.repeat) if self.constant else inner


PLAIN = ParameterSpec()
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
            fields[field] = True if field == "constant" else m
    return ParameterSpec(**{**base.__dict__, **fields}) if fields else base


_FIELDS = {ConstantAnnotation: "constant", ScalarAnnotation: "scalar", ArrayAnnotation: "array", ListAnnotation: "list"}


def _tuple_spec(annotation: Any, name: str) -> ParameterSpec:
    if get_origin(annotation) is not tuple:
        return PLAIN
    args = get_args(annotation)
    if len(args) == 2 and args[1] is Ellipsis:
        return ParameterSpec(items=(spec_of(args[0], name),), repeat=True)
    return ParameterSpec(items=tuple(spec_of(a, name) for a in args))


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
    return {n: spec_of(a, n) for n, a in annotations.items() if n != "return"}
