"""What errors advise for mistakes that come from habits of Python or of other libraries."""

import ast
import functools
import inspect
import itertools
import math
import operator
import re
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from cutile.front.advice import call_of
from cutile.front.op_calls import signature_of
from cutile.front.program import type_kernel
from cutile.ops._op import methods, registry
from tests.front.compiling import A1, A2, ARRAYS, I32, cell, refused

ROOT = Path(ct.__file__).resolve().parents[1]
TILE = "    t = ct.load(a, i, 4).astype(ct.float32)\n"


@pytest.mark.parametrize("line, help", [
    ("ct.where(t > 0 & t < 1, t, t)", "(x > 0) & (x < 1)"),
    ("ct.load(a, i / 2, 4)", "divide integers with //"),
    ("ct.load(a, i > 2, 4)", "convert it: x.astype(ct.int32)"),
    ("for j in range(128 / 2): pass", "divide integers with //"),
    ("ct.max(t, 0.0)", "the larger of two is ct.maximum(x, y)"),
    ("ct.min(t, t)", "the smaller of two is ct.minimum(x, y)"),
    ("ct.max(t, i)", "constants are literals"),
    ("t.exp()", "write ct.exp(x)"),
    ("t.mean()", "write ct.lib.mean(x, axis)"),
    ("t.sigmoid()", "write ct.lib.sigmoid(x)"),
    ("np.finfo(np.float32).min", "inside ct.static_eval(...)"),
    ("t.dtype.itemsize", "inside ct.static_eval(…)"),
    ("ct.ByTarget()", "runs on the host"),
    ("ct.load(a, i, 4, padding_mode=0.0)", "ct.PaddingMode.ZERO, "),
    ("ct.assert_(i > 0, f'{i}')", "a plain string; print and ct.printf"),
    ("ct.store(a, t, i)", "one tile index per axis"),
    ("ct.store(a, i, (i, 0))", "the index comes before the tile"),
    ("ct.zeros((1, i), ct.float32)", "for k in ct.static_iter(range(…))"),
    ("ct.load(a, i, 4, mask=t > 0, other=0)", "as padding_mode says"),
    ("ct.sum(t, dim=0)", "did you mean `axis`?"),
    ("ct.atomic_add(a, i, t)", "the indices are those of elements"),
    ("t[0] = 1", "ct.insert(x, index, value) puts a part"),
    ("a[0] = 1", "ct.store(array, index, tile)"),
    ("a.T", "order=(1, 0)"),
    ("a.stride(0)", "array.strides[k]"),
    ("a.foo", "there are: dtype, foreign_pointer, "),
    ("a.shape()", "a shape is no method"),
    ("len(a)", "x.shape[0]"),
    ("t.reshape(2, 2)", "a shape is one tuple"),
    ("ct.arange(0, 8)", "write ct.arange(size, dtype=ct.int32), which counts from 0 to size - 1; only 1"),
    ("ct.arange(8)", "write ct.arange(size, dtype=ct.int32), which counts"),
    ("ct.zeros((4, 4))", "write ct.zeros(shape, dtype=ct.float32); its signature"),
    ("ct.full((4, 4), 0)", "write ct.full(shape, fill_value, dtype=ct.float32); its signature"),
    ("t.astype()", "its signature is .astype(dtype"),
    ("ct.load(a, i, 4, order='K')", "order=(1, 0)"),
    ("ct.syncthreads()", "what a block does, it does in order"),
    ("functools.partial(max, 1)", "write a lambda"),
    ("np.where(t > 0, t, t)", "use ct.where(cond, x, y)"),
    ("np.zeros((4, 4))", "use ct.zeros(shape, dtype)"),
    ("np.arange(4)", "use ct.arange(size, dtype=dtype)"),
    ("ct.arange(4, ct.int32)", "only 1 argument may be given without a name"),
    ("ct.minimum(t, t, t)", "nest calls for more: ct.minimum(x, ct.minimum(y, z))"),
])
def test_of_tile_code(line, help):
    with pytest.raises(ct.TileError) as caught:
        type_kernel(cell(f"def k(a, i):\n{TILE}    {line}", np=np, functools=functools)["k"], (A1, I32))
    assert help in caught.value.help


