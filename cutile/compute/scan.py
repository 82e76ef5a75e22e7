"""inclusive_scan and exclusive_scan: each item combined with all before it, by an associative operator [SCN-*].

A first launch combines the items of each tile, the combinations are scanned in the same way, and a last launch scans
the tiles, each beginning with what stands before it. An item is written by the block that read it, so that a scan may
be in place.
"""

from typing import Any

import cutile as ct
from cutile.compute.algorithm import (
    Algorithm,
    FromMemory,
    allocated,
    bytes_of,
    carved,
    check_count,
    device_of,
    is_wide,
    kernels_for,
    launch,
    position,
)
from cutile.compute.arrays import array_of
from cutile.compute.blocks import Combined, put_one
from cutile.compute.iterators import ArrayIterator, IteratorBase, Stored, as_input, as_output
from cutile.compute.operators import Operator, operator, result_of
from cutile.compute.readers import Place

TILE = 1024  # items of a tile
HOST_TILE = 32  # in host memory, where a scan goes through a tile item by item, for many tiles at once


def _sums(items: IteratorBase, sums: IteratorBase, combine: Combined, wide: bool) -> Any:
    """A kernel that combines the items of each tile, in their order."""
    reader, writer, t = items.reader(), sums.writer(), combine.type

    @ct.kernel
    def sum_tiles(source: items.annotation(wide), target: sums.annotation(wide), n: position(wide),
                  size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0)
        put_one(writer, target, i, t, combine.in_order(t.cast(reader.tile(source, Place(i, size, n, whole)))))

    return sum_tiles


def _scanned(items: IteratorBase, out: IteratorBase, sums: IteratorBase | None, combine: Combined, begin: Any,
             given: Any, inclusive: bool, wide: bool) -> Any:
    """A kernel that scans each tile. `sums`: what stands before each tile, where there is a `begin`; what stands before
    it and in it, where there is none; None for a single tile. `begin`, `given`: reader and annotation of an initial
    value.
    """
    reader, writer, t = items.reader(), out.writer(), combine.type
    prefixes = None if sums is None else sums.reader()
    begins, alone = begin is not None, sums is None

    @ct.kernel
    def scan_tiles(source: items.annotation(wide), target: out.annotation(wide),
                   before: tuple[()] if alone else sums.annotation(wide), initial: given if begins else tuple[()],
                   n: position(wide), size: ct.Constant[int], whole: ct.Constant[bool]):
        i = ct.bid(0)
        place = Place(i, size, n, whole)
        scanned = combine.scanned(t.cast(reader.tile(source, place)))
        if begins:
            if alone:
                prefix = t.cast(begin.value(initial))
            else:
                prefix = t.item(prefixes.tile(before, Place(i, 1, n, True)))
            scanned = combine(prefix, scanned)
        elif not alone:
            prefix = t.item(prefixes.tile(before, Place(ct.maximum(i - 1, 0), 1, n, True)))
            scanned = t.select(i > 0, combine(prefix, scanned), scanned)
        if inclusive:
            writer.put(target, place, scanned)
        else:
            put_one(writer, target, i * size, t, prefix)
            index = place.index() + 1
            writer.put_at(target, index, scanned, (index < n) & (index % size != 0))

    return scan_tiles


