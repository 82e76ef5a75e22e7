"""assert_matches: whether a function computes what it should [BEN-6]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile import settings
from cutile._support.opaque import opaque
from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.functions import libraries, options
from cutile.functions.entry import OUTSIDE
from cutile.functions.profiling import copied_to_host, resolved
from cutile.functions.reference import result_of
from cutile.functions.tuning_check import Outputs, copies, elements, in_order, on_host, outcome_of, referred
from cutile.runtime.launch import launch
from cutile.tracebacks import for_callers

if TYPE_CHECKING:
    from cutile.bounds.walk import Lost

SHOWN = 3  # wrong elements in a message
CHECKS = "all"  # of the sanitizer


@structure(frozen=True)
class Match:
    """How near an output is to the reference.

    Parameters
    ----------
    name : str
        The parameter of the kernel.
    error : float
        The largest difference of an element from the reference.
    bound : float
        How far that element may be away.
    share : float
        The largest share of its bound by which an element is away: at most 1; 0 where all are equal.

    Attributes
    ----------
    name, error, bound, share
        As above.

    Examples
    --------
    >>> print(cutile.testing.Match("y", 1e-7, 4e-7, 0.25))
    `y`: the largest error is 1e-07, 4e-07 is allowed there; at most 25% of what is allowed
    """

    name: str
    error: float
    bound: float
    share: float

    def __str__(self) -> str:
        return (f"`{self.name}`: the largest error is {self.error:.3g}, {self.bound:.3g} is allowed there; at most "
                f"{100 * self.share:.2g}% of what is allowed")


@structure(frozen=True)
class Matched:
    """What `assert_matches` found of outputs that are right.

    Parameters
    ----------
    outputs : tuple of Match
        One for each output.
    notes : tuple of str, default ()
        What to know of the comparison.

    Attributes
    ----------
    outputs, notes
        As above.
    error : float
        The largest error of all outputs.
    bound : float
        What is allowed of that element.

    Examples
    --------
    >>> m = cutile.testing.Matched((cutile.testing.Match("y", 1e-7, 4e-7, 0.25),))
    >>> m.error, m.bound
    (1e-07, 4e-07)
    """

    outputs: tuple[Match, ...]
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        return max((m.error for m in self.outputs), default=0.0)

    @property
    def bound(self) -> float:
        return max(self.outputs, key=lambda m: m.error).bound if self.outputs else 0.0

    def __str__(self) -> str:
        return "\n".join([*map(str, self.outputs), *(f"note: {n}" for n in self.notes)])


_KINDS = {"reference": options.FUNCTION, "args": options.ARGUMENTS, "named": options.BY_NAME}


@opaque(OUTSIDE)
@for_callers
def assert_matches(f: Any, reference: Callable[..., Any], args: Sequence[Any], *, named: dict[str, Any] | None = None,
                   bounds: Any = None, sanitize: bool | None = None) -> Matched:
    """Check that each element of the outputs is as near to the reference as the arithmetic of the kernel allows.

    Parameters
    ----------
    f : function
        Made by `ct.jit` or `ct.autotune`.
    reference : function
        It takes the same arguments and returns the expected array, or a tuple of them, best in float64. It gets copies.
    args : sequence
        The arguments.
    named : dict, optional
        Arguments by name.
    bounds : float, ndarray or tuple, optional
        How far elements may be away: a number, an array, or a tuple of these, one for each output. None: what the
        program of the kernel allows on these arguments. To find that, all blocks run on the CPU, so arrays should be
        small.
    sanitize : bool, optional
        Whether the launch also runs on the CPU under the checks of `ct.sanitize("all")`. None: unless `bounds` are
        given.

    Returns
    -------
    Matched
        The largest error, and what was allowed there.

    Raises
    ------
    AssertionError
        Elements are further away; the text gives their number, and index, values and bound of the first ones. Or no
        block stores an element of an output that is declared without fill.
    TileSanitizerError
        The checks report a use of undetermined values, accesses out of bounds or races.
    ValueError
        No bound is known: the text names the line where it was lost, and why. Compute more exactly there, or give
        `bounds`. Or the reference returns, or `bounds` has, fewer or more arrays than there are outputs.
    TypeError
        The reference returns what is no array, or does not take the arguments.
    RuntimeError
        The reference raises an error, which is the cause.

    Notes
    -----
    [BEN-6] NaN must stand where the reference has NaN. Infinities must be equal. Zeros may have either sign. Where more
    is allowed of most elements of an output than they are themselves, as of long sums in bfloat16, their comparison
    says nothing, and a note in the result says so.

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, 128)", out=ct.Out("N"))
    ... @ct.kernel
    ... def root(x: ct.Array["N"], y):
    ...     ct.store(y, ct.bid(0), ct.sqrt(ct.load(x, ct.bid(0), 128)))
    >>> x = np.linspace(0, 1, 300, dtype=np.float32)
    >>> found = cutile.testing.assert_matches(root, lambda x: np.sqrt(x.astype(np.float64)), (x,))
    >>> 0 < found.error < found.bound < 1e-6
    True
    """
    options.check("assert_matches", {"reference": reference, "args": args, "named": named}, _KINDS)
    args, named = tuple(args), dict(named or {})
    call = _Call(f, args, named)
    returned = result_of(reference, call.name, args, named)
    want = referred(returned, call.returned)
    if len(want) != len(call.returned):
        raise ValueError(f"{f.__name__} has {len(call.returned)} outputs, and the reference returned {len(want)}; "
                         f"return {in_order(call.returned)}")
    sanitized = bounds is None if sanitize is None else sanitize
    if sanitized:
        call.sanitize()
    call.must_store_all()
    allowed, lost = call.bounds() if bounds is None else (list(_several(bounds)), None)
    got = [on_host(a) for a in _several(f(*copies(args), **copies(named)))]
    if bounds is not None:
        _check_bounds(call.returned, got, allowed)
    if len(got) != len(allowed):
        raise ValueError(f"{f.__name__} has {len(got)} outputs, and bounds= has {len(allowed)}; give a number, or a "
                         f"tuple in the order ({', '.join(call.returned)})")
    reach = [_reach(name, g, w, b, bounds is not None) for name, g, w, b in zip(call.returned, got, want, allowed)]
    notes = (*_notes(want, sanitized), *filter(None, reach))
    found = []
    for i, (name, g, w, b) in enumerate(zip(call.returned, got, want, allowed)):
        what = f"output {i} of {f.__name__}" if len(got) > 1 else f"the output of {f.__name__}"
        found.append(_compared(what, name, g, w, b, lost, notes))
    return Matched(tuple(found), notes)


class _Call:
    """A call of a function: the launch that it makes, with outputs of its own and copies of the caller's arrays."""

    def __init__(self, f: Any, args: tuple, named: dict[str, Any]):
        self.function, values = resolved(f, copies(args), copies(named))
        self.name = f.__name__
        self.grid, self.kernel, self.arguments = self.function.launch_arguments(values)
        self.returned = [n for n in self.kernel.names if n in self.function.returned]
        if not self.returned:
            raise refusal(ValueError(f"{self.name} returns nothing that could be compared: declare outputs by "
                                     f"ct.jit(..., out=...), or say by inout() which arguments it changes"))

    def on_host(self) -> tuple:
        return tuple(map(copied_to_host, self.arguments))

    def sanitize(self) -> None:
        """Run it in the interpreter under the sanitizer's checks; TileSanitizerError if they report something."""
        with settings.sanitize(CHECKS):
            launch(None, self.grid, self.kernel, self.on_host())

    def must_store_all(self) -> None:
        """AssertionError for an output without fill of which some element is stored by no block."""
        flat = [x for a in self.arguments for _, x in libraries.arrays_in(a, "")]
        if 0 in self.grid or any(map(libraries.is_jax, flat)):
            return
        stream = next((s for x in flat if (s := libraries.current_stream(x)) is not None), None)
        outcome = outcome_of(self.kernel, self.grid, self.arguments, stream, Outputs.of(self.function))
        for name, where in outcome.missing.items():
            raise AssertionError(f"{self.name}: no block stores {elements(name, where)}. {_advice(name, where)}")

    def bounds(self) -> tuple[list[np.ndarray], Lost | None]:
        """How far the elements of each output may be from real numbers, and where that became unknown."""
        from cutile.bounds import bounds

        found = bounds(self.kernel, self.grid, self.on_host(), rounding=True)
        if found.inconclusive is not None:
            raise ValueError(f"no bound is known for {self.name}: {found.inconclusive}; give bounds=")
        by_name = {a.name: a for a in found.arrays}
        return [by_name[n].bound for n in self.returned], found.lost


