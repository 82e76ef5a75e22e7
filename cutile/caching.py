"""python -m cutile cache: the GPU code that is kept on disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from cutile import settings
from cutile.gpu import cache
from cutile.gpu.cache import Entry

app = typer.Typer(help="The compiled GPU code on disk: list it, show an entry, clear it.", add_completion=False)
SHOWN = 12  # digits of a key in the list


@app.callback(invoke_without_command=True)
def list_(context: typer.Context) -> None:
    """List the entries, most recently used first."""
    if context.invoked_subcommand is not None:
        return
    kept = cache.current()
    if kept is None:
        _fail("the cache is switched off (CUTILE_CACHE=0)")
    entries = sorted(kept.entries(), key=lambda e: e.used, reverse=True)
    if not entries:
        print(f"no GPU code is kept in {kept.folder}")
        return
    table = Table("key", "kernel", "target", "size", Column("last used", no_wrap=True), "tileiras")
    for e in entries:
        noted = e.metadata()
        table.add_row(e.key[:SHOWN], noted.get("kernel", "damaged"), noted.get("target", "?"), _size(e.size),
                      _when(e.used), e.release)
    Console().print(table)
    print(f"{len(entries)} in {kept.folder}: {_size(sum(e.size for e in entries))} of {_size(kept.limit)}")


@app.command()
def show(
    key: Annotated[str, typer.Argument(help="as many digits of it as tell it from the others")],
    cubin: Annotated[Path | None, typer.Option(help="write the machine code to this file too")] = None,
) -> None:
    """Print what an entry was made from: target, options, what is known of the parameters, IR."""
    found = [e for e in _cache().entries() if e.key.startswith(key)]
    if len({e.key for e in found}) != 1:
        _fail(f"{len(found)} entries have keys that begin with {key}" if found else f"there is no entry {key}")
    entry = max(found, key=lambda e: e.used)
    try:
        code, text = entry.parts()
    except (OSError, ValueError) as e:
        _fail(f"entry {entry.key} cannot be read ({e}); it will be compiled again when it is needed")
    print(_noted(entry))
    print(text, end="")
    if cubin is not None:
        cubin.write_bytes(code)


def _noted(entry: Entry) -> str:
    noted = entry.metadata()
    return (f"{entry.key}: {noted['kernel']} as {noted['symbol']} for {noted['target']}, {_size(noted['cubin'])}\n"
            f"made {_when(noted['made'])} in {noted['seconds']:.2f} s by tileiras {entry.release}, last used "
            f"{_when(entry.used)}\n")


@app.command()
def clear(
    older: Annotated[float, typer.Option(help="only what was not used for so many days", min=0)] = 0,
) -> None:
    """Remove entries."""
    gone = _cache().clear(older * 86400)
    print(f"removed {len(gone)}: {_size(sum(e.size for e in gone))}")


def _cache() -> cache.Cache:
    """The folder, also where it is switched off for kernels."""
    return cache.Cache(cache.folder(), settings.get("CACHE_SIZE"))


def _size(n: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _fail(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(1)
