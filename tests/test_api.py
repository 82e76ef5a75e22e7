"""The drop-in surface: every public name, signature and default of the official API, level 1.7.

data/api_1_7_0.json holds what `inspect` says about the official modules: names, kinds, and parameters as [name, kind,
default]. cutile may have more; names that it leaves out or spells differently are listed here with the reason.
"""

import ast
import enum
import importlib
import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cutile as ct
from cutile.front.proxies import RECEIVERS, Method
from cutile.ops._op import methods
from tests.front.compiling import I32, cell, refused

SURFACE = json.loads((Path(__file__).parent / "data" / "api_1_7_0.json").read_text())

# Names whose parameters differ, and why.
OTHERWISE = {
    "kernel": "options are spelled out as keywords, for help and completion",
    "ListAnnotation": "the element may be given by position too",
    "Constant": "a typing alias; its call signature means nothing",
    "ScalarInt64": "a typing alias; its call signature means nothing",
    "IndexedWithInt64": "a typing alias; its call signature means nothing",
}


def ours(name: str):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"cutile.{module}") if module else ct, attribute)


def parameters(signature: inspect.Signature) -> list:
    def default(v):
        if v is inspect.Parameter.empty:
            return None
        if isinstance(v, enum.Enum):
            return f"{type(v).__name__}.{v.name}"
        return repr(v) if isinstance(v, int | float | str | bool | tuple | None) else "…"

    return [[p.name, p.kind.name, default(p.default)] for p in signature.parameters.values()]


@pytest.mark.parametrize("name", SURFACE)
def test_the_name_is_there(name):
    assert ours(name) is not None


FUNCTIONS = [n for n, e in SURFACE.items() if e["kind"] == "function" and n not in OTHERWISE]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_agree(name):
    assert parameters(inspect.signature(ours(name))) == SURFACE[name]["parameters"]


ENUMS = [n for n, e in SURFACE.items() if e["kind"] == "enum"]


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_agree(name):
    assert {k: v.value for k, v in ours(name).__members__.items()} == SURFACE[name]["members"]


@pytest.mark.parametrize("name", [n for n, e in SURFACE.items() if e["kind"] == "dtype"])
def test_dtypes_agree(name):
    assert (ours(name).name, ours(name).bitwidth) == (name, SURFACE[name]["bitwidth"])


@pytest.mark.parametrize("name", [n for n, e in SURFACE.items() if e.get("error")])
def test_errors_are_tile_errors(name):
    assert issubclass(ours(name), ct.TileError)


MEMBERS = [(cls, m, p) for cls in RECEIVERS if cls.__name__ in SURFACE
           for m, p in SURFACE[cls.__name__]["members"].items()]


@pytest.mark.parametrize(("cls", "member", "want"), MEMBERS, ids=lambda x: getattr(x, "__name__", str(x))[:30])
def test_members_agree(cls, member, want):
    """Classes have the same attributes, and methods with the same names and defaults of parameters, which may all be
    given by name [METH-1].
    """
    ours = getattr(cls, member)
    if want == "value":
        assert isinstance(ours, property)
    else:
        assert [(n, d) for n, _, d in parameters(inspect.signature(ours))] == [(n, d) for n, _, d in want]


METHODS = [m for cls in RECEIVERS for m in vars(cls).values() if isinstance(m, Method)]


def test_every_method_of_the_registry_is_one_of_a_class():
    found = {(RECEIVERS[getattr(ct, m.__qualname__.split(".")[0])], m.__name__): m.op for m in METHODS if m.receiver}
    assert found == methods()


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__qualname__)
def test_methods_tell_of_themselves_and_work_in_tile_code_only(method):
    owner, name = method.__qualname__.split(".")
    cls = getattr(ct, owner)
    assert getattr(cls, name) is method and name in dir(cls)
    text = pydoc.plain(pydoc.render_doc(cls))
    assert f"{name}(" in text and inspect.signature(method).parameters
    assert inspect.getdoc(method).splitlines()[0] in text
    with pytest.raises(RuntimeError, match=rf"ct\.{owner}\.{name}\(\) works in tile code only"):
        method(None)


@pytest.mark.parametrize("cls", RECEIVERS)
def test_values_are_not_made_on_the_host(cls):
    with pytest.raises(TypeError, match=f"ct.{cls.__name__} objects exist only in tile code"):
        cls()


FILES = {p.stem for p in Path(ct.__file__).parent.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
LATER = {"compilation", "compute", "jax", "lib", "testing", "tune"}  # public, loaded on first use


def test_the_files_of_the_package_are_no_public_names():
    code = ("import cutile as ct, numpy as np, types\n"
            "before = {n for n, v in vars(ct).items() if isinstance(v, types.ModuleType) and n[0] != '_'}\n"
            "import cutile.bounds, cutile.gpu.cache, cutile.interp, cutile.runtime\n"  # these names are restored
            "from cutile import settings, runtime\n"
            "assert cutile is ct and settings.get and runtime.__name__ == 'cutile.runtime' and cutile.bounds\n"
            "print(before, sorted(dir(ct)))")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    before, _, names = said.partition(" ")
    assert before == "set()"
    assert {n for n in ast.literal_eval(names) if n in FILES} == LATER


def test_the_files_of_the_package_are_no_names_in_tile_code():
    import cutile.bounds  # noqa: F401, it is bound from now on

    for name in sorted({"runtime", "analysis", "types", "bounds", "interp"}):
        e = refused(cell(f"def k(n): ct.{name}(n)")["k"], I32, says=f"module `cutile` has no attribute `{name}`")
        assert "module cutile" not in (e.help or "")


def test_no_name_is_listed_twice_and_all_are_there():
    assert len(set(ct.__all__)) == len(ct.__all__)
    assert all(hasattr(ct, n) for n in ct.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        ct.no_such_name  # noqa: B018


def test_importing_loads_no_array_library():
    code = "import cutile, sys; print([m for m in ('torch', 'cupy', 'jax', 'cuda') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_importing_loads_of_the_standard_library_little_that_numpy_does_not():
    """Importing each of these takes a millisecond or more, and no launch needs it."""
    slow = ("decimal", "difflib", "fractions", "pathlib", "pkgutil", "subprocess", "tempfile", "traceback")
    code = ("import sys, numpy, ml_dtypes; before = {*sys.modules}; import cutile; "
            f"print([m for m in {slow} if m in sys.modules and m not in before])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", ct.__version__)
