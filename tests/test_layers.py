"""Which part of the package may import which, and that no imports of modules form a cycle.

Both are read from the import statements of every file, those inside functions too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HACKING = (ROOT / "HACKING.md").read_text()

SHARED = re.search(r"^Every room may import `([^.]*)`\.", HACKING, re.M)[1].split("`, `")


def rooms(page: str) -> dict[str, set[str]]:
    """The rooms that each room may import besides itself, from the table in HACKING."""
    rows = re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", page.partition("## The rooms")[2].partition("\n## ")[0], re.M)
    return {name: {*SHARED, *re.findall(r"`(\w+)`", may_import)} for name, may_import in rows}


# A room is a file or a folder directly in cutile/. `cli` and cutile/__init__.py have no row and may import all.
MAY_SEE = {**{name: set(SHARED) for name in SHARED}, **rooms(HACKING)}
EXCEPTIONS = {
    ("cutile/ir/parse.py", "ops"): "the text names ops, so reading it fills the registry first",
}
PUBLIC = {"cutile", "cutile.bounds", "cutile.compilation", "cutile.tune"}  # for the conformance suite


def imports(path: Path, package: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of each imported module or name, except those imported only for annotations."""
    tree = ast.parse(path.read_text(), str(path))
    annotations = {id(n) for block in ast.walk(tree) if isinstance(block, ast.If) and _is_type_checking(block.test)
                   for stmt in block.body for n in ast.walk(stmt)}
    for n in ast.walk(tree):
        if id(n) in annotations:
            continue
        if isinstance(n, ast.Import):
            yield from ((n.lineno, a.name) for a in n.names)
        elif isinstance(n, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[:len(parts) - n.level + 1]) if n.level else ""
            module = ".".join(filter(None, (base, n.module)))
            yield from ((n.lineno, f"{module}.{a.name}") for a in n.names)


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING" or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING")


def part_of(path: Path, root: Path) -> str:
    return path.relative_to(root / "cutile").parts[0].removesuffix(".py")


def violations(root: Path) -> list[str]:
    """Imports of rooms above or beside, each as a line to read."""
    found = []
    parts = {p.name.removesuffix(".py") for p in (root / "cutile").iterdir()}
    for path in sorted((root / "cutile").rglob("*.py")):
        name, part = path.relative_to(root).as_posix(), part_of(path, root)
        if part not in MAY_SEE:
            continue
        package = ".".join(path.relative_to(root).parts[:-1])
        for line, module in imports(path, package):
            names = module.split(".")
            if names[0] != "cutile":
                continue
            # A name that is not a file or folder of the package comes from cutile/__init__.py, which is above
            # everything.
            target = names[1] if len(names) > 1 and names[1] in parts else "__init__"
            if target != part and target not in MAY_SEE[part] and (name, target) not in EXCEPTIONS:
                allowed = ", ".join(sorted(MAY_SEE[part] - {part}))
                found.append(f"{name}:{line} imports {module}, but {part} may see only {allowed}")
    return found


def outsiders(folder: Path) -> list[str]:
    """Imports in `folder` of modules that are not public."""
    modules = {p.name.removesuffix(".py") for p in (ROOT / "cutile").iterdir()}
    return [f"{path.name}:{line} imports {module}, which is not public"
            for path in sorted(folder.rglob("*.py")) for line, module in imports(path, folder.name)
            if module.startswith("cutile.") and (part := module.split(".")[1]) in modules
            and f"cutile.{part}" not in PUBLIC]


def test_every_folder_has_a_row():
    folders = {p.parent.name for p in (ROOT / "cutile").glob("*/__init__.py")}
    assert folders - set(MAY_SEE) == {"cli"}


def test_rooms_stand_below_those_that_they_import():
    rows = rooms(HACKING)
    order = list(rows)
    upward = {(room, other) for room in order for other in rows[room] - set(SHARED)
              if other == "__init__" or order.index(other) >= order.index(room)}
    tile_code = {("lib", "__init__"), ("compute", "__init__")}  # as users write it
    assert upward == {("compilation", "runtime"), *tile_code}


def test_no_part_imports_what_is_above_or_beside_it():
    assert not (found := violations(ROOT)), "\n" + "\n".join(found)


def test_every_exception_is_needed():
    for (name, target), why in EXCEPTIONS.items():
        modules = [m for _, m in imports(ROOT / name, "cutile")]
        assert any(m.startswith(f"cutile.{target}") for m in modules), f"{name} no longer imports {target} ({why})"


def test_the_conformance_suite_sees_only_public_names():
    assert not (found := outsiders(ROOT / "conformance")), "\n" + "\n".join(found)


# ------------------------------------------------------------------ cycles


