"""Building: what is compiled anew and what is not, one compilation at a time, what two processes do."""

import gc
import itertools
import linecache
import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import cutile as ct
from cutile import settings
from cutile.compilation import ArrayConstraint, CallingConvention, KernelSignature
from cutile.compilation.export import arg_types
from cutile.gpu import cache, cache_key, find_tileiras, process
from cutile.gpu import cubin as building
from cutile.gpu.cubin import build
from cutile.gpu.find_tileiras import Tool
from cutile.gpu.target import parse_target
from cutile.gpu.tileir import tileiras
from cutile.runtime.kernel import typed
from cutile.runtime.options import ByTarget
from tests.gpu.tileir.test_tileiras import script
from tests.gpu.tileir.tool import needs_tool
from tests.patience import PATIENCE

SOURCE = """import cutile as ct

def twice(x):
    return x * 2

@ct.kernel
def scale(a, b, n: ct.Constant):
    i = ct.bid(0)
    ct.store(b, (i,), twice(ct.load(a, (i,), (n,))) + 1)
"""
SM_90 = parse_target("sm_90")


def array(**kw) -> ArrayConstraint:
    return ArrayConstraint(ct.float32, 1, **{"index_dtype": ct.int32, "stride_lower_bound_incl": 0, "alias_groups": (),
                                             "may_alias_internally": False, "stride_constant": 1, **kw})


def kernel_of(folder: Path, source: str = SOURCE):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.py").write_text(source)
    linecache.checkcache()
    return runpy.run_path(str(folder / "scale.py"))["scale"]


