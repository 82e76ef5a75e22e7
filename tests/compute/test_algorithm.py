"""Calls of algorithms on GPU arrays: later ones are one call of C code, which leaves to Python what is out of the
ordinary. The GPU is none.
"""

from __future__ import annotations

import numpy as np
import pytest

from cutile import compute
from cutile.compute import DoubleBuffer, OpKind, arrays, delegation, steps
from cutile.compute.plans import Plan
from cutile.gpu.driver import DriverError
from cutile.runtime import launch_cache
from tests.gpu import extension
from tests.gpu.fake_driver import installed
from tests.gpu.fields_in_c import FieldsArray, array
from tests.runtime.test_c_readers import offers

N = 100_000


@pytest.fixture
def gpu(monkeypatch):
    """Arrays like those of CuPy are read by C code, from their second call on."""
    module = extension.built()
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    extension.installed(monkeypatch)
    offers(monkeypatch, FieldsArray)
    before = dict(arrays.KINDS)
    arrays.KINDS.clear()
    compute.clear_all_caches()
    fake = installed(monkeypatch)
    fake.contexts[:] = [0x1000]
    yield fake
    arrays.KINDS.clear()
    arrays.KINDS.update(before)
    compute.clear_all_caches()


def line(k: int, n: int = N, dtype: str = "f4"):
    return array((1 << 40) + (k << 30), (n,), (1,), dtype)


def in_c_alone(monkeypatch) -> None:
    """From now on nothing of a plan may run in Python."""
    def fail(*_):
        raise AssertionError("a call ran in Python")
    for cls, name in ((Plan, "run"), (Plan, "run_once"), (Plan, "go_on"), (steps.Step, "run")):
        monkeypatch.setattr(cls, name, fail)


def pointers(launch) -> set[int]:
    return {int.from_bytes(p, "little") for p in launch["parameters"] if len(p) == 8}


def memory(gpu) -> tuple[int, int]:
    return gpu.names().count("cuMemAllocAsync"), gpu.names().count("cuMemFreeAsync")


def reduced(k: int, first: float = 0.0, stream=7) -> None:
    compute.reduce_into(line(k), line(k + 1, 1), N, OpKind.PLUS, np.float32(first), stream=stream)


def test_later_one_shot_calls_are_c_code(gpu, monkeypatch):
    for k in range(3):
        reduced(2 * k)
    in_c_alone(monkeypatch)
    gpu.launches.clear()
    before = memory(gpu)
    reduced(20, 2.5, stream=9)
    first, second = gpu.launches
    assert (first["stream"], second["stream"]) == (9, 9) and memory(gpu) == (before[0] + 1, before[1] + 1)
    assert line(20).data.ptr in pointers(first) and line(21).data.ptr in pointers(second)
    assert int(np.float64(2.5).view(np.int64)) in pointers(second) and pointers(first) & pointers(second)


def test_later_calls_of_objects_are_c_code(gpu, monkeypatch):
    made = compute.make_reduce_into(line(0), line(1, 1), OpKind.PLUS)
    need = made(None, line(0), line(1, 1), OpKind.PLUS, N)
    for _ in range(3):
        made(line(5, need, "u1"), line(0), line(1, 1), OpKind.PLUS, N)
    transform = compute.make_unary_transform(line(0), line(1), OpKind.NEGATE)
    for _ in range(3):
        transform(line(0), line(1), OpKind.NEGATE, N)
    in_c_alone(monkeypatch)
    gpu.launches.clear()
    assert made(line(6, need, "u1"), line(2), line(3, 1), OpKind.PLUS, N, stream=8) == need
    transform(line(2), line(4), OpKind.NEGATE, N)
    assert [launch["stream"] for launch in gpu.launches] == [8, 8, 0]
    assert line(6).data.ptr in pointers(gpu.launches[1]) and {line(k).data.ptr for k in (2, 4)} <= pointers(
        gpu.launches[2])
    assert "cuMemAllocAsync" not in gpu.names()
    assert made(None, line(2), line(3, 1), OpKind.PLUS, N) == need and len(gpu.launches) == 3


def test_arrays_of_another_dtype_are_other_calls(gpu):
    """They are told apart where only their dtypes differ."""
    for dtype in ("f4", "i4", "u4") * 4:
        compute.unary_transform(line(0, dtype=dtype), line(1, dtype=dtype), OpKind.NEGATE, N)
    functions = [launch["function"] for launch in gpu.launches]
    assert len(set(functions[:3])) == 3 and functions == functions[:3] * 4
    made = compute.make_unary_transform(line(0), line(1), OpKind.NEGATE)
    for _ in range(3):
        made(line(0), line(1), OpKind.NEGATE, N)
        with pytest.raises(TypeError, match="argument `d_in`: this object was made for"):
            made(line(0, dtype="i4"), line(1), OpKind.NEGATE, N)


@pytest.mark.parametrize("refused", [1, 2])
def test_a_launch_that_the_driver_refuses(gpu, refused):
    """It is told, and memory is freed, once."""
    for _ in range(3):
        reduced(0)
    seen = []

    def runs(*_):
        seen.append(len(seen))
        gpu.fails["cuLaunchKernel in C"] = 700 if len(seen) >= refused else 0
    gpu.runs = runs
    with pytest.raises(DriverError, match="cannot be launched"):
        reduced(0)
    allocated, freed = memory(gpu)
    assert allocated == freed
    gpu.runs, gpu.fails = lambda *_: None, {}
    gpu.launches.clear()
    reduced(4)
    assert len(gpu.launches) == 2 and memory(gpu)[0] == memory(gpu)[1]


