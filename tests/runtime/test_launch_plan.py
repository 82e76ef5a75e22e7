"""Launching on GPU arrays, all of it but the GPU: where a launch runs, what is compiled and when, what is passed."""

import re
import struct
import sys
import threading

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import cubin as building
from cutile.gpu.variants import LAUNCHES
from tests.front.compiling import cell
from tests.gpu.arrays import Cuda, at
from tests.gpu.fake_driver import installed

kernels = sys.modules["cutile.runtime.kernel"]  # cutile.runtime.kernel itself is the decorator

P = struct.Struct("<Q").pack
I = struct.Struct("<i").pack  # noqa: E741


@pytest.fixture
def gpu(monkeypatch):
    return installed(monkeypatch)


def scaling():
    @ct.kernel
    def scale(x, y, f, N: ct.Constant[int]):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), N) * f)

    return scale


X, Y = at(4096, (48,)), at(8192, (50,), (8,))


# ------------------------------------------------------------------ a launch


def test_a_launch(gpu):
    ct.launch(77, (3, 2), scaling(), (X, Y, 2.5, 16))
    (launch,) = gpu.launches
    assert launch["grid"] == (3, 2, 1) and launch["stream"] == 77 and launch["context"] == 0x1000
    assert launch["parameters"] == [P(4096), I(48), I(1), P(8192), I(50), I(2), struct.pack("<f", 2.5)]
    (built,) = gpu.built
    assert built["symbol"] == "scale_Kt1_A1f32_1i16t1_p16_A1f32_1l0_p16_Sf32_I16" and built["target"] == "sm_90"
    assert launch["function"] == ("function", b"cubin 1", built["symbol"])


def test_a_launch_with_a_tuple_takes_convention_2(gpu):  # SPEC-5, ARG-8
    @ct.kernel
    def k(t, j: ct.ScalarInt64):
        ct.store(t[0], 0, ct.astype(t[1][0] + j, ct.float32))

    ct.launch(77, (1,), k, ((X, (7, 5.0)), -3))
    assert gpu.launches[0]["parameters"] == [P(4096), I(48), I(1), I(7), struct.pack("<f", 5), struct.pack("<q", -3)]
    assert gpu.built[0]["symbol"] == "k_Kt2_T2A1f32_1i16t1_p16T2Si32Sf32_Si64"


def test_constants_that_names_cannot_say(gpu):  # D-4
    @ct.kernel
    def k(x, mode: ct.Constant, n: ct.Constant):
        ct.store(x, 0, ct.full((n,), 1, x.dtype) if mode == "ones" else ct.zeros((n,), x.dtype))

    for mode in ("ones", "other", "ones"):
        ct.launch(77, (1,), k, (X, mode, 4))
    assert [b["symbol"] for b in gpu.built] == ["k", "k"] and len(gpu.launches) == 3
    ct.launch(77, (1,), ct.kernel(lambda x: ct.store(x, 0, 1.0)), (X,))
    assert gpu.built[-1]["symbol"] == "_lambda__Kt1_A1f32_1i16t1_p16"


@pytest.mark.parametrize("grid", [(0,), (2, 0), (0, 0, 0)])
def test_an_empty_grid_is_compiled_and_not_launched(gpu, grid):  # LAUNCH-3
    ct.launch(77, grid, scaling(), (X, Y, 1.0, 16))
    assert len(gpu.built) == 1 and not gpu.launches
    with pytest.raises(ct.TileTypeError):
        ct.launch(77, grid, ct.kernel(lambda x: x.nope), (X,))


def test_dependent_launches(gpu):  # LAUNCH-4
    ct.launch(77, (1,), scaling(), (X, Y, 1.0, 16), programmatic_dependent_launch=True)
    assert gpu.launches[0]["attributes"] == [(6, {"programmaticStreamSerializationAllowed": 1})]


