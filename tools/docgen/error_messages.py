"""Every error message of cutile as a template, read from the sources: the tables of docs/errors.md.

A message is the first argument of an error class, or of the functions that raise one (`refuse`, `invalid`, …). `…`
stands for text that is filled in at run time.
"""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cutile import errors
from cutile.front import syntax
from tools.docgen.markdown import plain, row
from tools.docgen.op_clauses import sections

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {n: c for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, errors.TileError)}
del CLASSES["TileInternalError"]  # a bug of cutile, with any text
HOST = ("TypeError", "ValueError", "OverflowError", "RuntimeError", "RecursionError", "FileNotFoundError")
HOST_FILES = ("launch.py", "host_launch.py", "arguments.py", "array_ref.py", "arrays.py", "float4_packing.py",
              "launch_plan.py", "launch_key.py", "kernel.py", "annotations.py", "options.py", "settings.py",
              "dtypes.py", "proxies.py", "static_names.py", "description.py", "calls.py", "attributes.py",
              "primitive.py", "targets.py", "gradients.py", "no_gradient.py", "autograd.py", "tune.py",
              "streams.py",
              "calling_convention.py", "constraints.py", "signature.py", "derive.py", "launch_signature.py",
              "export.py", "mangling.py", "demangling.py", "strides.py", "_op.py", "_binding.py", "find_tileiras.py",
              "disassembler.py")

# Functions that raise: the class that they raise by default, and the text that they put before the message.
RAISING = {
    "refuse": ("TileTypeError", ""),
    "invalid": ("TileTypeError", 'Invalid argument "…" of …(): '),
}
MESSAGE_AT = {"invalid": 2}


@dataclass(frozen=True, order=True)
class Message:
    """A message of an error class, as a template, with its advice."""

    text: str
    help: str
    cls: str


def messages() -> dict[str, list[Message]]:
    """All messages by the name of their class, sorted."""
    found: dict[str, set[Message]] = defaultdict(set)
    for path in sorted((ROOT / "cutile").rglob("*.py")):
        for m in _of_file(path):
            if m.cls in CLASSES or path.name in HOST_FILES:
                found[m.cls].add(m)
    for what, help in _unsupported():
        found["TileSyntaxError"].add(Message(f"tile code does not support {what}", help or "", "TileSyntaxError"))
    return {cls: sorted(found[cls]) for cls in [*CLASSES, *HOST] if cls in found}


def _unsupported() -> list[tuple[str, str | None]]:
    """The pairs of the table of refused syntax, also those that only newer Pythons have."""
    tree = ast.parse(inspect.getsource(syntax))
    table = next(n.value for n in tree.body if isinstance(n, ast.AnnAssign) and n.target.id == "UNSUPPORTED")
    pairs = [n for n in ast.walk(table) if isinstance(n, ast.Tuple)]
    return [eval(compile(ast.Expression(n), "syntax", "eval"), vars(syntax)) for n in pairs]


def _of_file(path: Path) -> Iterator[Message]:
    tree = ast.parse(path.read_text())
    in_syntax = path.name == "syntax.py"
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        name = getattr(call.func, "id", None)
        given = {k.arg: k.value for k in call.keywords}
        at = MESSAGE_AT.get(name, 0)
        if name in CLASSES or name in HOST:
            cls, front = name, ""
        elif name == "refuse" and in_syntax:
            cls, front, at = "TileSyntaxError", "", 1
            given.setdefault("help", call.args[2] if len(call.args) > 2 else None)
        elif name in RAISING:
            cls, front = RAISING[name]
            cls = getattr(given.get("cls"), "id", cls)
        else:
            continue
        if len(call.args) > at:
            around = [f for f in functions if f.lineno <= call.lineno <= f.end_lineno]
            help = next(iter(_texts(given.get("help"), around)), "")
            for text in _texts(call.args[at], around):
                if text.strip("… :()"):
                    yield Message(front + text, "" if help.strip("… ") == "" else help, cls)


