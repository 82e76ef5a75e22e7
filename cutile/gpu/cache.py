"""Compiled GPU code on disk: one file per key and release of the assembler, safe among processes and threads.

A file is written beside its place and renamed into it, and carries a checksum: what is half there or damaged is as if
it were not there. Its time of modification is the time of its last use. Where the folder cannot be used cutile says so
once and works without.

With an assembler installed, an entry must be of its release. Without one any will do, the newest first: so a cache
filled on one machine serves another that only launches.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cutile import settings
from cutile.gpu.filelock import exclusive
from cutile.structs import structure

SUFFIX = ".cutile"
_MAGIC = "cutile 1"  # the layout of an entry; another is not read
_TEMPORARY = ".tmp-"
_ABANDONED = 3600  # seconds after which nobody writes a temporary file any more
_PATIENCE = 120  # seconds to wait for another process that makes the same code
_HEAD = 1 << 14  # more than the lines before the data take

_warned: set[Path] = set()


@structure(frozen=True, slots=True)
class Entry:
    """A file of the cache. `used` is in seconds since the epoch, `size` in bytes."""

    path: Path
    size: int
    used: float

    @property
    def key(self) -> str:
        return self.path.name.split(".")[0]

    @property
    def release(self) -> str:
        """The release of the assembler that made it."""
        return self.path.name.removesuffix(SUFFIX).partition(".")[2]

    def metadata(self) -> dict[str, Any]:
        """What was noted when it was made. Empty for a damaged file."""
        import json

        try:
            with open(self.path, "rb") as f:
                return json.loads(f.read(_HEAD).split(b"\n", 2)[1])
        except (OSError, IndexError, ValueError):
            return {}

    def parts(self) -> tuple[bytes, str]:
        """The code, and the text that its key is the hash of. ValueError for a damaged file, OSError."""
        import zlib

        code, rest = unpack(self.path.read_bytes())
        return code, zlib.decompress(rest.partition(b"\n")[2]).decode()


def pack(code: bytes, text: str, metadata: dict[str, Any]) -> bytes:
    """An entry's bytes: a line with the checksum of the rest and the size of the code; a line of metadata; the
    compressed text; the code."""
    import json  # a hit does without these
    import zlib

    body = b"".join([json.dumps(metadata).encode(), b"\n", zlib.compress(text.encode(), 6), code])
    return _first_line(body, len(code)) + body


def _first_line(body: bytes, size: int) -> bytes:
    return f"{_MAGIC} {hashlib.sha256(body).hexdigest()} {size}\n".encode()


def unpack(data: bytes) -> tuple[bytes, bytes]:
    """The code of an entry, and what stands before it. ValueError for what is no whole entry."""
    head, _, body = data.partition(b"\n")
    size = int(head.rpartition(b" ")[2])
    if head + b"\n" != _first_line(body, size):
        raise ValueError("damaged")
    split = len(body) - size
    return body[split:], body[:split]


class Cache:
    """A folder of entries of at most `limit` bytes in all."""

    def __init__(self, folder: Path, limit: int):
        self.folder, self.limit = folder, limit

    def get(self, key: str, release: str | None) -> bytes | None:
        """The code of a key, made by this release of the assembler; None stands for any."""
        for path in self._candidates(key, release):
            try:
                cubin, _ = unpack(path.read_bytes())
            except (FileNotFoundError, ValueError):
                continue
            except OSError as e:
                self._warn(e)
                continue
            try:
                os.utime(path)
            except OSError:  # a folder that can only be read
                pass
            return cubin
        return None

    def _candidates(self, key: str, release: str | None) -> list[Path]:
        if release is not None:
            return [self._path(key, release)]
        found = [e for e in self.entries() if e.key == key]
        return [e.path for e in sorted(found, key=lambda e: _numbers(e.release), reverse=True)]

    def _path(self, key: str, release: str) -> Path:
        return self.folder / f"{key}.{release}{SUFFIX}"

    def put(self, key: str, release: str, cubin: bytes, text: str, metadata: dict[str, Any]) -> None:
        """Keep code, and make room for it. A folder that cannot be written is a warning, once."""
        if self._write(self._path(key, release), pack(cubin, text, metadata)):
            self.shrink()

    def noted(self, name: str, ask: Callable[[], str]) -> str:
        """A word that takes time to find out and stays the same, such as the version of a tool."""
        path = self.folder / name
        try:
            word = path.read_text(encoding="ascii")
            if re.fullmatch(r"[\w.+-]+\n", word):
                return word.strip()
        except (OSError, ValueError):
            pass
        word = ask()
        self._write(path, f"{word}\n".encode())
        return word

    def _write(self, path: Path, data: bytes) -> bool:
        """Put a whole file in its place, or warn."""
        temporary = self.folder / f"{_TEMPORARY}{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            os.replace(temporary, path)
        except OSError as e:
            _remove(temporary)
            self._warn(e)
            return False
        return True

    def lock(self, key: str) -> AbstractContextManager[bool]:
        """To make the code of a key alone. Keys share a fixed number of locks, so that none is left to be removed."""
        return exclusive(self.folder / "locks" / key[:2], _PATIENCE)

    def entries(self) -> Iterator[Entry]:
        """All of them, whole or damaged, in no order."""
        for path, stat in self._files():
            if path.name.endswith(SUFFIX):
                yield Entry(path, stat.st_size, stat.st_mtime)

    def shrink(self) -> None:
        """Remove what was not used for longest until the limit is kept, and what broken-off writes left."""
        for path, stat in self._files():
            if path.name.startswith(_TEMPORARY) and time.time() - stat.st_mtime > _ABANDONED:
                _remove(path)
        entries = sorted(self.entries(), key=lambda e: e.used)
        total = sum(e.size for e in entries)
        for e in entries:
            if total <= self.limit:
                break
            _remove(e.path)
            total -= e.size

    def clear(self, older: float = 0.0) -> list[Entry]:
        """Remove entries that were not used for so many seconds; which they were."""
        gone = [e for e in self.entries() if not older or time.time() - e.used >= older]
        for e in gone:
            e.path.unlink(missing_ok=True)
        return gone

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        try:
            listed = list(os.scandir(self.folder))
        except OSError:
            return
        for f in listed:
            try:
                stat = f.stat()
            except OSError:  # another process removed it
                continue
            yield Path(f.path), stat

    def _warn(self, error: OSError) -> None:
        if self.folder not in _warned:
            _warned.add(self.folder)
            warnings.warn(f"compiled GPU code cannot be kept in {self.folder} ({error.strerror or error}): it is "
                          "compiled again in each process. Set CUTILE_CACHE_DIR to another folder, or CUTILE_CACHE=0",
                          RuntimeWarning, stacklevel=2)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:  # gone, in use, or not ours
        pass


def _numbers(release: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", release)]


def current() -> Cache | None:
    """The cache that the settings name; None where it is switched off."""
    return Cache(folder(), settings.get("CACHE_SIZE")) if settings.get("CACHE") else None


def folder() -> Path:
    """CUTILE_CACHE_DIR, or `cutile` in the user's cache folder."""
    given = settings.get("CACHE_DIR")
    if given is not None:
        return Path(given)
    if sys.platform == "linux":  # what platformdirs says, without the time of its import
        return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache"), "cutile")
    import platformdirs

    return platformdirs.user_cache_path("cutile", appauthor=False)
