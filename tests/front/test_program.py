"""From functions to programs: parameters, binds, spans, collection of errors."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile.front.program import Embedded, is_typing, type_kernel
from cutile.ir.nodes import Bind, Frame
from cutile.ir.walk import walk
from tests.front.compiling import A1, AI, ARRAYS, I32, C, cell, refused, text, typed


def test_a_whole_kernel():
    def scale(x, out, a):
        i = ct.bid(0)
        t = ct.load(x, i, (64,))
        ct.store(out, i, t * a)

    lines = [line.strip() for line in text(scale, A1, A1, C(2.0)).splitlines()]
    assert lines[:6] == ["kernel scale(%x: array<f32[?]>, %out: array<f32[?]>) {", "bind x = %x", "bind out = %out",
                         "bind a = 2.0", "%0 = bid() {axis=0} : i32[]", "bind i = %0"]
    assert [line.split("(")[0].split(" = ")[-1] for line in lines[6:]] == [
        "load", "%1", "constant", "broadcast_to", "mul", "store", "return", "}"]


def test_parameters():  # KERN-6, ARG-7, ARG-8
    def k(a, /, b, *, c):
        pass

    kernel = typed(k, (I32, (A1, Embedded(3))), ARRAYS, Embedded("x"))
    assert kernel.param_names == ("a", "a", "b")
    assert [str(v.type) for v in kernel.params] == ["i32[]", "array<f32[?]>", "list<array<f32[?]>>"]


def test_tuple_parameters():  # ANN-5
    def k(pair):
        (n, (x, m)) = pair
        ct.scatter(x, n, m)

    typed(k, (I32, (AI, C(3))))


@pytest.mark.parametrize("value", [True, 3, -1, 2.5, "a", None, ct.int8, ct.RoundingMode.RZ, (1, ("x", None))])
def test_constants(value):  # ANN-1
    seen = []

    def k(c):
        ct.static_eval(seen.append(c))

    typed(k, C(value))
    assert seen == [value] and type(seen[0]) is type(value)


def test_defaults_are_ignored():  # KERN-6
    def k(x, n=5):
        ct.scatter(x, 0, n)

    assert "of n" not in text(k, AI, I32)
    assert typed(k, AI, I32).param_names == ("x", "n")


def test_binds_show_the_users_variables():
    def k(x, n):
        t = (n, "a", 2.5)
        y, (z, w) = n + 1, (None, ct.float32)

    shown = [b.name for b in typed(k, AI, I32).body.nodes if isinstance(b, Bind)]
    assert shown == ["x", "n", "t", "y", "z", "w"]


def test_every_node_has_the_users_span():
    def helper(a):
        return a * 2

    def k(x, n):
        m = helper(n) + 1
        if m > 3:
            ct.scatter(x, 0, m)

    kernel = typed(k, AI, I32)
    frames = [n for n in kernel.body.nodes if isinstance(n, Frame)]
    assert [(f.function, f.span.function) for f in frames] == [("helper", "k")]
    spans = {n.span.function for n in walk(kernel.body)}
    assert spans == {"k", "helper"}
    assert all(n.span.filename == __file__ for n in walk(kernel.body))


def test_errors_are_collected_and_symptoms_silent():
    def helper(a):
        return a.wrong + 1

    def k(x, n):
        y = helper(n)
        z = y * 2 + undefined
        for i in range(z):
            if i > y:
                ct.store(x, i, y)
        a, b = z
        ct.zeros((3,), ct.float32)
        ct.store(x, 0, a)

    e = refused(k, A1, I32, says="has no attribute `wrong`", alone=False)
    assert e is e.errors[0]
    assert [x.message.split(":")[0] for x in e.errors] == [
        "an int32 scalar has no attribute `wrong`",
        "Undefined variable `undefined` used",
        'Invalid argument "shape" of zeros()',
    ]
    assert [s.function for s in e.loc.frames()] == ["k", "helper"]
    shown = str(e)
    assert shown.startswith(e.render() + "\n\nand 2 more errors in this kernel:\n\nTile")


def test_an_error_in_a_helper_is_reported_once():
    def helper(a):
        return a.wrong

    def k(n):
        helper(n)
        helper(n)

    e = refused(k, I32)
    assert [s.line - e.loc.frames()[0].line for s in e.loc.frames()][0] == 0


def test_errors_survive_pickling():
    def k(n):
        n.wrong
        m = nothing

    e = refused(k, I32, alone=False)
    again = pickle.loads(pickle.dumps(e))
    assert str(again) == str(e) and type(again) is type(e) and again.loc == e.loc


def test_many_errors_end():
    k = cell("def k(n):\n" + "\n".join(f"    n.wrong{i}" for i in range(200)))["k"]
    assert len(refused(k, I32, alone=False).errors) == 50


def test_program_is_the_same_each_time():
    k = cell("""
        def k(x, n):
            b, a, c = 1, 2, n
            while n > 0:
                c, a, b, n = a, b, c, n - 1
            ct.scatter(x, 0, a + b + c)
    """)["k"]
    texts = {text(k, AI, I32) for _ in range(3)}
    assert len(texts) == 1


# ------------------------------------------------------------------ random nesting passes the checker

blocks = st.recursive(
    st.sampled_from(
        [
            "a = a + 1",
            "b = a",
            "c = (a, b)",
            "d = c[0]",
            "ct.scatter(x, a, b)",
            "e = 4",
            "pass",
            "f = lambda: a",
            "a = f()",
            "t = t + 1.0",
            "break",
            "continue",
            "return",
            "g = h(a)",
            "c = (b, c[0])",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(
            st.sampled_from(
                [
                    "if a > b:",
                    "while a < b:",
                    "for i in range(b):",
                    "while True:",
                    "if True:",
                    "for j in ct.static_iter((1, 2)):",
                    "with manager(a) as m:",
                ]
            ),
            st.lists(inner, min_size=1, max_size=3),
        ).map(lambda p: [p[0], *p[1]]),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: ["if a == b:", p[0], "else:", *p[1:]]),
    ),
    max_leaves=14,
)


def render(block, depth: int) -> list[str]:
    pad = "    " * depth
    if isinstance(block, str):
        return [pad + block]
    out, head = [], None
    for part in block:
        if isinstance(part, str) and part.endswith(":"):
            head = part
            out.append(pad + part)
        else:
            out += render(part, depth + (head is not None))
    return out


@settings(max_examples=150, deadline=None)
@given(st.lists(blocks, min_size=1, max_size=4))
def test_random_nesting_is_typed_or_refused_and_never_breaks(parts):
    lines = [line for p in parts for line in render(p, 1)]
    source = """
