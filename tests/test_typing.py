"""cutile/__init__.pyi agrees with the code, and type checkers accept and refuse the right programs with it.

test_docs checks that the file is fresh. Here Python reads it, and mypy uses it on right code and on mistakes.
"""

import ast
import copy
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cutile as ct
from cutile.front.proxies import RECEIVERS, Method, Tile
from cutile.ops._op import registry

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent / "typing"
STUB = ast.parse((ROOT / "cutile" / "__init__.pyi").read_text())
FUNCTIONS = [n for n in STUB.body if isinstance(n, ast.FunctionDef)]
CLASSES = {n.name: n for n in STUB.body if isinstance(n, ast.ClassDef)}
EXAMPLES = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "examples" / "aot" / "export.py"]
METHODS = [m for cls in RECEIVERS for m in vars(cls).values() if isinstance(m, Method)]


def names_of(node: ast.stmt) -> list[str]:
    match node:
        case ast.ImportFrom(names=names):
            return [a.asname for a in names if a.asname]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
    return []


def test_the_stub_has_the_public_names():
    found = [n for node in STUB.body for n in names_of(node) if not n.startswith("_")]
    assert sorted({*found}) == ct.__all__


def test_the_public_names_are_no_files_of_the_package():
    """Except modules that load on first use."""
    files = {p.stem for p in (ROOT / "cutile").iterdir()} - {"compilation", "compute", "jax", "lib", "testing", "tune"}
    assert {n for n in ct.__all__ if n in files} == set()


# ------------------------------------------------------------------ parameters


def parameters(node: ast.FunctionDef) -> list[tuple]:
    """The parameters of a function of the stub, as inspect.signature gives them."""
    args = copy.deepcopy(node.args)
    for a in ast.walk(args):
        if isinstance(a, ast.arg):
            assert a.annotation is not None or a.arg == "self", f"{node.name}: {a.arg} has no type"
            a.annotation = None
    space = dict(vars(ct))  # for the defaults
    exec(f"def f({ast.unparse(args)}): pass", space)
    return shape(space["f"])


def shape(fn) -> list[tuple]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(fn).parameters.values()]


@pytest.mark.parametrize("node", FUNCTIONS, ids=lambda n: f"{n.name}-{n.lineno}")
def test_functions_have_the_parameters_of_the_code(node):
    found, want = parameters(node), shape(getattr(ct, node.name))
    if node.name == "function":  # one overload takes a function, one does not
        want[0] = found[0]
    assert found == want


def test_all_ops_are_functions_of_the_stub():
    assert {n.name for n in FUNCTIONS} >= {n for n, o in registry().items() if o.public}


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__qualname__)
def test_methods_have_the_parameters_of_the_code(method):
    cls, name = method.__qualname__.split(".")
    nodes = [n for n in CLASSES[cls].body if isinstance(n, ast.FunctionDef) and n.name == name]
    assert nodes, f"{method.__qualname__} is not in the stub"
    for node in nodes:
        assert parameters(node) == shape(method)


@pytest.mark.parametrize("cls", RECEIVERS, ids=lambda c: c.__name__)
def test_classes_have_the_members_of_the_code(cls):
    """Operators and properties; the test above has methods."""
    found = {n.name for n in CLASSES[cls.__name__].body if isinstance(n, ast.FunctionDef)}
    members = {n for c in cls.__mro__[:-1] for n, v in vars(c).items()
               if isinstance(v, property) or inspect.isfunction(v)}
    if cls is not Tile:  # only tiles may be numbers
        members -= {"__bool__", "__int__", "__index__", "__float__", "__eq__", "__ne__"}
    refusing = {"__array__", "__array_function__", "__array_ufunc__"}  # NumPy's protocol
    assert members - {"__init__", "__repr__"} - refusing <= found


# ------------------------------------------------------------------ what a checker says

# Kernels without annotations are not errors, nor are packages without types.
UNTYPED = ("no-untyped-def", "no-untyped-call", "type-arg", "import-untyped", "import-not-found")


def said() -> dict[str, list[tuple[int, str]]]:
    """Lines and errors by file, from one `mypy --strict` of all files, without those of cutile itself."""
    files = [*HERE.glob("*.py"), *EXAMPLES]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary",
               "--hide-error-context", "--cache-dir", os.devnull, *map(str, files)]
    path = os.pathsep.join(map(str, (ROOT, ROOT / "examples")))
    done = subprocess.run(command, cwd=HERE, env={**os.environ, "MYPYPATH": path}, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stderr, done.stdout + done.stderr  # errors of mistakes.py
    found = {f.name: [] for f in files}
    for name, line, text in re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", done.stdout, re.M):
        found[name].append((int(line), text))
    return found


def test_a_checker_accepts_what_is_right_and_refuses_mistakes():
    """One test, because the run of mypy takes seconds."""
    pytest.importorskip("mypy")
    found = said()
    assert found["typical.py"] == []
    for file in EXAMPLES:
        assert [e for e in found[file.name] if not e[1].endswith(tuple(f"[{c}]" for c in UNTYPED))] == [], file
    lines = (HERE / "mistakes.py").read_text().splitlines()
    assert {n for n, _ in found["mistakes.py"]} == {i for i, line in enumerate(lines, 1) if line.endswith("# refused")}


def test_the_typical_code_is_right(capsys):
    spec = importlib.util.spec_from_file_location("typical", HERE / "typical.py")
    typical = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(typical)
    typical.main()
    assert "elementwise_Kt1_" in capsys.readouterr().out
