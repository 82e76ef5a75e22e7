"""The page of the data that `cutile view --json` prints, from its form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cutile.pictures.form import FORM, VERSION, Maybe
from tools.docgen.markdown import row

HEAD = f"""# The data of `cutile view`

{{note}}

What `cutile view FILE.py::KERNEL --json` prints, and `ct.view(…).data`: plain JSON about one launch. This is version
{VERSION}. Later versions may add keys; they change and remove none. [Viewing a launch](viewing.md) says what it is for.
`[…]` is a list; *or null* may also be absent.
"""
_NAMES = {int: "integer", str: "text", bool: "true or false", float: "number"}


def page(note: str) -> str:
    """The page, a table for each kind of object."""
    return HEAD.format(note=note) + "".join(_tables("", FORM, set()))


def _tables(path: str, form: dict[str, Any], seen: set[int]) -> Iterator[str]:
    """The table of an object, then those of the objects in it, each kind once."""
    if id(form) in seen:
        return
    seen.add(id(form))
    title = f"\n## {path}\n\n" if path else "\n## The whole\n\n"
    rows = [row([f"`{key}`", _kind(f), text]) for key, (f, text) in form.items()]
    yield title + "\n".join([row(["key", "value", "what it says"]), "|---|---|---|", *rows]) + "\n"
    for key, (f, _) in form.items():
        inner = _object(f)
        if inner is not None:
            yield from _tables(f"{path}, {key}" if path else key, inner, seen)


def _object(form: Any) -> dict[str, Any] | None:
    while isinstance(form, list | Maybe):
        form = form[0] if isinstance(form, list) else form.form
    return form if isinstance(form, dict) else None


def _kind(form: Any) -> str:
    if isinstance(form, Maybe):
        return f"{_kind(form.form)} or null"
    if isinstance(form, list):
        return f"[{_kind(form[0])}]"
    return "object" if isinstance(form, dict) else _NAMES[form]
