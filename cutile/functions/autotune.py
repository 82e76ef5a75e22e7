"""`ct.autotune`: makes a function of configurations that finds the fastest one [TUN-1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from cutile._support.opaque import opaque
from cutile._support.structs import structure
from cutile.functions import options
from cutile.functions.factory import Factory
from cutile.functions.tile_function import TileFunction
from cutile.functions.tuned import Settings, Tuned, configurations
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import declares


@structure(frozen=True)
class Untuned:
    """A kernel that `ct.autotune` decorates below `ct.jit`."""

    kernel: Kernel
    settings: Settings

    @property
    def _instead_of_launch(self) -> str:
        """What to do with it, in words."""
        return ("@ct.autotune over a kernel needs @ct.jit(grid=..., out=...) above it; the function that this makes is "
                "called, and not launched")

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        raise TypeError(self._instead_of_launch)

    def __getitem__(self, grid: Any) -> NoReturn:
        raise TypeError(self._instead_of_launch)


KINDS = ("zeros", "normal", "integers")  # of inputs
_EXECUTOR: options.Kind = (lambda x: hasattr(x, "submit") and not isinstance(x, type)), (
    "an executor, such as concurrent.futures.ProcessPoolExecutor()")
_KINDS = {"key": options.NAMES, "reference": options.FUNCTION, "check": options.FUNCTION, "budget_s": options.SECONDS,
          "timeout_s": options.SECONDS, "save": options.PATH, "quiet": options.SWITCH, "executor": _EXECUTOR}


@opaque("a search launches kernels and takes their times; search outside of what is compiled")
@declares
def autotune(configs: Any, *, key: Sequence[str] | None = None, inputs: Any = None, reference: Callable | None = None,
             check: Callable | None = None, budget_s: float | None = None, timeout_s: float | None = 10.0,
             save: Any = None, quiet: bool = False, executor: Any = None) -> Callable[[Any], Any]:
    """Let calls of a function find its fastest configuration, once for each kind of input.

    It decorates a kernel below `ct.jit`, or what `ct.jit` made.

    Parameters
    ----------
    configs : sequence of dict, or function
        The configurations, or a function of named sizes that returns them. Their keys are constants of the kernel,
        hints, or parameters of the factory.
    key : sequence of str, optional
        Named sizes and arguments of which each value is a kind of input. None: dtypes, and all sizes rounded up to
        powers of two.
    inputs : str or function, optional
        What is measured. None: the arguments of the call. "zeros", "normal" or "integers": arrays like them. A function
        of the arguments: what it returns.
    reference : function, optional
        A function of the arguments that returns what the outputs should be, or all arrays that the kernel stores to. It
        gets copies of them, as arrays of the library that they are of. None: all configurations must store the same.
    check : function, optional
        A function of two tuples of NumPy arrays, the outputs and the expected ones, also where there is one output. It
        raises or returns False if they differ too much. Without a reference, what is expected is what another
        configuration stored. None: integers must be equal, floats may differ by what sums in another order may.
    budget_s : float, optional
        After so many seconds no further configuration is tried.
    timeout_s : float or None, default 10
        The limit of the first run of a configuration, in a process of its own. None: no limit.
    save : path, optional
        A file with results, which is read before a search, and written after it. Its folder must exist.
    quiet : bool, default False
        Print no progress and no summary.
    executor : concurrent.futures.Executor, optional
        Its processes compile and measure configurations, such as those of `ct.tune.gpu_processes()`, or of a cluster.
        They must be able to import the kernel.

    Returns
    -------
    decorator
        The function that it makes has `tune(...)`, which searches now, `best(...)`, `last`, `load(path)` and
        `export(path)`.

    Raises
    ------
    TypeError
        It decorates what is neither a kernel nor made by `ct.jit`, or `configs` are no dictionaries. Calls raise it
        where `reference` returns no arrays, and where `check` returns something else than True, False or None.
    ValueError
        There are no configurations, a key of them is unknown, or `inputs` or a name in `key` is. Calls raise it where
        no configuration runs, where they store different values and there is no reference, and where none of them
        stores some element of an output without fill.
    OSError
        Calls raise it before they search, where the folder of `save` does not exist or may not be written to.

    Notes
    -----
    [TUN-1…12] Results are remembered on disk, by the source of the kernel, what `ct.jit` was given, the configurations,
    reference and check.

    Examples
    --------
    >>> @ct.autotune([{"TILE": 64}, {"TILE": 256}], quiet=True, timeout_s=None)
    ... @ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"))
    ... @ct.kernel
    ... def scaled(x: ct.Array["N"], y, TILE: ct.Constant[int]):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), TILE))
    >>> print(scaled(np.arange(1000.0))[-1])
    1998.0
    >>> scaled.last.best["TILE"] in (64, 256)
    True
    """
    if isinstance(configs, Kernel | TileFunction | Factory | Tuned):
        raise TypeError(f"ct.autotune takes configurations: @ct.autotune([{{\"TILE\": 64}}, {{\"TILE\": 128}}]) over "
                        f"{configs.__name__}")
    options.check("ct.autotune", {"key": key, "reference": reference, "check": check, "budget_s": budget_s,
                                  "timeout_s": timeout_s, "save": save, "quiet": quiet, "executor": executor}, _KINDS)
    if not callable(configs):
        configs = configurations(configs)
        if not configs:
            raise ValueError("autotune() needs configurations, and got none")
    if inputs is not None and not callable(inputs) and not (isinstance(inputs, str) and inputs in KINDS):
        kind = ValueError if isinstance(inputs, str) else TypeError
        raise kind(f'inputs is "zeros", "normal", "integers" or a function, not {inputs!r:.40}')
    settings = Settings(configs, None if key is None else tuple(key), inputs, reference, check, budget_s, timeout_s,
                        save, quiet, executor)

    @declares
    def decorate(function: Any) -> Any:
        if isinstance(function, Kernel):
            return Untuned(function, settings)
        if isinstance(function, TileFunction | Factory):
            return Tuned(function, settings)
        if isinstance(function, Tuned):
            raise TypeError(f"{function.__name__} is tuned already; put all configurations into one ct.autotune")
        raise TypeError(f"ct.autotune decorates a kernel below ct.jit, or what ct.jit made, not {function!r:.100}")

    return decorate
