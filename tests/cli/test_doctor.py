"""python -m cutile doctor: what is installed."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cutile.cli.main import app
from cutile.compute import delegation
from cutile.gpu import driver as drivers
from cutile.gpu.find_tileiras import find_tool
from tests.gpu.fake_driver import FakeDriver
from tests.gpu.tileir.test_tileiras import script


def doctor() -> str:
    done = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.output


def test_gpus(monkeypatch):
    fake = FakeDriver((12, 1), devices=2)
    monkeypatch.setattr(drivers, "_driver", fake.start())
    said = doctor()
    for text in ("numpy", "tileiras", "CUDA 13.1", "GPU 0", "GPU 1", "sm_121", "Fake 9000"):
        assert text in said
    assert "cuDevicePrimaryCtxRetain" not in fake.names()  # no context, so no memory of the GPU


def test_without_the_package_for_gpus(monkeypatch):
    monkeypatch.setattr(drivers, "_driver", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert row("NVIDIA driver") == ["not usable", "launching on a GPU needs cuda-python, which is not installed; "
                                                  "install it: pip install 'cutile[gpu]'"]


def test_sorts(monkeypatch):
    monkeypatch.setattr(delegation, "_installed", lambda: True)
    monkeypatch.setattr(delegation, "_choices", [])
    monkeypatch.setattr(delegation, "_package", lambda: "cuda.compute finds no driver")
    assert row("sorts on GPU arrays") == ["own", "CUTILE_COMPUTE=auto, but cuda.compute finds no driver"]
    monkeypatch.setattr(delegation, "_package", lambda: delegation)
    assert row("sorts on GPU arrays") == ["cuda-cccl", "CUTILE_COMPUTE=auto"]
    monkeypatch.setenv("CUTILE_COMPUTE", "own")
    assert row("sorts on GPU arrays") == ["own", "CUTILE_COMPUTE=own"]


def row(part: str) -> list[str]:
    done = CliRunner().invoke(app, ["doctor", "--json"])
    (found,) = (r for r in json.loads(done.stdout) if r["part"] == part)
    return [found["version"], found["what for"]]


def test_json(monkeypatch):
    monkeypatch.setattr(drivers, "_driver", FakeDriver((12, 1), devices=1).start())
    done = CliRunner().invoke(app, ["doctor", "--json"])
    found = {row["part"]: row["version"] for row in json.loads(done.stdout)}
    assert done.exit_code == 0 and found["GPU 0"] == "sm_121" and found["numpy"] == np.__version__


@pytest.mark.parametrize("code, says", [(100, "there is no GPU"), (999, "something or other")])
def test_no_gpu(monkeypatch, code, says):
    def failing():
        raise FakeDriver().start().error("CUDA cannot be initialised", code)

    monkeypatch.setattr(drivers, "driver", failing)
    said = doctor()
    assert "not usable" in said and says in said


@pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
@pytest.mark.parametrize("path", [None, ".:bin:"])
def test_nothing_of_the_current_folder_runs(tmp_path, path):
    """No program or package of the current folder runs, even if PATH or sys.path contains the folder."""
    folder, ran = tmp_path / "here", tmp_path / "ran"
    for where in (folder, folder / "bin"):
        for name in ("tileiras", "setpriv", "tileirdisasm", "true"):
            script(where, f"touch {shlex.quote(str(ran))}", name)
    for name in ("nvidia_cuda_tileiras", "nvidia_cuda_nvcc", "nvidia_nvvm"):
        (folder / f"{name}-99.9.dist-info").mkdir()
        (folder / f"{name}-99.9.dist-info" / "RECORD").write_text("tileiras,,\n")
    for name in ("cuda", "torch", "nvidia", "scipy"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"open({str(ran)!r}, 'w')")
    (folder / "numpy-0.0.dist-info").mkdir()
    (folder / "numpy-0.0.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 0.0\n")
    added = {} if path is None else {"PATH": f"{path}:{os.environ['PATH']}"}
    packages = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    env = {**os.environ, "PYTHONPATH": packages, "CUDA_HOME": ".", "CUTILE_CACHE": "0",
           "COLUMNS": "200", **added}
    for command in (["-m", "cutile", "doctor"], ["-c", "from cutile.cli.main import main; main()", "doctor"]):
        done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0 and "99.9" not in done.stdout and " 0.0 " not in done.stdout, done.stderr
    compile_one = ("from cutile.gpu.tileir import tileiras\n"
                   "from cutile.gpu.tileir.builder import Module\n"
                   "tileiras.assemble(Module('13.1').to_bytes(), 'sm_120')")
    if find_tool_or_none():
        subprocess.run([sys.executable, "-c", compile_one], cwd=folder, env=env, check=True)
    assert not ran.exists()


def find_tool_or_none():
    try:
        return find_tool()
    except FileNotFoundError:
        return None


def test_the_path_of_imports_is_as_before():
    before = list(sys.path)
    doctor()
    assert sys.path == before
