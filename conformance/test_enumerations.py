"""The enumerations, padding values, memory orders and scopes [ENUM, PAD, MEM-1]."""

import math

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, needs, refuses, run
from conformance.harness.dtype_names import FLOATS, INTEGERS, NUMPY
from conformance.harness.type_probes import on_target, refused

ENUMS = {
    "RoundingMode": (1, dict(RN="nearest_even", RZ="zero", RM="negative_inf", RP="positive_inf", RA="nearest_away",
                             FULL="full", APPROX="approx", RZI="nearest_int_to_zero")),
    "PaddingMode": (2, dict(UNDETERMINED="undetermined", ZERO="zero", NEG_ZERO="neg_zero", NAN="nan", POS_INF="pos_inf",
                            NEG_INF="neg_inf")),
    "MemoryOrder": (3, dict(WEAK="weak", RELAXED="relaxed", ACQUIRE="acquire", RELEASE="release", ACQ_REL="acq_rel")),
    "MemoryScope": (4, dict(NONE="none", BLOCK="block", CLUSTER="cluster", DEVICE="device", SYS="sys")),
}


@pytest.mark.parametrize("name, members", [pytest.param(n, m, marks=clause(f"ENUM-{i}.members"))
                                           for n, (i, m) in ENUMS.items()])
def test_members(name, members):
    assert set(getattr(ct, name).__members__) == set(members)


@pytest.mark.parametrize("name, member, value", [pytest.param(n, m, v, marks=clause(f"ENUM-{i}.{m}"))
                                                 for n, (i, members) in ENUMS.items() for m, v in members.items()])
def test_values(name, member, value):
    enum = getattr(ct, name)
    assert enum[member].value == value and enum(value) is enum[member]


@clause("ENUM-1.RZI.argument")
def test_rounding_mode_without_use():
    mode = ct.RoundingMode.RZI
    for f in (lambda x: ct.add(x, x, rounding_mode=mode), lambda x: ct.truediv(x, x, rounding_mode=mode),
              lambda x: ct.astype(x, ct.float16, rounding_mode=mode), lambda x: ct.exp(x, rounding_mode=mode),
              lambda x: ct.sqrt(x, rounding_mode=mode), lambda x: ct.sum(x, rounding_mode=mode)):
        refused("TileTypeError", lambda f=f: f(ct.ones((2,), ct.float32)))


# ------------------------------------------------------------------ padding

WANT = {"ZERO": 0.0, "NEG_ZERO": -0.0, "NAN": math.nan, "POS_INF": math.inf, "NEG_INF": -math.inf}


def padded(short, mode, want):
    """The values that a load and a view read outside an array, as float64."""
    @ct.kernel
    def k(x, out, viewed):
        ct.store(out, 0, ct.load(x, 0, 4, padding_mode=mode).astype(ct.float64))
        ct.store(viewed, 0, x.tiled_view(4, padding_mode=mode).load(0).astype(ct.float64))

    x = np.array([1, 1, 1], NUMPY[short])
    out, viewed = np.zeros(4), np.zeros(4)
    with on_target(short):
        launch(k, x, out, viewed)
    assert repr(out.tolist()) == repr(viewed.tolist()) == repr([1.0, 1.0, 1.0, want])


@pytest.mark.parametrize("mode", [pytest.param(m, marks=clause(f"PAD-1.{m}")) for m in WANT])
@clause("PAD-1.view")
def test_padding_of_floats(mode):
    for short in (*FLOATS, "e5m2"):
        padded(short, getattr(ct.PaddingMode, mode), WANT[mode])


@clause("PAD-1.ZERO")
@pytest.mark.parametrize("short", ["b1", *INTEGERS, "e4m3"])
def test_zero_is_for_every_dtype(short):
    padded(short, ct.PaddingMode.ZERO, 0.0)


