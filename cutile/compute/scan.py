"""inclusive_scan and exclusive_scan: each item combined with all before it, by an associative operator [SCN-*].

A first launch combines the items of each tile, and a last launch scans the tiles, each beginning with what stands
before it. If there are few tiles, each block of the last launch scans the combinations itself, since a launch costs the
host more; those of many tiles are scanned in between, in the same way. Many long items are read once (scan_once.py).
An item is written by the block that read it, so that a scan may be in place.
"""

from typing import Any

import cutile as ct
from cutile.compute import host_scan, scan_once
from cutile.compute.algorithm import Algorithm, is_wide, kernels_for, position
from cutile.compute.blocks import Combined, put_item, put_one
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operator_errors import check_stored
from cutile.compute.operators import Operator
from cutile.compute.overlaps import check_in_place
from cutile.compute.parts import parts_of
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INITIAL_OR_ARRAY, INPUT, OPERATOR, OUTPUT
from cutile.compute.scan_once import begun, stored
from cutile.compute.ufuncs import ufunc_to_scan

TILE = 1024  # items of a tile
HOST_TILE = 32  # in host memory, where a scan goes through a tile item by item, for many tiles at once


def _sums(items: IteratorBase, sums: IteratorBase, combine: Combined, wide: bool, on_host: bool) -> Any:
    """A kernel that combines the items of each tile, in their order."""
    reader, writer, t = items.reader(), sums.writer(), combine.type

    @ct.kernel
    def sum_tiles(source: items.annotation(wide), target: sums.annotation(wide), first: int, n: position(wide),
                  size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0) + first
        result = combine.in_order(t.cast(reader.tile(source, Place(i, size, n, whole))))
        if on_host:
            put_item(writer, target, i, n, t, result)
        else:
            put_one(writer, target, i, t, result)

    return sum_tiles


