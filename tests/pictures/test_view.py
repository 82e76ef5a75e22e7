"""ct.view: what users call."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import cutile as ct
from tests.pictures.test_data import of_product, product, wrong


def arguments():
    return np.ones((8, 16), np.float16), np.ones((16, 4), np.float16), np.zeros((8, 4), np.float32)


def test_a_view(tmp_path):
    v = ct.view(product, (2,), arguments())
    assert v.data == of_product()
    v.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == v.html and v.html.startswith("<!doctype html>")
    assert v._repr_html_().startswith("<iframe srcdoc=")
    assert repr(v) == "<view of product, grid (2, 1, 1): save(path) writes the page>"


def test_findings_and_blocks():
    v = ct.view(wrong, (200,), (np.ones(8, np.float32), np.zeros(4, np.float32)), blocks=[(77,), "101"])
    assert "finding(s)" in repr(v)
    assert {(77, 0, 0), (101, 0, 0), (2, 0, 0)} <= {tuple(b["block"]) for b in v.data["blocks"]}


def test_a_kernel_that_cannot_be_typed_raises_as_a_launch_does():
    @ct.kernel
    def k(x):
        ct.store(x, 0, "a")

    with pytest.raises(ct.TileTypeError) as e:
        ct.view(k, (1,), (np.zeros(4, np.float32),))
    assert [f.name for f in traceback.extract_tb(e.value.__traceback__)[1:]] == ["view"]


def test_errors_about_arguments_end_at_the_call():
    with pytest.raises(TypeError, match="must be a kernel") as e:
        ct.view(3, (1,), ())
    assert [f.name for f in traceback.extract_tb(e.value.__traceback__)[1:]] == ["view"]


def test_the_room_does_not_hide_the_function():
    import cutile.pictures.view  # noqa: F401

    assert callable(ct.view)
