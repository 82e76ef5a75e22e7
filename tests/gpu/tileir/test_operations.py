from concurrent.futures import ThreadPoolExecutor

import pytest

from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.operations import ENUM_SINCE, ENUMS, OPS
from tests.gpu.tileir.samples import SAMPLES, bytecode
from tests.gpu.tileir.tool import needs_tool

PRINTED = {"pow": "fpowf"}  # the disassembler's own name
VERSIONS = ("13.1", "13.2", "13.3", "13.4")
# Attributes that a sample gives and the text that the disassembler prints for them, in place.
SAYS = {
    "addf.rz_ftz": "rounding<zero> flush_to_zero",
    "maxf.nan_ftz": "flush_to_zero propagate_nan",
    "exp.approx": "rounding<approx>",
    "divi.floor": "signed rounding<negative_inf>",
    "divi.unsigned": "unsigned",
    "addi.nw": "overflow<no_wrap>",
    "cmpf.une": "cmpf not_equal unordered",
    "cmpi": "cmpi greater_than_or_equal %cst_1_i32, %cst_1_i32_0, unsigned",
    "assert": '"a must be positive"',
    "assume.div_every": "div_by<4, every 4 along 0>",
    "assume.bounded": "bounded<-3, 70000>",
    "assume.lower": "bounded<0, ?>",
    "assume.same": "same_elements<[4]>",
    "cat": "dim = 0",
    "constant.bool": "[true, false, true, true, false, false, false, true]",
    "permute": "[1, 0]",
    "ftoi.saturating": "signed  saturating",
    "ftof.rz": "rounding<zero>",
    "mmaf.fast": "fast_acc",
    "mmai": "signed unsigned",
    "alloca": "num_elem = 64, alignment = 16",
    "print_tko": '"i = %i\\0A", %cst_1_i32',
    "load_ptr_tko.all": "load_ptr_tko acquire device %0, %true, %cst_0_f32 token=%1 "
                        "optimization_hints = <sm_90 = {latency = 3}>",
    "store_ptr_tko.all": "store_ptr_tko release sys %0, %cst_1_f32, %true token=%1",
    "atomic_rmw_tko": "atomic_rmw_tko relaxed device %0, addf, %cst_1_f32, %true token=%1",
    "make_partition_view.mapped": "padding_value = neg_inf, tensor_view<?x64xf32, strides=[64,1]>, dim_map=[1, 0]",
    "make_strided_view": "traversal_strides=[2,4], padding_value = nan",
    "make_gather_scatter_view": "sparse_dim=0",
    "load_view_tko.inbounds": "load_view_tko relaxed device %pview[%cst_0_i32, %cst_0_i32] inbounds = [true, false]",
    "store_view_tko.all": "token = %0 optimization_hints = <default = {allow_tma = false, latency = 2}>",
    "atomic_red_view_tko": "relaxed device %pview[%cst_0_i32, %cst_0_i32], addf",
    "for.unsigned": "for unsigned %loopIdx in (%cst_0_i32 to %arg1, step %cst_1_i32)",
    "reduce": "dim=1 identities=[-0.000000e+00 : f32, -5 : i32]",
    "scan.reverse": "reverse=true identities=[1.000000e+00 : f32]",
    "scan.f64": "identities=[-0.000000e+00]",
    "scan.f16": "identities=[0xFC00 : f16]",
    "scan.i64": "identities=[-1]",
    "get_global.constant": "constant @k_table",
}


def test_each_operation_has_a_sample():
    assert {name.split(".")[0] for name in SAMPLES} == set(OPS)


def test_opcodes_are_distinct():
    assert len({s.opcode for s in OPS.values()}) == len(OPS)


def test_rows_name_known_things():
    for spec in OPS.values():
        assert {spec.since, *(x.since for x in (*spec.operands, *spec.attrs, *spec.results))} <= set(ty.VERSIONS)
        names = [x.name for x in (*spec.operands, *spec.attrs)]
        assert len(names) == len(set(names)), spec.name
        assert all(a.since >= spec.since for a in spec.attrs)
        # A row without groups can only have one operand of any number, at its end.
        assert spec.segmented or not any(o.variadic or o.optional for o in spec.operands[:-1]), spec.name
        # What came later than the operation needs a value to stand for it in older versions.
        assert all(a.flagged or a.default is not None or a.kind == "bools" for a in spec.attrs if a.since > spec.since)
    assert all(value in ENUMS[kind] for kind, value in ENUM_SINCE)


@pytest.mark.parametrize("name, flags", [
    ("load_ptr_tko", ("memory_scope", "optimization_hints", "mask", "paddingValue", "token")),
    ("store_view_tko", ("memory_scope", "optimization_hints", "token")),
    ("maxf", ("propagate_nan", "flush_to_zero")),
    ("addf", ("flush_to_zero",)),
    ("addi", ()),
])
def test_flags_are_attributes_then_operands(name, flags):
    assert OPS[name].flags == flags


@needs_tool
@pytest.mark.parametrize("name", SAMPLES)
def test_the_disassembler_reads_each_sample(name):
    """In the first and in the newest version that has it."""
    for version in {SAMPLES[name][0], VERSIONS[-1]}:
        text = tileiras.disassemble(bytecode(name, version))
        op = name.split(".")[0]
        assert f"{PRINTED.get(op, op)} " in text or f"{op}\n" in text or f"@{op}" in text
        assert SAYS.get(name, "") in text, text


@needs_tool
def test_all_samples_are_read_in_every_version():
    jobs = [(name, v) for name, (since, _) in SAMPLES.items() for v in VERSIONS[1:-1] if v > since]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: tileiras.disassemble(bytecode(*job)), jobs))