def of(kernel, a: ArrayConstraint | None = None, target=SM_90, n: int = 128, options=None, symbol="scale") -> bytes:
    signature = KernelSignature([a or array(), array(), n], CallingConvention.cutile_python_v1())
    program = typed(kernel, arg_types(kernel, signature)).kernel
    return build(program, signature.parameters, target, options or kernel.options, symbol)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_warned", set())
    for name in ("CUTILE_CACHE", "CUTILE_CACHE_SIZE", "CUTILE_LINEINFO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path


@pytest.fixture
def compiled(folder, monkeypatch):
    """Stands in for the assembler; the list of what it was asked for."""
    calls = []

    def assemble(code, target, **kw):
        calls.append((target, kw))
        return b"code %d" % len(calls)

    tool = Tool(Path("tileiras"), "test", "13.5.37")
    monkeypatch.setattr(building, "find_tool", lambda: tool)
    monkeypatch.setattr(tileiras, "assemble", assemble)
    monkeypatch.setattr(tileiras, "newest_version", lambda tool=None: (13, 4))
    return calls


# ------------------------------------------------------------------ what is compiled anew


def test_once_per_kernel_and_signature(compiled, folder):
    k = kernel_of(folder)
    assert of(k) == of(k) == b"code 1"
    assert len(compiled) == 1


@pytest.mark.parametrize("other", [
    {"a": array(base_addr_divisible_by=16)}, {"a": array(shape_divisible_by=8)}, {"a": array(index_dtype=ct.int64)},
    {"a": array(may_alias_internally=True)}, {"target": parse_target("sm_100")}, {"n": 256}, {"symbol": "other"},
])
def test_whatever_code_depends_on_counts(compiled, folder, other):
    k = kernel_of(folder)
    of(k)
    of(k, **other)
    assert len(compiled) == 2


def test_options_count_by_their_values_on_the_target(compiled, folder):
    k = kernel_of(folder)
    of(k, options=k.options.replace(occupancy=ByTarget(sm_90=2, default=4), opt_level=ByTarget(sm_90=1)))
    of(k, options=k.options.replace(occupancy=2, opt_level=1))
    assert len(compiled) == 1 and compiled[0][1]["opt_level"] == 1
    of(k, options=k.options.replace(occupancy=2, opt_level=2))
    of(k, options=k.options.replace(occupancy=4, opt_level=1))
    assert len(compiled) == 3


def test_a_target_with_a_letter_is_the_one_without(compiled, folder):
    k = kernel_of(folder)
    of(k, options=k.options.replace(opt_level=ByTarget(sm_90=1)))
    of(k, options=k.options.replace(opt_level=ByTarget(sm_90=1)), target=parse_target("sm_90a"))
    assert len(compiled) == 1 and compiled[0][1]["opt_level"] == 1


def test_the_same_kernel_in_two_folders(compiled, folder):
    of(kernel_of(folder / "one"))
    of(kernel_of(folder / "two"))
    of(kernel_of(folder / "one", "# a comment\n\n" + SOURCE))
    assert len(compiled) == 1 and not compiled[0][1]["lineinfo"]


@pytest.mark.parametrize("edit", [("* 2", "* 3"), ("+ 1", "+ 2"), ("bid(0)", "bid(1)")])
def test_an_edited_kernel(compiled, folder, edit):
    of(kernel_of(folder / "one"))
    of(kernel_of(folder / "two", SOURCE.replace(*edit)))
    assert len(compiled) == 2


def test_line_information(compiled, folder, monkeypatch):
    one, two = folder / "one", folder / "two"
    k = kernel_of(one)
    of(k)
    with settings.override(LINEINFO=True):
        monkeypatch.setattr(sys, "path", [str(one), str(two), *sys.path])
        of(k)
        assert [kw["lineinfo"] for _, kw in compiled] == [False, True]
        of(kernel_of(two))  # scale.py as well
        assert len(compiled) == 2
        of(kernel_of(two / "package"))  # package/scale.py
        assert len(compiled) == 3
        of(kernel_of(one, "# a comment\n" + SOURCE))
        assert len(compiled) == 4


def test_another_cutile_or_another_release_of_the_assembler(compiled, folder, monkeypatch):
    k = kernel_of(folder)
    of(k)
    monkeypatch.setattr(building, "find_tool", lambda: Tool(Path("tileiras"), "test", "13.6.1"))
    of(k)
    assert len(compiled) == 2
    monkeypatch.setattr(cache_key, "sources", lambda: "edited")
    of(k)
    assert len(compiled) == 3


# Settings that the back end asks for: those that are in the key, and those that do not change code.
IN_THE_KEY = {"LINEINFO": True, "HINTS": False, "SANITIZE": "memcheck"}  # values other than the defaults
ASKED_BY = {"lineinfo": "LINEINFO", "memcheck": "SANITIZE"}  # functions of settings
OTHERS = {"BACKEND", "DEBUG", "COMPILER_TIMEOUT", "REPRODUCE", "CACHE", "CACHE_DIR", "CACHE_SIZE"}


def test_settings_that_change_code_are_in_the_key(compiled, folder):
    package = Path(building.__file__).parents[1]
    texts = [f.read_text() for part in ("gpu", "analysis", "passes", "ir") for f in (package / part).rglob("*.py")]
    asked = {m for text in texts for m in re.findall(r"""settings\.get\(["'](\w+)["']\)""", text)}
    asked |= {ASKED_BY[m] for text in texts for m in re.findall(r"settings\.(\w+)\(\)", text) if m in ASKED_BY}
    assert asked - OTHERS == IN_THE_KEY.keys()
    k = kernel_of(folder)
    of(k)
    for _ in range(2):
        for name, value in IN_THE_KEY.items():
            with settings.override(**{name: value}):
                of(k)
    assert len(compiled) == 1 + len(IN_THE_KEY)
    assert [(kw["memcheck"], kw["lineinfo"]) for _, kw in compiled] == [
        (False, False), (False, True), (False, False), (True, True)]


def test_keys_are_the_same_in_every_process(folder):
    """Nothing in it depends on the hash seed, on addresses or on the order of dictionaries."""
    program = ("import runpy, sys; sys.path.insert(0, sys.argv[1])\n"
               "from tests.gpu import test_cubin as t\n"
               "from cutile.gpu import cubin\n"
               "def show(key, make): print(key); sys.exit()\n"
               "cubin._one_at_a_time = show\n"
               "t.cache_key.sources = lambda: 'these'\n"
               "t.of(t.kernel_of(t.Path(sys.argv[2])), t.array(alias_groups=()))\n")
    root = str(Path(__file__).parents[2])
    found = {subprocess.run([sys.executable, "-c", program, root, str(folder)], capture_output=True, text=True,
                            check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(found) == 1 and len(found.pop().strip()) == 32


@pytest.mark.skipif(os.name != "posix", reason="stands in for the tool with a shell script")
def test_a_tool_without_packages_says_its_version_once(compiled, folder, monkeypatch):
    script(folder, 'echo asked >> "$0.log"; echo V13.9.7')
    monkeypatch.setattr(building, "find_tool", lambda: Tool(folder / "tileiras", "PATH"))
    k = kernel_of(folder)
    for n in (16, 16, 32):
        process.version_of.cache_clear()  # as in a new process
        of(k, n=n)
    assert (folder / "tileiras.log").read_text() == "asked\n" and len(compiled) == 2
    assert {e.release for e in cache.current().entries()} == {"13.9.7"}
    script(folder, "echo another file, V13.10.1")
    process.version_of.cache_clear()
    of(k, n=16)
    assert len(compiled) == 3


# ------------------------------------------------------------------ without an assembler, without a cache


def test_a_cache_that_was_filled_elsewhere_serves_without_an_assembler(compiled, folder, monkeypatch):
    k = kernel_of(folder)
    of(k)

    def nowhere():
        raise FileNotFoundError("tileiras was not found")

    for module in (building, tileiras):
        monkeypatch.setattr(module, "find_tool", nowhere)
    assert of(k) == b"code 1"
    monkeypatch.setattr(tileiras, "newest_version", lambda tool=None: nowhere())
    with pytest.raises(FileNotFoundError, match="tileiras was not found"):
        of(k, n=64)
    assert not building._compilations


def test_switched_off(compiled, folder):
    k = kernel_of(folder)
    with settings.override(CACHE=False):
        of(k)
        of(k)
    assert len(compiled) == 2 and not (folder / "kept").exists()


def test_a_folder_that_cannot_be_written_warns_once_and_compiles(compiled, folder, monkeypatch):
    (folder / "kept").write_text("in the way")
    k = kernel_of(folder)
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert of(k) == b"code 1"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of(k) == b"code 2"


def test_damaged_code_is_compiled_again(compiled, folder):
    k = kernel_of(folder)
    of(k)
    [entry] = cache.current().entries()
    entry.path.write_bytes(entry.path.read_bytes()[:-3])
    assert of(k) == b"code 2" and of(k) == b"code 2"


def test_what_is_noted(compiled, folder):
    of(kernel_of(folder))
    [entry] = cache.current().entries()
    noted = entry.metadata()
    assert (noted["kernel"], noted["symbol"], noted["target"], noted["cubin"]) == ("scale", "scale", "sm_90", 6)
    assert entry.release == "13.5.37" and entry.parts()[0] == b"code 1"
    assert "kernel scale(" in entry.parts()[1] and "target sm_90\n" in entry.parts()[1]


# ------------------------------------------------------------------ one at a time


@pytest.mark.parametrize("on_disk", [True, False])
def test_threads_wait_for_the_first(compiled, folder, monkeypatch, on_disk):
    assemble = tileiras.assemble
    come = threading.Semaphore(0)

    class Compilation(building._Compilation):
        def __init__(self):
            super().__init__()
            self.lock = Counted()

    class Counted:
        def __init__(self):
            self.lock = threading.Lock()

        def __enter__(self):
            come.release()
            self.lock.acquire()

        def __exit__(self, *error):
            self.lock.release()

    def slow(*args, **kw):
        for _ in range(8):
            assert come.acquire(timeout=PATIENCE)
        return assemble(*args, **kw)

    monkeypatch.setattr(building, "_Compilation", Compilation)
    monkeypatch.setattr(tileiras, "assemble", slow)
    k, found = kernel_of(folder), []

    def run():
        with settings.override(CACHE=on_disk):
            found.append(of(k))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [b"code 1"] * 8 and len(compiled) == 1 and not building._compilations


def test_each_thread_gets_its_own_error(compiled, folder, monkeypatch):
    def refuse(*args, **kw):
        time.sleep(0.05)
        raise ct.TileCompilerExecutionError("refused")

    monkeypatch.setattr(tileiras, "assemble", refuse)
    k, errors = kernel_of(folder), []

    def run():
        try:
            of(k)
        except ct.TileCompilerExecutionError as e:
            errors.append(e)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({id(e) for e in errors}) == 3
    errors.clear()  # they hold the frames that they came through
    gc.collect()
    assert not building._compilations
    assert list(cache.current().entries()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_threads_of_its_parent(compiled, folder):
    with building._guard:
        building._compilations["k"] = building._Compilation()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        child = os.fork()
    if child == 0:
        os._exit(building._one_at_a_time("k", lambda: b"made") != b"made")
    building._compilations.clear()
    deadline = time.monotonic() + PATIENCE
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
        assert time.monotonic() < deadline or os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    assert os.waitstatus_to_exitcode(done[1]) == 0


spawn = multiprocessing.get_context("spawn")


def _build_slowly(folder: Path, log: Path, started, seconds: float) -> None:
    """In another process: build, noting in a file each time the assembler is asked."""
    def assemble(code, target, **kw):
        with open(log, "a") as f:
            f.write("asked\n")
        started.set()
        time.sleep(seconds)
        return b"code"

    cache._PATIENCE = 10 * PATIENCE
    tileiras.assemble = assemble
    tileiras.newest_version = lambda tool=None: (13, 4)
    building.find_tool = lambda: Tool(Path("tileiras"), "test", "13.5.37")
    with settings.override(CACHE_DIR=folder / "kept"):
        of(kernel_of(folder / "source"))


def test_two_processes_compile_once(folder):
    log, started = folder / "log", spawn.Event()
    racers = [spawn.Process(target=_build_slowly, args=(folder, log, started, 1.0)) for _ in range(2)]
    for r in racers:
        r.start()
    for r in racers:
        r.join(PATIENCE)
    assert [r.exitcode for r in racers] == [0, 0]
    assert log.read_text() == "asked\n"


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_a_process_killed_half_way(folder):
    """The next one compiles without waiting, and nothing is left but the lock's empty file."""
    log, started = folder / "log", spawn.Event()
    killed = spawn.Process(target=_build_slowly, args=(folder, log, started, 60))
    killed.start()
    assert started.wait(PATIENCE)
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    _in_process(folder, log)
    assert log.read_text() == "asked\nasked\n"
    assert sorted(p.name for p in (folder / "kept").rglob("*") if p.is_file() and p.stat().st_size)[1:] == []


def _in_process(folder: Path, log: Path) -> None:
    started = spawn.Event()
    p = spawn.Process(target=_build_slowly, args=(folder, log, started, 0))
    p.start()
    p.join(PATIENCE)
    p.kill()  # if it still waits
    assert p.exitcode == 0


# ------------------------------------------------------------------ with the real assembler


@needs_tool
def test_real_code_does_not_depend_on_the_folder_without_line_information(folder):
    code = []
    for name, lineinfo in itertools.product(("one", "two"), (False, True)):
        with settings.override(CACHE=False, LINEINFO=lineinfo):
            code.append(of(kernel_of(folder / name)))
    plain, lined, plain_2, lined_2 = code
    assert plain == plain_2 and b"scale.py" not in plain
    two = "".join(chr(b) if b < 128 else f"\\{b:o}" for b in str(folder / "two").encode())  # as the tool writes paths
    assert lined != plain and b"scale.py" in lined and two.encode() in lined_2


@needs_tool
def test_the_release_of_the_installed_assembler(folder):
    k = kernel_of(folder)
    cubin = of(k)
    [entry] = cache.current().entries()
    tool = find_tileiras.find_tool()
    assert cubin[:4] == b"\x7fELF" and entry.release == (tool.packaged or tool.version)
    assert cache.current().get(entry.key, entry.release) == cubin
