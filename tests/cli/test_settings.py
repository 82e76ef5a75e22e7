"""python -m cutile settings."""

import json

from typer.testing import CliRunner

from cutile import settings
from cutile.cli.main import app


def test_settings_are_all_there(monkeypatch):
    monkeypatch.setenv("CUTILE_SEED", "7")
    done = CliRunner().invoke(app, ["settings"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert all(s.variable in done.output for s in settings.table().values())


def test_json(monkeypatch):
    monkeypatch.setenv("CUTILE_SEED", "7")
    monkeypatch.setenv("CUTILE_SANITIZE", "race,bounds")
    done = CliRunner().invoke(app, ["settings", "--json"])
    found = {row["variable"]: row["now"] for row in json.loads(done.stdout)}
    assert found.keys() == {s.variable for s in settings.table().values()}
    assert found["CUTILE_SEED"] == "7" and found["CUTILE_SANITIZE"] == "bounds,race"
