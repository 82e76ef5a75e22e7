"""lower_bound and upper_bound: where values belong in sorted data, by binary search, all values of a tile at once
[BSR-*].

A position grows bit by bit, from the highest one: it keeps a bit if the item before the new position still belongs
before the value.
"""

from typing import Any

import cutile as ct
from cutile.compute import search_tree
from cutile.compute.algorithm import Algorithm, is_wide, kernels_for, position
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import Operator, OpKind
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT, with_default
from cutile.compute.value_types import Number
from cutile.dtypes import info

TILE = 128  # values of a tile: one of a thread, since searches wait for memory
HOST_TILE = 512  # in host memory


def _kernel(data: IteratorBase, values: IteratorBase, out: IteratorBase, before: Any, upper: bool, wide: bool) -> Any:
    """A kernel that finds the positions of a tile of values. `before` compares items of the data's type."""
    items, reader, writer, t = data.reader(), values.reader(), out.writer(), data.value_type
    unsigned = ct.uint64 if wide else ct.uint32

    @ct.kernel
    def search_tiles(source: data.annotation(wide), wanted: values.annotation(wide), target: out.annotation(wide),
                     n: position(wide), bits: int, m: position(wide), size: ct.Constant[int], whole: ct.Constant[bool]):
        place = Place(ct.bid(0), size, m, whole)
        value = t.cast(reader.tile(wanted, place))
        there = ct.full((size,), True, ct.bool_) if whole else place.mask()
        found = ct.zeros((size,), unsigned)  # unsigned, since the sum of two positions may need one bit more
        step = ct.astype(1, unsigned) << ct.astype(bits, unsigned)
        for _ in range(bits):
            step = step >> 1
            last = ct.astype(found + (step - 1), n.dtype)
            inside = there & (last >= 0) & (last < n)
            item = t.cast(items.at(source, last, inside))
            if upper:
                first = ct.elementwise(before)(value, item, mask=inside) == 0
            else:
                first = ct.elementwise(before)(item, value, mask=inside) != 0
            found = ct.where(inside & first, found + step, found)
        writer.put(target, place, found)

    return search_tiles


