"""How a verb ends when it cannot do what is asked."""

from __future__ import annotations

from typing import NoReturn

import typer

WRONG_ARGUMENTS = 2  # the exit status of verbs whose status 1 means something else


def fail(text: str, status: int = 1) -> NoReturn:
    """Write what is wrong to stderr and end with this exit status."""
    typer.echo(text, err=True)
    raise typer.Exit(status)
