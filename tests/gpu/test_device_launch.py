"""Prepared launches: what the driver is told, and that threads do not mix their parameters."""

import struct
import threading
from types import SimpleNamespace

import pytest

import cutile as ct
from cutile import settings
from cutile.gpu import grid_functions, selection, unchecked
from cutile.gpu.device_launch import DeviceLaunch, _load
from cutile.gpu.driver import DriverError
from cutile.gpu.parameters import packing
from cutile.gpu.selection import First
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


def test_code_with_checks_is_other_code(fake):
    """CUTILE_SANITIZE=memcheck leaves launches on the GPU, with code of its own."""
    usual, checked = prepared(fake), DeviceLaunch("k", fake.start().device(1), "function", None, memcheck=True)
    assert usual.still_valid() and not checked.still_valid()
    with settings.override(SANITIZE="memcheck"):
        assert checked.still_valid() and not usual.still_valid() and not settings.on_host()
    with settings.override(SANITIZE="all"):
        assert not checked.still_valid() and not usual.still_valid() and settings.on_host()


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


# ------------------------------------------------------------------ variants


USUAL, OTHER, BEST = 100, 101, 102
GRIDS = 16


class Ready:
    """A variant as DeviceLaunch sees it."""

    def __init__(self, function, ready=True):
        self.coming, self.function, self.given_up, self.asked, self.told = function, None, False, 0, []
        self.what = f"as {function}"
        if ready:
            self.be_ready()

    def be_ready(self):
        self.ready = True
        for told in self.told:
            told()

    settled = property(lambda self: self.function is not None or self.given_up)
    ready, wanted = False, True

    def give_up(self, why):
        self.given_up = True

    def make_now(self):
        self.function = self.coming

    def function_or_start(self, when_made):
        self.asked += 1
        if self.ready:
            self.function = self.coming
        else:
            self.told.append(when_made)
        return self.function


def small(grid):
    return grid[0] <= 4


def with_variants(fake, *variants):
    fake.sizes |= dict.fromkeys((USUAL, OTHER, BEST), [8, 4, 4, 4])
    return DeviceLaunch("k", fake.start().device(1), USUAL, packing(TYPES, [((5,), (1,)), None]), variants=variants)


def run(fake, launch, grid, stream=77):
    """The function that runs; what C code would run, if it knows, is the same."""
    launch.run(grid, stream, [4096, -1], False)
    used = fake.launches[-1]["function"]
    choices = {tuple(c[:3]): c[4] for c in struct.iter_unpack("=4IQ", launch.choices[0]) if c[4]}
    assert choices == launch._chosen and choices.get(grid, used) == used
    return used, grid in choices


def test_a_variant_runs_only_where_it_may(fake):
    launch = with_variants(fake, (Ready(OTHER), small))
    for _ in range(2):
        assert run(fake, launch, (4, 1, 1)) == (OTHER, True) and run(fake, launch, (5, 1, 1)) == (USUAL, True)
    assert launch.variants[0][0].asked == 1


def test_the_first_variant_that_is_ready_and_may_run(fake):
    best = Ready(BEST, ready=False)
    launch = with_variants(fake, (best, small), (Ready(OTHER), lambda grid: True))
    assert [run(fake, launch, (n, 1, 1))[0] for n in (4, 5)] == [OTHER, OTHER]
    best.be_ready()
    assert [run(fake, launch, (n, 1, 1))[0] for n in (4, 5)] == [BEST, OTHER]


def test_the_usual_code_until_the_variant_is_made(fake):
    variant = Ready(OTHER, ready=False)
    launch = with_variants(fake, (variant, small))
    for _ in range(3):
        assert run(fake, launch, (4, 1, 1)) == (USUAL, True)
    assert variant.asked == 1
    variant.be_ready()
    assert launch.choices == [b""] and run(fake, launch, (4, 1, 1)) == (OTHER, True)


def test_a_launch_that_asks_first_leaves_the_choice_to_the_next(fake):
    """Also C code does not know what runs, so that it lets the next launch ask."""
    variant = Ready(OTHER, ready=False)
    variant.wanted = False
    launch = with_variants(fake, (variant, small))
    assert run(fake, launch, (4, 1, 1)) == (USUAL, False) and run(fake, launch, (5, 1, 1)) == (USUAL, True)
    variant.wanted = True
    assert run(fake, launch, (4, 1, 1)) == run(fake, launch, (4, 1, 1)) == (USUAL, True)
    assert variant.asked == 2
    variant.be_ready()
    assert run(fake, launch, (4, 1, 1)) == (OTHER, True)


def test_a_variant_that_becomes_ready_while_a_launch_decides(fake):
    variant = Ready(OTHER, ready=False)
    usual_ask = variant.function_or_start

    def ask(when_made):
        answer = usual_ask(when_made)
        variant.function_or_start = usual_ask
        variant.be_ready()
        return answer

    variant.function_or_start = ask
    launch = with_variants(fake, (variant, small))
    assert run(fake, launch, (4, 1, 1)) == (USUAL, False) and run(fake, launch, (4, 1, 1)) == (OTHER, True)


