"""Calls that do not fit, and what is wrong in statements of several lines: each is refused, at its place."""

import numpy as np
import pytest

from conformance.harness.api import clause, ct, refuses
from conformance.harness.tile_code import body, module, rejects

A = np.zeros(4, np.int32)

# Calls with too few, too many, unknown and doubled arguments; t is a tile, a an array, n a number.
CALLS = """\
ct.full()
ct.full((2,))
ct.full((2,), 1)
ct.full((2,), dtype=ct.int8)
ct.full(fill_value=1, dtype=ct.int8)
ct.full(2, 2, 1, ct.int8)
ct.full((2,), 1, ct.int8, 1)
ct.zeros()
ct.zeros(dtype=ct.int8)
ct.zeros(2, 2, ct.int8)
ct.ones()
ct.ones(2, 2, 2)
ct.arange()
ct.arange(dtype=ct.int8)
ct.arange(0, 4, 1)
ct.load()
ct.load(a)
ct.load(a, 0)
ct.load(a, shape=4)
ct.load(a, 0, 4, mask=t)
ct.load(a, 0, 4, paddingmode=1)
ct.load(a, 0, 4, padding=1)
ct.load(a, 0, 4, 5, 6, 7)
ct.load(a, 0, 4, shape=4)
ct.store()
ct.store(a)
ct.store(a, 0)
ct.store(a, tile=t)
ct.store(a, 0, t, other=1)
ct.store(a, 0, t, index=0)
ct.gather(a)
ct.gather()
ct.gather(a, t, t, t, t, t)
ct.gather(a, t, padding=1)
ct.scatter(a, t)
ct.scatter(a)
ct.scatter(a, t, t, msk=t)
ct.atomic_add(a)
ct.atomic_add(a, 0)
ct.atomic_add(a, 0, 1, order=1)
ct.atomic_cas(a, 0, 1)
ct.bid()
ct.bid(0, 1)
ct.bid(dim=0)
ct.num_blocks()
ct.exp()
ct.exp(1.0, 2.0)
ct.exp(1.0, y=2.0)
ct.exp(1.0, x=2.0)
ct.add(n)
ct.add()
ct.add(n, n, n)
ct.add(n, z=n)
ct.minimum(n, n, n)
ct.maximum(n, n, n)
ct.maximum(n)
ct.where(t)
ct.where(t > 0, t)
ct.where(t > 0, t, t, t)
ct.where(cond=t > 0, x=t, z=t)
ct.sum()
ct.sum(t, 0, 1, 2)
ct.sum(t, dim=0)
ct.sum(t, axis=0, keepdim=True)
ct.max(t, 0, False, False, False)
ct.reduce(t, 0)
ct.reduce(t)
ct.scan(t, 0, lambda x, y: x)
ct.reshape(t)
ct.reshape(t, 2, 2)
ct.reshape(t, newshape=(2, 2))
ct.permute(t)
ct.transpose(t, 0)
ct.broadcast_to(t)
ct.expand_dims(t)
ct.cat((t, t))
ct.cat(t, t, 0)
ct.cat((t, t), dim=0)
ct.extract(t, 0)
ct.astype(t)
ct.astype(t, ct.int8, 1, 2)
ct.bitcast(t)
ct.mma(t, t)
ct.matmul(t)
ct.printf()
ct.printf("%d")
ct.assert_()
ct.assert_(True, "a", "b")
ct.cdiv(n)
ct.cdiv(n, n, n)
t.astype()
t.astype(ct.int8, ct.int8, 1)
t.astype(dtype=ct.int8, to=1)
t.reshape()
t.reshape(2, 2)
t.reshape((2, 2), (2, 2))
t.reshape(shapes=(2, 2))
t.item(1)
t.extract(0)
a.slice(0, 1)
a.slice(0, 0, 1, 2, 3)
a.tiled_view()
a.tiled_view((2,)).load()
a.tiled_view((2,)).load(0, 1, 2, 3)
a.tiled_view((2,)).store(0)
a.tiled_view((2,)).num_tiles()
a.get_raw_memory(1)
a.get_raw_memory().load_offset()
ct.Tile.reshape(t)
ct.Tile.reshape()
ct.Tile.astype(t, ct.int8, ct.int8, 1, 2)
ct.Tile.reshape(t, shapes=(2, 2))
ct.int8()(n)
ct.int8(n, n)
ct.int8(x=n)
len()
len(t, t)
abs()
abs(n, n)
divmod(n)
range()
range(1, 2, 3, 4)
bool(n, n)
int(n, n)
float(n, n)
str(n, n)
repr()
tuple(1, 2)
(lambda x: x)()
(lambda x: x)(n, n)
(lambda x, *, y: x)(n)
(lambda x, /: x)(x=n)
(lambda x, y=1: x)(n, z=1)
(lambda x, y=1: x)(n, x=1)
""".splitlines()