def _scanned(items: IteratorBase, out: IteratorBase, sums: IteratorBase | None, combine: Combined, begin: Any,
             given: Any, inclusive: bool, wide: bool, many: int) -> Any:
    """A kernel that scans each tile. `sums`: what stands before each tile, where there is a `begin`; what stands before
    it and in it, where there is none; None for a single tile. `begin`, `given`: reader and annotation of an initial
    value. `many`: unless it is 0, `sums` are the combinations of tiles, at most so many.
    """
    reader, writer, t = items.reader(), out.writer(), combine.type
    prefixes = None if sums is None else sums.reader()
    begins, alone = begin is not None, sums is None

    @ct.kernel
    def scan_tiles(source: items.annotation(wide), target: out.annotation(wide),
                   before: tuple[()] if alone else sums.annotation(wide), initial: given if begins else tuple[()],
                   first: int, n: position(wide), size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0) + first
        place = Place(i, size, n, whole)
        scanned = combine.scanned(t.cast(reader.tile(source, place)))
        if many:
            others = Place(0, many, ct.astype((n + size - 1) // size, ct.int32), False)
            prefix = combine.picked(combine.scanned(t.cast(prefixes.tile(before, others))), others.index() == i - 1)
            prefix, scanned = begun(combine, begin, initial, i, prefix, scanned)
        elif begins:
            if alone:
                prefix = t.cast(begin.value(initial))
            else:
                prefix = t.item(prefixes.tile(before, Place(i, 1, n, True)))
            scanned = combine(prefix, scanned)
        elif not alone:
            prefix = t.item(prefixes.tile(before, Place(ct.maximum(i - 1, 0), 1, n, True)))
            scanned = t.select(i > 0, combine(prefix, scanned), scanned)
        stored(writer, target, t, place, inclusive, None if inclusive else prefix, scanned)

    return scan_tiles


class Scan(Algorithm):
    """`inclusive` and `exclusive` scans differ in the items that are written alone."""

    takes = {"d_in": INPUT, "d_out": OUTPUT, "op": OPERATOR, "init_value": INITIAL_OR_ARRAY, "num_items": COUNT}

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, op: Any, init_value: Any = None,
                 num_items: int | None = None, stream: Any = None) -> int:
        """Scan, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_in, d_out, op, init_value, num_items)

    def check(self, d_in: IteratorBase, d_out: IteratorBase, op: Operator, init_value: Any) -> None:
        t = d_in.value_type if init_value is None else init_value.type
        result_of(op, t, t, to=t)
        check_stored(t, d_out=d_out)

    def plan(self, plan: Plan, items: IteratorBase, out: IteratorBase, op: Operator, begin: Any, n: int) -> None:
        inclusive, = self.options
        check_items(plan, "num_items", n, d_in=items, d_out=out)
        if begin is None and not inclusive:
            raise ValueError("argument `init_value`: an exclusive scan needs an initial value")
        self.check(items, out, op, begin)
        check_in_place(plan, {"d_out": out}, {"d_in": items}, n)
        self.launches(plan, items, out, op, begin, n)

    def launches(self, plan: Plan, items: IteratorBase, out: IteratorBase, op: Operator, begin: Any, n: int) -> None:
        """Only the launches, for operands of another algorithm, which checks them."""
        inclusive, = self.options
        t = items.value_type if begin is None else begin.type
        combine, size = Combined(op.function, t, result_of(op, t, t, to=t).loops), HOST_TILE if plan.on_host else TILE
        ufunc = ufunc_to_scan(op, t) if n and plan.on_host and (inclusive or host_scan.advances(out)) else None
        if ufunc is not None:
            return host_scan.scan(plan, items, out, op, ufunc, begin, inclusive, n)
        if scan_once.pays(plan, combine, n):
            return scan_once.scan_once(plan, items, out, op, combine, begin, inclusive, n)
        sizes = [n]
        while sizes[-1] > size:
            sizes.append(-(-sizes[-1] // size))
        levels = [plan.values(k, t) for k in sizes[1:]]
        if n:
            _scan(plan, items, out, levels, sizes, op, combine, begin, inclusive, size)


def _scan(plan: Plan, items: IteratorBase, out: IteratorBase, levels: list, sizes: list, op: Operator,
          combine: Combined, begin: Any, inclusive: bool, size: int) -> None:
    """Scan `sizes[0]` items. `levels` are arrays for the combinations of tiles, of tiles of these, and so on."""
    n, wide = sizes[0], is_wide(sizes[0], items, out)
    sums = levels[0] if levels else None
    key = items.kind, op.key, combine.type, wide
    if sums is not None:
        kernel = kernels_for(("scan sums", *key, plan.on_host), _sums, items, sums, combine, wide, plan.on_host)
        for part in parts_of(plan, n, size):
            plan.launch(part.blocks, kernel, items.state(part.items), sums.state(None), part.first, n, size, part.whole)
    many = 1 << (sizes[1] - 1).bit_length() if len(sizes) == 2 and not plan.on_host else 0
    if sums is not None and not many:
        _scan(plan, sums, sums, levels[1:], sizes[1:], op, combine, begin, begin is None, size)
    key = "scan", *key, out.kind, sums is None, None if begin is None else begin.kind, inclusive, many
    kernel = kernels_for(key, _scanned, items, out, sums, combine, begin and begin.reader(),
                         begin and begin.annotation(wide), inclusive, wide, many)
    for part in parts_of(plan, n, size):
        plan.launch(part.blocks, kernel, items.state(part.items), out.state(part.items),
                    () if sums is None else sums.state(None), () if begin is None else begin.state, part.first, n, size,
                    part.whole)


def make_inclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any = None, compute_capability: Any = None) -> Scan:
    """An object that scans items, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out, op, init_value
        As in `inclusive_scan`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, d_in, d_out, op, init_value, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `inclusive_scan` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, plus = np.array([1, 2, 3]), ct.compute.OpKind.PLUS
    >>> scan = ct.compute.make_inclusive_scan(x, x, plus)
    >>> storage = np.empty(scan(None, x, x, plus, None, 3), np.uint8)
    >>> nbytes = scan(storage, x, x, plus, None, 3)
    >>> x
    array([1, 3, 6])
    """
    return Scan((True,), compute_capability, d_in=d_in, d_out=d_out, op=op, init_value=init_value)


def make_exclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any, compute_capability: Any = None) -> Scan:
    """An object that scans items, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out, op, init_value
        As in `exclusive_scan`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, d_in, d_out, op, init_value, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `exclusive_scan` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, plus = np.array([1, 2, 3]), ct.compute.OpKind.PLUS
    >>> scan = ct.compute.make_exclusive_scan(x, x, plus, 10)
    >>> storage = np.empty(scan(None, x, x, plus, 10, 3), np.uint8)
    >>> nbytes = scan(storage, x, x, plus, 10, 3)
    >>> x
    array([10, 11, 13])
    """
    return Scan((False,), compute_capability, d_in=d_in, d_out=d_out, op=op, init_value=init_value)


def inclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any = None, num_items: int | None = None,
                   stream: Any = None) -> None:
    """Compute `d_out[i] = x0 op x1 … op xi` for `num_items` items.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out : array or iterator
        Takes the results, converted to its type. It may be `d_in`.
    op : callable or OpKind
        Associative; its first operand is what comes first. It computes in the type of `init_value`, without one in that
        of the items.
    init_value : number, struct or array, optional
        Stands before the first item; an array of one item in GPU memory is read when the kernels run.
    num_items : int
        How many items there are.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If `num_items` is no int, or the operator cannot combine the items.
    ValueError
        If an array has fewer items.

    Notes
    -----
    [SCN-1.inclusive] [SCN-1.order] [SCN-4.nothing] [SCN-5.place]

    Examples
    --------
    >>> x, out = np.array([3, 1, 2]), np.zeros(3, int)
    >>> ct.compute.inclusive_scan(x, out, lambda a, b: a + b, None, 3)
    >>> out
    array([3, 4, 6])
    """
    Scan.once((True,), stream, d_in, d_out, op, init_value, num_items)


def exclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = init_value op x0 … op x(i-1)` for `num_items` items.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out : array or iterator
        Takes the results, converted to its type. It may be `d_in`.
    op : callable or OpKind
        Associative; its first operand is what comes first. It computes in the type of `init_value`, without one in that
        of the items.
    init_value : number, struct or array
        Stands before the first item; an array of one item in GPU memory is read when the kernels run.
    num_items : int
        How many items there are.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If `num_items` is no int, or the operator cannot combine the items.
    ValueError
        If there is no `init_value`, or an array has fewer items.

    Notes
    -----
    [SCN-1.exclusive] [SCN-1.order] [SCN-4.nothing] [SCN-5.place]

    Examples
    --------
    >>> x, out = np.array([3, 1, 2]), np.zeros(3, int)
    >>> ct.compute.exclusive_scan(x, out, ct.compute.OpKind.MAXIMUM, 2, 3)
    >>> out
    array([2, 3, 3])
    """
    Scan.once((False,), stream, d_in, d_out, op, init_value, num_items)