class Search(Algorithm):
    """Its option is whether to find the last position where a value belongs, not the first."""

    takes = {"d_data": INPUT, "num_items": COUNT, "d_values": INPUT, "num_values": COUNT, "d_out": OUTPUT,
             "comp": with_default(OPERATOR, OpKind.LESS)}

    def __call__(self, d_data: Any, num_items: int, d_values: Any, num_values: int, d_out: Any, comp: Any,
                 stream: Any = None) -> None:
        self.run_here(stream, d_data, num_items, d_values, num_values, d_out, comp)

    def check(self, d_data: IteratorBase, d_values: IteratorBase, d_out: IteratorBase, comp: Operator) -> None:
        _check_positions(d_out, 0)
        compared(comp, "comp", d_data.value_type)

    def plan(self, plan: Plan, data: IteratorBase, n: int, values: IteratorBase, m: int, out: IteratorBase,
             before: Operator) -> None:
        upper, = self.options
        check_items(plan, "num_items", n, d_data=data)
        check_items(plan, "num_values", m, d_values=values, d_out=out)
        _check_positions(out, n)
        compared(before, "comp", data.value_type)
        wide = is_wide(max(n, m), data, values, out)
        if search_tree.pays(plan, data, n, m):
            return search_tree.search(plan, data, n, values, m, out, before, upper, wide)
        key = "search", data.kind, values.kind, out.kind, before.key, upper, wide
        kernel = kernels_for(key, _kernel, data, values, out, before.function, upper, wide)
        tile = HOST_TILE if plan.on_host else TILE
        plan.launch(-(-m // tile), kernel, data.state(n), values.state(m), out.state(m), n, n.bit_length(), m, tile,
                    m % tile == 0)


def compared(op: Operator, argument: str, t: Any) -> None:
    """TypeError if an operator on items of type `t` gives no truth value."""
    if not isinstance(result := result_of(op, t, t, argument=argument).type, Number):
        raise TypeError(f"argument `{argument}`: expected a comparison, which gives a truth value, but it gives "
                        f"{result}")


def _check_positions(out: IteratorBase, n: int) -> None:
    """TypeError if an output takes no positions, ValueError if its dtype is too short for positions up to n."""
    t = out.value_type
    if not isinstance(t, Number) or not info(t.dtype).integral:
        raise TypeError(f"argument `d_out`: positions need an array of integers, not of {t}")
    if info(t.dtype).storage.itemsize < 4:
        raise ValueError(f"argument `d_out`: positions need int32, uint32, int64 or uint64, not {t}")
    if n >> (t.dtype.bitwidth - (t.dtype in (ct.int32, ct.int64))):
        raise ValueError(f"argument `d_out`: positions up to {n} do not fit {t}")


def make_lower_bound(d_data: Any, d_values: Any, d_out: Any, comp: Any = None,
                     compute_capability: Any = None) -> Search:
    """An object that searches as `lower_bound` does, for arguments of the same kinds.

    Parameters
    ----------
    d_data, d_values, d_out, comp
        As in `lower_bound`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `d_data, num_items, d_values, num_values, d_out, comp, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `lower_bound` does; a call with another kind of argument, or another `comp`, is a TypeError.

    Examples
    --------
    >>> data, values, out = np.arange(0, 100, 10), np.array([35, 40]), np.zeros(2, np.int64)
    >>> search = ct.compute.make_lower_bound(data, values, out)
    >>> search(data, 10, values, 2, out, None)
    >>> out
    array([4, 4])
    """
    return Search((False,), compute_capability, d_data=d_data, d_values=d_values, d_out=d_out, comp=comp)


def make_upper_bound(d_data: Any, d_values: Any, d_out: Any, comp: Any = None,
                     compute_capability: Any = None) -> Search:
    """An object that searches as `upper_bound` does, for arguments of the same kinds.

    Parameters
    ----------
    d_data, d_values, d_out, comp
        As in `upper_bound`.
    compute_capability : int, tuple, str or list, optional
        That of the GPUs that the object may run on, such as 90, (9, 0) or "9.0"; a call on another is a RuntimeError.

    Returns
    -------
    object
        Call it with `d_data, num_items, d_values, num_values, d_out, comp, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `upper_bound` does; a call with another kind of argument, or another `comp`, is a TypeError.

    Examples
    --------
    >>> data, values, out = np.arange(0, 100, 10), np.array([35, 40]), np.zeros(2, np.int64)
    >>> search = ct.compute.make_upper_bound(data, values, out)
    >>> search(data, 10, values, 2, out, None)
    >>> out
    array([4, 5])
    """
    return Search((True,), compute_capability, d_data=d_data, d_values=d_values, d_out=d_out, comp=comp)


def lower_bound(d_data: Any, num_items: int, d_values: Any, num_values: int, d_out: Any, comp: Any = None,
                stream: Any = None) -> None:
    """The first position in sorted data where each value may be inserted: the number of items that belong before it.

    Parameters
    ----------
    d_data : array or iterator
        The data, sorted by `comp`.
    num_items : int
        The number of items in the data.
    d_values : array or iterator
        The values; they are converted to the type of the data.
    num_values : int
        The number of values.
    d_out : array or iterator of int32, uint32, int64 or uint64
        Takes the positions, from 0 to `num_items`.
    comp : function of two items, or OpKind, optional
        Whether the first operand belongs before the second, as a truth value. By default OpKind.LESS.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If `d_out` takes no integers, or `comp` gives no number.
    ValueError
        If a number is negative or more than an array has, or positions do not fit `d_out`.

    Notes
    -----
    In data that are not sorted the positions are some from 0 to `num_items`. Clauses BSR-*.

    Examples
    --------
    >>> data, values, out = np.array([1, 3, 3, 5]), np.array([0, 3, 4, 9]), np.zeros(4, np.uint64)
    >>> ct.compute.lower_bound(data, 4, values, 4, out)
    >>> out
    array([0, 1, 3, 4], dtype=uint64)
    >>> ct.compute.lower_bound(data[::-1], 4, values, 4, out, lambda a, b: a > b)
    >>> out
    array([4, 1, 1, 0], dtype=uint64)
    """
    Search.once((False,), stream, d_data, num_items, d_values, num_values, d_out, comp)


def upper_bound(d_data: Any, num_items: int, d_values: Any, num_values: int, d_out: Any, comp: Any = None,
                stream: Any = None) -> None:
    """The last position in sorted data where each value may be inserted: the number of items not after it.

    Parameters
    ----------
    d_data, num_items, d_values, num_values, d_out, comp, stream
        As in `lower_bound`.

    Raises
    ------
    TypeError
        If `d_out` takes no integers, or `comp` gives no number.
    ValueError
        If a number is negative or more than an array has, or positions do not fit `d_out`.

    Notes
    -----
    In data that are not sorted the positions are some from 0 to `num_items`. Clauses BSR-*.

    Examples
    --------
    >>> data, values, out = np.array([1, 3, 3, 5]), np.array([0, 3, 4, 9]), np.zeros(4, np.uint64)
    >>> ct.compute.upper_bound(data, 4, values, 4, out)
    >>> out
    array([0, 3, 3, 4], dtype=uint64)
    """
    Search.once((True,), stream, d_data, num_items, d_values, num_values, d_out, comp)
