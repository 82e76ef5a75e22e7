"""assert_matches and assert_repeatable: whether a function computes what it should, and the same each time [BEN-6]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile.functions.profiling import copied_to_host, resolved
from cutile.functions.tuning_check import on_host

if TYPE_CHECKING:
    from cutile.bounds.walk import Lost

SHOWN = 3  # wrong elements in a message


def assert_matches(f: Any, reference: Callable[..., Any], args: Sequence[Any], *, named: dict[str, Any] | None = None,
                   bounds: Any = None) -> None:
    """Check that each element of the outputs is as near to the reference as the arithmetic of the kernel allows.

    Parameters
    ----------
    f : function
        Made by `ct.jit`.
    reference : function
        It takes the same arguments and returns the expected array, or a tuple of them, best in float64.
    args : sequence
        The arguments.
    named : dict, optional
        Arguments by name.
    bounds : float, ndarray or tuple, optional
        How far elements may be away: a number, an array, or a tuple of these, one for each output. None: what the
        program of the kernel allows on these arguments. To find that, all blocks run on the CPU, so arrays should be
        small.

    Raises
    ------
    AssertionError
        Elements are further away; the text gives their number, and index, values and bound of the first ones.
    ValueError
        No bound is known: the text names the line where it was lost, and why. Compute more exactly there, or give
        `bounds`.

    Notes
    -----
    [BEN-6] NaN must stand where the reference has NaN. Infinities must be equal. Zeros may have either sign.

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, 128)", out=ct.Out("N"))
    ... @ct.kernel
    ... def root(x: ct.Array["N"], y):
    ...     ct.store(y, ct.bid(0), ct.sqrt(ct.load(x, ct.bid(0), 128)))
    >>> x = np.linspace(0, 1, 300, dtype=np.float32)
    >>> cutile.testing.assert_matches(root, lambda x: np.sqrt(x.astype(np.float64)), (x,))
    """
    named = named or {}
    want = [np.asarray(on_host(w)) for w in _several(reference(*args, **named))]
    allowed, lost = _bounds_of(f, args, named) if bounds is None else (list(_several(bounds)), None)
    got = [on_host(a) for a in _several(f(*args, **named))]
    if not len(got) == len(want) == len(allowed):
        raise ValueError(f"{f.__name__} has {len(got)} outputs, the reference returned {len(want)}, and there are "
                         f"{len(allowed)} bounds")
    for i, (g, w, b) in enumerate(zip(got, want, allowed)):
        what = f"output {i} of {f.__name__}" if len(got) > 1 else f"the output of {f.__name__}"
        _compare(what, g, w, b, lost)


def _several(x: Any) -> Sequence[Any]:
    return x if isinstance(x, tuple | list) else (x,)


def _bounds_of(f: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[list[np.ndarray], Lost | None]:
    """How far the elements of each output may be from real numbers, and where that became unknown."""
    from cutile.bounds import bounds

    function, values = resolved(f, args, named)
    grid, kernel, arguments = function.launch_arguments(values)
    found = bounds(kernel, grid, tuple(map(copied_to_host, arguments)), rounding=True)
    if found.inconclusive is not None:
        raise ValueError(f"no bound is known for {f.__name__}: {found.inconclusive}; give bounds=")
    by_name = {a.name: a for a in found.arrays}
    return [by_name[n].bound for n in kernel.names if n in function.returned], found.lost


def _known(what: str, allowed: np.ndarray, lost: Lost | None) -> None:
    """ValueError for an output of which some elements have no bound."""
    without = np.argwhere(np.isinf(allowed))
    if not len(without):
        return
    index = list(map(int, without[0]))
    if lost is None:
        raise ValueError(f"no bound is known for {what} at {index}; give bounds=")
    advice = f"{lost.help}; or give bounds=" if lost.help else "give bounds="
    raise ValueError(f"no bound is known for {what} at {index}: {lost.why}\n{lost.span.render()}\n  help: {advice}")


def _compare(what: str, got: np.ndarray, want: np.ndarray, bound: Any, lost: Lost | None) -> None:
    if got.shape != want.shape:
        raise AssertionError(f"{what} has the shape {got.shape}, the reference {want.shape}")
    x, y = got.astype(np.float64), want.astype(np.float64)
    allowed = np.broadcast_to(np.asarray(bound, np.float64), x.shape)
    _known(what, allowed, lost)
    rounded = np.abs(y) * float(np.finfo(want.dtype).eps if want.dtype.kind == "f" else 0)  # of the reference itself
    with np.errstate(all="ignore"):
        right = (np.abs(x - y) <= allowed + rounded) | (x == y) | (np.isnan(x) & np.isnan(y))
    wrong = np.argwhere(~right)
    if len(wrong):
        lines = [f"  {list(map(int, i))}: {got[tuple(i)]} instead of {want[tuple(i)]}, allowed is "
                 f"{allowed[tuple(i)]:.3g}" for i in wrong[:SHOWN]]
        raise AssertionError("\n".join([f"{len(wrong)} of {x.size} elements of {what} are wrong", *lines]))


def assert_repeatable(f: Callable[..., Any], args: Sequence[Any], *, named: dict[str, Any] | None = None,
                      repeats: int = 10) -> None:
    """Check that a function gives the same bits each time.

    Parameters
    ----------
    f : function
        What is called.
    args : sequence
        Its arguments.
    named : dict, optional
        Arguments by name.
    repeats : int, default 10
        How often it is called.

    Raises
    ------
    AssertionError
        It does not; the text names the first element that differs.

    Examples
    --------
    >>> cutile.testing.assert_repeatable(np.cumsum, (np.ones(8),))
    """
    named = named or {}
    first = [on_host(a) for a in _several(f(*args, **named))]
    for n in range(1, repeats):
        for i, (a, b) in enumerate(zip(first, [on_host(x) for x in _several(f(*args, **named))])):
            different = _bits(a) != _bits(b)
            if different.any():
                index = tuple(map(int, np.argwhere(different)[0]))
                raise AssertionError(f"{getattr(f, '__name__', f)}: output {i} at {list(index)} is {a[index]} in the "
                                     f"first call and {b[index]} in call {n + 1}")


def _bits(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])
