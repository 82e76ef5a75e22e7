"""The evaluator as a whole: it knows every operation, refuses what is undefined, and agrees with the interpreter."""

from __future__ import annotations

import importlib
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

import cutile as ct
from conformance.generate import generate
from conformance.referee.implementations import loaded
from cutile import settings
from cutile.gpu.tileir.operations import OPS
from cutile.gpu.tileir.types import f32, i32, ptr, tile
from tests.gpu.tileir.samples import SAMPLES, bytecode
from tests.interp import reference
from tests.interp.ir_programs import RandomKernel
from tests.tileir_eval import AssertionFailed, EvaluationError, Pointer, evaluate, machine, registry
from tests.tileir_eval.kernels import SYMBOL, bytecode_of, instead_of_interpreter
from tests.tileir_eval.small_programs import pointers, run

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {"histogram": "skimage", "image_filter": "skimage", "digits": "sklearn"}
SMALL = ["vector_add", "softmax", "transpose", "layer_norm", "split_k", "look_back_scan"]
LARGE = ["digits", "matmul", "attention", "histogram", "image_filter"]


# ------------------------------------------------------------------ completeness


def test_every_operation_is_evaluated():
    known = {*registry.PURE, *registry.OF_WORLD, *machine.CONTROL, *machine.TERMINATORS}
    assert known == set(OPS)


# The integer that a sample is run with where 1 makes it something undefined, or endless.
GIVEN = {"loop": 9, "break": 9, "for.unsigned": 64, "load_view_tko.inbounds": 64}


@pytest.mark.parametrize("name", [n for n in SAMPLES if n != "assume.div_every"])  # which does not hold: see below
def test_every_form_of_an_operation_runs(name):
    since, _ = SAMPLES[name]
    evaluate(bytecode(name, since), "k", (1,), [Pointer(np.ones(64 * 64, np.float32)), GIVEN.get(name, 1)])


def test_the_sample_that_is_wrong():
    with pytest.raises(EvaluationError, match="does not hold"):
        evaluate(bytecode("assume.div_every", "13.1"), "k", (1,), [Pointer(np.ones(64, np.float32)), 1])


# ------------------------------------------------------------------ what is refused


def refused(text: str, build, arguments=(), args=(), **options) -> None:
    with pytest.raises(EvaluationError, match=text):
        run(build, arguments, args, **options)


F4, P = tile(f32, (4,)), tile(ptr(f32))


@pytest.mark.parametrize("size", [0, 3])
def test_accesses_outside_an_array(size):
    refused("outside an array|of no array", lambda b, p: b.op("load_ptr_tko", [pointers(b, p, F4)]), [P],
            [Pointer(np.zeros(size, np.float32))])


def test_accesses_between_arrays():
    """One array's pointer never reaches another array, wherever that lies."""
    whole = np.zeros(8, np.float32)
    refused("outside an array", lambda b, p, q: b.op("store_ptr_tko", [pointers(b, p, F4), b.constant(F4, 1.0)]),
            [P, P], [Pointer(whole[:2]), Pointer(whole[2:])])
    assert not whole.any()


def test_arrays_that_overlap_are_one_memory():
    whole = np.zeros(8, np.float32)
    run(lambda b, p, q: b.op("store_ptr_tko", [pointers(b, p, F4), b.constant(F4, 1.0)]), [P, P],
        [Pointer(whole[:6:2]), Pointer(whole[1:7])])
    assert whole.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_false_assertions():
    def build(b):
        x, _, _ = b.op("get_tile_block_id")
        line = b.op("iota", result=tile(i32, (4,)))
        limit = b.op("broadcast", [b.op("reshape", [x], result=tile(i32, (1,)))], result=tile(i32, (4,)))
        ok = b.op("cmpi", [line, limit], comparison_predicate="not_equal", signedness="signed")
        b.op("assert", [ok], message="meets")

    with pytest.raises(AssertionFailed, match="meets") as found:
        run(build, [], [], grid=(9,))
    assert (found.value.message, found.value.block, found.value.index) == ("meets", (0, 0, 0), (0,))


def test_programs_that_do_not_end(monkeypatch):
    monkeypatch.setattr(machine, "TURNS", 100)

    def build(b):
        with b.loop():
            b.op("continue")

    refused("did not end", build)


