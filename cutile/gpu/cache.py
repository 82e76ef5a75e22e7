"""Compiled GPU code on disk: one file per key and release of the assembler, safe among processes and threads.

A file is written under a temporary name and renamed, and it carries a checksum: an incomplete or damaged file counts as
missing. Its time of modification is the time of its last use. If the folder cannot be used, or if other users could
have put code there, cutile warns once and works without it.

With an assembler installed, an entry must be of its release. Without one, an entry of any release will do, the newest
first, so that a cache filled on one machine serves another that only launches.

Only regular files with the names given here are entries. A temporary file is removed only if its name is one of ours,
it belongs to this user and no process is writing it. Everything else in the folder is left alone.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from cutile import settings
from cutile._support.structs import structure
from cutile.gpu.file_lock import exclusive, lock_open, try_hold

SUFFIX = ".cutile"
_MAGIC = "cutile 1"  # the layout of an entry; files of other layouts are not read
_ENTRY = re.compile(r"[0-9a-f]{32}\.[\w.+-]+\.cutile", re.ASCII)
_TEMPORARY = re.compile(r"\.tmp-\d+-\d+-\d+", re.ASCII)
_ABANDONED = 3600  # seconds after which a temporary file counts as abandoned, where there are no locks to tell
_SETTLED = 1  # seconds; a younger temporary file may not be locked yet
_PATIENCE = 120  # seconds to wait for another process that makes the same code
_HEAD = 1 << 14  # more than the lines before the data take
_LARGEST = 256 << 20  # bytes of an entry
_LONGEST = 8 << 20  # bytes of its text that are unpacked
_NOTED = {"kernel": str, "symbol": str, "target": str, "made": (int, float), "seconds": (int, float), "cubin": int,
          "selected": str}
_ABSURD = 1e15  # seconds or bytes; larger values are corrupt

_warned: set[Any] = set()


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
        """The metadata given to `pack`, without values of the wrong type. Empty for a damaged file."""
        import json

        try:
            noted = json.loads(_read(self.path, _HEAD).split(b"\n", 2)[1])
        except (OSError, IndexError, ValueError, RecursionError):
            return {}
        if not isinstance(noted, dict):
            return {}
        return {k: v for k, v in noted.items() if _sound(k, v)}

    def parts(self) -> tuple[bytes, str]:
        """The code, and the text whose hash is the key; a very long text is cut.

        ValueError for a damaged file, OSError if it cannot be read.
        """
        import zlib

        code, rest = unpack(_read(self.path, _LARGEST))
        unpacker = zlib.decompressobj()
        try:
            text = unpacker.decompress(rest.partition(b"\n")[2], _LONGEST)
        except zlib.error:
            raise ValueError("damaged") from None
        left_out = "" if unpacker.eof else f"\n… more than {_LONGEST >> 20} MiB: the rest is left out\n"
        return code, text.decode(errors="replace") + left_out


def _sound(name: str, value: Any) -> bool:
    """Whether a value of the metadata has the right type and, if it is a number, is not absurdly large."""
    if isinstance(value, bool) or not isinstance(value, _NOTED.get(name, ())):
        return False
    return isinstance(value, str) or abs(value) < _ABSURD


def pack(code: bytes, text: str, metadata: dict[str, Any]) -> bytes:
    """An entry's bytes: a line with the checksum of the rest and the size of the code; a line of metadata; the
    compressed text; the code.
    """
    import json  # not needed on a cache hit
    import zlib

    body = b"".join([json.dumps(metadata).encode(), b"\n", zlib.compress(text.encode(), 6), code])
    return _first_line(body, len(code)) + body


def _first_line(body: bytes, size: int) -> bytes:
    return f"{_MAGIC} {hashlib.sha256(body).hexdigest()} {size}\n".encode()


def unpack(data: bytes) -> tuple[bytes, bytes]:
    """The code of an entry, and the bytes before it. ValueError for an incomplete or damaged entry."""
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
        """The code of a key that this release of the assembler made; with None, any release."""
        for path in self._candidates(key, release):
            try:
                cubin, _ = unpack(_read(path, _LARGEST))
            except (FileNotFoundError, ValueError):
                continue
            except OSError as e:
                self._warn(e)
                continue
            _touch(path)
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
        """The result of something slow that never changes, such as the version of a tool; it is cached in a file."""
        path = self.folder / name
        try:
            word = _read(path, _HEAD).decode("ascii")
            if re.fullmatch(r"[\w.+-]+\n", word):
                return word.strip()
        except (OSError, ValueError):
            pass
        word = ask()
        self._write(path, f"{word}\n".encode())
        return word

    def _write(self, path: Path, data: bytes) -> bool:
        """Put a whole file in its place, or warn."""
        temporary = self.folder / f".tmp-{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _store(temporary, path, data)
        except OSError as e:
            _remove(temporary)
            self._warn(e)
            return False
        return True

    def lock(self, key: str) -> AbstractContextManager[bool]:
        """The lock that a process holds while it makes the code of a key. Keys share a fixed number of lock files,
        which are never removed.
        """
        return exclusive(self.folder / "locks" / key[:2], _PATIENCE)

    def entries(self) -> Iterator[Entry]:
        """All of them, whole or damaged, in no order."""
        for path, found in self._files():
            if _ENTRY.fullmatch(path.name):
                yield Entry(path, found.st_size, found.st_mtime)

    def shrink(self) -> None:
        """Remove the entries used least recently until the limit is kept, and abandoned temporary files."""
        self._clear_away()
        entries = sorted(self.entries(), key=lambda e: e.used)
        total = sum(e.size for e in entries)
        for e in entries:
            if total <= self.limit:
                break
            _remove(e.path)
            total -= e.size

    def clear(self, older: float = 0.0) -> list[Entry]:
        """Remove entries not used for `older` seconds, and abandoned temporary files. Returns the entries."""
        self._clear_away()
        return [e for e in self.entries() if (not older or time.time() - e.used >= older) and _remove(e.path)]

    def _clear_away(self) -> None:
        for path, found in self._files():
            if _TEMPORARY.fullmatch(path.name):
                _remove_if_abandoned(path, found)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """The regular files of the folder: no folders, links, pipes and the like."""
        try:
            listed = list(os.scandir(self.folder))
        except OSError:
            return
        for f in listed:
            try:
                found = f.stat(follow_symlinks=False)
            except OSError:  # another process removed it
                continue
            if stat.S_ISREG(found.st_mode):
                yield Path(f.path), found

    def _warn(self, error: OSError) -> None:
        _warn(self.folder, f"compiled GPU code cannot be kept in {self.folder} ({error.strerror or error})")


def _warn(folder: Path, text: str) -> None:
    if folder not in _warned:
        _warned.add(folder)
        warnings.warn(f"{text}: it is compiled again in each process. Set CUTILE_CACHE_DIR to another folder, or "
                      "CUTILE_CACHE=0", RuntimeWarning, stacklevel=3)


# ------------------------------------------------------------------ files

_ITSELF = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _read(path: Path, limit: int) -> bytes:
    """The first `limit` bytes of a regular file. ValueError for a link, a pipe and the like; OSError if it
    cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | _ITSELF)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):  # of links, and of sockets
            raise ValueError("no file") from None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("no file")
        with open(fd, "rb", buffering=0, closefd=False) as f:
            return f.read(min(limit, found.st_size))
    finally:
        os.close(fd)


