"""What docstrings, comments and pages refer to exists: files, modules, and attributes of classes and modules.

Checked are paths such as `front/program.py`, modules such as interp/schedule, and `Name.attribute` in backticks where
Name is a class of the package or one of its modules.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("cutile", "conformance", "tests", "tools", "examples", "benchmarks")
PAGES = ("README.md", "HACKING.md", "docs", "conformance")
IMAGINARY = {"FILE.py", "my_script.py", "scale.py", "package/scale.py", "rows.py", "official.py", "note.md"}
ELSEWHERE = {"jax", "torch", "array", "view"}  # modules whose names texts use for something else
SUFFIXES = ("py", "pyi", "md", "c", "json", "txt")
ROOMS = ("ir", "ops", "front", "analysis", "passes", "interp", "gpu", "runtime", "compilation", "cli", "bounds",
         "_support", "conformance", "tests", "docs", "tools", "examples", "benchmarks", "cutile")


@cache
def files() -> frozenset[str]:
    """All files of the repository, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return frozenset(f for f in listed.stdout.splitlines() if (ROOT / f).exists())
    return frozenset(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file())


@cache
def endings() -> frozenset[str]:
    """Every way to name a file or folder: its path, from the root or from a folder above it, with and without .py."""
    found = set()
    for file in files():
        parts = file.split("/")
        for n in range(1, len(parts) + 1):
            for start in range(n):
                found.add("/".join(parts[start:n]))
    return frozenset(found | {f.removesuffix(".py") for f in found if "/" in f})


@cache
def owners() -> dict[str, list[set[str]]]:
    """The names in each class and module of the package, by the name of the class or module; bases are <Name>."""
    found: dict[str, list[set[str]]] = {}
    for file in sorted(f for f in files() if f.startswith("cutile/") and f.endswith(".py")):
        tree = ast.parse((ROOT / file).read_text())
        path = Path(file)
        name = path.parent.name if path.stem == "__init__" else path.stem
        found.setdefault(name, []).append(set(names(tree)))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own = set(names(node)) | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
                                          and isinstance(n.value, ast.Name) and n.value.id == "self"}
                found.setdefault(node.name, []).append(own | {f"<{ast.unparse(base)}>" for base in node.bases})
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):  # `Class.attribute = …`
                if (owner := ast.unparse(node.value))[0].isupper():
                    found.setdefault(owner, []).append({node.attr})
    return found


def names(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The names that a module or class defines."""
    pending: list[ast.AST] = [*node.body]
    for n in pending:
        match n:
            case ast.FunctionDef() | ast.ClassDef():
                yield n.name
            case ast.Assign():
                yield from (t.id for target in n.targets for t in ast.walk(target) if isinstance(t, ast.Name))
                yield from (v.value for v in ast.walk(n.value) if isinstance(v, ast.Constant)
                            and any(isinstance(t, ast.Name) and t.id == "__slots__" for t in n.targets))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (a.asname or a.name.partition(".")[0] for a in n.names)
            case ast.If() | ast.Try() | ast.With() | ast.For():
                pending += [c for c in ast.iter_child_nodes(n) if isinstance(c, ast.stmt)]


def has(owner: str, attribute: str) -> bool:
    """Whether some class or module of this name has an attribute, itself or from a base; bases elsewhere have all."""
    pending = [owner]
    for name in pending:
        if name not in owners():
            return True
        for own in owners()[name]:
            if attribute in own:
                return True
            pending += {b[1:-1].rpartition(".")[2] for b in own if b.startswith("<")} - {*pending}
    return False


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a Python file, or the text of a page, each with the line where it begins."""
    text = path.read_text()
    if path.suffix == ".md":
        yield 1, re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            yield node.body[0].lineno, node.body[0].value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def stale(text: str) -> Iterator[str]:
    """What a text refers to that does not exist."""
    text = re.sub(r"\w+://\S+|/tmp/\S+|~/\S+", "", text)
    for path in re.findall(r"(?<![\w/.*<…{-])[\w-][\w/-]*\.(?:py|pyi|md|c)\b(?![\w/(])", text):
        if path not in endings() and path not in IMAGINARY and not _is_example(path):
            yield path
    for path in re.findall(rf"(?<![\w/.<-])(?:{'|'.join(ROOMS)})/\w[\w/-]*(?![\w.*<{{/-])", text):
        if path.rstrip("/") not in endings():
            yield path
    dotted = re.findall(r"`([A-Za-z]\w*)\.([A-Za-z_]\w*)(?:\([^`]*\))?`", text)
    for owner, attribute in [*dotted, *re.findall(r"(?<![\w.`])([A-Z]\w+)\.([a-z_]\w*)", text)]:
        known = owner in owners() and owner not in ELSEWHERE and attribute not in SUFFIXES
        if known and not has(owner, attribute) and f"{owner}/{attribute}" not in endings():
            yield f"{owner}.{attribute}"


def _is_example(path: str) -> bool:
    """Whether a part of a path is one letter, as in a/b.py and test_k.py."""
    return any(len(part.removeprefix("test_").partition(".")[0]) == 1 for part in path.split("/"))


def sources() -> list[Path]:
    found = [ROOT / f for f in sorted(files()) if f.startswith(tuple(f"{d}/" for d in FOLDERS)) and f.endswith(".py")]
    pages = [ROOT / f for f in sorted(files()) if f.endswith(".md") and f.startswith(PAGES)]
    return found + [p for p in pages if "docs/conformance" not in p.as_posix()]


def test_references_lead_somewhere():
    suspects = [path for path in sources() if any(stale(path.read_text()))]  # few; all others need not be parsed
    found = [f"{path.relative_to(ROOT)}:{line}: {what}" for path in suspects for line, text in prose(path)
             for what in stale(text)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("text, what", [
    ("see walk_nowhere.py", "walk_nowhere.py"), ("see interp/nowhere", "interp/nowhere"),
    ("as `ir/nowhere.py` has it", "ir/nowhere.py"), ("see OpDef.nowhere", "OpDef.nowhere"),
    ("`OpDef.nowhere(n)` gives it", "OpDef.nowhere"), ("by `walk.nowhere`", "walk.nowhere"),
    ("`Context.nowhere`", "Context.nowhere"),
])
def test_stale_references_are_found(text, what):
    assert list(stale(text)) == [what]


@pytest.mark.parametrize("text", [
    "walk.py", "ir/walk.py", "cutile/ir/walk.py", "interp/schedule", "gpu/tileir/rules", "OpDef.group", "`walk.uses`",
    "`Context.span`, which Builder sets", "`x.shape`", "docs/ops.md", "int/float", "a tile/array", "`jax.jit`",
    "`TileError.add_note`, which Exception has",
])
def test_references_that_are_right(text):
    assert list(stale(text)) == []
