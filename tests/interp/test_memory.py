"""Array descriptors, against a reference that moves one element of one block at a time."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutile import dtypes as dt
from cutile.interp import storage
from cutile.interp.choice import ArrayList, Choice, join
from cutile.interp.memory import wrap
from cutile.interp.windows import Line, affine

FILL = np.float32(-99)
SETTINGS = settings(max_examples=60, deadline=None)


# ------------------------------------------------------------------ arrays of every layout


@st.composite
def layouts(draw, min_rank=1, max_rank=3):
    """(base, array): an array that lies somewhere inside a larger base, in any layout, elements all different."""
    rank = draw(st.integers(min_rank, max_rank))
    sizes = [draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 9)) for _ in range(rank)]
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in range(rank)]
    base = np.arange(1, 1 + int(np.prod([n * abs(s) + 4 for n, s in zip(sizes, steps)])), dtype=np.float32)
    base = base.reshape([n * abs(s) + 4 for n, s in zip(sizes, steps)])
    a = base[tuple(slice(2, 2 + n * s, s) if s > 0 else slice(1 + n * -s, 1, s) for n, s in zip(sizes, steps)) + (...,)]
    assert list(a.shape) == sizes
    return base, a.transpose(draw(st.permutations(range(rank))))


@st.composite
def leads(draw):
    return draw(st.sampled_from([(), (3,), (5,), (1, 1, 1), (4, 1, 1), (2, 3, 1), (2, 1, 2), (1, 3, 2)]))


@st.composite
def coordinates(draw, lead, low, high):
    """An index carrier: uniform, affine or arbitrary over some of the leading axes."""
    shape = tuple(n if draw(st.booleans()) else 1 for n in lead)
    kind = draw(st.sampled_from(["uniform", "affine", "affine", "any"]))
    if kind == "uniform" or not lead:
        return np.asarray(draw(st.integers(low, high)), np.int32)
    if kind == "any":
        return np.array([draw(st.integers(low, high)) for _ in range(int(np.prod(shape)))], np.int32).reshape(shape)
    c = np.asarray(draw(st.integers(low, high)))
    for axis, n in enumerate(shape):
        step = draw(st.integers(-2, 2))
        c = c + (step * np.arange(n)).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return c.astype(np.int32)


def per_block(x, lead, core=0):
    """The values of each block of `lead`, in order."""
    x = np.asarray(x)
    tail = x.shape[x.ndim - core:]
    return list(np.broadcast_to(x, lead + tail).reshape(-1, *tail))


@st.composite
def cases(draw):
    base, a = draw(layouts())
    lead = draw(leads())
    tile = tuple(draw(st.sampled_from([1, 2, 4, 8])) for _ in a.shape)
    order = tuple(draw(st.permutations(range(a.ndim))))
    steps = draw(st.one_of(st.none(), st.tuples(*[st.integers(1, 5)] * a.ndim)))
    origin = [draw(coordinates(lead, -2, 5)) for _ in a.shape]
    bounds = None
    if draw(st.booleans()) and a.ndim:
        axis = draw(st.integers(0, a.ndim - 1))
        bounds = axis, draw(coordinates(lead, -1, 5)), draw(coordinates(lead, -1, 9))
    return base, a, lead, tile, order, steps, origin, bounds


def elements(a, lead, tile, order, steps, origin, bounds):
    """For each block, for each element of its tile: the coordinates of the array element, or None."""
    blocks = [per_block(o, lead) for o in origin]
    limits = [(per_block(b, lead) for b in bounds[1:])] if bounds else []
    limits = [list(x) for x in limits[0]] if bounds else None
    for n in range(int(np.prod(lead))):
        out = {}
        for x in itertools.product(*map(range, tile)):
            at, inside = [0] * a.ndim, True
            for i, axis in enumerate(order):
                j = int(blocks[i][n])
                e = j * (steps or tile)[i] + x[i]
                size, start = a.shape[axis], 0
                if bounds and bounds[0] == axis:
                    start = int(limits[0][n])
                    size = int(limits[1][n]) - start
                inside &= j >= 0 and e < size and 0 <= start + e < a.shape[axis]
                at[axis] = start + e
            out[x] = tuple(at) if inside else None
        yield out


def view_of(a, bounds, **options):
    view = wrap(a, dt.float32, **options)
    return view.slice(*bounds) if bounds else view


@SETTINGS
@given(cases(), st.booleans())
def test_tile_reads_what_lies_there(case, may_change):
    base, a, lead, tile, order, steps, origin, bounds = case
    view = view_of(a, bounds)
    view.memory.may_change = may_change
    got = view.tile(origin, tile, order, FILL, steps)
    assert got.dtype == np.float32 and got.ndim in (len(tile), len(tile) + len(lead))
    for block, want in zip(per_block(got, lead, len(tile)), elements(a, lead, tile, order, steps, origin, bounds)):
        for x, at in want.items():
            assert block[x] == (FILL if at is None else a[at])
    if may_change:
        assert not np.shares_memory(got, base)
    else:
        assert not (np.shares_memory(got, base) and got.flags.writeable)


@SETTINGS
@given(cases())
def test_put_writes_its_own_elements_only(case):
    base, a, lead, tile, order, steps, origin, bounds = case
    value = np.arange(1000, 1000 + int(np.prod(lead + tile)), dtype=np.float32).reshape(lead + tile)
    allowed: dict = {}
    for block, want in zip(per_block(value, lead, len(tile)), elements(a, lead, tile, order, steps, origin, bounds)):
        for x, at in want.items():
            if at is not None:
                allowed.setdefault(at, []).append(block[x])
    before = base.copy()
    view_of(a, bounds).put(origin, value, tile, order, steps)
    for at in np.ndindex(a.shape):
        assert a[at] in allowed.get(at, [before.reshape(-1)[int(_flat(base, a, at))]])
    a[...] = 0
    untouched = before.copy()
    _same_place(untouched, base, a)[...] = 0
    assert np.array_equal(base, untouched)


def _flat(base, a, at):
    address = a.__array_interface__["data"][0] + sum(s * i for s, i in zip(a.strides, at))
    return (address - base.__array_interface__["data"][0]) // base.itemsize


def _same_place(other, base, a):
    """The elements of `other`, a copy of `base`, that lie where `a` lies in it."""
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0] if a.size else 0
    return np.ndarray(a.shape, a.dtype, other, offset, a.strides)


def test_blocks_that_store_to_one_place_leave_the_last():
    a = np.zeros(8, np.float32)
    value = np.arange(12, dtype=np.float32).reshape(3, 1, 1, 4)
    wrap(a, dt.float32).put([np.asarray(1, np.int32)], value, (4,), (0,))
    assert a.tolist() == [0] * 4 + [8, 9, 10, 11]


def test_affine_finds_steps_and_refuses_the_rest():
    i = np.arange(4)[:, None, None] * 6 + np.arange(3)[None, :, None] * -2 + 5
    line = affine(i)
    assert line == Line(5, (6, -2, 0), (4, 3, 1)) and np.array_equal(line.array(), i)
    i[2, 1, 0] += 1
    assert affine(i) is None
    assert affine(np.array([7, 7, 7])) == Line(7, (0,), (3,))
    assert affine(np.array([7, 7, 8])) is None and affine(np.array([3, 2, 1])) == Line(3, (-1,), (3,))


def test_interior_and_edges_need_no_index_arrays(monkeypatch):
    """Affine blocks are strided views, also where the last of them are cut."""
    from cutile.interp import windows

    monkeypatch.setattr(windows, "_Lanes", None)
    a = np.arange(100 * 70, dtype=np.float32).reshape(100, 70)
    i, j = np.arange(9, dtype=np.int32).reshape(9, 1, 1), np.arange(4, dtype=np.int32).reshape(1, 4, 1)
    got = wrap(a, dt.float32).tile([i, j], (16, 32), (0, 1), FILL)
    padded = np.full((144, 128), FILL)
    padded[:100, :70] = a
    assert np.array_equal(got[:, :, 0], padded.reshape(9, 16, 4, 32).swapaxes(1, 2))


# ------------------------------------------------------------------ elements


@st.composite
def index_cases(draw):
    base, a = draw(layouts(0))
    lead = draw(leads())
    core = tuple(draw(st.sampled_from([1, 2, 4])) for _ in range(draw(st.integers(0, 2))))
    dtype = draw(st.sampled_from([np.int8, np.int32, np.int64, np.uint64]))

    def tile():
        shape = (lead if draw(st.booleans()) else ()) + core
        count = int(np.prod(shape))
        return np.array([draw(st.integers(-2, 10)) for _ in range(count)]).astype(dtype).reshape(shape)

    indices = [tile() for _ in a.shape]
    mask = None
    if draw(st.booleans()):
        mask = np.array([draw(st.booleans()) for _ in range(int(np.prod(core)))]).reshape(core)
    return base, a, lead, core, indices, mask


def index_elements(a, lead, core, indices, mask):
    """Per block and element of the index tiles: coordinates, or None where nothing is there."""
    flat = [per_block(i, lead, len(core)) for i in indices]
    for n in range(int(np.prod(lead))):
        for x in np.ndindex(core):
            at = tuple(int(i[n][x]) for i in flat)
            ok = all(0 <= c < s for c, s in zip(at, a.shape)) and (mask is None or mask[x])
            yield n, x, at if ok else None


@SETTINGS
@given(index_cases())
def test_gather(case):
    base, a, lead, core, indices, mask = case
    fill = np.arange(-1, -1 - int(np.prod(core)), -1, dtype=np.float32).reshape(core)
    got = wrap(a, dt.float32).gather(indices, mask, fill, core)
    assert got.dtype == np.float32
    blocks = per_block(got, lead, len(core))
    for n, x, at in index_elements(a, lead, core, indices, mask):
        assert blocks[n][x] == (fill[x] if at is None else a[at])


@SETTINGS
@given(index_cases())
def test_scatter_leaves_the_last_value(case):
    base, a, lead, core, indices, mask = case
    value = np.arange(1000, 1000 + int(np.prod(lead + core)), dtype=np.float32).reshape(lead + core)
    want = base.copy()
    target = _same_place(want, base, a)
    blocks = per_block(value, lead, len(core))
    for n, x, at in index_elements(a, lead, core, indices, mask):
        if at is not None:
            target[at] = blocks[n][x]
    wrap(a, dt.float32).scatter(indices, value, mask, core)
    assert np.array_equal(base, want)


@SETTINGS
@given(layouts(0), st.lists(st.integers(-60, 600), min_size=4, max_size=4))
def test_raw_offsets_reach_own_elements_only(layout, offsets):
    base, a = layout
    own = {sum(s // 4 * i for s, i in zip(a.strides, at)): a[at] for at in np.ndindex(a.shape)}
    view = wrap(a, dt.float32)
    offsets = np.array([*offsets, *list(own)[:3]], np.int64)
    got = view.gather_raw(offsets, None, np.full(1, FILL), offsets.shape)
    assert got.tolist() == [own.get(o, FILL) for o in offsets.tolist()]
    before = base.copy()
    view.scatter_raw(offsets, np.full(offsets.shape, 7, np.float32), None, offsets.shape)
    for at in np.ndindex(a.shape):
        if sum(s // 4 * i for s, i in zip(a.strides, at)) in offsets:
            assert a[at] == 7
            _same_place(before, base, a)[at] = 7
    assert np.array_equal(base, before)


def test_raw_offsets_into_an_array_that_overlaps_itself():
    line = np.arange(10, dtype=np.float32)
    a = np.lib.stride_tricks.as_strided(line, (4, 3), (8, 4), writeable=True)  # offsets 0 … 8, several names each
    got = wrap(a, dt.float32).gather_raw(np.arange(-1, 11), None, np.full(1, FILL), (12,))
    assert got.tolist() == [FILL, *range(9), FILL, FILL]


@SETTINGS
@given(layouts(2), leads(), st.data())
def test_rows(layout, lead, data):
    base, a = layout
    axis = data.draw(st.integers(0, a.ndim - 1))
    shape = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in a.shape)
    varies = lead if data.draw(st.booleans()) else ()
    count = int(np.prod(varies)) * shape[axis]
    sparse = np.array([data.draw(st.integers(-2, 10)) for _ in range(count)], np.int32).reshape((*varies, shape[axis]))
    starts = [data.draw(coordinates(lead, -2, 8)) for _ in range(a.ndim - 1)]
    got = wrap(a, dt.float32).rows(axis, sparse, starts, shape, FILL)
    value = np.arange(1000, 1000 + int(np.prod(lead + shape)), dtype=np.float32).reshape(lead + shape)
    begins = [per_block(s, lead) for s in starts]
    places = per_block(sparse, lead, 1)
    allowed: dict = {}
    for n, block in enumerate(per_block(got, lead, a.ndim)):
        for x in np.ndindex(shape):
            others = iter(begins)
            first = [int(places[n][x[k]] if k == axis else next(others)[n]) for k in range(a.ndim)]
            at = tuple(c if k == axis else c + x[k] for k, c in enumerate(first))
            inside = min(first) >= 0 and all(c < s for c, s in zip(at, a.shape))
            assert block[x] == (a[at] if inside else FILL)
            if inside:
                allowed.setdefault(at, []).append(per_block(value, lead, a.ndim)[n][x])
    before = base.copy()
    old = _same_place(before, base, a).copy()
    wrap(a, dt.float32).put_rows(axis, sparse, starts, value, shape)
    for at in np.ndindex(a.shape):
        assert a[at] in allowed.get(at, [old[at]])
    a[...] = 0
    _same_place(before, base, a)[...] = 0
    assert np.array_equal(base, before)


# ------------------------------------------------------------------ atomic updates

PYTHON = {"add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
          "xor": lambda a, b: a ^ b, "xchg": lambda a, b: b}


@SETTINGS
@given(st.sampled_from([*PYTHON, "cas"]), st.sampled_from([dt.int32, dt.uint32, dt.int64, dt.uint64]), leads(),
       st.lists(st.integers(-1, 4), min_size=1, max_size=40), st.integers(0, 2**32 - 1), st.booleans())
def test_updates_of_integers_are_a_sequence(kind, dtype, lead, places, seed, transposed):
    rng = np.random.default_rng(seed)
    i = dt.info(dtype)
    a = rng.integers(0, 3, 8).astype(i.storage)
    array = a[::2] if transposed else a[:4]
    index = np.array(places, np.int32)
    core = index.shape
    lo, hi = (0, 3) if kind == "cas" else dt.int_range(dtype)
    operands = [rng.integers(lo, hi, lead + core, dtype=i.storage, endpoint=True)
                for _ in range(2 if kind == "cas" else 1)]
    want, olds = array.copy(), []
    for n in range(int(np.prod(lead))):
        for x, p in enumerate(places):
            values = [int(per_block(o, lead, 1)[n][x]) for o in operands]
            if not 0 <= p < len(want):
                olds.append(0)
                continue
            now = int(want[p])
            olds.append(now)
            new = (values[1] if now == values[0] else now) if kind == "cas" else PYTHON[kind](now, values[0])
            want[p] = np.array(new & ((1 << dtype.bitwidth) - 1), f"u{i.storage.itemsize}").view(i.storage)
    for old in (True, False):
        copy = a.copy()
        view = wrap(copy[::2] if transposed else copy[:4], dtype)
        done, seen = view.update(kind, [index], operands, None, core, lead, old)
        assert np.array_equal(view.memory.array, want)
        assert done.shape == lead + core
        assert per_block(done, lead, 1)[0].tolist() == [0 <= p < 4 for p in places]
        if old:
            assert seen.dtype == i.carrier and seen.ravel().tolist() == olds
    untouched = copy[1::2] if transposed else copy[4:]
    assert np.array_equal(untouched, a[1::2] if transposed else a[4:])


@pytest.mark.parametrize("dtype", [dt.int32, dt.uint32, dt.int64, dt.uint64, dt.float32], ids=str)
@pytest.mark.parametrize("bins", [4, 1000, 20_000])
@pytest.mark.parametrize("step", [1, 2])
def test_adding_one_number_in_many_places(dtype, bins, step):
    """Many more places than a piece that is counted at once, some of them outside and some masked out."""
    i = dt.info(dtype)
    rng = np.random.default_rng(bins)
    index = rng.integers(-2, bins + 2, (3, 1, 1, 30_000)).astype(np.int32)
    mask = rng.integers(0, 4, index.shape).astype(bool)
    number = np.asarray(3 if i.floating else dt.int_range(dtype)[1] - 1, i.carrier)  # wraps
    a = np.zeros(bins * step, i.storage)
    wrap(a[::step], dtype).update("add", [index], [number], mask, (30_000,), (3, 1, 1), False)
    hits = np.bincount(index[mask & (index >= 0) & (index < bins)], minlength=bins)
    want = [int(n) * int(number) for n in hits]
    if i.integral:
        want = np.array([n & ((1 << dtype.bitwidth) - 1) for n in want], f"u{i.storage.itemsize}").view(i.storage)
    assert a[::step].tolist() == list(want)
    assert step == 1 or not a[1::2].any()


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64], ids=str)
@pytest.mark.parametrize("old", [True, False])
def test_float_additions_round_one_by_one(dtype, old):
    storage = dt.info(dtype).storage
    values = np.random.default_rng(1).normal(size=300).astype(storage)
    a = np.zeros(3, storage)
    index = np.arange(300, dtype=np.int32) % 3
    view = wrap(a, dtype)
    _, seen = view.update("add", [index], [values.astype(dt.info(dtype).carrier)], None, (300,), (), old)
    want, before = np.zeros(3, storage), []
    for k, v in zip(index, values):
        before.append(float(want[k]))
        want[k] = storage.type(float(want[k]) + float(v))  # exact in float64, or rounded innocuously; then once
    assert a.astype(np.float64).tolist() == want.astype(np.float64).tolist()
    if old:
        assert seen.astype(np.float64).tolist() == before


def test_compare_and_swap_compares_bits():
    a = np.array([0.0, -0.0, np.nan, 1.0], np.float32)
    view = wrap(a, dt.float32)
    expected = np.array([-0.0, -0.0, np.nan, 1.0], np.float32)
    view.update("cas", [np.arange(4, dtype=np.int32)], [expected, np.full(4, 5, np.float32)], None, (4,), ())
    assert a.tolist() == [0, 5, 5, 5]


def test_uniform_atomics_act_once_per_block():
    a = np.zeros(1, np.int32)
    zero, one = np.zeros((), np.int32), np.ones((), np.int32)
    _, seen = wrap(a, dt.int32).update("add", [zero], [one], None, (), (2, 3, 1))
    assert a[0] == 6 and seen.ravel().tolist() == [0, 1, 2, 3, 4, 5]


# ------------------------------------------------------------------ element formats


@pytest.mark.parametrize("dtype", [d for d in dt.NUMERIC if d is not dt.tfloat32], ids=str)
def test_every_format_goes_in_and_out(dtype):
    i = dt.info(dtype)
    bits = np.arange(16 if dtype.bitwidth == 4 else 64, dtype=f"u{i.storage.itemsize}")
    a = (bits % 2).astype(np.bool_) if dtype is dt.bool_ else bits.view(i.storage)
    out = np.zeros_like(a)
    origin = [np.arange(len(a) // 8, dtype=np.int32)]
    tile = wrap(a, dtype).tile(origin, (8,), (0,), 0)
    assert tile.dtype == i.carrier
    wrap(out, dtype).put(origin, tile, (8,), (0,))
    assert out.tobytes() == a.tobytes()
    gathered = wrap(a, dtype).gather([np.arange(8)], None, np.zeros(1, i.carrier), (8,))
    assert np.array_equal(gathered, tile[0], equal_nan=i.floating)


def test_read_only_halves_are_converted_once_per_launch():
    a = np.arange(64, dtype=np.float16)
    view = wrap(a, dt.float16)
    view.memory.may_change = False
    origin = [np.arange(4, dtype=np.int32)]
    first = view.tile(origin, (16,), (0,), 0)
    second = view.tile(origin, (16,), (0,), 0)
    third = view.tile(origin, (16,), (0,), 0)
    assert np.array_equal(first, second) and np.shares_memory(second, third) and not third.flags.writeable
    assert third.dtype == np.float32 and third.ravel().tolist() == list(range(64))


@pytest.mark.parametrize("index", [np.int8, np.int32, np.int64, np.uint16])
def test_many_elements_are_taken_part_by_part(monkeypatch, index):
    monkeypatch.setattr(storage, "AT_ONCE", 8)
    a = np.arange(100, dtype=np.float32)
    view = wrap(a, dt.float32)
    view.memory.may_change = False
    i = np.random.default_rng(0).integers(0, 100, (3, 1, 1, 32)).astype(index)
    out = np.empty(i.shape, np.float32)
    assert view.gather([i], None, FILL, (32,), out) is out
    assert np.array_equal(out, a[i]) and np.array_equal(view.gather([i], None, FILL, (32,)), a[i])
    into = np.empty((64, 3), np.float32).T[:, None, None, ::2]  # not in one piece
    assert view.gather([i], None, FILL, (32,), into) is into and np.array_equal(into, a[i])


@pytest.mark.parametrize("wrong", [-1, 100, -2**31, 2**31 - 1])
@pytest.mark.parametrize("where", [0, 7, 8, 95])
def test_a_position_out_of_range_in_any_part(monkeypatch, wrong, where):
    monkeypatch.setattr(storage, "AT_ONCE", 8)
    a = np.arange(1, 101, dtype=np.float32)
    view = wrap(a, dt.float32)
    view.memory.may_change = False
    i = np.random.default_rng(0).integers(0, 100, (3, 1, 1, 32)).astype(np.int32)
    expected = a[i]
    i.reshape(-1)[where], expected.reshape(-1)[where] = wrong, FILL
    out = np.empty(i.shape, np.float32)
    assert np.array_equal(view.gather([i], None, FILL, (32,), out), expected)
    part = view.slice(0, np.asarray(0, np.int32), np.asarray(50, np.int32))
    assert np.array_equal(part.gather([i], None, FILL, (32,), out), np.where((i < 0) | (i >= 50), FILL, expected))


def test_foreign_memory_and_slices_that_differ_are_taken_by_their_own_way():
    a = np.arange(1, 101, dtype=np.float32)
    memory = wrap(a, dt.float32).memory
    memory.may_change = False
    i, n = np.arange(8, dtype=np.int32).reshape(2, 1, 1, 4), [np.asarray(8, np.int32)]
    every = memory.foreign(np.asarray(40, np.int64), n, [np.asarray(-1, np.int32)], dt.int32)
    begin = np.asarray([5, 50], np.int32).reshape(2, 1, 1)
    parts = wrap(a, dt.float32).slice(0, begin, begin + np.int32(6))
    parts.memory.may_change = False
    for view, expected in ((every, 11 - i), (parts, np.where(i < 6, 1 + begin[..., None] + i, FILL))):
        out = np.empty(i.shape, np.float32)
        assert np.array_equal(view.gather([i], None, FILL, (4,), out), expected)


def test_memory_that_changes_is_never_cached_or_shared():
    a = np.zeros(4, np.float16)
    view = wrap(a, dt.float16)
    zero = [np.zeros((), np.int32)]
    for k in range(4):
        loaded = view.tile(zero, (4,), (0,), 0)
        view.put(zero, np.full(4, k + 1, np.float32), (4,), (0,))
        assert loaded.tolist() == [k] * 4


def test_fields_of_records_and_other_odd_strides():
    records = np.zeros(5, [("tag", "u1"), ("x", "<f4"), ("y", "<f8")])
    records["x"] = range(5)
    records["tag"] = 7
    view = wrap(records["x"], dt.float32)
    assert view.strides[0] == 13 // 4
    got = view.tile([np.arange(2, dtype=np.int32)], (4,), (0,), FILL)
    assert got.ravel().tolist() == [0, 1, 2, 3, 4, FILL, FILL, FILL]
    view.put([np.ones((), np.int32)], np.full(4, 9, np.float32), (4,), (0,))
    assert records["x"].tolist() == [0, 1, 2, 3, 9] and set(records["tag"].tolist()) == {7} and not records["y"].any()


def test_broadcast_and_empty_and_zero_rank_arrays():
    zero = np.zeros((), np.int32)
    same = np.broadcast_to(np.float32(3), (4, 4))
    assert wrap(same, dt.float32).tile([zero, zero], (4, 4), (0, 1), 0).tolist() == [[3] * 4] * 4
    empty = np.zeros((0, 4), np.float32)
    assert wrap(empty, dt.float32).tile([zero, zero], (2, 4), (0, 1), FILL).tolist() == [[FILL] * 4] * 2
    wrap(empty, dt.float32).put([zero, zero], np.ones((2, 4), np.float32), (2, 4), (0, 1))
    point = np.array(5.0, np.float32)
    view = wrap(point, dt.float32)
    assert view.tile([], (), (), 0) == 5 and view.shape == ()
    view.put([], np.array(6, np.float32), (), ())
    assert point == 6
    view.scatter([], np.array(7, np.float32), None, ())
    assert point == 7 and view.gather([], None, np.zeros(()), ()) == 7
    view.update("add", [], [np.ones((), np.float32)], None, (), (3,))
    assert point == 10


# ------------------------------------------------------------------ wrap


def test_wrap_takes_what_exports_its_memory():
    class Exporter:
        def __init__(self, a):
            self.a = a
            self.__array_interface__ = a.__array_interface__

    a = np.arange(4, dtype=np.uint16)
    view = wrap(Exporter(a), dt.bfloat16)
    assert view.memory.array.dtype == ml_dtypes.bfloat16 and np.shares_memory(view.memory.array, a)
    with pytest.raises(TypeError, match="no array"):
        wrap([1, 2], dt.int32)
    with pytest.raises(TypeError, match="does not hold float32"):
        wrap(np.zeros(3), dt.float32)


def test_wrap_checks_the_index_dtype():
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1 << 31,), (0,))
    with pytest.raises(OverflowError, match=r"size of array 'x'.*IndexedWithInt64"):
        wrap(huge, dt.int8, name="x")
    assert wrap(huge, dt.int8, dt.int64).shape[0] == 1 << 31


def test_wrap_knows_read_only_arrays():
    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    view = wrap(a, dt.float32, name="weights")
    assert not view.writable and view.name == "weights"
    assert wrap(np.zeros(3, np.float32), dt.float32).writable
    with pytest.raises(ValueError, match="read-only"):
        view.put([np.zeros((), np.int32)], np.ones(2, np.float32), (2,), (0,))
    with pytest.raises(ValueError, match="read-only"):
        view.scatter([np.arange(2)], np.ones(2, np.float32), None, (2,))


def test_shape_and_strides_are_carriers_of_the_index_dtype():
    view = wrap(np.zeros((3, 5), np.float32).T, dt.float32, dt.int64)
    assert [x.dtype for x in (*view.shape, *view.strides)] == [np.int64] * 4
    assert [int(x) for x in (*view.shape, *view.strides)] == [5, 3, 1, 5]


# ------------------------------------------------------------------ one of several arrays per block


def three_arrays():
    arrays = [np.arange(k * 100, k * 100 + n, dtype=np.float32) for k, n in enumerate((8, 5, 12))]
    return arrays, ArrayList(wrap(a, dt.float32, name=f"x[{k}]") for k, a in enumerate(arrays))


def test_list_items_may_differ_by_block():
    arrays, views = three_arrays()
    which = np.array([2, 0, 1, 2, 5], np.int32)
    item = views.pick(which)
    assert item.shape[0].tolist() == [12, 8, 5, 12, 0] and item.strides[0].tolist() == [1, 1, 1, 1, 0]
    got = item.tile([np.arange(5, dtype=np.int32) % 2], (8,), (0,), FILL)
    for n, (k, j) in enumerate(zip(which, [0, 1, 0, 1, 0])):
        a = np.append(arrays[k] if k < 3 else [], [FILL] * 16)
        assert got[n].tolist() == np.where(np.arange(8) + 8 * j < (len(arrays[k]) if k < 3 else 0), a[8 * j:8 * j + 8],
                                           FILL).tolist()
    value = np.arange(5, dtype=np.float32)[:, None] + np.zeros((5, 8), np.float32)
    item.put([np.zeros((), np.int32)], value, (8,), (0,))
    assert [a[0] for a in arrays] == [1, 2, 3]
    assert views.pick(np.asarray(1)) is views[1]
    assert views.pick(np.asarray(-1)).tile([np.zeros((), np.int32)], (2,), (0,), FILL).tolist() == [FILL] * 2


def test_gather_scatter_and_update_of_differing_arrays():
    arrays, views = three_arrays()
    item = views.pick(np.array([1, 0]).reshape(2, 1, 1))
    index = np.array([0, 4, 7], np.int32)
    fill = np.full(1, FILL)
    assert item.gather([index], None, fill, (3,)).reshape(2, 3).tolist() == [[100, 104, FILL], [0, 4, 7]]
    mask = np.array([True, False, True])
    item.scatter([index], np.array([[-1, -2, -3]], np.float32).reshape(1, 1, 1, 3), mask, (3,))
    assert arrays[1].tolist()[:5] == [-1, 101, 102, 103, 104] and arrays[0][7] == -3
    done, seen = item.update("add", [index], [np.ones(3, np.float32)], None, (3,), (2, 2, 1))
    assert done[:, 0, 0].tolist() == [[True, True, False], [True] * 3]
    assert seen[:, :, 0, 0].tolist() == [[-1, 0], [-1, 0]]
    assert arrays[0][4] == 6 and arrays[1][4] == 106


def test_join_of_descriptors():
    arrays, views = three_arrays()
    sliced = views[2].slice(0, np.array([4, 6], np.int32), np.array([8, 7], np.int32))
    lanes = [np.array([0, 3]), np.array([1, 2])]

    def flat(n):
        return lambda x, core: np.broadcast_to(x, (n,))

    both = join((4,), [(lanes[0], views[0], flat(2)), (lanes[1], sliced, flat(2))])
    assert isinstance(both, Choice) and both.shape[0].tolist() == [8, 4, 1, 8]
    got = both.tile([np.zeros((), np.int32)], (2,), (0,), FILL)
    assert got.tolist() == [[0, 1], [204, 205], [206, FILL], [0, 1]]
    narrowed = both.lanes(lambda x, core: x[np.array([2, 3])])
    assert narrowed.shape[0].tolist() == [1, 8]
    assert join((4,), [(lanes[0], views[1], flat(2)), (lanes[1], views[1], flat(2))]) is views[1]
