"""The verb `settings`: every CUTILE_* variable and its value."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cutile import settings


def show_settings() -> None:
    """Every CUTILE_* variable, what it may be and what it is now."""
    table = Table("variable", "accepts", "now", "for", show_lines=False)
    for s in settings.table().values():
        table.add_row(s.variable, escape(s.accepts), escape(_now(s.name)), escape(s.doc))
    Console().print(table)


def _now(name: str) -> str:
    try:
        return str(settings.get(name))
    except settings.SettingError as e:
        return f"wrong: {e}"
