"""Shared by all emitters: objects that emitted code refers to, calls of meanings, compiled functions, liveness.

Emitted code calls the meaning of an op directly, with its attributes as keyword arguments, so that a debugger that
steps into the line lands in the meaning. Names that begin with a dot are ours: no user's name does.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cutile._support.structs import field, structure
from cutile.dtypes import info
from cutile.interp.codegen.links import ENVIRONMENT, Functions, Links
from cutile.interp.codegen.py_ast import (
    NONE,
    Assign,
    Call,
    Dict,
    Keyword,
    Name,
    Position,
    assign,
    attribute,
    call,
    constant,
    delete,
    function,
    load,
    set_position,
    tuple_of,
)
from cutile.interp.exec import checking
from cutile.ir.nodes import Bind, Kernel, Node, Op, Region, Value, inner_of, regions_of, results_of, uses_of
from cutile.ir.recursion import compiled
from cutile.ir.walk import regions, shown_values
from cutile.ops import _numeric, debug
from cutile.ops._op import HOST, Sig
from cutile.types import TileType

MOST_FILES = 1000  # for which the module is kept
CTX = ".ctx"
BLOCK = "__block__"


@structure
class EmittedCode:
    """The functions of one kernel under construction, and the objects they refer to."""

    kernel: Kernel
    check: bool = False
    step_limit: bool = False
    streams: bool = False  # tiles take no memory of their own
    view_finders: dict[Op, Callable] = field(default_factory=dict)  # op that takes a view → (array, ctx) → the view
    skipped: frozenset[Node] = frozenset()  # nodes without code
    as_stored: frozenset[Op] = frozenset()  # accesses that move bits of short floats
    shared: bool = False  # statements share the nodes of names and keyword arguments: `place` gives them positions
    editable: bool = False  # the syntax of a function may change until `finish`, which then compiles it
    syntax: list[ast.FunctionDef] | None = None  # of all functions, if this is a list: memory that no launch needs
    objects: dict[str, Any] = field(default_factory=dict)
    _later: deque[tuple[str, ast.FunctionDef, str, Callable | None]] = field(default_factory=deque)
    _scopes: dict[str, dict[str, Any]] = field(default_factory=dict)  # the globals of functions, by file
    _names: dict[int, str] = field(default_factory=dict)
    _locals: dict[Value, str] = field(default_factory=dict)
    _slots: int = 0
    _loads: dict[str, ast.expr] = field(default_factory=dict)  # shared nodes
    _values: dict[Value, ast.expr] = field(default_factory=dict)
    _keywords: dict[tuple, ast.keyword] = field(default_factory=dict)
    _forms: dict[tuple, _Form] = field(default_factory=dict)
    _targets: dict[str, list[ast.expr]] = field(default_factory=dict)
    _deletes: dict[tuple[str, ...], ast.stmt] = field(default_factory=dict)

    def __post_init__(self):
        self.objects |= {".array": np.asarray, ".breakpoint": builtins.breakpoint,
                         ".import": builtins.__import__, ".range": range, ".int": int, ".partial": functools.partial}

    def ref(self, obj: Any, hint: str) -> ast.expr:
        """An expression for an object; `hint` is part of its name."""
        name = self._names.get(id(obj))
        if name is None:
            name = self._names[id(obj)] = f".{hint}{len(self._names)}"
            self.objects[name] = obj
        return self.load(name)

    def load(self, name: str) -> ast.expr:
        """An expression for a name."""
        if not self.shared:
            return load(name)
        found = self._loads.get(name)
        if found is None:
            found = self._loads[name] = load(name)
        return found

    def keyword(self, name: str, value: Any) -> ast.keyword:
        """`name=value`, for an attribute of an op."""
        plain = value is None or isinstance(value, (int, str))
        if not self.shared:
            return Keyword(name, constant(value) if plain else self.ref(value, "attr"))
        key = (name, type(value), value) if plain else (name, id(value))
        found = self._keywords.get(key)
        if found is None:
            found = self._keywords[key] = Keyword(name, constant(value) if plain else self.ref(value, "attr"))
        return found

    def sig(self, n: Op) -> ast.keyword:
        """`sig=…` with the types of an op. They are known by their identity, since types are slow to compare."""
        key = (*[id(v.type) for v in n.operands], None, *[id(v.type) for v in n.results]) if self.shared else None
        found = self._keywords.get(key)
        if found is None:
            sig = Sig(tuple([v.type for v in n.operands]), tuple([v.type for v in n.results]))
            found = Keyword("sig", self.ref(sig, "sig"))
            if key is not None:
                self._keywords[key] = found
        return found

    def slot(self, hint: str) -> str:
        """A name for an object that is made later."""
        self._slots += 1
        return f".{hint}_{self._slots}"

    def temp(self, v: Value) -> str:
        """The local that holds a value."""
        name = self._locals.get(v)
        if name is None:
            name = self._locals[v] = f".t{len(self._locals)}"
        return name

    def value(self, v: Value) -> ast.expr:
        """An expression for a value, where nodes are shared."""
        found = self._values.get(v)
        if found is None:
            found = self._values[v] = self.load(self.temp(v))
        return found

    def assign(self, names: Sequence[str], value: ast.expr) -> ast.stmt:
        """`a = value` or `a, b = value`, where nodes are shared."""
        if len(names) != 1:
            return assign(names, value)
        targets = self._targets.get(names[0])
        if targets is None:
            targets = self._targets[names[0]] = assign(names, value).targets
        return Assign(targets, value)

    def delete(self, names: Sequence[str]) -> ast.stmt:
        """`del a, b`, where nodes are shared. The statement has no position."""
        key = tuple(names)
        found = self._deletes.get(key)
        if found is None:
            found = self._deletes[key] = delete(names)
        return found

    def share(self, v: Value, w: Value) -> None:
        """Keep two values, which are never needed at the same time, in one local."""
        self._locals[v] = self.temp(w)
        self._values.pop(v, None)

    def define(self, name: str, params: Sequence[str], body: list[ast.stmt], filename: str, at: Position, slot: str,
               done: Callable[[FunctionType], None] | None = None) -> None:
        """Add a function under the user's file name, as the object `slot`; `done` is called with it. It can run after
        `finish`.
        """
        tree = function(name, params, body, at)
        if self.syntax is not None:
            self.syntax.append(tree)
        if self.editable:
            self._later.append((slot, tree, filename, done))
        else:
            self._make(slot, tree, filename, done)

    def _make(self, slot: str, tree: ast.FunctionDef, filename: str, done: Callable | None) -> None:
        if filename not in self._scopes:
            self._scopes[filename] = _module_of(filename)
        # The module's code is taken out, not run: a debugger would stop in it.
        module = compiled(ast.Module([tree], NONE), str(filename))
        code_object = next(c for c in module.co_consts if isinstance(c, CodeType))
        self.objects[slot] = made = FunctionType(code_object, self._scopes[filename])
        if done is not None:
            done(made)

    def evaluate(self, x: ast.expr) -> Any:
        """The value of an expression over `self.objects`."""
        whole = ast.Expression(set_position(x, (1, 0, 1, 0)))
        with np.errstate(all="ignore"):
            return eval(compile(whole, "<cutile>", "eval"), {}, self.objects)

    def finish(self) -> None:
        """Let the functions run. Each sees the globals of the user's module besides ours, for the debugger's sake."""
        while self._later:
            self._make(*self._later.popleft())
        for scope in self._scopes.values():
            scope.update(self.objects)
        for table in (self._loads, self._values, self._keywords, self._forms, self._targets, self._deletes,
                      self._locals, self._names):
            table.clear()  # they would be kept as long as the kernel


# Kinds of the user's globals that emitted code can see, for use in a debugger. No arrays: they would be kept alive.
_USEFUL = (ModuleType, type, FunctionType, BuiltinFunctionType, bool, int, float, complex, str)


def _is_useful(v: Any) -> bool:
    return isinstance(v, _USEFUL) or type(v).__module__.split(".")[0] == "cutile"


_names: dict[str, str] = {}  # the name of the module that was found for a file last


def _module_of(filename: str) -> dict[str, Any]:
    """The globals of emitted functions: those of the user's module, or of __main__, where notebooks define things."""
    filename = str(filename)
    module = sys.modules.get(_names.get(filename, ""))
    if getattr(module, "__file__", None) != filename:
        name, module = next(((name, m) for name, m in list(sys.modules.items())
                             if getattr(m, "__file__", None) == filename), ("__main__", sys.modules.get("__main__")))
        if len(_names) < MOST_FILES:
            _names[filename] = name
    found = {k: v for k, v in list(vars(module).items()) if _is_useful(v)} if module else {}
    return {**found, "__name__": found.get("__name__", "kernel"), "__file__": filename,
            "__builtins__": builtins.__dict__}


