"""Places where the sources that give kernels their meaning can be mutated. Each mutant is one edit of text.

The sources form groups, each with a draw of its own. Files that give no kernel a meaning are left out: advice in
errors (`foreign_names.py`, `advice.py`), finding and running the assembler and reading its output, positions for
debuggers of GPUs, what ops and blocks cost and what GPUs reach, which profiles and tuning use, what is reported after a
first error (`error_recovery.py`), which warnings of Python are not given twice (`syntax_warnings.py`), and names of
sizes in annotations, by which `ct.jit` makes outputs (`sizes.py`).

Functions that are tile code (`element_math.py`) are left out too: the front end reads their text, and mutants have
other code.

Kinds: `operator`, `comparison`, `constant`, `axis` (a constant that names an axis or is the index of a subscript) and
`table` (a dict's value replaced by another of its values, or an element of a display left out).

Code that gives no kernel a meaning is not mutated: docstrings, annotations, names of types (`Range = tuple[int, int]`),
texts of errors, assertions about impossible cases (`assert`, `strict=` of zip, arrays that nobody may write to), how a
dataclass is laid out, what ops declare for documentation, for bounds or for another back end (`tileir=`, `since=`,
`freedom=`, `error_bound=`, `public=`), declarations that only save time (`exact=` of ops whose results need no
rounding, `copy=`, `maxsize=` of caches) and settings of the implementation.

Single mutants that change no result are listed in equivalent.txt, each with the reason.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
NO_MEANING = {"cutile/front/foreign_names.py", "cutile/front/advice.py", "cutile/gpu/tileir/tileiras.py",
              "cutile/gpu/find_tileiras.py", "cutile/gpu/tileir/work_folder.py", "cutile/gpu/tileir/diagnostics.py",
              "cutile/gpu/tileir/debuginfo.py", "cutile/analysis/cost.py", "cutile/front/error_recovery.py",
              "cutile/front/syntax_warnings.py", "cutile/analysis/block_work.py", "cutile/analysis/gpus.py",
              "cutile/front/sizes.py"}
TILE_CODE = {"cutile/front/element_math.py"}


def _sources(folder: str) -> tuple[str, ...]:
    found = (str(p.relative_to(ROOT)) for p in sorted((ROOT / "cutile" / folder).rglob("*.py")))
    return tuple(p for p in found if p not in NO_MEANING | TILE_CODE)


GROUPS = {
    "ops": (*_sources("ops"), "cutile/front/operators.py",
            *(f"cutile/interp/memory/{name}.py" for name in (
                "array_view", "buffer", "elements", "irregular_tiles", "strided_index", "tile_copy",
                "tile_locations"))),
    "front": _sources("front"),
    "passes": (*_sources("analysis"), *_sources("passes")),
    "tileir": _sources("gpu/tileir"),
}
TARGETS = tuple(dict.fromkeys(path for group in GROUPS.values() for path in group))


def module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`path` with its characters start … end-1 replaced. `lines` are those of the statement; at import it runs before
    any test does."""

    path: str
    start: int
    end: int
    text: str
    kind: str
    line: int
    what: str  # the change, to read; the second equal change of one line of code ends in #2
    lines: tuple[int, ...]
    at_import: bool
    code: str  # the first line of the replaced code

    def source(self) -> str:
        s = (ROOT / self.path).read_text()
        return s[:self.start] + self.text + s[self.end:]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {self.what}"


SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv, ast.Add), ast.FloorDiv: (ast.Mult,),
    ast.Div: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitAnd,),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}
LONG = 20  # displays of more elements are not written out
AXES = {"axis", "axes", "dim"}
SILENT_NAMES = {"help", "hint", "close", "_REPLACEMENTS", "__slots__", "__all__", "FAMILIES"}
SILENT_KEYWORDS = {"help", "tileir", "since", "freedom", "error_bound", "clauses", "short", "strict", "public", "exact",
                   "copy", "maxsize"}
