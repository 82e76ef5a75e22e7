"""One process for each GPU."""

import os

import pytest

import cutile as ct
from cutile.gpu import driver
from cutile.tune.gpu_processes import gpu_processes


def visible(seconds):
    import time

    time.sleep(seconds)
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.parametrize(("outside", "inside"), [(None, {"0", "2"}), ("5,7,GPU-12ab", {"5", "GPU-12ab"})])
def test_each_process_sees_one_gpu(monkeypatch, outside, inside):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if outside is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", outside)
    with ct.tune.gpu_processes([0, 2]) as processes:
        assert set(processes.map(visible, [0.5, 0.5])) == inside
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == outside


def test_without_gpus(monkeypatch):
    def none():
        raise driver.DriverError("there is no GPU")

    monkeypatch.setattr(driver, "driver", none)
    for gpus in (None, []):
        with pytest.raises(ValueError, match="needs a GPU"):
            gpu_processes(gpus)


@pytest.mark.parametrize("gpus", [0, -1, 2.5, "0", [-1], ["0"], [True], [None]], ids=repr)
def test_what_are_no_numbers_of_gpus(gpus):
    with pytest.raises(TypeError, match="gpus (is a list of|holds the) numbers of GPUs, .*, not"):
        gpu_processes(gpus)


def test_without_a_driver(monkeypatch):
    def none():
        raise ct.TileUnsupportedFeatureError("no driver")

    monkeypatch.setattr(driver, "driver", none)
    with pytest.raises(ValueError, match="needs a GPU, and there is none"):
        gpu_processes()
