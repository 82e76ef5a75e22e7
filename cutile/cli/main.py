"""The command `cutile`, also `python -m cutile`: one file or folder per verb."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Annotated

import typer

from cutile._version import __version__
from cutile.cli import cache, doctor, settings
from cutile.cli.debug import debug
from cutile.cli.diff.command import diff
from cutile.cli.explore.command import explore
from cutile.cli.ops import ops
from cutile.cli.profile import profile
from cutile.cli.run.command import SCRIPTS, run
from cutile.cli.show.command import show
from cutile.cli.view import view
from cutile.settings import SettingError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)  # Python shows errors of scripts
app.command("run", context_settings=SCRIPTS)(run)
app.command("debug")(debug)
app.command("show")(show)
app.command("diff")(diff)
app.command("explore")(explore)
app.command("view")(view)
app.command("profile")(profile)
app.command("ops")(ops)
app.command("settings")(settings.show_settings)
app.command("doctor")(doctor.doctor)
app.add_typer(cache.app, name="cache")


def _version(asked: bool) -> None:
    if asked:
        print(f"cutile {__version__}")
        raise typer.Exit


@app.callback()
def cutile(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True,
                                                 help="print the version and exit")] = False) -> None:
    """The cuTile tile-programming model: run, debug and look into kernels."""


def main() -> None:
    try:
        try:
            app()
        finally:
            with contextlib.suppress(ValueError, AttributeError):  # closed by a script, or not there
                sys.stdout.flush()
    except SettingError as e:
        sys.exit(str(e))
    except OSError as e:
        if e.filename is not None:
            raise
        _discard_output()
        sys.exit(f"the output cannot be written: {e.strerror}")


def _discard_output() -> None:
    """What is left of the output goes nowhere: Python would try again when it ends, and fail again."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
