"""A cache of one's own, and times that a test says, for tests of tuned functions."""

import pytest

from cutile.tune.candidates import Candidate


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def times(monkeypatch):
    """Runs take what this dictionary says of their configuration, by its TILE, and are counted in `tried`."""
    said = {"tried": []}
    original = Candidate.run

    def run(self, args):
        original(self, args)
        tile = self.config.get("TILE", self.config.get("tile"))
        said["tried"].append(tile)
        return said.get(tile, 100.0)

    monkeypatch.setattr(Candidate, "run", run)
    return said
