"""Random numbers: the words of Random123, distributions, and equal bits from the code for GPUs."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import cutile as ct
from cutile import lib
from tests.lib.applied import applied, refused
from tests.tileir_eval.kernels import instead_of_interpreter

# Counter, key and words of Random123's file of known answers.
KNOWN = [((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
         ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
         ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
          (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))]


def philox(counter, key):
    """Philox 4x32-10 in Python's integers."""
    a, b, c, d = counter
    first, second = key
    for _ in range(10):
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = q >> 32 ^ b ^ first, q & 0xFFFFFFFF, p >> 32 ^ d ^ second, p & 0xFFFFFFFF
        first, second = first + 0x9E3779B9 & 0xFFFFFFFF, second + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def bits_of(seed, index):
    return philox((index & 0xFFFFFFFF, index >> 32 & 0xFFFFFFFF, 0, 0), (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF))[0]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers(counter, key, words):
    assert philox(counter, key) == words  # the reference of the other tests
    tiles = [np.full(4, w, np.uint32) for w in (*counter, *key)]
    for k in range(4):
        assert applied(lambda a, b, c, d, e, f: lib.philox((a, b, c, d), (e, f))[k], *tiles).tolist() == [words[k]] * 4  # noqa: B023
        of_constants = applied(lambda t: t + lib.philox(counter, key)[k], np.zeros(4, np.uint32))  # noqa: B023
        assert of_constants.tolist() == [words[k]] * 4


@pytest.mark.parametrize("seed", [0, 17, -1, 2**63 - 1, 2**64 - 1, 0x123456789ABCDEF])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint64, np.int8])
def test_bits(seed, dtype):
    i = np.array([0, 1, 2, 3, 100, 127, *([2**31 - 1] if np.dtype(dtype).itemsize > 1 else [5]),
                  *([2**40 + 7] if np.dtype(dtype).itemsize > 4 else [6])]).astype(dtype)
    got = applied(lambda t: lib.random_bits(seed, t), i, dtype=np.uint32)
    assert got.tolist() == [bits_of(seed, int(v)) for v in i]


@pytest.mark.parametrize("seed", [3, -3, 2**40])
def test_a_seed_of_run_time_gives_what_the_constant_gives(seed):
    @ct.kernel
    def kernel(i, y, seed: ct.ScalarInt64):
        ct.store(y, 0, lib.random_bits(seed, ct.load(i, 0, (8,))))

    i, y = np.arange(8, dtype=np.int32), np.zeros(8, np.uint32)
    ct.launch(None, (1,), kernel, (i, y, seed))
    assert y.tolist() == [bits_of(seed, int(v)) for v in i]


def test_negative_indices_count_as_64_bits():
    for dtype in (np.int8, np.int32, np.int64):
        assert applied(lambda t: lib.random_bits(1, t), np.array([-1, -2], dtype), dtype=np.uint32).tolist() == \
            [bits_of(1, 2**64 - 1), bits_of(1, 2**64 - 2)]


N = 4096
INDEX = np.arange(N, dtype=np.int32)
EDGES = [0, 1, 2, 3, 2**31, 2**32 - 1, 2**32 - 2, 2**31 - 1, 255, 256]
BITS = np.array([*EDGES, *np.geomspace(1, 2**32 - 1, 246)], np.uint32)


def test_uniform_numbers():
    assert applied(lib.to_uniform, BITS, dtype=np.float32).tolist() == [(int(b) >> 8) / 2**24 for b in BITS]
    u = np.sort(applied(lambda t: lib.uniform(5, t), INDEX, dtype=np.float32).astype(float))
    assert 0 <= u[0] and u[-1] < 1
    assert distance(u, u) < 1.95 / math.sqrt(N)  # Kolmogorov and Smirnov, 0.1 %


def distance(sample, cdf):
    """The largest distance between the share of a sorted sample and a distribution function at it."""
    steps = np.arange(N + 1) / N
    return max(np.abs(steps[1:] - cdf).max(), np.abs(steps[:-1] - cdf).max())


def test_normal_numbers():
    z = np.sort(applied(lambda t: lib.normal(5, t), INDEX, dtype=np.float32).astype(float))
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in z])
    assert distance(z, cdf) < 1.95 / math.sqrt(N)


def test_quantiles():
    got = applied(lib.to_normal, BITS, dtype=np.float32)
    with mpmath.workdps(30):
        for b, z in zip(map(int, BITS), got.astype(float), strict=True):
            rest = (mpmath.mpf(2**31 - 1 - (b >> 1)) + 0.5) / 2**31  # 1 - 2 p
            exact = mpmath.sqrt(2) * mpmath.erfinv(rest) * (-1 if b & 1 else 1)
            assert abs(z - exact) <= 2e-6 * abs(exact), (b, z, exact)
    assert np.abs(got).max() < 6.34


@pytest.mark.parametrize("f", [lib.random_bits, lib.uniform, lib.normal])
def test_code_for_gpus_gives_equal_bits(f):
    dtype = np.uint32 if f is lib.random_bits else np.float32
    i = np.arange(1024, dtype=np.int32)
    want = applied(lambda t: f(9, t), i, dtype=dtype)
    with instead_of_interpreter() as ran:
        got = applied(lambda t: f(9, t), i, dtype=dtype)
    assert ran and np.array_equal(got.view(np.uint32), want.view(np.uint32))


def test_numbers_do_not_depend_on_tiles():
    @ct.kernel
    def kernel(y, N: ct.Constant[int]):
        i = ct.bid(0)
        ct.store(y, i, lib.normal(3, i * N + ct.arange(N, dtype=ct.int32)))

    found = [np.zeros(256, np.float32) for _ in range(3)]
    for y, n in zip(found, (16, 64, 256), strict=True):
        ct.launch(None, (256 // n,), kernel, (y, n))
    assert all(np.array_equal(a, b) for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(("f", "says"), [
    (lambda t: lib.uniform(1.5, t), "seed must be an integer scalar, got the number 1.5"),
    (lambda t: lib.uniform(t, t), "seed must be an integer scalar, got int32 of shape"),
    (lambda t: lib.normal(1, t.astype(ct.float32)), "expected a tile of integers, got float32"),
    (lambda t: lib.to_normal(t), "to_normal.*uint32"),
    (lambda t: lib.to_uniform(t), "to_uniform.*uint32"),
    (lambda t: lib.philox((t, 0, 0, 0), (0, 0)), "philox.*counter must be a tuple of four tiles of uint32"),
    (lambda t: lib.philox((0, 0, 0, 0), (0, 0, 0)), "philox.*key must be a tuple of two tiles of uint32"),
])
def test_what_is_refused(f, says):
    refused(f, np.zeros(4, np.int32), says=says)
