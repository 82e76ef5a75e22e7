"""The features of each version of bytecode [VER], and hints with older ones [KERN-3]."""

import warnings

import pytest

from conformance.harness.api import clause, ct, impl, needs
from conformance.harness.compiled_files import symbols, version_of
from conformance.harness.export import TARGETS, VERSIONS, bytecode, cubin, forward, signature

pytestmark = needs("export")

F32, I32, F16, U8 = ct.float32, ct.int32, ct.float16, ct.uint8
E4, E5, E8, E2, E53 = (ct.float8_e4m3fn, ct.float8_e5m2, ct.float8_e8m0fnu, ct.float4_e2m1fn, ct.float8_e5m3fnu)
ROWS = (F32, 2)


def exported(body, dtypes, version, target, make=bytecode):
    """A kernel over arrays of these dtypes, or of a dtype and a rank; their rows are contiguous."""
    kernel = ct.kernel(body)
    ranked = [d if isinstance(d, tuple) else (d, 1) for d in dtypes]
    parameters = [forward(d, n, stride_constant=(*[None] * (n - 1), 1)) for d, n in ranked]
    return make(kernel, signature(*parameters, symbol="k"), version=version, target=target)


# ------------------------------------------------------------------ what every version has


def loads(x, y):
    ct.store(y, 0, ct.load(x, 0, 4, padding_mode=ct.PaddingMode.ZERO))


def stores(x, y):
    ct.store(y, ct.bid(0), ct.full((8,), 1.5, ct.float32))


def arithmetic(x, y):
    a, b = ct.load(x, 0, 4), ct.load(y, 0, 4)
    ct.store(y, 0, ct.sqrt(a * b + a) / b - ct.exp(a))


def reductions(x, y):
    a = ct.load(x, 0, 4)
    ct.store(y, 0, ct.sum(a, 0, keepdims=True) + ct.max(a, 0, keepdims=True))


def scans(x, y):
    ct.store(y, 0, ct.cumsum(ct.load(x, 0, 4)))


def products(x, y):
    a = ct.reshape(ct.load(x, 0, 256), (16, 16)).astype(ct.float16)
    ct.store(y, 0, ct.reshape(ct.mma(a, a, ct.zeros((16, 16), ct.float32)), (256,)))


def atomics(x, y):
    ct.atomic_add(y, 0, 1.0)


def prints(x, y):
    ct.print(ct.load(x, 0, 4))


BASE = {"load": loads, "store": stores, "arithmetic": arithmetic, "reduction": reductions, "scan": scans,
        "mma": products, "atomic": atomics, "print": prints}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"VER-1.{n}")) for n in BASE])
def test_what_every_version_has(name, version):
    assert version_of(exported(BASE[name], (F32, F32), version, "sm_80")) == version


@needs("cubins")
@clause(*[f"VER-1.{n}" for n in BASE], "EXP-6.cubin")
@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_assembler_makes_of_it(version):
    def everything(x, y):
        loads(x, y)
        stores(x, y)
        arithmetic(x, y)
        reductions(x, y)
        scans(x, y)
        products(x, y)
        atomics(x, y)
        prints(x, y)

    assert symbols(exported(everything, (F32, F32), version, "sm_90", cubin)) == {"k"}


def least(a, b):
    return ct.where(a.astype(F32) < b.astype(F32), a, b)


@needs("cubins")
@clause("RED-13.value", "SCAN-1.order", "EXP-6.cubin")
def test_the_assembler_combines_formats_without_arithmetic():
    def combined(x, y):
        for dtype in ct.static_iter((ct.tfloat32, E4, E5)):
            t = ct.load(x, 0, 4).astype(dtype)
            ct.store(y, 0, ct.reduce(t, 0, least, 1.0, keepdims=True).astype(F32))
            ct.store(y, 1, ct.scan(t, 0, least, 1.0).astype(F32))

    assert symbols(exported(combined, (F32, F32), "13.3", "sm_90", cubin)) == {"k"}


# ------------------------------------------------------------------ what came later


def atan2(x, y):
    a = ct.load(x, 0, 4)
    ct.store(y, 0, ct.atan2(a, a))


def tanh(x, y):
    ct.store(y, 0, ct.tanh(ct.load(x, 0, 4), rounding_mode=ct.RoundingMode.APPROX))


def moved(x, y):
    ct.store(y, 0, ct.load(x, 0, 4))


def exp(x, y):
    ct.store(y, 0, ct.exp(ct.load(x, 0, 4), rounding_mode=ct.RoundingMode.APPROX))


def fast(x, y):
    a = ct.reshape(ct.load(x, 0, 1024), (32, 32))
    ct.store(y, 0, ct.reshape(ct.mma(a, a, ct.zeros((32, 32), ct.float32), use_fast_acc=True), (1024,)))


def scaled(x, s, y):
    a, scale = ct.reshape(ct.load(x, 0, 1024), (32, 32)), ct.load(s, 0, 32)
    left, right = ct.reshape(scale, (32, 1)), ct.reshape(scale, (1, 32))
    ct.store(y, 0, ct.reshape(ct.mma_scaled(a, left, a, right, ct.zeros((32, 32), ct.float32)), (1024,)))


