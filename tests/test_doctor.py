"""python -m cutile doctor: what is installed."""

import pytest
from typer.testing import CliRunner

from cutile.__main__ import app
from cutile.gpu import driver as drivers
from tests.gpu.fake_driver import FakeDriver


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
    assert "cuDevicePrimaryCtxRetain" not in fake.names()  # looking costs no memory there


@pytest.mark.parametrize("code, says", [(100, "there is no GPU"), (999, "something or other")])
def test_no_gpu(monkeypatch, code, says):
    def failing():
        raise FakeDriver().start().error("CUDA cannot be initialised", code)

    monkeypatch.setattr(drivers, "driver", failing)
    said = doctor()
    assert "not usable" in said and says in said
