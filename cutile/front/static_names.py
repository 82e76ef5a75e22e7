"""The static constructs, ct.static_eval and the others, and how a call of one is recognised [SEVAL-*].

Kernels recognise a construct by the object that its name denotes, so that aliases of the module work [SEVAL-1].
"""

from __future__ import annotations

import ast
import types
from typing import Any

from cutile.errors import TileStaticAssertionError
from cutile.front.scope import MISSING, Scope, home_of, outer_object
from cutile.ir.terms import Const, Record, Static, Term, Tuple, describe


def static_eval(expr, /):
    """Evaluate a Python expression while the kernel is compiled. Tile code only.

    Real Python runs: the expression may call any function and read any constant of the kernel's surroundings. In it,
    constants of the kernel are Python values, and run-time tiles and arrays are `ct.Tile` and `ct.Array` objects with
    `dtype`, `shape` and operators.

    Parameters
    ----------
    expr : expression
        The expression itself, not a string.

    Returns
    -------
    value
        The value as tile code: a number, bool, string, None, dtype, enum member, function, module, frozen dataclass,
        tile, array, or a tuple of these.

    Raises
    ------
    TileTypeError
        The value is of another kind.
    StaticException
        The expression raises an exception, which is the cause.

    Notes
    -----
    [SEVAL-2], [SEVAL-3], [SEVAL-4], [SEVAL-5]

    Examples
    --------
    >>> sizes = {"small": 2, "large": 4}
    >>> @ct.kernel
    ... def kernel(out):
    ...     ct.store(out, 0, ct.ones((ct.static_eval(sizes["small"]),), ct.int32))
    >>> out = np.zeros(4, np.int32)
    >>> ct.launch(None, (1,), kernel, (out,))
    >>> print(out)
    [1 1 0 0]
    """
    raise RuntimeError("ct.static_eval() works in tile code only")


def static_assert(condition, message=None, /):
    """Stop compilation unless a condition holds. Tile code only.

    Parameters
    ----------
    condition : expression
        It is evaluated as by `ct.static_eval`, and must give a bool.
    message : expression, default None
        What the error says. It is evaluated only if the condition is False.

    Raises
    ------
    TileStaticAssertionError
        The condition is False.
    TileTypeError
        The condition is no bool, or is not known when the kernel is compiled.

    Notes
    -----
    [SEVAL-6]

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     ct.static_assert(x.ndim == 2, "x must be a matrix")
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(3),))
    ... except ct.TileStaticAssertionError as error:
    ...     print(str(error).splitlines()[0])
    Static assertion failed: x must be a matrix
    """
    raise RuntimeError("ct.static_assert() works in tile code only")


def static_iter(iterable):
    """Unroll a loop: `for x in ct.static_iter(iterable)` compiles its body once for each item.

    `x` is a constant in the body. `tuple(f(x) for x in ct.static_iter(iterable))` makes a tuple. On the host it returns
    the iterable.

    Parameters
    ----------
    iterable : expression
        It is evaluated as by `ct.static_eval`, and has at most 1,000 items.

    Raises
    ------
    TileStaticEvalError
        There are more items.
    TileSyntaxError
        `return`, `break` or `continue` leaves the loop.

    Notes
    -----
    [SEVAL-7], [EX-3]

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(out):
    ...     for i, value in ct.static_iter(enumerate([5, 7])):
    ...         ct.store(out, i, value)
    >>> out = np.zeros(2, np.int32)
    >>> ct.launch(None, (1,), kernel, (out,))
    >>> print(out)
    [5 7]
    """
    return iterable


def static_exception(exc, /):
    """Stop compilation: `raise ct.static_exception(exc)`, in tile code. On the host it returns `exc`.

    Parameters
    ----------
    exc : expression
        It is evaluated as by `ct.static_eval`, and gives an exception or a class of exceptions: the cause of the error.

    Raises
    ------
    StaticException
        When the statement is compiled.

    Notes
    -----
    [ST-8]

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     if x.ndim != 2:
    ...         raise ct.static_exception(ValueError("x must be a matrix"))
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(3),))
    ... except ct.StaticException as error:
    ...     print(repr(error.__cause__))
    ValueError('x must be a matrix')
    """
    return exc


def ensure_constant(value, /):
    """A value that must be known when the kernel is compiled. Tile code only.

    Parameters
    ----------
    value : value
        Known are constants, strings, dtypes and other Python objects, and tuples and frozen dataclasses of these.

    Returns
    -------
    value
        `value` itself.

    Raises
    ------
    TileStaticAssertionError
        The value is not known.

    Notes
    -----
    [SEVAL-8]

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(out, n: ct.Constant[int]):
    ...     ct.store(out, 0, ct.full((ct.ensure_constant(n),), 7, ct.int32))
    >>> out = np.zeros(4, np.int32)
    >>> ct.launch(None, (1,), kernel, (out, 2))
    >>> print(out)
    [7 7 0 0]
    """
    raise RuntimeError("ct.ensure_constant() works in tile code only")


KEYWORDS = {f.__name__: f for f in (static_eval, static_assert, static_iter, static_exception)}
_NAMES = {id(f): name for name, f in KEYWORDS.items()}


def construct_of(s: Scope, node: ast.AST) -> str | None:
    """The static construct that an expression calls, by a global name or an attribute of a module; None for others."""
    if not isinstance(node, ast.Call):
        return None
    return _NAMES.get(id(_outside(s, node.func)))


def _outside(s: Scope, node: ast.expr) -> Any:
    """The Python object that a dotted name denotes outside the kernel; MISSING for any other expression."""
    if isinstance(node, ast.Name):
        return outer_object(s, node.id)[2] if home_of(s, node.id) is None else MISSING
    if isinstance(node, ast.Attribute):
        base = _outside(s, node.value)
        return getattr(base, node.attr, MISSING) if isinstance(base, types.ModuleType) else MISSING
    return MISSING


def ensured(term: Term) -> Term:
    """The result of ct.ensure_constant [SEVAL-8]."""
    if not is_constant(term):
        raise TileStaticAssertionError(f"expected a compile-time constant, got {describe(term)}")
    return term


def is_constant(t: Term) -> bool:
    """Whether a term is known at compile time."""
    match t:
        case Const() | Static():
            return True
        case Tuple():
            return all(map(is_constant, t.items))
        case Record():
            return all(map(is_constant, t.fields.values()))
    return False
