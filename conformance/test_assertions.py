"""ct.assert_."""

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, impl, launch, needs, refuses, run
from conformance.harness.type_probes import refused

X1 = np.zeros(4, np.int32)


def fail(kernel, *args, grid=(1,), match=None):
    with pytest.raises(impl.error("TileAssertionError"), match=match) as found:
        launch(kernel, *args, grid=grid)
    return found.value


@clause("ASSERT-1.hold", "ASSERT-1.none", "ASSERT-1.message")
def test_assertions_that_hold():
    @ct.kernel
    def k(x, out):
        t = ct.load(x, ct.bid(0), 4)
        r = ct.assert_(t > 0)
        ct.static_assert(r is None)
        ct.assert_((t > 0).reshape((2, 2)), "positive")
        ct.assert_(ct.bid(0) < 2, message="block")
        ct.assert_(True, message=None)
        ct.store(out, ct.bid(0), t)

    x = np.arange(8, dtype=np.int32) + 1
    assert run(k, x, np.zeros(8, np.int32), grid=(2,)).tolist() == x.tolist()


@needs("assertion errors")
@clause("ASSERT-1.fail", "ASSERT-1.element")
@pytest.mark.parametrize("bad", [[0], [3], [1, 2], [0, 1, 2, 3]])
def test_assertions_that_fail(bad):
    @ct.kernel
    def k(x):
        ct.assert_(ct.load(x, 0, 4) > 0, "all of them")

    x = np.ones(4, np.int32)
    launch(k, x)
    x[bad] = 0
    fail(k, x, match="all of them")


@needs("assertion errors")
@clause("ASSERT-1.fail")
def test_a_failure_without_a_message():
    @ct.kernel
    def k():
        ct.assert_(ct.bid(0) > 5)

    fail(k)


@needs("assertion errors")
@clause("ASSERT-1.block")
@pytest.mark.parametrize("bad", [(2, 1), (0, 1), (1, 0)])
def test_the_first_failing_block(bad):
    @ct.kernel
    def k(x):
        a, b = ct.bid(0), ct.bid(1)
        ct.assert_(a * 2 + b < ct.load(x, 0, ()), "too far")

    error = fail(k, np.array([bad[0] * 2 + bad[1]], np.int32), grid=(3, 2), match="too far")
    assert f"({bad[0]}, {bad[1]}, 0)" in str(error)


@needs("assertion errors")
@clause("ASSERT-1.block")
def test_the_first_failing_block_under_a_condition():
    @ct.kernel
    def k():
        if ct.bid(0) % 2 == 1:
            ct.assert_(ct.bid(0) < 4, "odd and large")

    assert "(5, 0, 0)" in str(fail(k, grid=(9,), match="odd and large"))
    launch(k, grid=(5,))


@needs("assertion errors")
@clause("ASSERT-1.stores")
def test_earlier_stores_stay():
    @ct.kernel
    def k(out):
        ct.store(out, 0, 7)
        ct.assert_(ct.bid(0) > 0, "no")

    out = np.zeros(1, np.int32)
    fail(k, out)
    assert out[0] == 7


@clause("ASSERT-1.const")
def test_a_constant_compiles():
    @ct.kernel
    def k():
        ct.assert_(False, "never")

    @ct.kernel
    def good():
        ct.assert_(True)
        ct.assert_(ct.bool_(1))

    accepts(k)
    launch(good)


@needs("assertion errors")
@clause("ASSERT-1.const", "ASSERT-1.fail")
def test_a_constant_fails():
    @ct.kernel
    def k():
        ct.assert_(False, "never")

    fail(k, match="never")


@pytest.mark.parametrize("f", [
    pytest.param(lambda: ct.assert_(1), marks=clause("ASSERT-1.dtype")),
    pytest.param(lambda: ct.assert_(ct.bid(0)), marks=clause("ASSERT-1.dtype")),
    pytest.param(lambda: ct.assert_(ct.zeros((4,), ct.float32)), marks=clause("ASSERT-1.dtype")),
    pytest.param(lambda: ct.assert_("a"), marks=clause("ASSERT-1.kind")),
    pytest.param(lambda: ct.assert_(None), marks=clause("ASSERT-1.kind")),
    pytest.param(lambda: ct.assert_((True,)), marks=clause("ASSERT-1.kind")),
    pytest.param(lambda: ct.assert_(True, 5), marks=clause("ASSERT-1.message.kind")),
    pytest.param(lambda: ct.assert_(True, f"{ct.bid(0)}"), marks=clause("ASSERT-1.message.kind")),
    pytest.param(lambda: ct.assert_(True, (1,)), marks=clause("ASSERT-1.message.kind")),
    pytest.param(lambda: ct.assert_(cond=True), marks=clause("ASSERT-1.cond")),
    pytest.param(lambda: ct.assert_(), marks=clause("ASSERT-1.cond")),
    pytest.param(lambda: ct.assert_(True, "a", "b"), marks=clause("ASSERT-1.message")),
])
def test_what_is_refused(f):
    refused("TileTypeError", f)


@clause("ASSERT-1.kind", "GEN-1.kind")
def test_an_array_as_condition():
    @ct.kernel
    def k(x):
        ct.assert_(x)

    refuses("TileTypeError", k, X1)
