"""Launching on a GPU, checked: python benchmarks/gpu_smoke.py [PART OF A CHECK'S NAME …]

Needs a GPU, cutile's gpu extra, and PyTorch or CuPy. One line a check; the exit code is the number of those that
failed. Checks go on when one fails. Those that spoil the GPU for their process run in one of their own.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "benchmarks")]

from _gpu_arrays import libraries  # noqa: E402

import cutile as ct  # noqa: E402

EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("[a-z]*.py") if p.stem not in ("demo",))
CHECKS: dict[str, object] = {}  # for each library
ALONE: dict[str, tuple[str, str]] = {}  # name: (program, what it must print)


class Skipped(Exception):
    pass


def check(f):
    CHECKS[f.__name__] = f
    return f


def same(got: np.ndarray, want: np.ndarray) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    bad = np.argwhere(got != want)
    assert not len(bad), f"{len(bad)} of {got.size} differ, first at {tuple(bad[0])}: {got[tuple(bad[0])]!r}, " \
                         f"wanted {want[tuple(bad[0])]!r}"


def raises(cls, text: str, f, *args, **kw):
    try:
        f(*args, **kw)
    except cls as e:
        assert text in str(e), f"says {e}"
    else:
        raise AssertionError(f"no {cls.__name__}")


@ct.kernel
def add(a, b, c, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, N) + ct.load(b, i, N))


@ct.kernel
def scale(x, y, f, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, N) * f)


@ct.kernel
def copy2(x, y, M: ct.Constant[int], N: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i, j), ct.load(x, (i, j), (M, N)).astype(y.dtype))


def arange(lib, n=5000, dtype=np.float32):
    return lib.to_device(np.arange(n).astype(dtype))


def zeros(lib, n=5000, dtype=np.float32):
    return lib.to_device(np.zeros(n, dtype))


# ------------------------------------------------------------------ the examples


def example(name: str):
    def run(lib):
        try:
            module = importlib.import_module(name)
        except ImportError as e:
            raise Skipped(str(e)) from None
        plain = ct.launch

        def moved(stream, grid, kernel, args):
            host = [a for a in args if isinstance(a, np.ndarray)]
            device = {id(a): lib.to_device(a) for a in host}
            plain(lib.current(), grid, kernel, tuple(device.get(id(a), a) for a in args))
            lib.synchronize()
            for a in host:
                a[...] = lib.to_host(device[id(a)])

        ct.launch = moved
        try:
            rows = module.main()
        except (TypeError, ValueError) as e:
            if "bfloat16" in str(e) and lib.name == "cupy":
                raise Skipped("CuPy has no bfloat16") from None
            raise
        finally:
            ct.launch = plain
        return "; ".join(f"{r.error:.1e} of {r.allowed:.1e}" for r in rows)

    return run


for _name in EXAMPLES:
    CHECKS[f"example {_name}"] = example(_name)


# ------------------------------------------------------------------ streams, graphs


@check
def streams(lib):
    made = [lib.new_stream(), lib.current(), None, 0, lib.number(lib.new_stream()), 1, 2]
    try:
        from cuda.core import Device
    except ImportError:
        pass  # not installed everywhere
    else:
        device = Device()
        device.set_current()
        made.append(device.create_stream())
    for stream in made:
        a, c = arange(lib), zeros(lib)
        lib.synchronize()
        ct.launch(stream, (5,), add, (a, a, c, 1024))
        lib.synchronize()
        same(lib.to_host(c), 2 * np.arange(5000, dtype=np.float32))
    return f"{len(made)} kinds"


@check
def order_on_a_stream(lib):
    stream = lib.new_stream()
    x, y = arange(lib, 1 << 22), zeros(lib, 1 << 22)
    lib.synchronize()
    for k in range(50):
        ct.launch(stream, (4096,), scale, (*((x, y) if k % 2 == 0 else (y, x)), 2.0 if k < 26 else 0.5, 1024))
    lib.synchronize()
    same(lib.to_host(x), 4 * np.arange(1 << 22, dtype=np.float32))


@check
def two_streams(lib):
    one, two = lib.new_stream(), lib.new_stream()
    pairs = [(arange(lib, 1 << 20), zeros(lib, 1 << 20)) for _ in range(2)]
    lib.synchronize()
    for k in range(40):
        for stream, pair in zip((one, two), pairs):
            ct.launch(stream, (1024,), scale, (*(pair if k % 2 == 0 else pair[::-1]), 2.0 if k < 21 else 0.5, 1024))
    lib.synchronize()
    for x, _ in pairs:
        same(lib.to_host(x), 4 * np.arange(1 << 20, dtype=np.float32))


def _capture(lib, kernel):
    x, y, z = arange(lib), zeros(lib), zeros(lib)
    lib.synchronize()
    replays: list = []
    with lib.captured(replays) as stream:
        ct.launch(stream, (5,), kernel, (x, y, 3.0, 1024))
        ct.launch(stream, (5,), kernel, (y, z, 2.0, 1024))
    assert not lib.to_host(z).any()
    x[:] = 1
    lib.synchronize()
    replays[0]()
    lib.synchronize()
    same(lib.to_host(z), np.full(5000, 6, np.float32))
    x[:] = 2
    lib.synchronize()
    replays[0]()
    lib.synchronize()
    same(lib.to_host(z), np.full(5000, 12, np.float32))


@check
def graph_of_a_warm_kernel(lib):
    ct.launch(lib.current(), (5,), scale, (arange(lib), zeros(lib), 3.0, 1024))
    _capture(lib, scale)


@check
def graph_of_a_cold_kernel(lib):
    _capture(lib, scale.replace_hints(occupancy=2))


@check
def dependent_launches(lib):
    @ct.kernel
    def first(x, y, N: ct.Constant[int]):
        ct.grid_dependency_control_wait()
        ct.grid_dependency_control_launch_dependents()
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), N) + 1)

    x, y = zeros(lib, 1 << 20), zeros(lib, 1 << 20)
    stream = lib.new_stream()
    lib.synchronize()
    for k in range(20):
        ct.launch(stream, (1024,), first, (*((x, y) if k % 2 == 0 else (y, x)), 1024),
                  programmatic_dependent_launch=True)
    lib.synchronize()
    same(lib.to_host(x), np.full(1 << 20, 20, np.float32))


@check
def dependent_launch_in_a_graph(lib):
    x, y = arange(lib), zeros(lib)
    ct.launch(lib.current(), (5,), scale, (x, y, 3.0, 1024))
    lib.synchronize()
    replays: list = []
    with lib.captured(replays) as stream:
        ct.launch(stream, (5,), scale, (x, y, 2.0, 1024))
        ct.launch(stream, (5,), scale, (y, x, 2.0, 1024), programmatic_dependent_launch=True)
    replays[0]()
    lib.synchronize()
    same(lib.to_host(y), 2 * np.arange(5000, dtype=np.float32))


# ------------------------------------------------------------------ arguments


@check
def clusters(lib):
    from matmul import matmul

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (256, 256)).astype(np.float16) for _ in range(2))
    for n in (1, 2, 4):
        c = lib.to_device(np.zeros((256, 256), np.float32))
        ct.launch(lib.current(), (2, 2), matmul.replace_hints(num_ctas=n),
                  (lib.to_device(a), lib.to_device(b), c, 128, 128, 32))
        lib.synchronize()
        same(lib.to_host(c), a.astype(np.float32) @ b.astype(np.float32))


@check
def numbers(lib):
    @ct.kernel
    def k(out, b, i, j: ct.ScalarInt64, f, t):
        ct.store(out, 0, ct.astype(b, ct.float64))
        ct.store(out, 1, ct.astype(i, ct.float64))
        ct.store(out, 2, ct.astype(j, ct.float64))
        ct.store(out, 3, ct.astype(f, ct.float64))
        ct.store(out, 4, ct.astype(t[0], ct.float64))
        ct.store(out, 5, ct.astype(t[1][0], ct.float64))

    for b, i, j, f, t in ((True, -7, 2**40, 0.5, (3, (2.5,))), (False, -2**31, -2**53, 1e300, (2**31 - 1, (-0.25,)))):
        out = lib.to_device(np.zeros(6))
        ct.launch(lib.current(), (1,), k, (out, b, i, j, f, t))
        lib.synchronize()
        same(lib.to_host(out), np.array([b, i, j, np.inf if f > 1e38 else f, t[0], t[1][0]], np.float64))


@check
def lists(lib):
    @ct.kernel
    def total(xs, out, N: ct.Constant[int]):
        s = ct.zeros((N,), ct.float32)
        for i in range(len(xs)):
            s += ct.load(xs[i], 0, N, padding_mode=ct.PaddingMode.ZERO)
        ct.store(out, 0, s)

    for count in (1, 3, 40):
        out = zeros(lib, 16)
        xs = [arange(lib, 5 + k % 12) for k in range(count)]
        lib.synchronize()
        ct.launch(lib.new_stream(), (1,), total, (xs, out, 16))
        lib.synchronize()
        want = sum(np.pad(np.arange(5 + k % 12, dtype=np.float32), (0, 11 - k % 12)) for k in range(count))
        same(lib.to_host(out), want)
    lib.synchronize()
    try:
        with lib.captured([]) as stream:
            raises(RuntimeError, "list of arrays", ct.launch, stream, (1,), total, (xs, out, 16))
            ct.launch(stream, (1,), scale, (xs[0], out, 1.0, 16))  # a graph of something
    finally:
        lib.synchronize()


@check
def views(lib):
    base = np.arange(64 * 48, dtype=np.float32).reshape(64, 48)
    rows = [base.T, base[::2], base[:, 1:33], base[3:, 5:]]
    device = lib.to_device(base)
    cut = [device.T, device[::2], device[:, 1:33], device[3:, 5:]]
    if lib.name == "cupy":
        rows += [base[::-1], base[:, ::-1], base[::-2, ::-3].T, np.broadcast_to(base[:1], (8, 48))]
        cut += [device[::-1], device[:, ::-1], device[::-2, ::-3].T, lib.cupy.broadcast_to(device[:1], (8, 48))]
    for want, x in zip(rows, cut):
        y = lib.to_device(np.zeros(want.shape, np.float32))
        grid = (ct.cdiv(want.shape[0], 16), ct.cdiv(want.shape[1], 16))
        ct.launch(lib.current(), grid, copy2, (x, y, 16, 16))
        lib.synchronize()
        same(lib.to_host(y), want)
    if lib.name == "cupy":  # store through a negative stride
        y = lib.to_device(np.zeros((64, 48), np.float32))
        ct.launch(lib.current(), (4, 3), copy2, (device, y[::-1, ::-1], 16, 16))
        lib.synchronize()
        same(lib.to_host(y), base[::-1, ::-1])
    return f"{len(rows)} views"


@check
def dtypes(lib):
    import ml_dtypes

    seen = []
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                 "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
        x = np.array([[0, 1, 0, 1] * 4] * 8).astype(dtype)
        try:
            a, b = lib.to_device(x), lib.to_device(np.zeros_like(x))
        except (TypeError, ValueError):
            continue
        ct.launch(lib.current(), (1, 1), copy2, (a, b, 8, 16))
        lib.synchronize()
        same(lib.to_host(b).view(np.uint8), x.view(np.uint8))
        seen.append(name)
    return ", ".join(seen)


@check
def parts_and_scans(lib):
    """Parts taken out and put in, prefixes of a function that does not commute: as in the interpreter."""
    def affine(a0, b0, a1, b1):
        return a0 * a1, b0 * a1 + b1

    @ct.kernel
    def k(x, out, AXIS: ct.Constant[int], REVERSE: ct.Constant[bool]):
        t = ct.load(x, (0, 0), (8, 16))
        t = ct.insert(t, (1, 1), ct.extract(t, (0, 1), (4, 8)) + 7)
        p, q = ct.scan((t, t + 5), AXIS, affine, (1, 0), reverse=REVERSE)
        ct.store(out, (0, 0), ct.cat((p, q), 0))

    x = np.random.default_rng(0).integers(-3, 4, (8, 16)).astype(np.int32)
    for options in ((0, False), (1, False), (1, True), (0, True)):
        want, got = np.zeros((16, 16), np.int32), lib.to_device(np.zeros((16, 16), np.int32))
        ct.launch(None, (1,), k, (x, want, *options))
        ct.launch(lib.current(), (1,), k, (lib.to_device(x), got, *options))
        lib.synchronize()
        same(lib.to_host(got), want)


@check
def repeated_launches(lib):
    """A launch like one before is queued in C where that was built. Numbers, streams and arrays change all the time."""
    from cutile import repeat

    streams = [lib.current(), lib.new_stream()]
    pairs = [(arange(lib, n), zeros(lib, n)) for n in (5000, 5000, 4099, 64)]
    pairs += [(x[::2], y[::2]) for x, y in pairs[:1]] + [(x[1:], y[1:]) for x, y in pairs[1:2]]
    lib.synchronize()
    for k in range(200):
        x, y = pairs[k % len(pairs)]
        factor = k % 7 * 0.5
        ct.launch(streams[k % 2], (ct.cdiv(x.shape[0], 512),), scale, (x, y, factor, 512))
        lib.synchronize()
        same(lib.to_host(y), lib.to_host(x) * np.float32(factor))
    return "in Python" if repeat.extension() is None else "in C"


@check
def tuning(lib):
    """A search times launches on the GPU, and less work takes less time."""
    x, y = arange(lib, 1 << 24), zeros(lib, 1 << 24)
    found = ct.tune.exhaustive_search([1 << 4, 1 << 14], lib.current(), lambda n: (n,), scale,
                                      lambda n: (x, y, 2.0, 1024), quiet=True)
    us = {m.config: m.mean_us for m in found.successes}
    assert found.best.config == 1 << 4 and us[1 << 14] > 1.5 * us[1 << 4] and us[1 << 14] < 5000, us
    return ", ".join(f"{n} blocks {t:.1f} us" for n, t in us.items())


@check
def other_protocols(lib):
    class Interface:
        def __init__(self, a):
            self.array, self.__cuda_array_interface__ = a, a.__cuda_array_interface__

    class Packet:
        def __init__(self, a):
            self.array = a

        def __dlpack__(self, **kw):
            return self.array.__dlpack__(**kw)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    for wrap in (Interface, Packet):
        for _ in range(2):
            x, y = arange(lib), zeros(lib)
            lib.synchronize()
            ct.launch(None, (5,), scale, (wrap(x), wrap(y), 3.0, 1024))
            lib.synchronize()
            same(lib.to_host(y), 3 * np.arange(5000, dtype=np.float32))


@check
def sizes(lib):
    for n in (*range(1, 70), 1000, 1024, 4099):
        x, y = arange(lib, n), zeros(lib, n)
        ct.launch(lib.current(), (ct.cdiv(n, 64),), scale, (x, y, 2.0, 64))
        lib.synchronize()
        same(lib.to_host(y), 2 * np.arange(n, dtype=np.float32))


@check
def nothing_to_do(lib):
    x, y = arange(lib), zeros(lib)
    ct.launch(lib.current(), (0,), scale, (x, y, 2.0, 1024))
    ct.launch(lib.current(), (0, 3), scale, (x, y, 2.0, 1024))
    empty = lib.to_device(np.zeros(0, np.float32))
    ct.launch(lib.current(), (0,), scale, (empty, empty, 2.0, 1024))
    ct.launch(lib.current(), (1,), scale, (empty, empty, 2.0, 1024))
    lib.synchronize()
    assert not lib.to_host(y).any()


@check
def a_mix_is_refused(lib):
    x, y = arange(lib), np.zeros(5000, np.float32)
    raises(TypeError, "`x` is in the memory of GPU 0, `y` in CPU memory", ct.launch, None, (5,), scale, (x, y, 1.0, 64))
    raises(TypeError, "cannot use", ct.launch, object(), (5,), scale, (x, zeros(lib), 1.0, 64))


# ------------------------------------------------------------------ threads, devices, the interpreter


@check
def eight_threads(lib):
    @ct.kernel
    def k(x, y, f, N: ct.Constant[int]):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), N) * f + N)

    work, failed = [], []
    for t in range(8):
        work.append([(arange(lib, 4096), zeros(lib, 4096), float(t + 1), 256 << (t % 3)) for _ in range(20)])
    lib.synchronize()

    def run(jobs):
        try:
            stream = lib.new_stream()
            for job in jobs:
                ct.launch(stream, (4096 // job[3],), k, job)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(jobs,)) for jobs in work]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    lib.synchronize()
    assert not failed, failed[0]
    for jobs in work:
        for _, y, f, n in jobs:
            same(lib.to_host(y), np.arange(4096, dtype=np.float32) * np.float32(f) + n)


@check
def a_thread_without_context(lib):
    x, y = arange(lib), zeros(lib)
    lib.synchronize()
    t = threading.Thread(target=lambda: ct.launch(None, (5,), scale, (x, y, 2.0, 1024)))
    t.start()
    t.join()
    lib.synchronize()
    same(lib.to_host(y), 2 * np.arange(5000, dtype=np.float32))


@check
def on_the_interpreter(lib):
    os.environ["CUTILE_BACKEND"] = "interp"
    try:
        x = arange(lib, 6000)
        lib.synchronize()
        ct.launch(lib.new_stream(), (5,), scale, (x[:5000], x[1000:], 2.0, 1024))  # overlapping: block by block
        lib.synchronize()
        host = np.arange(6000, dtype=np.float32)
        ct.launch(None, (5,), scale, (host[:5000], host[1000:], 2.0, 1024))
        same(lib.to_host(x), host)
        dt = np.float16
        a = lib.to_device(np.arange(12, dtype=dt).reshape(3, 4))
        b = lib.to_device(np.zeros((4, 4), dt))
        ct.launch(lib.current(), (1, 1), copy2, (a.T, b[:, 1:], 4, 4))
        same(lib.to_host(b)[:, 1:], np.arange(12, dtype=dt).reshape(3, 4).T)
    finally:
        del os.environ["CUTILE_BACKEND"]


@check
def several_gpus(lib):
    from cutile.gpu.driver import driver

    n = driver().count()
    if n < 2:
        raise Skipped("one GPU only")
    for k in range(n):
        if lib.name == "torch":
            x = lib.torch.arange(5000, dtype=lib.torch.float32, device=f"cuda:{k}")
            y = lib.torch.zeros_like(x)
        else:
            with lib.cupy.cuda.Device(k):
                x, y = arange(lib), zeros(lib)
        ct.launch(None, (5,), scale, (x, y, 2.0, 1024))
        if lib.name == "torch":
            lib.torch.cuda.synchronize(k)
            same(lib.to_host(y), 2 * np.arange(5000, dtype=np.float32))
        else:
            with lib.cupy.cuda.Device(k):
                lib.synchronize()
                same(lib.to_host(y), 2 * np.arange(5000, dtype=np.float32))
    raises(TypeError, "memory of GPU", ct.launch, None, (5,), scale, (arange(lib), y, 1.0, 1024))
    return f"{n} GPUs"


# ------------------------------------------------------------------ in a process of their own

HEAD = f"""
import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]
import numpy as np, cutile as ct
from _gpu_arrays import libraries
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()): lib = libraries()[0]
"""

ALONE["a failed assertion is told"] = ("""
@ct.kernel
def k(x):
    ct.assert_(ct.load(x, 0, ()) > 5, "too small")
