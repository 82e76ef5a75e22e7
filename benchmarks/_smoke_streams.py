"""Checks of gpu_smoke.py: streams, graphs, dependent launches, threads, devices, the interpreter."""

from __future__ import annotations

import os
import threading

import numpy as np
from _smoke import Skipped, add, arange, check, copy2, raises, same, scale, zeros

import cutile as ct


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
def prepared(lib):
    """Launches that were prepared: on streams, with other arrays and numbers, captured in a graph."""
    x, y, z, graphs = arange(lib), zeros(lib), zeros(lib), []
    want = np.arange(5000, dtype=np.float32)
    step = ct.prepare(scale, (5,), (x, y, 2.0, 1024))
    stream = lib.new_stream()
    for factor, out in ((2.0, y), (0.5, z), (3.0, y)):
        step.replace(y=out, f=factor)
        lib.synchronize()
        for on in (stream, lib.current(), None):
            step(on)
            lib.synchronize()
        same(lib.to_host(out), factor * want)
    with lib.captured(graphs) as on:
        step(on)
    step.replace(y=z, f=7.0)  # the graph keeps what it captured
    y[:] = 0
    graphs[0]()
    lib.synchronize()
    same(lib.to_host(y), 3 * want)
    raises(ValueError, "sizes", lambda: step.replace(x=arange(lib, 4999)))


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
