"""The verb `settings`: every CUTILE_* variable and its value."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cutile import settings

WIDE = 250  # columns where no terminal says how many there are


def show_settings(json: Annotated[bool, typer.Option(help="print JSON")] = False) -> None:
    """Every CUTILE_* variable, what it may be and what it is now.

    python -m cutile settings --json
    """
    if json:
        print(json_.dumps([{"variable": s.variable, "accepts": s.accepts, "now": _now(s.name), "for": s.doc}
                           for s in settings.table().values()], indent=2))
        return
    table = Table("variable", "accepts", "now", "for", show_lines=False)
    for s in settings.table().values():
        table.add_row(s.variable, escape(s.accepts), escape(_now(s.name)), escape(s.doc))
    console = Console()
    console.print(table, width=None if console.is_terminal else WIDE)


def _now(name: str) -> str:
    try:
        value = settings.get(name)
        return ",".join(sorted(value)) or "off" if isinstance(value, frozenset) else str(value)
    except settings.SettingError as e:
        return f"wrong: {e}"
