"""What belongs to other users, and what they may do: for tests that root runs, and that others skip."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OTHER = 65533 if getattr(os, "geteuid", int)() == 65534 else 65534


def give_away(path: Path) -> None:
    """Make a file or folder another user's."""
    try:
        os.chown(path, OTHER, OTHER)
    except (AttributeError, OSError):
        pytest.skip("this user cannot give files to another one")


@contextmanager
def another() -> Iterator[None]:
    """Be another user, who may not pass through our folders: use paths relative to the current one."""
    before = os.geteuid()
    try:
        os.seteuid(OTHER)
    except OSError:
        pytest.skip("this user cannot become another one")
    try:
        yield
    finally:
        os.seteuid(before)
