"""merge_sort: keys, and values with them, in the order that a comparison says; stable [MRG-*].

A first launch sorts each FEW items. Then sorted runs are merged in pairs, from one buffer into another, until one run
is left. Each tile of output takes its items from a part of both runs of its pair: a launch before finds the *splits*,
where these parts begin and end. A tile that has whole pairs needs none.

Each item is written once, whatever the comparison says. The splits of a pair grow from tile to tile; where they do not,
which only a comparison that is no strict weak ordering makes them do, its right run is put behind its left run.
"""

import dataclasses
from typing import Any, NamedTuple

import cutile as ct
from cutile.compute.algorithm import (
    Algorithm,
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
from cutile.compute.iterators import ARRAYS, ArrayIterator, IteratorBase, Stored, as_input, as_output
from cutile.compute.lanes import EACH, FEW, Keys
from cutile.compute.operators import Operator, operator
from cutile.compute.readers import Place
from cutile.compute.search import compared
from cutile.compute.value_types import Number, ValueType

TILE = 2048  # items of a tile
HOST_TILE = 512  # in host memory
SPLITS = 128  # splits that a block finds


class Items(NamedTuple):
    """Keys, and the values that move with them, or None."""

    keys: IteratorBase
    values: IteratorBase | None

    @property
    def parts(self) -> tuple[IteratorBase, ...]:
        return (self.keys,) if self.values is None else (self.keys, self.values)

    @property
    def kind(self) -> tuple:
        return tuple(part.kind for part in self.parts)

    def state(self, n: int) -> tuple:
        return tuple(part.state(n) for part in self.parts)

    def annotation(self, wide: bool) -> Any:
        return tuple[tuple(part.annotation(wide) for part in self.parts)]

    def put(self, target: "Items") -> Any:
        """Tile code that stores keys, and the values that lay at `places`, in `target`."""
        writer = target.keys.writer()
        if self.values is None:
            def put_keys(state, target_state, place, keys, places):
                writer.put(target_state[0], place, keys)
            return put_keys
        reader, values_writer, t = self.values.reader(), target.values.writer(), target.values.value_type

        def put_both(state, target_state, place, keys, places):
            values = t.cast(reader.at(state[1], places, place.mask()))
            writer.put(target_state[0], place, keys)
            values_writer.put(target_state[1], place, values)
        return put_both


def _sorting(source: Items, target: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that sorts each FEW items, and notes that the splits of no pair are broken."""
    readers = tuple(part.reader() for part in source.parts)
    writers, types = tuple(part.writer() for part in target.parts), tuple(part.value_type for part in target.parts)

    @ct.kernel
    def sort_lanes(state: source.annotation(wide), target_state: target.annotation(wide), broken: ARRAYS[False],
                   n: position(wide), size: ct.Constant[int]):
        lanes = ct.arange(ct.static_eval(size // FEW), dtype=n.dtype) * FEW
        index = ct.astype(ct.bid(0), n.dtype) * size + lanes
        there = tuple(index + k < n for k in ct.static_iter(range(FEW)))
        parts = tuple(tuple(types[m].cast(readers[m].at(state[m], index + k, there[k]))
                            for k in ct.static_iter(range(FEW))) for m in ct.static_iter(range(len(readers))))
        ranks = keys.ranks(tuple(keys.type.cast(item) for item in ct.static_iter(parts[0])), there)
        for k in ct.static_iter(range(FEW)):
            for m in ct.static_iter(range(len(writers))):
                writers[m].put_at(target_state[m], index + ranks[k], parts[m][k], there[k])
        ct.store(broken, (ct.bid(0),), ct.zeros((1,), ct.int32))  # blocks beyond its end store nothing

    return sort_lanes


@dataclasses.dataclass(frozen=True)
class Runs:
    """Where the two runs of a pair begin and end, for each element of a tile of positions."""

    left: Any
    right: Any
    end: Any

    def bounds(self, k):
        """The least and the largest number of items of the left run among the first k."""
        return ct.maximum(k - (self.end - self.right), 0), ct.minimum(k, self.right - self.left)


def runs_at(index, width, n):
    """The pair that has the position; width is a power of two."""
    left = index & -(2 * width)
    return Runs(left, ct.minimum(left + width, n), ct.minimum(left + 2 * width, n))


def _splitting(source: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that finds, for each tile of output, how many items come from the left run before it, and before the
    next one. `broken[t]`: the last launch in which splits were broken of the pair that begins in tile t.
    """
    @ct.kernel
    def find_splits(state: source.annotation(wide), begins: ARRAYS[False], ends: ARRAYS[False], broken: ARRAYS[False],
                    n: position(wide), width: position(wide), steps: int, turn: int, tile: ct.Constant[int],
                    size: ct.Constant[int]):
        index = ct.minimum(Place(ct.bid(0), size, n, False).index() * tile, n)
        runs = runs_at(index, width, n)
        k, k_end = index - runs.left, ct.minimum(index + tile, runs.end) - runs.left
        begin = keys.crossing(state[0], runs.left, runs.right, k, *runs.bounds(k), steps)
        end = keys.crossing(state[0], runs.left, runs.right, k_end, *runs.bounds(k_end), steps)
        ct.store(begins, (ct.bid(0),), begin)
        ct.store(ends, (ct.bid(0),), end)
        wrong = (end < begin) | (end - begin > k_end - k)
        ct.atomic_max(broken, ct.where(wrong, runs.left // tile, -1), turn, memory_order=ct.MemoryOrder.RELAXED)

    return find_splits


def _merging(source: Items, target: Items, keys: Keys, wide: bool) -> Any:
    """A kernel that merges pairs of runs. `turn`: the number of the launch that found the splits; 0 without splits."""
    put = source.put(target)

    @ct.kernel
    def merge_lanes(state: source.annotation(wide), target_state: target.annotation(wide), begins: ARRAYS[False],
                    ends: ARRAYS[False], broken: ARRAYS[False], n: position(wide), width: position(wide), steps: int,
                    turn: int, size: ct.Constant[int]):
        place = Place(ct.bid(0), size, n, False)
        start = ct.astype(place.i, n.dtype) * size
        index = ct.minimum(start + ct.arange(ct.static_eval(size // EACH), dtype=n.dtype) * EACH, n)
        runs = runs_at(index, width, n)
        k, k_end = index - runs.left, ct.minimum(index + EACH, runs.end) - runs.left
        k_begin, least, most = ct.zeros(k.shape, n.dtype), ct.zeros(k.shape, n.dtype), runs.right - runs.left
        k_last = runs.end - runs.left
        if turn > 0:  # the tile is a part of a pair
            k_begin, k_last = start - runs.left, ct.minimum(start + size - runs.left, k_last)
            begin, end = ct.gather(begins, place.i), ct.gather(ends, place.i)
            bad = ct.gather(broken, ct.astype(start & -(2 * width), n.dtype) // size) == turn
            least = ct.where(bad, ct.minimum(k_begin, most), begin)
            most = ct.where(bad, ct.minimum(k_last, most), end)
        left = _bounded(keys, state[0], runs, k, least, most, steps)
        left_end = _bounded(keys, state[0], runs, k_end, least, most, steps)
        left, left_end = ct.where(k == k_begin, least, left), ct.where(k_end == k_last, most, left_end)
        wrong = (left_end < left) | (left_end - left > k_end - k)
        if ct.max(ct.astype(wrong, ct.int32)) > 0:  # the left run first
            left = ct.minimum(least + (k - k_begin), most)
            left_end = ct.minimum(least + (k_end - k_begin), most)
        items, places = keys.merged(state[0], runs.left + left, runs.left + left_end, runs.right + (k - left),
                                    runs.right + (k_end - left_end))
        put(state, target_state, place, items, places)

    return merge_lanes


def _bounded(keys, state, runs, k, least, most, steps):
    low, high = runs.bounds(k)
    return keys.crossing(state, runs.left, runs.right, k, ct.maximum(low, least), ct.minimum(high, most), steps)


class MergeSort(Algorithm):
    def __init__(self, d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any, op: Any):
        super().__init__()
        source, target = self._items("d_in", d_in_keys, d_in_values), self._items("d_out", d_out_keys, d_out_values)
        check_pair(source, target)
        compared(self.operator("op", op), "op", source.keys.value_type)

    def __call__(self, temp_storage: Any, d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any,
                 num_items: int, op: Any, stream: Any = None) -> int:
        """Sort, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        source, target = self._items("d_in", d_in_keys, d_in_values), self._items("d_out", d_out_keys, d_out_values)
        f, sides = self.operator("op", op), {"d_in_keys": source.keys, "d_in_values": source.values,
                                             "d_out_keys": target.keys, "d_out_values": target.values}
        n = check_count("num_items", num_items, **{k: v for k, v in sides.items() if v is not None})
        tile = HOST_TILE if device_of(*(v for v in sides.values() if v is not None)) is None else TILE
        wide = is_wide(2 * n, *(v for v in sides.values() if v is not None))
        tiles, index = -(-n // tile), ct.int64 if wide else ct.int32
        types = [target.keys.value_type] + ([] if target.values is None else [target.values.value_type])
        copies = [(n if n > FEW else 0, d) for t in types for d in t.dtypes]
        arrays = [(tiles, ct.int32), (tiles, index), (tiles, index), *copies]
        if temp_storage is None:
            return bytes_of(arrays)
        broken, begins, ends, *rest = carved(temp_storage, arrays)
        if n:
            many = len(types[0].dtypes)
            other = Items(scratch(types[0], rest[:many]), scratch(types[1], rest[many:]) if types[1:] else None)
            self._run(stream, n, tile, source, target, other, f, (begins, ends, broken), wide)
        return bytes_of(arrays)

    def _items(self, side: str, keys: Any, values: Any) -> Items:
        add = self.input if side == "d_in" else self.output
        if self._made.setdefault(f"{side}_values given", values is not None) != (values is not None):
            how = "without" if values is not None else "for"
            raise TypeError(f"argument `{side}_values`: this object was made {how} values")
        return Items(add(f"{side}_keys", keys), None if values is None else add(f"{side}_values", values))

    def _run(self, stream: Any, n: int, tile: int, source: Items, target: Items, other: Items, op: Operator,
             splits: tuple, wide: bool) -> None:
        def kernel(name: str, make: Any, *ends: Items) -> Any:
            found = Keys(source.keys.value_type, ends[0].keys.reader(), op.function)
            key = f"merge sort {name}", source.keys.value_type, *(e.kind for e in ends), op.key, wide
            return kernels_for(key, make, *ends, found, wide)

        widths, tiles = [], -(-n // tile)
        while (width := FEW << len(widths)) < n:
            widths.append(width)
        ends = [target, other] if len(widths) % 2 == 0 else [other, target]
        few = tile // EACH * FEW  # as many lanes as in merging: twice as many take long to compile
        launch(stream, -(-n // few), kernel("lanes", _sorting, source, ends[0]), source.state(n), ends[0].state(n),
               splits[2], n, few)
        for turn, width in enumerate(widths, 1):
            here, there = ends[1 - turn % 2], ends[turn % 2]
            steps, turn = width.bit_length(), turn if 2 * width > tile else 0
            if turn:
                launch(stream, -(-tiles // SPLITS), kernel("splits", _splitting, here), here.state(n), *splits, n,
                       width, steps, turn, tile, SPLITS)
                steps = min(steps, tile.bit_length())
            launch(stream, tiles, kernel("merge", _merging, here, there), here.state(n), there.state(n), *splits, n,
                   width, steps, turn, tile)


def check_pair(source: Items, target: Items) -> None:
    """ValueError for values on one side only; TypeError for outputs that are no arrays, or have other types."""
    if (source.values is None) != (target.values is None):
        name = "d_out_values" if target.values is None else "d_in_values"
        raise ValueError(f"argument `{name}` is None, but there are values on the other side")
    for name, ours, theirs in (("keys", source.keys, target.keys), ("values", source.values, target.values)):
        if theirs is None:
            continue
        if not _is_memory(theirs):
            raise TypeError(f"argument `d_out_{name}`: expected an array, which is read, too, got {theirs!r}")
        if ours.value_type.dtypes != theirs.value_type.dtypes:
            raise TypeError(f"argument `d_out_{name}`: expected {ours.value_type}, as in d_in_{name}, got "
                            f"{theirs.value_type}")


def _is_memory(it: IteratorBase) -> bool:
    """Whether what was written can be read again."""
    return it.reads and it.writes and (isinstance(it, ArrayIterator) or bool(it.children) and
                                       all(map(_is_memory, it.children)))


def scratch(t: ValueType, arrays: list) -> Stored:
    """Values in temporary storage. Numbers lie as in an array, so both need one kernel."""
    found = Stored(t, arrays)
    if isinstance(t, Number):
        found.kind = ("array", t)
    return found


def make_merge_sort(d_in_keys: Any, d_in_values: Any = None, d_out_keys: Any = None, d_out_values: Any = None,
                    op: Any = None) -> MergeSort:
    """An object that sorts as `merge_sort` does, for arguments of the same kinds.

    Parameters
    ----------
    d_in_keys, d_in_values, d_out_keys, d_out_values, op
        As in `merge_sort`.

    Returns
    -------
    object
        Call it with `temp_storage, d_in_keys, d_in_values, d_out_keys, d_out_values, num_items, op, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `merge_sort` does; a call with another kind of argument, or another `op`, is a TypeError.

    Examples
    --------
    >>> keys = np.array([5, 1, 3])
    >>> down = lambda a, b: a > b
    >>> sort = ct.compute.make_merge_sort(keys, None, keys, None, down)
    >>> storage = np.empty(sort(None, keys, None, keys, None, 3, down), np.uint8)
    >>> nbytes = sort(storage, keys, None, keys, None, 3, down)
    >>> keys
    array([5, 3, 1])
    """
    return MergeSort(d_in_keys, d_in_values, d_out_keys, d_out_values, op)


def merge_sort(d_in_keys: Any, d_in_values: Any = None, d_out_keys: Any = None, d_out_values: Any = None,
               num_items: int | None = None, op: Any = None, stream: Any = None) -> None:
    """Sort keys, and values with them, so that no key comes before another that belongs before it.

    Parameters
    ----------
    d_in_keys : array or iterator
        The keys: numbers or structs.
    d_in_values : array or iterator, optional
        What moves with the keys.
    d_out_keys : array
        Takes the sorted keys; of the type of `d_in_keys`. It may be `d_in_keys`.
    d_out_values : array, optional
        Takes the values, in the order of their keys. It may be `d_in_values`.
    num_items : int
        The number of keys.
    op : function of two keys, or OpKind
        Whether the first operand belongs before the second, as a truth value: a strict weak ordering.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If an output is no array, or of another type than its input, or `op` gives no number.
    ValueError
        If values are given on one side only, or `num_items` is negative or more than an array has.

    Notes
    -----
    Stable: keys of which none belongs before the other keep their order. With an `op` that is no strict weak ordering,
    as `<` on NaN is none, each item is still there once, in some order. Clauses MRG-*.

    Examples
    --------
    >>> keys, names = np.array([3, 1, 2, 1]), np.arange(4)
    >>> ct.compute.merge_sort(keys, names, keys, names, 4, lambda a, b: a < b)
    >>> keys, names
    (array([1, 1, 2, 3]), array([1, 3, 2, 0]))
    """
    if num_items is None:
        raise TypeError("merge_sort() needs the argument `num_items`")
    ins, outs = (Items(wrap(keys, f"{side}_keys"), None if values is None else wrap(values, f"{side}_values"))
                 for wrap, side, keys, values in ((as_input, "d_in", d_in_keys, d_in_values),
                                                  (as_output, "d_out", d_out_keys, d_out_values)))
    arguments = *ins, *outs
    f = operator(op)
    sort = MergeSort(*arguments, f)
    there = [a for a in arguments if a is not None]
    storage = allocated(sort(None, *arguments, num_items, f), stream, *there)
    sort(storage, *arguments, num_items, f, stream)
