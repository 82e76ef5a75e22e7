"""For an access: its tile, read from stand-in memory, and the index of an element."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cutile.analysis.access import Access
from cutile.dtypes import uint8
from cutile.interp.exec.block_set import BlockSet
from cutile.interp.memory.array import Array
from cutile.interp.memory.buffer import Buffer
from cutile.interp.sanitize.findings import at_block
from cutile.ops._access import in_index_dtype
from cutile.ops._op import ELEMENTS, ROWS, TILES, Sig

Memory = Callable[[Buffer], Buffer]


class Place(NamedTuple):
    """An access with its run-time operands: the array, and the others by name."""

    access: Access
    array: Array
    named: dict[str, object]
    sig: Sig

    @classmethod
    def of(cls, access: Access, operands: Sequence) -> Place:
        """`operands`: flat, as those of the access's op."""
        n = access.op
        sig = Sig(tuple(v.type for v in n.operands), tuple(v.type for v in n.results))
        return cls(access, operands[0], n.op.named(operands, n.layout), sig)

    @property
    def mask(self) -> np.ndarray | None:
        return None if self.access.mask is None else self.named[self.access.op.op.accesses.mask]

    def read(self, memory: Memory, fill: np.ndarray) -> np.ndarray:
        """What the access would read if its array's elements were in other memory; `fill`, a scalar, for elements that
        it does not reach. For an access to one element, the result keeps axes of length 1.
        """
        access, attrs, fill_at_rank = self.access, self.access.op.attrs, fill.reshape((1,) * len(self.access.shape))
        if access.unit == TILES:
            index = in_index_dtype(self.named["index"], self.sig)
            return self.array.over(memory).tile(index, access.shape, access.order, fill, access.steps)
        if access.unit == ROWS:
            return self.array.over(memory).rows(attrs["axis"], self.named["sparse"], self.named["starts"],
                                                access.shape, fill)
        if access.unit == ELEMENTS:
            return self.array.over(memory).gather(self.named["indices"], self.mask, fill_at_rank, access.shape)
        return self.array.raw.over(memory).gather((self.named["offset"],), self.mask, fill_at_rank, access.shape)

    def element(self, ctx: BlockSet, i: int, lane: Sequence[int]) -> tuple[int, ...]:
        """The index of the array element at a lane of the tile, for the i-th running block."""
        access = self.access
        if access.unit == TILES:
            found = [0] * len(access.order)
            for j, step, k, x in zip(self.named["index"], access.steps, access.order, lane, strict=True):
                found[k] = int(at_block(j, 0, ctx, i)) * step + int(x)
            return tuple(found)
        if access.unit == ROWS:
            axis = access.op.attrs["axis"]
            found = [int(at_block(s, 0, ctx, i)) for s in self.named["starts"]]
            found.insert(axis, 0)
            found = [s + int(x) for s, x in zip(found, lane, strict=True)]
            found[axis] = int(at_block(self.named["sparse"], 1, ctx, i)[lane[axis]])
            return tuple(found)
        indices = self.named["indices"] if access.unit == ELEMENTS else (self.named["offset"],)
        rank = len(access.shape)
        return tuple(int(np.broadcast_to(at_block(x, rank, ctx, i), access.shape)[tuple(lane)]) for x in indices)


@functools.cache
def of_value(value: int) -> Memory:
    """Memory of uint8 in which all elements have one value."""
    def memory(buffer: Buffer) -> Buffer:
        made = buffer.stand_ins.get(value)
        if made is None:
            x = np.broadcast_to(np.asarray(value, np.uint8), buffer.array.shape)
            made = buffer.stand_ins[value] = Buffer(x, uint8, False, buffer.name)
            made.may_change = False
        return made

    return memory
