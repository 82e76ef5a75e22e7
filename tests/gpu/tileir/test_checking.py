"""What the builder checks by rule: values of attributes, and which version of bytecode has a type or a hint."""

import numpy as np
import pytest

from cutile.errors import TileUnsupportedFeatureError
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.checking import check_hints, check_type, takes_hint, type_since, wrong_value
from cutile.gpu.tileir.module import Bounded, Constant, DivBy
from cutile.gpu.tileir.operations import ENUMS, HINT_SINCE, Attr

RIGHT = {
    "unit": True, "bool": False, "int": 3, "str": "x", "i32s": (1, 2), "bools": (True, False),
    "dense": Constant(np.int32(1).tobytes()), "predicate": DivBy(16), "identities": (), "hints": {},
}


@pytest.mark.parametrize("kind", RIGHT)
def test_values_of_each_kind(kind):
    attr = Attr("a", kind)
    assert wrong_value(attr, RIGHT[kind]) is None
    for other in (v for k, v in RIGHT.items() if type(v) is not type(RIGHT[kind])):
        assert wrong_value(attr, other), other


def test_a_bool_is_no_int():
    assert wrong_value(Attr("a", "int"), True) and wrong_value(Attr("a", "i32s"), (1, True))
    assert wrong_value(Attr("a", "bools"), (1, 0))


@pytest.mark.parametrize("kind", ENUMS)
def test_members_of_enumerations(kind):
    attr = Attr("a", kind)
    assert all(wrong_value(attr, member) is None for member in ENUMS[kind])
    assert wrong_value(attr, "no such member").startswith("it can be one of ")


ARRAY = ty.TensorView(ty.e8m0, (8,), (1,))


@pytest.mark.parametrize("t, since", [
    (ty.token, (13, 1)), (ty.Tile(ty.f32, (4,)), (13, 1)), (ty.ptr(ty.e2m1), (13, 3)), (ty.Tile(ty.e5m3), (13, 4)),
    (ARRAY, (13, 2)), (ty.PartitionView((4,), ARRAY), (13, 2)), (ty.StridedView((4,), (1,), ARRAY), (13, 3)),
    (ty.GatherScatterView((4,), ty.TensorView(ty.e5m3, (8,), (1,)), 0), (13, 4)),
])
def test_a_type_is_as_new_as_its_newest_part(t, since):
    assert type_since(t) == since
    check_type(since, t)
    if since > (13, 1):
        with pytest.raises(TileUnsupportedFeatureError, match=f"needs Tile IR bytecode {since[0]}.{since[1]} or newer"):
            check_type((since[0], since[1] - 1), t)


def test_hints_of_newer_versions():
    for name in ("sm_90", "num_cta_in_cga"):
        assert takes_hint((13, 4), name)
    check_hints((13, 4), {"sm_90": {"num_cta_in_cga": 2}})
    old = next(v for v in ty.VERSIONS)
    assert not takes_hint(old, "a name of a user's own")
    with pytest.raises(TileUnsupportedFeatureError, match="among hints"):
        check_hints(old, {"sm_90": {"a name of a user's own": 2}})


NAMES = {  # by the version that accepts them first
    (13, 1): "sm_80 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121 num_cta_in_cga occupancy allow_tma latency",
    (13, 2): "sm_86 sm_87 sm_88 sm_89 sm_107",
    (13, 3): "sm_130 default anything",
}


@pytest.mark.parametrize("version", ty.VERSIONS)
def test_names_of_hints(version):
    for since, names in NAMES.items():
        assert {takes_hint(version, name) for name in names.split()} == {version >= since}
    assert {v for names in NAMES.values() for v in names.split()} >= HINT_SINCE.keys()
    assert set(HINT_SINCE.values()) <= set(ty.VERSIONS)


def test_predicates_of_every_class():
    attr = Attr("a", "predicate")
    assert wrong_value(attr, Bounded(0, None)) is None and wrong_value(attr, 16)
