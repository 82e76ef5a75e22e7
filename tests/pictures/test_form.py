"""The form of the data: what differs from it is found."""

from __future__ import annotations

import copy

import pytest

from cutile.pictures.form import FORM, VERSION, problems
from tests.pictures.test_data import of_product


@pytest.fixture(scope="module")
def good():
    return of_product()


def test_good_data(good):
    assert list(problems(good)) == []
    assert good["format"] == "cutile view" and good["version"] == VERSION == 1


def changed(path, value):
    def change(d):
        *steps, last = path
        for step in steps:
            d = d[step]
        if value is KeyError:
            del d[last]
        else:
            d[last] = value
    return change


@pytest.mark.parametrize("change, says", [
    (changed(["kernel"], 3), "data.kernel is 3, no str"),
    (changed(["grid"], 3), "data.grid is no list"),
    (changed(["grid", 1], 1.0), "data.grid[1] is 1.0, no int"),
    (changed(["arrays", 0, "shape"], KeyError), "data.arrays[0].shape is missing"),
    (changed(["arrays", 0, "more"], 1), "data.arrays[0].more is not in the form"),
    (changed(["accesses", 0, "masked"], 1), "data.accesses[0].masked is 1, no bool"),
    (changed(["totals"], None), "data.totals is no object"),
    (changed(["totals", "operations", "matrix float16"], None),
     "data.totals.operations.matrix float16 is None, no int"),
    (changed(["totals", "intensity"], True), "data.totals.intensity is True, no float"),
    (changed(["cells", "boxes", 0, 0], 1), "data.cells.boxes[0][0] is no list"),
])
def test_what_differs_is_found(good, change, says):
    d = copy.deepcopy(good)
    change(d)
    assert list(problems(d)) == [says]


@pytest.mark.parametrize("key", ["error", "cells"])
def test_what_may_be_null(good, key):
    assert list(problems({**good, key: None})) == [] and key in FORM
