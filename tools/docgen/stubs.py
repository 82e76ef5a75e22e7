"""cutile/__init__.pyi: the public names with their types, for type checkers and editors.

Decorators make ops and methods, so no tool finds their parameters in the source. Signatures and docstrings come from
the registry; the tables below add the types. A parameter that no table names is a KeyError.
"""

from __future__ import annotations

import enum
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import cutile as ct
from cutile.front import proxies
from cutile.ops import FAMILIES
from cutile.ops._op import OpDef, methods, registry
from tools.docgen.op_clauses import prose

BOOL = ("flush_to_zero propagate_nan keepdims check_bounds reverse use_fast_acc programmatic_dependent_launch host "
        "tile")
VALUE = ("x y x1 x2 x_scale y_scale acc cond tile value update expected desired fill_value padding_value offset start "
         "stop step pointer")
# Types of parameters: by the name of the parameter, or by those of function and parameter.
TYPES: dict[str, str] = {
    **dict.fromkeys(BOOL.split(), "bool"),
    **dict.fromkeys(VALUE.split(), "_Tilelike"),
    "allow_tma": "bool | None", "args": "object", "array": "Array", "axis": "int", "axis0": "int | None",
    "axis1": "int | None", "axes": "tuple[int, ...]", "divisor": "int", "dtype": "_DType", "end": "str",
    "format": "str", "func": "Callable[..., Any]", "identity": "_Tilelike | tuple[_Tilelike, ...]", "index": "_Index",
    "indices": "_Index", "latency": "int | None", "length": "int", "mask": "_Tilelike | None",
    "memory_order": "_MemoryOrder", "memory_scope": "_MemoryScope", "message": "str | None",
    "order": 'Literal["C", "F"] | tuple[int, ...]', "padding_mode": "_PaddingMode",
    "rounding_mode": "_RoundingMode | None", "sep": "str", "shape": "_Shape", "size": "int", "tile_shape": "_Shape",
    "tiles": "tuple[_Tilelike, ...]", "traversal_steps": "_Shape | None",
    **dict.fromkeys(("sum.axis", "prod.axis", "max.axis", "min.axis"), "int | tuple[int, ...] | None"),
    **dict.fromkeys(("argmax.axis", "argmin.axis"), "int | None"),
    **dict.fromkeys(("load_advanced_indexing.indices", "store_advanced_indexing.indices"),
                    "tuple[_Tilelike | _Slice, ...]"),
    **dict.fromkeys(("reshape.shape", "broadcast_to.shape"), "tuple[int, ...]"),
    **dict.fromkeys(("from_foreign.shape", "from_foreign.strides"), "tuple[_Tilelike, ...]"),
    "assume_divisible_by.x": "_T", "astile.value": "_Nested", "ensure_constant.value": "_T",
    "static_assert.condition": "object", "static_assert.message": "object", "static_eval.expr": "Any",
    "static_exception.exc": "_E", "static_iter.iterable": "Iterable[_T]",
}
# Types of results other than tiles, by the name of the op or function.
RESULTS: dict[str, str] = {
    **dict.fromkeys(("bid", "num_blocks", "num_tiles", "view_num_tiles"), "_IntScalar"),
    **dict.fromkeys(("store", "scatter", "store_advanced_indexing", "view_store", "store_offset", "print", "printf",
                     "assert_", "grid_dependency_control_wait", "grid_dependency_control_launch_dependents",
                     "static_assert"), "None"),
    **{o.name: "None" for (kind, name), o in methods().items() if kind == "view" and name.startswith("atomic_store")},
    "Slice": "_Slice", "assume_divisible_by": "_T", "divmod": "tuple[Tile, Tile]", "elementwise": "Any",
    "ensure_constant": "_T", "from_foreign": "Array", "get_raw_memory": "RawArrayMemory", "item": "Any",
    "slice": "Array", "static_eval": "Any", "static_exception": "_E", "static_iter": "Iterable[_T]",
    "tiled_view": "TiledView",
}
# Overloads of functions: the types that differ, that of the result under "".
_INTS = {"x": "int", "y": "int", "": "_IntScalar"}
_MANY = {"x": "tuple[_Tilelike, ...]", "": "tuple[Tile, ...]"}
OVERLOADS: dict[str, dict[str, str]] = {"cdiv": _INTS, "maximum": _INTS, "minimum": _INTS, "mod": _INTS,
                                        "floordiv": _INTS, "reduce": _MANY, "scan": _MANY}