@pytest.mark.parametrize("ready", [True, False])
def test_while_a_graph_is_captured_nothing_is_made_or_loaded(fake, ready):
    variant = Ready(OTHER, ready)
    launch = with_variants(fake, (variant, small))
    for failed, status in ((0, 1), (0, 2), (906, 0)):
        fake.fails["cuStreamIsCapturing"], fake.capturing = failed, status
        assert run(fake, launch, (4, 1, 1)) == (USUAL, False) and run(fake, launch, (5, 1, 1))[0] == USUAL
    assert not variant.asked
    fake.fails["cuStreamIsCapturing"], fake.capturing = 0, 0
    run(fake, launch, (4, 1, 1))
    variant.be_ready()
    assert run(fake, launch, (4, 1, 1)) == (OTHER, True)
    fake.capturing = 1
    assert run(fake, launch, (3, 1, 1)) == (OTHER, True)  # what is loaded serves in a capture


def test_a_variant_that_is_given_up(fake):
    variant = Ready(OTHER, ready=False)
    variant.given_up = True
    launch = with_variants(fake, (variant, small))
    fake.capturing = 1
    assert run(fake, launch, (4, 1, 1)) == (USUAL, True) and not variant.asked


def test_a_choice_is_kept_for_some_grids(fake, monkeypatch):
    asked = []
    monkeypatch.setattr(grid_functions, "LIMIT", GRIDS)
    launch = with_variants(fake, (Ready(OTHER), lambda grid: asked.append(grid) or small(grid)))
    for n in range(1, 3 * GRIDS + 1):
        assert run(fake, launch, (n, 1, 1)) == (OTHER if n <= 4 else USUAL, True)
    assert len(launch._chosen) == GRIDS and len(asked) == 3 * GRIDS
    run(fake, launch, (3 * GRIDS, 1, 1))
    assert len(asked) == 3 * GRIDS
    assert run(fake, launch, (1, 1, 1)) == (OTHER, True) and len(asked) == 3 * GRIDS + 1


def test_a_condition_that_fails_concerns_nobody(fake):
    def fails(grid):
        raise ZeroDivisionError

    variant = Ready(OTHER)
    launch = with_variants(fake, (variant, fails))
    assert run(fake, launch, (4, 1, 1)) == (USUAL, True) and variant.given_up
    launch.make_variants((4, 1, 1))
    assert run(fake, launch, (4, 1, 1)) == (USUAL, True)


def test_all_variants_of_a_grid_made_at_once(fake):
    best = Ready(BEST, ready=False)
    launch = with_variants(fake, (best, small), (Ready(OTHER, ready=False), small))
    assert run(fake, launch, (4, 1, 1)) == (USUAL, True)
    launch.make_variants((4, 1, 1))
    assert best.function == BEST and run(fake, launch, (4, 1, 1)) == (BEST, True)


def test_what_runs_is_told(fake, capsys):
    with settings.override(DEBUG=1):
        launch = with_variants(fake, (Ready(OTHER), small))
        launch.traced = True
        for grid in ((4, 1, 1), (5, 1, 1), (0, 1, 1)):
            launch.run(grid, 77, [4096, -1], False)
    assert capsys.readouterr().err == "".join(
        f"cutile: k grid {grid} runs on GPU 1 (sm_90){how}\n"
        for grid, how in (((4, 1, 1), ", as 101"), ((5, 1, 1), ""), ((0, 1, 1), "")))


# ------------------------------------------------------------------ code that is selected


def loaded(fake, monkeypatch, settled, may_run):
    """The variants of a kernel whose first code is settled or not, with code for the grids that `may_run` allows."""
    monkeypatch.setattr(selection, "for_first_launch", lambda *what: First(b"first", settled, False))
    found = may_run and SimpleNamespace(kernel=SimpleNamespace(name="k"), for_arrays=lambda dims: may_run)
    monkeypatch.setattr(unchecked, "unchecked", lambda kernel, uses_tma: found)
    it = _load(SimpleNamespace(name="k"), (), "k", None, fake.start().device(0))
    return [(v.what, may_run(())) for v, may_run in it.variants]


def test_selected_code_runs_where_nothing_better_may(fake, monkeypatch):
    assert loaded(fake, monkeypatch, True, None) == []
    [(name, may_run)] = loaded(fake, monkeypatch, False, None)
    assert name == "with selected hints" and may_run((1, 1, 1))
    [(name, _)] = loaded(fake, monkeypatch, True, small)
    assert name == "without checks of bounds"
    (first, _), (second, may_run) = loaded(fake, monkeypatch, False, small)
    assert (first, second) == ("without checks of bounds", "with selected hints")
    assert may_run((5, 1, 1)) and not may_run((4, 1, 1))
