"""Names of kernels: symbols from signatures, and back."""

import math

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance.harness.api import clause, ct, needs
from conformance.harness.export import V1, V2, array, arrays, c, scalar, signature

pytestmark = needs("export")
inf, nan = math.inf, math.nan

CODES = {"bool_": "b8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16",
         "int32": "i32", "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
         "tfloat32": "tf32", "float8_e4m3fn": "f8m3fn", "float8_e5m2": "f8m2", "float8_e8m0fnu": "f8m0fnu"}


def groups(*names, dtype=None):
    return array(dtype, alias_groups=names)


def tables():
    return arrays(array(ndim=2, alias_groups=("e",)), ("s",), True)


WORKED = [
    pytest.param([], V1, "k_Kt1", marks=clause("MNG-7")),
    pytest.param([array(ndim=2)], V1, "k_Kt1_A2f32", marks=clause("MNG-8", "MNG-4.default")),
    pytest.param([array(ndim=2, stride_lower_bound_incl=0)], V1, "k_Kt1_A2f32_3l0", marks=clause("MNG-9")),
    pytest.param([array(ndim=2, stride_lower_bound_incl=0, stride_constant=(None, 1))], V1, "k_Kt1_A2f32_1l0_2t1",
                 marks=clause("MNG-10", "MNG-4.order")),
    pytest.param([array(ndim=2, stride_constant=(-4, 1))], V1, "k_Kt1_A2f32_1t_4_2t1",
                 marks=clause("MNG-11", "MNG-3.negative")),
    pytest.param([array(ct.float16, 3, shape_divisible_by=(16, 1, 16), stride_divisible_by=(8, 8, 1),
                        stride_constant=(None, None, 1), base_addr_divisible_by=16)], V1,
                 "k_Kt1_A3f16_3v8_4t1_5i16_p16", marks=clause("MNG-12", "MNG-4.order", "MNG-4.default")),
    pytest.param([array(ct.float16, 2, shape_constant=(None, 128), stride_constant=(128, 1))], V2,
                 "k_Kt2_A2f16_1t128_2s128t1", marks=clause("MNG-13", "MNG-3.decimal")),
    pytest.param([groups("x"), groups("x", "y"), groups("y", dtype=ct.int8)], V1,
                 "k_Kt1_A1f32_g0_A1f32_g0g1_A1i8_g1", marks=clause("MNG-14", "MNG-5.first")),
    pytest.param([array(index_dtype=ct.int64)], V1, "k_Kt1_A1f32_w", marks=clause("MNG-15.int64")),
    pytest.param([array(index_dtype=ct.uint32)], V1, "k_Kt1_A1f32_u", marks=clause("MNG-15.uint32")),
    pytest.param([array(may_alias_internally=True)], V1, "k_Kt1_A1f32_i", marks=clause("MNG-15.internal")),
    pytest.param([arrays(array(ndim=2))], V1, "k_Kt1_LA2f32", marks=clause("MNG-16.list")),
    pytest.param([tables(), tables()], V1, "k_Kt1_Lg0iA2f32_g1_Lg0iA2f32_g1",
                 marks=clause("MNG-16.groups", "MNG-5.table")),
    pytest.param([scalar(getattr(ct, n)) for n in ("int32", "float64", "bool_", "bfloat16", "float8_e4m3fn",
                                                   "tfloat32")], V1,
                 "k_Kt1_Si32_Sf64_Sb8_Sbf16_Sf8m3fn_Stf32", marks=clause("MNG-17")),
    pytest.param([5, -5, True, False, 1.5, -0.0, nan, inf], V1,
                 "k_Kt1_I5_I_5_B1_B0_F3ff8000000000000_F8000000000000000_F7ff8000000000000_F7ff0000000000000",
                 marks=clause("MNG-18", "MNG-3.negative")),
    pytest.param([(1, (2.0, True), ())], V2, "k_Kt2_T3I1T2F4000000000000000B1T0", marks=clause("MNG-19")),
    pytest.param([(scalar(ct.int32), array())], V2, "k_Kt2_T2Si32A1f32", marks=clause("MNG-20")),
    pytest.param([array(ndim=11, stride_lower_bound_incl=0, stride_divisible_by=4)], V1, "k_Kt1_A11f32_7ffv4l0",
                 marks=clause("MNG-21", "MNG-4.mask")),
    # More symbols of the grammar.
    pytest.param([array(ndim=0)], V1, "k_Kt1_A0f32", marks=clause("MNG-4.mask")),
    pytest.param([array(ndim=2, stride_lower_bound_incl=(-3, 5))], V1, "k_Kt1_A2f32_1l_3_2l5",
                 marks=clause("MNG-4.order", "MNG-3.negative")),
    pytest.param([array(ndim=3, shape_constant=(4, None, 4), stride_constant=(0, 4, 0))], V2,
                 "k_Kt2_A3f32_2t4_5s4t0", marks=clause("MNG-4.mask", "MNG-4.order", "MNG-4.letters")),
    pytest.param([array(ndim=2, shape_divisible_by=2, stride_divisible_by=3, stride_lower_bound_incl=0)], V1,
                 "k_Kt1_A2f32_3i2v3l0", marks=clause("MNG-4.letters")),
    pytest.param([array(ndim=1, shape_constant=8, stride_divisible_by=3, stride_lower_bound_incl=1)], V2,
                 "k_Kt2_A1f32_1s8v3l1", marks=clause("MNG-4.letters")),
    pytest.param([array(ndim=2, shape_divisible_by=(2, 4), stride_divisible_by=(4, 2))], V1,
                 "k_Kt1_A2f32_1i2v4_2i4v2", marks=clause("MNG-4.mask")),
    pytest.param([array(ndim=2, shape_constant=0)], V2, "k_Kt2_A2f32_3s0", marks=clause("MNG-4.default")),
    pytest.param([array(shape_divisible_by=16, base_addr_divisible_by=32, alias_groups=("a", "b"),
                        may_alias_internally=True, index_dtype=ct.int64), groups("a", "b")], V1,
                 "k_Kt1_A1f32_1i16_p32g0g1iw_A1f32_g0g1", marks=clause("MNG-4.extras")),
    pytest.param([groups("b"), groups("a"), groups("b", "a")], V1, "k_Kt1_A1f32_g0_A1f32_g1_A1f32_g0g1",
                 marks=clause("MNG-5.first")),
    pytest.param([(groups("b"), (groups("a"), 1)), groups("b", "a")], V2, "k_Kt2_T2A1f32_g0T2A1f32_g1I1_A1f32_g0g1",
                 marks=clause("MNG-5.tuple")),
    pytest.param([groups(*map(str, range(17))), groups("10", "16"), groups(*map(str, range(17)))], V1,
                 "k_Kt1_A1f32_g0g1g2g3g4g5g6g7g8g9gagbgcgdgegfg10_A1f32_gag10"
                 "_A1f32_g0g1g2g3g4g5g6g7g8g9gagbgcgdgegfg10", marks=clause("MNG-5.hex")),
    pytest.param([arrays(array(index_dtype=ct.int64, base_addr_divisible_by=16)), 12345678901234567890], V1,
                 "k_Kt1_LA1f32_p16w_I12345678901234567890", marks=clause("MNG-3.decimal", "MNG-4.extras")),
    pytest.param([((), ((),)), -0.0], V2, "k_Kt2_T2T0T1T0_F8000000000000000", marks=clause("MNG-1.form")),
]


