"""Searches of many values by a tree: one load of 16 bytes brings several items to compare with.

Items are in groups of K, as many as 16 bytes hold. A node has K + 1 children and K items: the last items of all
children but one. So a value goes on in the child whose number is the count of items that belong before it. Children of
the lowest nodes are groups of the data. Nodes lie level by level: those below node i begin with number (K + 1) * i + 1.
Levels but the lowest are whole. Where a node would have an item behind the last group it has the last one of all: no
value that belongs there goes further, and what belongs behind all items ends in the last group.

A launch before the search writes the nodes. The items behind the last whole group are compared one after the other.
"""

from typing import Any, NamedTuple

import cutile as ct
from cutile.compute.algorithm import kernels_for, position
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS, ArrayIterator
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import info

NODE = 16  # bytes, the most that a thread loads at once
SIZES = (4, 8)  # bytes of an item
LEAST_ITEMS = 1 << 9
# A tree saves more than its launch takes where the values of a binary search, times the square of its steps, of which
# later ones take longer, are that many or more.
LEAST_WORK = 1 << 26
MOST_ITEMS = 1 << 28  # of more, numbers in the nodes would need int64
MOST_BYTES = 16  # of items for each value: of more, sorted values take more time than in a binary search
TILE = 128  # values of a tile: one of a thread, since searches wait for memory
BUILT = 1024  # items of nodes that a block writes


class Shape(NamedTuple):
    """Of a tree over `groups` groups: how many levels of nodes, how many nodes in all, and the number that the first
    group would have as a node.
    """

    groups: int
    levels: int
    nodes: int
    bottom: int


def shape_of(n: int, k: int) -> Shape:
    """The tree for n items, k in a group; n is 2 * k at least."""
    groups = n // k
    levels, lowest, width = 1, 0, 1
    while width * (k + 1) < groups:
        levels, lowest, width = levels + 1, lowest + width, width * (k + 1)
    return Shape(groups, levels, lowest - (-groups // (k + 1)), lowest * (k + 1) + 1)


def pays(plan: Plan, data: IteratorBase, n: int, m: int) -> bool:
    """Whether it takes less time than a search in the data themselves."""
    t = data.value_type
    if plan.on_host or plan.captures or type(data) is not ArrayIterator or not isinstance(t, Number):
        return False
    itemsize = info(t.dtype).storage.itemsize
    return (itemsize in SIZES and LEAST_ITEMS <= n <= MOST_ITEMS and n * itemsize <= m * MOST_BYTES
            and m * n.bit_length() ** 2 >= LEAST_WORK)


def _building_kernel(data: IteratorBase, k: int, wide: bool) -> Any:
    """A kernel that writes the nodes."""
    items = data.reader()

    @ct.kernel
    def write_nodes(source: data.annotation(wide), nodes: ARRAYS[wide], last: position(wide), levels: int,
                    span: position(wide), size: ct.Constant[int]):
        slot = Place(ct.bid(0), size, last, True).index()
        node, j = slot // k, slot % k
        first, width, reach = span * 0, span * 0 + 1, span  # of a level: its first node, its nodes, items of a child
        end = ct.zeros((size,), span.dtype)
        for _ in range(levels):
            end = ct.where(node >= first, ((node - first) * (k + 1) + (j + 1)) * reach, end)
            first, width, reach = first + width, width * (k + 1), reach // (k + 1)
        index = ct.where((end > 0) & (end <= last), end - 1, last)
        found = items.at(source, index, ct.full((size,), True, ct.bool_), True)
        ct.store(nodes, (ct.bid(0),), found)

    return write_nodes


def _searching_kernel(data: IteratorBase, values: IteratorBase, out: IteratorBase, before: Any, upper: bool, k: int,
                      wide: bool) -> Any:
    """A kernel that finds the positions of a tile of values."""
    items, reader, writer, t = data.reader(), values.reader(), out.writer(), data.value_type

    def is_before(item, value):
        """Whether an item stands before the position of a value."""
        if upper:
            return ct.elementwise(before)(value, item) == 0
        return ct.elementwise(before)(item, value) != 0

    def counts(item, value):
        """How many items of each row stand before the position of its value."""
        value = ct.broadcast_to(value[:, None], item.shape)
        return ct.sum(ct.astype(is_before(t.cast(item), value), ct.int32), 1)

    @ct.kernel
    def search_by_tree(source: data.annotation(wide), nodes: ARRAYS[wide], wanted: values.annotation(wide),
                       target: out.annotation(wide), m: position(wide), levels: int, last_node: position(wide),
                       bottom: position(wide), groups: position(wide), rest: int, size: ct.Constant[int],
                       whole: ct.Constant[bool]):
        place = Place(ct.bid(0), size, m, whole)
        value = t.cast(reader.tile(wanted, place))
        lane = ct.arange(k, dtype=m.dtype)[None, :]
        node = ct.zeros((size,), m.dtype)
        for _ in range(levels):
            here = ct.minimum(node, last_node)
            row = ct.gather(nodes, here[:, None] * k + lane, check_bounds=False)
            node = here * (k + 1) + 1 + ct.astype(counts(row, value), m.dtype)
        group = ct.minimum(node - bottom, groups - 1)
        row = items.at(source, group[:, None] * k + lane, ct.full((size, k), True, ct.bool_), True)
        found = group * k + ct.astype(counts(row, value), m.dtype)
        for j in ct.static_iter(range(k - 1)):
            index = groups * k + ct.full((size,), j, m.dtype)
            mask = (found == index) & (j < rest)
            found = ct.where(mask & is_before(t.cast(items.at(source, index, mask, True)), value), found + 1, found)
        writer.put(target, place, found)

    return search_by_tree


def search(plan: Plan, data: IteratorBase, n: int, values: IteratorBase, m: int, out: IteratorBase, before: Any,
           upper: bool, wide: bool) -> None:
    """Plan the launches."""
    t: ValueType = data.value_type
    k = NODE // info(t.dtype).storage.itemsize
    shape = shape_of(n, k)
    blocks = -(-shape.nodes * k // BUILT)
    nodes = plan.array(blocks * BUILT, t.dtype)
    key = "tree", data.kind, k, wide
    building = kernels_for(key, _building_kernel, data, k, wide)
    plan.launch(blocks, building, data.state(n), nodes, shape.groups * k - 1, shape.levels,
                k * (k + 1) ** (shape.levels - 1), BUILT)
    key = "search by tree", data.kind, values.kind, out.kind, before.key, upper, k, wide
    kernel = kernels_for(key, _searching_kernel, data, values, out, before.function, upper, k, wide)
    plan.launch(-(-m // TILE), kernel, data.state(n), nodes, values.state(m), out.state(m), m, shape.levels,
                shape.nodes - 1, shape.bottom, shape.groups, n - shape.groups * k, TILE, m % TILE == 0)
