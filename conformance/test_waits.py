"""Loops with ordered accesses: tiles of flags, flags of small dtypes, memory that nobody writes. What does not run."""

import warnings

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, named, run


def by_adding_zeros(flag, i):
    at = ct.full((2,), i, ct.int32)
    while ct.min(ct.atomic_add(flag, at, 0), 0) == 0:
        pass


def by_adding_a_tile_of_zeros(flag, i):
    at, nothing = ct.full((2, 2), i, ct.int32), ct.zeros((2, 2), ct.int32)
    while ct.sum(ct.sum(ct.atomic_add(flag, at, nothing), 1), 0) == 0:
        pass


def by_adding_what_may_be_zero(flag, i):
    at, nothing = ct.full((2,), i, ct.int32), i - i
    while ct.max(ct.atomic_add(flag, at, nothing), 0) == 0:
        pass


def by_a_masked_update(flag, i):
    """Adds nothing, since no element takes part."""
    memory, nowhere = flag.get_raw_memory(), ct.full((2,), i, ct.int32) < 0
    while ct.load(flag, i, (), memory_order="ACQUIRE", memory_scope="DEVICE") == 0:
        memory.atomic_add_offset(ct.full((2,), i, ct.int32), 1, mask=nowhere)


@clause("MACH-4.atomic", "MACH-4.acquire")
@pytest.mark.parametrize("wait", [by_adding_zeros, by_adding_a_tile_of_zeros, by_adding_what_may_be_zero,
                                  by_a_masked_update], ids=lambda f: f.__name__)
def test_waits_by_tiles(wait):
    """The first block waits for the second, which waits for the third."""
    @ct.kernel
    def k(flag):
        b = ct.bid(0)
        if b < 3:
            wait(flag, b + 1)
        ct.atomic_xchg(flag, b, 1)

    flag = np.zeros(8, np.int32)
    launch(k, flag, grid=(4,))
    assert flag.tolist() == [1] * 4 + [0] * 4


@clause("MACH-4.acquire", "MEM-2.acquire")
@pytest.mark.parametrize("padding", ["UNDETERMINED", "ZERO"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "float32", "int32", "int64"])
def test_flags(dtype, padding):
    """A warning, if there is one, is of a flag that no atomic can read: not of the other one."""
    @ct.kernel
    def k(flag, plain, order):
        b = ct.bid(0)
        while ct.load(flag, 0, (), memory_order="ACQUIRE", memory_scope="DEVICE", padding_mode=padding) < b:
            pass
        while ct.load(plain, 0, (1,), memory_order="ACQUIRE", memory_scope="DEVICE").item() < b:
            pass
        ct.store(order, b, b + 1)
        ct.store(plain, 0, b + 1, memory_order="RELEASE", memory_scope="DEVICE")
        ct.store(flag, 0, ct.astype(b + 1, flag.dtype), memory_order="RELEASE", memory_scope="DEVICE")

    flag, plain, order = np.zeros(1, dtype), np.zeros(1, np.int32), np.zeros(4, np.int32)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        launch(k, flag, plain, order, grid=(4,))
    assert flag[0] == plain[0] == 4 and order.tolist() == [1, 2, 3, 4]
    other = "load with a padding" if padding == "ZERO" else f"load of {dtype}"
    assert all(other in str(w.message) for w in told) and not (told and padding != "ZERO" and dtype[-2:] in ("32", "64")
                                                               and dtype.startswith("int"))


@clause("MEM-2.relaxed")
@pytest.mark.parametrize("dtype", ["int16", "float16", "int32"])
@pytest.mark.parametrize("order", ["RELAXED", "ACQUIRE"])
def test_loops_over_memory_that_nobody_writes(dtype, order):
    """Such a loop waits for nobody: it has nothing to warn of."""
    @ct.kernel
    def k(x, out):
        n = 0
        while ct.load(x, n, (), memory_order=order, memory_scope="DEVICE") > 0:
            n += 1
        ct.store(out, ct.bid(0), n)

    x = np.array([3, 2, 1, 0, 5], dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(k, x, np.zeros(3, np.int32), grid=(3,)).tolist() == [3] * 3


@clause("MEM-2.relaxed")
@pytest.mark.parametrize("order", ["RELAXED", "RELEASE", "ACQ_REL"])
def test_updates_in_loops(order):
    """Nobody reads the old values."""
    @ct.kernel
    def k(x, n):
        for i in range(n):
            ct.atomic_add(x, i + ct.arange(2, dtype=ct.int32), 1, memory_order=order)

    assert run(k, np.zeros(5, np.int32), 4, grid=(3,)).tolist() == [3, 6, 6, 6, 3]


def endless(out, n):
    while True:
        n += 1
        ct.store(out, 1, n)


def endless_here(out, n):
    if n > 2:
        endless(out, n)
        return 3
    return 4


@clause("MACH-2", "CALL-3.unreached")
def test_calls_without_end_that_are_not_reached():
    @ct.kernel
    def k(out, n):
        for i in range(n - 1):
            endless(out, i)
            ct.store(out, 2, i)
        if n > 5:
            endless(out, n)
            ct.store(out, 3, n)
            n = 7
        elif n > 4:
            endless(out, n + 1)
            n = 8
        for i in range(n - 1):
            if i > 3:
                endless(out, i)
                n = i
            else:
                endless(out, i + 1)
                n = i + 1
            ct.store(out, 3, n)
        ct.store(out, 0, endless_here(out, n) + n)

    assert run(k, np.zeros(4, np.int32), 1).tolist() == [5, 0, 0, 0]


@clause("MACH-2", "LOOP-1.stop")
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("divide", [lambda x, y: x // y, lambda x, y: x % y], ids=named)
def test_divisors_that_a_cast_makes_zero(divide, n):
    """A loop that does not run divides by nothing, whatever is known of the divisor."""
    @ct.kernel
    def k(x, out, n):
        v = ct.load(x, 0, 8)
        large, zero = ct.full((8,), 257, ct.int32), ct.full((8,), 256, ct.int32)
        for _ in range(n):
            v = v + divide(ct.load(x, 0, 8), ct.astype(large, ct.int8))
        for _ in range(n - 1):
            v = v + divide(ct.load(x, 0, 8), ct.astype(zero, ct.int8))
        ct.store(out, 0, v)

    x = np.arange(8, dtype=np.int8)
    want = x + (x if n and divide(7, 1) == 7 else 0)
    assert run(k, x, np.zeros(8, np.int8), n).tolist() == want.tolist()
