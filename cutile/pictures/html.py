"""The page: one HTML file with the data, its style and its code inside, which needs no network."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

SCRIPTS = ("basics", "grid", "arrays", "source", "roofline", "main")  # in the order in which they need one another


def page(data: dict[str, Any]) -> str:
    """The page that shows the data about a launch."""
    folder = files("cutile.pictures") / "page"
    parts = {
        "TITLE": html.escape(f"{data['kernel']}, {'×'.join(map(str, data['grid']))} blocks"),
        "STYLE": (folder / "page.css").read_text("utf-8"),
        # Inside a script element, these would end it or begin a comment.
        "DATA": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": "\n".join((folder / f"{name}.js").read_text("utf-8") for name in SCRIPTS),
    }
    first, *others = (folder / "page.html").read_text("utf-8").split("@")
    out = [first]
    for name, text in zip(others[::2], others[1::2], strict=True):
        out += [parts[name], text]
    return "".join(out)


def framed(page: str, height: int = 760) -> str:
    """The page inside another one, such as a notebook."""
    return (f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:{height}px;border:0" '
            'title="what the launch does"></iframe>')
