"""The collector rests while kernels are compiled, and runs again after."""

import gc

import numpy as np
import pytest

import cutile as ct
from cutile.collector import at_rest


@pytest.fixture
def running():
    was = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was else gc.disable)()


def test_nested_and_after_an_error(running):
    with at_rest():
        with at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), at_rest():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off(running):
    gc.disable()
    with at_rest():
        pass
    assert not gc.isenabled()


def test_it_rests_in_the_front_end_and_runs_in_a_kernel_and_after_an_error(running):
    seen = []

    def look():
        seen.append(gc.isenabled())
        return 1

    @ct.kernel
    def good(x):
        ct.store(x, 0, ct.load(x, 0, 4) + ct.static_eval(look()))

    @ct.kernel
    def bad(x):
        ct.static_eval(look())
        ct.store(x, 0, nothing_of_this_name)  # noqa: F821

    ct.launch(None, (1,), good, (np.zeros(4, np.float32),))
    assert gc.isenabled()
    with pytest.raises(ct.TileError):
        ct.launch(None, (1,), bad, (np.zeros(4, np.float32),))
    assert seen == [False, False] and gc.isenabled()
