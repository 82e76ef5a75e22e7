"""GPUs for which code can be made, and the features of each [ARCH]."""

import pytest

from conformance.harness.api import clause, ct, impl, needs
from conformance.harness.compiled_files import symbols
from conformance.harness.export import TARGETS, bytecode, cubin, forward, signature

pytestmark = needs("export")


@ct.kernel
def copy(x, out):
    ct.store(out, 0, ct.load(x, 0, 4))


BOTH = signature(forward(), forward(), symbol="k")


@needs("cubins")
@clause("ARCH-1.known", "EXP-5.target")
@pytest.mark.parametrize("target", TARGETS)
def test_known_targets(target):
    assert symbols(cubin(copy, BOTH, target=target)) == {"k"}


@clause("ARCH-1.known")
@pytest.mark.parametrize("target", TARGETS)
def test_bytecode_for_known_targets(target):
    assert bytecode(copy, BOTH, target=target)


@needs("cubins")
@clause("ARCH-1.unknown")
@pytest.mark.parametrize("target", ["sm_70", "sm_75", "sm_91", "sm_101", "sm_130", "sm_0", "sm_1000"])
def test_unknown_targets(target):
    errors = impl.error("TileUnsupportedFeatureError"), impl.error("TileCompilerExecutionError")
    with pytest.raises(errors):
        cubin(copy, BOTH, target=target)


@clause("ARCH-1.names")
@pytest.mark.parametrize("target", ["", "sm_", "90", "sm90", "SM_90", "foo", "sm_x", "sm_90ab", "compute_90",
                                    "sm_90 80", "gfx942", "native"])
def test_what_is_no_name_of_a_target(target):
    with pytest.raises(ValueError):
        bytecode(copy, BOTH, target=target)


@clause("ARCH-1.kind")
@pytest.mark.parametrize("target", [90, 9.0, b"sm_90", ("sm_90",)], ids=str)
def test_what_is_no_string(target):
    with pytest.raises((TypeError, AttributeError)):
        bytecode(copy, BOTH, target=target)


FIRST = {"float8_e4m3fn": ("ARCH-2.f8", "sm_90"), "float8_e5m2": ("ARCH-2.f8", "sm_90"),
         "float8_e8m0fnu": ("ARCH-2.scales", "sm_100"), "float4_e2m1fn": ("ARCH-2.scales", "sm_100"),
         "float8_e5m3fnu": ("ARCH-2.e5m3", "sm_107")}


def by_number(target):
    return int(target.removeprefix("sm_"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(i, "DT-6", "ERR-7")) for n, (i, _) in FIRST.items()])
def test_dtypes_that_older_targets_lack(name, target):
    dtype, first = getattr(ct, name), FIRST[name][1]
    arrays_of = signature(*[forward(dtype, stride_constant=1)] * 2, symbol="k")
    if by_number(target) < by_number(first):
        with pytest.raises(impl.error("TileUnsupportedFeatureError")):
            bytecode(copy, arrays_of, target=target)
    elif target == first:
        assert bytecode(copy, arrays_of, target=target)


@clause("DT-6")
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_values_of_dtypes_that_a_target_lacks(name):
    """Values anywhere count, not only arrays."""
    dtype = getattr(ct, name)

    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 4).astype(dtype).astype(ct.float32))

    assert bytecode(k, BOTH, target="sm_90")
    with pytest.raises(impl.error("TileUnsupportedFeatureError")):
        bytecode(k, BOTH, target="sm_89")


@needs("cubins")
@clause("ARCH-2.f8", "ARCH-2.scales")
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_cubins_with_these_dtypes(name):
    dtype, first = getattr(ct, name), FIRST[name][1]
    arrays_of = signature(*[forward(dtype, stride_constant=1)] * 2, symbol="k")
    assert symbols(cubin(copy, arrays_of, target=first)) == {"k"}