SILENT_CALLS = {"invalid", "refuse", "misuse", "unsupported", "too_old", "warn", "dataclass", "structure", "TypeVar"}
SILENT_FUNCTIONS = {  # they make text of errors, of documentation, or for a debugger
    "__repr__", "__str__", "_unsupported", "_not_constant", "_not_a_key", "_example", "_mismatch", "_clauses",
    "_dtype_clauses", "conflict_help", "too_old", "version_text", "name_of", "call_help", "type_text", "_did_you_mean",
    "_unknown_name", "_doc", "_on_too_many",
}
GENERIC = {"Callable", "Generator", "Iterator", "Mapping", "Sequence", "dict", "list", "set", "tuple"}
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def mutants(path: str) -> list[list[Mutant]]:
    """The sites of a file, in order, each with its mutants."""
    source = (ROOT / path).read_text()
    lines = source.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]

    def position(line: int, column: int) -> int:  # columns count bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    out = []
    seen: Counter[tuple[str, str]] = Counter()
    for node, kind, replacements, (of, at_import) in _statements(ast.parse(source).body, in_function=False):
        start, end = position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)
        found = []
        for new in replacements:
            text = ast.unparse(new)
            if isinstance(new, ast.expr):
                text = f"({text}" + "\n" * (node.end_lineno - node.lineno) + ")"  # later lines keep their numbers
            code, what = lines[node.lineno - 1].strip(), _what(node, new)
            seen[code, what] += 1
            if seen[code, what] > 1:
                what += f" #{seen[code, what]}"
            found.append(Mutant(path, start, end, text, kind, node.lineno, what, of, at_import, code))
        out += [[m] for m in found] if kind == "table" else [found]
    return out


def _what(old: ast.AST, new: ast.AST) -> str:
    """The change, to read; in a table, the cell."""
    if isinstance(old, ast.Tuple | ast.List | ast.Set) and len(old.elts) > LONG:
        return f"{ast.unparse(next(e for e in old.elts if e not in new.elts))} left out"
    if not isinstance(old, ast.Dict):
        return f"{ast.unparse(old)} → {ast.unparse(new)}"
    i = next(i for i in range(len(old.keys)) if len(new.keys) <= i or new.values[i] is not old.values[i]
             or new.keys[i] is not old.keys[i])
    key = ast.unparse(old.keys[i]) if old.keys[i] is not None else "**"
    became = ast.unparse(new.values[i]) if len(new.keys) == len(old.keys) else "left out"
    return f"{key}: {ast.unparse(old.values[i])} → {became}"


def draw(paths: Iterable[str], seed: int, count: int) -> list[Mutant]:
    """Different sites of these files, all equally likely, with one mutant each: `count` of them, and among them those
    known to be equivalent.

    A site keeps its place in the order, and its mutant, while its line does not change.
    """
    keyed = []
    for path in paths:
        for site in mutants(path):
            random = Random(f"{seed} {path} {site[0].code} {site[0].what}")
            keyed.append((random.random(), random.choice(site)))
    drawn = []
    for _, m in sorted(keyed, key=lambda k: k[0]):
        if count and _is_python(m):
            drawn.append(m)
            count -= why_equivalent(m) is None
    return drawn


def why_equivalent(m: Mutant) -> str | None:
    """The reason in equivalent.txt why no kernel can notice, or None."""
    entries = equivalents()
    return entries.get((m.path, m.code, m.what)) or entries.get((m.path, m.code, "*"))


@functools.cache
def equivalents() -> dict[tuple[str, str, str], str]:
    """(path, line of code, what is mutated or "*" for all) → reason."""
    found = {}
    for text in EQUIVALENT.read_text().splitlines():
        if text and not text.startswith("#"):
            path, code, what, why = text.split(" ¦ ")
            found[path, code, what] = why
    return found


def _is_python(m: Mutant) -> bool:
    try:
        ast.parse(m.source())
    except SyntaxError:
        return False
    return True


Where = tuple[tuple[int, ...], bool]  # lines, whether they run at import
Site = tuple[ast.AST, str, list[ast.AST], Where]


def _statements(body: list[ast.stmt], in_function: bool) -> Iterator[Site]:
    for s in body:
        if _is_silent(s):
            continue
        if isinstance(s, ast.FunctionDef):
            inside = (tuple(range(s.body[0].lineno, s.end_lineno + 1)), True)
            for e in (*s.decorator_list, *s.args.defaults, *filter(None, s.args.kw_defaults)):
                yield from _expressions(e, inside)
            yield from _statements(s.body, in_function=True)
            continue
        heads = [e for e in ast.iter_child_nodes(s) if isinstance(e, ast.expr | ast.withitem)
                 and e is not getattr(s, "annotation", None)]
        where = (_lines(heads or [s]), not in_function)
        if isinstance(s, ast.AugAssign):
            yield s, "operator", [ast.AugAssign(s.target, op(), s.value) for op in SWAPPED[type(s.op)]], where
        for e in heads:
            yield from _expressions(e, where)
        for inner in (getattr(s, part, []) for part in ("body", "orelse", "finalbody")):
            yield from _statements(inner, in_function)
        for block in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
            if getattr(block, "guard", None) is not None:
                yield from _expressions(block.guard, (_lines([block.guard]), not in_function))
            yield from _statements(block.body, in_function)


