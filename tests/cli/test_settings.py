"""python -m cutile settings."""

from typer.testing import CliRunner

from cutile import settings
from cutile.cli.main import app


def test_settings_are_all_there(monkeypatch):
    monkeypatch.setenv("CUTILE_SEED", "7")
    done = CliRunner().invoke(app, ["settings"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert all(s.variable in done.output for s in settings.table().values())
