"""Files of other users, and acting as another user: for tests that only root can run; other users skip them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OTHER = 65533 if getattr(os, "geteuid", int)() == 65534 else 65534


def give_away(path: Path) -> None:
    """Give a file or folder to another user."""
    try:
        os.chown(path, OTHER, OTHER)
    except (AttributeError, OSError):
        pytest.skip("this user cannot give files to another one")


@contextmanager
def another() -> Iterator[None]:
    """Act as another user, who may not pass through our folders: use paths relative to the current one."""
    before = os.geteuid()
    try:
        os.seteuid(OTHER)
    except OSError:
        pytest.skip("this user cannot become another one")
    try:
        yield
    finally:
        os.seteuid(before)
