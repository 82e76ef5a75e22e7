"""The drop-in surface: every public name, signature and default of the official API, level 1.7.

data/api_1_7_0.json holds what `inspect` says about the official modules: names, kinds, and parameters as [name, kind,
default]. Ours may have more; what we leave out or spell otherwise is listed here with the reason.
"""

import enum
import importlib
import inspect
import json
from pathlib import Path

import pytest

import cutile as ct
from cutile.front.proxies import RECEIVERS
from cutile.ops._op import methods

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


MEMBERS = [(cls, m, p) for cls, kind in RECEIVERS.items() for m, p in SURFACE[cls.__name__]["members"].items()
           if isinstance(p, list)]


@pytest.mark.parametrize(("cls", "member", "want"), MEMBERS, ids=lambda x: getattr(x, "__name__", str(x))[:30])
def test_methods_agree(cls, member, want):
    """Methods live in tile code: the ops behind them, receiver included."""
    op = methods().get((RECEIVERS[cls], member))
    if op is None:
        assert (cls, member) == (ct.Array, "from_foreign")
        return
    got = parameters(op.__signature__)
    assert [(n, d) for n, _, d in got[1:]] == [(n, d) for n, _, d in want[1:]]


def test_no_name_is_listed_twice_and_all_are_there():
    assert len(set(ct.__all__)) == len(ct.__all__)
    assert all(hasattr(ct, n) for n in ct.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        ct.no_such_name  # noqa: B018


def test_importing_loads_no_array_library():
    import subprocess
    import sys

    code = "import cutile, sys; print([m for m in ('torch', 'cupy', 'jax', 'cuda') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_importing_loads_of_the_standard_library_little_that_numpy_does_not():
    """Each of these takes a millisecond or more, and a launch does without it."""
    import subprocess
    import sys

    slow = ("decimal", "difflib", "fractions", "pathlib", "pkgutil", "subprocess", "tempfile", "traceback")
    code = ("import sys, numpy, ml_dtypes; before = {*sys.modules}; import cutile; "
            f"print([m for m in {slow} if m in sys.modules and m not in before])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
