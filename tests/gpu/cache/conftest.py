"""A cache of one's own."""

import pytest

from cutile.gpu import cache
from cutile.gpu.cache import Cache


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_warned", set())
    return Cache(tmp_path / "kept", 1 << 20)