def test_arguments_that_do_not_fit():
    refused("more than the 1 parameters", lambda b, x: None, [tile(i32)], [1, 2])
    refused("1 arguments for an entry of 2", lambda b, x, y: None, [tile(i32)] * 2, [1])


def test_accesses_that_no_token_orders():
    def build(ordered: bool):
        def f(b, p):
            at, x = pointers(b, p, F4), b.constant(F4, 1.0)
            token = b.op("store_ptr_tko", [at, x])
            y, _ = b.op("load_ptr_tko", [at], token=b.op("join_tokens", [[token]]) if ordered else None)
            b.op("store_ptr_tko", [b.op("offset", [at, b.constant(tile(i32, (4,)), 4)]), y])

        return f

    out = Pointer(np.zeros(8, np.float32))
    run(build(True), [P], [out], ordered=True)
    run(build(False), [P], [out])
    refused("load_ptr_tko of block .* meets store_ptr_tko of block .*no token", build(False), [P], [out], ordered=True)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("semantics, first, what", [
    ("release", False, "store_ptr_tko of block .* releases, but no token"),
    ("acquire", True, "no token orders store_ptr_tko of block .* after load_ptr_tko of block .*, which acquires")])
def test_releases_and_acquires_that_no_token_orders(semantics, first, what, ordered):
    """An access with an order, and one of other memory before or after it."""
    def f(b, p):
        at, x = pointers(b, p, F4), b.constant(F4, 1.0)
        elsewhere = b.op("offset", [at, b.constant(tile(i32, (4,)), 4)])
        options = {"memory_ordering_semantics": semantics, "memory_scope": "device"}
        if first:
            _, token = b.op("load_ptr_tko", [at], **options)
            b.op("store_ptr_tko", [elsewhere, x], token=token if ordered else None)
        else:
            token = b.op("store_ptr_tko", [elsewhere, x])
            b.op("store_ptr_tko", [at, x], token=token if ordered else None, **options)

    out = Pointer(np.zeros(8, np.float32))
    if ordered:
        run(f, [P], [out], ordered=True)
    else:
        refused(what, f, [P], [out], ordered=True)


def test_promises_that_do_not_hold():
    def wraps(b, x):
        b.op("addi", [x, b.constant(tile(i32), 1)], overflow="no_signed_wrap")

    run(wraps, [tile(i32)], [2**31 - 2])
    refused("wraps", wraps, [tile(i32)], [2**31 - 1])


# ------------------------------------------------------------------ blocks


def test_blocks_in_order():
    def build(b):
        b.op("print_tko", [list(b.op("get_tile_block_id") + b.op("get_num_tile_blocks"))], str="%d%d%d/%d%d%d ")

    assert "".join(run(build, [], [], grid=(2, 1, 2))) == "000/212 001/212 100/212 101/212 "


def test_blocks_that_wait_take_turns():
    """Block 0 waits for what the last block stores."""
    def build(b, p):
        x, _, _ = b.op("get_tile_block_id")
        last = b.op("cmpi", [x, b.constant(tile(i32), 2)], comparison_predicate="equal", signedness="signed")
        with b.if_(last) as branch, branch.then:
            b.op("atomic_rmw_tko", [p, b.constant(tile(i32), 7)], mode="xchg", memory_scope="device",
                 memory_ordering_semantics="release")
            b.op("yield")
        with b.loop(results=[tile(i32)]) as loop:
            v, _ = b.op("load_ptr_tko", [p], memory_ordering_semantics="acquire", memory_scope="device")
            there = b.op("cmpi", [v, b.constant(tile(i32), 7)], comparison_predicate="equal", signedness="signed")
            with b.if_(there) as branch, branch.then:
                b.op("break", [[v]])
            b.op("continue")
        b.op("print_tko", [[x, loop.results[0]]], str="%d:%d ")

    said = run(build, [tile(ptr(i32))], [Pointer(np.zeros(1, np.int32))], grid=(3,))
    assert sorted(said) == ["0:7 ", "1:7 ", "2:7 "]


# ------------------------------------------------------------------ against the interpreter


