"""Advice in errors about unknown names: what to write instead of a name of another library, or which name was meant."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable

from cutile.front.foreign_names import DTYPES, IDIOMS, NOTES, SAME
from cutile.ops._op import methods, registry


def hint(name: str) -> str | None:
    """What to write instead of a name that means something in another library; None if nothing is known."""
    for n in _spellings(name):
        if (call := call_of(n)) is not None:
            return f"write {call}"
        if n in DTYPES:
            return f"write ct.{DTYPES[n]}"
        if n in IDIOMS:
            code, note = IDIOMS[n]
            return f"write {code}" + (f" ({note})" if note else "")
        if n in NOTES:
            return NOTES[n]
    return None


def _spellings(name: str) -> list[str]:
    """The name, and its spellings in our style: without underscores at its ends, in snake case, without a final f."""
    plain = name.strip("_")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower()
    return list(dict.fromkeys([name, plain, snake, plain.removesuffix("f") if len(plain) > 3 else plain]))


def call_of(name: str) -> str | None:
    """How to call the op that has this name, here or in another library; None if there is none."""
    return _calls().get(SAME.get(name, name))


@functools.cache
def _calls() -> dict[str, str]:
    """How to call each op, by its name: as a method, if there is no function."""
    called = {name: _call(f"{_RECEIVERS[kind]}.{name}", [*op.__signature__.parameters.values()][1:])
              for (kind, name), op in methods().items()}
    public = {n: op.__signature__.parameters.values() for n, op in registry().items() if op.public}
    return called | {n: _call(f"ct.{n}", parameters) for n, parameters in public.items()}


_RECEIVERS = {"tile": "x", "array": "array", "view": "array.tiled_view(tile_shape)", "raw": "array.get_raw_memory()"}


def _call(name: str, parameters: Iterable[inspect.Parameter]) -> str:
    """The call with its required arguments, and with the axis, whose default may differ in other libraries."""
    needed = [p for p in parameters if p.default is p.empty or p.name == "axis"]
    return f"{name}({', '.join(map(_argument, needed))})"


def _argument(p: inspect.Parameter) -> str:
    return {p.VAR_POSITIONAL: f"*{p.name}", p.KEYWORD_ONLY: f"{p.name}={p.name}"}.get(p.kind, p.name)


# ------------------------------------------------------------------ misspellings


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was meant by a misspelt one: the nearest name, at most one edit away (two in long names). None if
    there is none, or several are equally near.

    Names with different digits are different names.
    """
    plain = _plain(name)
    slips = 0 if len(plain) < 3 else 1 if len(plain) < 8 else 2
    found = sorted((d, sorted(plain) != sorted(_plain(n)), n) for n in {*names} if _digits(n) == _digits(name)
                   and (d := _distance(plain, _plain(n), slips)) <= slips
                   and (len(plain) > 3 or d == 0 or len(_plain(n)) != 3))  # three-letter names are too alike
    alone = len(found) == 1 or len(found) > 1 and found[0][:2] < found[1][:2]
    return found[0][2] if alone else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)


def _distance(a: str, b: str, enough: int) -> int:
    """Edit distance, where a swap of neighbours is one edit; only a lower bound above `enough`."""
    if abs(len(a) - len(b)) > enough:
        return enough + 1
    above: list[int] = []
    row = [*range(len(b) + 1)]
    for i, x in enumerate(a):
        above, before, row = row, above, [i + 1]
        for j, y in enumerate(b):
            ways = [above[j + 1] + 1, row[j] + 1, above[j] + (x != y)]
            if i and j and x == b[j - 1] and a[i - 1] == y:
                ways.append(before[j - 1] + 1)
            row.append(min(ways))
    return row[-1]