# Operators of an integer scalar: with an int they give one again. Python code around them expects ints (range(n), a
# helper's `i: int`), and they are tiles too (n.astype(ct.int64)), so for checkers they are both.
INTEGER_BINARY = "add sub mul floordiv mod and or xor lshift rshift"
INTEGER_UNARY = "neg pos invert abs"

# Public names that checkers find in the source by themselves.
REEXPORTED = {
    "runtime.annotations": (ct.ArrayAnnotation, ct.ConstantAnnotation, ct.ListAnnotation, ct.ScalarAnnotation),
    "dtypes": (ct.DType, ct.foreign_pointer_dtype),
    "runtime.launch": (ct.launch,), "runtime.options": (ct.ByTarget,),
    "settings": (ct.sanitize,), "types": (ct.MemoryOrder, ct.MemoryScope, ct.PaddingMode, ct.RoundingMode),
}
STATIC = (ct.static_eval, ct.static_assert, ct.static_iter, ct.static_exception, ct.ensure_constant)
WIDTH = 120
ENUMS = (ct.MemoryOrder, ct.MemoryScope, ct.PaddingMode, ct.RoundingMode)

HEAD = '''"""{doc}"""

# {note}
# Types that begin with _ are for checkers alone: at run time there are no such names.
# mypy: disable-error-code="assignment, misc, override, overload-overlap"

from collections.abc import Callable, Iterable
from types import EllipsisType
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy as np

{imports}

kernel = Kernel
_T = TypeVar("_T")
_E = TypeVar("_E", bound=BaseException)
_F = TypeVar("_F", bound=Callable[..., Any])

class _ForeignDType(Protocol):
    """A dtype of NumPy, ml_dtypes or PyTorch."""

    @property
    def itemsize(self) -> int: ...

_DType: TypeAlias = DType | _ForeignDType | type[np.generic]
{enums}
_Tilelike: TypeAlias = Tile | int | float | np.number[Any] | np.bool_
_Nested: TypeAlias = _Tilelike | tuple[_Nested, ...]
_Shape: TypeAlias = int | tuple[int, ...]
_Index: TypeAlias = _Tilelike | tuple[_Tilelike, ...]
_AxisKey: TypeAlias = slice | EllipsisType | None
Scalar: TypeAlias = Tile | int | float
'''

FUNCTION = '''@overload
def function(func: _F, /, *, host: bool = False, tile: bool = True) -> _F:
{doc}@overload
def function(func: None = None, /, *, host: bool = False, tile: bool = True) -> Callable[[_F], _F]: ...
'''


# ------------------------------------------------------------------ functions


def quoted(doc: str | None, indent: str) -> str:
    """A docstring without its clauses, as source."""
    lines = prose(doc or "").split("\n")
    lines[0] = '"' * 3 + lines[0]  # which takes room on the first line
    text = "\n".join(_fitting(line, WIDTH - len(indent) - 3) for line in lines)[3:]
    mark = 'r"""' if "\\" in text else '"""'
    end = '\n"""' if "\n" in text else '"""'
    return textwrap.indent(f"{mark}{text}{end}\n", indent)


