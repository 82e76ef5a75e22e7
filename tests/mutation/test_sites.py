"""The mutants of a piece of source."""

from __future__ import annotations

import ast
import functools

import pytest

from tests.mutation import names, sites


@pytest.fixture
def of(tmp_path, monkeypatch):
    monkeypatch.setattr(sites, "ROOT", tmp_path)

    def found(source: str) -> list[sites.Mutant]:
        (tmp_path / "a.py").write_text(source)
        return [m for site in sites.mutants("a.py") for m in site]

    return found


@pytest.mark.parametrize("source, kind, text", [
    ("x = a + b", "operator", "x = (a - b)"),
    ("x = not a", "operator", "x = (bool(a))"),
    ("x = -a", "operator", "x = (a)"),
    ("def f(x):\n    x += 1", "operator", "def f(x):\n    x -= 1"),
    ("if a < b: pass", "comparison", "if (a <= b): pass"),
    ("x = a is b", "comparison", "x = (a is not b)"),
    ("x = 3", "constant", "x = (4)"),
    ("x = True", "constant", "x = (False)"),
    ("x = 2.0", "constant", "x = (4.0)"),
    ("x = a[-1]", "axis", "x = a[(1)]"),
    ("x = f(a, axis=1)", "axis", "x = f(a, axis=(2))"),
    ("x = {a: b, c: d}", "table", "x = ({a: d, c: d})"),
    ("x = {a: b, c: d}", "table", "x = ({c: d})"),
    ("x = (a, b, c)", "table", "x = ((a, c))"),
    ("é = 'é', (a + b)", "operator", "é = 'é', ((a - b))"),
    ("x = (\n  a\n  + b)\ny", "operator", "x = (\n  (a - b\n))\ny"),
    ("match x:\n    case 1 if a == b: pass", "comparison", "match x:\n    case 1 if (a != b): pass"),
])
def test_a_mutant_of_each_kind(of, source, kind, text):
    assert text in [m.source() for m in of(source) if m.kind == kind]


@pytest.mark.parametrize("source", [
    "'''doc 1'''", "x: a | b", "def f(x: 'a | b' = None): pass", "raise E(1 + 1)", "assert a < b", "import a",
    "x = TileError(f'{n + 1}')", "f(help=1 + 1)", "op(freedom=ulp(3, 1))", "zip(a, b, strict=True)",
    "if a == b:\n    hint = c + d\nelif e:\n    hint = ''",
    "x.flags.writeable = False", "A = dict[int, tuple[a, b, c]]", "if not settings.get('PORTABLE'):\n    pass",
    "@op(exact=True, public=False)\nclass A: pass",
    "@dataclass(frozen=True)\nclass A: pass", "@structure(slots=True)\nclass A: pass",
    "if TYPE_CHECKING:\n    x = 1", "def __repr__(self):\n    return a + b",
])
def test_what_gives_no_meaning_is_left_alone(of, source):
    assert of(source) == []


def test_where_a_mutant_stands(of):
    head, body, default = of("@op(1 + a)\ndef f(x=False):\n    y\n    return x < y")[1], *of(
        "def f(x):\n    return x < y\ndef g(z=False):\n    z")[::2]
    assert (head.lines, head.at_import) == ((3, 4), True)  # the decorated function
    assert (body.lines, body.at_import) == ((2,), False)
    assert (default.lines, default.at_import) == ((4,), True)


def test_like_mutants_of_a_line_are_told_apart(of):
    assert [m.what for m in of("x = 3, 3\ny = 3")] == ["3 → 4", "3 → 2", "3 → 4 #2", "3 → 2 #2", "3 → 4", "3 → 2"]


def test_other_lines_do_not_change_what_is_drawn(of):
    lines = [f"x{i} = {i} + y" for i in range(20)]
    of("\n".join(lines))
    before = {(m.code, m.what) for m in sites.draw(["a.py"], 3, 10)}
    of("\n".join(["import z", *lines, "z = None"]))
    assert {(m.code, m.what) for m in sites.draw(["a.py"], 3, 10)} == before


def test_equivalent_mutants_are_drawn_and_not_counted(of, monkeypatch, tmp_path):
    monkeypatch.setattr(sites, "EQUIVALENT", tmp_path / "equivalent.txt")
    (tmp_path / "equivalent.txt").write_text("# why\n\na.py ¦ x = a + b ¦ * ¦ one\n"
                                             "a.py ¦ y = a < b ¦ a < b → a > b ¦ two\n")
    sites.equivalents.cache_clear()
    try:
        reasons = {m.what: sites.why_equivalent(m) for m in of("x = a + b\ny = a < b\nz = a + b")}
        assert reasons == {"a + b → a - b": None, "a < b → a <= b": None, "a < b → a > b": "two"}
        assert sites.why_equivalent(of("x = a + b")[0]) == "one"
        of("x = a + b\ny = c or d")
        assert [m.code for m in sites.draw(["a.py"], 3, 1) if not sites.why_equivalent(m)] == ["y = c or d"]
        assert len(sites.draw(["a.py"], 3, 2)) == 2
    finally:
        sites.equivalents.cache_clear()


REMEMBERED = {name: functools.cache(getattr(sites, name)) for name in ("mutants", "_is_python")}  # they take seconds


def test_what_is_listed_as_equivalent_exists():
    there = {k for path in sites.TARGETS for site in REMEMBERED["mutants"](path) for m in site
             for k in ((m.path, m.code, m.what), (m.path, m.code, "*"))}
    assert [k for k in sites.equivalents() if k not in there] == []


@pytest.mark.parametrize("group", sites.GROUPS)
def test_drawing_repeats_and_takes_every_kind(monkeypatch, group):
    for costly, remembered in REMEMBERED.items():
        monkeypatch.setattr(sites, costly, remembered)
    drawn = sites.draw(sites.GROUPS[group], 1, 100)
    assert drawn == sites.draw(sites.GROUPS[group], 1, 100)
    assert len({(m.path, m.start, m.text) for m in drawn}) == len(drawn)
    assert sum(sites.why_equivalent(m) is None for m in drawn) == 100
    assert {m.kind for m in drawn} == {"operator", "comparison", "constant", "axis", "table"}
    assert drawn != sites.draw(sites.GROUPS[group], 2, 100)
    whole = functools.cache(lambda path: ast.dump(ast.parse((sites.ROOT / path).read_text())))
    for m in drawn[:20]:
        assert ast.dump(ast.parse(m.source())) != whole(m.path), str(m)


def test_files_that_give_no_meaning_exist_and_are_left_out():
    assert all((sites.ROOT / path).is_file() for path in sites.NO_MEANING)
    assert not sites.NO_MEANING & set(sites.TARGETS)


def test_uses_of_a_table_are_found_by_name(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("A = {1: 2}\nB = {**A}\ndef f():\n    1\n    return B\n@op(A)\ndef g():\n    2\n")
    (tmp_path / "b.py").write_text("def h():\n    return a.A\ndef i():\n    return C\n")
    for m in (sites, names):
        monkeypatch.setattr(m, "ROOT", tmp_path)
        monkeypatch.setattr(m, "TARGETS", ("a.py", "b.py"))
    names._uses.cache_clear()
    assert names.lines_that_mention("a.py", (1,)) == {("a.py", 5), ("a.py", 7), ("a.py", 8), ("b.py", 2), ("a.py", 6)}
    names._uses.cache_clear()
