"""What `help` shows of public names: every parameter and attribute, and an example that prints what it says."""

from __future__ import annotations

import doctest
import enum
import importlib
import importlib.util
import inspect
import types
import typing

import numpy as np
import pytest

import cutile as ct
from cutile.front.proxies import Method
from cutile.functions.tile_function import TileFunction
from cutile.functions.tuned import Tuned
from cutile.ops._op import OpDef
from cutile.pictures.view import View
from cutile.runtime.prepare import Prepared
from tests.gpu.tileir.tool import needs_tool
from tools.docgen.op_clauses import sections

MODULES = ("cutile", "cutile.bounds", "cutile.compilation", "cutile.compute", "cutile.jax", "cutile.lib",
           "cutile.testing", "cutile.tune", *(["cutile.torch"] if importlib.util.find_spec("torch") else []))
# What has no docstring of its own: names for types. The docstrings of the classes that they are made of name them.
ALIASES = {"cutile.Constant", "cutile.IndexedWithInt64", "cutile.Scalar", "cutile.ScalarInt64",
           "cutile.compilation.ConstantValue", "cutile.compilation.ParameterConstraint"}
# Classes of objects that public functions return, which have no public name.
RETURNED = {c.__name__: c for c in (Prepared, TileFunction, Tuned, View)}


def public() -> dict[str, object]:
    """All public functions and classes. Ops have a test of their own (tests/ops/test_documentation.py), a dtype has the
    docstring of its class.
    """
    found: dict[str, object] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for n in module.__all__:
            thing = getattr(module, n)
            if not isinstance(thing, OpDef | ct.DType | types.ModuleType) and f"{name}.{n}" not in ALIASES:
                found[f"{name}.{n}"] = thing
    return found


PUBLIC = public()
CLASSES = {n: c for n, c in PUBLIC.items() if inspect.isclass(c)} | RETURNED
METHODS = {f"{n}.{m}": v.__func__ if isinstance(v, staticmethod) else v for n, c in CLASSES.items()
           for m, v in vars(c).items() if not m.startswith("_") and isinstance(v, types.FunctionType | staticmethod)}
METHODS |= {f"cutile.{c.__name__}.{m}": v for c in (ct.Array, ct.RawArrayMemory, ct.Tile, ct.TiledView)
            for m, v in vars(c).items() if isinstance(v, Method)}
# Methods that only cutile itself calls; users have no such object, or no use for them.
INNER = {"cutile.kernel.program", "cutile.kernel.classify", "cutile.kernel.with_hidden", "TileFunction.slow",
         "TileFunction.explained",
         "TileFunction.launch_arguments", "Tuned.configured", "Tuned.configs_for", "Tuned.call_arguments",
         "Tuned.resolved", "Tuned.split"}
INNER |= {n for n in METHODS if n.startswith("cutile.compute.") and "DoubleBuffer" not in n}  # `plans.py` calls them
USED = {n: m for n, m in METHODS.items() if n not in INNER}


def described(text: str) -> list[str]:
    """The names that a section describes: `name : kind`, or `a, b, c`."""
    lines = [line for line in text.splitlines() if line and line[0] != " "]
    return [n.strip().lstrip("*") for line in lines for n in line.partition(" : ")[0].split(",")]


def parameters(thing: typing.Any) -> list[str]:
    """The parameters that a caller gives. Classes that refuse to be called take anything, and so have none."""
    found = [p for p in inspect.signature(thing).parameters.values() if p.name != "self"]
    if inspect.isclass(thing) and all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        return []
    return [p.name for p in found]


def run(name: str, text: str) -> str:
    """What differs between what an example prints and what it says."""
    shown: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {"np": np, "ct": ct, "cutile": ct}, name, None, 0)
    assert test.examples
    doctest.DocTestRunner().run(test, out=shown.append)
    return "".join(shown)


def takes_other_parameters(thing: typing.Any) -> bool:
    """Whether a docstring must describe parameters: not of enumerations, nor of errors that are made as `TileError` is.
    """
    if not inspect.isclass(thing) or thing is ct.TileError:
        return True
    made_by = next(c for c in thing.__mro__ if "__init__" in vars(c))
    return made_by is not ct.TileError and not issubclass(thing, enum.Enum)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_parameter_is_described(name):
    thing = PUBLIC[name]
    text = sections(inspect.getdoc(thing)).get("Parameters", "")
    assert described(text) == (parameters(thing) if takes_other_parameters(thing) else [])


@pytest.mark.parametrize("name", sorted(USED))
def test_every_parameter_of_a_method_is_described(name):
    text = sections(inspect.getdoc(USED[name])).get("Parameters", "")
    assert described(text) == parameters(USED[name])


def attributes(cls: type) -> set[str]:
    """What objects of a class have, apart from methods: fields, properties, slots, and what `__init__` sets."""
    found = set()
    for c in cls.__mro__:
        if c is ct.TileError and cls is not c:
            break  # its docstring says the rest
        if c.__module__.partition(".")[0] == "cutile":
            found |= {n for n, v in vars(c).items()
                      if not callable(v) and not isinstance(v, staticmethod | classmethod)}
            found |= set(vars(c).get("__annotations__", ()))
    return {n for n in found if n[0] != "_"}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_attribute_is_described(name):
    cls = CLASSES[name]
    texts = (sections(inspect.cleandoc(c.__doc__ or "")) for c in cls.__mro__ if c.__module__.startswith("cutile."))
    text = [n for t in texts for n in described(t.get("Attributes", ""))]
    wanted = set(cls.__members__) if issubclass(cls, enum.Enum) else attributes(cls)
    assert wanted <= set(text)


ASSEMBLED = {"cutile.CompiledFunction", "cutile.TileUnsupportedFeatureError", "cutile.compile_all",
             "cutile.compilation.export_kernel"}


# Examples of cutile.jax need JAX; tests/jax/test_calls.py runs them.
RUN = [pytest.param(n, marks=needs_tool if n in ASSEMBLED else ()) for n in sorted(PUBLIC)
       if not n.startswith("cutile.jax.")]


@pytest.mark.parametrize("name", RUN)
def test_the_example_prints_what_it_says(name):
    text = sections(inspect.getdoc(PUBLIC[name]))["Examples"]
    assert name.rpartition(".")[2] in text
    assert not (different := run(name, text)), different


@pytest.mark.parametrize("name", sorted(n for n, m in USED.items() if isinstance(m, Method)))
def test_the_example_of_a_method_prints_what_it_says(name):
    text = sections(inspect.getdoc(USED[name]))["Examples"]
    assert f".{name.rpartition('.')[2]}(" in text
    assert not (different := run(name, text)), different


@pytest.mark.parametrize("name", sorted(PUBLIC | USED))
def test_it_begins_with_what_the_thing_does(name):
    thing = {**PUBLIC, **USED}[name]
    paragraphs = sections(inspect.getdoc(thing))[""].split("\n\n")
    if isinstance(thing, Method):
        call = paragraphs.pop(0)
        assert call.startswith(f"{thing.owner}.{thing.__name__}(") and all(p in call for p in parameters(thing))
    assert paragraphs[0].endswith(".")


def test_docstrings_of_classes_name_the_types_made_of_them():
    for alias, cls in (("Constant", ct.ConstantAnnotation), ("ScalarInt64", ct.ScalarAnnotation),
                       ("IndexedWithInt64", ct.ArrayAnnotation)):
        assert f"`ct.{alias}[T]`" in cls.__doc__
