"""unary_transform and binary_transform: an operator on each item, or on each pair of items [TRF-*]."""

from collections.abc import Iterator, Sequence
from typing import Any

import cutile as ct
from cutile.compute import host_transform
from cutile.compute.algorithm import Algorithm, is_wide, kernels_for, position
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.operators import Operator
from cutile.compute.overlaps import check_in_place
from cutile.compute.parts import Part, parts_of
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.readers import Place
from cutile.compute.results import result_of
from cutile.compute.roles import COUNT, INPUT, OPERATOR, OUTPUT
from cutile.compute.value_types import storage

TILE = 1024  # items of a block
TILES = {1: 2048, 8: 512}  # where the longest items have so many bytes, or 8 and more
HOST_TILES = (1 << 17, 1 << 13, TILE)  # in host memory, where what a few large tiles compute stays in a cache


def _kernel(ins: tuple[IteratorBase, ...], out: IteratorBase, op: Operator, wide: bool) -> Any:
    readers, writer, f, t = tuple(i.reader() for i in ins), out.writer(), op.function, out.value_type

    @ct.kernel
    def transform(inputs: tuple[tuple(i.annotation(wide) for i in ins)], output: out.annotation(wide),
                  n: position(wide), first: int, size: ct.Constant[int], whole: ct.Constant[bool],
                  begins: ct.Constant[bool]):
        i = ct.bid(0) if begins else ct.bid(0) + first  # in host memory, tiles that blocks alone determine are views
        place = Place(i, size, n, whole)
        values = tuple(readers[k].tile(inputs[k], place) for k in ct.static_iter(range(len(readers))))
        writer.put(output, place, t.cast(ct.elementwise(f)(*values, mask=place.mask())))

    return transform


