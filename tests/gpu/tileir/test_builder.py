import numpy as np
import pytest

from cutile.errors import TileInternalError, TileUnsupportedFeatureError
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import DivBy, Module
from cutile.gpu.tileir.types import f32, i1, i32, ptr, tile
from cutile.spans import Span
from tests.gpu.tileir.samples import SAMPLES, Scene, add

LOWERING_REFUSES = ("ftof.rz",)  # which casts may round how is not the builder's to know
F, N = tile(f32, (8,)), tile(i32, (8,))
LOC = Span("k.py", 3, 4, 3, 9, "k")


@pytest.fixture
def s():
    return Scene(Module("13.4"))


@pytest.mark.parametrize("make, text", [
    (lambda s: s.op("addq", []), "no operation 'addq'"),
    (lambda s: s.op("addf", [s.of(F)]), "addf needs its operand rhs"),
    (lambda s: s.op("addf", [s.of(F)] * 3), "addf takes 2 operands, not 3"),
    (lambda s: s.op("addf", [s.of(F), 1.0]), "operand rhs of addf is 1.0, which is no value"),
    (lambda s: s.op("addf", [s.of(F), s.of(N)]), "differ in type: tile<8xf32>, tile<8xi32>"),
    (lambda s: s.op("addf", [s.of(F)] * 2, fast=True), "addf has no attribute 'fast'"),
    (lambda s: s.op("addf", [s.of(F)] * 2, rounding_mode="up"), "it can be one of nearest_even, zero"),
    (lambda s: s.op("addf", [s.of(F)] * 2, flush_to_zero=1), "it must be of kind unit"),
    (lambda s: s.op("maxi", [s.of(N)] * 2), "maxi needs its attribute signedness"),
    (lambda s: s.op("cat", [s.of(N)] * 2, dim=True, result=N), "it must be of kind int"),
    (lambda s: s.op("permute", [s.of(F)], permutation=(0.0,), result=F), "it must be a tuple of int"),
    (lambda s: s.op("reshape", [s.of(F)]), "reshape needs the type of its result"),
    (lambda s: s.op("assert", [s.of(tile(i1))], message="m", result=F), "assert has no result"),
    (lambda s: s.op("gdc_wait_tko", [s.op("make_token")], token=s.op("make_token")), "its operand token twice"),
    (lambda s: s.b.tensor_view(s.base, ty.TensorView(f32, (None,), (1,)), [], []), "needs 1 sizes, not 0"),
    (lambda s: s.b.reduce([s.of(F)], 0, []), "takes as many identities"),
    (lambda s: (s.op("return"), s.op("make_token")), "make_token after return"),
    (lambda s: s.module.entry("k", []), "an entry named 'k' already"),
    (lambda s: s.module.entry("k2", [F]), "takes numbers and pointers, not tile<8xf32>"),
])
def test_misuse_is_an_internal_error(s, make, text):
    with pytest.raises(TileInternalError, match=text) as e:
        make(s)
    assert type(e.value) is TileInternalError


def test_errors_point_at_the_current_source(s):
    with s.b.at(LOC), pytest.raises(TileInternalError) as e:
        s.op("addf", [])
    assert e.value.loc == LOC
    assert s.b.loc is None


@pytest.mark.parametrize("name", [
    n for n, (since, _) in SAMPLES.items() if since > "13.1" and n not in LOWERING_REFUSES])
def test_a_sample_is_refused_in_the_version_before_its_own(name):
    since = SAMPLES[name][0]
    older = f"13.{int(since[3:]) - 1}"
    with pytest.raises(TileUnsupportedFeatureError, match=f"needs Tile IR bytecode {since} or newer"):
        add(Module(older), name)


@pytest.mark.parametrize("element, since", [(ty.e8m0, "13.2"), (ty.e2m1, "13.3"), (ty.e5m3, "13.4")])
def test_a_type_is_refused_in_the_version_before_its_own(element, since):
    older = f"13.{int(since[3:]) - 1}"
    Module(since).entry("k", [tile(ptr(element))])
    with pytest.raises(TileUnsupportedFeatureError, match=f"type .*{element}.* needs Tile IR bytecode {since}"):
        Module(older).entry("k", [tile(ptr(element))])