@pytest.mark.parametrize("mode", [pytest.param(m, marks=clause(f"PAD-1.int.{m}")) for m in WANT if m != "ZERO"])
def test_padding_of_integers(mode):
    member = getattr(ct.PaddingMode, mode)

    @ct.kernel
    def load(x):
        ct.load(x, 0, 4, padding_mode=member)

    @ct.kernel
    def view(x):
        x.tiled_view(4, padding_mode=mode)

    for short in ("b1", *INTEGERS):
        for k in (load, view):
            refuses("TileTypeError", k, np.ones(3, NUMPY[short]))
    accepts(load, np.ones(3, np.float32))
    accepts(view, np.ones(3, np.float32))


@clause("PAD-1.default", "PAD-1.UNDETERMINED")
@needs("cpu arrays")
def test_undetermined_padding():
    """For implementations with safe memory it reads as zero."""
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 4))
        ct.store(out, 1, ct.load(x, 0, 4, padding_mode=ct.PaddingMode.UNDETERMINED))
        ct.store(out, 2, x.tiled_view(4).load(0))

    for short in ("f32", "i8", "b1", "f16"):
        assert run(k, np.ones(3, NUMPY[short]), np.ones(12, NUMPY[short])).astype(int).tolist() == [1, 1, 1, 0] * 3


LACKING = {"e4m3": ("POS_INF", "NEG_INF"), "e8m0": ("NEG_ZERO", "POS_INF", "NEG_INF"),
           "e2m1": ("NAN", "POS_INF", "NEG_INF"), "e5m2": ()}


@clause("PAD-2")
@needs("cpu arrays")
@pytest.mark.parametrize("short", LACKING)
def test_padding_that_a_format_lacks(short):
    for name in WANT:
        mode = getattr(ct.PaddingMode, name)

        @ct.kernel
        def load(x):
            ct.load(x, 0, 4, padding_mode=mode)

        @ct.kernel
        def view(x):
            x.tiled_view(4, padding_mode=mode)

        @ct.kernel
        def rows(x):
            ct.load_advanced_indexing(x, (ct.arange(4, dtype=ct.int32), ct.Slice(0, 1)), padding_mode=mode)

        x = np.ones(3).astype(NUMPY[short])
        for k, array in ((load, x), (view, x), (rows, x.reshape(3, 1))):
            if name in LACKING[short]:
                refuses("TileTypeError", k, array)
            else:
                accepts(k, array)


@clause("PAD-1.ZERO")
@needs("cpu arrays")
def test_zero_of_a_format_without_one():
    """float8_e8m0fnu has no zero; its lowest value stands for it."""
    padded("e8m0", ct.PaddingMode.ZERO, 2.0**-127)


# ------------------------------------------------------------------ memory orders and scopes

ORDERS = {"load": ("WEAK", "RELAXED", "ACQUIRE"), "store": ("WEAK", "RELAXED", "RELEASE"),
          "atomic": ("RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL")}


def access(op, order, scope):
    if op == "load":
        @ct.kernel
        def k(x):
            ct.load(x, 0, 4, memory_order=order, memory_scope=scope)
    elif op == "store":
        @ct.kernel
        def k(x):
            ct.store(x, 0, ct.zeros((4,), ct.int32), memory_order=order, memory_scope=scope)
    else:
        @ct.kernel
        def k(x):
            ct.atomic_add(x, 0, 1, memory_order=order, memory_scope=scope)
    return k


@clause("MEM-1.weak", "MEM-1.none", "MEM-1.block", "MEM-1.device", "MEM-1.sys", "MEM-1.cluster")
@pytest.mark.parametrize("op", ORDERS)
def test_orders_and_scopes(op):
    x = np.zeros(4, np.int32)
    for order in ct.MemoryOrder:
        for scope in ct.MemoryScope:
            k = access(op, order, scope)
            named = access(op, order.name, scope.name)
            fits = scope.name == "NONE" if order.name == "WEAK" else scope.name in ("BLOCK", "DEVICE", "SYS")
            if order.name in ORDERS[op] and fits:
                accepts(k, x)
                accepts(named, x)
            else:
                refuses("TileTypeError", k, x)
                refuses("TileTypeError", named, x)
