"""`ct.jit`: makes a function of a kernel, or of a function that returns kernels."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from cutile._support.opaque import opaque
from cutile.functions import options
from cutile.functions.out import Out
from cutile.functions.rules import nearest
from cutile.functions.tile_function import TileFunction
from cutile.runtime.annotations import specs_of
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import declares

KEYWORDS = ("grid", "out", "hints", "defaults", "name", "target", "checks")
KINDS = {"hints": options.BY_NAME, "defaults": options.BY_NAME, "name": options.TEXT, "checks": options.SWITCH,
         "target": ((lambda x: isinstance(x, str)), 'a name such as "sm_90"')}


@opaque("ct.jit makes a function of a kernel's source text; make it outside of what is compiled")
@declares
def jit(function: Any = None, /, **given: Any) -> Any:
    """Make an ordinary function of a kernel, as a decorator or by a call.

    The function takes arrays and numbers, allocates its outputs, computes the grid, launches, and returns the outputs.

    Parameters
    ----------
    function : kernel or function
        A kernel; or a function that returns a kernel for its arguments, a factory: it is called once for each
        combination of arguments, and what it returns becomes a function by the same keywords.
    **given
        Keywords. `grid` must be given; the others may.

        grid : str, tuple or function
            Text such as "cdiv(M, 128) N", a tuple of ints and texts, or a function of named sizes and numbers.
        out : Out or tuple of them
            What is allocated and returned.
        hints : dict
            Options of the kernel, as for `replace_hints`.
        defaults : dict
            For parameters that callers may leave out: a value, or a function of named sizes and numbers. Those that the
            kernel declares count too; a constant that has the name of a size is that size.
        name : str
            The name of the function.
        target : str
            What `compile` compiles for, for example "sm_90".
        checks : bool
            False: sizes that have one name are not compared.

    Returns
    -------
    function
        It has the attributes `kernel`, `outputs` and `parameters`, and the methods `inout`, `compile`, `compile_all`
        and `profile`. Calls take the keywords `out` and `stream` too.

    Raises
    ------
    TypeError
        A keyword that is none of these, or what is neither a kernel nor a function.

    Notes
    -----
    [JIT-1…22] docs/functions.md explains named sizes, outputs and defaults.

    Examples
    --------
    >>> @ct.jit(grid="M", out=ct.Out("M N"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
    ... @ct.kernel
    ... def normalised(x: ct.Array["M N"], y, TILE: ct.Constant[int]):
    ...     t = ct.load(x, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
    ...     ct.store(y, (ct.bid(0), 0), t / ct.sum(t))
    >>> print(normalised(np.float32([[1, 1, 2], [2, 2, 4]])))
    [[0.25 0.25 0.5 ]
     [0.25 0.25 0.5 ]]
    """
    for keyword in given:
        if keyword not in KEYWORDS:
            raise TypeError(f"jit() has no keyword {keyword}{nearest(keyword, KEYWORDS)}; it has {', '.join(KEYWORDS)}")
    options.check("ct.jit", {k: v for k, v in given.items() if k in KINDS}, KINDS)
    return declares(functools.partial(_made, given=given)) if function is None else _made(function, given)


def _made(function: Any, given: dict[str, Any]) -> Any:
    if isinstance(function, Kernel):
        return TileFunction(function, given)
    from cutile.functions.autotune import Untuned  # loaded when it is needed, here and below
    from cutile.functions.tuned import Tuned

    if isinstance(function, Untuned):
        return Tuned(TileFunction(function.kernel, given), function.settings)
    if inspect.isfunction(function):
        from cutile.functions.factory import Factory

        if any(s.array or s.constant or s.scalar for s in specs_of(function).values()):
            raise TypeError(f"{function.__name__} has parameters as a kernel has them, and is none: write @ct.kernel "
                            f"between @ct.jit(...) and it")
        return Factory(function, given)
    if isinstance(function, TileFunction):
        raise TypeError(f"{function.__name__} is a function made by ct.jit already")
    if isinstance(function, Out):
        raise TypeError("ct.jit takes outputs by name: ct.jit(out=ct.Out(...), grid=...)")
    if isinstance(function, str | tuple | int):
        raise TypeError(f"ct.jit takes what it is told by name: ct.jit(grid={function!r:.100}, out=...)")
    raise TypeError(f"ct.jit takes a kernel, or a function that returns kernels, not {function!r:.100}")
