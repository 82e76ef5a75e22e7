"""Finds all Python in the body of a function that tile code refuses, before anything in it is typed."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence

from cutile.errors import TileSyntaxError
from cutile.front.definition import Definition, children
from cutile.ir.recursion import STEPS, in_new_thread, near_limit

_LOOP_HELP = (
    "tile code has no containers but tuples; write a tuple, or a loop over ct.static_iter(...) for an unrolled one"
)

# Statements and expressions that are refused everywhere: their name in messages, and what to write instead.
UNSUPPORTED: dict[type[ast.AST], tuple[str, str | None]] = {
    ast.Delete: ("del", "let the variable go out of use; nothing needs deleting in tile code"),
    ast.Global: ("global", "pass the value as a kernel argument; tile code cannot change Python's variables"),
    ast.Nonlocal: ("nonlocal", "return the new value from the inner function"),
    ast.Import: ("import", "import at module level; modules and their constants can be read in tile code"),
    ast.ImportFrom: ("from … import", "import at module level"),
    ast.Assert: (
        "assert",
        "ct.assert_(cond, 'message') checks while the kernel runs, ct.static_assert(cond) while it compiles",
    ),
    ast.Try: ("try", "tile code has no exceptions"),
    ast.TryStar: ("try", "tile code has no exceptions"),
    ast.Match: ("match", "write if / elif / else"),
    ast.ClassDef: ("class", "define a frozen dataclass at module level"),
    ast.AsyncFunctionDef: ("async def", "write def: there is nothing to wait for in tile code"),
    ast.YieldFrom: ("yield from", "tile code has no generators; a context manager yields once"),
    ast.List: ("a list", _LOOP_HELP),
    ast.Dict: ("a dict", "use a tuple, a frozen dataclass, or keyword arguments"),
    ast.Set: ("a set", "use a tuple"),
    ast.ListComp: ("a list comprehension", "tuple(expr for x in ct.static_iter(...)) makes a tuple"),
    ast.DictComp: ("a dict comprehension", "ct.static_eval({…}[key]) looks a constant up while the kernel compiles"),
    ast.SetComp: ("a set comprehension", "tuple(expr for x in ct.static_iter(...)) makes a tuple"),
    ast.NamedExpr: ("an assignment expression (:=)", "assign on a line of its own"),
    **({ast.TypeAlias: ("a type alias", None)} if hasattr(ast, "TypeAlias") else {}),
    **({ast.TemplateStr: ("a template string", "use an f-string")} if hasattr(ast, "TemplateStr") else {}),
}

# Nodes of which tile code has only some forms.
_LOOKED_AT = {ast.FunctionDef, ast.Lambda, ast.Yield, ast.For, ast.While, ast.Assign, ast.AugAssign, ast.AnnAssign,
              ast.With, ast.Raise, ast.GeneratorExp, ast.Call, ast.JoinedStr}

_LEAVES = (ast.Name, ast.Constant)  # most nodes are; tile code has all of them

# How many arguments static constructs take.
_STATIC_ARGUMENTS = {"static_eval": (1,), "static_iter": (1,), "static_exception": (1,), "static_assert": (1, 2)}


def refused(definition: Definition, static_keyword: Callable[[ast.AST], str | None], *,
            manager: bool = False, elements: bool = False) -> tuple[list[TileSyntaxError], set[ast.AST]]:
    """Errors for all that tile code does not have in a function's body and in functions nested in it, in program order.

    Also returns the nodes to skip: each error is about one of them. `static_keyword` gives
    the static construct that an expression calls, or None: its arguments are ordinary Python, which is not looked at.
    `manager`: the function is a context manager, so it may yield. `elements`: it is one of elements, whose loops may
    have `else`.
    """
    root = definition.node
    found: list[TileSyntaxError] = []
    skipped: set[ast.AST] = set()
    nested = 0

    def refuse(node: ast.AST, message: str, help: str | None = None, *, within: ast.AST | None = None) -> None:
        found.append(TileSyntaxError(message, definition.span(node), help=help))
        skipped.add(within or node)

    def skip_with(node: ast.AST, part: ast.AST) -> None:
        """If `part` is skipped, skip `node` too."""
        if part in skipped:
            skipped.add(node)

    def visit(node: ast.AST) -> None:
        if type(node) in UNSUPPORTED and not _is_pattern(node):
            what, help = UNSUPPORTED[type(node)]
            return refuse(node, f"tile code does not support {what}", help)
        if type(node) not in _LOOKED_AT:
            return visit_all(children(node))
        match node:
            case ast.FunctionDef() | ast.Lambda():
                if decorators := getattr(node, "decorator_list", []):
                    refuse(decorators[0], "tile code does not support decorators on nested functions",
                           "decorate it at module level", within=node)
                parts = node.body if isinstance(node.body, list) else [node.body]
                return visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults), *parts])
            case ast.Yield() if not manager or node not in own(body, ast.Yield):
                refuse(node, "tile code does not support yield except in context managers",
                       "decorate the function with @contextlib.contextmanager and use it in a with statement; "
                       "a tuple(… for … in ct.static_iter(…)) makes several values")
            case ast.For(orelse=[first, *_]) | ast.While(orelse=[first, *_]) if not (
                    elements or node in maybe_of_elements()):
                refuse(first, "tile code does not support else on a loop",
                       "set a flag in the loop and test it afterwards", within=node)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.With():
                for t in _targets(node):
                    check_target(t, node)
            case ast.Raise():
                if node.cause is not None or static_keyword(node.exc) != "static_exception":
                    refuse(node, "tile code does not support raise",
                           "raise ct.static_exception(ValueError('…')) stops compilation with that error")
            case ast.GeneratorExp():
                refuse(node, "tile code does not support generator expressions except as the argument of tuple()",
                       "tuple(expr for x in ct.static_iter(...))")
                return
            case ast.Call(func=ast.Name(id="tuple"), args=[ast.GeneratorExp() as g]):
                for comp in g.generators:
                    check_target(comp.target, node)
                    if static_keyword(comp.iter) != "static_iter":
                        refuse(comp.iter, "a generator in tile code must loop over ct.static_iter(...)", within=node)
                    visit_all([comp.iter, *comp.ifs])
                    skip_with(node, comp.iter)
                return visit(g.elt)
            case ast.Call() if (keyword := static_keyword(node)):
                if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
                    refuse(node, f"{keyword}() takes plain positional arguments only")
                elif len(node.args) not in _STATIC_ARGUMENTS[keyword]:
                    counts = " or ".join(map(str, _STATIC_ARGUMENTS[keyword]))
                    refuse(node, f"{keyword}() takes {counts} argument{'s' * (counts != '1')}, got {len(node.args)}")
                for walrus in (n for a in node.args for n in ast.walk(a) if isinstance(n, ast.NamedExpr)):
                    refuse(walrus, "an assignment expression (:=) cannot be used in a static construct", within=node)
                return  # the arguments are ordinary Python
            case ast.Call():
                displays = [k for k in node.keywords if k.arg is None and isinstance(k.value, ast.Dict)]
                for k in displays:
                    refuse(k.value, "tile code does not support ** of a dict display", "write the keywords out",
                           within=node)
                return visit_all([node.func, *node.args, *(k.value for k in node.keywords if k not in displays)])
            case ast.JoinedStr():
                for v in (v for v in node.values if isinstance(v, ast.FormattedValue)):
                    if v.conversion != -1:
                        refuse(v, "tile code does not support !r, !s, !a or = in f-strings", within=node)
                    if v.format_spec is not None and not all(isinstance(x, ast.Constant) for x in v.format_spec.values):
                        refuse(v, "the format specification of an f-string field must be literal text", within=node)
        visit_all(child for child in children(node) if not _is_annotation(node, child))
        if isinstance(node, ast.For) and static_keyword(node.iter):
            skip_with(node, node.iter)
        if isinstance(node, ast.Raise):
            skip_with(node, node.exc)

    def visit_all(nodes: Iterable[ast.AST]) -> None:
        if nested % STEPS == STEPS - 1 and near_limit():
            return in_new_thread(visit_every, nodes)
        visit_every(nodes)

    def visit_every(nodes: Iterable[ast.AST]) -> None:
        nonlocal nested
        nested += 1
        for node in nodes:
            if type(node) not in _LEAVES:
                visit(node)
        nested -= 1

    def check_target(t: ast.AST, within: ast.AST) -> None:
        match t:
            case ast.Attribute():
                refuse(t, "tile code cannot assign to attributes: everything is immutable",
                       "for a frozen dataclass: obj = dataclasses.replace(obj, field=value)", within=within)
            case ast.Starred():
                refuse(t, "tile code does not support starred assignment targets", "slice the tuple: rest = t[1:]",
                       within=within)
            case ast.Tuple() | ast.List():
                for e in t.elts:
                    check_target(e, within)

    body = root.body if isinstance(root.body, list) else [root.body]
    maybe_of_elements = functools.cache(lambda: _maybe_of_elements(root, body))
    if isinstance(root, ast.AsyncFunctionDef):
        refuse(root, "tile code does not support async def")
        return found, skipped
    visit_all(body)
    return found, skipped


def _maybe_of_elements(root: ast.AST, body: Sequence[ast.AST]) -> set[ast.AST]:
    """The nodes in functions nested in `root` that may be functions of elements, since `root` does more with them than
    to call them itself. They are looked at when they are called.
    """
    own_calls = {n.func for n in own(body, ast.Call)}
    handed_on = {n.id for n in ast.walk(root) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
                 and n not in own_calls}
    return {inner for f in ast.walk(root) if isinstance(f, ast.FunctionDef) and f is not root and f.name in handed_on
            for inner in ast.walk(f)}


def own(body: Sequence[ast.AST], kind: type[ast.AST]) -> list[ast.AST]:
    """The nodes of a kind in a function, in order, without those in functions nested in it."""
    found: list[ast.AST] = []
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, kind):
            found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending += reversed(children(node))
    return found


def _targets(node) -> list[ast.AST]:
    match node:
        case ast.Assign():
            return node.targets
        case ast.With():
            return [i.optional_vars for i in node.items if i.optional_vars is not None]
        case _:
            return [node.target]


def _is_pattern(node: ast.AST) -> bool:
    """Whether a node is a target such as `[a, b]` in `[a, b] = pair`, and no list."""
    return isinstance(node, ast.List) and isinstance(node.ctx, ast.Store)


def _is_annotation(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.AnnAssign) and child is parent.annotation
