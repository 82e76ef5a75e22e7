"""Launches and exports under interrupts at random moments: python tests/process/interrupts.py COUNT [SEED]

After each interrupt the settings of the process are unchanged, and every launch that ends gives the right result.
"""

from __future__ import annotations

import contextvars
import gc
import io
import os
import random
import signal
import sys
import threading
import warnings

import numpy as np

import cutile as ct
from cutile._support import float_mode
from cutile.compilation import CallingConvention, KernelSignature, export_kernel
from cutile.compilation.constraints import ArrayConstraint, ConstantConstraint
from cutile.ops._op import EAGER

LONGEST = 0.004  # seconds until an interrupt


def down(x, n):
    if n == 0:
        return x
    return down(x, n - 1)


@ct.kernel
def adding(o, C: ct.Constant):
    x = ct.load(o, ct.bid(0), (8,))
    for _i in range(2):
        x += ct.static_eval(C + len([C])) - 1
    ct.store(o, ct.bid(0), x)


@ct.kernel
def calling(o, C: ct.Constant):
    ct.store(o, ct.bid(0), down(ct.load(o, ct.bid(0), (8,)), 70) + 2 * C)


@ct.kernel
def branching(o, C: ct.Constant):
    x = ct.load(o, ct.bid(0), (8,))
    if ct.bid(0) % 2 == 0:
        ct.store(o, ct.bid(0), x + C + C)
    else:
        ct.store(o, ct.bid(0), x + 2 * C)


KERNELS = (adding, adding, adding, branching, branching, calling)


def on_the_host() -> tuple:
    """An interrupt may keep a thread from forgetting that static code ran; its next call of an op notices that."""
    return ct.cdiv(7, 2), EAGER.apply


def state() -> tuple:
    return (gc.isenabled(), sys.getrecursionlimit(), threading.stack_size(), list(warnings.filters), np.geterr(),
            dict(os.environ), {v.name: x for v, x in contextvars.copy_context().items() if x}, float_mode.describe(),
            sys.gettrace(), signal.getsignal(signal.SIGINT), on_the_host())


def launch(kernel, constant: int, schedule: str | None) -> None:
    o = np.arange(16, dtype=np.int32)
    if schedule is None:
        ct.launch(None, (2,), kernel, (o, constant))
    else:
        with ct.settings.override(SCHEDULE=schedule):
            ct.launch(None, (2,), kernel, (o, constant))
    assert (o == np.arange(16) + 2 * constant).all(), (kernel, constant, o)


def export(kernel, constant: int) -> None:
    a = ArrayConstraint(ct.int32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
                        may_alias_internally=False)
    s = KernelSignature([a, ConstantConstraint(constant)], CallingConvention.cutile_python_v1(), "k")
    out = io.BytesIO()
    export_kernel(kernel, [s], out, gpu_code="sm_90", output_format="tileir_bytecode", bytecode_version="13.1")
    assert out.getvalue()


def main(count: int, seed: int) -> None:
    draw, armed, hits, tries = random.Random(seed), False, 0, 0

    def interrupt(*_):
        nonlocal armed, hits
        if armed:
            armed = False
            hits += 1
            raise KeyboardInterrupt

    late = []  # what failed where Python clears up behind an interrupt, other than by the interrupt itself
    sys.unraisablehook = lambda u: None if isinstance(u.exc_value, KeyboardInterrupt) else late.append(repr(u))
    signal.signal(signal.SIGALRM, interrupt)
    for kernel in KERNELS:
        launch(kernel, 1, None)
    before = state()
    while hits < count:
        tries += 1
        kernel, constant = draw.choice(KERNELS), draw.choice((1, 1, tries))
        way, schedule = draw.random(), draw.choice((None, None, None, "block", "interleave"))
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, draw.random() * draw.choice((1, 0.3, 0.1)) * LONGEST + 1e-5)
            try:
                if way < 0.15:
                    export(kernel, constant)
                else:
                    launch(kernel, constant, schedule)
            finally:
                armed = False
        except KeyboardInterrupt:
            pass
        except RuntimeError as e:  # so Python 3.11 reports an interrupt in __set_name__, while a module is imported
            if not isinstance(e.__cause__, KeyboardInterrupt):
                raise
        if (now := state()) != before:
            raise AssertionError(f"try {tries}: " + "; ".join(
                f"{a!r:.300} became {b!r:.300}" for a, b in zip(before, now, strict=True) if a != b))
        assert not late, f"try {tries}: {late}"
    signal.setitimer(signal.ITIMER_REAL, 0)
    for kernel in KERNELS:
        launch(kernel, 1, None)
        launch(kernel, -tries, None)
    print(f"{hits} interrupts in {tries} tries, {threading.active_count()} thread")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