def test_lists(gpu):  # ARG-7
    @ct.kernel
    def k(xs, out):
        ct.store(out, 0, ct.load(xs[1], 0, (4,)) * len(xs))

    for _ in range(2):
        ct.launch(77, (1,), k, ([X, at(16384, (32,))], Y))
        (address, memory), = gpu.allocated.items()
        assert struct.unpack("<6q", memory.raw) == (4096, 48, 1, 16384, 32, 1)
        assert gpu.launches[-1]["parameters"][:2] == [P(address), I(2)]
        gpu.allocated.clear()
    assert [b["symbol"] for b in gpu.built] == ["k_Kt1_LiA1f32_1i16t1_p16_A1f32_1l0_p16"]
    gpu.capturing = 1
    with pytest.raises(RuntimeError, match="CUDA graph"):
        ct.launch(77, (1,), k, ([X, X], Y))


def test_nothing_but_the_launch_happens_again(gpu):
    """What a captured graph needs: once prepared, one call of the driver."""
    k = scaling()
    for _ in range(LAUNCHES):  # after which it is settled what runs
        ct.launch(77, (1,), k, (X, Y, 1.0, 16))
    gpu.contexts[:], gpu.calls[:] = [0x1000], []
    ct.launch(77, (1,), k, (X, Y, 2.0, 16))
    assert [n for n in gpu.names() if n != "cuPointerGetAttribute"] == ["cuLaunchKernel"]
    on_0 = {"__dlpack_device__": lambda: (2, 0)}
    for _ in range(2):
        gpu.calls.clear()
        ct.launch(77, (1,), k, (at(4096, (48,), **on_0), at(8192, (50,), (8,), **on_0), 3.0, 16))
    assert gpu.names() == ["cuLaunchKernel"]


# ------------------------------------------------------------------ what is compiled anew


def test_compiled_once_for_equal_facts(gpu):  # SPEC-1, SPEC-4
    k = scaling()
    for x, f in ((X, 1.0), (X, 2.0), (at(32768, (48,)), 1.0), (at(4096, (64,)), 1.0), (at(8192, (16,)), 1.0)):
        ct.launch(77, (1,), k, (x, Y, f, 16))
    assert len(gpu.built) == 1 and len(gpu.launches) == 5
    assert [x["parameters"][1] for x in gpu.launches] == [I(48), I(48), I(48), I(64), I(16)]


@pytest.mark.parametrize("other", [
    at(4100, (48,)), at(4096, (47,)), at(4096, (48,), (8,)), at(4096, (48,), (16,)), at(4096, (48,), (-4,)),
    at(4096, (1,)), at(4096, (48,), (0,)), at(4096, (48, 1)), at(4096, (48,), typestr="<f2"),
    at(4096, (48,), typestr="<V2")])
def test_compiled_anew_for_other_facts(gpu, other):  # SPEC-1, SPEC-2
    @ct.kernel
    def k(x):
        if x.ndim == 1:
            ct.store(x, 0, ct.load(x, 0, (1,)))

    for x in (X, other, X, other):
        ct.launch(77, (1,), k, (x,))
    assert len(gpu.built) == 2 and len(gpu.launches) == 4
    one, two = (b["constraints"][0] for b in gpu.built)
    assert one != two


def test_a_negative_stride_takes_its_lower_bound_away(gpu):
    k = scaling()
    for x in (at(4096, (48,), (8,)), at(4096 + 47 * 4, (48,), (-4,))):
        ct.launch(77, (1,), k, (x, Y, 1.0, 16))
    assert [b["constraints"][0].stride_lower_bound_incl for b in gpu.built] == [(0,), (None,)]
    assert gpu.launches[1]["parameters"][2] == I(-1)


def test_constants(gpu):  # SPEC-1
    k = scaling()
    for n in (16, 32, 16, 32):
        ct.launch(77, (1,), k, (X, Y, 1.0, n))
    assert len(gpu.built) == 2


def test_options_belong_to_their_kernel(gpu):  # KERN-5
    k = scaling()
    for kernel in (k, k.replace_hints(num_ctas=2), k):
        ct.launch(77, (1,), kernel, (X, Y, 1.0, 16))
    assert [b["options"].num_ctas for b in gpu.built] == [None, 2]
    assert all(x["grid"] == (1, 1, 1) and x["attributes"] == [] for x in gpu.launches)  # a cluster is in the code


