"""Numbers of random programs."""

from __future__ import annotations

import pytest


def seeds(each_run: int, deep: int):
    """The parameter `seed`: each run of the tests takes the first numbers, the deep session all."""
    return pytest.mark.parametrize("seed", [
        *range(each_run), *(pytest.param(s, marks=pytest.mark.deep) for s in range(each_run, deep))])