import contextlib
@contextlib.contextmanager
def manager(a):
    y = a + 1
    yield y
    z = y
def h(v):
    while True:
        v = v + 1
        if v > 4:
            return v
def k(x, a, b):
    c, d, t, f = (1, 2), 0, 0.0, lambda: b
""" + "\n".join(lines) + "\n"
    try:
        k = cell(source)["k"]
    except SyntaxError:  # break outside a loop
        return
    try:
        typed(k, AI, I32, I32)
    except ct.TileInternalError:
        raise
    except ct.TileError as e:
        assert e.loc is not None and str(e)


def test_every_error_has_a_place():
    for source in (
        "range()",
        "len()",
        "ct.static_eval(1, 2)",
        "getattr(n)",
        "f(*n)",
        "-(1, 2)",
        "n.x",
        "n[0]",
        "ct.nope",
    ):
        with pytest.raises(ct.TileError) as e:
            type_kernel(cell(f"def f(a): pass\ndef k(n): {source}")["k"], (I32,))
        assert e.value.loc.line == 2


@pytest.mark.parametrize("annotation", [ct.Constant[int], "ct.Constant[int]"])
@pytest.mark.parametrize("source", ["ct.load(x, 0, n)", "ct.load(x, 0, (1 * n,))", "part(x, n)"])
def test_an_error_tells_of_constants_that_are_not_as_annotated(source, annotation):
    """A launch does not check the type inside Constant [D-18]."""
    def part(x, m):
        return ct.load(x, 0, m)

    k = cell(f"def k(x, n): {source}", part=part)["k"]
    k.__annotations__["n"] = annotation
    e = refused(k, A1, C(16.0))
    assert ("`n` is annotated as a constant int, and the launch gave 16.0", None) in e.notes
    k.__annotations__["n"] = ct.Constant
    assert not refused(k, A1, C(16.0)).notes


def test_errors_about_other_things_do_not():
    k = cell("def k(x: ct.Constant[int], a): ct.load(a, 0, 2.5)")["k"]
    assert not refused(k, C(2.5), A1).notes


@pytest.mark.parametrize("inner", ["nowhere", "int.nowhere", "3", "int[3]"])
@pytest.mark.parametrize("other", ["n", "m"])
def test_annotations_that_mean_nothing_hide_no_error(inner, other):
    """Nothing else reads what stands inside of Constant [ANN-1]."""
    k = cell("def k(x, n, m): ct.load(x, 0, n)")["k"]
    k.__annotations__ = {"n": ct.Constant[int], other: ct.Constant[inner]}
    e = refused(k, A1, C(16.0), C(1))
    assert "shape" in e.message and all("constant int" in text for text, _ in e.notes)


def test_static_code_knows_that_a_kernel_is_being_typed():
    seen = []

    def k():
        ct.static_eval(seen.append(is_typing()))

    typed(k)
    assert seen == [True] and not is_typing()
