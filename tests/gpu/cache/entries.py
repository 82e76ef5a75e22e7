"""Entries of a cache: how to put some, the names of their files, and that nothing is said of them."""

import os
import warnings

import pytest

from cutile.gpu.cache import Cache

KEY, OTHER = "ab" * 16, "cd" * 16
NOTED = {"kernel": "k", "target": "sm_90"}
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and signals")


def put(kept: Cache, key: str = KEY, release: str = "13.5.37", cubin: bytes = b"\x7fELF code") -> None:
    kept.put(key, release, cubin, f"text of {key}", NOTED)


def names(kept: Cache) -> set[str]:
    return {p.name for p in kept.folder.iterdir()} if kept.folder.is_dir() else set()


def assert_silent(do) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        do()
