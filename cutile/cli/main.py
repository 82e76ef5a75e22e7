"""The command `cutile`, also `python -m cutile`: one file or folder per verb."""

from __future__ import annotations

import sys

import typer

from cutile.cli import cache, doctor, settings, show
from cutile.cli.diff import command
from cutile.settings import SettingError

app = typer.Typer(help="cutile: the cuTile tile-programming model.", no_args_is_help=True, add_completion=False)
app.command("diff")(command.diff)
app.command("show")(show.show)
app.command("settings")(settings.show_settings)
app.command("doctor")(doctor.doctor)
app.add_typer(cache.app, name="cache")


def main() -> None:
    try:
        app()
    except SettingError as e:
        sys.exit(str(e))
