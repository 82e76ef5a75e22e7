"""What a tool sees of this process, and what this process hears of it. That it ends in time stands in test_tileiras."""

import os
import signal
import sys

from cutile.gpu.process import KEPT, run, version_of
from tests.gpu.tileir.test_tileiras import posix, script

pytestmark = posix


def said(tmp_path, text, **options):
    return run([str(script(tmp_path, text))], 30, **options)


def test_what_it_prints(tmp_path):
    both = "echo out; echo err >&2; exit "
    assert (got := said(tmp_path, both + "0")).code == 0 and sorted(got.output.split()) == ["err", "out"]
    assert said(tmp_path, both + "0", merged=False).output == "out\n"
    assert (got := said(tmp_path, both + "3", merged=False)).code == 3 and got.output == "out\nerr\n"


def test_out_of_time(tmp_path):
    assert run([str(script(tmp_path, "sleep 60"))], 0.2).code is None


def test_its_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/foreign")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    seen = dict(line.split("=", 1) for line in said(tmp_path, "env", folder=tmp_path).output.splitlines())
    assert set(seen) - {"PWD", "_", "SHLVL", "OLDPWD"} <= set(KEPT)
    assert seen["TMPDIR"] == str(tmp_path) and not seen["PATH"].startswith(".")


def test_its_version(tmp_path):
    assert version_of(script(tmp_path / "a", "echo release 13.9, V13.9.7")) == "13.9.7"
    assert version_of(script(tmp_path / "b", "echo no number")) == "unknown"


def test_it_hears_of_its_own_children_where_this_process_ignores_them(tmp_path):
    command = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL)"]
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert (got := run(command, 30)).code == 0 and got.output == "True\n"
        assert run([str(script(tmp_path, "sleep 60"))], 0.2).code is None
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert run(command, 30).output == "True\n"
