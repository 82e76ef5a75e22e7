"""Times of launches by events."""

import pytest

from cutile.gpu.driver import DriverError
from cutile.gpu.timing import FLUSH, EventClock
from tests.gpu.fake_driver import FakeDriver


@pytest.fixture
def fake():
    fake = FakeDriver()
    fake.device = fake.start().device(1)
    fake.calls.clear()
    return fake


def launch(fake, ms):
    fake.calls.append(("launch",))
    fake.now += ms


@pytest.mark.parametrize("flush", [True, False])
def test_a_time(fake, flush):
    clock = EventClock(fake.device, 77, flush)
    fake.calls.clear()
    assert clock(lambda: launch(fake, 0.25)) == pytest.approx(250)
    assert [c[:1] if c[0] in ("launch", "cuEventElapsedTime") else c for c in fake.calls if "Ctx" not in c[0]] == [
        *[("cuMemsetD8Async", 1 << 40, 0, FLUSH, 77)] * flush, ("cuEventRecord", 1, 77), ("launch",),
        ("cuEventRecord", 2, 77), ("cuEventSynchronize", 2), ("cuEventElapsedTime",)]
    clock.close()
    assert not fake.events and fake.names().count("cuMemFree") == flush and fake.contexts == [0]


@pytest.mark.parametrize("call", ["cuEventCreate", "cuMemAlloc"])
def test_what_was_made_is_given_back_when_the_rest_cannot_be(fake, call):
    fake.fails[call] = 999
    with pytest.raises(DriverError, match="no event|flush_l2=False does without"):
        EventClock(fake.device, 77, True)
    assert fake.contexts == [0] and fake.names().count("cuEventDestroy") == (0 if call == "cuEventCreate" else 2)


def test_a_launch_that_fails_later(fake):
    clock = EventClock(fake.device, 77, False)
    fake.fails["cuEventSynchronize"] = 700
    with pytest.raises(DriverError, match="the launch failed: .*outside its arrays"):
        clock(lambda: launch(fake, 1))
