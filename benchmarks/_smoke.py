"""Shared code of the checks of gpu_smoke.py: how to declare a check, its outcomes, and small kernels and arrays."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "benchmarks")]

import cutile as ct  # noqa: E402

CHECKS: dict[str, object] = {}  # for each library


class Skipped(Exception):
    pass


def check(f):
    CHECKS[f.__name__] = f
    return f


def needs(module: str):
    """Import a module; the check is skipped if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise Skipped(str(e)) from None


def same(got: np.ndarray, want: np.ndarray) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    bad = np.argwhere(got != want)
    assert not len(bad), f"{len(bad)} of {got.size} differ, first at {tuple(bad[0])}: {got[tuple(bad[0])]!r}, " \
                         f"wanted {want[tuple(bad[0])]!r}"


def raises(cls, text: str, f, *args, **kw):
    try:
        f(*args, **kw)
    except cls as e:
        assert text in str(e), f"says {e}"
    else:
        raise AssertionError(f"no {cls.__name__}")


@ct.kernel
def add(a, b, c, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, N) + ct.load(b, i, N))


@ct.kernel
def scale(x, y, f, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, N) * f)


@ct.kernel
def copy2(x, y, M: ct.Constant[int], N: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i, j), ct.load(x, (i, j), (M, N)).astype(y.dtype))


def arange(lib, n=5000, dtype=np.float32):
    return lib.to_device(np.arange(n).astype(dtype))


def zeros(lib, n=5000, dtype=np.float32):
    return lib.to_device(np.zeros(n, dtype))