def test_what_changed_outside_is_seen(gpu):
    space = cell("N = 4\n@ct.kernel\ndef k(x): ct.store(x, 0, ct.full((4,), N, ct.float32))")
    for n in (4, 4, 5, 5, 4):
        space["N"] = n
        ct.launch(77, (1,), space["k"], (X,))
    assert len(gpu.built) == 3
    assert [x["function"][1] for x in gpu.launches] == [b"cubin 1"] * 2 + [b"cubin 2"] * 2 + [b"cubin 3"]


def test_a_failed_build_is_tried_again(gpu, monkeypatch):
    k, build = scaling(), building.build

    def failing(*args):
        raise ct.TileCompilerExecutionError("no")

    monkeypatch.setattr(building, "build", failing)
    for _ in range(2):
        with pytest.raises(ct.TileCompilerExecutionError):
            ct.launch(77, (1,), k, (X, Y, 1.0, 16))
    monkeypatch.setattr(building, "build", build)
    ct.launch(77, (1,), k, (X, Y, 1.0, 16))
    assert len(gpu.launches) == 1


def test_plans_are_not_kept_for_ever(gpu, monkeypatch):
    monkeypatch.setattr(kernels, "LIMIT", 3)
    k = scaling()
    for n in range(10):
        ct.launch(77, (1,), k, (at(4096, (16 * n + 16,)), Y, 1.0, 16))
        assert len(k.plans) <= 3
    assert len(gpu.built) == 1  # the code is the same for all


def test_code_of_programs_that_are_not_kept_is_compiled_again(gpu, monkeypatch):
    monkeypatch.setattr(kernels, "LIMIT", 3)
    k = scaling()
    for n in (1, 2, 4, 8, 16, 32, 1):
        ct.launch(77, (1,), k, (X, Y, 1.0, n))
    assert len(gpu.built) == 7


@pytest.mark.parametrize("backends", [(None, "interp", None, "interp"), ("interp", None, "interp", None)])
def test_the_back_end_is_asked_for_at_each_launch(gpu, backends):
    """CUTILE_BACKEND=interp comes and goes between equal launches. Code is made once, when the GPU is to run it."""
    k, x, y = scaling(), Cuda(np.arange(48, dtype=np.float32)), Cuda(np.zeros(48, np.float32))
    for n, backend in enumerate(backends, 1):
        y.array[:] = 0
        with settings.override(BACKEND=backend):
            ct.launch(77, (3,), k, (x, y, 2.0, 16))
        on_gpu = backends[:n].count(None)
        assert (bool(y.array.any()), len(gpu.launches)) == (backend == "interp", on_gpu)
        assert len(gpu.built) == min(on_gpu, 1)


def test_kernels_with_equal_options_share_their_code(gpu):
    k = scaling()
    by_target = [ct.ByTarget(sm_90=2, default=1), ct.ByTarget(default=1, sm_90=2)]
    for hints in ({"num_ctas": 2}, {"num_ctas": 2}, {}, {"num_ctas": 4}, {"opt_level": 3}, {"num_ctas": None},
                  *({"occupancy": b} for b in by_target)):
        ct.launch(77, (1,), k.replace_hints(**hints), (X, Y, 1.0, 16))
    ct.launch(77, (1,), k.replace_hints(num_ctas=4).replace_hints(num_ctas=2, occupancy=None), (X, Y, 1.0, 16))
    assert [b["options"].num_ctas for b in gpu.built] == [2, None, 4, None]
    assert len(gpu.launches) == 9 and gpu.launches[0]["function"] == gpu.launches[-1]["function"]


