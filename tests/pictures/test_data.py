"""The data about launches: totals, costs, findings, the source; and it has the form that it says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import cutile as ct
from cutile.analysis.gpus import GPUS
from cutile.pictures.data import data
from cutile.pictures.form import problems
from cutile.pictures.html import page
from cutile.pictures.trace import trace
from tests.test_examples import EXAMPLES, LAUNCHING, NEEDS


@ct.function
def biased(t):
    return t + 1.0


@ct.kernel
def product(a, b, c):
    acc = ct.zeros((4, 4), ct.float32)
    for k in range(2):
        acc = ct.mma(ct.load(a, (ct.bid(0), k), (4, 8)), ct.load(b, (k, 0), (8, 4)), acc)
    ct.store(c, (ct.bid(0), 0), biased(acc))


def of_product():
    a, b, c = np.ones((8, 16), np.float16), np.ones((16, 4), np.float16), np.zeros((8, 4), np.float32)
    return data(trace(product, (2,), (a, b, c)))


def test_totals_and_lines():
    d = of_product()
    operations = {"matrix float16": 2 * 2 * 2 * 4 * 8 * 4, "other float32": 2 * 16}
    read, written = 2 * 2 * (32 + 32) * 2, 2 * 16 * 4
    touched = 8 * 16 * 2 + 16 * 4 * 2 + 8 * 4 * 4
    assert d["totals"] == {
        "bytes read": read, "bytes written": written, "touched bytes": touched, "operations": operations,
        "intensity": (1024 + 32) / (read + written), "intensity of touched bytes": (1024 + 32) / touched}
    by_line = {d["places"][line["at"]]["line"] - d["sources"][0]["first"]: line for line in d["lines"]}
    assert by_line[3] | {"at": 0} == {"at": 0, "runs": 4, "bytes read": read, "bytes written": 0,
                                      "operations": {"matrix float16": 1024}}
    assert by_line[4]["bytes written"] == written
    helper = [d["places"][line["at"]] for line in d["lines"] if line["operations"] == {"other float32": 32}]
    assert [d["sources"][p["source"]]["function"] for p in helper] == ["biased"]


def test_sources():
    sources = of_product()["sources"]
    assert [s["function"] for s in sources] == ["product", "biased"]
    assert sources[0]["lines"][0] == "def product(a, b, c):" and "biased(acc)" in sources[0]["lines"][-1]
    assert sources[1]["lines"] == ["def biased(t):", "    return t + 1.0"] and sources[0]["file"] == __file__


@ct.kernel
def wrong(x, out):
    ct.store(out, 0, ct.load(x, ct.bid(0), (4,)))


def test_findings():
    d = data(trace(wrong, (3,), (np.ones(8, np.float32), np.zeros(4, np.float32))))
    by_check = {f["check"]: f for f in d["findings"]}
    assert by_check.keys() == {"bounds", "race", "undetermined"} or by_check.keys() == {"bounds", "race"}
    bounds = by_check["bounds"]
    assert (bounds["array"], bounds["block"], bounds["element"], bounds["times"]) == (0, [2, 0, 0], [8], 1)
    assert "lies wholly outside" in bounds["message"] and bounds["help"]
    assert d["places"][bounds["at"]]["line"] == d["sources"][0]["first"] + 1
    assert d["arrays"][by_check["race"]["array"]]["name"] == "out"


@ct.kernel
def failing(x):
    ct.assert_(ct.load(x, 0, ()) > 0, "not positive")


def test_errors():
    d = data(trace(failing, (1,), (np.zeros(1, np.float32),)))
    assert d["error"].startswith("TileAssertionError: ") and "not positive" in d["error"]


def test_a_launch_without_blocks_or_arithmetic():
    d = data(trace(wrong, (0,), (np.ones(8, np.float32), np.zeros(4, np.float32))))
    assert d["cells"] is None and d["arrays"] == [] and d["totals"]["intensity"] is None and not list(problems(d))


@ct.kernel
def of_many(arrays):
    ct.store(arrays[ct.bid(0)], 0, 1)


def test_many_arrays_make_no_large_page():
    arrays = [np.zeros((64, 64), np.int8) for _ in range(600)]
    d = data(trace(of_many_2d, (600,), (arrays,)))
    assert len(d["arrays"]) == 600 and not list(problems(d)) and len(page(d)) < 3 << 20


@ct.kernel
def of_many_2d(arrays):
    ct.store(arrays[ct.bid(0)], (0, 0), 1)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda g: g["name"])
def test_gpus_are_plausible(gpu):
    """Wider dtypes are not faster, and products of matrices are not slower than other arithmetic."""
    peaks = gpu["peaks"]
    assert peaks["matrix float32"] <= peaks["matrix tfloat32"] <= peaks["matrix float16"] <= peaks["matrix int8"]
    assert peaks["other float64"] <= peaks["other float32"] and 1e12 < gpu["bandwidth"] < 1e13


LONG = {"attention", "digits", "flash_attention", "gemm", "image_filter", "layer_norm", "matmul", "split_k"}  # seconds


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.deep) if n in LONG else n for n in LAUNCHING])
def test_examples_have_the_form_and_small_pages(name, monkeypatch):
    """The first launch of each kernel of each example."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    launch, seen = ct.launch, {}

    def also_seen(stream, grid, kernel, args, /, **options):
        if kernel.__name__ not in seen:
            d = seen[kernel.__name__] = data(trace(kernel, grid, args, stream))
            assert not list(problems(d)) and json.loads(json.dumps(d)) == d and d["error"] is None
            assert not d["findings"] and len(page(d).encode()) <= 3_000_000
            assert sum(a["reads"]["total"] + a["writes"]["total"] for a in d["arrays"]) > 0
            assert Path(d["sources"][0]["file"]).parent == EXAMPLES
        return launch(stream, grid, kernel, args, **options)

    monkeypatch.setattr(ct, "launch", also_seen)
    importlib.import_module(name).main()
    assert seen
