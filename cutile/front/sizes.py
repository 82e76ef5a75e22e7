"""Sizes of arrays as text: `"M K"`, `"*batch N"`, `"3 =N"`, `"cdiv(M, 128) 2*K"`.

Items stand between spaces outside of parentheses. An item is a name, a number, an expression of names, `_` for any
size, `*name` for any number of sizes, or `=name` for a size that becomes a constant of the kernel.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

from cutile._support.structs import cached, structure
from cutile.dtypes import INFO, from_foreign

FUNCTIONS = {"cdiv": lambda x, y: -(-x // y), "min": min, "max": max}
MAX_LENGTH = 1000  # characters of an item


class Expression:
    """An integer computed from named sizes: names, ints, + - * // %, and cdiv, min, max.

    text    as written;  names: those that it reads
    """

    __slots__ = ("text", "names", "_code")

    def __init__(self, text: str):
        import ast  # loaded when sizes are used

        if len(text) > MAX_LENGTH:
            raise ValueError(f"a size of {len(text)} characters is too long")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ValueError(f"{text!r} is no size: {TAKEN}") from None
        self.text = text
        self.names = frozenset(_names(tree.body, text))
        self._code = compile(tree, f"<size {text}>", "eval")

    def __call__(self, values: Mapping[str, Any]) -> int:
        """Its value. KeyError for a name without one, ZeroDivisionError."""
        scope = {n: values[n] for n in self.names}
        return eval(self._code, {"__builtins__": {}, **FUNCTIONS}, scope)

    def __repr__(self) -> str:
        return self.text


TAKEN = "sizes are names, ints, and expressions of them by + - * // %, cdiv(), min() and max()"


def _names(tree: Any, text: str) -> set[str]:
    """The names that an expression reads. ValueError for anything that is no expression of sizes."""
    import ast

    found: set[str] = set()
    left = [tree]
    while left:
        node = left.pop()
        match node:
            case ast.Constant(value=int()) if not isinstance(node.value, bool):
                pass
            case ast.Name():
                found.add(node.id)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
                left += [node.left, node.right]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                left.append(node.operand)
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS and _count_fits(name, node.args):
                left += node.args
            case _:
                hint = "; write // for division" if isinstance(getattr(node, "op", None), ast.Div) else (
                    '; name the sizes of an array, as in x: ct.Array["M N"], and write M' if isinstance(
                        node, ast.Attribute | ast.Subscript) else "")
                raise ValueError(f"{text!r} is no size: {TAKEN}{hint}")
    return found


def _count_fits(name: str, args: Sequence[Any]) -> bool:
    return len(args) == 2 if name == "cdiv" else len(args) >= 2


def split(text: str) -> list[str]:
    """The items of a text. ValueError where parentheses do not match."""
    items, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            break
        if c.isspace() and not depth:
            items.append("")
        else:
            items[-1] += c
    if depth:
        raise ValueError(f"parentheses do not match in {text!r}")
    return [i for i in items if i]


def _without_commas(text: str) -> str:
    """The text with spaces in the place of commas that stand between items."""
    depth, out = 0, []
    for c in text:
        depth += (c in "([") - (c in ")]")
        out.append(" " if c == "," and depth <= 0 else c)
    return " ".join("".join(out).split()) if "," in text and out != list(text) else text


def is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text) and text not in FUNCTIONS and text != "_"


@structure(frozen=True)
class Axis:
    """What a text says of one axis, or of several.

    text    as written
    name    a name to bind; `rest`: to a tuple of all sizes that other items leave over
    size    an expression that gives the size; without name and size, any size will do
    """

    text: str
    name: str | None = None
    rest: bool = False
    size: Expression | None = None


def axes_of(text: str) -> tuple[Axis, ...]:
    """The items of a text as axes. ValueError for what is no size, and for more than one `*name`."""
    if (spaced := _without_commas(text)) != text:
        raise ValueError(f"{text!r} is no list of sizes: spaces separate them, not commas; write {spaced!r}")
    axes = tuple(map(_axis, split(text)))
    if sum(a.rest for a in axes) > 1:
        raise ValueError(f"{text!r} has more than one item with *, which stands for all sizes that others leave over")
    return axes


def _axis(item: str) -> Axis:
    name = item.lstrip("*=")
    if item == "_":
        return Axis(item)
    if item[0] in "*=" and len(item) - len(name) == 1:
        if not is_name(name):
            raise ValueError(f"{item!r} is no size: after {item[0]} stands a name")
        return Axis(item, name, rest=item[0] == "*")
    return Axis(item, item) if is_name(item) else Axis(item, size=Expression(item))


class Sizes:
    """The sizes, and perhaps the dtype, of an array parameter. `ct.Array["M K", ct.float16]` annotates it with them.

    Functions made by `ct.jit` check them; `ct.launch` does not. A type checker that takes text in annotations for types
    understands `Annotated[ct.Array, ct.Sizes("M K")]`, which means the same.

    Parameters
    ----------
    text : str
        A size for each axis, with spaces between them: a name, a number, an expression of names such as `2*K` or
        `cdiv(M, 128)`, `_` for any size, `*name` for any number of axes, `=name` for a size that becomes a constant.
    dtype : dtype or None, default None
        The dtype that the array must have.

    Attributes
    ----------
    text : str
        As it was given.
    dtype : DType or None
        The dtype that the array must have.
    axes : tuple
        What the text says of each axis.
    constants : tuple of int
        The axes whose sizes become constants of the kernel. Those behind a `*name` count from the end.

    Raises
    ------
    TypeError
        The text is no text, or the dtype no dtype.
    ValueError
        The text does not say sizes.

    Notes
    -----
    [JIT-4]

    Examples
    --------
    >>> ct.Sizes("M =K").constants
    (1,)
    >>> @ct.jit(grid="M", out=ct.Out("M"))
    ... @ct.kernel
    ... def row_sums(x: ct.Array["M =K"], out, K: ct.Constant[int]):
    ...     ct.store(out, ct.bid(0), ct.sum(ct.load(x, (ct.bid(0), 0), (1, K))))
    >>> print(row_sums(np.ones((2, 4))))
    [4. 4.]
    """

    def __init__(self, text: str, dtype: Any = None):
        if not isinstance(text, str):
            raise TypeError(f'sizes are text such as "M K", not {text!r:.100}')
        found = None if dtype is None else from_foreign(dtype)
        if dtype is not None and found is None:
            raise TypeError(f"{dtype!r:.100} is no dtype{_instead_of_dtype(text, dtype)}")
        self.text, self.dtype = text, found
        self.axes  # noqa: B018 - an error shows where the text is

    @cached
    def axes(self) -> tuple[Axis, ...]:
        return axes_of(self.text)

    @cached
    def constants(self) -> tuple[int, ...]:
        """The axes whose sizes become constants of the kernel; those behind `*name` count from the end."""
        star = next((i for i, a in enumerate(self.axes) if a.rest), len(self.axes))
        return tuple(i if i < star else i - len(self.axes)
                     for i, a in enumerate(self.axes) if a.text.startswith("="))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sizes) and (self.text, self.dtype) == (other.text, other.dtype)

    def __hash__(self) -> int:
        return hash((self.text, self.dtype))

    def __repr__(self) -> str:
        return f"Sizes({self.text!r}{'' if self.dtype is None else f', {self.dtype.name}'})"


def _instead_of_dtype(text: str, dtype: Any) -> str:
    """What to write where text, or one size too many, stands in the place of a dtype."""
    known = instead_of_dtype(dtype)
    if known or not isinstance(dtype, str | int):
        return known
    return f'; one text holds all sizes, with spaces between them: "{text} {dtype}"'


def instead_of_dtype(dtype: Any) -> str:
    """What to write in the place of what Python or NumPy would take for a dtype."""
    if isinstance(dtype, type) and dtype in _OF_PYTHON:
        return f"; write {_OF_PYTHON[dtype]}"
    return f"; write ct.{dtype}, without quotes" if isinstance(dtype, str) and dtype in NAMED else ""


NAMED = {d.name for d in INFO}
_OF_PYTHON = {float: "ct.float64, or ct.float32", int: "ct.int64, or ct.int32", bool: "ct.bool_"}


def sizes_of(item: Any) -> Sizes:
    """The sizes in the brackets of `ct.Array[...]`."""
    if isinstance(item, int) or isinstance(item, tuple) and any(isinstance(i, int) for i in item[:1]):
        items = item if isinstance(item, tuple) else (item,)
        raise TypeError(f'sizes are text: ct.Array["{" ".join(map(str, items))}"], not ct.Array[{item!r:.100}]')
    if isinstance(item, tuple) and len(item) > 2:
        raise TypeError(f"ct.Array takes one text with all sizes, and perhaps a dtype: ct.Array["
                        f'"{" ".join(str(i) for i in item if not from_foreign(i))}"]')
    return Sizes(*item) if isinstance(item, tuple) and 1 <= len(item) <= 2 else Sizes(item)