def pack(x, y):
    ct.store(y, 0, ct.pack_to_bytes(ct.load(x, 0, 4)))


def unpack(x, y):
    ct.store(y, 0, ct.unpack_from_bytes(ct.load(x, 0, 16), ct.float32))


def add_in_view(x, y):
    y.tiled_view((4,)).atomic_store_add(0, ct.load(x, 0, 4))


def max_in_view(x, y):
    y.tiled_view((4,)).atomic_store_max(0, ct.load(x, 0, 4))


def min_in_view(x, y):
    y.tiled_view((4,)).atomic_store_min(0, ct.load(x, 0, 4))


def and_in_view(x, y):
    y.tiled_view((4,)).atomic_store_and(0, ct.load(x, 0, 4))


def or_in_view(x, y):
    y.tiled_view((4,)).atomic_store_or(0, ct.load(x, 0, 4))


def xor_in_view(x, y):
    y.tiled_view((4,)).atomic_store_xor(0, ct.load(x, 0, 4))


def traversal(x, y):
    ct.store(y, 0, x.tiled_view((4,), traversal_steps=(2,)).load(0))


def advanced_load(x, y):
    ct.store(y, (0, 0), ct.load_advanced_indexing(x, (ct.arange(4, dtype=ct.int32), ct.Slice(0, 8))))


def advanced_store(x, y):
    ct.store_advanced_indexing(y, (ct.arange(4, dtype=ct.int32), ct.Slice(0, 8)), ct.load(x, (0, 0), (4, 8)))


def to_e8m0(x, y):
    ct.store(y, 0, ct.load(x, 0, 4).astype(ct.float8_e8m0fnu, rounding_mode=ct.RoundingMode.RZ))


def insert(x, y):
    ct.store(y, 0, ct.insert(ct.load(x, 0, 4), (1,), ct.load(x, 0, 2)))


def unchecked_load(x, y):
    ct.store(y, 0, ct.load(x, 0, 4, check_bounds=False))


def unchecked_store(x, y):
    ct.store(y, 0, ct.load(x, 0, 4), check_bounds=False)


def unchecked_view_load(x, y):
    ct.store(y, 0, x.tiled_view((4,)).load(0, check_bounds=False))


def unchecked_view_store(x, y):
    y.tiled_view((4,)).store(0, ct.load(x, 0, 4), check_bounds=False)


def wait(x, y):
    ct.grid_dependency_control_wait()


def dependents(x, y):
    ct.grid_dependency_control_launch_dependents()


def narrowed(x, y):
    ct.store(y, 0, ct.load(x, 0, 4).astype(ct.float16, rounding_mode=ct.RoundingMode.RZ))


def through_e2m1(x, y):
    ct.store(y, 0, ct.load(x, 0, 4).astype(E2).astype(ct.float32))


def through_e5m3(x, y):
    ct.store(y, 0, ct.load(x, 0, 4).astype(E53).astype(ct.float32))


# Feature: the clause, a kernel that uses it, the dtypes of its arrays, the first version that has it.
LATER = [
    ("VER-2.atan2", atan2, (F32, F32), "13.2"),
    ("VER-2.tanh", tanh, (F32, F32), "13.2"),
    ("VER-2.e8m0", moved, (E8, E8), "13.2"),
    ("VER-3.exp", exp, (F32, F32), "13.3"),
    ("VER-3.fast_acc", fast, (E4, F32), "13.3"),
    ("VER-3.mma_scaled", scaled, (E4, E8, F32), "13.3"),
    ("VER-3.pack", pack, (F32, U8), "13.3"),
    ("VER-3.unpack", unpack, (U8, F32), "13.3"),
    ("VER-3.e2m1", moved, (E2, E2), "13.3"),
    ("VER-3.e2m1", through_e2m1, (F32, F32), "13.3"),
    ("VER-3.view.add", add_in_view, (I32, I32), "13.3"),
    ("VER-3.view.max", max_in_view, (I32, I32), "13.3"),
    ("VER-3.view.min", min_in_view, (I32, I32), "13.3"),
    ("VER-3.view.and", and_in_view, (I32, I32), "13.3"),
    ("VER-3.view.or", or_in_view, (I32, I32), "13.3"),
    ("VER-3.view.xor", xor_in_view, (I32, I32), "13.3"),
    ("VER-3.traversal", traversal, (F32, F32), "13.3"),
    ("VER-3.advanced.load", advanced_load, (ROWS, ROWS), "13.3"),
    ("VER-3.advanced.store", advanced_store, (ROWS, ROWS), "13.3"),
    ("VER-3.cast.e8m0", to_e8m0, (F32, E8), "13.3"),
    ("VER-4.insert", insert, (F32, F32), "13.4"),
    ("VER-4.unchecked.load", unchecked_load, (F32, F32), "13.4"),
    ("VER-4.unchecked.store", unchecked_store, (F32, F32), "13.4"),
    ("VER-4.unchecked.view", unchecked_view_load, (F32, F32), "13.4"),
    ("VER-4.unchecked.view", unchecked_view_store, (F32, F32), "13.4"),
    ("VER-4.wait", wait, (F32, F32), "13.4"),
    ("VER-4.dependents", dependents, (F32, F32), "13.4"),
    ("VER-4.cast", narrowed, (F32, F16), "13.4"),
    ("VER-4.e5m3", moved, (E53, E53), "13.4"),
    ("VER-4.e5m3", through_e5m3, (F32, F32), "13.4"),
]