@pytest.mark.parametrize("given_, convention, symbol", WORKED, ids=lambda v: v if isinstance(v, str) else "")
@clause("MNG-1.form", "MNG-2.back", "MNG-2.again")
def test_worked_examples(given_, convention, symbol):
    s = signature(*given_, convention=convention)
    assert c.mangle_kernel_name("k", s) == symbol
    name, back = c.demangle_kernel_name(symbol)
    assert (name, back.symbol, back.calling_convention) == ("k", symbol, convention)
    assert c.mangle_kernel_name("k", back) == symbol


@clause("MNG-1.last", "MNG-7")
@pytest.mark.parametrize("name", ["my_K_kernel_K", "k", "_K", "a_Kt1", "", "kernel_Kt2_A1f32"])
def test_names(name):
    symbol = c.mangle_kernel_name(name, signature(1))
    assert symbol == f"{name}_Kt2_I1" and c.demangle_kernel_name(symbol)[0] == name
    assert c.mangle_kernel_name("my_K_kernel_K", signature()) == "my_K_kernel_K_Kt2"


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"MNG-6.{n}")) for n in CODES])
def test_dtypes(name):
    dtype, code = getattr(ct, name), CODES[name]
    symbol = f"k_Kt1_S{code}_A2{code}"
    assert c.mangle_kernel_name("k", signature(scalar(dtype), array(dtype, 2), convention=V1)) == symbol
    assert c.demangle_kernel_name(symbol)[1].parameters == (scalar(dtype), array(dtype, 2))