def shown_at(e, first, last, function="f"):
    assert not isinstance(e, ct.TileInternalError), e
    assert first <= e.loc.line <= last and e.loc.function == function, f"line {e.loc.line} in {e.loc.function}\n{e}"


def of_array(lines):
    text = "".join(f"    {line}\n" for line in lines.splitlines())
    f = module(f"def f(n, a):\n    t = ct.arange(4, dtype=ct.int32)\n{text}")["f"]

    @ct.kernel
    def k(n, a):
        f(n, a)
    return k


@clause("ERR-4.binding", "ERR-12.line", "ERR-12.function")
@pytest.mark.parametrize("call", CALLS)
def test_calls_that_do_not_fit(call):
    shown_at(refuses(("TileTypeError", "UnsupportedCallError"), of_array(call), 1, A), 3, 3)


@clause("ERR-4.kind", "ERR-4.dtype", "ERR-4.shape", "ERR-12.line", "ERR-12.function")
@pytest.mark.parametrize("lines", [
    "(n +\n  (None,\n  n))", "((None,\n  n)\n  + n)", "(t @\n  n)", "(n @\n  t)", "(t &\n  1.5)", "(1.5 |\n  t)",
    "(n <<\n  2.5)",
    "(t +\n  ct.zeros((8,),\n  ct.int8))", "(n <\n  'a')", "('a'\n  < n)", "(n ==\n  None)", "(-\n  None)",
    "(not\n  a)", "(n and\n  t)",
    "(t or\n  n)", "(n if\n  t\n  else 1)", "ct.add(n,\n  None)", "ct.add(\n  None,\n  n)",
    "ct.add(\n  y=None,\n  x=n)",
    "ct.full((3,),\n  1,\n  ct.int8)", "ct.full(\n  (4,),\n  t,\n  ct.int8)", "ct.full((4,),\n  1,\n  n)",
    "ct.sum(t,\n  axis=9)",
    "ct.load(a,\n  (0,\n  0),\n  4)", "ct.load(\n  t,\n  0, 4)", "ct.load(a,\n  0,\n  (3,))",
    "ct.store(a,\n  0,\n  'a')",
    "ct.where(t > 0,\n  None,\n  t)", "ct.cat((t,\n  1.5),\n  0)", "ct.cat((t, t),\n  2)",
    "t.astype(\n  'q')", "t.reshape(\n  (8,))", "ct.reshape(\n  t,\n  (8,))", "ct.permute(t,\n  (1,))",
    "a.slice(\n  1,\n  0,\n  1)",
    "a.tiled_view(\n  (3,))", "ct.reduce(t,\n  0,\n  1,\n  0)", "ct.reduce(t, 0,\n  lambda x, y: x,\n  None)",
    "range(n,\n  None)",
    "range(\n  1.5)", "max(n,\n  None)", "len(\n  n)", "int(\n  None)", "getattr(n,\n  1)",
    "ct.Tile.reshape(t,\n  (8,))", "t[\n  9]",
    "(1, 2)[\n  n]", "n\\\n  .nothing", "t[0,\n  1.5]", "a[\n  0][1]", "ct.int8(\n  'a')", "ct.exp(\n  x=None)"])
def test_statements_of_several_lines(lines):
    """The place is within the statement, whatever part of it is named."""
    last = 4 + lines.count("\n")
    e = refuses(("TileTypeError", "TileValueError"), of_array(f"x = 1\ny = {lines}\nz = 1"), 1, A)
    shown_at(e, 4, last)


# ------------------------------------------------------------------ constants that are not as they are annotated


