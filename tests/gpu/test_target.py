import pytest

from cutile import dtypes
from cutile.errors import TileUnsupportedFeatureError
from cutile.gpu import target
from cutile.gpu.target import ARCHITECTURES, Target, check, check_version, of_device, parse_target, supports
from cutile.gpu.tileir import types as ty
from cutile.spans import Span

LOC = Span("k.py", 3, 4, 3, 9, "k")


@pytest.mark.parametrize("number", ARCHITECTURES)
def test_known_architectures(number):
    """[ARCH-1.known]"""
    assert parse_target(f"sm_{number}") == Target(number)
    assert str(parse_target(f"sm_{number}a")) == f"sm_{number}a"
    assert parse_target(f"sm_{number}a").tool_name == f"sm_{number}"


@pytest.mark.parametrize("name", ["90", "foo", "sm_", "sm90", "sm_90A", "sm_90ab", "compute_90", "sm_90 ", ""])
def test_what_is_no_name(name):
    """[ARCH-1.names]"""
    with pytest.raises(ValueError, match="is written like 'sm_90'"):
        parse_target(name)


@pytest.mark.parametrize("name", ["sm_75", "sm_130", "sm_101"])
def test_unknown_architectures(name):
    with pytest.raises(TileUnsupportedFeatureError, match=f"{name} is not supported") as e:
        parse_target(name)
    assert "sm_80, sm_86" in e.value.help and "and sm_121" in e.value.help


@pytest.mark.parametrize("major, minor, number", [(8, 0, 80), (8, 6, 86), (9, 0, 90), (10, 1, 100), (12, 1, 121)])
def test_target_of_a_device(major, minor, number):
    assert of_device(major, minor) == Target(number)
    assert Target(90).compute_capability == (9, 0) and Target(121).compute_capability == (12, 1)


@pytest.mark.parametrize("major, minor", [(7, 5), (13, 0)])
def test_a_device_without_target(major, minor):
    with pytest.raises(TileUnsupportedFeatureError, match=f"compute capability {major}.{minor}"):
        of_device(major, minor)


@pytest.mark.parametrize("dtype, first, last_without", [
    (dtypes.float8_e4m3fn, 90, 89), (dtypes.float8_e5m2, 90, 89), (dtypes.float8_e8m0fnu, 100, 90),
    (dtypes.float4_e2m1fn, 100, 90), (dtypes.float8_e5m3fnu, 107, 103),
])
def test_dtypes_by_architecture(dtype, first, last_without):
    """[ARCH-2.*]"""
    check(Target(first), dtype)
    with pytest.raises(TileUnsupportedFeatureError, match=f"dtype {dtype.name} is not supported on sm_") as e:
        check(Target(last_without), dtype, LOC)
    assert e.value.loc == LOC and f"sm_{first}" in e.value.help and f"sm_{last_without}" not in e.value.help


def test_what_is_not_listed_is_everywhere():
    assert all(supports(Target(n), dtypes.float64) and supports(Target(n), "atan2") for n in ARCHITECTURES)


def test_without_a_target_nothing_is_checked():
    check(None, dtypes.float8_e5m3fnu)


def test_features_by_version():
    """[VER-*]"""
    for feature, since in target.FEATURE_SINCE.items():
        for version in ty.VERSIONS:
            if version >= since:
                check_version(version, feature)
                continue
            with pytest.raises(TileUnsupportedFeatureError, match="needs Tile IR bytecode") as e:
                check_version(version, feature, LOC)
            assert ty.version_text(since) in str(e.value)
    check_version((13, 1), "anything else")