@clause("MNG-6.none")
@pytest.mark.parametrize("name", ["float4_e2m1fn", "float8_e5m3fnu"])
def test_dtypes_without_a_code(name):
    dtype = getattr(ct, name)
    for p in (scalar(dtype), array(dtype), arrays(array(dtype)), (1, scalar(dtype))):
        with pytest.raises(ValueError):
            c.mangle_kernel_name("k", signature(p))


@clause("MNG-2.groups")
def test_groups_come_back_numbered():
    parameters = c.demangle_kernel_name("k_Kt2_A1f32_g0_T2A1f32_g0g1LA1i8_g1")[1].parameters
    assert parameters[0].alias_groups == ("group0",)
    assert parameters[1].items[0].alias_groups == ("group0", "group1")
    assert parameters[1].items[1].element.alias_groups == ("group1",)


MALFORMED = {
    "MNG-2.malformed": """
        k k_K kernel_ k_Kt k_Kt1_ k_Kt1__ k_Kt1_Q k_Kt1_A k_Kt1_A1 k_Kt1_A1f k_Kt1_Af32 k_Kt1_A1f32x k_Kt1_A1f32_
        k_Kt1_A1f32_1 k_Kt1_A1f32_1v k_Kt1_A1f32_1z4 k_Kt1_A1f32_v4 k_Kt1_A1f32_4t1 k_Kt1_A0f32_1t1 k_Kt1_A1f32_p
        k_Kt1_A1f32_g k_Kt1_A1f32_wi k_Kt1_A1f32_uw k_Kt1_A1f32_1t1v4 k_Kt1_A1f32_1l0v4 k_Kt1_A-1f32 k_Kt1_Sf4 k_Kt1_S
        k_Kt1_Sf32f32 k_Kt1_B k_Kt1_B2 k_Kt1_B10 k_Kt1_I k_Kt1_I__1 k_Kt1_I-1 k_Kt1_I1.5 k_Kt1_Ix k_Kt1_F k_Kt1_F12
        k_Kt1_F3FF8000000000000 k_Kt1_F3ff80000000000000 k_Kt1_L k_Kt1_Lf32 k_Kt1_LiSf32 k_Kt1_LLA1f32 k_Kt2_T
        k_Kt2_T2I1 k_Kt2_T1I1I2 k_Kt2_T-1 k_Kt1_I1_ k_Kt1I1""",
    "MNG-2.convention": "k_Kt3 k_Kt0_I1 k_KT1 k_Kt11 k_Kt1_T1I1 k_Kt1_T0 k_Kt1_A1f32_1s3 k_Kt1_LA1f32_1s3",
    "MNG-2.alias": "k_Kt1_A1f32_g0 k_Kt1_A1f32_g0g0_A1f32_g0 k_Kt1_A1f32_g0_A1f32_g1 k_Kt1_A1f32_g0_Lg0A1f32",
    "MNG-2.usual": """
        k_Kt1_A2f32_2v4_1l0 k_Kt1_A1f32_1v4_1l0 k_Kt1_A1f32_0v4 k_Kt1_A1f32_1v1 k_Kt1_A1f32_1i1 k_Kt1_A1f32_p1
        k_Kt1_A1f32_p0 k_Kt1_A1f32_1v0 k_Kt2_A1f32_1s_3""",
}


@pytest.mark.parametrize("symbol", [pytest.param(s, marks=clause(i)) for i, all_ in MALFORMED.items()
                                    for s in all_.split()])
def test_what_is_no_symbol(symbol):
    with pytest.raises(ValueError):
        c.demangle_kernel_name(symbol)


@clause("MNG-2.malformed")
@pytest.mark.parametrize("symbol", ["", " ", "k_Kt1 ", " k", "k_Kt1_I\u0663", "k_Kt1_I1\n"], ids=ascii)
def test_strings_that_are_no_symbols(symbol):
    with pytest.raises(ValueError):
        c.demangle_kernel_name(symbol)


# ------------------------------------------------------------------ any signature

