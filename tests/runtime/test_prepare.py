"""ct.prepare: a launch that is checked once, and whose addresses and numbers may be replaced."""

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu.driver import DriverError
from cutile.runtime import launch_cache
from tests.gpu import extension
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed


@ct.kernel
def scaled(x, y, factor, N: ct.Constant[int], flag):
    t = ct.load(x, ct.bid(0), N) * factor
    if flag:
        t = t + 1
    ct.store(y, ct.bid(0), t)


def arrays(n=16):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


@pytest.fixture
def step():
    x, y = arrays()
    return ct.prepare(scaled, (4,), (x, y, 2.0, 4, False)), x, y


def test_nothing_runs_until_it_is_called(step):
    step, x, y = step
    assert not y.any()
    step()
    assert np.array_equal(y, x * 2)
    x += 1
    step(None)
    assert np.array_equal(y, x * 2)


def test_numbers_and_arrays_are_replaced(step):
    step, x, y = step
    other, out = arrays()
    step.replace(factor=3.0, flag=True)
    step()
    assert np.array_equal(y, x * 3 + 1)
    y[:] = 0
    step.replace(x=other + 5, y=out)
    step()
    assert np.array_equal(out, (other + 5) * 3 + 1) and not y.any()


def test_it_holds_its_arguments():
    y = np.zeros(16, np.float32)
    step = ct.prepare(scaled, (4,), (np.full(16, 7, np.float32), y, 2.0, 4, False))
    step()
    assert (y == 14).all()
    step.replace(x=np.full(16, 3, np.float32))
    step()
    assert (y == 6).all()


@pytest.mark.parametrize("arguments, error, message", [
    ({"x": np.zeros(16, np.float16)}, TypeError, "`x` is an array of float16, .* for one of float32"),
    ({"x": np.zeros(20, np.float32)}, ValueError, r"`x` has sizes \(20,\), .* for \(16,\)"),
    ({"x": np.zeros(32, np.float32)[::2]}, ValueError, r"`x` has strides \(2,\), .* for \(1,\)"),
    ({"x": np.zeros((4, 4), np.float32)}, ValueError, "sizes"),
    ({"x": 3.0}, TypeError, "`x`: a float cannot take the place of an array"),
    ({"x": [np.zeros(16, np.float32)]}, TypeError, "`x`: a list cannot take the place of an array"),
    ({"x": None}, TypeError, "`x`: an object of type NoneType cannot take the place of an array"),
    ({"y": np.broadcast_to(np.float32(0), (16,))}, ValueError, "strides"),
    ({"factor": 3}, TypeError, "`factor`: an int cannot take the place of a float"),
    ({"factor": True}, TypeError, "`factor`: a bool cannot take the place of a float"),
    ({"factor": np.zeros(16, np.float32)}, TypeError, "`factor`: an array cannot take the place of a float"),
    ({"flag": 1}, TypeError, "`flag`: an int cannot take the place of a bool"),
    ({"N": 8}, TypeError, "`N` is a constant"),
    ({"z": 8}, TypeError, "no parameter `z`; its parameters are x, y, factor, N, flag"),
])
def test_what_does_not_fit_is_refused_and_nothing_is_replaced(step, arguments, error, message):
    step, x, y = step
    with pytest.raises(error, match=message):
        step.replace(**{"factor": 5.0, **arguments})
    step()
    assert np.array_equal(y, x * 2)


def test_a_read_only_array_takes_the_place_of_none_that_is_stored_to(step):
    step, x, y = step
    fixed = y.copy()
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match="`y`: the array is read-only, but the kernel stores to it"):
        step.replace(y=fixed)


@ct.kernel
def counted(x, n, wide: ct.ScalarInt64):
    ct.store(x, 0, ct.load(x, 0, 4) + n + (wide >> 32).astype(ct.int32))


def test_ints_fit_their_dtype():
    x = np.zeros(4, np.int32)
    step = ct.prepare(counted, (1,), (x, 1, 0))
    step.replace(n=-5, wide=3 << 32)
    step()
    assert (x == -2).all()
    with pytest.raises(OverflowError, match="`n`: 2147483648 does not fit int32; annotate"):
        step.replace(n=1 << 31)
    with pytest.raises(OverflowError, match="`wide`: .* does not fit 64 bits"):
        step.replace(wide=1 << 63)


@ct.kernel
def joined(pair, both, out):
    ct.store(out, 0, ct.load(pair[0], 0, 4) * pair[1] + ct.load(both[0], 0, 4) + ct.load(both[1], 0, 4))


def test_tuples_and_lists_are_replaced_whole():
    a, b, c, out = (np.full(4, v, np.float32) for v in (1, 2, 3, 0))
    step = ct.prepare(joined, (1,), ((a, 10.0), [a, b], out))
    step()
    assert (out == 13).all()
    step.replace(pair=(b, 100.0), both=[c, c])
    step()
    assert (out == 206).all()
    for wrong in ({"pair": (b,)}, {"pair": (b, 1)}, {"both": [a]}, {"both": [a, np.zeros(8, np.float32)]}):
        with pytest.raises(TypeError, match="of another layout"):
            step.replace(**wrong)