class Scan(Algorithm):
    """`inclusive` and `exclusive` scans differ in the items that are written alone."""

    def __init__(self, inclusive: bool, d_in: Any, d_out: Any, op: Any, init_value: Any):
        super().__init__()
        self.inclusive = inclusive
        items = self.input("d_in", d_in)
        self.output("d_out", d_out)
        begin = self._begin(init_value)
        self.type = items.value_type if begin is None else begin.type
        self.loops = result_of(self.operator("op", op), self.type, self.type).loops

    def __call__(self, temp_storage: Any, d_in: Any, d_out: Any, op: Any, init_value: Any = None, num_items: int = 0,
                 stream: Any = None) -> int:
        """Scan, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        items, out, f = self.input("d_in", d_in), self.output("d_out", d_out), self.operator("op", op)
        n, begin = check_count("num_items", num_items, d_in=items, d_out=out), self._begin(init_value)
        if begin is None and not self.inclusive:
            raise ValueError("argument `init_value`: an exclusive scan needs an initial value")
        size = HOST_TILE if device_of(items, out) is None else TILE
        sizes = []
        while (rest := sizes[-1] if sizes else n) > size:
            sizes.append(-(-rest // size))
        arrays = [(k, d) for k in sizes for d in self.type.dtypes]
        if temp_storage is None:
            return bytes_of(arrays)
        temporary, many = carved(temp_storage, arrays), len(self.type.dtypes)
        levels = [Stored(self.type, temporary[many * k:many * (k + 1)]) for k in range(len(sizes))]
        if n:
            self._run(stream, items, out, levels, [n, *sizes], f, begin, self.inclusive, size)
        return bytes_of(arrays)

    def _begin(self, value: Any) -> Any:
        """An initial value, or an array in GPU memory that holds it when the kernels run; None for None."""
        if value is None or hasattr(value, "__array_interface__") or not hasattr(value, "__cuda_array_interface__"):
            return self.initial("init_value", value)
        array = ArrayIterator(array_of(value))
        self.same("init_value", array)
        return FromMemory(array)

    def _run(self, stream: Any, items: IteratorBase, out: IteratorBase, levels: list, sizes: list, f: Operator,
             begin: Any, inclusive: bool, size: int) -> None:
        """Scan `sizes[0]` items. `levels` are arrays for the combinations of tiles, of tiles of these, and so on."""
        n, wide = sizes[0], is_wide(sizes[0], items, out)
        combine = Combined(f.function, self.type, self.loops)
        sums = levels[0] if levels else None
        key = items.kind, f.key, self.type, wide
        if sums is not None:
            kernel = kernels_for(("scan sums", *key), _sums, items, sums, combine, wide)
            launch(stream, sizes[1], kernel, items.state(n), sums.state(None), n, size, n % size == 0)
            self._run(stream, sums, sums, levels[1:], sizes[1:], f, begin, begin is None, size)
        how = None if begin is None else begin.kind
        key = "scan", *key, out.kind, sums is None, how, inclusive
        kernel = kernels_for(key, _scanned, items, out, sums, combine, begin and begin.reader(),
                             begin and begin.annotation(wide), inclusive, wide)
        launch(stream, -(-n // size), kernel, items.state(n), out.state(n), () if sums is None else sums.state(None),
               () if begin is None else begin.state, n, size, n % size == 0)


def make_inclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any = None) -> Scan:
    """An object that scans items; see `inclusive_scan`."""
    return Scan(True, d_in, d_out, op, init_value)


def make_exclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any) -> Scan:
    """An object that scans items; see `exclusive_scan`."""
    return Scan(False, d_in, d_out, op, init_value)


def inclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any = None, num_items: int = 0, stream: Any = None
                   ) -> None:
    """`d_out[i] = x0 op x1 … op xi`, beginning with init_value where there is one, of `num_items` items.

    op          associative; its first operand is what comes first. It computes in init_value's type, without one in
                that of the items
    init_value  as in reduce_into, or an array of one item in GPU memory, which is read when the kernels run
    d_out       may be d_in
    """
    _once(True, d_in, d_out, op, init_value, num_items, stream)


def exclusive_scan(d_in: Any, d_out: Any, op: Any, init_value: Any, num_items: int, stream: Any = None) -> None:
    """`d_out[i] = init_value op x0 … op x(i-1)`; all else as `inclusive_scan`. ValueError without an init_value."""
    _once(False, d_in, d_out, op, init_value, num_items, stream)


def _once(inclusive: bool, d_in: Any, d_out: Any, op: Any, init_value: Any, num_items: int, stream: Any) -> None:
    items, out, f = as_input(d_in, "d_in"), as_output(d_out, "d_out"), operator(op)
    scan = Scan(inclusive, items, out, f, init_value)
    storage = allocated(scan(None, items, out, f, init_value, num_items), stream, items, out)
    scan(storage, items, out, f, init_value, num_items, stream)
