"""The verb `ops`: searches the language."""

from __future__ import annotations

import inspect
import json as json_
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import cutile
from cutile.cli.failing import fail
from cutile.ops._op import OpDef


def ops(
    words: Annotated[list[str] | None, typer.Argument(help="words that name or description contain")] = None,
    json: Annotated[bool, typer.Option(help="print JSON")] = False,
) -> None:
    """List the functions of the language and ops of your own, or those that some words describe.

    python -m cutile ops reduce axis
    """
    wanted = [w.lower() for w in words or []]
    found = [row for row in map(_row, _functions()) if _has(" ".join(row.values()), wanted)]
    found = found or [_row(n) for n in _functions() if _has(_described(n), wanted)]  # by what only the details say
    if not found:
        fail(f"nothing in the language is described by {' '.join(words or [])!r}")
    if json:
        print(json_.dumps(found, indent=2))
        return
    table = Table("function", "what it does", show_lines=False)
    for row in found:
        table.add_row(escape(row["name"] + row["signature"]), escape(row["summary"]))
    Console().print(table)


def _functions() -> list[str]:
    return sorted(n for n, v in vars(cutile).items()
                  if not n.startswith("_") and (inspect.isfunction(v) or isinstance(v, OpDef)))


def _row(name: str) -> dict[str, Any]:
    f = getattr(cutile, name)
    try:
        signature = str(inspect.signature(f))
    except (TypeError, ValueError):
        signature = "(…)"
    summary = " ".join(_described(name).split("\n\n")[0].split())
    return {"name": f"ct.{name}", "signature": signature, "summary": summary}


def _described(name: str) -> str:
    f = getattr(cutile, name)
    return inspect.getdoc(f.meaning if isinstance(f, OpDef) else f) or ""  # an op's own begins with its signature


def _has(text: str, words: list[str]) -> bool:
    return all(w in text.lower() for w in words)