@pytest.mark.parametrize("seed", range(30))
def test_random_control_flow(seed):
    """Nested branches and loops that break, continue and return, with what they print as the result."""
    kernel, grid = RandomKernel(Random(seed), 40).make(), (1 + seed % 3, 2, 1 + seed % 2)
    said = evaluate(bytecode_of(kernel, [seed]), SYMBOL, grid, [seed], ordered=True)
    assert "".join(said) == reference.run(kernel, grid, [seed])


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def outputs(name: str) -> dict[str, list[bytes]]:
    return {row.kernel: [a.tobytes() for a in row.outputs] for row in importlib.import_module(name).main()}


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(n, marks=pytest.mark.deep) for n in LARGE)])
def test_examples(importable, name):
    """Sums and products of matrices in the interpreter's portable order are in the evaluator's: equal bits."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with settings.override(PORTABLE=True):
        want = outputs(name)
    with instead_of_interpreter():
        assert outputs(name) == want


@pytest.mark.parametrize("options", [{"ordered": True}, {"identities": True, "poison": True}])
@pytest.mark.parametrize("name", ["vector_add", "look_back_scan", *(
    pytest.param(n, marks=pytest.mark.deep) for n in ("softmax", "layer_norm", "matmul", "attention", "split_k"))])
def test_examples_do_not_depend_on_what_is_undetermined(importable, name, options):
    with instead_of_interpreter(**options):
        importlib.import_module(name).main()  # checks itself


def test_what_launches_report(capsys):
    @ct.kernel
    def k(x):
        ct.print("t", ct.load(x, 0, 2))
        ct.assert_(ct.load(x, 0, ()) > 0, "not positive")

    with instead_of_interpreter():
        ct.launch(None, (1,), k, (np.ones(2, np.int32),))
        with pytest.raises(ct.TileAssertionError, match="not positive"):
            ct.launch(None, (1,), k, (np.zeros(2, np.int32),))
        frozen = np.ones(2, np.int32)
        frozen.flags.writeable = False
        with pytest.raises(TypeError, match="`x`.*read-only"):
            ct.launch(None, (1,), stores, (frozen,))
    assert capsys.readouterr().out == "t [1, 1]\n"


@ct.kernel
def stores(x):
    ct.store(x, 0, 1)


def test_lists_and_slices():
    @ct.kernel
    def k(xs, out):
        for i in range(len(xs)):
            ct.store(out, i, ct.sum(ct.load(xs[i].slice(0, i, 4), 0, 4, padding_mode=ct.PaddingMode.ZERO)))

    xs, out = [np.arange(4.0) + 10 * i for i in range(3)], np.zeros(3)
    with instead_of_interpreter():
        ct.launch(None, (1,), k, (xs, out))
    assert out.tolist() == [6, 36, 45]


def test_nothing_need_order_the_table_of_a_list():
    """A release between two reads of it: nobody writes the table."""
    @ct.kernel
    def k(xs, n):
        ct.atomic_add(xs[0], 0, 1)
        ct.atomic_add(n, 0, 1)
        ct.atomic_add(xs[1], 0, 1)

    xs, n = [np.zeros(1, np.int32) for _ in range(2)], np.zeros(1, np.int32)
    with instead_of_interpreter(ordered=True):
        ct.launch(None, (1,), k, (xs, n))
    assert [a.item() for a in (*xs, n)] == [1, 1, 1]


# ------------------------------------------------------------------ without checks of bounds


def test_programs_without_checks_give_the_same_bits():
    """Of generated programs, those whose launch may do without checks; a promise that breaks is an EvaluationError."""
    ran = 0
    for seed in range(60):
        program = generate(seed)
        with loaded(program) as modules:
            module = modules("cutile")
            try:
                usual, unchecked = (results(program, module, unchecked=u) for u in (False, True))
            except ct.TileUnsupportedFeatureError:
                continue
            ran += unchecked.variant
            assert usual.bits == unchecked.bits, seed
    assert ran > 5


def results(program, module, unchecked):
    args, variants = module.arguments(), []
    with instead_of_interpreter(unchecked=unchecked, tell=variants.append):
        ct.launch(None, program.grid, module.kernel, tuple(args))
    arrays = [a for x in args for a in (x if isinstance(x, list | tuple) else [x]) if isinstance(a, np.ndarray)]
    return SimpleNamespace(bits=[a.tobytes() for a in arrays], variant=any(variants))