def _fitting(line: str, width: int) -> str:
    """A line, or the lines into which it must be broken."""
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def parameter(owner: str, p: inspect.Parameter, types: dict[str, str]) -> inspect.Parameter:
    """The parameter with its type; the spelling of its default is that of source."""
    kind = types.get(p.name) or TYPES.get(f"{owner}.{p.name}") or TYPES[p.name]
    default = p.default
    if isinstance(default, enum.Enum):
        default = _Spelt(f"{type(default).__name__}.{default.name}")
    return p.replace(annotation=_Spelt(kind), default=default)


class _Spelt:
    """Text that `repr` gives as it is."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def header(name: str, owner: str, given: Iterable[inspect.Parameter], types: dict[str, str], indent: str) -> str:
    """The `def` line, or lines."""
    found = [p if p.name == "self" else parameter(owner, p, types) for p in given]
    text = f"{indent}def {name}{inspect.Signature(found)} -> {types.get('') or RESULTS.get(owner, 'Tile')}:"
    if len(text) <= WIDTH:
        return text
    first, *rest = re.split(r", (?=[/*]|\w+: )", text)
    lines, column = [first], " " * (first.index("(") + 1)
    for part in rest:
        if len(lines[-1]) + len(part) + 3 <= WIDTH:
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(column + part)
    return "\n".join(lines)


def function(name: str, fn: Any, indent: str = "", owner: str | None = None) -> str:
    """An op, method or function, with each of its overloads; `owner` is the op's name, where that is another."""
    owner = owner or name
    given = inspect.signature(fn).parameters.values()
    other = OVERLOADS.get(owner)
    return "".join(f"{indent}@overload\n" * (other is not None) + header(name, owner, given, types, indent)
                   + f"\n{quoted(fn.__doc__, indent + '    ')}" for types in ([other] if other else []) + [{}])


# ------------------------------------------------------------------ classes


def operators() -> Iterator[str]:
    """The operators of Tile: those of the class, and abs() and subscripts, which only tile code has."""
    for name, method in vars(proxies.Tile).items():
        if inspect.isfunction(method):
            binary = len(inspect.signature(method).parameters) == 2
            yield _operator(name, "_Tilelike" if binary else None, RESULTS["divmod"] if "divmod" in name else "Tile")
    yield _operator("__abs__", None, "Tile")
    yield "    def __getitem__(self, key: _AxisKey | tuple[_AxisKey, ...], /) -> Tile: ..."
    for name, result in (("bool", "bool"), ("int", "int"), ("float", "float"), ("index", "int")):
        yield _operator(f"__{name}__", None, result)


def _operator(name: str, other: str | None, result: str) -> str:
    return f"    def {name}(self{f', other: {other}, /' if other else ''}) -> {result}: ..."


def integer_operators() -> Iterator[str]:
    """The operators of an integer scalar, with an overload for ints."""
    def both(name: str, result: str, otherwise: str) -> Iterator[str]:
        for other, gives in (("int", result), ("_Tilelike", otherwise)):
            yield "    @overload"
            yield _operator(name, other, gives)

    for name in INTEGER_BINARY.split():
        yield from both(f"__{name}__", "_IntScalar", "Tile")
        yield from both(f"__r{name}__", "_IntScalar", "Tile")
    for name in ("lt", "le", "gt", "ge"):
        yield from both(f"__{name}__", "bool", "Tile")
    for name in ("divmod", "rdivmod"):
        yield from both(f"__{name}__", "tuple[_IntScalar, _IntScalar]", "tuple[Tile, Tile]")
    for name in INTEGER_UNARY.split():
        yield _operator(f"__{name}__", None, "_IntScalar")


def attribute(name: str, result: str, doc: str) -> str:
    """A property."""
    return f'    @property\n    def {name}(self) -> {result}:\n        """{doc}"""\n'


# Types of attributes; those of an array differ.
ATTRIBUTES = {"dtype": "DType", "ndim": "int", "foreign_pointer": "Tile",
              **dict.fromkeys(("shape", "tile_shape", "traversal_steps"), "tuple[int, ...]"),
              **dict.fromkeys(("Array.shape", "Array.strides"), "tuple[_IntScalar, ...]")}


