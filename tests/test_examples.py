"""Every example is right, and gives equal bits under every schedule and padding. Only examples whose blocks wait for
each other leave the batch schedule.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
from pathlib import Path

import numpy as np
import pytest

from cutile import settings

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS = {"histogram": "skimage", "image_filter": "skimage", "digits": "sklearn",
         "table_statistics": "sklearn"}
WAITING = {"look_back_scan"}
FILES = sorted(p.stem for p in EXAMPLES.glob("[a-z]*.py") if p.stem != "demo")
# Those that launch kernels themselves. Algorithms of cutile.compute launch theirs.
LAUNCHING = [n for n in FILES if "ct.launch(" in (EXAMPLES / f"{n}.py").read_text()]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def load(name: str):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return importlib.import_module(name)


@functools.cache
def batched(name: str) -> tuple[list, list[str]]:
    """The rows of an example, and the lines about each launch."""
    with settings.override(SCHEDULE="batch", DEBUG=1), contextlib.redirect_stderr(io.StringIO()) as said:
        rows = load(name).main()
    return rows, [line for line in said.getvalue().splitlines() if " runs as " in line]


def assert_equal_bits(name: str, rows: list) -> None:
    expected, _ = batched(name)
    assert [r.kernel for r in rows] == [r.kernel for r in expected]
    for row, other in zip(rows, expected, strict=True):
        for a, b in zip(row.outputs, other.outputs, strict=True):
            assert a.tobytes() == b.tobytes(), f"{row.kernel} differs"


@pytest.mark.parametrize("name", FILES)
def test_right(name):
    rows, _ = batched(name)
    assert rows
    for r in rows:
        assert r.error <= r.allowed and r.seconds > 0 and all(out.size for out in r.outputs)


LONG = {"gemm", "k_means", "table_statistics"}  # 5 to 15 seconds


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.deep) if n in LONG else n for n in FILES])
def test_block_by_block_gives_equal_bits(name):
    load(name)
    with settings.override(SCHEDULE="block"):
        assert_equal_bits(name, load(name).main())


@pytest.mark.parametrize("name", FILES)
def test_poisoned_padding_gives_equal_bits(name):
    load(name)
    with settings.override(SCHEDULE="batch", UNDETERMINED="poison"):
        assert_equal_bits(name, load(name).main())


@pytest.mark.parametrize("name", FILES)
def test_runs_wholly_in_batch(name):
    """No example leaves batch, except the one that shows waiting."""
    rows, launches = batched(name)
    assert len(launches) >= len(rows)
    how = " waits for other blocks)" if name in WAITING else " runs as batch"
    assert [line for line in launches if how not in line] == []


@pytest.mark.parametrize("name", sorted(WAITING))
def test_any_order_gives_equal_bits(name):
    load(name)
    for seed in (1, 2):
        with settings.override(SEED=seed):
            assert_equal_bits(name, load(name).main())


def test_demo_lists_every_example():
    assert sorted(importlib.import_module("demo").EXAMPLES) == FILES


def demo_output(monkeypatch, main) -> tuple[bool, str]:
    from rich.console import Console

    demo, text = importlib.import_module("demo"), io.StringIO()
    monkeypatch.setattr(importlib.import_module("vector_add"), "main", main)
    ok = demo.run(("vector_add",), Console(file=text, width=120))
    return ok, text.getvalue()


def test_demo_prints_a_row_per_launch(monkeypatch):
    rows, _ = batched("vector_add")
    ok, text = demo_output(monkeypatch, lambda: rows)
    assert ok
    for word in ("examples/vector_add.py", "vector add f32", "977", "1024", f"{rows[0].error:.1e}", "all 1 examples"):
        assert word in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_numbers_of_the_demo_are_whole_however_narrow_the_terminal(width):
    from rich.console import Console

    demo, report, text = importlib.import_module("demo"), importlib.import_module("_report"), io.StringIO()
    row = report.Row("flash attention f16, grouped queries, causal", (4, 2, 16), (64, 64, 128), 1.25e-7, 3.5e-4, 0.6261,
                     ())
    Console(file=text, width=width).print(demo.table([row]))
    for word in ("1.2e-07", "3.5e-04", "626.1 ms", "largest error", "allowed there"):
        assert word in text.getvalue()
    assert "…" not in text.getvalue()


def test_demo_fails_when_an_example_does(monkeypatch):
    def broken():
        raise AssertionError("vector add f32: 3 of 9 elements are wrong")

    ok, text = demo_output(monkeypatch, broken)
    assert not ok
    assert "3 of 9 elements are wrong" in text and "1 of 1 examples failed" in text


def test_check_refuses_wrong_and_undefined_results():
    report = importlib.import_module("_report")
    with report.timed() as watch:
        pass
    want = np.array([1.0, 2.0])
    good = report.check("k", (1,), (2,), watch, (np.array([1.0, 2.25], np.float32), want, 0.25))
    assert (good.error, good.allowed) == (0.25, 0.25)
    for got in ([1.0, 2.5], [1.0, np.nan], [1.0, 2.0, 3.0]):
        with pytest.raises(AssertionError, match="k: "):
            report.check("k", (1,), (2,), watch, (np.array(got, np.float32), want, 0.25))
