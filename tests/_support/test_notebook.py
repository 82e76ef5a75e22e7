"""Names of cells."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from cutile._support.notebook import cell_name


def shell(**compile) -> SimpleNamespace:
    return SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=SimpleNamespace(**compile)))


@pytest.mark.parametrize("ipython", [
    None, SimpleNamespace(), SimpleNamespace(get_ipython=lambda: None), shell(),
    shell(format_code_name=lambda name: None)], ids=["none", "old", "no shell", "old shell", "no cell"])
def test_other_files_have_no_such_name(monkeypatch, ipython):
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert cell_name("kernels.py") is None


def test_a_cell_has_the_name_that_ipython_shows(monkeypatch):
    names = {"/tmp/ipykernel_1/2.py": ("Cell", "In[3]")}
    monkeypatch.setitem(sys.modules, "IPython", shell(format_code_name=names.get))
    assert cell_name("/tmp/ipykernel_1/2.py") == "Cell In[3]"
    assert cell_name("/tmp/ipykernel_1/3.py") is None
