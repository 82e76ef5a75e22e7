"""Ops applied to terms of equal types: the typing rule runs once, and what it appended is copied for applications after
it. Unrolled loops apply the same few ops again and again.

A rule depends on the types of run-time values, on constants, and on nothing else. So a copy, with values and the span
of its own, is what running the rule again would append.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import EllipsisType, NoneType

from cutile._support.structs import structure
from cutile.dtypes import DType
from cutile.front.context import Context
from cutile.ir.nodes import Node, Op, Value
from cutile.ir.terms import Const, Leaf, PySlice, Static, Term, Tuple, number_key
from cutile.ops._op import OpDef
from cutile.spans import Span
from cutile.types import LeafType

Template = int | Term | tuple  # the number of a value, a constant, or a tuple of these
_PLAIN = frozenset({DType, NoneType, str, EllipsisType})  # classes of objects that nothing changes, besides enums


@structure(slots=True, eq=False)
class Applied:
    """What a rule appended at the span `span`, and the term that it gave for `terms`, whose run-time values are
    `values`, each another one. It keeps the terms, since the key names types by their ids.
    """

    appended: Sequence[Node]
    span: Span
    values: Sequence[Value]
    term: Term
    terms: Sequence[Term]
    copied: Recipe | None = None
    copies: bool = True  # False once it is known that it cannot be copied


@structure(slots=True, eq=False)
class Recipe:
    """What is copied. Values have numbers: first those of the arguments, then results.

    nodes  for each node the op, the numbers of its operands, attributes, types of its results, and layout
    """

    nodes: Sequence[tuple[OpDef, tuple[int, ...], dict, tuple[LeafType, ...], tuple | None]]
    term: Template


def apply(c: Context, rule: Hashable, terms: Mapping[str, Term], run: Callable[[], Term]) -> Term:
    """The term that `run` gives, which applies a rule to terms by parameter. `rule`: the op or function whose rule it
    is. It does not run if it has run for terms of equal types.
    """
    if c.combining or c.elements or c.errors or c.static is not None:
        return run()
    parts: list[Hashable] = [rule, *terms]
    values: list[Value] = []
    if not _describe(terms.values(), parts, values):
        return run()
    key = tuple(parts)
    found = c.applied.get(key)
    if type(found) is Const:
        return found
    if found is not None and (recipe := found.copied or _recipe(found)) is not None:
        return _copy(c, recipe, values)
    region, start = c.region, len(c.region.nodes)
    term = run()
    if found is not None or c.errors:
        return term
    if type(term) is Const and not values and len(c.region.nodes) == start:  # folded
        c.applied[key] = term
    elif region is c.region and len({*values}) == len(values):  # unlike x * x
        c.applied[key] = Applied(region.nodes[start:], c.span, values, term, tuple(terms.values()))
    return term


def _describe(terms: Iterable[Term], key: list[Hashable], values: list[Value]) -> bool:
    """Whether a key can name these terms; it is added to `key`, and the run-time values to `values`."""
    for t in terms:
        kind = type(t)
        if kind is Leaf:
            v = t.value
            values.append(v)
            key.append(id(v.type))
        elif kind is Const:
            value = t.value
            key += (t.dtype, t.loose, *(number_key(value) if type(value) is float else (type(value), value)))
        elif kind is Static:
            if type(t.obj) in _PLAIN:
                key.append(t.obj)
            elif isinstance(t.obj, enum.Enum):
                key.append(-id(t.obj))  # which takes no code of the class, as hashing it may
            else:
                return False
        elif kind is Tuple and t.cls is tuple:
            key.append((len(t.items),))
            if not _describe(t.items, key, values):
                return False
        elif kind is PySlice:
            key.append(PySlice)
            if not _describe((t.start, t.stop, t.step), key, values):
                return False
        else:
            return False
    return True


def _recipe(found: Applied) -> Recipe | None:
    """What is copied of an application. None if it cannot be copied, as that of an op without a result: what such ops
    print may depend on more than their terms.
    """
    if not found.copies:
        return None
    found.copies = False
    numbers = {v: i for i, v in enumerate(found.values)}
    nodes = []
    for n in found.appended:
        if type(n) is not Op or n.region is not None or n.span is not found.span \
                or not numbers.keys() >= {*n.operands}:
            return None
        nodes.append((n.op, tuple([numbers[v] for v in n.operands]), n.attrs, tuple([v.type for v in n.results]),
                      n.layout))
        for v in n.results:
            numbers[v] = len(numbers)
    template = _template(found.term, numbers)
    if template is not None:
        found.copied, found.copies = Recipe(nodes, template), True
    return found.copied


def _template(t: Term, numbers: Mapping[Value, int]) -> Template | None:
    """The template of a term; None if it is no constant, value or tuple of these."""
    kind = type(t)
    if kind is Leaf:
        return numbers.get(t.value)
    if kind is Const:
        return t
    if kind is not Tuple or t.cls is not tuple:
        return None
    items = tuple([_template(i, numbers) for i in t.items])
    return None if None in items else items


def _copy(c: Context, recipe: Recipe, values: list[Value]) -> Term:
    """Append what a rule appended for arguments of the same types; the term that it gives for these values."""
    nodes, span = c.region.nodes, c.span
    for op, operands, attrs, types, layout in recipe.nodes:
        results = tuple([Value(t) for t in types])
        nodes.append(Op(op, tuple([values[i] for i in operands]), attrs, results, span, layout))
        values += results
    return _term(recipe.term, values)


def _term(t: Template, values: Sequence[Value]) -> Term:
    if type(t) is int:
        return Leaf(values[t])
    return Tuple(tuple([_term(i, values) for i in t])) if type(t) is tuple else t
