"""Pages: the generated ones are fresh, links lead somewhere, ids exist, lines and tables are well formed."""

import ast
import json
import math
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import cutile as ct
from conformance.harness.clauses import clauses, parse
from cutile import settings
from cutile.bounds import bounds
from cutile.gpu.tileir.rules._rule import RULES, rule
from cutile.ops import math as math_ops
from cutile.ops._op import _REGISTRY, op
from cutile.types import TileType
from tests.gpu.tileir.rules.small_kernels import names
from tools.docgen import __main__ as generate
from tools.docgen import error_messages
from tools.docgen.markdown import wrapped

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("path", generate.FILES)
def test_generated_pages_are_fresh(path):
    assert (ROOT / path).read_text() == generate.FILES[path](), f"{path} is stale: run python -m tools.docgen"


def test_the_page_of_errors_says_what_to_do_about_each_class():
    public = {n for n, v in vars(ct).items() if isinstance(v, type) and issubclass(v, ct.TileError)} - {"TileError"}
    assert public <= set(error_messages.WHAT_TO_DO) and set(error_messages.HOST) <= set(error_messages.WHAT_TO_DO)


# Names that pages mention though there are none: an op that a reader adds, and one that is asked for by mistake.
NO_NAMES = {"HACKING.md": {"fmod"}, "errors.md": {"mean"}}
PAGES = [ROOT / "README.md", ROOT / "HACKING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    code = r"^```.*?^```|`[^`\n]*`"  # which may have brackets of this kind
    text = re.sub(code, "", page.read_text(), flags=re.M | re.S)
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", [*PAGES, ROOT / "conformance" / "README.md"], ids=lambda p: p.name)
def test_ids_are_those_of_clauses_or_decisions(page):
    """MY- is the group of an op of the reader's own."""
    decided = set(re.findall(r"\bD-\d+", (ROOT / "docs" / "decisions.md").read_text()))
    text = re.sub(r"`[^`\n]*::[^`\n]*`", "", page.read_text())  # ids of tests
    cited = set(re.findall(r"(?<![\w.-])[A-Z][A-Z0-9]*-\d+(?:\.\w[\w+-]*)*", text))
    known = {".".join(i.split(".")[:n]) for i in clauses() for n in range(1, 5)} | decided
    assert not {i for i in cited - known if not i.startswith("MY-")}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_public_names_on_a_page_exist(page):
    text = page.read_text()
    named = set(re.findall(r"(?<![\w.])ct\.([A-Za-z_]\w*)", text))
    assert not {n for n in named if not hasattr(ct, n)} - NO_NAMES.get(page.name, set())


def test_launch_files_of_editors_can_be_read():
    text = (ROOT / "docs" / "howto" / "editors.md").read_text()
    configurations = json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1])["configurations"]
    runs = ElementTree.fromstring(re.search(r"```xml\n(.*?)```", text, re.S)[1]).iter("env")
    variables = {n for c in configurations for n in c.get("env", ())} | {e.get("name") for e in runs}
    assert variables and variables <= {s.variable for s in settings.table().values()}
    assert all(c["type"] == "debugpy" and ("program" in c or "module" in c) for c in configurations)


def test_every_page_is_in_the_index_of_the_site():
    index = (ROOT / "docs" / "index.md").read_text()
    listed = {line for toctree in re.findall(r"```{toctree}\n(.*?)```", index, re.S) for line in toctree.split("\n")}
    pages = {p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in PAGES[2:]}
    assert not {p for p in pages - listed - {"index"} if not re.match(r"conformance/.+/|_build/", p)}


# ------------------------------------------------------------------ how Markdown takes them


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "conformance").rglob("*.md"))], ids=lambda p: p.name)
def test_rows_of_a_table_have_its_columns(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        rows = table.splitlines()
        assert re.fullmatch(r"[|\s:-]+", rows[1]), f"not a table: {rows[0]}"
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, rows[0]


WIDTH = 120
FOLDERS = ("cutile", "conformance", "tests", "examples", "benchmarks", "tools", "docs")
WRITTEN = [p for p in [*ROOT.glob("*.*"), *(p for f in FOLDERS for p in sorted((ROOT / f).rglob("*.*")))]
           if p.suffix in (".md", ".py", ".c", ".cpp") and "build" not in p.parts]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of text of a file with long ones: in a page all but tables, headings and code, in a module the
    docstrings and comments.
    """
    text = path.read_text()
    if all(len(line) <= WIDTH for line in text.split("\n")):
        return
    if path.suffix == ".md":
        kept = re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
        yield from ((n, line) for n, line in enumerate(kept.split("\n"), 1) if not line.startswith(("|", "#")))
    elif path.suffix == ".py":
        docstrings = {n.value.lineno: n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr)
                      and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)}
        lines = text.split("\n")
        for first, n in docstrings.items():
            yield from ((k, lines[k - 1]) for k in range(first, n.end_lineno + 1))
        yield from ((n, line) for n, line in enumerate(lines, 1) if line.lstrip().startswith("#"))
    else:
        yield from enumerate(text.split("\n"), 1)


def test_lines_of_text_fit_a_window():
    """Ruff checks the lines of code."""
    long = [f"{p.relative_to(ROOT)}:{n} has {len(line)} columns" for p in WRITTEN for n, line in prose(p)
            if len(line) > WIDTH]
    assert len(WRITTEN) > 500 and not long, "\n".join(long)


def test_long_lines_of_a_generated_page_are_broken():
    words = "word " * 30
    assert wrapped(f"{words}1. # | end") == f"{'word ' * 23}word\n{'word ' * 5}word 1. # | end"
    item = wrapped(f"- {words}").split("\n")
    assert len(item) == 2 and item[1].startswith("  word") and max(map(len, item)) <= WIDTH
    for as_it_is in ("| " + words + "|", "## " + words, "```\n" + words + "\n```", "    " + words):
        assert wrapped(as_it_is) == as_it_is


def test_text_is_escaped_where_it_would_be_marks():
    plain = generate.plain
    assert plain("2**width, **kwargs, *args") == r"2\*\*width, \*\*kwargs, \*args"
    assert plain("its own __str__ or _K") == r"its own \_\_str__ or \_K"
    assert plain("an <object>, </b>") == r"an \<object>, \</b>"
    for as_it_is in ("x * y ** z", "bool_ and load_store", "n < y <= z", "`**x` and `<f>`", "[[1, 2]]"):
        assert plain(as_it_is) == as_it_is
    cells = ["a | b", "`x | y`", "two\nlines", r"done \| so"]
    assert generate.row(cells) == r"| a \| b | `x \| y` | two lines | done \| so |"


def test_clauses_are_read_as_they_were_written():
    text = "2**w * __str__ <lambda> ** x"
    [c] = parse(f"- [MY-1.a]  {generate.plain(text)}\n    {generate.plain('*args')}", "mine")
    assert (c.id, c.text) == ("MY-1.a", f"{text} *args")


def test_an_op_page_keeps_columns_and_joins_the_lines_of_a_clause():
    page = generate._page(SimpleNamespace(__doc__=DOC, meaning=SimpleNamespace(__doc__=DOC), clauses=None))
    assert page == ("One, x **y.\n\n```text\nint8    a\nint16   b\n```\n\nThen.\n\n"
                    r"- first \*args and more <small>`MY-1.a`</small>" "\n- second <small>`MY-1.b`</small>").replace(
                        "x **y", r"x \*\*y")


DOC = """One, x **y.

    int8    a
    int16   b

    Then.

    [MY-1.a]  first *args
        and more
    [MY-1.b]  second
    """


@pytest.fixture
def added():
    """The op that the block in HACKING adds, as it stands there."""
    block = next(b for b in re.findall(r"```python\n(.*?)```", (ROOT / "HACKING.md").read_text(), re.S) if "@op" in b)
    space = dict(vars(math_ops))
    before = _REGISTRY.pop("fmod", None)  # if a reader has added it
    try:
        exec(block, space)
        yield space["fmod"]
    finally:
        _REGISTRY.pop("fmod", None)
        if before is not None:
            _REGISTRY["fmod"] = before


def test_the_lowering_rule_that_hacking_shows():
    block = next(b for b in re.findall(r"```py\n(.*?)```", (ROOT / "HACKING.md").read_text(), re.S) if "@rule" in b)

    before = _REGISTRY.pop("square", None)  # if a reader has added it

    @op(math_ops.float_unary, language=False, name="square")
    def square(x, /):
        """x * x"""
        return x * x

    try:
        exec(textwrap.dedent(block), {"math": SimpleNamespace(square=square), "rule": rule})
        assert names(lambda t: square(t), TileType(ct.float32, (8,))) == ["mulf"]
    finally:
        del _REGISTRY["square"]
        RULES.pop(square, None)
        if before is not None:
            _REGISTRY["square"] = before


def test_the_op_that_hacking_adds(added):
    """It folds, runs, has GPU code, and bounds are sound."""
    @ct.kernel
    def k(x, y, r):
        t, u = ct.load(x, 0, 8), ct.load(y, 0, 8)
        ct.store(r, 0, added(t, u) + added(7.5, 2))

    @ct.kernel
    def inexact(x, y, r):
        ct.store(r, 0, added(ct.exp(ct.load(x, 0, 8)), ct.load(y, 0, 8)))

    x, y = np.linspace(-7, 7, 8, dtype=np.float32), np.array([2, -2, 0.5, 3, 3, 1, 0, np.inf], np.float32)
    got = np.zeros(8, np.float32)
    ct.launch(None, (1,), k, (x, y, got))
    assert np.array_equal(got, [math.fmod(a, b) + 1.5 if b else math.nan for a, b in zip(x, y, strict=True)],
                          equal_nan=True)
    assert "remf" in names(lambda t, u: added(t, u), TileType(ct.float32, (8,)), TileType(ct.float32, (8,)))
    exact, unknown = (bounds(kernel, (1,), (x, y, got)).arrays[-1].bound for kernel in (k, inexact))
    assert not exact.any() and np.isinf(unknown).all()
    assert set(generate.op_clauses.clauses(added)) == {"MY-1.fmod.value", "MY-1.fmod.zero"}
    assert "[MY-1" not in generate.clauses() and "`MY-1" in generate.op_pages()
