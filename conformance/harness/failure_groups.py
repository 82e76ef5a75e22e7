"""Failing tests put together, so that a reader of a report knows where to begin.

A failing test breaks every clause that it cites, also where one of them alone is not kept. So the tests of one function
that fail in one way stand together, and the most telling ones come first: those that ran and gave a wrong result before
those that ended with an error, which may just lack something, and among these the ones with the fewest clauses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# How a test fails, by the first line of its failure. The first that matches counts; the order is that of reports.
HOW = {
    "wrong result": r"AssertionError|assert ",
    "refused": r"(\w+\.)*(Tile\w*Error|StaticException)\b",  # an error class of the language
    "not refused": r"Failed: DID NOT RAISE",
    "error": "",
}


def how(why: str) -> str:
    """The way in which a test failed: a key of HOW."""
    return next(h for h, pattern in HOW.items() if re.match(pattern, why))


def named(ids: Sequence[str], most: int = 5) -> str:
    """Clauses in a line."""
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def together(tests: Mapping[str, tuple[str, Sequence[str]]]) -> list[dict[str, Any]]:
    """Failing tests, each with why and the clauses it cites, as rows: most telling first.

    A row: how they fail, the function, how many of its tests, how many clauses its narrowest tests cite `each`, which
    these are, and why one of these tests fails.
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
