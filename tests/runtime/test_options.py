"""Kernel options and ByTarget [KERN-2…5]."""

import pytest

import cutile as ct
from cutile.runtime.options import Options

ALLOWED = {
    "num_ctas": (1, 2, 4, 8, 16),
    "occupancy": range(1, 33),
    "opt_level": range(4),
    "num_worker_warps": (1, 2, 4, 8, 16, 32),
}


def k():
    pass


@pytest.mark.parametrize("name", ALLOWED)
def test_ranges(name):  # KERN-2
    for value in range(-1, 40):
        if value in ALLOWED[name]:
            ct.kernel(k, **{name: value})
        else:
            with pytest.raises(ValueError, match=name):
                ct.kernel(k, **{name: value})
    for value in (True, 1.0, "1", (1,)):
        with pytest.raises(ValueError, match=name):
            ct.kernel(k, **{name: value})


def test_none_and_unknown():  # KERN-2
    ct.kernel(num_ctas=None, occupancy=None, num_worker_warps=None)(k)
    with pytest.raises(ValueError):
        ct.kernel(opt_level=None)
    with pytest.raises(TypeError):
        ct.kernel(k, nope=1)


def test_by_target():  # KERN-4
    v = ct.ByTarget(sm_90=2, sm_100=4, default=1)
    assert [v.get(t, 7) for t in ("sm_90", "sm_100", "sm_80")] == [2, 4, 1]
    assert ct.ByTarget(sm_90=2).get("sm_80", 7) == 7
    assert ct.ByTarget().get("sm_80", 7) == 7
    assert repr(v) == "ByTarget(sm_90=2, sm_100=4, default=1)" and repr(ct.ByTarget()) == "ByTarget()"


def test_by_target_equality_and_errors():  # KERN-4
    assert ct.ByTarget(sm_90=1) == ct.ByTarget(sm_90=1) != ct.ByTarget(sm_90=2)
    assert ct.ByTarget() != 3
    with pytest.raises(TypeError):
        hash(ct.ByTarget())
    for key in ("sm90", "sm_", "gfx90", "sm_9x"):
        with pytest.raises(ValueError, match=key):
            ct.ByTarget(**{key: 1})
    with pytest.raises(TypeError):
        ct.ByTarget(1)


def test_values_of_by_target_are_checked():
    ct.kernel(k, num_ctas=ct.ByTarget(sm_90=2, default=None))
    with pytest.raises(ValueError, match="num_ctas"):
        ct.kernel(k, num_ctas=ct.ByTarget(sm_90=3))
    with pytest.raises(ValueError, match="opt_level"):
        ct.kernel(k, opt_level=ct.ByTarget(default=4))


def test_replace():  # KERN-5
    a = Options(num_ctas=2)
    b = a.replace(occupancy=4)
    assert (b.num_ctas, b.occupancy, a.occupancy) == (2, 4, None)
    with pytest.raises(TypeError, match="unknown kernel option 'nope'; there are num_ctas"):
        a.replace(nope=1)
    with pytest.raises(ValueError):
        a.replace(num_ctas=3)


def test_values_on_a_target():  # KERN-3
    options = Options(num_ctas=ct.ByTarget(sm_90=2), occupancy=ct.ByTarget(sm_100=4, default=1),
                      opt_level=ct.ByTarget(sm_90=1))
    assert options.on("sm_90") == Options(2, 1, 1)
    assert options.on("sm_100") == Options(None, 4, 3)
    assert Options().on("sm_90") == Options()