def members(cls: type) -> Iterator[str]:
    """The attributes and methods of a class of values."""
    for name, value in {n: v for c in reversed(cls.__mro__) for n, v in vars(c).items()}.items():
        if isinstance(value, property):
            yield attribute(name, ATTRIBUTES.get(f"{cls.__name__}.{name}") or ATTRIBUTES[name], value.__doc__)
        elif isinstance(value, proxies.Method):
            yield "" if value.receiver else "    @staticmethod"
            yield function(name, value, "    ", value.op.__name__)


def class_of(name: str, doc: str | None, *parts: str) -> str:
    """A class of these parts."""
    return f"class {name}:\n" + "\n".join(filter(None, [quoted(doc, "    "), *parts]))


def classes() -> Iterator[str]:
    """The classes of values in tile code."""
    for cls in proxies.RECEIVERS:
        more = ["    __hash__: ClassVar[None]\n", "\n".join(operators()) + "\n"] if cls is proxies.Tile else []
        yield class_of(cls.__name__, cls.__doc__, *members(cls), *more)
    yield class_of("_IntScalar(Tile, int)", "An integer scalar of tile code: a tile, and a number to Python.",
                   "\n".join(integer_operators()) + "\n")
    yield 'class _Slice:\n    """A range of elements along one axis."""\n'


# ------------------------------------------------------------------ the file


def literal(cls: type[enum.Enum]) -> str:
    """Parameters take a member, or its name."""
    names = ", ".join(f'"{m}"' for m in cls.__members__)
    return f"_{cls.__name__}: TypeAlias = {cls.__name__} | Literal[{names}]"


def imports() -> str:
    """The import statements of the stub."""
    errors = {"errors": tuple(v for v in vars(ct).values() if isinstance(v, type) and issubclass(v, BaseException))}
    names = {module: [o.__name__ for o in objects] for module, objects in {**REEXPORTED, **errors}.items()}
    names["runtime.annotations"] += ["Constant", "IndexedWithInt64", "ScalarInt64"]
    names["dtypes"] += [n for n, v in vars(ct).items() if isinstance(v, ct.DType)]
    names["gpu.tileir.tileiras"], names["runtime.prepare"] = ["compiler_timeout"], ["prepare"]
    names["runtime.turn_schedule"], names["front.sizes"] = ["schedule"], ["Sizes"]
    names["functions.declare"], names["functions.out"] = ["jit"], ["Out"]
    names["functions.autotune"] = ["autotune"]
    names["functions.compiled"], names["functions.compile_all"] = ["CompiledFunction"], ["compile_all"]
    names["compilation.array_spec"], names["pictures.view"] = ["ArraySpec"], ["view"]
    lines = ["from cutile import compilation as compilation", "from cutile import compute as compute",
             "from cutile import jax as jax",
             "from cutile import lib as lib", "from cutile import testing as testing",
             "from cutile import tune as tune",
             "from cutile._version import __version__ as __version__",
             "from cutile.runtime.kernel import Kernel",
             *(f"from cutile.{m} import {n} as {n}" for m, ns in names.items() for n in ns)]
    return "\n".join(sorted(lines, key=lambda line: (line.split()[1], line)))


def stub(note: str) -> str:
    """The whole file."""
    order = [m.__name__.rpartition(".")[2] for m in FAMILIES]
    ops: list[OpDef] = sorted((o for o in registry().values() if o.public), key=lambda o: order.index(o.family))
    head = HEAD.format(doc=ct.__doc__, note=note, imports=imports(), enums="\n".join(map(literal, ENUMS)))
    functions = [FUNCTION.format(doc=quoted(ct.function.__doc__, "    ")), *(function(f.__name__, f) for f in STATIC),
                 *(function(o.name, o) for o in ops)]
    return "\n".join([head, *classes(), *functions])
