"""Counts of what generated programs contain are right, add up, and are compared with the whole language."""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
from collections import Counter

import pytest

import cutile as ct
from conformance.generate import generate
from conformance.generate.counts import Counts, median
from conformance.generate.dtypes import DTYPES
from conformance.generate.functions import FUNCTIONS
from conformance.generate.language import ALLOWED, KINDS, LEFT_OUT, OPS
from cutile.ops._op import registry


def counted(*seeds: int) -> Counts:
    counts = Counts()
    for seed in seeds:
        counts.add(generate(seed))
    return counts


def test_counts_add_up_and_survive_json():
    whole, parts = counted(1, 2, 3), counted(1) + counted(2, 3)
    assert parts == whole
    assert Counts.of(json.loads(json.dumps(whole.json()))) == whole


def test_a_program_twice_is_no_two_programs():
    assert len(counted(5, 5).shapes) == 1 and len(counted(5, 6).shapes) == 2


@pytest.mark.parametrize("sizes, middle", [({3: 1}, 3), ({1: 2, 9: 1}, 1), ({1: 1, 5: 1, 9: 1}, 5), ({}, 0)])
def test_median(sizes, middle):
    assert median(Counter(sizes)) == middle


def test_what_is_short_is_named():
    counts = counted(1)
    counts.ops.clear()
    counts.kinds.clear()
    lacking = counts.lacking()
    assert "add: 0" in lacking and "add i8: 0" in lacking and "statement while: 0" in lacking
    full = Counts(100_000, 50_000, Counter({(o, d): 500 for o in OPS for d in ALLOWED.get(o, ("",))}),
                  Counter(dict.fromkeys(KINDS, 500)), Counter({12: 100_000}), Counter({1: 100_000}), set(range(95_000)))
    assert full.lacking() == []
    full.ops["add", "i8"] = 19
    full.kinds["while"] = 499
    full.soft = 39_999
    assert full.lacking() == ["add i8: 19", "statement while: 499", "with free rounding: 0.4"]


def test_a_summary_is_short_and_the_rest_comes_when_asked_for():
    counts = counted(1)
    summary, details = str(counts), counts.details()
    assert len(summary.splitlines()) <= 8 and max(map(len, summary.splitlines())) < 200
    assert f"{len(counts.short()['ops'])} are too rare" in summary and "left out" not in summary
    assert details.startswith(summary) and "launch: a function of the host" in details
    assert all(line in details.replace("\n    ", " ") for line in counts.lacking())
    assert max(map(len, details.removeprefix(summary).splitlines())) <= 120


def test_reports_merge(tmp_path):
    def command(*words):
        return subprocess.run([sys.executable, "-m", "conformance.generate", *map(str, words)], capture_output=True,
                              text=True)

    for k in (0, 1):
        command("--count", 4, "--first", 4 * k, "--report", tmp_path / f"{k}.json", "--jobs", 1 + k)
    merged = command("--merge", tmp_path / "0.json", tmp_path / "1.json", "--report", tmp_path / "sum.json")
    assert merged.stdout.split()[:2] == ["programs", "8,"] and merged.returncode == 1
    assert Counts.of(json.loads((tmp_path / "sum.json").read_text())) == counted(*range(8))


# One use of each op on a tile x, of four elements of the dtype DT. Others are probed by the programs themselves.
PROBES = {
    **{op: f"ct.{op}(x, x)" for op in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "cdiv", "divmod", "minimum", "maximum", "atan2", "pow",
        "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift", "bitwise_rshift", "equal", "not_equal", "less",
        "less_equal", "greater", "greater_equal")},
    **{op: f"ct.{op}(x)" for op in (
        *FUNCTIONS, "negative", "abs", "floor", "ceil", "isnan", "bitwise_not", "sum", "prod", "max", "min", "argmax",
        "argmin", "cumsum", "cumprod", "pack_to_bytes")},
    "positive": "+x", "logical_not": "not x", "where": "ct.where(ct.arange(4, dtype=ct.int32) < 2, x, x)",
    "reshape": "x.reshape((2, 2))", "broadcast_to": "ct.broadcast_to(x, (2, 4))", "cat": "ct.cat((x, x), 0)",
    "permute": "x.reshape((2, 2)).permute((1, 0))", "transpose": "x.reshape((2, 2)).transpose()",
    "expand_dims": "x[None]", "extract": "x.extract((0,), (2,))", "insert": "ct.insert(x, (0,), x)",
    "item": "x.extract((0,), (1,)).item()", "ternary": "x if ct.bid(0) == 0 else x",
    "reduce": "ct.reduce(x, 0, lambda p, q: p, 1)", "scan": "ct.scan(x, 0, lambda p, q: p, 1)",
    "unpack_from_bytes": "ct.unpack_from_bytes(ct.zeros((16,), ct.uint8), DT)",
    "matmul": "x.reshape((2, 2)) @ x.reshape((2, 2))", "astype from": "x.astype(ct.float32)",
    "full": "ct.full((4,), 1, DT)", "ones": "ct.ones((4,), DT)", "astile": "ct.astile((1, 1), dtype=DT)",
    "arange": "ct.arange(2, dtype=DT)", "astype": "ct.arange(4, dtype=ct.int32).astype(DT)",
}


def accepted(expression: str, dtype: str, load) -> bool:
    kernel = load(f"import cutile as ct\n@ct.kernel\ndef kernel():\n    DT = ct.{DTYPES[dtype].name}\n"
                  f"    x = ct.full((4,), 1, DT)\n    result = {expression}\n")
    try:
        ct.launch(None, (1,), kernel, ())
    except ct.TileTypeError:
        return False
    return True


@pytest.fixture(scope="module")
def load():
    """A kernel from its source, which `inspect` finds."""
    names = []

    def made(source: str):
        names.append(name := f"<probe {len(names)}>")
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        space: dict = {}
        exec(compile(source, name, "exec"), space)
        return space["kernel"]

    yield made
    for name in names:
        del linecache.cache[name]


@pytest.mark.parametrize("op", PROBES)
def test_the_dtypes_of_an_op_are_those_that_it_takes(op, load):
    assert {d for d in DTYPES if accepted(PROBES[op], d, load)} == set(ALLOWED[op])


# Ops that users have no name for: typing rules, passes and the front end make them.
PARTS = {"fma", "iota", "stack_scalars", "emit_text", "breakpoint", "powi"}


def test_every_op_is_generated_or_left_out():
    of_language = {name for name, o in registry().items() if o.language}
    left = of_language - PARTS - set(OPS)
    assert not left, f"{left}: write language=False in the @op of an op of your own"
    compile_time = {"static_eval", "static_assert", "static_exception", "static_iter", "ensure_constant"}
    assert compile_time <= set(OPS) and not set(LEFT_OUT) & set(OPS)