# ------------------------------------------------------------------ ops


@structure(slots=True, eq=False)
class _Form:
    """What calls of a meaning have in common whose ops have the same types and attributes.

    around  the function that rounds the result, and its further arguments; None if nothing does
    calls   the arguments of that function, by what is written in the call of the meaning: equal calls share them
    """

    meaning: ast.expr
    keywords: list[ast.keyword]
    around: tuple[ast.expr, list[ast.expr]] | None
    calls: dict[tuple, list[ast.expr]] = field(default_factory=dict)

    def call(self, operands: Sequence[ast.expr], changed: dict[str, ast.expr]) -> ast.expr:
        keywords = [*self.keywords, *[Keyword(k, x) for k, x in changed.items()]] if changed else self.keywords
        return Call(self.meaning, operands if type(operands) is list else [*operands], keywords)


def _form(code: EmittedCode, n: Op) -> _Form:
    """The form of an op's call, where nodes are shared. Types and attributes are known by their identity."""
    attrs, types = n.attrs, [-id(v.type) for v in n.results]
    if "sig" in n.op.given:
        types += [id(v.type) for v in n.operands]
    key = (n.op, *types, *attrs, *map(id, attrs.values())) if attrs else (n.op, *types)
    found = code._forms.get(key)
    if found is None:
        whole = finished(code, n, _RESULT)
        around = None if whole is _RESULT else (whole.func, whole.args[1:])
        _, keywords = arguments(code, n, (), {})
        found = code._forms[key] = _Form(code.ref(n.op.meaning, n.op.name + "_"), keywords, around)
    return found


