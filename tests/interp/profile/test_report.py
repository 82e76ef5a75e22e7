"""Profiles as a table, as data and as a file for speedscope."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import cutile as ct
from cutile.interp.profile import report
from tests.interp.profile.test_lines import profiles


@ct.function
def leaf(t):
    return t + 1.0


@ct.kernel
def calls(x):
    t = leaf(ct.load(x, 0, (8,)))
    t = leaf(t)
    ct.store(x, 0, t)


def of_calls():
    (p,) = profiles(launch=lambda: ct.launch(None, (1,), calls, (np.ones(8, np.float32),)))
    return p


def test_table():
    stream = io.StringIO()
    report.show(profiles()[0], stream)
    title, header, *rows = stream.getvalue().splitlines()
    assert title.startswith("kernel: 1 launch, 3 blocks, ") and header.split()[:4] == ["line", "time", "%", "runs"]
    lines = [int(row.split()[0]) for row in rows if row.split()[0].isdigit()]
    own, helper = lines[:-1], lines[-1]
    assert own == sorted(own) and helper < own[0]  # the kernel first, in its order; then helpers
    assert any("halved, test_lines.py" in row for row in rows)
    load = next(row for row in rows if "ct.load" in row)
    assert "320 B" in load and load.rstrip().endswith("ct.PaddingMode.ZERO)")


def test_a_helper_that_is_called_twice_is_one_row_and_two_entries():
    p = of_calls()
    merged = [cost for line, cost in report.by_place(p) if line[-1][0] == "leaf"]
    assert len(merged) == 1 and merged[0].operations.total() == 16
    entries = [e for e in report.data(p)["lines"] if e["function"] == "leaf"]
    assert [e["calls"][0]["function"] for e in entries] == ["calls", "calls"]
    assert [e["operations"] for e in entries] == [{"other float32": 8}] * 2
    assert entries[0]["calls"][0]["line"] + 1 == entries[1]["calls"][0]["line"]


def test_data_is_plain():
    p = profiles()[0]
    assert json.loads(json.dumps(report.data(p))) == report.data(p)
    assert set(report.data(p)["lines"][0]) == {"line", "file", "function", "calls", "seconds", "runs", "bytes read",
                                               "bytes written", "operations"}


def test_speedscope():
    """What the schema of its file format demands."""
    made = report.speedscope([of_calls(), *profiles()])
    frames = made["shared"]["frames"]
    assert made["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert [p["name"] for p in made["profiles"]] == [f"{k}: {w}" for k in ("calls", "kernel")
                                                     for w in ("time", "bytes", "operations")]
    for p in made["profiles"]:
        assert p["type"] == "sampled" and p["unit"] in ("seconds", "bytes", "none")
        assert len(p["samples"]) == len(p["weights"]) and p["startValue"] == 0
        assert p["endValue"] == pytest.approx(sum(p["weights"])) and all(w > 0 for w in p["weights"])
        assert all(0 <= i < len(frames) for stack in p["samples"] for i in stack)
    read = made["profiles"][1]
    assert sum(read["weights"]) == 64
    assert frames[read["samples"][0][0]]["name"].endswith("t = leaf(ct.load(x, 0, (8,)))")
    assert any(len(stack) == 2 for stack in made["profiles"][2]["samples"])  # kernel, helper


@pytest.mark.parametrize("n, text", [(0, ""), (5, "5 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"),
                                     (5 << 30, "5 GiB"), (700 << 20, "700 MiB")])
def test_sizes(n, text):
    assert report._size(n) == text


@pytest.mark.parametrize("n, text", [(0, ""), (999, "999"), (1000, "1 K"), (123_456, "123 K"), (2_500_000, "2.5 M")])
def test_amounts(n, text):
    assert report._amount(n) == text


@pytest.mark.parametrize("s, text", [(2, "2.00 s"), (0.0125, "12.50 ms"), (3e-6, "3 µs")])
def test_times(s, text):
    assert report._seconds(s) == text