def test_calls_of_ops_in_advice_fit_their_signatures():
    found = {n: op.__signature__ for n, op in registry().items() if op.public}
    found |= {name: signature_of(op, True) for (_, name), op in methods().items() if name not in found}
    assert len(found) > 90
    for name, signature in found.items():
        given = ast.parse(call_of(name), mode="eval").body
        arguments = [a for a in given.args if not isinstance(a, ast.Starred)]
        signature.bind(*arguments, **{k.arg: k.value for k in given.keywords})


def _texts(source):
    """The texts in a module, with a name in place of each field."""
    for n in ast.walk(ast.parse(source)):
        if isinstance(n, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "field" for v in n.values)
        elif isinstance(n, ast.Constant) and isinstance(n.value, str):
            yield n.value


def _calls(text):
    """Calls of ct in a text, each with the name of what it calls; those that leave arguments out are not among them."""
    for m in re.finditer(r"\bct\.([\w.]+)\(", text):
        ends = [i for i in range(m.end(), len(text) + 1) if text[m.start():i].count("(") == text[m.start():i].count(")")]
        if ends and (call := text[m.start():ends[0]]) != f"ct.{m[1]}()" and not {"…", "..."} & {*re.findall("…|[.]{3}", call)}:
            yield m[1], ast.parse(call, mode="eval").body


@pytest.mark.parametrize("room", ["front", "ops", "runtime", "interp"])
def test_calls_in_messages_fit_their_signatures(room):
    count = 0
    for path in (ROOT / "cutile" / room).rglob("*.py"):
        for name, given in itertools.chain.from_iterable(map(_calls, _texts(path.read_text()))):
            if "field" not in name and not any(isinstance(a, ast.Starred) for a in given.args):
                called = operator.attrgetter(name)(ct)
                if callable(called) and not isinstance(called, type):
                    inspect.signature(called).bind(*given.args, **{k.arg: k.value for k in given.keywords})
                    count += 1
    assert count


def test_of_lists_of_arrays():
    refused(cell("def k(xs):\n    xs.shape")["k"], ARRAYS, help="index it: arrays[i]")


@pytest.mark.parametrize("value, says", [
    (None, "pass any array in its place and a flag beside it"), (np.float32(2), r"pass float\(x\)"),
    ((1, (2, None)), r"\(`x\[1\]\[1\]`\)"), ((1, np.int16(3)), r"\(`x\[1\]`\).*pass int\(x\)"),
    (np.ma.masked_array(np.zeros(4, np.float32)), "kernels know no masked arrays"),
])
def test_of_arguments(value, says):
    @ct.kernel
    def k(x):
        pass

    with pytest.raises(TypeError, match=says):
        ct.launch(None, (1,), k, (value,))


def test_of_constants_and_declarations():
    @ct.kernel
    def k(x: ct.Constant):
        pass

    with pytest.raises(TypeError, match="arrays need no annotation"):
        ct.launch(None, (1,), k, (np.zeros(3),))
    with pytest.raises(TypeError, match="defaults of a kernel's parameters do not count"):
        ct.launch(None, (1,), ct.kernel(lambda x, n=4: None), (np.zeros(3),))
    with pytest.raises(TypeError, match="kernels in classes take no self"):
        ct.launch(None, (1,), ct.kernel(lambda self, x: None), (np.zeros(3),))
    with pytest.raises(TypeError, match="unknown kernel option 'num_warps'; there are num_ctas, "):
        ct.kernel(num_warps=4)
    with pytest.raises(TypeError, match="@ct.function needs a function, got int"):
        ct.function(3)

    def later(x: "Missing"):
        pass

    with pytest.raises(NameError, match="'Missing' in an annotation of .*later.*ct.Array"):
        ct.kernel(later)


# ------------------------------------------------------------------ memory by offsets

OFFS = "    offs = ct.arange(4, dtype=ct.int32)\n"