@pytest.mark.parametrize("given, error, message", [
    ((scaled.function, (4,), ()), TypeError, "scaled is a plain function, not a kernel"),
    ((3, (4,), ()), TypeError, r"the first argument of prepare\(\) must be a kernel, got int"),
    ((scaled, 4, ()), TypeError, "grid must be a tuple"),
    ((scaled, (4,), []), TypeError, "kernel_args must be a tuple, got list"),
    ((scaled, (4,), (1,)), TypeError, "argument"),
    ((scaled, (4,), (*arrays(), 2.0, 3, False)), ct.TileTypeError, "power of two"),
])
def test_errors_are_those_of_launch(given, error, message):
    with pytest.raises(error, match=message):
        ct.prepare(*given)


def test_it_stays_as_it_was_prepared(monkeypatch):
    x, y = arrays()
    step = ct.prepare(ct.kernel(reads_a_global), (4,), (x, y))
    monkeypatch.setitem(globals(), "SHIFT", 50)
    step()
    assert np.array_equal(y, x + 1)


SHIFT = 1


def reads_a_global(x, y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4) + SHIFT)


# ------------------------------------------------------------------ on a GPU


@pytest.fixture(params=["c", "python"])
def gpu(monkeypatch, request):
    """The driver, with launches by C code and by Python."""
    module = extension.built() if request.param == "c" else None
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    fake = installed(monkeypatch)
    fake.contexts[:] = [0x1000]  # this thread works on GPU 0
    fake.in_c = request.param == "c"
    return fake


def test_launches_on_a_gpu(gpu):
    kernel = ct.kernel(scaled.function)
    a, b, c = (Cuda(np.zeros(16, np.float32)) for _ in range(3))
    step = ct.prepare(kernel, (4,), (a, b, 2.0, 4, False))
    built = len(gpu.built)
    assert built == 2 and not gpu.launches  # all that may run is compiled: here with and without checks of bounds
    step(77)
    step.replace(x=c, factor=0.5)
    step(78)
    first, second = gpu.launches
    assert ("cuLaunchKernel in C" in gpu.names()) == gpu.in_c
    assert (first["stream"], second["stream"]) == (77, 78) and first["grid"] == second["grid"] == (4, 1, 1)
    addresses = [int.from_bytes(x["parameters"][0], "little") for x in (first, second)]
    assert addresses == [a.array.ctypes.data, c.array.ctypes.data]
    ct.launch(78, (4,), kernel, (c, b, 0.5, 4, False))
    assert gpu.launches[-1]["parameters"] == second["parameters"] and len(gpu.built) == built
    assert len({x["function"] for x in gpu.launches}) == 1


def test_numbers_of_every_kind_reach_a_gpu(gpu):
    @ct.kernel
    def kinds(x, n, wide: ct.ScalarInt64, f, b):
        ct.store(x, 0, ct.load(x, 0, 4) + n + wide + f + b)

    x = Cuda(np.zeros(4, np.float32))
    step = ct.prepare(kinds, (1,), (x, 1, 2, 0.5, False))
    for numbers in (1, 2, 0.5, False), (-7, -(1 << 40), -0.25, True), (2**31 - 1, 2**63 - 1, 1e30, True):
        step.replace(**dict(zip(("n", "wide", "f", "b"), numbers, strict=True)))
        step(5)
        ct.launch(5, (1,), kinds, (x, *numbers))
        assert gpu.launches[-2]["parameters"] == gpu.launches[-1]["parameters"]


def test_in_another_context_and_on_an_unusual_stream(gpu):
    x, y = (Cuda(np.zeros(16, np.float32)) for _ in range(2))
    step = ct.prepare(ct.kernel(scaled.function), (4,), (x, y, 2.0, 4, False))
    gpu.contexts.append(0x2000)
    step(7)
    assert gpu.launches[-1]["context"] == 0x1000 and gpu.contexts[-1] == 0x2000
    with pytest.raises(TypeError, match="stream"):
        step("no stream")


def test_what_the_driver_refuses(gpu):
    x, y = (Cuda(np.zeros(16, np.float32)) for _ in range(2))
    step = ct.prepare(ct.kernel(scaled.function), (4,), (x, y, 2.0, 4, False))
    gpu.fails["cuLaunchKernel"] = gpu.fails["cuLaunchKernel in C"] = 719
    with pytest.raises(DriverError, match="scaled cannot be launched"):
        step(7)


def test_an_empty_grid_launches_nothing(gpu):
    x, y = (Cuda(np.zeros(16, np.float32)) for _ in range(2))
    ct.prepare(ct.kernel(scaled.function), (0,), (x, y, 2.0, 4, False))(7)
    assert not gpu.launches