def _lines(nodes: list[ast.AST]) -> tuple[int, ...]:
    parts = [n.context_expr if isinstance(n, ast.withitem) else n for n in nodes]
    return tuple(range(min(n.lineno for n in parts), max(n.end_lineno for n in parts) + 1))


def _is_silent(s: ast.stmt) -> bool:
    match s:
        case ast.Raise() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant(str())):
            return True
        case ast.Assign([ast.Name()], ast.Subscript(ast.Name(name))) if name in GENERIC:
            return True
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name in SILENT_NAMES
        case ast.Assign([ast.Attribute(attr="writeable")]):
            return True
        case ast.FunctionDef():
            return s.name in SILENT_FUNCTIONS
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.If():
            return all(isinstance(i, ast.Assign | ast.If) and _is_silent(i) for i in (*s.body, *s.orelse))
        case _:
            return False


def _expressions(e: ast.AST, where: Where, axis: bool = False) -> Iterator[Site]:
    """The sites in an expression. `axis` says that the expression is part of an axis or an index."""
    match e:
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in SILENT_CALLS or name.endswith("Error"):
            return
        case ast.keyword(name) if name in SILENT_KEYWORDS:
            return
        case ast.Call(ast.Attribute(ast.Name("settings"))) | ast.UnaryOp(operand=ast.Call(
                ast.Attribute(ast.Name("settings")))):
            return
        case ast.keyword(name) if name in AXES:
            axis = True
        case ast.Call() | ast.Dict() | ast.Lambda() | ast.Compare():
            axis = False
    if replacements := _replacements(e):
        yield e, _kind(e, axis), replacements, where
    for child in ast.iter_child_nodes(e):
        if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop | ast.boolop | ast.unaryop):
            yield from _expressions(child, where, axis or isinstance(e, ast.Subscript) and child is e.slice)


def _kind(e: ast.AST, axis: bool) -> str:
    match e:
        case ast.Compare():
            return "comparison"
        case ast.Constant() | ast.UnaryOp(_, ast.Constant()):
            return "axis" if axis else "constant"
        case ast.Dict() | ast.Tuple() | ast.List() | ast.Set():
            return "table"
        case _:
            return "operator"


def _replacements(e: ast.AST) -> list[ast.expr]:
    match e:
        case ast.BinOp(x, op, y):
            return [ast.BinOp(x, new(), y) for new in SWAPPED.get(type(op), ())]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(new(), values) for new in SWAPPED[type(op)]]
        case ast.Compare(x, ops, ys):
            return [ast.Compare(x, [*ops[:i], new(), *ops[i + 1:]], ys)
                    for i, op in enumerate(ops) for new in SWAPPED[type(op)]]
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert() as op, x):
            return [ast.Call(ast.Name("bool"), [x], []) if isinstance(op, ast.Not) else x]
        case ast.Constant(bool() as b):
            return [ast.Constant(not b)]
        case ast.Constant(int() as i):
            return [ast.Constant(i + 1), *([ast.Constant(i - 1)] if i else [ast.UnaryOp(ast.USub(), ast.Constant(1))])]
        case ast.Constant(float() as x):
            return [ast.Constant(x * 2 or 1.0), ast.Constant(-x)] if x else [ast.Constant(1.0)]
        case ast.Dict(keys, values) if len(keys) > 1:
            return _other_values(keys, values)
        case ast.Tuple(items) | ast.List(items) | ast.Set(items) if len(items) > 2 and isinstance(
                getattr(e, "ctx", ast.Load()), ast.Load):
            return [type(e)(items[:i] + items[i + 1:]) for i in range(len(items))]
        case _:
            return []


def _other_values(keys: list, values: list) -> list[ast.expr]:
    """Dicts with one value replaced by the next different one, or one entry left out."""
    out: list[ast.expr] = []
    for i, v in enumerate(values):
        other = next((w for w in values[i + 1:] + values[:i] if ast.dump(w) != ast.dump(v)), None)
        if other is not None and keys[i] is not None:
            out.append(ast.Dict(keys, [*values[:i], other, *values[i + 1:]]))
        out.append(ast.Dict(keys[:i] + keys[i + 1:], values[:i] + values[i + 1:]))
    return out
