"""Every pair of dtypes that astype has, in every mode; bits and bytes."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.dtypes import NUMERIC, bool_
from cutile.errors import TileError
from cutile.gpu.tileir.rules.convert import replacement
from cutile.gpu.tileir.types import f32, i8, tf32
from cutile.ops.convert import check_cast
from cutile.types import RoundingMode
from tests.gpu.tileir.rules.small_kernels import Case, assemble, attributes, names, refused, sampled, tile
from tests.gpu.tileir.tool import needs_tool
from tests.tileir_eval.bytecode_reader import SCALARS

F32, F64, F16, I8, I32, U8, U64, B1, TF32 = (tile(d) for d in (
    ct.float32, ct.float64, ct.float16, ct.int8, ct.int32, ct.uint8, ct.uint64, ct.bool_, ct.tfloat32))
MODES = (None, RoundingMode.RZ, RoundingMode.RM, RoundingMode.RP, RoundingMode.RA)


LACKING = (RoundingMode.RM, RoundingMode.RP, RoundingMode.RA)  # from bfloat16 to float16


def casting(dst, mode):
    return lambda x: x.astype(dst, rounding_mode=mode)


def possible(src, dst, mode) -> bool:
    try:
        check_cast("astype", src, dst, mode)
    except TileError:
        return False
    return src is not dst and not (src is ct.bfloat16 and dst is ct.float16 and mode in LACKING)


CASTS: list[Case] = [(casting(dst, mode), (tile(src),))
                     for src in NUMERIC for dst in NUMERIC for mode in MODES if possible(src, dst, mode)]


def test_what_stands_for_formats_without_arithmetic():
    """Bytes for floats of 8 bits, which all formats beyond float16 have, and float32 for tfloat32."""
    for t in SCALARS:
        want = f32 if t is tf32 else i8 if t.kind == "f" and t.bits == 8 else t
        assert replacement(t) is want, t


def bits(dst):
    return lambda x: ct.bitcast(x, dst)


def packed(x):
    return ct.pack_to_bytes(x)


def unpacked(dst):
    return lambda x: ct.unpack_from_bytes(x, dst)


WITH_BITS = [d for d in NUMERIC if d is not bool_]
BITS: list[Case] = [(bits(e), (tile(d),)) for d in WITH_BITS for e in WITH_BITS
                    if d is not e and d.bitwidth == e.bitwidth]
BYTES: list[Case] = [(packed, (tile(d, 4, 8),)) for d in WITH_BITS] + [(unpacked(d), (tile(ct.uint8, 32),))
                                                                        for d in WITH_BITS]


def test_there_are_casts():
    assert len(CASTS) > len(NUMERIC) ** 2 and len(BITS) > 20


@needs_tool
@sampled(CASTS)
def test_casts(target, cases):
    assemble(cases, target)


@needs_tool
@sampled(BITS + BYTES)
def test_bits(target, cases):
    assemble(cases, target)


def test_operations():
    def of(src, dst):
        return names(casting(dst, None), src)

    assert of(I32, ct.int8) == ["trunci"] and of(I32, ct.uint32) == [] and of(I32, ct.float32) == ["itof"]
    assert of(I32, ct.float8_e5m2) == ["itof", "ftof"] and of(F32, ct.int16) == ["ftoi"]
    assert of(F32, ct.float16) == ["ftof"] and of(tile(ct.float8_e5m2), ct.int32) == ["ftof", "ftoi"]
    for src, sign in ((I8, "signed"), (U8, "unsigned"), (B1, "unsigned")):
        assert attributes("exti", casting(ct.int64, None), src)[-1] == {"signedness": sign}
    assert attributes("ftoi", casting(ct.uint8, None), F32)[0]["signedness"] == "unsigned"
    assert attributes("itof", casting(ct.float64, None), U64)[0]["signedness"] == "unsigned"
    away = casting(ct.float16, RoundingMode.RA)
    assert attributes("ftof", away, tile(ct.float8_e5m2))[0]["rounding_mode"] == "nearest_away"


def test_casts_that_tile_ir_lacks_are_refused():
    for mode in LACKING:
        with pytest.raises(ct.TileUnsupportedFeatureError, match="no cast of bfloat16 to float16"):
            names(casting(ct.float16, mode), tile(ct.bfloat16))


def test_truth():
    (found,) = attributes("cmpf", casting(bool_, None), F32)
    assert found == {"comparison_predicate": "not_equal", "comparison_ordering": "unordered"}  # NaN is true
    assert attributes("cmpi", casting(bool_, None), I32)[0]["comparison_predicate"] == "not_equal"


def test_tfloat32_has_the_bits_of_a_float32():
    assert names(bits(ct.tfloat32), F32) == ["bitcast", "andi", "bitcast", "ftof"]
    assert names(bits(ct.int32), F32) == ["bitcast"] and names(bits(ct.uint32), I32) == []


def test_bytes():
    assert names(packed, tile(ct.uint8, 4, 8)) == ["reshape"]
    assert names(packed, tile(ct.float16, 4, 8)) == ["reshape", "pack"]
    assert names(unpacked(ct.float16), tile(ct.uint8, 32)) == ["unpack"]


def test_what_older_versions_lack():
    refused("rounding mode other than RN", "13.3", casting(ct.tfloat32, RoundingMode.RZ), F64)
    refused("float8_e8m0fnu", "13.2", casting(ct.float8_e8m0fnu, RoundingMode.RZ), F32, target="sm_100")
    refused("pack and unpack", "13.2", packed, F16)
    refused("pack and unpack", "13.2", unpacked(ct.float32), tile(ct.uint8, 32))