def _check_bounds(names: Sequence[str], got: Sequence[np.ndarray], bounds: Sequence[Any]) -> None:
    """TypeError for bounds that are no numbers, ValueError for negative ones and for another shape."""
    for name, a, b in zip(names, got, bounds):
        given = np.asarray(b)
        if given.dtype.kind not in "iuf":
            raise refusal(TypeError(f"bounds= of `{name}` is a number or an array of numbers, not {b!r:.100}"))
        if (given < 0).any():
            raise refusal(ValueError(f"bounds= of `{name}` says how far elements may be away, so it is not negative"))
        if given.ndim > a.ndim or any(n not in (1, m) for n, m in zip(given.shape[::-1], a.shape[::-1])):
            raise refusal(ValueError(f"bounds= of `{name}` has the shape {given.shape}, and `{name}` {a.shape}; give a "
                                     f"number, or an array of that shape"))


def _advice(name: str, where: np.ndarray) -> str:
    if where.all():
        return f"Does the kernel call ct.store with `{name}`? An assignment such as `{name} = t` stores nothing"
    return ("Is the grid too small, or does the output have another shape? If these elements are not meant to be "
            "stored, declare the output with fill=")


def _several(x: Any) -> Sequence[Any]:
    return x if isinstance(x, tuple | list) else (x,)


