"""What is kept of the digests: for each file of the suite one for each column, for each test one of each kind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.digests.adapter import EXPORTS, MESSAGES, POSITIONS, digest

KEPT = Path(__file__).parents[1] / "data" / "digests.json"
BYTECODE = "bytecode"
KINDS = (BYTECODE, POSITIONS, MESSAGES)

Found = Mapping[str, Mapping[str, list[str]]]  # by test and column the digests of its launches in order


def kind_of(column: str) -> str:
    return column if column in (POSITIONS, MESSAGES) else BYTECODE


def merged(parts: Iterable[Path]) -> Found:
    """What several processes wrote. What is compiled ahead of time has no order, as tests do it in threads."""
    out: dict[str, Mapping[str, list[str]]] = {}
    for path in sorted(parts):
        for test, columns in json.loads(path.read_text()).items():
            assert test not in out, f"{test} ran twice"
            out[test] = {column: sorted(digests) if column in (EXPORTS, MESSAGES) else digests
                         for column, digests in columns.items()}
    return dict(sorted(out.items()))


def summary(found: Found) -> dict:
    """What is kept: `{file: {"columns": {column: digest}, "tests": {test: "bytecode positions messages"}}}`.

    The instances of a parametrized test count as one test.
    """
    files: dict[str, dict[str, dict[str, Mapping[str, list[str]]]]] = defaultdict(lambda: defaultdict(dict))
    for test, columns in sorted(found.items()):
        file, _, name = test.partition("::")
        files[file][name.partition("[")[0]][test] = columns
    return {file: {"columns": _columns(tests), "tests": {name: _kinds(instances) for name, instances in tests.items()}}
            for file, tests in files.items()}


def _columns(tests: Mapping[str, Found]) -> dict[str, str]:
    texts: dict[str, list[str]] = defaultdict(list)
    for instances in tests.values():
        for test, columns in instances.items():
            for column, digests in columns.items():
                texts[column].append(f"{test} {' '.join(digests)}")
    return {column: digest(*lines) for column, lines in sorted(texts.items())}


def _kinds(instances: Found) -> str:
    lines: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for test, columns in instances.items():
        for column, digests in sorted(columns.items()):
            lines[kind_of(column)].append(f"{test} {column} {' '.join(digests)}")
    return " ".join(digest(*lines[kind])[:8] for kind in KINDS)


def whole(kept: Mapping, kind: str = BYTECODE) -> str:
    """One digest of all."""
    return digest(*(f"{file} {column} {d}" for file, of in sorted(kept.items())
                    for column, d in of["columns"].items() if kind_of(column) == kind))


def write(path: Path, what: Mapping) -> None:
    path.write_text(json.dumps(what, indent=1, sort_keys=True) + "\n")


# ------------------------------------------------------------------ comparing


def columns_that_differ(old: Mapping, new: Mapping) -> Iterator[tuple[str, str]]:
    """File and column, of the columns that both have or of files that only one has."""
    for file in sorted({*old, *new}):
        if file not in old or file not in new:
            yield file, "new file" if file in new else "file gone"
            continue
        a, b = old[file]["columns"], new[file]["columns"]
        yield from ((file, column) for column in sorted({*a, *b}) if a.get(column) != b.get(column))


def tests_that_differ(old: Mapping, new: Mapping) -> dict[str, list[str]]:
    """By kind, the tests that differ in it; and those that are new, or gone."""
    out: dict[str, list[str]] = {kind: [] for kind in (*KINDS, "new", "gone")}
    a, b = _by_test(old), _by_test(new)
    for test in sorted({*a, *b}):
        if test not in a or test not in b:
            out["new" if test in b else "gone"].append(test)
            continue
        for kind, x, y in zip(KINDS, a[test].split(), b[test].split(), strict=True):
            if x != y:
                out[kind].append(test)
    return out


def _by_test(kept: Mapping) -> dict[str, str]:
    return {f"{file}::{name}": d for file, of in kept.items() for name, d in of["tests"].items()}


def details_that_differ(old: Found, new: Found) -> Iterator[str]:
    """A line for each test and column: how many of its launches differ, and which is the first."""
    for test in sorted({*old, *new}):
        if test not in old or test not in new:
            yield f"{test}: {'new' if test in new else 'gone'}"
            continue
        for column in sorted({*old[test], *new[test]}):
            a, b = old[test].get(column, []), new[test].get(column, [])
            if a != b:
                at = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
                first = f"first launch {at[0]}: {a[at[0]]} is now {b[at[0]]}" if at else "the launches before are equal"
                yield f"{test}: {column}: {len(at)} of {len(a)} (now {len(b)}) differ, {first}"