@pytest.mark.parametrize("hints, since", [
    ({"default": {"occupancy": 2}}, "13.3"), ({"sm_89": {"occupancy": 2}}, "13.2"),
    ({"sm_90": {"num_worker_warps_per_cta": 4}}, "13.3"),
])
def test_a_hint_is_refused_in_the_version_before_its_own(hints, since):
    older = f"13.{int(since[3:]) - 1}"
    Module(since).entry("k", [], hints=hints)
    with pytest.raises(TileUnsupportedFeatureError, match=f"among hints needs Tile IR bytecode {since}"):
        Module(older).entry("k", [], hints=hints)


def test_a_version_that_does_not_exist():
    with pytest.raises(ValueError, match=r"'12\.0' is not one of 13\.1"):
        Module("12.0")


def test_types_of_results_follow_from_the_operands(s):
    assert s.op("cmpi", [s.of(N)] * 2, comparison_predicate="equal", signedness="signed").type == tile(i1, (8,))
    assert s.op("load_ptr_tko", [s.pointers])[0].type == F
    value, token = s.op("load_view_tko", [s.partition, s.zeros])
    assert (value.type, token.type) == (tile(f32, (4, 8)), ty.token)
    assert [v.type for v in s.op("get_tile_block_id")] == [tile(i32)] * 3
    assert s.op("select", [s.of(tile(i1, (8,)), True), s.of(F), s.of(F)]).type == F
    assert s.b.assume(s.base, DivBy(8)).type == s.base.type
    with s.b.reduce([s.of(tile(f32, (4, 8)))], 0, [0.0]) as r:
        assert [a.type for a in r.arguments] == [tile(f32)] * 2
        s.op("yield", [[r.arguments[0]]])
    assert [v.type for v in r.results] == [F]


def test_a_result_that_a_version_lacks_is_left_out():
    older, newer = Scene(Module("13.1")), Scene(Module("13.2"))
    assert older.op("print_tko", [[]], str="x") is None
    assert newer.op("print_tko", [[]], str="x").type is ty.token


def test_values_of_a_region_stay_inside(s):
    with s.b.if_(s.of(tile(i1), True)) as branch, branch.then:
        inner = s.of(F)
        s.op("absf", [inner])
        s.op("yield")
    with pytest.raises(TileInternalError, match="belongs to a region that is closed"):
        s.op("absf", [inner])


def test_a_region_needs_a_terminator(s):
    with pytest.raises(TileInternalError, match="a region of for ends without a terminator"):
        with s.b.for_(s.zeros[0], s.n, s.n):
            s.op("make_token")


def test_a_branch_without_code_yields_nothing(s):
    with s.b.if_(s.of(tile(i1), True)) as branch, branch.then:
        s.op("return")
    made = s.b.block.ops[-1]
    assert [[o.spec.name for o in r.ops] for r in made.regions] == [["return"], ["yield"]]
    with pytest.raises(TileInternalError, match="a branch of an if with results is not written"):
        with s.b.if_(s.of(tile(i1), True), [F]) as branch, branch.then:
            s.op("yield", [[s.of(F)]])


def test_an_error_inside_a_region_comes_out_and_leaves_the_builder_outside(s):
    outside = s.b.block
    with pytest.raises(ZeroDivisionError):
        with s.b.if_(s.of(tile(i1), True)) as branch, branch.then:
            1 / 0  # noqa: B018
    assert s.b.block is outside


def test_nothing_is_promised_of_bounds_unless_asked(s):
    s.op("load_view_tko", [s.partition, s.zeros])
    assert s.b.block.ops[-1].attrs["inbounds"] == (False, False)


def test_constant_data_must_fit(s):
    with pytest.raises(ValueError, match=r"tile<8xf32> cannot have data of shape \(4,\)"):
        s.of(F, np.zeros(4))
    with pytest.raises(ValueError, match="cannot be written"):
        s.of(tile(ptr(f32)), 0)


def test_the_head_of_the_module_is_true():
    """The docstring's examples, run."""
    m = Module("13.4")
    f = m.entry("kernel", [tile(ptr(f32)), tile(i32)], hints={"sm_90": {"num_cta_in_cga": 2}}, loc=LOC)
    p, n = f.arguments
    b = f.body
    x, _, _ = b.op("get_tile_block_id")
    c = b.constant(tile(f32, (64,)), 1.0)
    b.op("addf", [c, c], flush_to_zero=True)
    with b.for_(x, n, n, [x], unsigned=False) as loop:
        i, acc = loop.arguments
        b.op("continue", [[b.op("addi", [acc, i])]])
    assert loop.results[0].type == tile(i32)
    b.op("return")
    assert m.to_bytes().startswith(b"\x7fTileIR\0\x0d\x04")
