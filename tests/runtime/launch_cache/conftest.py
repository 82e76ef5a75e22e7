"""The extension, and a driver and libraries that it may call, without a GPU."""

import pytest

from cutile.gpu import variants
from cutile.runtime import launch_cache
from tests.gpu import extension
from tests.gpu.fake_driver import installed


@pytest.fixture
def libraries(monkeypatch):
    extension.installed(monkeypatch)


@pytest.fixture
def c(monkeypatch, libraries):
    module = extension.built()
    monkeypatch.setattr(launch_cache, "extension", lambda: module)
    return module


@pytest.fixture
def gpu(monkeypatch):
    """The driver, on whose GPU 0 this thread works. The first launch of a grid decides what runs for it."""
    monkeypatch.setattr(variants, "LAUNCHES", 1)
    fake = installed(monkeypatch)
    fake.contexts[:] = [0x1000]
    return fake
