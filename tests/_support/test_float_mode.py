"""The floating-point mode of a thread: recognised, changed for a launch, and restored."""

from __future__ import annotations

import ctypes
import platform
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile import bounds
from cutile._support import float_mode
from cutile.compilation import prefill

FLUSH = 0x8040  # bits of x86-64: flush subnormal results and operands to zero
ROUNDING = {"down": 0x2000, "up": 0x4000, "to zero": 0x6000}
MODES = {"flush": FLUSH, "flush results": 0x8000, "flush operands": 0x0040, **ROUNDING}

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or not sys.platform.startswith("linux"),
                                reason="switches the mode of an x86-64 processor by glibc's fenv_t")


def control() -> int:
    """The control word of this thread, without its status flags."""
    room = ctypes.create_string_buffer(64)
    float_mode._environment()[0](room)
    return int.from_bytes(room[28:32], "little") & ~0x3F


@pytest.fixture
def mode():
    """A function that sets bits of the control word in this thread."""
    get, put, default = float_mode._environment()
    before = ctypes.create_string_buffer(64)
    get(before)

    def switch(bits: int) -> None:
        room = ctypes.create_string_buffer(before.raw, 64)
        room[28:32] = (int.from_bytes(before[28:32], "little") | bits).to_bytes(4, "little")
        put(room)

    yield switch
    put(before)


@ct.kernel
def half(x, o):
    ct.store(o, 0, (ct.load(x, 0, (4,)).astype(ct.float64) * 0.5).astype(o.dtype))


@ct.kernel
def folded(o):
    ct.store(o, 0, ct.full((4,), ct.static_eval(3e-310) / 3, ct.float64))


@ct.kernel
def looping(x, o):
    total = ct.load(x, 0, (4,)).astype(ct.float32)
    for i in range(3):
        if ct.bid(0) + i == 1:
            total += total
    ct.store(o, 0, total.astype(o.dtype))


def test_it_is_the_usual_one_here():
    assert float_mode.usual() and float_mode.describe()[0] == "usual"


@pytest.mark.parametrize("bits", MODES.values(), ids=MODES)
def test_other_modes_are_seen_and_put_back(mode, bits):
    mode(bits)
    found = control()
    assert not float_mode.usual() and "usual mode" in float_mode.describe()[1]
    assert float_mode.run(lambda: (float_mode.usual(), control() & 0xFFC0)) == (True, 0x1F80)
    with pytest.raises(ZeroDivisionError):
        float_mode.run(divmod, 1, 0)
    assert control() == found and found & bits == bits


LOW = {np.float16: 6e-8, np.float32: 1e-45, np.float64: 5e-324, ml_dtypes.bfloat16: 1e-40}


@pytest.mark.parametrize("bits", MODES.values(), ids=MODES)
@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("kernel", [half, looping])
def test_launches_give_the_same_bits(mode, bits, dtype, kernel):
    x = np.array([3 * LOW[dtype], -5 * LOW[dtype], 1.1, 3e-5]).astype(dtype)
    want = np.zeros(4, dtype)
    ct.launch(None, (2,), kernel, (x, want))
    mode(bits)
    found = control()
    for schedule in (None, "block"):  # the first launch and a repeated one
        for _ in range(2):
            got = np.zeros(4, dtype)
            with ct.settings.override(SCHEDULE=schedule):
                ct.launch(None, (2,), kernel, (x, got))
            assert got.tobytes() == want.tobytes()
    assert control() == found


def test_constants_that_are_folded(mode):
    mode(FLUSH)
    got = np.zeros(4)
    ct.launch(None, (1,), folded, (got,))
    mode(0)
    assert got.tolist() == [3e-310 / 3] * 4


def test_other_ways_in(mode, monkeypatch):
    x = np.full(4, 3e-45, np.float32)
    mode(FLUSH)
    seen = []
    monkeypatch.setattr(prefill, "build", lambda *a: seen.append(float_mode.usual()))
    prefill.prefill(half, [(x, x)], ["sm_90"])
    found = bounds.bounds(half, (1,), (x, np.zeros(4, np.float32)))
    mode(0)
    assert seen and all(seen) and (found.arrays[1].value == np.float32(1e-45)).all()


def test_other_threads_keep_theirs(mode):
    mode(FLUSH)
    seen = []
    t = threading.Thread(target=lambda: seen.append(float_mode.run(control) & FLUSH) or seen.append(control() & FLUSH))
    t.start()  # a thread inherits the mode of the thread that starts it
    t.join()
    assert seen == [0, FLUSH]


def test_where_nothing_changes_the_mode(mode, monkeypatch):
    monkeypatch.setattr(float_mode, "_environment", lambda: None)
    assert "another library" in float_mode.describe()[1]
    mode(FLUSH)
    x = np.full(4, 1e-40, np.float32)
    ct.launch(None, (1,), half, (x, x))
    assert float_mode.describe() == ("flushes subnormal numbers", "nothing here changes it: so do launches")


def test_the_doctor_shows_it(mode):
    from cutile.cli.main import app

    def shown() -> str:
        return CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"}).output

    assert "rounds to nearest, keeps subnormal numbers" in shown()
    mode(FLUSH)
    assert "flushes subnormal numbers" in shown()