def module_imports(root: Path) -> dict[str, set[str]]:
    """The modules of the package that each module imports."""
    files = {".".join(p.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): p
             for p in (root / "cutile").rglob("*.py")}

    def module_of(name: str) -> str | None:
        return next((m for m in (name, name.rpartition(".")[0]) if m in files), None)

    return {m: {module_of(name) for _, name in imports(p, ".".join(p.relative_to(root).parts[:-1]))} - {m, None}
            for m, p in files.items()}


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """One cycle of each group of modules that import each other, as a line to read."""
    left = {m: set(found) for m, found in graph.items()}
    while True:  # drop modules that import no module that is left, or that none imports
        imported = set().union(*left.values())
        idle = {m for m, found in left.items() if not found or m not in imported}
        if not idle:
            break
        left = {m: found - idle for m, found in left.items() if m not in idle}
    lines, seen = [], set()
    for start in sorted(left):
        path = [start]
        while path[-1] not in seen and path[-1] not in path[:-1]:
            path.append(min(left[path[-1]]))
        if path[-1] not in seen:
            lines.append(" -> ".join(path[path.index(path[-1]):]))
        seen.update(path)
    return lines


def test_no_imports_form_a_cycle():
    assert not (found := cycles(module_imports(ROOT))), "\n" + "\n".join(found)


def test_cycles_are_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set(), "d": {"a", "c"}}) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b -> c -> b"]
    assert cycles({"a": {"a2"}, "a2": {"a", "b"}, "b": {"b2"}, "b2": {"b"}}) == ["a -> a2 -> a", "b -> b2 -> b"]


def test_imports_inside_functions_close_cycles(tree):
    root = tree(ir__a="from cutile.ir import b", ir__b="def f():\n    from cutile.ir.a import g")
    assert cycles(module_imports(root)) == ["cutile.ir.a -> cutile.ir.b -> cutile.ir.a"]
    root = tree(ir__b="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from cutile.ir.a import g")
    assert cycles(module_imports(root)) == []


# ------------------------------------------------------------------ the rule itself


@pytest.fixture
def tree(tmp_path):
    def write(**files: str) -> Path:
        for name in (*MAY_SEE, "cli"):
            (tmp_path / "cutile" / name).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (tmp_path / "cutile" / (name.replace("__", "/") + ".py")).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize("text", [
    "import cutile.front", "from cutile.front import expr", "from cutile import front", "from ..front import expr",
    "import cutile", "from cutile import launch", "from cutile.runtime.launch import launch", "from cutile import tune",
    "def f():\n    from cutile.front.expr import g", "if x:\n    import cutile.gpu.cache as c",
    "class A:\n    try:\n        from cutile import front\n    except ImportError:\n        pass",
])
@pytest.mark.parametrize("part", ["ir", "ops", "interp"])
def test_upward_imports_are_found(tree, part, text):
    found = violations(tree(**{part + "__file": text}))
    line = next(i for i, t in enumerate(text.split("\n"), 1) if "import " in t)
    assert len(found) == 1 and found[0].startswith(f"cutile/{part}/file.py:{line} imports cutile")
    assert f"but {part} may see only _support, " in found[0]


@pytest.mark.parametrize("part, text", [
    ("interp", "from cutile import settings\nfrom cutile.passes import fma\nfrom . import emit\nimport ast"),
    ("ir", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from cutile.ops._op import OpDef"),
    ("ir", "import typing\nif typing.TYPE_CHECKING:\n    from cutile.ops._op import OpDef"),
    ("cli", "import cutile\nfrom cutile.runtime.launch import launch"),
    ("tune", "from cutile.runtime.launch import launch"),
    ("ops", "import cutile_other\nfrom .math import exp\nfrom ..ir.nodes import Op"),
])
def test_downward_imports_are_fine(tree, part, text):
    assert violations(tree(**{part + "__file": text})) == []


def test_annotations_do_not_excuse_the_else_branch(tree):
    text = "if TYPE_CHECKING:\n    import cutile.front\nelse:\n    import cutile.front"
    assert len(violations(tree(ir__file=text))) == 1


def test_sideways_imports_are_found(tree):
    root = tree(interp__file="import cutile.gpu", gpu__file="import cutile.interp", front__file="import cutile.passes")
    assert len(violations(root)) == 3


def test_reaching_behind_the_public_names_is_found(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "import cutile as ct\nfrom cutile import launch, errors\nfrom cutile.ir import nodes\nimport cutile.interp\n"
        "from cutile.compilation import export_kernel\n")
    assert [f.split(" ")[0] for f in outsiders(tmp_path)] == ["test_x.py:2", "test_x.py:3", "test_x.py:4"]
