"""Where tiles lie in a launch: what is said of random programs is compared with what each of their blocks accesses."""

from __future__ import annotations

import itertools
import random
import types
from collections import defaultdict

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import cutile as ct
from cutile.analysis.inside import TilesInside
from cutile.analysis.ranges import ANY_GRID
from cutile.passes.flatten_frames import flatten_frames
from cutile.types import ArrayType, ListType
from tests.front.compiling import A1, A2, I32, cell, typed

# ------------------------------------------------------------------ an oracle: the source, run by Python block by block


class Number(int):
    """An int32, which wraps."""

    def __neg__(self):
        return _wrapped(-int(self))


def _wrapped(n):
    return Number((int(n) + 2**31) % 2**32 - 2**31)


def _operator(name):
    plain = getattr(int, name)
    return lambda self, other: _wrapped(plain(int(self), int(other)))


for _name in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and"):
    setattr(Number, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Number, f"__r{_name}__", _operator(f"__r{_name}__"))


class Sized:
    """An array that has sizes and nothing else."""

    def __init__(self, shape, log):
        self.shape, self.log = tuple(map(Number, shape)), log

    def slice(self, axis, start, stop):
        return Sized((*self.shape[:axis], _wrapped(stop - start), *self.shape[axis + 1:]), self.log)

    def tiled_view(self, shape, traversal_steps):
        return types.SimpleNamespace(load=lambda i: self.access((i,), (shape,), (traversal_steps,), (0,)))

    def access(self, index, shape, steps, order):
        at = [(i * s, i * s + n, int(self.shape[k]))
              for i, s, n, k in zip(map(int, index), steps, shape, order, strict=True)]
        self.log(all(0 <= first and last <= size for first, last, size in at))
        return self


class TooLong(Exception):
    pass


