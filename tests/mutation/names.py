"""Relations by name, across files and tables: which lines of functions use what a statement makes at import, and
which lines and tests mention the words of mutated code, so that these tests come first.
"""

from __future__ import annotations

import ast
import functools
import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.mutation.sites import ROOT, TARGETS, Mutant

Line = tuple[str, int]


@functools.cache
def _uses() -> tuple[dict[Line, set[str]], dict[str, set[Line]], dict[str, set[str]]]:
    """Names that module-level lines bind; lines of functions by the name they use; names bound from names used at
    import.
    """
    binds: dict[Line, set[str]] = defaultdict(set)
    lines: dict[str, set[Line]] = defaultdict(set)
    derived: dict[str, set[str]] = defaultdict(set)
    for path in TARGETS:
        for s in ast.parse((ROOT / path).read_text()).body:
            bound = _bound(s)
            for n in range(s.lineno, s.end_lineno + 1):
                binds[path, n] |= bound
            function = isinstance(s, ast.FunctionDef | ast.ClassDef)
            for name, line in _mentioned(s):
                if function:
                    lines[name].add((path, line))
                else:
                    derived[name] |= bound
            for d in getattr(s, "decorator_list", ()):
                for name, _ in _mentioned(d):
                    lines[name] |= {(path, n) for n in range(s.lineno, s.end_lineno + 1)}
    return binds, lines, derived


