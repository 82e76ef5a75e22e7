"""Groups of failing tests, in an order that shows a reader of a report where to begin.

A failing test breaks every clause that it cites, even if only one of them is not kept. So tests of one function that
fail in the same way form a group, and the most telling groups come first: tests that ran and gave a wrong result
before tests that ended with an error, where something may just be lacking; within these, tests that cite few clauses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# How a test fails, by the first line of its failure. The first match counts; reports have the same order.
HOW = {
    "wrong result": r"AssertionError|assert ",
    "refused": r"(\w+\.)*(Tile\w*Error|StaticException)\b",  # an error class of the language
    "not refused": r"Failed: DID NOT RAISE",
    "error": "",
}


def how(why: str) -> str:
    """How a test failed: a key of HOW."""
    return next(h for h, pattern in HOW.items() if re.match(pattern, why))


def named(ids: Sequence[str], written: Callable[[str], str] = str, most: int = 5) -> str:
    """Ids of clauses in one line, each as `written` writes it."""
    return ", ".join(map(written, ids[:most])) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def together(tests: Mapping[str, tuple[str, Sequence[str]]]) -> list[dict[str, Any]]:
    """Rows of failing tests, the most telling first. `tests` gives for each why it failed and the clauses it cites.

    A row has: how the tests fail, their function, their number, how many clauses its narrowest tests cite `each`,
    these clauses, and why one of these tests fails.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for test, (why, ids) in sorted(tests.items(), key=lambda item: (len(item[1][1]), item[0])):
        function, way = test.partition("[")[0], how(why)
        row = rows.setdefault((way, function), {"how": way, "test": function, "tests": 0, "each": len(ids),
                                                "clauses": [], "why": why})
        row["tests"] += 1
        if len(ids) == row["each"]:
            row["clauses"] += [i for i in ids if i not in row["clauses"]]
    ways = list(HOW)
    return sorted(rows.values(), key=lambda r: (ways.index(r["how"]), r["each"], r["test"]))
