"""python -m cutile diff: the first statement whose value differs, in a user's own script."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from typer.testing import CliRunner

import cutile as ct
from cutile import interp, settings
from cutile.cli.diff import backends
from cutile.cli.diff.compare import difference
from cutile.cli.diff.record import LIMIT, recorded
from cutile.cli.main import app
from cutile.ir.check import check
from cutile.ops._op import lookup

SCRIPT = textwrap.dedent('''
    import sys
    import numpy as np
    import cutile as ct

    def scaled(t):
        s = ct.max(t)
        return t - s

    @ct.kernel
    def rows(x, y):
        t = ct.load(x, (ct.bid(0), 0), (1, 8))
        for i in range(2):
            t = scaled(t)
        e = ct.exp(t)
        ct.store(y, (ct.bid(0), 0), e)

    @ct.kernel
    def other(y):
        ct.store(y, (0, 0), ct.zeros((1, 8), ct.float32))

    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    y = np.zeros_like(x)
    if __name__ == "__main__":
        ct.launch(None, (1,), other, (y,))
        ct.launch(None, (3,), rows, (x, y))
        ct.launch(None, (2,), rows, (x * 2, y))
        print("ran to the end", *sys.argv[1:])
''')


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def wrong(monkeypatch):
    """A back end of which one op is wrong: the name of the op, and what is done to its results."""

    def install(op: str, change) -> None:
        def run(program, grid, leaves):
            o, right = lookup(op), lookup(op).meaning

            def other(*args, **options):
                return change(right(*args, **options))

            other.__kwdefaults__ = right.__kwdefaults__
            o.meaning = other
            try:
                with settings.override(SCHEDULE="block"):
                    interp.launch(program, grid, leaves)
            finally:
                o.meaning = right

        monkeypatch.setitem(backends.BACKENDS, "gpu", run)

    return install


def call(*args: str):
    return CliRunner().invoke(app, ["diff", *args])


# ------------------------------------------------------------------ the verb


def test_two_schedules_agree(script):
    out = call(f"{script}::rows", "--backends", "batch,block")
    assert out.exit_code == 0 and "batch and block agree" in out.output
    assert "ran to the end" not in out.output


def test_the_first_statement_is_named(script, wrong):
    wrong("max", lambda y: y + np.float32(1))  # of each of the two axes
    out = call(f"{script}::rows")
    assert out.exit_code == 1, out.output
    lines = out.output.splitlines()
    assert lines[0] == "First difference: s in scaled, block (0, 0, 0), execution 1"
    assert lines[1].endswith('script.py", line 7') and lines[2] == "    s = ct.max(t)"
    assert "s is a float32 scalar: 1 of 1 element(s) differ, the first: interp 7.0, gpu 9.0, allowed ±0" in lines[3]
    assert "Array y in the end: 24 of 24 element(s) differ" in lines[4]


def test_what_the_language_allows_does_not_count(script, wrong):
    wrong("exp", lambda y: np.nextafter(np.asarray(y, np.float32), np.float32(9)))
    assert call(f"{script}::rows").exit_code == 0


def test_a_later_launch(script, wrong):
    wrong("exp", lambda y: y * 2)
    out = call(f"{script}::rows", "--launch", "2")
    assert "First difference: e in rows" in out.output and "(0, 0, 0)" in out.output


@pytest.mark.parametrize("args, message", [
    (("{}::nobody", "--backends", "batch,block"), "nobody was never launched by"),
    (("{}::rows", "--launch", "3"), "rows was launched 2 time(s) by"),
    (("{}", ), "is not FILE.py::KERNEL"),
    (("nowhere.py::k",), "there is no file nowhere.py"),
    (("{}::rows", "--backends", "interp"), "give two of interp, batch, block, gpu"),
    (("{}::rows", "--backends", "interp,tpu"), "give two of"),
])
def test_misuse(script, args, message):
    out = call(*(a.format(script) for a in args))
    assert out.exit_code == 2 and message in out.output


def test_other_launches_and_arguments_are_the_scripts_own(script):
    out = call(f"{script}::nobody", "--backends", "batch,block", "--", "one", "two")
    assert "it launches other, rows" in out.output


def test_launch_is_put_back(script):
    before = ct.launch
    call(f"{script}::rows", "--backends", "batch,block")
    assert ct.launch is before


# ------------------------------------------------------------------ recording


@ct.kernel
def much(xs, y, n):
    pair = (ct.load(xs[0], (0,), (4,)), 3)
    half = pair[0].astype(ct.tfloat32)
    bits = ct.load(xs[1], (0,), (4,)) > 1
    total = ct.zeros((4,), ct.float32)
    for i in range(12):
        total += ct.where(bits, pair[0], 0)
        if i > n:
            break
    both = pair[0], ct.arange(4, dtype=ct.int32)
    least, place = ct.reduce(both, 0, lambda a, b, c, d: (min(a, c), max(b, d)), (9, 0))
    ct.store(y, (ct.bid(0),), total + least + place + half.astype(ct.float32))


def arguments():
    return [np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32)], np.zeros(8, np.float32), 10


def test_recording_changes_nothing_and_is_checked():
    args = arguments()
    known = much.understand(args)
    program, records, made = recorded(much.program(known).kernel, (2, 1, 1))
    check(program)
    names = [r.variable for r in records]
    assert {"pair[0]", "half", "bits", "total", "least", "place", "i"} <= set(names)
    plain, rich = arguments(), arguments()
    ct.launch(None, (2,), much, plain)
    extra = made()
    interp.launch(program, (2, 1, 1), [*rich, *extra])
    assert np.array_equal(plain[1], rich[1])
    total = max((r for r in records if r.variable == "total"), key=lambda r: r.span.line)
    log, when = extra[total.log], extra[total.when]
    assert np.array_equal(log[0, :, 2], [2, 4, 6, 8, 10, 12, 14, 16, 24])  # eight rounds, and the last
    assert (np.diff(when[0]) > 0).all() and log.shape == (2, LIMIT + 1, 4)


def test_an_error_late_in_a_loop_is_seen(wrong):
    calls = []

    def change(y):
        calls.append(1)
        return y + (1 if len(calls) > 15 else 0)

    wrong("where", change)
    d = difference(much, (2,), arguments(), ("interp", "gpu")).first
    assert d is not None and d.what == "total" and d.block[0] == 1


def test_no_difference_beyond_what_is_known(wrong):
    """Where a branch hangs on rounding, nothing is said to differ, and why is said."""
    @ct.kernel
    def k(x, y):
        s = ct.sum(ct.load(x, (0,), (4,)))
        t = s * 2
        if s > 0:
            t = t + 1
        ct.store(y, (0,), t)

    wrong("sum", lambda y: y + np.float32(1e-7))
    r = difference(k, (1,), (np.array([1, -1, 1, -1], np.float32), np.zeros(1, np.float32)), ("interp", "gpu"))
    assert r.first is None and "the branch in line" in r.inconclusive