@pytest.mark.parametrize("line, helps", [
    ("ct.load(a + offs, mask=offs < 3)", ("ct.gather(array, indices, mask=...)",)),
    ("ct.load(a + i * 4 + offs)", ("ct.gather(array, indices, mask=...)",)),
    ("ct.store(a + offs, t)", ("ct.scatter(array, indices, value, mask=...)",)),
    ("ct.gather(a - 1, offs)", ("ct.gather(", "ct.scatter(")),
    ("ct.load(offs + a, 0, 4)", ("ct.gather(", "ct.scatter(")),
    ("ct.load(b + offs[:, None] * 8 + offs[None, :])", ("ct.gather(array, one tile of indices per axis, mask=...)",)),
    ("a[offs]", ("ct.gather(array, indices)",)), ("a[i:i + 4] = t", ("ct.store(array, index, tile)", "ct.scatter(")),
    ("a[offs] = t", ("ct.scatter(array, indices, value)",)), ("a[i] += 1", ("ct.load(", "ct.gather(")),
    ("ct.load(a, offs, 4)", ("ct.gather(array, indices)",)), ("ct.store(a, offs, t)", ("ct.scatter(array, indices, value)",)),
    ("a + 1.5", ("load a tile from it first",)), ("a * offs", ("load a tile from it first",)),
])
def test_of_pointer_arithmetic(line, helps):
    with pytest.raises(ct.TileError) as caught:
        type_kernel(cell(f"def k(a, b, i):\n{TILE}{OFFS}    {line}")["k"], (A1, A2, I32))
    assert [h for h in helps if h not in caught.value.help] == [], str(caught.value)
    if "1.5" in line or "*" in line.partition("a * offs")[1]:
        assert "gather" not in caught.value.help


@pytest.mark.parametrize("line, help", [
    ("t[t > 0]", "ct.where(mask, x, 0)"), ("t[offs]", "ct.gather(array, indices)"), ("t[a]", "ct.gather(array, indices)"),
    ("a.tiled_view(4)[0]", "view.load(index)"), ("v = a.tiled_view(4)\n    v[0] = t", "view.store(index, tile)"),
    ("a.get_raw_memory()[0]", "memory.load_offset(offset)"), ("ct.load(a.tiled_view(4), 0, 4)", "view.load(index)"),
    ("r = a.get_raw_memory()\n    r[0] = 1", "memory.store_offset(offset, value)"),
    ("t.reshape(-1)", "write shape=(-1,)"), ("ct.cat(t, t)", "write it as a tuple: tiles="),
    ("t.permute(0)", "write it as a tuple: axes="), ("ct.Tile(1)", "values come from ops"),
    ("ct.Array.load(a, 0)", "there are: slice, "), ("np.random.rand(3)", "ct.lib.uniform(seed, index)"),
    ("np.maximum(t, 0)", "use ct.maximum(x, y) (NaN comes through with propagate_nan=True only)"),
    ("np.load('f')", "numpy functions run on the host"), ("math.remainder(i, 2)", "math functions run on the host"),
    ("operator.itemgetter(0)", "operator functions run on the host"), ("type(i)", "ct.static_eval(type(…))"),
    ("ct.math.exp(t)", "what kernels call stands in ct itself"), ("ct.nn.relu(t)", "what kernels call stands in ct itself"),
    ("a.sum()", "load a tile first"), ("a.size", "array.shape[axis]"), ("t.size", "ct.static_eval(math.prod(x.shape))"),
])
def test_of_other_habits(line, help):
    space = {"np": np, "math": math, "operator": operator}
    with pytest.raises(ct.TileError) as caught:
        type_kernel(cell(f"def k(a, i):\n{TILE}{OFFS}    {line}", **space)["k"], (A1, I32))
    assert help in caught.value.help, str(caught.value)


# ------------------------------------------------------------------ ops and methods without a call

VIEW = "    v = a.tiled_view((4,))\n"


@pytest.mark.parametrize("line, call", [
    ("v.num_tiles[0]", "num_tiles(axis)"), ("print(v.num_tiles)", "num_tiles(axis)"), ("print((1, v.load))", "load(index)"),
    ("v.num_tiles + 1", "num_tiles(axis)"), ("1 - v.num_tiles", "num_tiles(axis)"), ("ct.exp(t.item)", "item()"),
    ("ct.full(4, v.num_tiles, ct.int32)", "num_tiles(axis)"), ("-v.num_tiles", "num_tiles(axis)"),
    ("range(v.num_tiles)", "num_tiles(axis)"), ("ct.load(a, v.num_tiles, 4)", "num_tiles(axis)"),
    ("ct.where(t > 0, t.transpose, t)", "transpose()"), ("f'{t.item}'; print(f'{t.item}')", "item()"),
    ("x = t.item.dtype", "item()"), ("len(t.item)", "item()"), ("v.num_tiles < 3", "num_tiles(axis)"),
    ("ct.bid + 1", "call it: ct.bid(axis)"), ("ct.bid[0]", "call it: ct.bid(axis)"), ("-ct.exp", "call it: ct.exp(x)"),
    ("ct.store(a, ct.bid, t)", "call it: ct.bid(axis)"), ("ct.store(a, 0, ct.bid)", "call it: ct.bid(axis)"),
    ("for j in range(ct.num_blocks): pass", "call it: ct.num_blocks(axis)"), ("ct.bid.x", "call it: ct.bid(axis)"),
    ("for j in ct.num_tiles: pass", "call it: ct.num_tiles(array, axis, shape)"),
])
def test_of_methods(line, call):
    with pytest.raises(ct.TileError) as caught:
        type_kernel(cell(f"def k(a):\n{TILE.replace('i', '0', 1)}{VIEW}    {line}")["k"], (A1,))
    assert call in str(caught.value)