_RESULT = constant(None)  # stands for the result of a meaning


def _written(operands: Sequence[ast.expr], changed: dict[str, ast.expr]) -> tuple | None:
    """The names in the operands and further keyword arguments of a call; None if there is more in them than names, and
    calls with names.
    """
    names = [x.id if type(x) is Name else None for x in operands]
    for keyword, x in changed.items():
        if type(x) is Call and not x.keywords:
            names += [keyword, *[y.id if type(y) is Name else None for y in (x.func, *x.args)]]
        else:
            names += [keyword, x.id if type(x) is Name else None]
    return None if None in names else tuple(names)


def meaning_call(code: EmittedCode, n: Op, operands: Sequence[ast.expr], combine: ast.expr | None,
                 **changed: ast.expr) -> ast.expr:
    """The call of an op's meaning, its results rounded: one carrier, or a tuple of them.

    `changed`: further keyword arguments, which take precedence over attributes.
    """
    if code.shared and not code.check and n.layout is None and n.op.effect != HOST and combine is None \
            and "want_old" not in changed:  # most calls
        form = _form(code, n)
        if form.around is None:  # `place` changes the call
            return form.call(operands, changed)
        key = _written(operands, changed)
        args = None if key is None else form.calls.get(key)
        if args is None:
            args = [form.call(operands, changed), *form.around[1]]
            if key is not None:
                form.calls[key] = args
        return Call(form.around[0], args, NONE)
    args, keywords = arguments(code, n, operands, changed)
    if combine is not None:
        keywords.append(Keyword("combine", combine))
    return finished(code, n, Call(code.ref(n.op.meaning, n.op.name + "_"), args, keywords))


def arguments(code: EmittedCode, n: Op, operands: Sequence[ast.expr],
              changed: dict[str, ast.expr]) -> tuple[list[ast.expr], list[ast.keyword]]:
    """The arguments of a meaning, without the combine function."""
    o = n.op
    args = list(operands) if n.layout is None else [_grouped(x) for x in o.group(operands, n.layout)]
    keywords = []
    if n.attrs:
        defaults = o.meaning.__kwdefaults__ or {}
        keywords = [code.keyword(k, v) for k, v in n.attrs.items()
                    if k not in changed and not (k in defaults and defaults[k] is v)]
    if changed:
        keywords += [Keyword(k, x) for k, x in changed.items()]
    if "sig" in o.given:
        keywords.append(code.sig(n))
    if "ctx" in o.given:
        ctx = code.load(CTX)
        if o.effect == HOST:  # its error or text needs the position
            ctx = call(attribute(ctx, "at"), [code.ref(n.span, "span")])
        keywords.append(Keyword("ctx", ctx))
    return args, keywords


def _grouped(x: ast.expr | tuple | None) -> ast.expr:
    return constant(None) if x is None else tuple_of(x) if isinstance(x, tuple) else x


