"""How far the results of a kernel may lie apart in two implementations that both obey the language.

    from cutile.bounds import bounds

    b = bounds(kernel, grid, args)
    b.arrays[i].value, b.arrays[i].bound     # of the i-th array among the arguments

The kernel's typed program runs on pairs (value, error). The value is what the interpreter gives. The error is how far
an implementation may be from it. The error is 0 where the language fixes every bit. Ops that leave something open
(transcendentals, the order of sums and matrix products: docs/freedoms.md) add to the error, and later ops pass it on.
The error is inf where nothing can be said, as after a comparison whose sides may change places.

In: a kernel, a grid, arguments. Out: a value and a bound for each array. This room may not know GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutile import settings
from cutile._support.float_mode import in_usual_mode
from cutile.bounds.walk import Inconclusive, Lost, Walker
from cutile.dtypes import float64, info
from cutile.errors import refusal
from cutile.interp.exec.block_set import Launch, Single
from cutile.interp.memory import array_view
from cutile.interp.schedule import properties_of
from cutile.ir.nodes import Kernel as Program
from cutile.ir.nodes import Value
from cutile.ops import _numeric
from cutile.runtime.arguments import host_values
from cutile.runtime.float4_packing import unpacked
from cutile.runtime.kernel import Kernel
from cutile.types import ArrayType, ListType

__all__ = ["Bounded", "Bounds", "bounds", "of_program"]


@dataclass(frozen=True)
class Bounded:
    """An array argument after the run.

    Parameters
    ----------
    name : str
        The parameter; `list[i]` in a list.
    value : ndarray
        The array as the interpreter leaves it.
    bound : ndarray
        How far each element may be from it, in float64; inf where nothing is known.

    Attributes
    ----------
    name, value, bound
        As above.

    Examples
    --------
    >>> cutile.bounds.Bounded("y", np.ones(2), np.zeros(2)).name
    'y'
    """

    name: str
    value: np.ndarray
    bound: np.ndarray


@dataclass(frozen=True)
class Bounds:
    """What `bounds` found.

    Parameters
    ----------
    arrays : tuple of Bounded
        All array arguments in order; those in tuples and lists one by one.
    inconclusive : str or None, default None
        A decision that implementations may take differently (a branch, a loop, an index), if the run met one. Then
        nothing is known of any array, and every bound is inf.
    lost : Lost or None, default None
        The op that first gave a result of which nothing is known, with its `span`, `why` and `help`. Elements that do
        not depend on it have bounds.

    Attributes
    ----------
    arrays, inconclusive, lost
        As above.

    Examples
    --------
    >>> cutile.bounds.Bounds(()).inconclusive is None
    True
    """

    arrays: tuple[Bounded, ...]
    inconclusive: str | None = None
    lost: Lost | None = None


def bounds(kernel: Any, grid: Sequence[int] | None, args: tuple, *, contraction: bool = False,
           rounding: bool = False) -> Bounds:
    """Run a kernel on copies of its arguments, and say how far results of implementations may differ.

    Parameters
    ----------
    kernel : kernel or function
        As for `ct.launch`, or a function made by `ct.jit`.
    grid : tuple of int or None
        As for `ct.launch`. The blocks run one after another. None, of a function: as its call would have it.
    args : tuple
        As for `ct.launch`, with arrays in CPU memory. Overlapping arrays are treated as separate. Without a grid, the
        arguments of a call of the function, by position; its outputs are made.
    contraction : bool, default False
        Whether implementations may also choose to fuse a multiply and an add, or not.
    rounding : bool, default False
        Whether the bound is the distance from the result in real numbers, to which each rounding adds.

    Returns
    -------
    Bounds
        A value and a bound for each element of each array.

    Raises
    ------
    TypeError, ValueError, OverflowError, TileError
        What `ct.launch` raises.

    Notes
    -----
    A bound is 0 where the language fixes every bit. docs/freedoms.md lists what it leaves open.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, exact, near):
    ...     t = ct.load(x, 0, 2)
    ...     ct.store(exact, 0, t * 3)
    ...     ct.store(near, 0, ct.exp(t))
    >>> x = np.float32([1, 2])
    >>> found = cutile.bounds.bounds(kernel, (1,), (x, np.zeros_like(x), np.zeros_like(x)))
    >>> [bool(a.bound.any()) for a in found.arrays]
    [False, False, True]
    >>> @ct.jit(grid=(1,), out=ct.Out("N"))
    ... @ct.kernel
    ... def root(x: ct.Array["N"], y):
    ...     ct.store(y, 0, ct.sqrt(ct.load(x, 0, 2)))
    >>> [a.name for a in cutile.bounds.bounds(root, None, (x,), rounding=True).arrays]
    ['x', 'y']
    """
    kernel, grid, args = _launch_of(kernel, grid, args)
    arguments = kernel.classify(args)
    values = unpacked(host_values(arguments))
    return of_program(kernel.program(arguments).kernel, grid, values, contraction=contraction, rounding=rounding)


def _launch_of(kernel: Any, grid: Sequence[int] | None, args: tuple) -> tuple[Kernel, Sequence[int], tuple]:
    """The launch that is meant: that of a function has its kernel, and without a grid also its grid and outputs."""
    if isinstance(kernel, Kernel):
        if grid is None:
            raise refusal(TypeError("bounds() of a kernel needs the grid of a launch, such as (8,)"))
        return kernel, grid, args
    if not hasattr(kernel, "launch_arguments"):
        raise refusal(TypeError(f"bounds() takes a kernel or a function made by ct.jit, not {kernel!r:.100}"))
    if grid is not None:
        return kernel.kernel, grid, args
    found, launched, arguments = kernel.launch_arguments(dict(kernel.__signature__.bind(*args).arguments))
    return launched, found, arguments


@in_usual_mode
def of_program(program: Program, grid: Sequence[int], values: Sequence[Any], *, contraction: bool = False,
               rounding: bool = False) -> Bounds:
    """Find bounds for a typed program. Tools that hold no kernel use it; `bounds` is for kernels.

    Parameters
    ----------
    program : Program
        The typed program of a kernel.
    grid : tuple of int
        As for `bounds`.
    values : sequence
        NumPy arrays, numbers and lists of arrays, one for each parameter of the program.
    contraction : bool, default False
        As for `bounds`.
    rounding : bool, default False
        As for `bounds`.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     ct.store(x, 0, ct.load(x, 0, 2) * 3)
    >>> x = np.float32([1, 2])
    >>> program = kernel.program(kernel.classify((x,))).kernel
    >>> cutile.bounds.of_program(program, (1,), [x]).arrays[0].value
    array([3., 6.], dtype=float32)
    """
    shadows: list[tuple[str, array_view.ArrayView, np.ndarray]] = []
    pairs = [_pair(p, name, value, shadows)
             for p, name, value in zip(program.params, program.param_names, values, strict=True)]
    why, lost = _run(program, (*grid, 1, 1)[:3], pairs, contraction, rounding)
    return Bounds(tuple(Bounded(name, view.buffer.array, np.full(e.shape, np.inf) if why else e)
                        for name, view, e in shadows), why, lost)


def _pair(p: Value, name: str, leaf: Any, shadows: list) -> tuple:
    if isinstance(p.type, ListType):
        from cutile.interp.memory.per_block_array import ArrayList

        views = [_array(p.type.element, f"{name}[{i}]", a, shadows) for i, a in enumerate(leaf)]
        return ArrayList([v for v, _ in views]), ArrayList([e for _, e in views])
    if isinstance(p.type, ArrayType):
        return _array(p.type, name, leaf, shadows)
    if isinstance(leaf, np.ndarray) and leaf.shape == p.type.shape:
        return leaf, None
    number = leaf.item() if isinstance(leaf, np.generic) else leaf
    return np.asarray(_numeric.encode(number, p.type.dtype), info(p.type.dtype).carrier), None


def _array(t: ArrayType, name: str, a: np.ndarray, shadows: list) -> tuple[array_view.ArrayView, array_view.ArrayView]:
    """A copy of an array, and an array of the same sizes and strides for the errors of its elements."""
    value, error = _like(np.asarray(a), np.asarray(a).dtype), _like(np.asarray(a), np.dtype(np.float64))
    value[...], error[...] = a, 0
    view = array_view.wrap(value, t.dtype, t.index_dtype, writable=True, name=name)
    shadows.append((name, view, error))
    return view, array_view.wrap(error, float64, t.index_dtype, writable=True, name=name)


def _like(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory with the strides of `a`, counted in elements."""
    steps = [s // a.itemsize for s in a.strides]
    low = sum(s * (n - 1) for s, n in zip(steps, a.shape, strict=True) if s < 0 < n)
    high = sum(s * (n - 1) for s, n in zip(steps, a.shape, strict=True) if s > 0 < n)
    size = dtype.itemsize
    return np.ndarray(a.shape, dtype, bytearray((high - low + 1) * size), -low * size, [s * size for s in steps])


def _run(program: Program, grid: tuple[int, ...], pairs: list, contraction: bool,
         rounding: bool) -> tuple[str | None, Lost | None]:
    """Run all blocks. Returns why nothing can be said, if there is a reason, and where an error became unknown."""
    if (waiting := properties_of(program).waiting) is not None:
        return f"{waiting}, and which comes first is free", None
    lost = None
    launch = Launch(grid, settings.get("STEP_LIMIT"))
    try:
        with np.errstate(all="ignore"), settings.steady():
            for block in np.ndindex(*grid):
                walker = Walker(Single(launch, block), contraction, rounding)
                walker.env.update(zip(program.params, pairs, strict=True))
                walker.region(program.body)
                lost = lost or walker.lost
    except Inconclusive as e:
        return str(e), lost
    return None, lost
