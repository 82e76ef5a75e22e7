"""ct.launch: check what the host passes, find or make the plan, run it."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from operator import index
from typing import Any, SupportsIndex

from cutile import settings
from cutile._support import float_mode
from cutile._support.float_mode import LESS, MORE, TINY
from cutile._support.opaque import opaque
from cutile.errors import is_for_users, refusal
from cutile.ir.terms import to_builtin
from cutile.runtime import launch_cache, launch_plan
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import for_users, hidden

GRID_LIMIT = 2**24 - 1  # blocks along one axis [LAUNCH-3]

_MISSING: Any = object()  # the default of kernel_args, for a better error message
_WHY = ("ct.launch() runs a kernel on the memory of its arguments, and traced tensors have none; import cutile.torch, "
        "and the launch becomes an operator of the graph")

# Set by cutile.torch: puts a launch on traced tensors into their graph, and says whether it has done so.
into_graph: Callable[..., bool] | None = None

__tracebackhide__ = hidden


@opaque(_WHY)
def launch(stream: Any, grid: tuple[SupportsIndex, ...], kernel: Kernel, kernel_args: tuple[Any, ...] = _MISSING, /, *,
           programmatic_dependent_launch: bool = False) -> None:
    """Run a kernel over a grid of blocks.

    Parameters
    ----------
    stream : stream, int or None
        Where a launch on GPU arrays is queued: a stream of PyTorch, CuPy, Numba or cuda.core, an int handle, or None,
        the default stream of their GPU. Launches on CPU arrays need none, and have run when this returns.
    grid : tuple of int
        The number of blocks along up to three axes. No block runs if one of them is 0.
    kernel : kernel
        A function decorated with `ct.kernel`.
    kernel_args : tuple
        One argument for each parameter: arrays, numbers, and tuples and lists of them. The arrays decide where the
        kernel runs. The kernel writes to them in place.
    programmatic_dependent_launch : bool, default False
        On a GPU, let the kernel start before the one that was queued before it has ended.

    Raises
    ------
    TypeError, ValueError, OverflowError
        Wrong arguments.
    RuntimeError
        The kernel stores to a leaf tensor that requires grad, while grad mode is on.
    TileError
        The kernel cannot be compiled, or fails while it runs.

    Notes
    -----
    [LAUNCH-1…6], [ARG-1…9]

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, out):
    ...     i = ct.bid(0)
    ...     ct.store(out, i, 2 * ct.load(x, i, 4))
    >>> x, out = np.arange(8), np.zeros(8, int)
    >>> ct.launch(None, (2,), double, (x, out))
    >>> print(out)
    [ 0  2  4  6  8 10 12 14]
    """
    if (type(kernel) is Kernel and (cache := kernel.plans.launch_cache) is not None
            and programmatic_dependent_launch is False):
        try:
            outcome = cache.launch(stream, grid, kernel_args)
        except Exception as e:
            error = failed(e)
        else:
            if outcome is None:
                return
            if outcome is not NotImplemented:
                raise launch_cache.refused(outcome, grid)
            error = _run(stream, grid, kernel, kernel_args, programmatic_dependent_launch)
    else:
        error = _run(stream, grid, kernel, kernel_args, programmatic_dependent_launch)
    if error is not None:
        raise error from error.__cause__


@opaque(_WHY)
def _run(stream: Any, grid: Any, kernel: Any, kernel_args: Any, dependent: Any) -> Exception | None:
    """A launch that C code does not run; returns the error to raise, for users, if there is one."""
    if kernel_args is _MISSING:
        return TypeError(_argument_missing(stream, grid))
    # In the usual mode, this test costs no call.
    if (TINY * MORE == 0.0 or TINY * LESS != 0.0) and not float_mode.usual():
        return float_mode.run(_run, stream, grid, kernel, kernel_args, dependent)
    if not isinstance(kernel, Kernel):
        return TypeError(no_kernel(kernel, "third argument of launch()"))
    if into_graph is not None and into_graph(stream, grid, kernel, kernel_args, dependent):
        return None
    if not kernel.plans:  # skipped once a plan exists
        _warn_of_misspelt_settings()
    try:
        dims = padded_grid(grid)
        if type(kernel_args) is not tuple:
            if not isinstance(kernel_args, tuple):
                return TypeError(f"kernel_args must be a tuple, got {type(kernel_args).__name__}"
                                 f"{_one_tuple(kernel_args)}")
            kernel_args = tuple(tuple.__iter__(kernel_args))
        if not isinstance(dependent, bool):
            return TypeError(f"programmatic_dependent_launch must be a bool, got {dependent!r}")
        plan = launch_plan.run(kernel, dims, kernel_args, stream, dependent)
    except Exception as e:
        return _to_raise(e)
    if plan.repeatable and (plan.in_c or plan.ordinal is not None):
        try:
            launch_cache.insert(kernel, plan, kernel_args, GRID_LIMIT)
        except settings.SettingError as e:
            return for_users(e)
    return None


def failed(e: Exception) -> Exception:
    """The error to raise, for users, for one of a launch in CPU memory that C code ran."""
    return _to_raise(launch_cache.failed(e))


def _to_raise(e: Exception) -> Exception:
    """The error for users, if it is one for them; any other is raised here, with the frames that it came from."""
    if settings.get("DEBUG") or not is_for_users(e):
        raise e
    return for_users(e)


def _as_documented(f: Any) -> inspect.Signature:
    """The signature of `launch` without the default that only the error message needs."""
    given = inspect.signature(f)
    return given.replace(parameters=[p.replace(default=p.empty) if p.default is _MISSING else p
                                     for p in given.parameters.values()])


launch.__signature__ = _as_documented(launch)  # type: ignore[attr-defined]


@functools.cache
def _warn_of_misspelt_settings() -> None:
    for name in settings.unknown():
        import difflib  # loaded when it is needed

        close = difflib.get_close_matches(name, [s.variable for s in settings.table().values()], n=1)
        warnings.warn(f"{name} is no setting of cutile{f'; did you mean {close[0]}?' if close else ''}", stacklevel=4)


def _argument_missing(first: Any, second: Any) -> str:
    """The error message of a launch with three arguments."""
    if isinstance(second, Kernel):
        return (f"launch() takes the stream first, and it is missing: write ct.launch(None, grid, {second.__name__}, "
                f"arguments), or a stream in the place of None for arrays in GPU memory")
    return "launch() takes four arguments, stream, grid, kernel and kernel_args, and the last one is missing"


def _one_tuple(value: Any) -> str:
    return "" if isinstance(value, list) else "; a tuple of one argument is written (x,)"


def no_kernel(obj: Any, argument: str) -> str:
    """The message for an object that is no kernel. `argument` says which argument it was, of which function."""
    if inspect.isfunction(obj):
        return f"{obj.__name__} is a plain function, not a kernel: decorate it with @ct.kernel"
    instead = getattr(obj, "_instead_of_launch", None)  # of objects that functions/ makes of kernels
    return f"the {argument} must be a kernel, got {type(obj).__name__}" if instead is None else (
        f"the {argument} must be a kernel: {instead}")


def padded_grid(grid: Any) -> tuple[int, int, int]:
    """The grid, padded with ones [LAUNCH-3]."""
    if type(grid) is tuple and len(grid) == 1 and type(grid[0]) is int and 0 <= grid[0] <= GRID_LIMIT:
        return (grid[0], 1, 1)  # the usual case
    if not isinstance(grid, tuple):
        hint = f"; write ({grid},)" if isinstance(grid, int) else ""
        if callable(grid):
            hint = ("; compute the tuple before the launch, such as (ct.cdiv(n, TILE),). Functions by ct.jit compute "
                    "it from the sizes of their arguments")
        raise refusal(TypeError(f"grid must be a tuple of at most three ints, got {type(grid).__name__}{hint}"))
    grid = tuple(map(to_builtin, tuple.__iter__(grid)))
    if len(grid) > 3:
        raise refusal(ValueError(f"grid must have at most three dimensions, got {len(grid)}: {grid}"))
    blocks = [_blocks(n, grid) for n in grid]
    for n in blocks:
        if n < 0:
            raise refusal(OverflowError(f"grid entries must not be negative, got {n} in {grid}"))
        if n > GRID_LIMIT:
            raise refusal(ValueError(f"grid entries must be at most {GRID_LIMIT}, got {n} in {grid}"))
    x, y, z = (*blocks, 1, 1, 1)[:3]
    return x, y, z


def _blocks(n: Any, grid: tuple) -> int:
    if not isinstance(n, bool):
        try:
            return index(n)
        except TypeError:  # an array of several numbers, for example
            pass
    raise refusal(TypeError(f"grid entries must be ints, got {n!r} in {grid}; ct.cdiv(n, tile) rounds up in integers"))