@clause("VER-4.cast", "ERR-7")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["RZ", "RM", "RP", "RA"])
def test_modes_of_casts(mode, version):
    def widened(x, y):
        ct.store(y, 0, ct.load(x, 0, 4).astype(ct.float32, rounding_mode=getattr(ct.RoundingMode, mode)))

    if version >= "13.4":
        assert version_of(exported(widened, (F16, F32), version, "sm_90")) == version
        return
    with pytest.raises(impl.error("TileUnsupportedFeatureError")):
        exported(widened, (F16, F32), version, "sm_90")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("body, dtypes, first", [
    pytest.param(body, dtypes, first, marks=clause(i, "ERR-7", "ERR-12.loc")) for i, body, dtypes, first in LATER],
    ids=[f"{i}-{body.__name__}" for i, body, *_ in LATER])
def test_what_came_later(body, dtypes, first, version):
    if version >= first:
        assert version_of(exported(body, dtypes, version, "sm_107")) == version
        return
    with pytest.raises(impl.error("TileUnsupportedFeatureError")) as refused:
        exported(body, dtypes, version, "sm_107")
    assert refused.value.loc.line >= body.__code__.co_firstlineno


def power(x, y):
    ct.store(y, 0, ct.load(x, 0, 4) ** 3 + ct.load(x, 0, 4) ** ct.load(x, 0, 4).astype(ct.int32))


@clause("VER-4.pow")
@pytest.mark.parametrize("version", VERSIONS)
def test_powers_of_integers_need_no_version(version):
    assert version_of(exported(power, (F32, F32), version, "sm_90")) == version


# ------------------------------------------------------------------ hints


FIRST_TARGETS = ("sm_80", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121")  # whose hints 13.1 can express


def copying(latency=None, allow_tma=None, **options):
    def k(x, y):
        ct.store(y, 0, ct.load(x, 0, 4, latency=latency, allow_tma=allow_tma), latency=latency, allow_tma=allow_tma)

    return ct.kernel(**options)(k)


@clause("EXP-6.each", "KERN-2.result", "HINT-1.result", "HINT-2.result")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("hint, values", [("occupancy", (2, 3)), ("num_ctas", (2, 4)), ("latency", (3, 4)),
                                          ("allow_tma", (False, True))])
def test_hints_are_in_the_bytecode_that_can_express_them(hint, values, target, version):
    both = signature(forward(stride_constant=(1,)), forward(stride_constant=(1,)), symbol="k")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hints that are left out
        codes = [bytecode(copying(**{hint: v}), both, target=target, version=version) for v in values]
    assert {version_of(code) for code in codes} == {version}
    assert (codes[0] != codes[1]) == (version != "13.1" or target in FIRST_TARGETS)


@clause("KERN-4.option", "EXP-5.none.bytecode")
@pytest.mark.parametrize("version", ["13.3", "13.4"])
@pytest.mark.parametrize("option", ["occupancy", "num_ctas"])
def test_hints_for_every_target(option, version):
    both = signature(forward(), forward(), symbol="k")
    sizes = [len(bytecode(ct.kernel(moved, **{option: value}), both, target=None, version=version)) for value in (
        None, 2, ct.ByTarget(default=2), ct.ByTarget(sm_90=2), ct.ByTarget(default=4, sm_90=2, sm_100=1))]
    assert sizes[0] < sizes[1] == sizes[2] and sizes[0] < sizes[3] < sizes[4] and sizes[2] < sizes[4]


@clause("KERN-3.ignored")
@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("version", ["13.1", "13.2"])
def test_workers_of_older_versions(version, warps):
    kernel, both = ct.kernel(moved, num_worker_warps=warps), signature(forward(), forward(), symbol="k")
    with pytest.warns(UserWarning, match="num_worker_warps"):
        code = bytecode(kernel, both, version=version)
    assert len(code) == len(bytecode(ct.kernel(moved), both, version=version))


@clause("KERN-3.ignored")
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("version", ["13.3", "13.4"])
def test_workers_of_versions_that_have_them(version, warps):
    kernel, both = ct.kernel(moved, num_worker_warps=warps), signature(forward(), forward(), symbol="k")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = bytecode(kernel, both, version=version)
    assert len(code) > len(bytecode(ct.kernel(moved), both, version=version))


@clause("KERN-3.newer", "VER-5", "ERR-7")
@pytest.mark.parametrize("warps", [1, 2, 16, 32])
@pytest.mark.parametrize("version", ["13.3", "13.4"])
def test_other_numbers_of_workers(version, warps):
    kernel = ct.kernel(moved, num_worker_warps=warps)
    with pytest.raises(impl.error("TileUnsupportedFeatureError")):
        bytecode(kernel, signature(forward(), forward(), symbol="k"), version=version)