def finished(code: EmittedCode, n: Op, y: ast.expr) -> ast.expr:
    """The results of a meaning, rounded to their dtypes, as NumPy arrays."""
    types = [v.type for v in n.results]
    if not types or type(types[0]) is not TileType or len(types) > 1 and not all(
            isinstance(t, TileType) for t in types[1:]):
        return y
    if code.check:
        return Call(code.ref(functools.partial(checking.finish, n), "checked"), [y], NONE)
    if len(types) > 1:
        rounding = tuple(None if n.op.exact else t.dtype for t in types)
        return Call(code.ref(functools.partial(_finish_all, rounding), "finish"), [y], NONE)
    i = info(types[0].dtype)
    if n.op.exact or not i.floating:
        return Call(code.load(".array"), [y], NONE)
    if i.carried_exactly:  # casting float64 to the carrier rounds
        return Call(code.load(".array"), [y, code.ref(i.carrier, "carrier")], NONE)
    return Call(code.ref(_numeric.rounding_to(types[0].dtype), "round"), [y], NONE)


def _finish_all(dtypes: tuple, ys: tuple) -> tuple:
    return tuple(np.asarray(y if d is None else _numeric.round_to(d, y)) for d, y in zip(dtypes, ys, strict=True))


def environment(code: EmittedCode, entries: Iterable[tuple[int, ast.expr]], inside: bool) -> ast.expr:
    """The environment for a linked function, with entries that its caller adds. `inside`: the caller has one."""
    entries = list(entries)
    added = Dict([constant(key) for key, _ in entries] or NONE, [x for _, x in entries] or NONE)
    if not inside:
        return added
    here = code.load(ENVIRONMENT)
    if not entries:
        return here
    return call(code.ref(operator.ior, "added"), [here, added])


def breakpoint_call(n: Op) -> ast.expr:
    """A native breakpoint in the emitted function itself, so that the debugger stops in the user's frame."""
    if n.attrs.get("kind") == "set_trace":
        return call(attribute(call(load(".import"), [constant("pdb")]), "set_trace"))
    return call(load(".breakpoint"))


def is_breakpoint(n: Node) -> bool:
    return isinstance(n, Op) and n.op is debug.breakpoint


# ------------------------------------------------------------------ liveness


class Liveness:
    """Which values the regions of a kernel capture, and where each value is read for the last time.

    With `shown`, a Bind reads the values that it shows. `reads` and `results` return the values that a node reads and
    defines, without its nested regions. With `functions`, functions may be linked (links.py): then a region captures
    what its function is passed, and the node reads besides what functions further in take from the environment: its
    locals must not get other values before.
    """

    def __init__(self, root: Region, shown: bool, reads: Callable[[Node], Iterable[Value]] = uses_of,
                 results: Callable[[Node], tuple[Value, ...]] = results_of, functions: Functions | None = None):
        self.shown, self._reads, self._results = shown, reads, results
        self.links = Links(root, functions, self.own_reads, results)
        self._free: dict[Region, tuple[Value, ...]] = {}
        self._found: dict[Node, list[Value]] = {}
        for region in reversed([region for region, _ in regions(root)]):
            if region is not root:  # nothing asks for what that captures
                link = self.links[region]
                self._free[region] = self._outside(region) if link is None else link.args

    def __getitem__(self, region: Region) -> tuple[Value, ...]:
        """Values used inside a region but defined outside it, in order of first use. Without those that a linked
        function takes from its environment.
        """
        return self._free[region]

    def _outside(self, region: Region) -> tuple[Value, ...]:
        free: dict[Value, None] = {}
        defined: set[Value] = set(region.params)
        for n in region.nodes:
            for v in self.reads(n):
                if v not in defined:
                    free[v] = None
            defined.update(self._results(n))
        return tuple(free)

    def reads(self, n: Node) -> Sequence[Value]:
        """The values that a node reads, including the nodes nested in it."""
        if type(n) is Op and n.region is None:  # most are; this is quick
            return self._reads(n)
        found = self._found.get(n)
        if found is not None:
            return found
        found = list(self.own_reads(n))
        inner = inner_of(n)
        for region in regions_of(n):
            found += (v for v in self._free[region] if v not in inner)
            link = self.links[region]
            if link is not None:
                found += link.handed
        self._found[n] = found
        return found

    def own_reads(self, n: Node) -> Iterable[Value]:
        """The values that a node reads, without the nodes nested in it."""
        return shown_values(n.template) if self.shown and isinstance(n, Bind) else self._reads(n)

    def last_uses(self, region: Region) -> dict[Value, Node]:
        """For each value that a region reads or defines, the last node of the region that does."""
        last: dict[Value, Node] = {}
        for n in region.nodes:
            if type(n) is Bind and not self.shown:
                continue
            for v in self.reads(n):
                last[v] = n
            for v in self._results(n):
                last[v] = n
        return last

    def ending(self, n: Node, last: dict[Value, Node]) -> list[Value]:
        """The values that a node reads or defines and that no later node reads; `last` is of its region."""
        return [v for v in dict.fromkeys([*self.reads(n), *self._results(n)]) if last[v] is n]
