"""Options and symbols of compiled kernels."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.gpu.facts import power_of_two
from cutile.gpu.target import parse_target
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import entry_hints, module_of, to_bytecode
from cutile.runtime.options import ByTarget, Options
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import typed

SM_90 = parse_target("sm_90")


def nothing(a):
    pass


def test_hints_of_one_target():
    options = Options(num_ctas=2, occupancy=ByTarget(sm_90=4, default=1))
    assert entry_hints(options, SM_90, (13, 1)) == {"sm_90": {"num_cta_in_cga": 2, "occupancy": 4}}
    assert entry_hints(options, parse_target("sm_100"), (13, 1)) == {"sm_100": {"num_cta_in_cga": 2, "occupancy": 1}}
    assert entry_hints(Options(), SM_90, (13, 1)) == {}
    assert entry_hints(None, None, (13, 4)) == {}


def test_hints_of_all_targets():
    options = Options(occupancy=ByTarget(sm_90=4, default=1))
    assert entry_hints(options, None, (13, 3)) == {"default": {"occupancy": 1}, "sm_90": {"occupancy": 4}}
    assert entry_hints(Options(occupancy=ByTarget(sm_90=4)), None, (13, 3)) == {"sm_90": {"occupancy": 4}}


def test_what_an_old_version_has_no_name_for():
    assert entry_hints(Options(occupancy=2), parse_target("sm_86"), (13, 1)) == {}
    assert entry_hints(Options(num_worker_warps=4, occupancy=2), SM_90, (13, 2)) == {"sm_90": {"occupancy": 2}}


def test_worker_warps():
    assert entry_hints(Options(num_worker_warps=8), SM_90, (13, 3)) == {"sm_90": {"num_worker_warps_per_cta": 8}}
    with pytest.raises(ct.TileUnsupportedFeatureError, match="num_worker_warps"):
        entry_hints(Options(num_worker_warps=16), SM_90, (13, 4))
    assert entry_hints(Options(num_worker_warps=16), SM_90, (13, 2)) == {}


def test_one_module_of_many_kernels():
    kernel = typed(nothing, ArrayType(ct.float32, 1))
    m = Module("13.3")
    for symbol in ("first", "second"):
        module_of(kernel, None, "sm_90a", symbol=symbol, module=m)
    assert [e.name for e in m.contents.entries] == ["first", "second"]
    assert to_bytecode(kernel, None, "sm_90", "13.1").startswith(b"\x7fTileIR")


def test_powers_of_two():
    assert [power_of_two(n) for n in (0, 1, 6, 48, 128, 7)] == [1, 1, 2, 16, 128, 1]


def test_chosen_options_are_hints_of_the_target():
    """Also numbers of warps that authors cannot give with this version."""
    def hints(chosen, target="sm_90", **options):
        kernel = typed(nothing, ArrayType(ct.float32, 1))
        m = module_of(kernel, None, target, "13.4", Options(**options), chosen=chosen)
        return m.contents.entries[0].hints

    assert hints({"num_worker_warps": 2, "occupancy": 16}) == {
        "sm_90": {"num_worker_warps_per_cta": 2, "occupancy": 16}}
    assert hints({"occupancy": 16}, num_ctas=2) == {"sm_90": {"num_cta_in_cga": 2, "occupancy": 16}}
    assert hints({}) == hints(None) == hints({"occupancy": 16}, target=None) is None
