"""The types of Tile IR values, as plain data that compares by value.

Facts from the Tile IR specification (Types.td, BytecodeTypeOpcodes.td of NVIDIA/cuda-tile 13.3); what 13.4 adds
was found by asking `tileirdisasm`. (13.5 changes the tables of functions and of positions in ways that are not
published; no kernel needs them.)
"""

from __future__ import annotations

from math import prod

from cutile import dtypes
from cutile._support.structs import structure

Version = tuple[int, int]
VERSIONS: tuple[Version, ...] = ((13, 1), (13, 2), (13, 3), (13, 4))


def parse_version(text: str | Version) -> Version:
    """`"13.3"` -> `(13, 3)`; ValueError for a version that this package cannot write."""
    version = tuple(int(p) for p in text.split(".")) if isinstance(text, str) else tuple(text)
    if version not in VERSIONS:
        known = ", ".join(version_text(v) for v in VERSIONS)
        raise ValueError(f"Tile IR bytecode version {text!r} is not one of {known}")
    return version


def version_text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


@structure(frozen=True, slots=True)
class Scalar:
    """An element type. `kind` is "i" or "f"."""

    name: str
    tag: int
    bits: int
    kind: str
    since: Version = (13, 1)

    def __str__(self) -> str:
        return self.name


i1, i8, i16, i32, i64 = (Scalar(f"i{w}", tag, w, "i") for tag, w in enumerate((1, 8, 16, 32, 64)))
f16, bf16 = Scalar("f16", 5, 16, "f"), Scalar("bf16", 6, 16, "f")
f32, tf32, f64 = Scalar("f32", 7, 32, "f"), Scalar("tf32", 8, 19, "f"), Scalar("f64", 9, 64, "f")
e4m3, e5m2 = Scalar("f8E4M3FN", 10, 8, "f"), Scalar("f8E5M2", 11, 8, "f")
e8m0 = Scalar("f8E8M0FNU", 18, 8, "f", (13, 2))
e2m1 = Scalar("f4E2M1FN", 19, 4, "f", (13, 3))
e5m3 = Scalar("fnv8E5M3FNU", 130, 8, "f", (13, 4))

# Signed and unsigned integers are one type here: the operations say how to read the bits.
_OF_DTYPE = {
    dtypes.bool_: i1, dtypes.int8: i8, dtypes.uint8: i8, dtypes.int16: i16, dtypes.uint16: i16,
    dtypes.int32: i32, dtypes.uint32: i32, dtypes.int64: i64, dtypes.uint64: i64,
    dtypes.float16: f16, dtypes.bfloat16: bf16, dtypes.float32: f32, dtypes.tfloat32: tf32, dtypes.float64: f64,
    dtypes.float8_e4m3fn: e4m3, dtypes.float8_e5m2: e5m2, dtypes.float8_e8m0fnu: e8m0, dtypes.float4_e2m1fn: e2m1,
    dtypes.float8_e5m3fnu: e5m3,
}


def of_dtype(dtype: dtypes.DType) -> Scalar | Pointer:
    """The element type that carries a dtype in a tile (bool is i1; in memory it is i8)."""
    pointee = dtypes.info(dtype).pointee
    return _OF_DTYPE[dtype] if pointee is None else Pointer(in_memory(pointee))


def in_memory(dtype: dtypes.DType) -> Scalar:
    """The element type of an array of `dtype`: as in a tile, but a bool is a byte."""
    return i8 if dtype is dtypes.bool_ else _OF_DTYPE[dtype]


@structure(frozen=True, slots=True)
class Pointer:
    """The address of an element in global memory."""

    pointee: Scalar

    def __str__(self) -> str:
        return f"ptr<{self.pointee}>"


@structure(frozen=True, slots=True)
class Tile:
    """A tile of numbers or pointers."""

    element: Scalar | Pointer
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return prod(self.shape)

    def __str__(self) -> str:
        return f"tile<{''.join(f'{d}x' for d in self.shape)}{self.element}>"


def _dims(dims: tuple[int | None, ...]) -> str:
    return ",".join("?" if d is None else str(d) for d in dims)


@structure(frozen=True, slots=True)
class TensorView:
    """An array in global memory. A size or stride is None if it is known only at run time. Strides count elements."""

    element: Scalar
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]

    def __str__(self) -> str:
        sizes = "".join(f"{_dims((d,))}x" for d in self.shape)
        return f"tensor_view<{sizes}{self.element}, strides=[{_dims(self.strides)}]>"


PADDINGS = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")


@structure(frozen=True, slots=True)
class PartitionView:
    """A tensor view cut into tiles. Tile dimension `i` lies along tensor dimension `dim_map[i]`.

    `padding` is one of `PADDINGS`. With None, elements outside are undefined.
    """

    tile_shape: tuple[int, ...]
    tensor_view: TensorView
    dim_map: tuple[int, ...] = ()
    padding: str | None = None

    def __post_init__(self):
        _default_dim_map(self)

    def __str__(self) -> str:
        return f"partition_view<tile=({_dims(self.tile_shape)}){_view_text(self)}>"


@structure(frozen=True, slots=True)
class StridedView:
    """Tiles of a tensor view that start every `traversal_strides` elements (needs 13.3)."""

    tile_shape: tuple[int, ...]
    traversal_strides: tuple[int, ...]
    tensor_view: TensorView
    dim_map: tuple[int, ...] = ()
    padding: str | None = None

    def __post_init__(self):
        _default_dim_map(self)

    def __str__(self) -> str:
        steps = _dims(self.traversal_strides)
        return f"strided_view<tile=({_dims(self.tile_shape)}), traversal_strides=[{steps}]{_view_text(self)}>"


@structure(frozen=True, slots=True)
class GatherScatterView:
    """Tiles of a tensor view. Its dimension `sparse_dim` is indexed by a tile of positions (needs 13.3)."""

    tile_shape: tuple[int, ...]
    tensor_view: TensorView
    sparse_dim: int
    padding: str | None = None

    def __str__(self) -> str:
        return f"gather_scatter_view<tile=({_dims(self.tile_shape)}){_view_text(self)}, sparse_dim={self.sparse_dim}>"


View = PartitionView | StridedView | GatherScatterView


def _default_dim_map(view) -> None:
    if not view.dim_map:
        object.__setattr__(view, "dim_map", tuple(range(len(view.tile_shape))))


def _view_text(view: View) -> str:
    padding = "" if view.padding is None else f", padding_value={view.padding}"
    identity = tuple(range(len(view.tile_shape)))
    dim_map = getattr(view, "dim_map", identity)
    return f"{padding}, {view.tensor_view}" + ("" if dim_map == identity else f", dim_map=[{_dims(dim_map)}]")


@structure(frozen=True, slots=True)
class Token:
    """Orders memory accesses."""

    def __str__(self) -> str:
        return "token"


@structure(frozen=True, slots=True)
class Function:
    """The signature of an entry."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.results))})"


Type = Scalar | Pointer | Tile | TensorView | PartitionView | StridedView | GatherScatterView | Token | Function

token = Token()


def tile(element: Scalar | Pointer, shape: tuple[int, ...] = ()) -> Tile:
    return Tile(element, tuple(shape))


def ptr(pointee: Scalar) -> Pointer:
    return Pointer(pointee)