def _notes(want: Sequence[np.ndarray], sanitized: bool) -> tuple[str, ...]:
    narrow = sorted({str(w.dtype) for w in want if _epsilon(w.dtype) > np.finfo(np.float64).eps})
    return (*(f"the reference is computed in {dtype}, whose own rounding is allowed too; compute it in float64"
              for dtype in narrow),
            *(["the launch did not run under the checks of ct.sanitize, since bounds were given; sanitize=True does"]
              if not sanitized else []))


def _reach(name: str, got: np.ndarray, want: np.ndarray, bound: Any, given: bool) -> str | None:
    """A note for an output of which most elements could be anything: more is allowed there than they are themselves."""
    if got.shape != want.shape or not got.size:
        return None
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(got.astype(np.float64)), np.abs(want.astype(np.float64)))
        large = np.isfinite(bound) & (np.asarray(bound, np.float64) > size) & (size > 0)
    if 2 * np.count_nonzero(large) <= got.size:
        return None
    text = (f"what is allowed of `{name}` is larger than the values themselves in {100 * large.mean():.0f}% of its "
            f"elements, which could be anything")
    return text if given else (f"{text}; sums in bfloat16 or float16 explain that, or differences of numbers that are "
                               f"nearly equal. Add in float32")


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


def _compared(what: str, name: str, got: np.ndarray, want: np.ndarray, bound: Any, lost: Lost | None,
              notes: Sequence[str]) -> Match:
    """How near an output is; AssertionError if it is too far away."""
    if got.shape != want.shape:
        raise AssertionError(f"{what} has the shape {got.shape}, the reference {want.shape}")
    x, y = got.astype(np.float64), want.astype(np.float64)
    given = np.broadcast_to(np.asarray(bound, np.float64), x.shape)
    _known(what, given, lost)
    with np.errstate(all="ignore"):
        allowed = given + np.abs(y) * _epsilon(want.dtype)  # of the reference itself
        equal = (x == y) | (np.isnan(x) & np.isnan(y))
        error = np.where(equal, 0.0, np.abs(x - y))
        right = equal | (error <= allowed)
        share = np.where(equal, 0.0, error / allowed)
    wrong = np.argwhere(~right)
    if len(wrong):
        lines = [f"  {list(map(int, i))}: {got[tuple(i)]} instead of {want[tuple(i)]}, allowed is "
                 f"{given[tuple(i)]:.3g}" for i in wrong[:SHOWN]]
        lines += [f"  note: {n}" for n in notes]
        raise AssertionError("\n".join([f"{len(wrong)} of {x.size} elements of {what} are wrong", *lines]))
    at = np.unravel_index(int(error.argmax()), x.shape) if x.size else None
    return Match(name, *((0.0, 0.0, 0.0) if at is None else (float(error[at]), float(allowed[at]), float(share.max()))))


def _epsilon(dtype: np.dtype) -> float:
    """How far a rounded number of a dtype may be from the number that was rounded, as a share of it; 0 of integers."""
    import ml_dtypes

    return 0.0 if dtype.kind in "biu" else float(ml_dtypes.finfo(dtype).eps)
