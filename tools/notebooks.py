"""Notebooks of pages: `python -m tools.notebooks` writes those of the tutorial and the puzzles to notebooks/.

The pages in docs are the source, in MyST's form: Markdown with cells of code. Nothing but the form changes, and links,
which lead to the pages. `--run` runs each notebook as well; that needs nbclient, which the extra `docs` brings.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("start", "tutorial/softmax", "tutorial/matmul", "tutorial/attention", "puzzles")

_CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.M | re.S)
_FRONT = re.compile(r"\A---\n.*?^---\n", re.M | re.S)
_LINK = re.compile(r"(\]\()([\w./-]+)((?:#[\w-]+)?\))")


def notebook(page: Path, folder: Path) -> dict[str, Any]:
    """A page as a notebook, in a folder from which its links are to lead."""
    parts = _CELL.split(_FRONT.sub("", page.read_text()))
    cells = []
    for i, text in enumerate(parts):
        if text.strip():
            made = _code(text) if i % 2 else _markdown(_led_from(folder, page, text))
            cells.append({**made, "id": f"cell-{len(cells)}", "metadata": {}})
    return {"nbformat": 4, "nbformat_minor": 5, "cells": cells,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}}


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": text.strip("\n").splitlines(True)}


def _code(text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines(True) if not line.startswith(":")]  # options, such as :tags:
    source = "".join(lines).strip("\n").splitlines(True)
    return {"cell_type": "code", "source": source, "outputs": [], "execution_count": None}


def _led_from(folder: Path, page: Path, text: str) -> str:
    """Text whose relative links lead from a folder to where they led from the page."""
    return _LINK.sub(lambda m: f"{m[1]}{os.path.relpath(page.parent / m[2], folder)}{m[3]}", text)


def write(folder: Path) -> list[Path]:
    """Write all notebooks to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in PAGES:
        path = folder / f"{Path(name).name}.ipynb"
        path.write_text(json.dumps(notebook(ROOT / "docs" / f"{name}.md", folder), indent=1, ensure_ascii=False) + "\n")
        written.append(path)
    return written


def run(path: Path) -> None:
    """Run a notebook where it is, as Jupyter does. nbclient's CellExecutionError if a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    NotebookClient(nbformat.read(path, 4), timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "notebooks")
    parser.add_argument("--run", action="store_true", help="run each notebook")
    given = parser.parse_args()
    for path in write(given.folder.resolve()):
        print(path)
        if given.run:
            run(path)


if __name__ == "__main__":
    main()
