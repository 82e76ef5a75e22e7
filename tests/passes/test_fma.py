"""Formation of fused multiply-adds: what fuses, what does not, and that calls make no difference [MACH-7]."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile.dtypes import float32
from cutile.ir.check import check
from cutile.ir.nodes import Bind, Frame, Kernel, Op, Region, Return, Value
from cutile.ir.text import parse, to_text
from cutile.ir.walk import walk
from cutile.ops import arithmetic
from cutile.passes.fma import fma
from cutile.spans import Span
from cutile.types import TileType
from tests.front.compiling import A1, F32, I32, typed

O = "{rounding_mode=None, flush_to_zero=False}"  # noqa: E741
HEAD = "kernel k(%a: T, %b: T, %c: T, %d: T, %n: i32[], %q: b1[]) {\n"


def fused(body: str, dtype: str = "f32") -> str:
    """The body after the pass, one node a line, options and types left out; checked and printable."""
    k = parse(_expand(HEAD + body + "\nreturn }", dtype))
    check(k)
    before = to_text(k)
    result = fma(k)
    check(result)
    assert to_text(k) == before
    assert to_text(parse(to_text(result))) == to_text(result)
    lines = to_text(result, spans=False).splitlines()[1:-2]
    text = "\n".join(line.strip() for line in lines)
    return text.replace(" " + O, "").replace(f" : {dtype}[4]", "").replace(f": {dtype}[4]", "")


def _expand(text: str, dtype: str) -> str:
    """`%p = mul %x %y` is short for the op with default options."""
    lines = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and words[2] in ("mul", "add", "sub"):
            line = f"{words[0]} = {words[2]}({words[3]}, {words[4]}) {O} : T"
        lines.append(line)
    return "\n".join(lines).replace("T", f"{dtype}[4]").replace(f"{dtype}[4]rue", "True")


def lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


@pytest.mark.parametrize("body, want", [
    ("%p = mul %a %b\n%s = add %p %c", "%s = fma(%a, %b, %c)"),
    ("%p = mul %a %b\n%s = add %c %p", "%s = fma(%a, %b, %c)"),
    ("%p = mul %a %b\n%s = sub %p %c", "%0 = negative(%c)\n%s = fma(%a, %b, %0)"),
    ("%p = mul %a %b\n%s = sub %c %p", "%0 = negative(%a)\n%s = fma(%0, %b, %c)"),
    ("%p = mul %a %a\n%s = sub %c %p", "%0 = negative(%a)\n%s = fma(%0, %a, %c)"),
    # both operands qualify: the left one
    ("%p = mul %a %b\n%r = mul %c %d\n%s = add %p %r", "%r = mul(%c, %d)\n%s = fma(%a, %b, %r)"),
    ("%r = mul %c %d\n%p = mul %a %b\n%s = sub %p %r", "%r = mul(%c, %d)\n%0 = negative(%r)\n%s = fma(%a, %b, %0)"),
    # the left one is used elsewhere: the right one
    ("%p = mul %a %b\n%r = mul %c %d\n%s = add %p %r\n%t = mul %p %a",
     "%p = mul(%a, %b)\n%s = fma(%c, %d, %p)\n%t = mul(%p, %a)"),
    # chains
    ("%p = mul %a %b\n%s = add %p %c\n%r = mul %s %d\n%t = add %r %s",
     "%s = fma(%a, %b, %c)\n%t = fma(%s, %d, %s)"),
    ("%p = mul %a %b\n%r = mul %p %c\n%s = add %r %d", "%p = mul(%a, %b)\n%s = fma(%p, %c, %d)"),
])
def test_forms(body, want):
    assert fused(body) == want


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_dtypes_that_fuse(dtype):
    assert fused("%p = mul %a %b\n%s = add %p %c", dtype) == "%s = fma(%a, %b, %c)"


@pytest.mark.parametrize("dtype", ["i8", "i32", "u64"])
def test_integers_never_fuse(dtype):
    assert "fma" not in fused("%p = mul %a %b\n%s = add %p %c", dtype)


@pytest.mark.parametrize("body", [
    "%p = mul %a %b\n%s = add %p %p",  # two uses
    "%p = mul %a %b\n%s = add %p %c\n%t = add %p %d",
    "%p = mul %a %b\n%s = add %p %c\n%t = negative(%p) : T",
    "%p = mul %a %b\n%m = negative(%p) : T\n%s = add %m %c",  # something in between
    "%p = mul %a %b\n%m = reshape(%p) {shape=(4,)} : T\n%s = add %m %c",
    "%p = truediv(%a, %b) {rounding_mode=None, flush_to_zero=False} : T\n%s = add %p %c",
    # options differ
    "%p = mul(%a, %b) {rounding_mode=RoundingMode.RZ, flush_to_zero=False} : T\n%s = add %p %c",
    "%p = mul(%a, %b) {rounding_mode=None, flush_to_zero=True} : T\n%s = add %p %c",
    # not the same code path: results of an if, of a loop, of a function with several returns
    "%r = if %q : T {\n%p = mul %a %b\nyield %p\n} else {\nyield %c\n}\n%s = add %r %d",
    "%p = mul %a %b\n%r = if %q : T {\nyield %p\n} else {\nyield %c\n}\n%s = add %r %d",
    "%p = mul %a %b\n%r = for %i: i32[] in (%n, %n, %n) carry (%x: T = %p) : T {\n%s = add %x %d\ncontinue %s\n}",
    "%r = for %i: i32[] in (%n, %n, %n) carry (%x: T = %a) : T {\n%p = mul %a %b\ncontinue %p\n}\n%s = add %r %d",
    "%r = frame f : T {\nif %q {\nreturn %c\n} else {\nyield\n}\n%p = mul %a %b\nreturn %p\n}\n%s = add %r %d",
    # a loop-carried product is used by continue
    "%r = for %i: i32[] in (%n, %n, %n) carry (%x: T = %a) : T {\n%p = mul %x %b\n%s = add %p %c\ncontinue %p\n}",
])
def test_does_not_fuse(body):
    want = fused(body)
    assert "fma" not in want
    k = parse(_expand(HEAD + body + "\nreturn }", "f32"))
    assert fma(k) is k


def test_uses_in_dead_code_do_not_count():
    def kernel(a, b, x, n):
        p = x * x
        p + 1.0
        ct.exp(p)
        ct.store(b, 0, p - x)

    k = fma(typed(kernel, A1, A1, F32, I32))
    check(k)
    names = [n.op.name for n in walk(k.body) if isinstance(n, Op) and n.op.name not in ("constant", "astype")]
    assert names == ["mul", "add", "exp", "negative", "fma", "store"]  # what is dead still has the product


@pytest.mark.parametrize("mode, other", [("RZ", "RZ"), ("RN", None), (None, "RN")])
def test_equal_options_fuse_and_stay(mode, other):
    def text(m):
        return f"RoundingMode.{m}" if m else "None"

    body = (f"%p = mul(%a, %b) {{rounding_mode={text(mode)}, flush_to_zero=True}} : T\n"
            f"%s = add(%p, %c) {{rounding_mode={text(other)}, flush_to_zero=True}} : T")
    assert fused(body) == f"%s = fma(%a, %b, %c) {{rounding_mode={text(other)}, flush_to_zero=True}}"


def test_product_of_an_enclosing_block():
    body = "%p = mul %a %b\nif %q {\n%s = add %p %c\nyield\n} else {\nyield\n}"
    assert fused(body) == lines("""if %q {
        %s = fma(%a, %b, %c)
        yield
        } else {
        yield
        }""")
    body = "%p = mul %a %b\nfor %i: i32[] in (%n, %n, %n) {\n%s = add %p %c\ncontinue\n}"
    assert "%s = fma(%a, %b, %c)" in fused(body)


def test_a_shown_product_stays_for_the_debugger():
    body = "%p = mul %a %b\nbind p = (%p, 1)\n%s = add %p %c"
    assert fused(body) == "%p = mul(%a, %b)\nbind p = (%p, 1)\n%s = fma(%a, %b, %c)"


def test_product_from_a_callee():
    body = """%r, %o = frame f : T, T {
        %x = negative(%a) : T
        %p = mul %x %b
        return %p, %d
        }
        %s = add %r %c
        %t = negative(%o) : T"""
    assert fused(body) == lines("""%o, %x = frame f : f32[4], f32[4] {
        %x.1 = negative(%a)
        return %d, %x.1
        }
        %s = fma(%x, %b, %c)
        %t = negative(%o)""").replace(" : f32[4], f32[4]", ", f32[4]")


def test_product_through_nested_callees_shown_on_the_way():
    body = """%r = frame outer : T {
        %x = negative(%a) : T
        %r1 = frame inner : T {
        %y = negative(%b) : T
        %p = mul %x %y
        return %p
        }
        return %r1
        }
        bind r = %r
        %s = sub %c %r"""
    got = fused(body)
    assert "%p = mul(%x.1, %y.2)" in got and "bind r = %r" in got
    assert "return %p, %y.2" in got and "return %r1, %x.1, %y.1" in got
    assert got.endswith("%0 = negative(%x)\n%s = fma(%0, %y, %c)")


def test_sum_in_a_callee_and_product_passed_through():
    body = "%p = mul %a %b\n%r = frame f : T {\nbind x = %c\n%s = add %p %c\nreturn %s\n}"
    assert fused(body) == "%r = frame f {\nbind x = %c\n%s = fma(%a, %b, %c)\nreturn %s\n}"
    body = "%p = mul %a %b\n%r = frame identity : T {\nreturn %p\n}\n%s = add %r %c"
    assert fused(body) == "frame identity {\nreturn\n}\n%s = fma(%a, %b, %c)"


def test_a_returned_product_that_the_caller_ignores_is_unused():
    body = "%s, %r = frame f : T, T {\n%p = mul %a %b\n%s1 = add %p %c\nreturn %s1, %p\n}"
    assert fused(body) == "%s = frame f {\n%s1 = fma(%a, %b, %c)\nreturn %s1\n}"
    body += "\n%t = negative(%r) : T"
    assert "fma" not in fused(body)


# ------------------------------------------------------------------ any program: calls make no difference

SPAN = Span("a.py", 1, 0, 1, 1, "k")
T = TileType(float32)
OPS = {"mul": arithmetic.mul, "add": arithmetic.add, "sub": arithmetic.sub}


def expected(program, inputs: int) -> dict[int, str]:
    """The clause, read off a flat program: each statement as an expression over the inputs."""
    count = Counter(i for _, a, b in program for i in (a, b))
    text: dict[int, str] = {i: f"in{i}" for i in range(inputs)}
    for i, (name, a, b) in enumerate(program, inputs):
        text[i] = f"{name}({text[a]}, {text[b]})"
        for side, p, z in ((0, a, b), (1, b, a)):
            if name != "mul" and p >= inputs and program[p - inputs][0] == "mul" and count[p] == 1:
                x, y = (text[f] for f in program[p - inputs][1:])
                if name == "add":
                    text[i] = f"fma({x}, {y}, {text[z]})"
                elif side == 0:
                    text[i] = f"fma({x}, {y}, negative({text[z]}))"
                else:
                    text[i] = f"fma(negative({x}), {y}, {text[z]})"
                break
    return text


def build(program, inputs: int, rng) -> tuple[Kernel, list[Value]]:
    """The program as IR, with random runs of statements moved into callees that return what is used later."""
    values = [Value(T) for _ in range(inputs + len(program))]
    params = tuple(values[:inputs])

    def statements(start: int, stop: int, seen: dict[int, Value], depth: int) -> list:
        nodes, i = [], start
        while i < stop:
            if depth < 3 and rng.random() < 0.3:
                end = rng.randrange(i, stop) + 1
                inner = dict(seen)
                body = statements(i, end, inner, depth + 1)
                out = [j for j in range(i, end) if j in inner and (
                    any(j in p[1:] for p in program[end - inputs:]) or rng.random() < 0.2)]
                results = tuple(Value(T) for _ in out)
                body.append(Return(tuple(inner[j] for j in out), SPAN))
                nodes.append(Frame("f", SPAN, Region(body), results, SPAN))
                seen.update(zip(out, results, strict=True))
                i = end
                continue
            name, a, b = program[i - inputs]
            options = {"rounding_mode": None, "flush_to_zero": False}
            nodes.append(Op(OPS[name], (seen[a], seen[b]), options, (values[i],), SPAN))
            seen[i] = values[i]
            if rng.random() < 0.2:
                nodes.append(Bind("v", values[i], SPAN))
            i += 1
        return nodes

    nodes = statements(inputs, len(values), dict(enumerate(params)), 0)
    return Kernel("k", params, ("p",) * inputs, Region([*nodes, Return((), SPAN)]), SPAN), values


def evaluate(kernel: Kernel, values: list[Value]) -> dict[Value, str]:
    text = {v: f"in{i}" for i, v in enumerate(kernel.params)}

    def run(region: Region) -> list[str]:
        for n in region.nodes:
            if isinstance(n, Op):
                text[n.results[0]] = f"{n.op.name}({', '.join(text[v] for v in n.operands)})"
            elif isinstance(n, Frame):
                text.update(zip(n.results, run(n.body), strict=True))
            elif isinstance(n, Return):
                return [text[v] for v in n.operands]
        raise AssertionError("no return")

    run(kernel.body)
    return text


INPUTS = 3
PROGRAM = st.integers(1, 14).flatmap(lambda n: st.tuples(*(
    st.tuples(st.sampled_from(("mul", "mul", "add", "sub")), *[st.integers(0, INPUTS + i - 1)] * 2)
    for i in range(n))))


@settings(max_examples=150, deadline=None)
@given(PROGRAM, st.randoms(use_true_random=False))
def test_every_sum_is_what_the_inlined_program_makes_of_it(program, rng):
    k, values = build(program, INPUTS, rng)
    check(k)
    result = fma(k)
    check(result)
    want, got = expected(program, INPUTS), evaluate(result, values)
    for i, (name, _, _) in enumerate(program, INPUTS):
        if name != "mul":
            assert got[values[i]] == want[i]
    shown = {n.template for n in walk(result.body) if isinstance(n, Bind)}
    assert shown == {n.template for n in walk(k.body) if isinstance(n, Bind)}


def test_calls_nested_deeper_than_the_stack():
    x, p, s = Value(T, "x"), Value(T, "p"), Value(T, "s")
    options = {"rounding_mode": None, "flush_to_zero": False}
    body, inner = [Op(arithmetic.mul, (x, x), options, (p,), SPAN), Return((p,), SPAN)], p
    for _ in range(1500):
        out = Value(T)
        body, inner = [Frame("f", SPAN, Region(body), (out,), SPAN), Return((out,), SPAN)], out
    body = [*body[:-1], Op(arithmetic.add, (inner, x), options, (s,), SPAN), Return((), SPAN)]
    k = fma(Kernel("k", (x,), ("x",), Region(body), SPAN))
    assert [n.op.name for n in walk(k.body) if isinstance(n, Op)] == ["fma"]
