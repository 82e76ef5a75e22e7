"""What searches found, in files: one for each key in the cache's folder, and one that ships with a program [TUN-7]."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cutile import settings
from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.functions.tuning_key import HINTS, INTERPRETER, TuningKey

FORMAT = 2  # 1 had results that were compared with the first configuration alone
FOLDER = "tuned"  # in the folder of the cache


@structure(frozen=True)
class Tuning:
    """What a search found.

    best       the fastest configuration
    times      of those that ran, the fastest first: configuration, median in microseconds, and how far from it half of
               the runs lie; None where it is the least of two runs
    failures   configurations that failed, each with the reason
    skipped    how many were not tried
    seconds    that the search took;  made: when it ended
    """

    key: TuningKey
    best: dict[str, Any]
    times: Sequence[tuple[dict[str, Any], float, float | None]]
    failures: Sequence[tuple[dict[str, Any], str]]
    skipped: int
    seconds: float
    made: float

    def summary(self, top: int = 10) -> str:
        """A table: the fastest configurations, how many failed, and why."""
        tried = len(self.times) + len(self.failures)
        skipped = f", {self.skipped} were not tried" * (self.skipped > 0)
        lines = [f"{self.key.function} on {self.key.device}, {self.key.inputs}: {len(self.times)} of {tried} "
                 f"configurations ran in {self.seconds:.1f} s{skipped}"]
        for i, (config, us, deviation) in enumerate(self.times[:top]):
            spread = "  (roughly)" if deviation is None else f" ± {deviation:.2f}"
            lines.append(f"{'*' if i == 0 else ' '} {us:12.2f} us{spread}  {config}")
        lines += ["  …"] * (len(self.times) > top)
        if any(deviation is None for _, _, deviation in self.times[:top]):
            lines.append("  roughly: the least of two runs; only the configurations that then led were measured on")
        reasons: dict[str, int] = {}
        for _, why in self.failures:
            reasons[why.partition("\n")[0]] = reasons.get(why.partition("\n")[0], 0) + 1
        lines += [f"  {n} failed: {why}" for why, n in sorted(reasons.items(), key=lambda r: -r[1])[:3]]
        return "\n".join([*lines, *self._of_interpreter()])

    def _of_interpreter(self) -> list[str]:
        """What to know of times that were taken in the interpreter."""
        if self.key.device != INTERPRETER:
            return []
        configs = [c for c, *_ in self.times]
        hints = any(k in HINTS for c in configs for k in c)
        return ["  these are times of the interpreter on this CPU, and say nothing about a GPU; there the function "
                "searches anew", *["  the interpreter ignores hints, so configurations that differ in hints alone are "
                                   "the same kernel"] * hints]

    __str__ = summary

    def as_json(self) -> dict[str, Any]:
        """TypeError for a configuration with values that JSON does not have."""
        return {"format": FORMAT, "function": self.key.function, "content": self.key.content,
                "device": self.key.device, "inputs": self.key.inputs, "best": self.best,
                "times": [list(t) for t in self.times],
                "failures": [list(f) for f in self.failures], "skipped": self.skipped, "seconds": self.seconds,
                "made": self.made}

    @staticmethod
    def of_json(d: Mapping[str, Any]) -> Tuning:
        """KeyError, TypeError or ValueError for what is none."""
        if d["format"] != FORMAT:
            raise ValueError("written by another version of cutile")
        key = TuningKey(str(d["function"]), str(d["content"]), str(d["device"]), str(d["inputs"]))
        return Tuning(key, dict(d["best"]), [(dict(c), float(us), None if m is None else float(m))
                                                 for c, us, m in d["times"]],
                      [(dict(c), str(why)) for c, why in d["failures"]], int(d["skipped"]), float(d["seconds"]),
                      float(d["made"]))


def folder() -> Path | None:
    """Where results are; None if the cache is switched off."""
    from cutile.gpu import cache

    return cache.folder() / FOLDER if settings.get("CACHE") else None


def kept() -> Iterator[tuple[Path, Tuning]]:
    """All results on disk."""
    where = folder()
    for path in sorted(where.glob("*.json")) if where is not None and where.is_dir() else []:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield path, Tuning.of_json(json.loads(path.read_text()))


class Store:
    """The results of one function: those on disk, and those of a file that it was given."""

    def __init__(self, save: str | os.PathLike | None):
        self._save = None if save is None else Path(save)
        self._loaded: dict[TuningKey, Tuning] = {}
        self._known: dict[TuningKey, Tuning] = {}
        if self._save is not None and self._save.exists():
            self.read(self._save)

    def read(self, path: str | os.PathLike) -> set[str]:
        """Take results from a file: the functions that they are of. ValueError if it has none."""
        if stat.S_ISCHR(mode := os.stat(path).st_mode) or stat.S_ISFIFO(mode):  # such reading may never end
            raise ValueError(f"{os.fspath(path)!r} is a device or a pipe, and no file with results of tuning")
        try:
            found = [Tuning.of_json(d) for d in json.loads(Path(path).read_text())["results"]]
        except (ValueError, KeyError, TypeError) as e:
            raise ValueError(f"{os.fspath(path)!r} is no file with results of tuning: {e}") from None
        self._loaded.update({t.key: t for t in found})
        return {t.key.function for t in found}

    def check(self) -> None:
        """OSError where no file can be written as `save` says, for before a search takes its time."""
        if self._save is None or os.access(self._save.parent, os.W_OK):
            return
        code, why = ((errno.EACCES, "may not be written to") if self._save.parent.is_dir() else
                     (errno.ENOENT, "does not exist"))
        raise refusal(OSError(code, f"save= of ct.autotune names a file in a folder that {why}", str(self._save)))

    def write(self, path: str | os.PathLike) -> None:
        """Write all results that are known. OSError, with the path as it was given, where that cannot be."""
        found = {**self._known, **self._loaded}
        try:
            _write(Path(path), json.dumps({"results": [t.as_json() for t in found.values()]}, indent=1))
        except OSError as e:
            raise type(e)(e.errno, e.strerror, os.fspath(path)) from None

    def get(self, key: TuningKey) -> Tuning | None:
        """The result for a key; None if there is none. A file that cannot be read is none. A result that the given file
        does not have yet is written to it.
        """
        found = self._loaded.get(key)
        where = folder()
        if found is None and where is not None:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                found = Tuning.of_json(json.loads((where / f"{key.digest}.json").read_text()))
        if found is not None and found.key == key:
            self._known[key] = found
            if self._save is not None and key not in self._loaded:
                self.check()
                self._loaded[key] = found
                self.write(self._save)
            return found
        return None

    def keep(self, found: Tuning) -> None:
        """Remember a result here and on disk. What JSON does not have is remembered here alone."""
        self._known[found.key] = found
        where = folder()
        try:
            text = json.dumps(found.as_json())
        except TypeError:
            return
        if where is not None:
            with contextlib.suppress(OSError):
                where.mkdir(parents=True, exist_ok=True)
                _write(where / f"{found.key.digest}.json", text)
        if self._save is not None:
            self._loaded[found.key] = found
            self.write(self._save)


def _write(path: Path, text: str) -> None:
    """Write a file beside, and rename it: readers see the old one or the new one."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w") as f:
            f.write(text)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def now() -> float:
    return time.time()