def test_threads(gpu):
    k, failed = scaling(), []

    def run(n):
        try:
            for _ in range(20):
                ct.launch(n, (1,), k, (at(4096 * (n + 1), (48,)), Y, float(n), 16))
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(3, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and len(gpu.launches) == 120
    for x in gpu.launches:
        n = x["stream"]
        assert x["parameters"][0] == P(4096 * (n + 1)) and x["parameters"][-1] == struct.pack("<f", n)


# ------------------------------------------------------------------ where it runs


def test_several_gpus(gpu):
    gpu.homes = {16384: 1, 32768: 1}
    k = scaling()
    for _ in range(2):
        ct.launch(77, (1,), k, (X, Y, 1.0, 16))
        ct.launch(78, (1,), k, (at(16384, (48,)), at(32768, (50,), (8,)), 1.0, 16))
    assert [x["context"] for x in gpu.launches] == [0x1000, 0x1001] * 2 and gpu.contexts == [0]
    loaded = [c[1:] for c in gpu.calls if c[0] == "cuModuleLoadData"]
    assert [context for _, context in loaded] == [0x1000, 0x1001]


def test_arrays_of_different_gpus(gpu):
    gpu.homes = {16384: 1}
    for _ in range(2):
        with pytest.raises(TypeError, match="`x` is in the memory of GPU 0, `y` in the memory of GPU 1"):
            ct.launch(77, (1,), scaling(), (X, at(16384, (48,)), 1.0, 16))


@pytest.mark.parametrize("wrap, item", [(lambda a: a, ""), (lambda a: [a], "[0]"), (lambda a: (1, a), "[1]"),
                                        (lambda a: ((2.0, (a,)), 1), "[0][1][0]"), (lambda a: ((), [a]), "[1][0]")])
def test_cpu_and_gpu_arrays(gpu, wrap, item):
    @ct.kernel
    def k(x, y):
        pass

    with pytest.raises(TypeError, match=re.escape(f"`x{item}` is in GPU memory, `y{item}` in CPU memory")):
        ct.launch(77, (1,), k, (wrap(X), wrap(np.zeros(4, np.float32))))
    with pytest.raises(TypeError, match=re.escape(f"`x{item}` is in CPU memory, `y{item}` in GPU memory")):
        ct.launch(77, (1,), k, (wrap(np.zeros(4, np.float32)), wrap(X)))


def test_items_of_one_argument_in_two_places(gpu):
    @ct.kernel
    def k(n: ct.Constant, x):
        pass

    for x in ([np.zeros(48, np.float32), X], (1.0, np.zeros(48, np.float32), (X,))):
        first, second = ("x[0]", "x[1]") if isinstance(x, list) else ("x[1]", "x[2][0]")
        with pytest.raises(TypeError, match=re.escape(f"`{first}` is in CPU memory, `{second}` in GPU memory")):
            ct.launch(77, (1,), k, ((1, 2), x))


def test_cpu_arrays_take_no_notice_of_the_gpu(gpu):
    y = np.zeros(48, np.float32)
    ct.launch(77, (3,), scaling(), (np.ones(48, np.float32), y, 2.0, 16))
    assert y.tolist() == [2.0] * 48 and not gpu.built and gpu.names() == ["cuInit"]


def test_without_arrays_the_stream_decides(gpu, capsys):
    @ct.kernel
    def k(n):
        ct.print("n is", n)

    ct.launch(None, (1,), k, (3,))
    assert capsys.readouterr().out == "n is 3\n" and not gpu.launches
    for stream, context in ((0x055, 0x1000), (0x155, 0x1001), (0, 0x1000), (0x155, 0x1001)):
        ct.launch(stream, (1,), k, (4,))
        assert gpu.launches[-1]["context"] == context and gpu.launches[-1]["parameters"] == [I(4)]
    assert capsys.readouterr().out == "" and len(gpu.built) == 2
    ct.launch(None, (1,), k, (5,))
    assert capsys.readouterr().out == "n is 5\n"
    with pytest.raises(TypeError, match="an object of type object is no stream; a stream is None"):
        ct.launch(object(), (1,), k, (3,))


def test_what_is_no_stream(gpu):
    """Refused before anything is compiled, and where the kernel was launched before."""
    k = scaling()
    for built in (0, 1):
        with pytest.raises(TypeError, match="an object of type object is no stream; a stream is None"):
            ct.launch(object(), (1,), k, (X, Y, 1.0, 16))
        assert len(gpu.built) == built
        ct.launch(77, (1,), k, (X, Y, 1.0, 16))


@pytest.mark.parametrize("wrap", [lambda a: a, lambda a: [a, a], lambda a: (1, a)])
def test_an_empty_array_beside_arrays_of_the_cpu(wrap):
    """It says that it is on a GPU, but has no address there."""
    @ct.kernel
    def k(x, y):
        ct.store(y, 0, 3.0)

    y = np.zeros(4, np.float32)
    for n in range(2):
        y[:] = n
        ct.launch(None, (1,), k, (wrap(at(0, (0, 3))), y))
        assert y.tolist() == [3, n, n, n]


def test_empty_arrays_may_be_anywhere(gpu):
    @ct.kernel
    def k(x, y):
        pass

    gpu.homes = {16384: 1}
    empty = at(0, (0,))
    ct.launch(77, (1,), k, (empty, at(16384, (48,))))
    assert gpu.launches[-1]["context"] == 0x1001
    for stream, context in ((0x155, 0x1001), (0x055, 0x1000), (None, 0x1000)):
        ct.launch(stream, (1,), k, (empty, empty))
        assert gpu.launches[-1]["context"] == context


def test_read_only_arrays(gpu):
    k = scaling()
    y = np.zeros(48, np.float32)
    ct.launch(77, (1,), k, (Cuda(y, read_only=True), Cuda(y), 1.0, 16))
    for _ in range(2):
        with pytest.raises(TypeError, match="stores to parameter `y`.*read-only"):
            ct.launch(77, (1,), k, (Cuda(y), Cuda(y, read_only=True), 1.0, 16))
    assert len(gpu.launches) == 1


def test_large_arrays(gpu):  # ARR-6
    huge = at(4096, (2**31,))
    with pytest.raises(OverflowError, match=r"`x`.*ct.IndexedWithInt64"):
        ct.launch(77, (1,), scaling(), (huge, Y, 1.0, 16))

    @ct.kernel
    def k(x: ct.IndexedWithInt64):
        ct.store(x, 0, 1.0)

    ct.launch(77, (1,), k, (huge,))
    assert gpu.launches[-1]["parameters"] == [P(4096), struct.pack("<q", 2**31), struct.pack("<q", 1)]


def test_what_a_launch_says(gpu, capsys):
    with settings.override(DEBUG=1):
        ct.launch(77, (2,), scaling(), (X, Y, 1.0, 16))
    assert "cutile: scale grid (2, 1, 1) runs on GPU 0 (sm_90)\n" in capsys.readouterr().err


def test_signatures_from_arrays_of_a_gpu():  # SIG-3: the driver is not needed
    from cutile.compilation import CallingConvention, KernelSignature

    s = KernelSignature.from_kernel_args(scaling(), (X, at(4100, (48,), (-4,)), 2.5, 16),
                                         CallingConvention.cutile_python_v1())
    assert s.symbol == "scale_Kt1_A1f32_1i16t1_p16_A1f32_1i16_i_Sf32_I16"


class Turns:
    """Lends one array, then another for ever."""

    def __init__(self, *arrays):
        self.arrays = list(arrays)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **kwargs):
        return (self.arrays.pop(0) if len(self.arrays) > 1 else self.arrays[0]).__dlpack__(**kwargs)


@pytest.mark.parametrize("other", [np.arange(8, dtype=np.float32), np.arange(9, dtype=np.int32),
                                   np.arange(16, dtype=np.int32)[::2]])
def test_an_argument_that_is_another_array_each_time(other):
    """Each launch reads it once."""
    @ct.kernel
    def k(x, y):
        ct.store(y, 0, ct.load(x, 1, 4).astype(ct.float32))

    x, y = np.arange(8, dtype=np.int32), np.zeros(4, np.float32)
    given = Turns(x, other, x)
    for array in (x, other, x, x):
        ct.launch(None, (1,), k, (given, y))
        assert y.tolist() == [array[4], array[5], array[6], array[7]]