def test_there_is_no_memory(gpu):
    for _ in range(3):
        reduced(0)
    gpu.fails["cuMemAllocAsync"] = 999
    gpu.launches.clear()
    with pytest.raises(DriverError, match="there is no memory"):
        reduced(0)
    assert not gpu.launches


def test_another_context_is_left_to_python(gpu):
    for _ in range(3):
        reduced(0)
    gpu.contexts[:] = [0x1001]
    reduced(0)
    assert len(gpu.launches) == 8
    assert {launch["context"] for launch in gpu.launches} == {0x1000} and gpu.contexts == [0x1001]


def test_arrays_that_share_memory(gpu):
    def call(k):
        out = array(line(k).data.ptr + 8 * (k == 0), (N - 10,), (1,))
        compute.select(line(0), out, line(9, 1, "i8"), OpKind.IDENTITY, N)
    for _ in range(4):
        call(1)
    before = len(gpu.launches), memory(gpu)
    with pytest.raises(ValueError, match="arguments `d_out` and `d_in` share memory"):
        call(0)
    after = memory(gpu)
    assert len(gpu.launches) == before[0] and after[0] - after[1] == before[1][0] - before[1][1]


def test_storage_is_checked_at_each_call(gpu):
    made = compute.make_reduce_into(line(0), line(1, 1), OpKind.PLUS)
    args = line(0), line(1, 1), OpKind.PLUS, N
    need = made(None, *args)
    for _ in range(4):
        made(line(5, need, "u1"), *args)
    before = len(gpu.launches)
    start = line(5).data.ptr
    for storage, error in ((line(5, need - 1, "u1"), ValueError), (array(start + 1, (need,), (1,), "u1"), ValueError),
                           (array(start, (need,), (2,), "u1"), ValueError), ("none", TypeError),
                           (array(start, (need,), (1,), "u1", device=1), TypeError)):
        with pytest.raises(error, match="temp_storage"):
            made(storage, *args)
    assert len(gpu.launches) == before
    for moved in (4, 0, 4):  # less aligned code runs there
        gpu.launches.clear()
        made(array(start + moved, (need,), (1,), "u1"), *args)
        assert start + moved in pointers(gpu.launches[1])


def test_settings_count(gpu, monkeypatch):
    for _ in range(3):
        reduced(0)
    for debug, name in (("1", "cuLaunchKernel"), ("", "cuLaunchKernel in C")):
        monkeypatch.setenv("CUTILE_DEBUG", debug) if debug else monkeypatch.delenv("CUTILE_DEBUG")
        for _ in range(3):
            gpu.calls.clear()
            reduced(0)
        assert [c for c in gpu.names() if c.startswith("cuLaunch")] == [name] * 2


def test_tensors_are_told(gpu):
    x, y = (extension.LentTensor(1 << 40 + k, (N,), (1,)) for k in (0, 1))
    for k in range(5):
        compute.unary_transform(x, y, OpKind.NEGATE, N)
        assert (x.version, y.version) == (0, k + 1)
    y.requires_grad = True
    with pytest.raises(RuntimeError, match="stores to parameter `d_out`, but the tensor"):
        compute.unary_transform(x, y, OpKind.NEGATE, N)
    assert len(gpu.launches) == 5 and y.version == 5


def test_calls_that_cannot_be_read(gpu):
    for _ in range(3):
        reduced(0)
    with pytest.raises(TypeError, match="argument `num_items` must be an int"):
        compute.reduce_into(line(0), line(1, 1), 2.5, OpKind.PLUS)
    with pytest.raises(ValueError, match=f"argument `num_items` is {N + 1}, but `d_in` has {N} items"):
        compute.reduce_into(line(0), line(1, 1), N + 1, OpKind.PLUS)


def test_operators_whose_captured_objects_change(gpu):
    """Each call looks at them."""
    def scaled(by):
        return lambda v: v * by
    for scale in (2.0, 3.0) * 4:
        compute.unary_transform(line(0), line(1), scaled(scale), N)
    functions = [launch["function"] for launch in gpu.launches]
    assert len(set(functions)) == 2 and functions == functions[:2] * 4


def test_a_double_buffer_where_arrays_ran_before(gpu, monkeypatch):
    monkeypatch.setattr(delegation, "_choices", ["own"])
    made = compute.make_radix_sort(line(0, 100), line(1, 100), None, None, compute.SortOrder.ASCENDING)
    storage = line(5, made(None, line(0, 100), line(1, 100), None, None, 100), "u1")
    for _ in range(3):
        made(storage, line(0, 100), line(1, 100), None, None, 100)
    with pytest.raises(TypeError, match="argument `d_in_keys`: this object was made for an array"):
        made(storage, DoubleBuffer(line(0, 100), line(1, 100)), None, None, None, 100)
    with pytest.raises(ValueError, match="`d_in_values` is a DoubleBuffer"):
        made(storage, line(0, 100), line(1, 100), DoubleBuffer(line(0, 100), line(1, 100)), None, 100)
