"""The verb `cache`: lists, shows and clears the GPU code on disk, and the configurations that searches found."""

from __future__ import annotations

import io
import json as json_
import os
import sys
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from cutile import settings
from cutile.gpu import cache
from cutile.gpu.cache import Entry

app = typer.Typer(help="The compiled GPU code on disk: list it, show an entry, clear it; and what searches found.\n\n"
                       "python -m cutile cache --json", add_completion=False)
SHOWN = 12  # digits of a key in the list


@app.callback(invoke_without_command=True)
def list_(context: typer.Context, json: Annotated[bool, typer.Option(help="print JSON")] = False) -> None:
    """List the entries, most recently used first."""
    if context.invoked_subcommand is not None:
        return
    if not settings.get("CACHE"):
        _fail("the cache is switched off (CUTILE_CACHE=0)")
    kept = _cache()
    entries = sorted(kept.entries(), key=lambda e: e.used, reverse=True)
    if json:
        print(json_.dumps({"folder": os.fspath(kept.folder), "limit": kept.limit, "entries": list(map(_data, entries))},
                          indent=2))
        return
    if not entries:
        _say(f"no GPU code is kept in {kept.folder}")
        return
    table = Table("key", "kernel", "target", "size", Column("last used", no_wrap=True), "tileiras")
    for e in entries:
        noted = e.metadata()
        table.add_row(*map(_cell, (e.key[:SHOWN], noted.get("kernel", "damaged"), noted.get("target", "?"),
                                   _size(e.size), _when(e.used), e.release)))
    out = Console(file=io.StringIO(), width=Console().width)
    out.print(table)
    _say(out.file.getvalue(), end="")
    _say(f"{len(entries)} in {kept.folder}: {_size(sum(e.size for e in entries))} of {_size(kept.limit)}")


def _data(e: Entry) -> dict[str, object]:
    """An entry for programs: sizes in bytes, times in seconds since 1970; None where a damaged one does not say."""
    noted = e.metadata()
    return {"key": e.key, "kernel": noted.get("kernel"), "target": noted.get("target"), "symbol": noted.get("symbol"),
            "size": e.size, "used": e.used, "tileiras": e.release}


@app.command()
def show(
    key: Annotated[str, typer.Argument(help="its first digits, enough to be unique")],
    cubin: Annotated[Path | None, typer.Option(help="write the machine code to this file too")] = None,
) -> None:
    """Print what an entry was made from: target, options, what is known of the parameters, IR.

    python -m cutile cache show 3f2a --cubin kernel.cubin
    """
    found = [e for e in _cache().entries() if e.key.startswith(key)]
    if len({e.key for e in found}) != 1:
        _fail(f"{len(found)} entries have keys that begin with {key}" if found else f"there is no entry {key}")
    entry = max(found, key=lambda e: e.used)
    try:
        code, text = entry.parts()
    except (OSError, ValueError) as e:
        _fail(f"entry {entry.key} cannot be read ({e}); it will be compiled again when it is needed")
    _say(_header(entry))
    _say(text.translate(_HIDDEN), end="")
    if cubin is not None:
        try:
            cubin.write_bytes(code)
        except OSError as e:
            _fail(f"the machine code cannot be written to {cubin}: {e.strerror or e}")


def _header(entry: Entry) -> str:
    """What an entry was made for, in two lines."""
    noted = entry.metadata()
    if not {"kernel", "symbol", "target", "cubin", "made", "seconds"} <= noted.keys():
        return f"{entry.key}: this entry does not say what it was made for, last used {_when(entry.used)}\n"
    names = {name: _cell(noted.get(name, "")).plain for name in ("kernel", "symbol", "target", "selected")}
    selected = f"selected with {names['selected']}\n" if names["selected"] else ""
    return (f"{entry.key}: {names['kernel']} as {names['symbol']} for {names['target']}, {_size(noted['cubin'])}\n"
            f"{selected}made {_when(noted['made'])} in {noted['seconds']:.2f} s by tileiras {entry.release}, last used "
            f"{_when(entry.used)}\n")


@app.command()
def tuned(
    clear: Annotated[bool, typer.Option("--clear", help="remove all of them")] = False,
) -> None:
    """List the configurations that functions with ct.autotune have found, or remove them.

    python -m cutile cache tuned
    """
    from cutile.functions.tuning_store import kept

    found = list(kept())
    if clear:
        for path, _ in found:
            path.unlink(missing_ok=True)
        _say(f"removed {len(found)}")
        return
    if not found:
        _say("no configurations are kept")
        return
    table = Table("function", "device", "inputs", "best", "us", Column("found", no_wrap=True))
    for _, t in found:
        table.add_row(*map(_cell, (t.key.function, t.key.device, t.key.inputs, str(t.best), f"{t.times[0][1]:.2f}",
                                   _when(t.made))))
    out = Console(file=io.StringIO(), width=Console().width)
    out.print(table)
    _say(out.file.getvalue(), end="")


@app.command()
def clear(
    older: Annotated[float, typer.Option(help="only what was not used for so many days", min=0)] = 0,
) -> None:
    """Remove entries.

    python -m cutile cache clear --older 30
    """
    kept = _cache()
    gone = kept.clear(older * 86400)
    _say(f"removed {len(gone)}: {_size(sum(e.size for e in gone))}")
    left = [e for e in kept.entries() if not older]
    if left:
        _fail(f"{len(left)} in {kept.folder} cannot be removed")


def _cache() -> cache.Cache:
    """The cache, even if launches distrust it. In that case the reason is printed."""
    try:
        kept = cache.Cache(cache.folder(), settings.get("CACHE_SIZE"))
        with os.scandir(kept.folder):
            pass
    except FileNotFoundError:
        pass
    except ValueError as e:
        _fail(str(e))
    except OSError as e:
        _fail(f"{kept.folder} cannot be read: {e.strerror or e}")
    why = cache.distrusted(kept.folder)
    if why is not None:
        _say(f"launches take no code from {kept.folder}: {why}", err=True)
    return kept


# ------------------------------------------------------------------ printing: entries may hold any text

LONGEST = 100  # characters of a name that are shown
_HIDDEN = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)], "\ufffd")  # control characters of terminals


def _cell(text: str) -> Text:
    """A name as plain text, with its unprintable characters replaced."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text[:LONGEST])
    return Text(shown + "…" * (len(text) > LONGEST))


def _say(text: str, *, end: str = "\n", err: bool = False) -> None:
    """Print text; characters that the stream's encoding lacks are printed as escapes."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), end=end, file=stream)


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def _when(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):  # no valid time
        return "?"


def _fail(text: str) -> NoReturn:
    _say(text, err=True)
    raise typer.Exit(1)
