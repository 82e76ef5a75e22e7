"""The docstring of an op in NumPy's form, from what its meaning's docstring says and from tables of what ops share.

The docstring of a meaning has a summary, prose and clauses. Here it gets a signature, and the sections Parameters,
Returns, Raises (the clauses that name an error), Notes (the other clauses) and Examples. Only `help` and tools that
read docstrings need this file.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING

from cutile.ops._examples import EXAMPLES, Example
from cutile.ops._parameter_docs import PARAMETERS, RETURNS

if TYPE_CHECKING:
    from cutile.ops._op import OpDef

_CLAUSE = re.compile(r"\[[A-Z]+-?\d*(?:\.[\w.+-]+)*\]  ")
_ERRORS = {
    "TileTypeError": "A call that breaks one of these rules",
    "TileValueError": "A constant that breaks one of these rules",
    "TileUnsupportedFeatureError": "The target has no code for it",
    "TileAssertionError": "The condition is False for an element",
}


def document(op: OpDef, doc: str) -> str:
    """The docstring of an op that users call, as text for `help`; `doc` is that of its meaning, with clauses."""
    parameters = list(op.__signature__.parameters.values())
    return _documented(op, doc, spelling(op), parameters if op.public else parameters[1:])


def document_method(op: OpDef, doc: str, owner: str, name: str, signature: inspect.Signature) -> str:
    """The docstring of a method: `owner` is what stands before the dot, `signature` that without the receiver."""
    return _documented(op, doc, f"{owner}.{name}{_spelt(signature)}", list(signature.parameters.values()))


def _documented(op: OpDef, doc: str, call: str, parameters: list[inspect.Parameter]) -> str:
    own, clauses = _parts(inspect.cleandoc(doc))
    sections = {"Parameters": _parameters(op, parameters),
                "Returns": RETURNS.get(op.name) or RETURNS.get(op.rule.__name__, "tile"),
                "Raises": _raises(clauses), "Notes": "\n".join(c for c in clauses if not _errors_of(c)),
                "Examples": _example(op.name)}
    text = "\n\n".join(f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items() if body)
    return f"{call}\n\n{own}\n\n{text}\n"


def spelling(op: OpDef) -> str:
    """How users write an op: `load(array, /, index, shape, …)`, and `array.slice(axis, start, stop)` for a method."""
    signature = op.__signature__
    name = op.name
    if not op.public and op.method:
        kind, method = op.method
        name = f"{kind}.{method}"
        signature = inspect.Signature(list(signature.parameters.values())[1:])
    return name + _spelt(signature)


def _spelt(signature: inspect.Signature) -> str:
    """A signature as users write it, with the names of members of enumerations."""
    return re.sub(r"<(\w+\.\w+): '\w+'>", r"ct.\1", str(signature))


def _parts(doc: str) -> tuple[str, list[str]]:
    """The lines of a docstring outside its clauses, and its clauses, each with the lines that continue it."""
    own: list[str] = []
    clauses: list[str] = []
    inside = False
    for line in doc.splitlines():
        if _CLAUSE.match(line):
            inside = True
            clauses.append(line)
        elif inside and line.startswith("  "):
            clauses[-1] += "\n" + line
        else:
            inside = False
            own.append(line)
    return "\n".join(own).strip(), clauses


def _parameters(op: OpDef, given: list[inspect.Parameter]) -> str:
    """The section on parameters: for each the row of this op, or else the one that ops share."""
    shown = []
    for p in given:
        kind, text = PARAMETERS.get(f"{op.name}.{p.name}") or PARAMETERS.get(p.name, ("any value", ""))
        star = "*" * (p.kind is p.VAR_POSITIONAL)
        shown.append(f"{star}{p.name} : {kind}\n    " + text.replace("\n", "\n    "))
    return "\n".join(shown)


def _errors_of(clause: str) -> list[str]:
    """The classes of errors that a clause names."""
    return [name for name in _ERRORS if name in clause]


def _raises(clauses: list[str]) -> str:
    """The section on errors: for each class that clauses name, those clauses."""
    sections = []
    for name, what in _ERRORS.items():
        rules = [c.removesuffix(f" ({name})") for c in clauses if name in _errors_of(c)]
        if rules:
            sections.append("\n".join([name, f"    {what}:", *(textwrap.indent(rule, "    ") for rule in rules)]))
    return "\n".join(sections)


def _example(name: str) -> str:
    """The section of examples: a kernel that stores what the op gives for some arrays."""
    example = EXAMPLES.get(name)
    return "" if example is None else _program(example)


def _program(e: Example) -> str:
    arrays = "abc"[:len(e.arrays)]
    tiles = [f"    {tile} = ct.load({array}, {_zeros(shape)}, {shape})"
             for tile, array, shape in zip("xyz", arrays, e.shapes, strict=False)]
    body = [*tiles, *(f"    {line}" for line in e.code)]
    lines = [f">>> {array} = {value}" for array, value in zip(arrays, e.arrays, strict=True)]
    lines += [f">>> out = {e.out}"] if e.out else []
    parameters = [*arrays, *(["out"] if e.out else [])]
    lines += [">>> @ct.kernel", f"... def kernel({', '.join(parameters)}):", *(f"... {line}" for line in body)]
    last = "," if len(parameters) == 1 else ""
    lines += [f">>> ct.launch(None, {e.grid}, kernel, ({', '.join(parameters)}{last}))"]
    lines += [f">>> print({e.shows})"] if e.shows else []
    return "\n".join([*lines, e.printed])


def _zeros(shape: str) -> str:
    """The first tile index for a shape: 0, or a tuple of zeros."""
    return re.sub(r"\d+", "0", shape)