def _bound(s: ast.stmt) -> set[str]:
    if isinstance(s, ast.FunctionDef | ast.ClassDef):
        return {s.name}
    return {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _mentioned(s: ast.AST) -> set[tuple[str, int]]:
    return ({(n.id, n.lineno) for n in ast.walk(s) if isinstance(n, ast.Name)}
            | {(n.attr, n.lineno) for n in ast.walk(s) if isinstance(n, ast.Attribute)})


def makes_names(path: str, numbers: tuple[int, ...]) -> bool:
    """Whether these lines are of assignments to names which only mutated files mention: then nothing but the lines
    that mention them can tell what was assigned.
    """
    of = [s for s in ast.parse((ROOT / path).read_text()).body
          if any(s.lineno <= n <= s.end_lineno for n in numbers)]
    names = set().union(*map(_bound, of))
    return bool(names) and all(isinstance(s, ast.Assign | ast.AnnAssign) for s in of) and not (
        _closure(names) & _elsewhere())


@functools.cache
def _elsewhere() -> set[str]:
    """The names that files of the package mention which are not mutated, and that mutated ones import as another."""
    paths = {*TARGETS, *(str(p.relative_to(ROOT)) for p in (ROOT / "cutile").rglob("*.py"))}
    trees = {p: ast.parse((ROOT / p).read_text()) for p in paths}
    renamed = {a.name for p in TARGETS for n in ast.walk(trees[p]) if isinstance(n, ast.ImportFrom)
               for a in n.names if a.asname not in (None, a.name)}
    return renamed.union(*({name for name, _ in _mentioned(trees[p])} for p in paths.difference(TARGETS)))


def _closure(names: set[str]) -> set[str]:
    """These names and those that module-level code derives from them."""
    derived = _uses()[2]
    todo, seen = set(names), set()
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= derived[name] - seen
    return seen


def lines_that_mention(path: str, numbers: tuple[int, ...]) -> set[Line]:
    """Lines of functions that use, directly or through other names, the definitions at these lines of a file."""
    binds, lines, _ = _uses()
    return {line for name in _closure({name for n in numbers for name in binds[path, n]}) for line in lines[name]}


# ------------------------------------------------------------------ words

WORDS = 20  # how many rare words of a mutant count
_WORD = re.compile(r"[^\W\d]\w+")


def words_of(m: Mutant) -> set[str]:
    """The words of mutated code: those of the cell in a table, else those of its lines."""
    if m.kind == "table":
        old, _, new = m.what.partition(" → ")
        several = Counter(_WORD.findall(old))
        return set(several - Counter(_WORD.findall(new))) if new.startswith(("(", "[", "{")) else set(several)
    lines = (ROOT / m.path).read_text().splitlines()
    end = m.line + (ROOT / m.path).read_text()[m.start:m.end].count("\n")
    return set(_WORD.findall("\n".join(lines[m.line - 1:end])))


@functools.cache
def _lines_by_word() -> tuple[dict[str, set[Line]], dict[str, set[str]]]:
    """Lines of functions by the words in them, and for each word the words on the same line of a table."""
    lines: dict[str, set[Line]] = defaultdict(set)
    beside: dict[str, set[str]] = defaultdict(set)
    for path in TARGETS:
        texts = (ROOT / path).read_text().splitlines()
        for s in ast.parse("\n".join(texts)).body:
            for n in range(s.lineno, s.end_lineno + 1):
                words = set(_WORD.findall(texts[n - 1]))
                for w in words:
                    if isinstance(s, ast.FunctionDef | ast.ClassDef):
                        lines[w].add((path, n))
                    elif isinstance(s, ast.Assign | ast.AnnAssign | ast.Expr):
                        beside[w] |= words
    return lines, beside


def lines_by_word(m: Mutant) -> dict[str, set[Line]]:
    """Lines of functions by the rarest words of mutated code, and by words beside these in tables."""
    lines, beside = _lines_by_word()
    words = words_of(m)
    found = {w: lines.get(w, set()) for w in words.union(*(beside[w] for w in words if w in beside))}
    rare = sorted(found, key=lambda w: (len(found[w]), w))[:WORDS]
    return {w: found[w] for w in rare if not keyword.iskeyword(w)}


def lines_of_rare_words(m: Mutant) -> set[Line]:
    """The lines of functions that have one of the words of what is replaced, of words that few lines have."""
    lines, _ = _lines_by_word()
    found = (lines.get(w, set()) for w in _WORD.findall(m.what.partition(" → ")[0]) if not keyword.iskeyword(w))
    return set().union(*(f for f in found if len(f) <= WORDS))


_QUOTED = re.compile(r"""['"]([^'"\s]+)['"]""")


def tokens_of(m: Mutant) -> set[str]:
    """The words and quoted texts of the replaced code; in a table, those of the cell."""
    old, _, new = m.what.partition(" → ")
    found = Counter([*_WORD.findall(old), *_QUOTED.findall(old)])
    if m.kind == "table" and new.startswith(("(", "[", "{")):
        found -= Counter([*_WORD.findall(new), *_QUOTED.findall(new)])
    return {t for t in found if not keyword.iskeyword(t)}


def tests_named_after(m: Mutant, tests: Iterable[str]) -> list[str]:
    """The tests that have a token of the replaced code as a parameter in their name, or as a part of it, as
    `test_operators[mod]` for `operator.mod`. Those with a rare one come first; common ones do not count.
    """
    tokens = tokens_of(m)
    found: dict[str, list[str]] = defaultdict(list)
    for t in tests:
        for token in tokens & _parts_of_name(t):
            found[token].append(t)
    return list(dict.fromkeys(t for of in sorted(found.values(), key=len) if len(of) <= WORDS for t in of))


@functools.cache
def _parts_of_name(test: str) -> frozenset[str]:
    function, _, parameters = test.partition("::")[2].rpartition("]")[0].partition("[") if test.endswith("]") else (
        test.partition("::")[2], "", "")
    return frozenset({*function.split("_"), function, parameters, *parameters.split("-")} - {"", "test"})


@functools.cache
def functions_by_word(file: str) -> dict[str, set[str]]:
    """Test functions of a file by the words and quoted texts in them, in their marks and parameters, and in the tables
    of the file that they name.
    """
    found: dict[str, set[str]] = defaultdict(set)
    path = Path(ROOT / file)
    texts = path.read_text().splitlines() if path.is_file() else []
    body = ast.parse("\n".join(texts)).body
    tables: dict[str, set[str]] = {}
    for s in body:
        first = min([s.lineno, *(d.lineno for d in getattr(s, "decorator_list", ()))])
        text = "\n".join(texts[first - 1:s.end_lineno])
        words = {*_WORD.findall(text), *_QUOTED.findall(text)}
        if isinstance(s, ast.FunctionDef) and s.name.startswith("test"):
            for w in words.union(*(tables[w] for w in words & tables.keys())):
                found[w].add(f"{file}::{s.name}")
        elif isinstance(s, ast.Assign | ast.AnnAssign):
            tables |= dict.fromkeys(_bound(s), words)
    return found