def test_methods_are_true_and_callable():
    def k(a):
        f = a.tiled_view((4,)).num_tiles
        ct.static_assert(True if f else False)
        ct.load(a, f(0) - 1, 4)

    type_kernel(k, (A1,))


# ------------------------------------------------------------------ bits


@pytest.mark.parametrize("source, target, bits", [
    (ct.bfloat16, ct.uint16, True), (ct.float16, ct.int16, True), (ct.float32, ct.uint32, True), (ct.float64, ct.int64, True),
    (ct.float8_e5m2, ct.uint8, True), (ct.float32, ct.uint16, False), (ct.float32, ct.float16, False),
    (ct.int64, ct.int32, False), (ct.float32, ct.bool_, False),
])
def test_of_stored_bits(source, target, bits):
    array = A1.__class__
    e = refused(cell("def k(x, o): ct.store(o, 0, ct.load(x, 0, 4))")["k"], array(source, 1), array(target, 1),
                help=f"value.astype(ct.{target.name})")
    assert (f"ct.bitcast(value, ct.{target.name})" in e.help) == bits


# ------------------------------------------------------------------ functions that run on the host


@functools.lru_cache
def cached(n):
    return n + 1


@functools.cache
def cached_too(n):
    return n + 1


@functools.singledispatch
def dispatched(n):
    return n + 1


half = functools.partial(cached, 1)


@pytest.mark.parametrize("call, way_out", [
    ("cached(3)", "ct.static_eval(cached(...))"), ("cached_too(3)", "ct.static_eval(cached_too(...))"),
    ("half()", "write a lambda"), ("functools.lru_cache(max)", "functools functions run on the host"),
    ("dispatched(3)", "ct.static_eval(dispatched(...))"),
])
def test_of_wrapped_functions(call, way_out):
    space = {"cached": cached, "cached_too": cached_too, "half": half, "dispatched": dispatched, "functools": functools}
    with pytest.raises(ct.TileError) as caught:
        type_kernel(cell(f"def k(a): {call}", **space)["k"], (A1,))
    assert way_out in str(caught.value)
    if "static_eval" in way_out:
        type_kernel(cell(f"def k(a): ct.full(4, ct.static_eval({call}), ct.int32)", **space)["k"], (A1,))


# ------------------------------------------------------------------ unknown names


@pytest.mark.parametrize("line, help", [
    ("threadIdx.x", "names no threads"), ("blockIdx.x * 4", "write ct.bid(axis)"), ("__syncthreads()", "leave it out"),
    ("sqrtf(t)", "write ct.sqrt(x)"), ("exp(t)", "write ct.exp(x)"), ("program_id(0)", "write ct.bid(axis)"),
    ("atomicAdd(a, 0, 1)", "write ct.atomic_add(array, indices, update)"), ("mean(t)", "write ct.lib.mean(x, axis)"),
    ("mean + t", None), ("norm", None), ("Q", None), ("tt + 1", None), ("tl.load(a)", "what kernels call stands in ct itself"), ("jnp.sum(a)", "ct itself"),
    ("printf('%d', i)", "write ct.printf(format, *args)"),
    ("lenn(a)", "did you mean `len`?"),
])
def test_of_unknown_names(line, help):
    e = refused(cell(f"def k(a, i):\n{TILE}    {line}")["k"], A1, I32, cls=ct.TileSyntaxError, says="Undefined variable")
    assert help in e.help if help else e.help is None
