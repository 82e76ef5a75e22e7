"""Filling the cache without a GPU."""

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile.compilation import prefill as prefilling
from cutile.compilation.launch_signature import of_launch
from cutile.compilation.prefill import prefill
from cutile.gpu import cache, unchecked
from cutile.gpu import cubin as building
from cutile.gpu.find_tileiras import Tool
from cutile.gpu.target import parse_target
from cutile.gpu.tileir import tileiras
from tests.gpu.tileir.tool import needs_tool
from tests.patience import PATIENCE


@ct.kernel
def scale(a, b, n: ct.Constant):
    i = ct.bid(0)
    ct.store(b, (i,), ct.load(a, (i,), (n,)) * 2)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Stands in for the assembler; the targets that it was asked for."""
    targets = []

    def assemble(code, target, **kw):
        targets.append(str(target))
        if str(target) == "sm_80":
            raise ct.TileCompilerExecutionError("refused")
        return b"code"

    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CUTILE_CACHE", raising=False)
    monkeypatch.setattr(building, "find_tool", lambda: Tool(Path("tileiras"), "test", "13.5.37"))
    monkeypatch.setattr(tileiras, "assemble", assemble)
    monkeypatch.setattr(tileiras, "newest_version", lambda tool=None: (13, 4))
    return targets


def arrays(n: int = 4096):
    return np.empty(n, np.float32), np.empty(n, np.float32)


def test_ctrl_c_ends_it_after_what_runs(asked, monkeypatch):
    began, cancelled = threading.Event(), threading.Event()
    real = tileiras.assemble

    def assemble(*args, **kw):
        began.set()
        cancelled.wait(PATIENCE)
        return real(*args, **kw)

    def interrupted(futures):
        began.wait(PATIENCE)
        futures[-1].add_done_callback(lambda f: cancelled.set())
        raise KeyboardInterrupt

    monkeypatch.setattr(tileiras, "assemble", assemble)
    monkeypatch.setattr(prefilling, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prefill(scale, [(*arrays(), 2 << k) for k in range(8)], ["sm_90"], threads=1)
    assert len(asked) == 1


def test_every_call_for_every_target_at_once(asked, monkeypatch):
    two, calls, real = threading.Barrier(2, timeout=PATIENCE), itertools.count(), tileiras.assemble

    def assemble(*args, **kw):
        if next(calls) < 2:  # the first waits for another, which runs beside it
            two.wait()
        return real(*args, **kw)

    monkeypatch.setattr(tileiras, "assemble", assemble)
    prefill(scale, [(*arrays(), 64), (*arrays(), 128), (*arrays(), 64)], ["sm_90", "sm_100"], threads=4)
    assert sorted(asked) == ["sm_100"] * 4 + ["sm_90"] * 4  # with checks of bounds, and without
    assert len(list(cache.current().entries())) == 8


def test_calls_of_a_function(asked):
    """They are what its launches compile."""
    function = ct.jit(scale, grid=(64,), out=ct.Out(like="a"), defaults={"n": 64})
    prefill(function, [(arrays()[0],)], ["sm_90"])
    found = len(asked)
    prefill(scale, [(*arrays(), 64)], ["sm_90"])
    assert found == len(asked) == 2


def test_a_launch_finds_it(asked):
    prefill(scale, [(*arrays(), 64)], ["sm_90"])
    arguments = scale.classify((*arrays(1 << 16), 64))  # another size that is divisible by 16
    constraints, symbol = of_launch(scale, arguments)
    code = building.build(scale.program(arguments).kernel, constraints, parse_target("sm_90"), scale.options, symbol)
    assert code == b"code" and asked == ["sm_90"] * 2


def test_the_variant_without_checks_is_there_too(asked, monkeypatch):
    def found(n):
        arguments = scale.classify((*arrays(n), 64))
        constraints, symbol = of_launch(scale, arguments)
        kernel = unchecked.unchecked(scale.program(arguments).kernel, True).kernel
        return building.cached(kernel, constraints, parse_target("sm_90"), scale.options, symbol)

    prefill(scale, [(*arrays(48), 64)], ["sm_90"])  # no tile of 64 lies inside
    assert found(48) is None and asked == ["sm_90"]
    prefill(scale, [(*arrays(), 64)], ["sm_90"])
    assert found(4096) == b"code" and asked == ["sm_90"] * 2
    monkeypatch.setenv("CUTILE_HINTS", "0")
    prefill(scale, [(*arrays(), 64)], ["sm_90"])
    assert asked == ["sm_90"] * 3


def test_a_variant_that_fails_concerns_nobody(asked, monkeypatch, capsys):
    def fails(kernel, uses_tma):
        raise ValueError("mine")

    monkeypatch.setattr(unchecked, "unchecked", fails)
    prefill(scale, [(*arrays(), 64)], ["sm_90"])
    assert asked == ["sm_90"] and not capsys.readouterr().err
    with settings.override(DEBUG=1):
        prefill(scale, [(*arrays(), 64)], ["sm_90"])
    assert "scale without checks of bounds is left out: ValueError: mine" in capsys.readouterr().err


def test_one_failure_does_not_stop_the_others(asked):
    with pytest.raises(ct.TileCompilerExecutionError, match="refused"):
        prefill(scale, [(*arrays(), 64)], ["sm_80", "sm_90"])
    assert [e.metadata()["target"] for e in cache.current().entries()] == ["sm_90"] * 2


def test_what_is_refused():
    with pytest.raises(TypeError, match="is a plain function, not a kernel: decorate it with @ct.kernel"):
        prefill(lambda x: x, [], ["sm_90"])
    with pytest.raises(ValueError, match="'hopper'"):
        prefill(scale, [], ["hopper"])


@needs_tool
def test_code_that_is_there_needs_no_lowering(tmp_path):
    """What a warm process does not even import: the time to its first launch."""
    (tmp_path / "k.py").write_text(
        "import sys\nimport numpy as np\nimport cutile as ct\nfrom cutile.compilation.prefill import prefill\n"
        "@ct.kernel\ndef double(a, b):\n    ct.store(b, (ct.bid(0),), ct.load(a, (ct.bid(0),), (64,)) * 2)\n"
        "prefill(double, [(np.empty(64), np.empty(64))], ['sm_90'])\n"
        "heavy = ('cutile.gpu.to_bytecode', 'cutile.gpu.tileir.tileiras', 'subprocess', 'json', 'importlib.metadata')\n"
        "print([m for m in heavy if m in sys.modules])\n")
    environment = {**os.environ, "CUTILE_CACHE_DIR": str(tmp_path / "kept"), "CUTILE_CACHE": "1", "CUTILE_DEBUG": "",
                   "PYTHONPATH": str(Path(__file__).parents[2])}
    said = [subprocess.run([sys.executable, str(tmp_path / "k.py")], capture_output=True, text=True, check=True,
                           env=environment).stdout for _ in range(2)]
    assert "cutile.gpu.to_bytecode" in said[0] and said[1] == "[]\n"