def test_pytorch_is_told_of_each_launch(gpu, monkeypatch):
    extension.installed(monkeypatch)
    x, y = (extension.Tensor(4096 * k, (16,), (1,)) for k in (1, 2))
    step = ct.prepare(ct.kernel(scaled.function), (4,), (x, y, 2.0, 4, False))
    for _ in range(3):
        step(7)
    assert (x.version, y.version) == (0, 3)
    other = extension.Tensor(4096 * 3, (16,), (1,))
    step.replace(y=other)
    step(7)
    assert (y.version, other.version) == (3, 1)
    other.requires_grad = True
    with pytest.raises(RuntimeError, match="`y`, but the tensor given for it is a leaf that requires grad"):
        step(7)
    assert other.version == 1 and len(gpu.launches) == 4


def test_lists_on_a_gpu(gpu):
    arrays = [Cuda(np.zeros(4, np.float32)) for _ in range(4)]
    step = ct.prepare(ct.kernel(joined.function), (1,), ((arrays[0], 1.0), arrays[1:3], arrays[3]))
    step(7)
    assert len(gpu.launches) == 1 and "cuMemAllocAsync" in gpu.names()


def test_an_array_may_be_more_aligned_but_not_less(gpu):
    memory = np.zeros(64, np.float32)
    start = -memory.ctypes.data // 4 % 4
    at = [Cuda(memory[start + k:][:16]) for k in range(3)]
    out = Cuda(np.zeros(16, np.float32))
    step = ct.prepare(ct.kernel(scaled.function), (4,), (at[2], out, 2.0, 4, False))
    step.replace(x=at[0])
    with pytest.raises(ValueError, match="`x` begins at a multiple of 4 bytes, .* a multiple of 16"):
        ct.prepare(ct.kernel(scaled.function), (4,), (at[0], out, 2.0, 4, False)).replace(x=at[1])
    with pytest.raises(ValueError, match="a multiple of 4 bytes, .* a multiple of 8"):
        step.replace(x=at[1])


def test_an_array_elsewhere_does_not_fit(gpu):
    a, out = Cuda(np.zeros(16, np.float32)), Cuda(np.zeros(16, np.float32))
    step = ct.prepare(ct.kernel(scaled.function), (4,), (a, out, 2.0, 4, False))
    with pytest.raises(TypeError, match="`x` is an array in CPU memory, .* for one in the memory of GPU 0"):
        step.replace(x=np.zeros(16, np.float32))


def test_gpu_arrays_in_the_interpreter(gpu):
    with settings.override(BACKEND="interp"):
        x, y = (Cuda(a) for a in arrays())
        step = ct.prepare(ct.kernel(scaled.function), (4,), (x, y, 2.0, 4, False))
        step()
    assert np.array_equal(y.array, x.array * 2) and not gpu.launches


def test_the_sanitizer_counts_when_it_runs():
    x, y = arrays()
    step = ct.prepare(scaled, (5,), (x, y, 2.0, 4, False))
    for _ in range(2):
        step()
        with ct.sanitize("all"), pytest.raises(ct.TileSanitizerError, match="bounds: "):
            step()


def test_the_sanitizer_counts_when_it_runs_on_a_gpu(gpu):
    """Under checks the interpreter runs it, on copies; after them the GPU again, with the code that was prepared."""
    x, y = (Cuda(a) for a in arrays())
    step = ct.prepare(ct.kernel(scaled.function), (5,), (x, y, 2.0, 4, False))
    step(7)
    for k in range(1, 3):
        with ct.sanitize("all"), pytest.raises(ct.TileSanitizerError, match="bounds: "):
            step(7)
        assert np.array_equal(y.array, x.array * 2) and len(gpu.launches) == k
        step.replace(factor=2.0)
        step(7)
    functions = [launch["function"] for launch in gpu.launches]
    assert len(functions) == 3 and len(set(functions)) == 1
    assert gpu.names().count("cuLaunchKernel in C") == (2 if gpu.in_c else 0)  # Python decides about variants first


def test_prepared_under_checks(gpu):
    x, y = (Cuda(a) for a in arrays())
    with ct.sanitize("all"):
        step = ct.prepare(ct.kernel(scaled.function), (4,), (x, y, 2.0, 4, False))
        step(7)
    assert not gpu.launches and np.array_equal(y.array, x.array * 2)
    step(7)
    assert len(gpu.launches) == 1


def test_memcheck_is_code_of_its_own(gpu):
    """It runs on the GPU, and nothing of it stays when the setting is gone."""
    kernel, (x, y) = ct.kernel(scaled.function), (Cuda(a) for a in arrays())
    step = ct.prepare(kernel, (4,), (x, y, 2.0, 4, False))
    for launch in (lambda: step(7), lambda: ct.launch(7, (4,), kernel, (x, y, 2.0, 4, False))):
        gpu.launches.clear()
        launch()
        with ct.sanitize("memcheck"):
            launch()
            launch()
        launch()
        usual, checked, again, after = (launch["function"] for launch in gpu.launches)
        assert usual == after and checked == again and usual != checked
    assert len(gpu.built) == 3  # with and without checks of bounds, and with those of the assembler
