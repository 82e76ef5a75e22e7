"""Programs in the folders of PATH."""

from __future__ import annotations

import os

EXE = ".exe" if os.name == "nt" else ""


def on_path(name: str, path: str | None) -> str | None:
    """A program in one of the folders that PATH names in full."""
    for folder in absolute(path).split(os.pathsep):
        file = os.path.join(folder, name + EXE)
        if folder and os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return None


def absolute(path: str | None) -> str:
    """PATH reduced to absolute folders."""
    return os.pathsep.join(f for f in (path or "").split(os.pathsep) if os.path.isabs(f))
