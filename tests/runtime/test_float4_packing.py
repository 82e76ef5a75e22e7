"""Arrays of float4 in CPU memory, two elements to a byte. What torch gives of its tensors has a stand-in here."""

import sys
import types

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from cutile.bounds import bounds
from cutile.cli.diff.compare import difference
from cutile.compilation import CallingConvention, KernelSignature
from cutile.runtime import launch_key
from cutile.runtime.arguments import array_of
from cutile.runtime.float4_packing import PackedArray, unpacked
from tests.gpu.arrays import Tracked, at, autograd

F4 = np.dtype(ml_dtypes.float4_e2m1fn)


@pytest.fixture
def tensor(monkeypatch):
    """Make a tensor of torch.float4_e2m1fn_x2 on the bytes of an array."""
    torch = types.ModuleType("torch")
    pair = type("dtype", (), {"__module__": "torch", "__repr__": lambda self: "torch.float4_e2m1fn_x2"})()
    torch.strided, torch.uint8 = "strided", "uint8"

    class Tensor(Tracked):
        layout, dtype, is_cuda = torch.strided, pair, False
        device = types.SimpleNamespace(type="cpu", index=None)
        is_neg = is_conj = lambda self: False
        data_ptr = lambda self: self.pairs.ctypes.data

        def __init__(self, pairs):
            self.pairs = pairs

        def detach(self):
            return self

        def view(self, to):
            assert to is torch.uint8
            return types.SimpleNamespace(numpy=lambda: self.pairs)

    torch.Tensor = Tensor
    monkeypatch.setitem(sys.modules, "torch", autograd(torch))
    monkeypatch.setattr(launch_key, "READERS", dict(launch_key.READERS))
    return Tensor


def some_bytes(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def elements(pairs):
    """Element by element, one a byte."""
    out = np.zeros((*pairs.shape[:-1], 2 * pairs.shape[-1]), np.uint8)
    for place in np.ndindex(out.shape):
        byte = int(pairs[(*place[:-1], place[-1] // 2)])
        out[place] = byte // 16 if place[-1] % 2 else byte % 16
    return out.view(F4)


def same(a, b):
    return np.array_equal(a.view(np.uint8), b.view(np.uint8))


@ct.kernel
def copy1(x, y, N: ct.Constant[int]):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), N))


@ct.kernel
def copy2(x, y, M: ct.Constant[int], N: ct.Constant[int]):
    ct.store(y, (ct.bid(0), ct.bid(1)), ct.load(x, (ct.bid(0), ct.bid(1)), (M, N)))


def test_the_low_half_of_a_byte_comes_first(tensor):
    every = np.arange(256, dtype=np.uint8)
    out = np.zeros(512, np.float32)

    @ct.kernel
    def widened(x, y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 64).astype(ct.float32))

    ct.launch(None, (8,), widened, (tensor(every), out))
    assert np.array_equal(out, elements(every).astype(np.float32)) and out[4:6].tolist() == [1, 0] and every[2] == 2
    every[:] = every[::-1].copy()
    ct.launch(None, (8,), widened, (tensor(every), out))  # which looks at the memory anew
    assert np.array_equal(out, elements(every).astype(np.float32)) and out[4:6].tolist() == [-3, -6]


def test_what_a_kernel_sees(tensor):
    a = array_of(tensor(some_bytes(3, 5)[::-1, 1:3]))
    assert a.dtype is ct.float4_e2m1fn and isinstance(a.owner, PackedArray)
    assert (a.shape, a.strides, a.ndim, a.size) == ((3, 4), (-10, 1), 2, 12)
    assert (a.pointer, a.itemsize) == (a.owner.pairs.ctypes.data, 1)


CUTS = [lambda a: a, lambda a: a[::-1], lambda a: a[1:-1, 2:5], lambda a: a[::-2, 3:], lambda a: a[:, 1::7],
        lambda a: a[::3, 4:5], lambda a: a[3:3], lambda a: a[:, 3:3], lambda a: np.broadcast_to(a[:1], (5, a.shape[1]))]


@pytest.mark.parametrize("cut", CUTS)
def test_views_are_read(tensor, cut):
    x = cut(some_bytes(12, 7))
    y = np.zeros((x.shape[0], 2 * x.shape[1]), F4)
    ct.launch(None, (4, 4), copy2, (tensor(x), y, 4, 4))
    assert same(y, elements(x))


@pytest.mark.parametrize("cut", CUTS[:-1])
def test_views_are_written_and_nothing_else_is(tensor, cut):
    memory = some_bytes(12, 7)
    x, want = ~some_bytes(12, 14), memory.copy()
    y = cut(memory)
    cut(want)[...] = (x[:y.shape[0], 0:2 * y.shape[1]:2] & 15) + 16 * (x[:y.shape[0], 1:2 * y.shape[1]:2] & 15)
    ct.launch(None, (4, 4), copy2, ((x & 15).view(F4), tensor(y), 4, 4))
    assert np.array_equal(memory, want)


