"""`ct.ArraySpec`: an array described, where a signature is made from sample arguments. No memory is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from operator import index
from typing import Any

from cutile._support.strides import row_major
from cutile.compilation.fields import MAX_RANK, flag
from cutile.dtypes import INFO, DType, bool_, float32, from_foreign, int32, int64
from cutile.front.sizes import instead_of_dtype, is_name, split
from cutile.runtime.annotations import PLAIN, ParameterSpec
from cutile.runtime.arrays import is_traced

# Open sizes are stood in for by odd numbers above 1, times what divides them: so what is derived holds for all sizes.
_STAND_INS = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
SCALARS = {bool_: True, int32: 1, int64: 1, float32: 1.0}  # a run-time number of each dtype that numbers may have


class ArraySpec:
    """An array that need not exist. `compile` and `export_kernel` take it in the place of one.

    Parameters
    ----------
    shape : str, int or tuple
        The sizes, as text or as a tuple: ints, and for sizes that are open names or "_". "M 128" has one of each.
    dtype : dtype
        The dtype of the elements.
    strides : str or tuple, optional
        The strides, counted in elements: ints and names. None: row-major.
    divisible : int or dict, default 1
        What all open sizes are divisible by, or a dictionary of that by name.
    aligned : bool, default True
        Whether it begins at a multiple of 16 bytes, as all that libraries allocate does.

    Attributes
    ----------
    shape, strides, divisible, aligned
        As they were given.
    dtype : DType
        The dtype of the elements.
    open : set of int
        The axes whose size is open.

    Raises
    ------
    TypeError, ValueError
        What is given does not describe an array.

    Notes
    -----
    [CPL-1] The compiled code assumes of an open size nothing but what `divisible` says.

    Examples
    --------
    >>> spec = ct.ArraySpec("M 128", ct.float16, divisible={"M": 16})
    >>> spec
    ArraySpec('M 128', float16, divisible={'M': 16})
    >>> spec.open
    {0}
    """

    def __init__(self, shape: str | int | Sequence[int | str], dtype: Any, strides: Sequence[int | str] | None = None,
                 divisible: int | Mapping[str, int] = 1, aligned: bool = True):
        found = from_foreign(dtype)
        if found is None:
            raise TypeError(f"{dtype!r:.100} is no dtype{instead_of_dtype(dtype)}")
        self.shape, self.dtype = _items("shape", shape), found
        self.strides = None if strides is None else _items("strides", strides)
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError(f"{len(self.strides)} strides for {len(self.shape)} axes")
        if not isinstance(divisible, int | Mapping):
            raise TypeError(f"divisible is an int or a dictionary of them, not {divisible!r:.100}")
        for name, n in divisible.items() if isinstance(divisible, Mapping) else (("_", divisible),):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ValueError(f"sizes are divisible by an int of 1 or more, not by {n!r:.100}")
            if name not in (*self.shape, *(self.strides or ()), "_"):
                raise ValueError(f"divisible names {name!r:.40}, which is no open size of "
                                 f"{' '.join(map(str, self.shape))}")
        if any(isinstance(n, int) and n < 0 for n in self.shape):
            raise ValueError(f"sizes of an array are not negative, got {' '.join(map(str, self.shape))}; a name or _ "
                             f"leaves one open")
        if len(self.shape) > MAX_RANK:
            raise ValueError(f"an array has at most {MAX_RANK} axes, not {len(self.shape)}")
        self.divisible, self.aligned = divisible, flag("aligned", aligned)

    def divisor(self, name: str) -> int:
        """Give what a named size is divisible by.

        Parameters
        ----------
        name : str
            The name, or "_".

        Returns
        -------
        int
        """
        return self.divisible.get(name, 1) if isinstance(self.divisible, Mapping) else self.divisible

    @property
    def open(self) -> set[int]:
        """The axes whose size is open."""
        return {i for i, n in enumerate(self.shape) if isinstance(n, str)}

    def __repr__(self) -> str:
        more = f", divisible={self.divisible}" * (self.divisible != 1)
        return f"ArraySpec({' '.join(map(str, self.shape))!r}, {self.dtype.name}{more})"


def _items(what: str, given: Any) -> tuple[int | str, ...]:
    if isinstance(given, str):
        given = split(given)
    elif not isinstance(given, Sequence) or isinstance(given, bytes | bytearray):
        given = (given,)
    found: list[int | str] = []
    for item in given:
        if isinstance(item, str) and item.isdecimal():
            item = int(item)
        if isinstance(item, str):
            if item != "_" and not is_name(item):
                raise ValueError(f"{what} of an array: {item!r} is neither a number nor a name")
            found.append(item)
        else:
            try:
                found.append(index(None if isinstance(item, bool) else item))
            except TypeError:
                raise TypeError(f"{what} of an array: {item!r:.100} is neither an int nor a name") from None
    return tuple(found)


_OF_PYTHON = {float: "ct.float32", int: "ct.int32", bool: "ct.bool_"}


class Sample:
    """An array without memory in the place of a spec: it has sizes, strides and a dtype, as in GPU memory.

    open   the axes whose size only stands for others
    """

    def __init__(self, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None = None,
                 aligned: bool = True, open: Iterable[int] = ()):
        if dtype.bitwidth < 8:
            raise TypeError(f"arrays of {dtype.name} are packed, and no signature has a name for them; write uint8 in "
                            f"the spec, and ct.unpack_from_bytes in the kernel")
        storage = INFO[dtype].storage
        self.dtype, self.shape, self.open = storage, shape, frozenset(open)
        steps = row_major(shape) if strides is None else strides
        self.__cuda_array_interface__ = {
            "data": (0 if aligned else storage.itemsize, False), "shape": shape, "version": 3, "typestr": storage.str,
            "strides": tuple(s * storage.itemsize for s in steps)}


def samples(values: Sequence[Any], specs: Sequence[ParameterSpec] = ()) -> tuple[Any, ...]:
    """Arguments in which samples stand for specs, and numbers for dtypes of parameters that are no constants.

    Sizes of one name are one number.
    """
    names: dict[str, list[int]] = {}
    _collect(values, names)
    sizes = {n: _STAND_INS[i % len(_STAND_INS)] * _common(d) for i, (n, d) in enumerate(names.items())}
    more = [*specs, *[PLAIN] * (len(values) - len(specs))]
    fresh = iter(_STAND_INS[len(sizes):] or _STAND_INS)
    return tuple(_sample(v, s, sizes, fresh) for v, s in zip(values, more))


def _collect(values: Iterable[Any], names: dict[str, list[int]]) -> None:
    for v in values:
        if isinstance(v, ArraySpec):
            for n in (*v.shape, *(v.strides or ())):
                if isinstance(n, str) and n != "_":
                    names.setdefault(n, []).append(v.divisor(n))
        elif isinstance(v, list | tuple):
            _collect(v, names)


def _common(divisors: Sequence[int]) -> int:
    """The least common multiple: what holds for one of the arrays holds for the size."""
    out = 1
    for d in divisors:
        out = out * d // gcd(out, d)
    return out


def _sample(v: Any, spec: ParameterSpec, sizes: Mapping[str, int], fresh: Any) -> Any:
    if isinstance(v, ArraySpec):
        def number(item: int | str) -> int:
            if not isinstance(item, str):
                return item
            return sizes[item] if item != "_" else next(fresh, 53) * v.divisor("_")

        shape = tuple(map(number, v.shape))
        return Sample(shape, v.dtype, None if v.strides is None else tuple(map(number, v.strides)), v.aligned, v.open)
    if isinstance(v, list | tuple):
        return type(v)([_sample(x, spec, sizes, fresh) for x in v])
    if is_traced(v) and not spec.constant and (dtype := from_foreign(v.dtype)) is not None:
        return Sample(tuple(v.shape), dtype)  # JAX's, of which a compiler needs no memory
    if isinstance(v, type) and v in (float, int, bool) and not spec.constant:
        raise TypeError(f"{v.__name__} is no dtype; write {_OF_PYTHON[v]} where "
                        f"a number is passed")
    if not spec.constant and not isinstance(v, bool | int | float):
        dtype = from_foreign(v)
        if dtype is not None and spec.array is not None:
            raise TypeError(f"a dtype stands for a number; for an array write ct.ArraySpec(shape, ct.{dtype.name})")
        if dtype in SCALARS:
            return 1 << 40 if dtype is int64 and spec.scalar and spec.scalar.dtype is int64 else SCALARS[dtype]
        if dtype is not None:
            raise TypeError(f"numbers are passed as {', '.join(d.name for d in SCALARS)}, not {dtype.name}; for an "
                            f"array write ct.ArraySpec(shape, {dtype.name})")
    return v
