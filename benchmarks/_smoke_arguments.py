"""Checks of gpu_smoke.py: numbers, lists, views, dtypes and arrays of many libraries as arguments; hints; tuning."""

from __future__ import annotations

import numpy as np
from _smoke import Skipped, add, arange, check, copy2, needs, raises, same, scale, zeros

import cutile as ct


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
    """extract and insert, and scans with a function that does not commute, give what the interpreter gives."""
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
    """Repeated launches, queued in C where the extension was built, with numbers, streams and arrays that change."""
    from cutile.runtime import launch_cache

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
    return "in Python" if launch_cache.extension() is None else "in C"


@check
def tuning(lib):
    """A search times launches on the GPU; less work takes less time, and the arrays stay as they were."""
    x, y = arange(lib, 1 << 24), zeros(lib, 1 << 24)
    found = ct.tune.exhaustive_search([1 << 4, 1 << 14], lib.current(), lambda n: (n,), scale,
                                      lambda n: (x, y, 2.0, 1024), quiet=True)
    same(lib.to_host(y), np.zeros(1 << 24, np.float32))
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
def numba_arrays(lib):
    cuda = needs("numba.cuda")
    a, b, c = (cuda.to_device(np.arange(5000, dtype=np.float32) * k) for k in (1, 2, 0))
    for stream in (cuda.stream(), None, 0):
        c.copy_to_device(np.zeros(5000, np.float32))
        cuda.synchronize()
        ct.launch(stream, (20,), add, (a, b, c, 256))
        cuda.synchronize()
        same(c.copy_to_host(), 3 * np.arange(5000, dtype=np.float32))


@check
def jax_arrays(lib):
    jax = needs("jax")
    if jax.default_backend() != "gpu":
        raise Skipped("JAX sees no GPU")

    @ct.kernel
    def widen(x, y):
        ct.store(y, 0, ct.load(x, 0, 64).astype(ct.float32))

    for dtype in (jax.numpy.float32, jax.numpy.bfloat16, jax.numpy.int8):
        x, y = jax.numpy.arange(64, dtype=dtype), zeros(lib, 64)
        ct.launch(lib.current(), (1,), widen, (x, y))
        lib.synchronize()
        same(lib.to_host(y), np.arange(64, dtype=np.float32))
    raises(TypeError, "read-only", ct.launch, None, (1,), widen, (zeros(lib, 64), jax.numpy.zeros(64)))


@check
def calls_from_jax(lib):
    jax = needs("jax")
    if jax.default_backend() != "gpu":
        raise Skipped("JAX sees no GPU")
    from cutile.jax import InputOutput, OutputPlaceholder, cutile_call

    @jax.jit
    def f(x, y):
        x = cutile_call((20,), scale, (x + 1, OutputPlaceholder(x.shape, x.dtype), 3.0, 256)) * 2
        return cutile_call((20,), add, (x, x, InputOutput(y), 256))

    x = jax.numpy.arange(5000, dtype="float32")
    for _ in range(3):
        same(np.asarray(f(x, x)), 12 * (np.arange(5000, dtype=np.float32) + 1))
    same(np.asarray(x), np.arange(5000, dtype=np.float32))


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
    raises(TypeError, "`x` is in GPU memory, `y` in CPU memory", ct.launch, None, (5,), scale, (x, y, 1.0, 64))
    raises(TypeError, "cannot use", ct.launch, object(), (5,), scale, (x, zeros(lib), 1.0, 64))