def test_what_the_kernel_does_not_reach_stays(tensor):
    x, y = some_bytes(8), ~some_bytes(8)
    want = np.concatenate([x[:4], y[4:]])
    ct.launch(None, (2,), copy1, (tensor(x), tensor(y), 4))
    assert np.array_equal(y, want)

    @ct.kernel
    def odd(x, y):
        ct.scatter(y, 2 * ct.arange(8, dtype=ct.int32) + 1, ct.gather(x, 2 * ct.arange(8, dtype=ct.int32) + 1))

    x, y = some_bytes(8), ~some_bytes(8)
    want = x & 0xF0 | y & 0x0F
    ct.launch(None, (1,), odd, (tensor(x), tensor(y)))
    assert np.array_equal(y, want)


def test_only_what_may_have_been_stored_to_is_packed(tensor, monkeypatch):
    packed = []
    monkeypatch.setattr(PackedArray, "pack", lambda self, copy: packed.append(self.pairs))
    x, y = some_bytes(8), some_bytes(8)
    ct.launch(None, (4,), copy1, (tensor(x), tensor(y), 4))
    assert len(packed) == 1 and packed[0] is y


def test_arrays_that_are_read_only(tensor):
    x, y = some_bytes(8), np.zeros(16, F4)
    x.flags.writeable = False
    ct.launch(None, (4,), copy1, (tensor(x), y, 4))
    assert same(y, elements(x))
    with pytest.raises(TypeError, match="stores to parameter `y`, but the array given for it is read-only"):
        ct.launch(None, (4,), copy1, (y, tensor(x), 4))


# ------------------------------------------------------------------ arrays that overlap


@pytest.mark.parametrize("first, second", [(slice(0, 16), slice(2, 18)), (slice(2, 18), slice(0, 16)),
                                           (slice(0, 16), slice(0, 16)), (slice(0, 9), slice(9, 18))])
def test_packed_arrays_that_overlap_see_each_other(tensor, first, second):
    memory = some_bytes(18)
    alone = elements(memory)
    ct.launch(None, (8,), copy1, (tensor(memory[first]), tensor(memory[second]), 4))
    ct.launch(None, (8,), copy1, (alone[2 * first.start:2 * first.stop], alone[2 * second.start:2 * second.stop], 4))
    assert same(elements(memory), alone)


def test_one_tensor_for_two_parameters(tensor):
    x = tensor(some_bytes(4))
    before = x.pairs.copy()

    @ct.kernel
    def there_and_back(x, y):
        ct.store(x, 0, ct.load(y, 1, 4))
        ct.store(x, 1, ct.load(y, 0, 4))

    ct.launch(None, (1,), there_and_back, (x, x))
    assert np.array_equal(x.pairs, np.concatenate([before[2:], before[2:]]))


def test_an_array_that_reaches_over_others(tensor):
    """The middle one ends long before the first does, which the last overlaps as well."""
    memory = some_bytes(16)
    before = elements(memory)

    @ct.kernel
    def k(x, y, z):
        ct.store(z, 0, ct.load(y, 0, 4))
        ct.store(y, 0, ct.load(x, 6, 4))

    ct.launch(None, (1,), k, (tensor(memory), tensor(memory[2:4]), tensor(memory[12:14])))
    assert same(elements(memory[12:14]), before[4:8]) and same(elements(memory[2:4]), before[4:8])


def test_memory_shared_with_an_array_of_bytes(tensor):
    memory = some_bytes(4, 8)
    packed, raw = tensor(memory[:, :4]), memory[:, :4]
    for args in ((packed, raw), (raw, packed)):
        @ct.kernel
        def emptied(x, y):
            ct.store(y, (0, 0), ct.zeros((2, 2), y.dtype))

        with pytest.raises(TypeError, match=r"`[xy]`, of float4_e2m1fn packed two to a byte, and `[xy]`, of uint8, "
                                            "share; copy one"):
            ct.launch(None, (1,), emptied, args)
    with pytest.raises(TypeError, match=r"`x`, of .* `y\[1\]`, of uint8"):
        @ct.kernel
        def of_list(x, y):
            ct.store(y[0], (0, 0), ct.zeros((2, 2), ct.uint8))

        ct.launch(None, (1,), of_list, (packed, [np.zeros((2, 2), np.uint8), raw]))


