"""python -m conformance [FILES] [--impl NAME] [--report FOLDER] [options of pytest]: run the suite from any folder.

FILES are names such as test_casts.py or test_casts.py::test_narrowing, or paths; without any, the whole suite runs.

  --impl NAME        cutile:interp (default), cutile:gpu, cuda.tile, or package.module:AdapterClass
  --report FOLDER    write report.json and report.html there
  --limit SECONDS    with -n: end a process in which a kernel takes longer, and go on in another one

All options of pytest are accepted, such as -n 8 (eight processes), -k RZ (tests of that name), -x (end at the first
failure), --tb=line (a line for each failure); `pytest --help` lists them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def arguments(given: list[str]) -> list[str]:
    """The arguments for pytest: settings, what the user gave, and the files by their paths."""
    located = [_located(a) for a in given]
    files = [] if any(located) else [str(HERE)]
    named = [path or a for path, a in zip(located, given, strict=True)]
    return ["-c", str(HERE / "suite.ini"), "--rootdir", str(HERE.parent), *named, *files]


def _located(argument: str) -> str | None:
    """The path that an argument names, with what follows `::`; None if it names no file of tests."""
    name, colons, test = argument.partition("::")
    paths = (folder.resolve() / name for folder in (HERE, Path()))
    found = next((p.resolve() for p in paths if p.suffix == ".py" and p.is_file()), None)
    return None if found is None else f"{found}{colons}{test}"


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return 0
    return int(pytest.main(arguments(sys.argv[1:])))


if __name__ == "__main__":
    raise SystemExit(main())
