"""`ct.Out`: an output of a function, declared by shape and dtype in terms of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import INFO, DType, from_foreign, info, int_range
from cutile.front.sizes import instead_of_dtype
from cutile.functions import rules
from cutile.functions.rules import Rule

LAST = "outputs without a name are the last parameters that can be arrays"


class Out:
    """An output that a function made by `ct.jit` allocates and returns.

    Parameters
    ----------
    shape : str, tuple or function, optional
        Text such as "M N", a tuple of ints and texts, or a function of named sizes and arguments.
    dtype : dtype, str or function, optional
        A dtype, the name of a parameter whose dtype it is, or a function of named sizes and arguments. None: the dtype
        of the first array; that of x for an output named grad_x beside an argument x.
    fill : number or None, default None
        What all elements are before the launch, also those of an array that a call is given by out=. None leaves such
        an array as it is, and an output that the call allocates uninitialised; in CPU memory its elements are then NaN
        or the lowest integer, so that elements that no block stores can be seen.
    like : str, optional
        The name of a parameter: the output has its shape, and without `dtype` its dtype. It replaces `shape`.
    device : str or device, optional
        Where it is, for functions without arrays: "cpu", "cuda", "cuda:1", or a device of PyTorch or CuPy.
    name : str, optional
        The parameter of the kernel. Outputs without a name are the last parameters that are neither constants,
        annotated as numbers (`float`, `ct.int32`), nor given a default. A single one is the parameter `out`, if there
        is one.

    Attributes
    ----------
    shape, dtype, fill, like, device, name
        As they were given.

    Raises
    ------
    TypeError
        Neither `shape` nor `like`, or both; or a value of another kind.

    Notes
    -----
    [JIT-7]

    Examples
    --------
    >>> @ct.jit(grid="M", out=(ct.Out("M", ct.float64), ct.Out(like="x")))
    ... @ct.kernel
    ... def halves(x: ct.Array["M"], total, half):
    ...     t = ct.load(x, ct.bid(0), 1)
    ...     ct.store(half, ct.bid(0), t / 2)
    ...     ct.store(total, ct.bid(0), t.astype(ct.float64))
    >>> total, half = halves(np.float32([1, 2]))
    >>> print(total.dtype, half)
    float64 [0.5 1. ]
    """

    __slots__ = ("shape", "dtype", "fill", "like", "device", "name")

    def __init__(self, shape: Any = None, dtype: Any = None, fill: bool | int | float | None = None,
                 like: str | None = None, device: Any = None, name: str | None = None):
        if (shape is None) == (like is None):
            raise TypeError("an output takes either a shape or like=, the name of a parameter that has its shape")
        if fill is not None and not isinstance(fill, bool | int | float):
            raise TypeError(f"fill is a number or None, not {fill!r:.100}")
        if not (dtype is None or isinstance(dtype, str) or from_foreign(dtype) is not None or (
                callable(dtype) and not isinstance(dtype, type))):
            raise TypeError(f"the dtype of an output is a dtype, such as ct.float32, the name of a parameter or a "
                            f"function, not {dtype!r:.100}{instead_of_dtype(dtype)}")
        for what, value in (("like", like), ("name", name)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{what} is the name of a parameter, not {value!r:.100}")
        check_fill(fill, from_foreign(dtype), "an output" if name is None else f"output `{name}`")
        self.shape, self.dtype, self.fill, self.like, self.device, self.name = shape, dtype, fill, like, device, name

    def __repr__(self) -> str:
        given = [f"{n}={v!r}" for n in self.__slots__ if (v := getattr(self, n)) is not None]
        return f"Out({', '.join(given)})"


NAMED = {d.name: d for d in INFO}


def check_fill(fill: Any, dtype: DType | None, what: str) -> None:
    """ValueError for a fill that a dtype does not have. `what`: the output, in words."""
    if fill is None or dtype is None or info(dtype).floating:
        return
    lo, hi = (0, 1) if info(dtype).kind == "b" else int_range(dtype)
    if fill != fill or fill in (float("inf"), -float("inf")) or int(fill) != fill or not lo <= fill <= hi:
        raise ValueError(f"the fill of {what} is {fill!r}, which {dtype.name} does not have")


def _by_name(text: str) -> DType | None:
    """The dtype that text means to NumPy."""
    try:
        return NAMED.get(text) or from_foreign(np.dtype(text))
    except TypeError:
        return None


def _since(out: Out) -> str:
    return "" if out.name is not None else f"; {LAST}"


@structure(frozen=True, eq=False)
class Output:
    """A declared output of a certain function: its parameter, and the rules of its shape and dtype.

    shape, dtype   None where they are those of the parameter `like`, or of the first array
    dtype_like     the parameter that has its dtype
    """

    name: str
    position: int
    out: Out
    shape: Rule | None
    dtype: Rule | None
    dtype_like: str | None

    def described(self) -> str:
        """Its sizes, in words."""
        given = self.out.shape
        if given is None:
            return f"like {self.out.like}"
        return given if isinstance(given, str) else " ".join(map(str, given)) if isinstance(
            given, tuple | list) else "by a function"

    def dtype_in_words(self) -> str | None:
        """Its dtype; None where that follows from an array or an annotation."""
        found = from_foreign(self.out.dtype)
        return None if found is None else found.name


def declared(out: Out, name: str, position: int, inputs: Collection[str], known: Collection[str],
             later: Mapping[str, str], arrays: Collection[str]) -> Output:
    """An output with its rules. TypeError for names that the function does not have.

    inputs   the parameters that callers pass;  known: all names that rules may read;  later: as in rules
    arrays   those of the parameters that may be arrays
    """
    what = f"output `{name}`"
    for parameter in (out.like, out.dtype if isinstance(out.dtype, str) else None):
        if parameter is not None and parameter not in inputs:
            if parameter == out.dtype and (dtype := _by_name(parameter)) is not None:
                raise TypeError(f"{what}: write ct.{dtype.name}, without quotes, for a dtype; text is the name of a "
                                f"parameter whose dtype it is")
            if parameter == name:
                raise TypeError(f"{what} cannot be like itself; if `{name}` is an argument that the kernel writes, "
                                f"declare no output, and say inout(\"{name}\"){_since(out)}")
            raise TypeError(f"{what}: {parameter} is no input{rules.nearest(parameter, inputs)}; inputs are "
                            f"{', '.join(inputs) or 'none'}{_since(out)}")
    shape = None if out.shape is None else rules.of_sizes(f"the shape of {what}", out.shape, known, later)
    found = from_foreign(out.dtype)
    dtype = None
    if found is not None:
        dtype = rules.constant(f"the dtype of {what}", found)
    elif callable(out.dtype):
        dtype = rules.of_function(f"the dtype of {what}", out.dtype, known, later)
    like = out.dtype if isinstance(out.dtype, str) else out.like if dtype is None else None
    if dtype is None and like is None and name.startswith("grad_") and name.removeprefix("grad_") in arrays:
        like = name.removeprefix("grad_")  # a gradient has the dtype of what it belongs to
    return Output(name, position, out, shape, dtype, like)
