"""The driver: GPUs, contexts, loading, and what its errors mean."""

import os
import subprocess
import sys
import threading
import types

import pytest

import cutile as ct
from cutile.gpu import driver as drivers
from cutile.gpu.driver import DriverError
from tests.gpu.fake_driver import CODES, FakeDriver


@pytest.fixture
def fake():
    return FakeDriver()


def test_devices(fake):
    d = fake.start()
    one = d.device(1)
    assert (str(one), one.context, d.device(1) is one, d.count()) == ("GPU 1 (sm_90)", 0x1001, True, 2)
    assert fake.names().count("cuDevicePrimaryCtxRetain") == 1
    assert (d.version(), d.name(0), d.capability(0)) == ("13.1", "Fake 9000", (9, 0))
    assert str(FakeDriver((12, 1)).start().device(0).target) == "sm_121"
    with pytest.raises(ct.TileUnsupportedFeatureError, match="compute capability 7.5"):
        FakeDriver((7, 5)).start().device(0)


def test_the_context_is_entered_where_it_is_not_current_and_left_again(fake):
    device = fake.start().device(1)
    for before in (0, 0x1000, 0x5555):
        fake.contexts[:] = [before]
        with device.current():
            assert fake.contexts == [before, 0x1001]
        assert fake.contexts == [before]
    fake.contexts[:], fake.calls[:] = [0x1001], []
    with device.current():
        assert fake.contexts == [0x1001]
    assert fake.names() == []


def test_the_context_is_left_after_an_error(fake):
    device = fake.start().device(1)
    with pytest.raises(ZeroDivisionError), device.current():
        raise ZeroDivisionError
    assert fake.contexts == [0]


def test_a_module_is_loaded_once_and_in_relaxed_mode(fake):
    device, other = (fake.start().device(k) for k in (0, 1))
    fake.calls.clear()
    f = device.function(b"cubin", "k")
    assert f == device.function(b"cubin", "k") and fake.functions[f] == ("function", b"cubin", "k")
    assert device.function(b"cubin", "l") != f
    assert [c for c in fake.calls if c[0] == "cuModuleLoadData"] == [("cuModuleLoadData", b"cubin", 0x1000)]
    other.function(b"cubin", "k")
    assert ("cuModuleLoadData", b"cubin", 0x1001) in fake.calls
    assert fake.mode == 0 and fake.contexts == [0]  # both as before


def test_the_capture_mode_is_restored_when_loading_fails(fake):
    device = fake.start().device(0)
    fake.fails["cuModuleLoadData"] = 999
    with pytest.raises(DriverError, match="kernel k cannot be loaded on GPU 0"):
        device.function(b"cubin", "k")
    assert fake.mode == 0 and fake.contexts == [0]


def test_threads_retain_a_device_once(fake):
    d = fake.start()
    barrier, found = threading.Barrier(8), []

    def run():
        barrier.wait()
        found.append(d.device(0))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, found))) == 1 and fake.names().count("cuDevicePrimaryCtxRetain") == 1


def test_where_pointers_and_streams_are(fake):
    d = fake.start()
    fake.homes[4096] = 1
    assert d.device_of_pointer(4096) == 1 and d.device_of_pointer(64) == 0
    assert d.device_of_stream(0x155) == 1 and fake.contexts == [0]
    for default in (0, 1, 2):
        assert d.device_of_stream(default) == 0
        fake.contexts.append(0x1001)
        assert d.device_of_stream(default) == 1
        fake.contexts.pop()


@pytest.mark.parametrize("variable, flags", [(None, 0), ("0", 0), ("1", 2)])
def test_addresses_of_calls(fake, monkeypatch, variable, flags):
    """With the default streams that cuda.bindings itself uses."""
    if variable:
        monkeypatch.setenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", variable)
    asked = []
    monkeypatch.setattr(fake, "cuGetProcAddress", lambda *a: (asked.append(a), (0, 4096, 0))[1], raising=False)
    assert fake.start().address("cuLaunchKernel") == 4096
    assert asked == [(b"cuLaunchKernel", 12000, flags)]


@pytest.mark.parametrize("code, says", [
    (400, "the stream belongs to another GPU"), (700, "outside its arrays"), (710, "assertion of a kernel"),
    (719, "failed assertion or an access"), (999, "something or other")])
def test_errors(fake, code, says):
    e = fake.start().error("kernel k cannot be launched", code)
    assert isinstance(e, ct.TileError) and isinstance(e, RuntimeError)  # LAUNCH-6
    assert e.code == CODES[code]
    assert str(e).startswith("kernel k cannot be launched: ") and says in str(e) and f"({CODES[code]})" in str(e)


def test_no_gpu(fake):
    fake.fails["cuInit"] = 100
    with pytest.raises(DriverError, match=r"there is no GPU (.|\n)*help: pass arrays in host memory") as e:
        fake.start()
    assert e.value.code == "CUDA_ERROR_NO_DEVICE"


def test_every_meaning_is_a_sentence():
    for name, (meaning, help) in drivers.MEANINGS.items():
        assert name.startswith("CUDA_ERROR_") and meaning and not meaning.endswith(".") and help != ""


# ------------------------------------------------------------------ the driver of the process


def start(monkeypatch, api):
    monkeypatch.setattr(drivers, "_driver", None)
    bindings = None if api is None else types.SimpleNamespace(driver=api)
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    return drivers.driver()


def test_it_starts_once(monkeypatch, fake):
    d = start(monkeypatch, fake)
    assert d.api is fake and drivers.driver() is d and fake.names() == ["cuInit"]


def test_without_cuda_python(monkeypatch):
    with pytest.raises(ct.TileUnsupportedFeatureError, match=r"cuda-python(.|\n)*pip install 'cutile\[gpu\]'"):
        start(monkeypatch, None)


def test_without_a_driver(monkeypatch):
    class Api(FakeDriver):
        def cuInit(self, flags):
            raise OSError("libcuda.so.1: cannot open")

    with pytest.raises(ct.TileUnsupportedFeatureError, match=r"NVIDIA's driver, .*\(OSError\)(.|\n)*host memory"):
        start(monkeypatch, Api())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_starts_anew(monkeypatch, fake):
    start(monkeypatch, fake)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if drivers._driver is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert drivers._driver is not None


def test_nothing_of_it_is_loaded_by_importing_or_by_launching_on_the_cpu(tmp_path):
    program = ("import sys, numpy as np, cutile as ct\n"
               "k = ct.kernel(lambda x: ct.store(x, 0, 1.0))\n"
               "ct.launch(None, (1,), k, (np.zeros(1, np.float32),))\n"
               "print([m for m in sys.modules if m.split('.')[0] in ('cuda', 'torch', 'cupy', 'jax', 'numba')\n"
               "       or m.startswith('cutile.gpu')])")
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "[]"
