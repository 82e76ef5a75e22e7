"""Prepared launches: what the driver is told, and that threads do not mix their parameters."""

import struct
import threading

import pytest

import cutile as ct
from cutile.gpu.device_launch import DeviceLaunch
from cutile.gpu.driver import DriverError
from cutile.gpu.parameters import packing
from cutile.types import ArrayType, ListType, TileType
from tests.gpu.fake_driver import FakeDriver
from tests.patience import PATIENCE

TYPES = [ArrayType(ct.float32, 1), TileType(ct.int32)]
LIST = [ListType(ArrayType(ct.float32, 1)), TileType(ct.int32)]


@pytest.fixture
def fake():
    fake = FakeDriver()
    fake.sizes["function"] = [8, 4, 4, 4]
    return fake


def prepared(fake, types=TYPES, dims=(((5,), (1,)), None)):
    return DeviceLaunch("k", fake.start().device(1), "function", packing(types, list(dims)))


def test_a_launch(fake):
    prepared(fake).run((3, 2, 1), 77, [4096, -1], False)
    (launch,) = fake.launches
    assert launch == {"function": "function", "grid": (3, 2, 1), "stream": 77, "context": 0x1001, "attributes": [],
                      "parameters": [struct.pack("<Q", 4096), b"\5\0\0\0", b"\1\0\0\0", b"\xff\xff\xff\xff"]}
    assert fake.contexts == [0]


def test_nothing_but_the_launch_is_called_in_the_right_context(fake):
    p = prepared(fake)
    fake.contexts[:], fake.calls[:] = [0x1001], []
    for _ in range(3):
        p.run((1, 1, 1), 0, [4096, 7], False)
    assert fake.names() == ["cuLaunchKernel"] * 3


def test_a_dependent_launch(fake):  # LAUNCH-4
    prepared(fake).run((3, 2, 1), 77, [4096, 7], True)
    (launch,) = fake.launches
    assert (launch["grid"], launch["stream"]) == ((3, 2, 1), 77)
    assert launch["attributes"] == [(6, {"programmaticStreamSerializationAllowed": 1})]
    assert fake.names()[-2:] == ["cuLaunchKernelEx", "cuCtxPopCurrent"]


def test_a_refused_launch(fake):
    fake.fails["cuLaunchKernel"] = 700
    with pytest.raises(DriverError, match=r"kernel k cannot be launched on GPU 1 \(sm_90\) with grid \(3, 2, 1\): "):
        prepared(fake).run((3, 2, 1), 0, [4096, 7], False)
    assert fake.contexts == [0]


def test_lists_of_arrays(fake):  # CC-6, ARG-7
    fake.sizes["function"] = [8, 4, 4]
    p = prepared(fake, LIST, ([((5,), (1,)), ((6,), (-2,))], None))
    fake.calls.clear()
    p.run((1, 1, 1), 77, [[4096, 8192], 3], False)
    assert fake.names() == ["cuCtxPushCurrent", "cuStreamIsCapturing", "cuMemAllocAsync", "cuMemcpyHtoDAsync",
                            "cuLaunchKernel", "cuMemFreeAsync", "cuCtxPopCurrent"]
    assert all(c[-1] == 77 for c in fake.calls if "Async" in c[0] or "Capturing" in c[0])
    table, length, number = fake.launches[0]["parameters"]
    ((address, memory),) = fake.allocated.items()
    assert (table, length, number) == (struct.pack("<Q", address), b"\2\0\0\0", b"\3\0\0\0")
    assert struct.unpack("<6q", memory.raw) == (4096, 5, 1, 8192, 6, -2)


def test_lists_of_arrays_while_a_graph_is_captured(fake):  # ARG-7
    p = prepared(fake, LIST, ([((5,), (1,))], None))
    for state in (1, 2):
        fake.capturing = state
        with pytest.raises(RuntimeError, match="kernel k takes a list of arrays.*CUDA graph is captured"):
            p.run((1, 1, 1), 77, [[4096], 3], False)
    assert not fake.allocated and not fake.launches and fake.contexts == [0]


@pytest.mark.parametrize("call", ["cuMemAllocAsync", "cuMemcpyHtoDAsync", "cuLaunchKernel"])
def test_the_table_of_a_list_is_given_back_when_something_fails(fake, call):
    fake.sizes["function"] = [8, 4, 4]
    fake.fails[call] = 999
    with pytest.raises(DriverError, match="k"):
        prepared(fake, LIST, ([((5,), (1,))], None)).run((1, 1, 1), 77, [[4096], 3], False)
    assert fake.names().count("cuMemFreeAsync") == (call != "cuMemAllocAsync") and fake.contexts == [0]


def test_threads(fake):
    """Each launch sees its own parameters, whoever else launches."""
    inside = threading.Barrier(4, timeout=PATIENCE)
    seen = []
    fake.contexts[:] = [0x1001]

    class Slow(FakeDriver):
        def cuLaunchKernel(self, *arguments):
            inside.wait()  # all four have filled their buffers
            answer = super().cuLaunchKernel(*arguments)
            inside.wait()
            return answer

    fake.__class__ = Slow
    p = prepared(fake)

    def run(n):
        for k in range(5):
            p.run((1, 1, 1), n, [4096 + n, n * 100 + k], False)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for launch in fake.launches:
        pointer, number = launch["parameters"][0], launch["parameters"][3]
        n = launch["stream"]
        assert struct.unpack("<Q", pointer) == (4096 + n,) and struct.unpack("<i", number)[0] // 100 == n
        seen.append(struct.unpack("<i", number)[0])
    assert sorted(seen) == sorted(n * 100 + k for n in range(4) for k in range(5))