def accesses_of(source: str, grid: tuple, shapes: list, scalar: int) -> dict[int, set[bool]]:
    """For each line with accesses that run, whether they lie inside."""
    found: dict[int, set[bool]] = defaultdict(set)
    block: list[int] = [0, 0, 0]

    def log(inside):
        import sys

        frame = sys._getframe()
        while frame.f_code.co_filename != "<oracle>":
            frame = frame.f_back
        found[frame.f_lineno].add(inside)

    def load(a, index, shape, order=None):
        index, shape = (x if isinstance(x, tuple) else (x,) for x in (index, shape))
        return a.access(index, shape, shape, order or range(len(shape)))

    def counted(*bounds):
        numbers = range(*map(int, bounds))
        if len(numbers) > 60:
            raise TooLong
        return map(Number, numbers)

    language = types.SimpleNamespace(
        bid=lambda k: Number(block[k]), num_blocks=lambda k: Number(grid[k]), load=load,
        num_tiles=lambda a, k, shape: Number(-(-int(a.shape[k]) // (shape if isinstance(shape, int) else shape[k]))),
        minimum=lambda x, y: Number(min(x, y)), maximum=lambda x, y: Number(max(x, y)),
        cdiv=lambda x, y: _wrapped(-(-int(x) // int(y))))
    space = {"ct": language, "range": counted}
    exec(compile(source, "<oracle>", "exec"), space)
    for block[:] in itertools.product(*map(range, grid)):
        space["k"](*[Sized(s, log) for s in shapes], Number(scalar))
    return found


# ------------------------------------------------------------------ random programs


class Program:
    """The source of a kernel of two arrays of rank 1, one of rank 2, and an int."""

    def __init__(self, r: random.Random, plain: bool):
        self.r, self.plain, self.lines, self.names = r, plain, ["def k(a, b, m, n):"], []
        for axis in range(3):
            self.assign(1, f"ct.bid({axis})")
        self.block(1, 3)
        self.source = "\n".join(self.lines)

    def say(self, depth, text):
        self.lines.append("    " * depth + text)

    def assign(self, depth, value):
        self.names.append(name := f"v{len(self.lines)}")
        self.say(depth, f"{name} = {value}")

    def number(self):
        return str(self.r.choice((0, 0, 1, 1, 2, 3, 4, -1, 7) if self.plain else (0, 1, 2, 3, 4, 8, -1, -3, 2**30)))

    def term(self):
        r = self.r
        return f"{r.choice(self.names)} * {r.choice((1, 1, 1, 2, 3, -1))}" if r.random() < 0.8 else self.number()

    def expression(self):
        r = self.r
        if self.plain:  # each variable once
            chosen = r.sample(self.names, min(len(self.names), r.randrange(3)))
            return " + ".join([*(f"{v} * {r.choice((1, 1, 2, 3, -1))}" for v in chosen), self.number()])
        kind = r.randrange(9)
        x = self.term() if kind < 4 else f"({self.expression()})"
        y = self.term()
        return (x, f"{x} + {y}", f"{x} - {y}", f"n + {x}", f"{x} // {r.choice((1, 2, 4))}",
                f"{x} % {r.choice((1, 3, 4))}", f"ct.minimum({x}, {y})", f"ct.maximum({x}, {y})",
                r.choice((f"{x} >> 1", f"{x} & 3", f"ct.cdiv({x}, 2)", f"{x} << 1")))[kind]

    def condition(self):
        r = self.r
        one = f"{self.expression()} {r.choice(('<', '<=', '>', '>=', '==', '!='))} {self.bound()}"
        return one if r.random() < 0.6 else f"{one} {r.choice(('and', 'or'))} {self.expression()} >= {self.bound()}"

    def bound(self):
        return self.r.choice((self.number(), self.tiles(), "a.shape[0]", "n"))

    def tiles(self):
        return self.r.choice(("ct.num_tiles(a, 0, 8)", "ct.num_tiles(m, 1, (4, 2))", "ct.num_tiles(b, 0, 4)"))

    def access(self, depth):
        r, e = self.r, self.expression
        self.say(depth, r.choice((
            lambda: f"ct.load(a, {e()}, 8)", lambda: f"ct.load(b, {e()}, {r.choice((1, 4))})",
            lambda: f"ct.load(m, ({e()}, {e()}), (4, 2), order={r.choice(((0, 1), (1, 0)))})",
            lambda: f"b.tiled_view(4, traversal_steps=3).load({e()})",
            lambda: f"ct.load(a.slice(0, {(s := self.start())}, {s} + {r.choice((8, 16, 20))}), {e()}, 8)"))())

    def start(self):
        return f"{self.r.choice(self.names)} * {self.r.choice((1, 8))} + {self.number()}"

    def block(self, depth, length):
        for _ in range(length):
            r, names = self.r, list(self.names)
            kind = r.random()
            if depth > 3 or kind < 0.5:
                self.access(depth)
            elif kind < 0.7:
                step = "" if self.plain or r.random() < 0.5 else f", {r.choice(('1', '2', 'ct.num_blocks(0)'))}"
                start = "0" if self.plain or r.random() < 0.5 else self.term()
                stop = r.choice(("1", "3", self.tiles())) if self.plain else r.choice((self.term(), self.tiles()))
                self.names.append(name := f"v{len(self.lines)}")
                self.say(depth, f"for {name} in range({start}, {stop}{step}):")
                self.block(depth + 1, 2)
                self.names = names
            elif self.plain:
                self.access(depth)
            elif kind < 0.85:
                self.say(depth, f"if {self.condition()}:")
                self.block(depth + 1, 1)
                self.names = names
                if r.random() < 0.5:
                    self.say(depth, "else:")
                    self.block(depth + 1, 1)
                    self.names = names
            elif kind < 0.92:
                self.say(depth, f"if {self.condition()}:")
                self.access(depth + 1)
                self.say(depth + 1, "return")
                self.access(depth)
            else:
                self.assign(depth, self.expression())


def analysed(source: str) -> tuple:
    fn = cell(source)["k"]
    kernel = flatten_frames(typed(fn, A1, A1, A2, I32))
    return kernel, TilesInside(kernel)


launches = st.tuples(
    st.tuples(*[st.integers(1, 4)] * 2, st.just(1)),
    st.tuples(st.sampled_from((0, 1, 7, 8, 16, 24, 31, 32, 64)), st.sampled_from((0, 3, 4, 12, 16, 40)),
              st.tuples(st.sampled_from((0, 4, 6, 16, 32)), st.sampled_from((0, 2, 5, 8, 32)))),
    st.integers(-2, 4))


def judged(seed: int, launch, plain: bool) -> tuple:
    """The accesses that the analysis calls inside, those of each line that are, and whether all regular ones are."""
    grid, (a, b, m), n = launch
    source = Program(random.Random(seed), plain).source
    try:
        kernel, tiles = analysed(source)
    except ct.TileError:  # a constant that fits no int32, or lies outside
        assert not plain
        reject()
    shapes = [(a,), (b,), m]
    try:
        truth = accesses_of(source, grid, shapes, n)
    except TooLong:
        reject()
    blocks, known = [(k, k) for k in grid], dict(zip(kernel.params, shapes, strict=False))
    return tiles.each(blocks, known), truth, tiles.all_inside(blocks, known), source, tiles


@given(st.integers(0, 2**32), launches)
def test_what_is_called_inside_is_inside(seed, launch):
    """Guards, loops, division, wrapping arithmetic, scalars and slices included; also what holds for any grid."""
    found, truth, all_inside, source, tiles = judged(seed, launch, plain=False)
    for n in found:
        assert False not in truth.get(n.span.line, ()), f"{source}\nline {n.span.line}"
    if all_inside:
        for n in tiles.known_per_launch:
            assert False not in truth.get(n.span.line, ()), f"{source}\nline {n.span.line}"


@given(st.integers(0, 2**32), launches)
def test_affine_accesses_that_lie_inside_are_found(seed, launch):
    """Sums of block indices and counters, with sizes that are known: then the answer is exact."""
    found, truth, all_inside, source, tiles = judged(seed, launch, plain=True)
    lines = {n.span.line for n in found}
    for line, inside in truth.items():
        assert (line in lines) == (inside == {True}), f"{source}\nline {line}"
    assert not truth or len(tiles.known_per_launch) == len(tiles._accesses)


# ------------------------------------------------------------------ one by one


def inside(fn, *kinds, grid=(1, 1, 1), **shapes):
    """Whether all regular accesses lie inside, for each grid of a list or for one."""
    kernel = flatten_frames(typed(fn, *kinds))
    tiles = TilesInside(kernel)
    known = {p: shapes[name] for p, name in zip(kernel.params, kernel.param_names, strict=True) if name in shapes}
    return tiles.all_inside([(n, n) for n in grid], known)


def test_grids():
    def k(x, y):
        ct.store(y, ct.bid(0), ct.load(x, (ct.bid(0), ct.bid(1)), (1, 8)).reshape((8,)))

    assert inside(k, A2, A1, grid=(4, 2, 9), x=(4, 16), y=(32,))
    assert not inside(k, A2, A1, grid=(5, 2, 1), x=(4, 16), y=(64,))
    assert not inside(k, A2, A1, grid=(4, 3, 1), x=(4, 16), y=(32,))
    assert not inside(k, A2, A1, grid=(4, 2, 1), x=(4, 16), y=(31,))
    assert not inside(k, A2, A1, grid=(4, 2, 1), x=(4, 0), y=(32,))
    assert not inside(k, A2, A1, grid=(4, 2, 1), x=(4, 16))  # of y nothing is known


def test_persistent_loops():
    for grid in (1, 3, 132, 10000):
        assert inside(_persistent, A2, A2, grid=(grid, 1, 1), x=(5, 32), y=(5, 32))
        assert not inside(_persistent, A2, A2, grid=(grid, 1, 1), x=(5, 31), y=(5, 32))
        assert not inside(_persistent, A2, A2, grid=(grid, 1, 1), x=(6, 32), y=(5, 32))


def _persistent(x, y):
    for t in range(ct.bid(0), ct.num_tiles(x, 0, (1, 8)) * 4, ct.num_blocks(0)):
        ct.store(y, (t // 4, t % 4), ct.load(x, (t // 4, t % 4), (1, 8)))


def test_a_grid_that_is_larger_than_needed_with_a_guard():
    def guarded(x):
        i = ct.bid(0)
        if i < ct.num_tiles(x, 0, 8):
            ct.store(x, i, ct.load(x, i, 8))

    def left(x):
        i = ct.bid(0)
        if not i < ct.num_tiles(x, 0, 8):
            return
        ct.store(x, i, ct.load(x, i, 8))

    def helper(x):
        i = ct.bid(0)
        if _beyond(x, i) or i < 0:
            return
        ct.store(x, i, ct.load(x, i, 8))

    for k in (guarded, left, helper):
        assert inside(k, A1, grid=(1000, 1, 1), x=(64,)) and not inside(k, A1, grid=(1000, 1, 1), x=(65,)), k


def _beyond(x, i):
    return i >= ct.num_tiles(x, 0, 8)


def test_lists():
    def k(arrays):
        for j in range(len(arrays)):
            ct.store(arrays[j], ct.bid(0), ct.load(arrays[j], ct.bid(0), 8))

    assert inside(k, ListType(A1), grid=(2, 1, 1), arrays=[(16,), (20,)])
    assert not inside(k, ListType(A1), grid=(2, 1, 1), arrays=[(16,), (15,)])


def test_what_depends_on_memory_or_on_numbers_stays_checked():
    def k(x, index, n):
        i = ct.load(index, ct.bid(0), 1).item()
        ct.load(x, i.astype(ct.int32), 8)
        ct.load(x, n, 8)
        ct.load(x, 0, 8)
        ct.gather(x, ct.arange(8, dtype=ct.int32))
        ct.load(x, 1, 8, check_bounds=False)
        ct.load(x.slice(0, n, n + 8), 0, 8)

    tiles = TilesInside(typed(k, A1, A1, I32))
    assert [n.span.line - k.__code__.co_firstlineno for n in tiles.known_per_launch] == [1, 4]


def test_proof_for_every_launch():
    """Constant sizes, whatever the grid is."""
    def k(x, y):
        for j in range(4):
            ct.load(x, j, 8)
        if ct.bid(0) < 2:
            ct.load(x, ct.bid(0), 16)
        ct.load(x, ct.bid(0), 8)
        ct.load(y, 0, 8)
        ct.load(y, 0, 1)

    tiles = TilesInside(typed(k, ArrayType(ct.float32, 1, static_shape=(32,)), A1))
    assert [n.span.line - k.__code__.co_firstlineno for n in tiles.each(ANY_GRID, {})] == [2, 4]


def test_numbers_that_wrap():
    def index(x):
        ct.load(x, ct.bid(0) * 1073741824 + 1073741824, 8)

    def quotient(x):
        ct.load(x, ct.bid(0) * 1073741824 // 1073741824, 8)

    def guard(x):
        if ct.bid(0) + 2147483646 < 2147483647:
            ct.load(x, ct.bid(0), 8)

    def part(x):
        start = ct.bid(0) * 2147483640
        ct.load(x.slice(0, start, start + 16), 1, 8)

    assert inside(index, A1, x=(2**34,)) and not inside(index, A1, grid=(2, 1, 1), x=(2**34,))
    assert inside(quotient, A1, grid=(2, 1, 1), x=(64,)) and not inside(quotient, A1, grid=(3, 1, 1), x=(64,))
    assert inside(guard, A1, grid=(2, 1, 1), x=(8,)) and not inside(guard, A1, grid=(3, 1, 1), x=(8,))
    assert inside(part, A1, x=(64,)) and not inside(part, A1, grid=(2, 1, 1), x=(2**31,))


def test_guards_to_the_number():
    """i runs to 3; each is judged with just enough tiles, and with one less."""
    def less(x):
        if not ct.bid(0) < 2:
            ct.load(x, 3 - ct.bid(0), 8)

    def less_equal(x):
        if not ct.bid(0) <= 1:
            ct.load(x, 3 - ct.bid(0), 8)

    def greater(x):
        if not ct.bid(0) > 1:
            ct.load(x, ct.bid(0), 8)

    def greater_equal(x):
        if not ct.bid(0) >= 2:
            ct.load(x, ct.bid(0), 8)

    def equal(x):
        if ct.bid(0) == 1:
            ct.load(x, ct.bid(0), 8)

    def both(x):
        if ct.bid(0) < 2 and ct.bid(0) >= 0:
            ct.load(x, ct.bid(0), 8)

    def either(x):
        if ct.bid(0) > 1 or ct.bid(0) < 0:
            return
        ct.load(x, ct.bid(0), 8)

    def unequal(x):
        if ct.bid(0) != 1:
            return
        ct.load(x, ct.bid(0), 8)

    for k in (less, less_equal, greater, greater_equal, equal, both, either, unequal):
        assert inside(k, A1, grid=(4, 1, 1), x=(16,)) and not inside(k, A1, grid=(4, 1, 1), x=(15,)), k


@pytest.mark.parametrize("comparison", [f"{x} {op} {y}" for x, y in (("i", 1), ("i", 2), (1, "i"), (2, "i"))
                                        for op in ("<", "<=", ">", ">=", "==")])
@pytest.mark.parametrize("index", ["i", "3 - i"])
@pytest.mark.parametrize("before", ["", "not "])
def test_each_comparison_to_the_number(comparison, index, before):
    """As many tiles as the index reaches where the comparison holds are enough, and one element less is not."""
    condition = before + comparison
    k = cell(f"""def k(x):
        i = ct.bid(0)
        if {condition}:
            ct.load(x, {index}, 8)
    """)["k"]
    tiles = 4 if condition.startswith("not") and "==" in condition else 1 + max(
        eval(index, {"i": i}) for i in range(4) if eval(condition, {"i": i}))
    assert inside(k, A1, grid=(4, 1, 1), x=(8 * tiles,)) and not inside(k, A1, grid=(4, 1, 1), x=(8 * tiles - 1,))


def test_quotients_and_remainders():
    def quotient(x):
        ct.load(x, (ct.bid(0) + 4) // (ct.bid(1) + 1), 8)

    def negative(x):
        ct.load(x, (0 - ct.bid(0)) // 2 + 2, 8)

    def rounded_up(x):
        ct.load(x, ct.cdiv(ct.bid(0), 2) + ct.bid(1) % 3, 8)

    assert inside(quotient, A1, grid=(2, 2, 1), x=(48,)) and not inside(quotient, A1, grid=(2, 2, 1), x=(47,))
    assert inside(negative, A1, grid=(5, 1, 1), x=(24,)) and not inside(negative, A1, grid=(6, 1, 1), x=(24,))
    assert inside(rounded_up, A1, grid=(4, 9, 1), x=(40,)) and not inside(rounded_up, A1, grid=(4, 9, 1), x=(39,))


def test_proof_by_divisibility():
    """Tiles below a number of tiles that fill the array, in loops and behind guards."""
    def k(x, y):
        for i in range(ct.num_tiles(x, 0, (16, 4))):
            ct.load(x, (i, 0), (16, 4))
            for j in range(ct.bid(0), ct.num_tiles(x, 1, (16, 4)), ct.num_blocks(0)):
                ct.load(x, (i, j), (16, 4))
                ct.load(x, (i, j + 1), (16, 4))
                ct.load(x, (i, j - 1), (16, 4))
                ct.load(x, (j, i), (16, 4))
                ct.load(x, (i, j), (16, 8))
                ct.load(y, j, 4)
        if ct.bid(1) < ct.num_tiles(y, 0, 8) - 0:
            ct.load(y, ct.bid(1), 8)
        if 1 <= ct.bid(1) <= ct.num_tiles(y, 0, 8):
            ct.load(y, ct.bid(1) - 1, 8)
            ct.load(y, ct.bid(1), 8)

    kernel = typed(k, A2, A1)
    x, y = kernel.params
    first = k.__code__.co_firstlineno
    proven = TilesInside(kernel).each(ANY_GRID, {}, {x: (16, 4), y: (8,)})
    assert [n.span.line - first for n in proven] == [4, 13]
    proven = TilesInside(kernel).each(ANY_GRID, {}, {x: (8, 4), y: (4,)})
    assert not proven
    proven = TilesInside(kernel).each(ANY_GRID, {x: (None, 4)}, {x: (16, 4)})
    assert [n.span.line - first for n in proven] == [2, 4]


@pytest.mark.parametrize("tile, step, proven", [(4, 4, True), (2, 4, True), (8, 4, False)])
def test_proof_by_divisibility_of_tiles_with_gaps(tile, step, proven):
    """The last of overlapping tiles reaches beyond the axis, which steps fill."""
    k = cell(f"""def k(x):
        v = x.tiled_view({tile}, traversal_steps={step})
        for i in range(v.num_tiles(0)):
            v.load(i)
    """)["k"]
    kernel = typed(k, A1)
    assert bool(TilesInside(kernel).each(ANY_GRID, {}, {kernel.params[0]: (4,)})) is proven