def _texts(node: ast.AST | None, around: list[ast.FunctionDef]) -> list[str]:
    """The forms that a message can take."""
    match node:
        case ast.Constant(value=str() as s):
            return [s]
        case ast.JoinedStr():
            return ["".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)]
        case ast.IfExp():
            return _texts(node.body, around) + _texts(node.orelse, around)
        case ast.BinOp(op=ast.Add()):
            return [a + b for a in _texts(node.left, around) or ["…"] for b in _texts(node.right, around) or ["…"]]
        case ast.Name():
            return [t for a in _assigned(node.id, around) for t in _texts(a, around)]
    return []


def _assigned(name: str, around: list[ast.FunctionDef]) -> list[ast.expr]:
    return [n.value for f in around[-1:] for n in ast.walk(f)
            if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)]


# What to do about an error of each class that users see.
WHAT_TO_DO = {
    "TileSyntaxError": "Write what `help` says. [Which Python a kernel may contain](language/python.md) is a page.",
    "TileTypeError": "Look at the shape and dtype that the text gives, and write what `help` says. Where a constant is "
                     "needed, annotate the parameter `ct.Constant[int]`.",
    "TileValueError": "Change the constant. [The operations](ops.md) say which values they take.",
    "TileRecursionError": "Write a loop, or give the function that calls itself an end that a constant decides.",
    "TileUnsupportedFeatureError": "Compile for another target, or use a newer assembler; the text says which.",
    "TileStaticEvalError": "Keep to what stands in one such call: an expression of Python, without another such call.",
    "StaticException": "Look at `__cause__`: it is the exception that your Python code raised.",
    "TileStaticAssertionError": "The text is yours, of `ct.static_assert`. For `ct.ensure_constant`: annotate the "
                                "parameter `ct.Constant`.",
    "TileCompilerExecutionError": "The assembler's own text is in `.tool_output`. Try `opt_level`, another target or "
                                  "another release; [known bugs](assembler-bugs.md) are listed.",
    "TileCompilerTimeoutError": "Make tiles smaller, unroll less, or raise `CUTILE_COMPILER_TIMEOUT`.",
    "TileAssertionError": "The text is yours, of `ct.assert_`. [Stop in that block](debugging.md#after-a-failure).",
    "TileDeadlockError": "Look at the lines that the text names: who should change what they wait for, and does it?",
    "TileStepLimitError": "Look at the loop: its condition never becomes false. Or raise `CUTILE_STEP_LIMIT`.",
    "TileSanitizerError": "Look at the line, block and element: [the sanitizer](debugging.md#the-sanitizer) explains "
                          "each check.",
    "TileInternalError": "Please report it, with the kernel. It is a bug of cutile.",
    "TypeError": "The call on the host is wrong: the text names the argument and what it should be.",
    "ValueError": "The same, for a value that is out of range.",
    "OverflowError": "Pass a smaller number, or annotate the parameter `ct.ScalarInt64[int]`.",
    "RuntimeError": "An op was called outside a kernel, or the GPU refused; the text says which.",
    "RecursionError": "Nest the arguments less deeply.",
    "FileNotFoundError": "A tool is missing: install what the text names.",
}


def remedies() -> str:
    """What to do, by class."""
    rows = [row((f"`{n}`", _why(n), help)) for n, help in WHAT_TO_DO.items()]
    return "\n".join(["| class | why | what to do |", "|---|---|---|", *rows])


def _why(cls: str) -> str:
    found = getattr(errors, cls, None)
    if cls == "FileNotFoundError":
        return "A tool that is needed is not installed."
    return "What the host passes or calls is wrong." if found is None else plain(sections(inspect.getdoc(found))[""])


def tables() -> str:
    """One table per class."""
    out = []
    for cls, rows in messages().items():
        out.append(f"### {cls}\n\n{_why(cls)}\n\n| message | what to write instead |\n|---|---|")
        out += [row((plain(m.text), plain(m.help))) for m in rows]
        out.append("")
    return "\n".join(out)