RUNS = settings(max_examples=120, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
                suppress_health_check=[HealthCheck.too_slow])
MAYBE = st.one_of(st.none(), st.integers(-9, 20))


@st.composite
def some_arrays(draw):
    """Any array without alias groups, and without what a constant makes redundant."""
    n = draw(st.integers(0, 9))

    def each(s):
        return draw(st.lists(s, min_size=n, max_size=n))

    index = draw(st.sampled_from([ct.int32, ct.uint32, ct.int64]))
    steps = st.one_of(st.none(), st.integers(0, 20)) if index == ct.uint32 else MAYBE
    shape, stride = each(st.one_of(st.none(), st.integers(0, 9))), each(steps)

    def unless(constants, values, default):
        return [v if k is None else default for k, v in zip(constants, values)]

    return array(getattr(ct, draw(st.sampled_from(sorted(CODES)))), n, shape_constant=shape, stride_constant=stride,
                 stride_lower_bound_incl=unless(stride, each(MAYBE), None),
                 shape_divisible_by=unless(shape, each(st.integers(1, 16)), 1),
                 stride_divisible_by=unless(stride, each(st.integers(1, 16)), 1),
                 base_addr_divisible_by=draw(st.integers(1, 64)), may_alias_internally=draw(st.booleans()),
                 index_dtype=index)


LISTS = st.builds(lambda element, alias: arrays(element, (), alias), some_arrays(), st.booleans())
LEAVES = st.one_of(some_arrays(), LISTS, st.booleans(), st.integers(-2**70, 2**70), st.floats(),
                   st.sampled_from(sorted(CODES)).map(lambda n: scalar(getattr(ct, n))))
ANY = st.recursive(LEAVES, lambda s: st.lists(s, max_size=3).map(tuple), max_leaves=6)
WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)


@clause("MNG-2.back", "MNG-2.again", "SIG-2.mangled")
@RUNS
@given(name=WORDS, parameters=st.lists(ANY, max_size=4))
def test_every_signature_comes_back(name, parameters):
    s = signature(*parameters).with_mangled_symbol(name)
    back = c.demangle_kernel_name(s.symbol)
    assert back == (name, s) and c.mangle_kernel_name(*back) == s.symbol


NAMED = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), min_size=1, max_size=5)


def numbered(named):
    """Each parameter's groups in the order of their numbers, which follow the first appearance."""
    numbers = {g: k for k, g in enumerate(dict.fromkeys(g for names in named for g in names))}
    return [sorted(names, key=numbers.get) for names in named], numbers


def of_groups(named):
    return c.mangle_kernel_name("k", signature(*[groups(*map(str, names)) for names in named]))


@clause("MNG-5.first", "MNG-5.hex", "MNG-2.groups")
@RUNS
@given(NAMED)
def test_numbers_of_groups(named):
    named, numbers = numbered(named * 2)  # each group is named at least twice
    parts = ["A1f32" + "_" * bool(names) + "".join(f"g{numbers[g]:x}" for g in names) for names in named]
    symbol = of_groups(named)
    assert symbol == "_".join(["k_Kt2", *parts])
    back = [p.alias_groups for p in c.demangle_kernel_name(symbol)[1].parameters]
    assert back == [tuple(f"group{numbers[g]}" for g in names) for names in named]


@clause("MNG-5.ascending")
@RUNS
@given(NAMED)
def test_the_order_of_groups_in_a_parameter(named):
    assert of_groups([*named, *[names[::-1] for names in named]]) == of_groups(named * 2)


@clause("MNG-2.malformed", "MNG-2.usual")
@RUNS
@given(parameters=st.lists(ANY, min_size=1, max_size=3), data=st.data())
def test_a_changed_symbol_is_another_or_none(parameters, data):
    """With one character changed, removed or added: ValueError, or the symbol of another signature."""
    symbol = c.mangle_kernel_name("k", signature(*parameters))
    at = data.draw(st.integers(3, len(symbol) - 1))
    other = data.draw(st.sampled_from("0123456789abcdefgilpstuvwABFILST_ x"))
    changed = data.draw(st.sampled_from([symbol[:at] + other + symbol[at + 1:], symbol[:at] + symbol[at + 1:],
                                         symbol[:at] + other + symbol[at:]]))
    try:
        name, back = c.demangle_kernel_name(changed)
    except ValueError:
        return
    assert c.mangle_kernel_name(name, back) == changed
