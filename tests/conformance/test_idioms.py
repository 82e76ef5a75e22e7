"""Each idiom of the generator, alone in a program, means what the generator says."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from conformance.generate import Options, Program, build, control, elementwise, forms, idioms, narrow, structural
from conformance.generate.core import Gen, number
from conformance.generate.tree import Do, Expr
from conformance.referee import compare, implementation
from conformance.referee.compare import NOT_APPLICABLE, SAME, WITHIN

INTERP, REFERENCE = implementation("cutile:interp"), implementation("reference")


def program(seed: int, make) -> Program:
    """A program with the code that `make(g)` writes; if that gives a value, the value gets a name."""
    g = build.begun(Random(seed), Options())
    g.let(g.want("i32", (4,)))
    if (e := make(g)) is not None:
        g.let(e)
    return build.ended(g, seed)


def agree(seed: int, make) -> Program:
    p = program(seed, make)
    verdict = compare(p, INTERP, REFERENCE)
    assert verdict.kind in (SAME, WITHIN, NOT_APPLICABLE), f"{verdict}\n{p.source()}"
    return p


@pytest.mark.parametrize("made", idioms.IDIOMS, ids=lambda m: m.name)
def test_idioms(made):
    for seed in (1, 2):
        p = agree(seed, lambda g: idioms.idiom(g, made))
        assert any(op == made.name for op, _ in p.ops())


STATEMENTS = (forms.several, forms.nested, forms.annotated, forms.listed, forms.augmented, forms.product, forms.said,
              forms.static_assert, forms.untaken, forms.idle, control.unrolled)


def updating(g: Gen) -> None:
    """The body of a statement."""
    g.let(g.want("i32", (2,)))


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda f: f.__name__)
def test_statements(statement):
    for seed in range(5):
        agree(seed, (lambda g: statement(g, updating)) if statement is control.unrolled else statement)


def test_a_swap_takes_effect():
    def make(g):
        g.let(g.want("i32", (4,)))
        g.let(control.copied(g.scope[-1]))
        forms.swapped(g)

    assert "a, b = b, a" in agree(3, make).kinds()


def test_the_number_of_the_block_is_not_swapped():
    """Indices and bounds of stores rely on its range."""
    def make(g):
        for _ in range(3):
            g.let(g.want("i32", ()))
        forms.swapped(g)

    for seed in range(60):
        assert not [s for s in program(seed, make).body[1:] if "b" in getattr(s, "names", ())]


ATTRIBUTES = tuple(i for i in idioms.IDIOMS if "{f}.ndim" in i.text or "'ndim'" in i.text)
PARTIAL = {  # operators not defined for all constants, or with another meaning for them; the number of programs
    elementwise.divide: 10, elementwise.whole_division: 10, elementwise.sign: 70, elementwise.function: 20,
    elementwise.powers: 25, elementwise.invert: 10, elementwise.angle: 10, forms.static_assert: 10,
    **{partial(idioms.idiom, made=i): 5 for i in ATTRIBUTES},
}


@pytest.mark.parametrize("production, count", PARTIAL.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_what_constants_cannot_do_is_not_asked_of_them(production, count):
    """In programs where nearly all scalars are constants, written as numbers or computed from them."""
    def make(g):
        for e in (number(0), number(0.0, "f32"), number(False, "b1"), g.constant("i8", ())):
            g.let(e)
        g.let(elementwise.mixed(g))
        g.let(control.ternary(g))
        g.shape = lambda *_: ()
        e = production(g)
        return e if e is None or not isinstance(e.t, tuple) else (g.let(e), None)[1]

    for seed in range(count):
        agree(seed, make)


@pytest.mark.parametrize("dtype", ("i32", "f32", "b1", "u8"))
@pytest.mark.parametrize("memory", (True, False))
def test_tiles_that_are_wanted_are_no_constants(dtype, memory):
    def make(g):
        g.let(g.constant(dtype, ()))
        g.let(control.copied(g.scope[-1]))
        g.memory = memory
        for _ in range(4):
            v = g.let(control.copied(g.want(dtype, (), tile=True)))
            assert not v.constant
            forms.never(g, Do(Expr(f"ct.static_assert({{0}}.dtype == ct.{v.t.d.name})", (v,), v.t, lambda *_: None),
                              "static_assert"))
        g.memory = True

    for seed in range(3):
        agree(seed, make)


@pytest.mark.parametrize("seed", range(12))
def test_context_managers(seed):
    assert "manager" in agree(seed, lambda g: forms.with_block(g, updating)).kinds()


def test_what_a_manager_does_in_the_end_happens_where_the_body_returns():
    """Some of these programs return from inside a context manager."""
    left = 0
    for seed in range(30):
        p = program(seed, lambda g: forms.with_block(g, updating))
        left += "return" in p.kinds() and "ct.scatter" in p.source()
        assert compare(p, INTERP, REFERENCE).kind in (SAME, WITHIN)
    assert left


@pytest.mark.parametrize("dtype", narrow.RESTRICTED)
def test_formats_without_arithmetic(dtype):
    def make(g):
        g.only = dtype
        for f in narrow.MOVING:
            g.let(f(g))
        g.let(narrow.packed(g))
        g.let(narrow.back(g))
        g.only = ""

    for seed in (1, 2):
        p = agree(seed, make)
        assert ("sm_100" in p.features) == (dtype in ("e8m0", "e5m3", "e2m1"))


def test_scaled_products():
    seen = set()
    for seed in range(40):
        p = program(seed, structural.scaled_product)
        new = {d for op, d in p.ops() if op == "mma_scaled"} - seen
        seen |= new
        assert not new or compare(p, INTERP, REFERENCE).kind in (SAME, WITHIN)
    assert seen == {"e4m3", "e5m2", "e2m1"}


def test_parameters():
    seen = set()
    for seed in range(25):
        p = agree(seed, forms.parameter)
        seen |= {q.annotation for q in p.params} | {"tuple" for q in p.params if q.make.startswith("(5")}
    assert {"ct.Constant[int]", "ct.ScalarInt64", "tuple"} <= seen


def test_types_of_loops_follow_the_bounds():
    """A 64-bit bound makes a 64-bit variable."""
    wide = 0
    for seed in range(30):
        p = program(seed, lambda g: control.for_loop(g, lambda g: g.let(control.copied(g.counters[-1]))))
        wide += any(getattr(s, "dtype", "") == "i64" for s in p.statements())
        assert compare(p, INTERP, REFERENCE).kind in (SAME, WITHIN)
    assert wide