@clause("ANN-1.unchecked", "ERR-4.kind", "ERR-12.line", "ERR-12.function")
@pytest.mark.parametrize("given", [True, 2, 2.5, "a", None, np.int8(3), np.float32(1.5), np.bool_(True)])
@pytest.mark.parametrize("annotation", ["bool", "int", "float", "str"])
def test_errors_about_constants_that_are_annotated_otherwise(annotation, given):
    """The annotation is not checked; what the value does not fit is refused where it is used."""
    lines = {"shape": "ct.zeros((N, 2), ct.int8)[N]", "call": "ct.exp(x=(N, M))",
    "sum": "(ct.zeros((2,), ct.int8),) + N",
             "other": "ct.exp(x=None)"}
    for line in lines.values():
        space = module(f"""
            @ct.kernel
            def kern(x, N: ct.Constant[{annotation}], M: ct.Constant[int], K: ct.Constant):
                first = N
                {line}
                N
        """)
        e = refuses(("TileTypeError", "TileValueError"), space["kern"], A, given, 1, 2)
        shown_at(e, 5, 5, "kern")


# ------------------------------------------------------------------ types that differ by path


@clause("JOIN-2.use", "JOIN-2.text", "LOOP-5.type", "LOOP-9.break", "ERR-12.line")
@pytest.mark.parametrize("lines, use", [
    ("x = 1\nif n > 0:\n    x = 1.5\nelse:\n    x = 2\n", "x + 1"), ("if n > 0:\n    x = 1.5\nelse:\n    x = 2\n",
    "ct.exp(x)"),
    ("x = n\nwhile True:\n    if n > 3:\n        x = 2\n        break\n    n = n + 1\nif n > 5:\n    x = 'a'\n",
    "x + 1"),
    ("x = 1\nwhile True:\n    if n > 3:\n        x = 5\n        break\n"
     "    if n > 2:\n        x = n\n        break\n    n = n + 1\n"
     "if n > 5:\n    x = 1.5\n", "x + 1"),
    ("x = 1\nfor i in range(n):\n    if i > 3:\n        x = 7\n        break\nif n > 5:\n    x = None\n", "x + 1"),
    ("x = 1\nfor i in range(n):\n    if i > 3:\n        x = 1\n        break\nif n > 5:\n    x = 2.5\n", "x + 1"),
    ("x = (1, n)\nfor i in range(n):\n    if i > 3:\n        x = (1, i)\n        break\n"
     "if n > 5:\n    x = (1, 2.5)\n", "x[1] + 1"),
    ("x = 1\nwhile n > 0:\n    n = n - 1\n    if n > 3:\n        continue\nif n > 5:\n    x = 2.5\n", "x + 1"),
    ("def g():\n    if n > 0:\n        return 1\n    return 1.5\n", "g() + 1"), ("x = 1 if n > 0 else 1.5\n", "x + 1"),
    ("def g():\n    if n > 0:\n        return 1.5\n    if n > 5:\n        return None\n    return 1\n", "g()"),
    ("if n > 0:\n    x = ct.zeros((2,), ct.int8)\nelse:\n    x = 0\n", "x + 1"),
    ("if n > 0:\n    f = lambda: 1\nelse:\n    f = lambda: 2\n", "f()"), ("if n > 0:\n    x = 1\n", "x + 1"),
    ("for i in range(n):\n    x = i\n", "x + 1"), ("while n > 0:\n    n = n - 1\n    x = n\n", "x + 1"),
    ("if n > 0:\n    if n > 1:\n        x = 1\n    else:\n        x = 2\n", "x + 1")])
def test_types_that_differ_by_path(lines, use):
    e = rejects("TileTypeError", body(f"{lines}{use}\nreturn n"), 1)
    shown_at(e, 2, 2 + lines.count("\n"), e.loc.function)
    assert e.loc.function in ("f", "g")


@clause("LOOP-5.type", "ERR-12.line")
@pytest.mark.parametrize("lines", [
    "x = 1\nfor i in range(n):\n    x = 1.5\nreturn x", "x = 1\nwhile n > 0:\n    n = n - 1\n    x = (x, 1)\nreturn x",
    "x = 1\nfor i in range(n):\n    if i > 2:\n        x = 1.5\n        continue\n    x = 2\nreturn x",
    "x = 'a'\nfor i in range(n):\n    x = n\nreturn n", "x = None\nwhile n > 0:\n    n = n - 1\n    x = n\nreturn x"])
def test_types_that_a_loop_does_not_keep(lines):
    e = rejects("TileTypeError", body(lines), 1)
    shown_at(e, 2, 1 + len(lines.splitlines()))