def test_memory_shared_with_an_array_of_bytes_that_may_be(tensor):
    memory = some_bytes(4, 8)
    sums = np.zeros((4, 8), np.float32)

    @ct.kernel
    def both(x, y, z):
        ct.store(z, (0, 0), ct.load(x, (0, 0), (4, 8)).astype(ct.float32) + ct.load(y, (0, 0), (4, 8)))

    ct.launch(None, (1,), both, (tensor(memory[:, :4]), memory, sums))  # only read
    assert np.array_equal(sums, elements(memory[:, :4]).astype(np.float32) + memory)

    rows = some_bytes(4, 9)  # of packed elements and, in the last column, something else
    x, want = some_bytes(4, 8), rows.copy()
    want[:, :8] = x

    @ct.kernel
    def with_scales(x, y, scales):
        ct.store(y, (0, 0), ct.load(x, (0, 0), (4, 16)))
        ct.store(scales, (0, 0), ct.full((4, 1), 7, ct.uint8))

    want[:, 8] = 7
    ct.launch(None, (1,), with_scales, (tensor(x), tensor(rows[:, :8]), rows[:, 8:]))
    assert np.array_equal(rows, want)


# ------------------------------------------------------------------ lists, tuples, failures


def test_lists_and_tuples(tensor):
    @ct.kernel
    def gathered(xs, pair, n):
        for i in range(n):
            ct.store(pair[1], i, ct.load(xs[i], 0, 4))

    xs, y = [some_bytes(2), some_bytes(4)[2:], some_bytes(2)], some_bytes(6)
    one_a_byte = elements(xs[1])
    ct.launch(None, (1,), gathered, ([tensor(xs[0]), one_a_byte, tensor(xs[2])], (1, tensor(y)), 3))
    assert np.array_equal(y, np.concatenate(xs))


def test_a_list_that_is_written(tensor):
    @ct.kernel
    def spread(x, ys, n):
        for i in range(n):
            ct.store(ys[i], 0, ct.load(x, i, 4))

    x, ys = some_bytes(6), [np.zeros(2, np.uint8) for _ in range(3)]
    ct.launch(None, (1,), spread, (tensor(x), list(map(tensor, ys)), 3))
    assert np.array_equal(np.concatenate(ys), x)


def test_what_was_stored_before_a_failure_is_there(tensor):
    @ct.kernel
    def failing(x, y):
        ct.store(y, 0, ct.load(x, 0, 4))
        ct.assert_(ct.bid(0) > 0)

    x, y = some_bytes(2), np.zeros(2, np.uint8)
    with pytest.raises(ct.TileError):
        ct.launch(None, (1,), failing, (tensor(x), tensor(y)))
    assert np.array_equal(x, y)


@pytest.mark.parametrize("pairs, says", [
    (np.zeros((), np.uint8), r"`x`\): .*has no axis.*reshape\(1\)"),
    (np.zeros((4, 2), np.uint8).T, r"`x`\): .*not contiguous along its last axis.*contiguous\(\)"),
    (np.zeros(8, np.uint8)[::2], "not contiguous"), (np.zeros(8, np.uint8)[::-1], "not contiguous")])
def test_memory_that_cannot_be_used(tensor, pairs, says):
    with pytest.raises(TypeError, match=says):
        ct.launch(None, (1,), copy1, (tensor(pairs), np.zeros(4, F4), 4))


def test_arrays_in_different_places(tensor):
    with pytest.raises(TypeError, match="`x` is in CPU memory, `y` in GPU memory"):
        ct.launch(None, (1,), copy1, (tensor(some_bytes(4)), at(4096, (4,), __dlpack_device__=lambda: (2, 0)), 4))


# ------------------------------------------------------------------ not launches


def test_signatures_say_what_they_say_of_float4(tensor):
    x = some_bytes(4)
    said = []
    for args in ((tensor(x), tensor(x), 4), (elements(x), elements(x), 4)):
        with pytest.raises(ValueError) as e:
            KernelSignature.from_kernel_args(copy1, args, CallingConvention.cutile_python_v2())
        said.append(str(e.value))
    assert said[0] == said[1] and "pass such data in uint8 arrays" in said[0]


def test_bounds_and_comparisons_run_on_copies(tensor):
    x, y = some_bytes(4), np.zeros(4, np.uint8)
    found = bounds(copy1, (2,), (tensor(x), tensor(y), 4))
    assert same(found.arrays[1].value, elements(x)) and not found.arrays[1].bound.any()
    report = difference(copy1, (2,), (tensor(x), tensor(y), 4), ("batch", "block"))
    assert report.first is None and report.arrays == () and not y.any()


def test_unpacked_leaves_of_other_kinds():
    x = np.zeros(3)
    packed = PackedArray(some_bytes(3))
    a, n, (b, c), d = unpacked([x, 2.5, [x, packed], packed])
    assert a is x and n == 2.5 and b is x and same(c, elements(packed.pairs)) and np.shares_memory(c, d)