x = lib.to_device(np.zeros(4, np.float32))
ct.launch(None, (1,), k, (x,))
try:
    lib.synchronize()
except Exception as e:
    print("synchronising:", type(e).__name__)
try:
    ct.launch(None, (1,), k, (x,))
    print("NO ERROR")
except RuntimeError as e:
    print(type(e).__name__, e)
""", "the process can use this GPU no more")

ALONE["what a kernel prints"] = ("""
@ct.kernel
def k(n):
    ct.print("block", ct.bid(0), "of", n)
ct.launch(lib.current(), (2,), k, (2,))
lib.synchronize()
""", "block 1 of 2")

ALONE["a forked process is told"] = ("""
import multiprocessing, os
@ct.kernel
def k(x): ct.store(x, 0, 1.0)
x = lib.to_device(np.zeros(4, np.float32))
ct.launch(None, (1,), k, (x,))
lib.synchronize()
sys.stdout.flush()
if os.fork() == 0:
    try:
        ct.launch(None, (1,), k, (x,))
        print("NO ERROR")
    except Exception as e:
        print(type(e).__name__, e)
    sys.stdout.flush(); os._exit(0)
os.wait()
""", "forked after CUDA was initialised")

ALONE["no context before the launch"] = ("""
from cuda.bindings import driver as d
x = lib.to_device(np.arange(4, dtype=np.float32)); y = lib.to_device(np.zeros(4, np.float32)); lib.synchronize()
d.cuCtxSetCurrent(d.CUcontext(0))
@ct.kernel
def k(x, y): ct.store(y, 0, ct.load(x, 0, (4,)))
ct.launch(None, (1,), k, (x, y))
assert int(d.cuCtxGetCurrent()[1]) == 0, "the context stayed behind"
lib.synchronize()
print(lib.to_host(y).tolist())
""", "[0.0, 1.0, 2.0, 3.0]")


def alone(program: str, expected: str) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")  # not -c: before Python 3.13 the source of that is lost
        file.write_text(HEAD + program)
        done = subprocess.run([sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=180)
    assert expected in done.stdout, f"said {done.stdout[-1500:]}"
    return next((line[:150] for line in done.stdout.splitlines() if expected in line), None)


def run(name: str, f, *args) -> bool:
    start = time.perf_counter()
    try:
        said, verdict = f(*args), "ok"
    except Skipped as e:
        said, verdict = str(e), "skipped"
    except Exception as e:
        said, verdict = f"{type(e).__name__}: {e}", "FAILED"
        if os.environ.get("SMOKE_TRACE"):
            traceback.print_exc()
    print(f"{verdict:8} {name:45} {time.perf_counter() - start:6.2f} s  {said or ''}", flush=True)
    return verdict != "FAILED"


def main(parts: list[str]) -> int:
    libs = libraries()
    if not libs:
        print("neither torch nor CuPy sees a GPU")
        return 1
    jobs = [(f"{name} [{lib.name}]", f, (lib,)) for lib in libs for name, f in CHECKS.items()]
    jobs += [(name, alone, program) for name, program in ALONE.items()]
    chosen = [j for j in jobs if not parts or any(p in j[0] for p in parts)]
    failed = sum(not run(name, f, *args) for name, f, args in chosen)
    print(f"{len(chosen) - failed} of {len(chosen)} ok or skipped, {failed} failed")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
