import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.bytecode_writer import encode
from cutile.gpu.tileir.module import Block, Operation
from cutile.gpu.tileir.tileiras import disassemble
from cutile.spans import Span
from tests.gpu.tileir.samples import SAMPLES, Module, add, available, bytecode, vector_add
from tests.gpu.tileir.tool import needs_tool
from tests.tileir_eval.bytecode_cursor import MalformedBytecode
from tests.tileir_eval.bytecode_reader import SCALARS, decode

VERSIONS = ("13.1", "13.2", "13.3", "13.4")
KERNEL = Span("/home/u/kernels.py", 10, 0, 20, 9, "vector_add")
SITE = Span("/home/u/kernels.py", 13, 4, 13, 20, "vector_add")
LOCS = {"kernel": KERNEL, "load": Span("/home/u/kernels.py", 11, 8, 12, 3, "vector_add"),
        "add": Span("lib/helpers.py", 3, 11, 3, 16, "plus", Span("lib/helpers.py", 7, 4, 7, 9, "twice", SITE))}


def shape(block: Block, numbers: dict | None = None) -> list:
    """A block as plain data: operations, attributes, types, and which value is used where."""
    numbers = {} if numbers is None else numbers
    for value in block.args:
        numbers[value] = len(numbers)
    return [[str(v.type) for v in block.args], [_op(o, numbers) for o in block.ops]]


def _op(op: Operation, numbers: dict) -> tuple:
    uses = [[numbers[v] for v in x] if isinstance(x, tuple) else None if x is None else numbers[x]
            for x in op.operands]
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in op.attrs.items()}
    regions = [shape(r, numbers) for r in op.regions]
    for value in op.results:
        numbers[value] = len(numbers)
    return op.spec.name, uses, attrs, [str(v.type) for v in op.results], regions, place(op.loc)


def place(span: Span | None) -> list:
    return [] if span is None else [(s.filename, s.line, s.col, s.function) for s in span.frames()]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_built_is_read_back(version):
    """Every sample as an entry of one module, and one entry with sources."""
    module = vector_add(version, LOCS)
    for i, name in enumerate(available(version)):
        add(module, name, f"k{i}")
    built, again = module.contents, decode(module.to_bytes())
    assert again.version == built.version
    assert again.producer == (built.producer if version >= "13.3" else None)
    assert again.globals == built.globals
    assert len(again.entries) == len(built.entries) > 100
    for a, b in zip(built.entries, again.entries):
        assert (a.name, a.type, a.hints, place(a.loc)) == (b.name, b.type, b.hints, place(b.loc))
        if a.loc is None:  # positions are those of entries that have one
            assert all(not op.loc for op in b.block.ops)
        assert shape(a.block) == shape(b.block), a.name
    assert encode(again) == module.to_bytes()


@needs_tool
@pytest.mark.parametrize("t", SCALARS, ids=str)
def test_each_element_type_is_read_back(t):
    """By the disassembler too, under its name."""
    module = Module("13.4")
    module.entry("k", [ty.tile(ty.ptr(t))]).body.op("return")
    code = module.to_bytes()
    assert decode(code).entries[0].type == ty.Function((ty.tile(ty.ptr(t)),), ())
    assert f"ptr<{t.name}>" in disassemble(code)


@pytest.mark.parametrize("name", ["atan2", "pack", "unpack", "mmaf_scaled", "alloca", "atomic_red_view_tko"])
def test_operations_of_a_newer_version_are_refused(name):
    since = ty.parse_version(SAMPLES[name][0])
    older = since[0], since[1] - 1
    code = bytecode(name, ty.version_text(since)).replace(bytes(since), bytes(older), 1)
    with pytest.raises(MalformedBytecode, match=f"is not known in {ty.version_text(older)}"):
        decode(code)


def test_the_comparison_sees_a_difference():
    def built(mode):
        m = Module("13.4")
        b = m.entry("k", []).body
        x = b.constant(SAMPLE_TYPE, 1)
        b.op("addf", [x, x], rounding_mode=mode)
        b.op("return")
        return shape(m.contents.entries[0].block)

    from tests.gpu.tileir.samples import F as SAMPLE_TYPE
    assert built("zero") != built("nearest_even")


DATA = [bytecode(name, "13.4") for name in ("reduce", "load_view_tko", "loop", "mmaf")] + [
    vector_add("13.2", LOCS).to_bytes()]


@given(st.sampled_from(DATA), st.randoms(use_true_random=False))
def test_damaged_bytecode_is_refused_or_read_but_never_crashes_otherwise(data, rng: random.Random):
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    damaged = damaged[:rng.choice((len(damaged), rng.randrange(len(damaged))))]
    try:
        decode(bytes(damaged))
    except MalformedBytecode:
        pass


def test_bytecode_damaged_in_many_ways():
    """The same with more programs and fewer steps, for what is rare: other kinds of types, alignments of 0."""
    rng = random.Random(5)
    for _ in range(6_000):
        damaged = bytearray(rng.choice(DATA))
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            decode(bytes(damaged))
        except MalformedBytecode:
            pass


@pytest.mark.parametrize("data, why", [
    (b"", "8 bytes wanted"),
    (b"\x7fELF" + bytes(20), "no Tile IR bytecode"),
    (bytecode("addf", "13.4")[:-1], "wanted"),
    (bytecode("addf", "13.4") + b"x", "after the end"),
    (bytecode("addf", "13.4").replace(bytes((13, 4)), bytes((14, 0)), 1), "version 14.0"),
])
def test_what_is_wrong_is_said(data, why):
    with pytest.raises(MalformedBytecode, match=why):
        decode(data)