class _Transform(Algorithm):
    def check(self, op: Operator, **operands: IteratorBase) -> None:
        *inputs, out = operands.values()
        result_of(op, *(it.value_type for it in inputs), to=out.value_type)

    def plan(self, plan: Plan, *operands: Any) -> None:
        *inputs, out, f, n = operands
        counted = {name: it for name, it in zip(self.takes, operands, strict=True) if isinstance(it, IteratorBase)}
        result_of(f, *(it.value_type for it in inputs), to=out.value_type)
        if check_items(plan, "num_items", n, **counted) == 0:
            return
        *names, name = counted
        check_in_place(plan, {name: out}, {k: counted[k] for k in names}, n)
        self.launches(plan, *operands)

    def launches(self, plan: Plan, *operands: Any) -> None:
        """Only the launches, for operands of another algorithm, which checks them."""
        *inputs, out, f, n = operands
        if n == 0:
            return
        call = host_transform.call_of(inputs, out, f) if plan.on_host else None
        if call is None:
            return self._launches(plan, inputs, out, f, n)
        plan.either(host_transform.calling(call), host_transform.states((*inputs, out), n),
                    lambda: self._launches(plan, inputs, out, f, n))

    def _launches(self, plan: Plan, inputs: Sequence[IteratorBase], out: IteratorBase, f: Operator, n: int) -> None:
        wide = is_wide(n, *inputs, out)
        kernel = kernels_for(("transform", *(i.kind for i in inputs), out.kind, f.key, wide), _kernel, tuple(inputs),
                             out, f, wide)
        longest = _longest(inputs, out)
        size = TILES.get(min(longest, 8), TILE)
        if plan.on_host:
            parts = _host_parts(n)
        else:
            # TMA, which loads longer items, takes sizes that 16 does not divide in as much time (readers.py).
            found = parts_of(plan, n, size) if longest == 1 else [Part(-(-n // size), 0, n % size == 0, n)]
            parts = ((size, part) for part in found)
        for size, part in parts:
            plan.launch(part.blocks, kernel, tuple(i.state(part.items) for i in inputs), out.state(part.items), n,
                        part.first, size, part.whole, part.first == 0)


def _longest(inputs: Sequence[IteratorBase], out: IteratorBase) -> int:
    """The bytes of the longest item of an operand."""
    return max(storage(it.value_type).itemsize for it in (*inputs, out))


def _host_parts(n: int) -> Iterator[tuple[int, Part]]:
    """How n items are cut in host memory, where masks cost time: sizes of tiles, and these. All tiles but the last one
    are whole.
    """
    done = 0
    for size in HOST_TILES:
        if n - done >= size:
            yield size, Part((n - done) // size, done // size, True, n)
            done = n - n % size
    if n > done:
        yield TILE, Part(1, done // TILE, False, n)


class UnaryTransform(_Transform):
    takes = {"d_in": INPUT, "d_out": OUTPUT, "op": OPERATOR, "num_items": COUNT}

    def __call__(self, d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
        self.run_here(stream, d_in, d_out, op, num_items)


class BinaryTransform(_Transform):
    takes = {"d_in1": INPUT, "d_in2": INPUT, "d_out": OUTPUT, "op": OPERATOR, "num_items": COUNT}

    def __call__(self, d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
        self.run_here(stream, d_in1, d_in2, d_out, op, num_items)


def make_unary_transform(d_in: Any, d_out: Any, op: Any, compute_capability: Any = None) -> UnaryTransform:
    """An object that computes `d_out[i] = op(d_in[i])`, for arguments of the same kinds.

    Parameters
    ----------
    d_in, d_out, op
        As in `unary_transform`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `d_in, d_out, op, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `unary_transform` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, out = np.array([1, 2, 3]), np.zeros(3, int)
    >>> double = lambda v: 2 * v
    >>> transform = ct.compute.make_unary_transform(x, out, double)
    >>> transform(x, out, double, 3)
    >>> out
    array([2, 4, 6])
    """
    return UnaryTransform((), compute_capability, d_in=d_in, d_out=d_out, op=op)


def make_binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any,
                          compute_capability: Any = None) -> BinaryTransform:
    """An object that computes `d_out[i] = op(d_in1[i], d_in2[i])`, for arguments of the same kinds.

    Parameters
    ----------
    d_in1, d_in2, d_out, op
        As in `binary_transform`; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `d_in1, d_in2, d_out, op, num_items, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `binary_transform` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> x, out = np.array([1, 2, 3]), np.zeros(3, int)
    >>> plus = ct.compute.OpKind.PLUS
    >>> transform = ct.compute.make_binary_transform(x, x, out, plus)
    >>> transform(x, x, out, plus, 3)
    >>> out
    array([2, 4, 6])
    """
    return BinaryTransform((), compute_capability, d_in1=d_in1, d_in2=d_in2, d_out=d_out, op=op)


def unary_transform(d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = op(d_in[i])` for `num_items` items.

    Parameters
    ----------
    d_in : array or iterator
        The items.
    d_out : array or iterator
        Takes the results, converted to its type as by `astype`. It may be an input, but not overlap with one otherwise.
    op : callable or OpKind
        A function of items; arrays that it captures are read when it runs, and may be updated by atomics.
    num_items : int
        How many items there are.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If an argument is of a kind that it cannot be, or an output is read-only.
    ValueError
        If `num_items` is negative, or more than an array has, or the output overlaps with an input in other places.

    Notes
    -----
    An operator that updates arrays does so once for each item, in any order. Clauses TRF-*, OPR-*.

    Examples
    --------
    >>> x, out = np.array([-2, 3, -1], np.float32), np.zeros(3, np.float32)
    >>> ct.compute.unary_transform(x, out, lambda v: v if v > 0 else 0, 3)
    >>> out
    array([0., 3., 0.], dtype=float32)
    """
    UnaryTransform.once((), stream, d_in, d_out, op, num_items)


def binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Compute `d_out[i] = op(d_in1[i], d_in2[i])` for `num_items` items.

    Parameters
    ----------
    d_in1, d_in2 : array or iterator
        The items.
    d_out : array or iterator
        Takes the results, converted to its type as by `astype`. It may be an input, but not overlap with one otherwise.
    op : callable or OpKind
        A function of items; arrays that it captures are read when it runs, and may be updated by atomics.
    num_items : int
        How many items there are.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If an argument is of a kind that it cannot be, or an output is read-only.
    ValueError
        If `num_items` is negative, or more than an array has, or the output overlaps with an input in other places.

    Notes
    -----
    An operator that updates arrays does so once for each item, in any order. Clauses TRF-*, OPR-*.

    Examples
    --------
    >>> x, y, out = np.array([1, 5]), np.array([4, 2]), np.zeros(2, int)
    >>> ct.compute.binary_transform(x, y, out, lambda a, b: max(a, b), 2)
    >>> out
    array([4, 5])
    """
    BinaryTransform.once((), stream, d_in1, d_in2, d_out, op, num_items)