def _store(temporary: Path, path: Path, data: bytes) -> None:
    """Write a file, locked against being cleared away, and move it into its place."""
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _ITSELF, 0o666), "wb") as f:
        lock_open(f.fileno())
        f.write(data)
        f.flush()
        if os.name != "nt":  # Windows cannot move an open file
            os.replace(temporary, path)
    if os.name == "nt":
        os.replace(temporary, path)


def _remove_if_abandoned(path: Path, found: os.stat_result) -> None:
    """Remove a temporary file of this user's that no process is writing."""
    age = time.time() - found.st_mtime
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid() or age < _SETTLED:
        return
    with try_hold(path) as held:
        if held or held is None and age > _ABANDONED:
            _remove(path)


def _touch(path: Path) -> None:
    """Record a use; in a read-only folder uses are not recorded."""
    itself = {"follow_symlinks": False} if os.utime in os.supports_follow_symlinks else {}
    try:
        os.utime(path, **itself)
    except OSError:
        pass


def _remove(path: Path) -> bool:
    try:
        path.unlink()
        return True
    except OSError:  # gone, in use, or not ours
        return False


def _numbers(release: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d{1,9}", release)]


# ------------------------------------------------------------------ which folder


def current() -> Cache | None:
    """The cache that the settings name; None if it is switched off or, with a warning, if it is not trusted."""
    if not settings.get("CACHE"):
        return None
    where, named = folder(), settings.get("CACHE_DIR") is not None
    if not os.path.isdir(where):
        try:
            # Before the check, so that no other user can make the folder after it.
            os.makedirs(where, 0o775 if named else 0o700)
        except OSError:
            pass  # `Cache` warns when it cannot write
    why = distrusted(where)
    if why is not None:
        _warn(where, f"compiled GPU code is not taken from {where} ({why})")
        return None
    return Cache(where, settings.get("CACHE_SIZE"))


def distrusted(where: Path) -> str | None:
    """Why code in a folder may come from other users; None if only root and this user can write there. In a folder that
    CUTILE_CACHE_DIR names, a group may, too.
    """
    if not hasattr(os, "geteuid"):
        return None
    try:
        found = os.stat(where)
    except OSError:
        return None
    if found.st_uid not in (0, os.geteuid()):
        return f"it is owned by another user, {found.st_uid}"
    if found.st_mode & stat.S_IWOTH:
        return "it is writable by every user"
    private = found.st_gid == found.st_uid  # many systems give each user a group of their own
    if found.st_mode & stat.S_IWGRP and not private and settings.get("CACHE_DIR") is None:
        return f"it is writable by its group, {found.st_gid}, and no folder that CUTILE_CACHE_DIR names"
    return None


def folder() -> Path:
    """CUTILE_CACHE_DIR, or `cutile` in the user's cache folder. ValueError for a home folder that does not exist."""
    given = settings.folder("CACHE_DIR")
    if given is not None:
        return Path(given)
    if sys.platform == "linux":  # as platformdirs would say, without importing it
        usual = os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache")
        if usual.startswith("~"):  # a user without a home
            import tempfile

            usual = os.path.join(tempfile.gettempdir(), f"cache-{os.getuid()}")
        return Path(usual, "cutile")
    import platformdirs

    return platformdirs.user_cache_path("cutile", appauthor=False)
