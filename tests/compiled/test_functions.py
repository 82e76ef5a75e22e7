"""Compiled functions: their error, which decides where they are sure, and every float32 against NumPy."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from cutile import compiled
from cutile.dtypes import float32
from cutile.ops import _numeric
from tests.compiled.numpy_forms import FUNCTIONS, built, compute
from tests.compiled.test_compiled import assert_agree
from tests.gpu.extension import DEFINED

SURE = [name for name in FUNCTIONS if not name.startswith("rsqrt")]
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def floats(start: int, step: int) -> np.ndarray:
    """Every `step`-th float32 by its bits."""
    return np.arange(start, 1 << 32, step, np.uint64).astype(np.uint32).view(np.float32)


def test_errors_in_float64_are_less_than_the_reach(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    include = sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists() or np.finfo(np.longdouble).nmant < 63 \
            or "exp float32" not in built():
        pytest.skip("needs a C compiler, Python's headers, a long double of 64 bits, and a CPU with fused multiply-add")
    program = tmp_path / "accuracy"
    subprocess.run([compiler, "-O2", "-ffp-contract=off", "-fno-math-errno", *DEFINED, f"-I{include}",
                    f"-I{Path(compiled.__file__).parent}", HERE / "accuracy.c", "-o", program, "-lm"], check=True)
    answer = subprocess.run([program, "10007"], check=True, capture_output=True, text=True).stdout
    errors = {name: float(error) for name, error in map(str.split, answer.splitlines())}
    assert {f"{name} float32" for name in errors} == {name for name in SURE if name.endswith("float32")}
    assert max(errors.values()) < -51, errors


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_of_all_sizes(name):
    x = floats(7, 40_009)
    x = x[~np.isnan(x)]
    assert_agree(name, compute(name, x), FUNCTIONS[name](x))


@pytest.mark.deep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_float(name):
    for start in range(256):
        x = floats(start, 256)
        x = x[~np.isnan(x)]
        assert_agree(name, compute(name, x), FUNCTIONS[name](x))


@pytest.mark.parametrize("name", SURE)
def test_few_results_are_doubtful(name):
    """Of numbers of usual size."""
    x = np.abs(np.random.default_rng(3).standard_normal(1 << 19).astype(np.float32)) + np.float32(0.1)
    found = built()[name](x).view(np.uint32)
    assert np.count_nonzero(found == compiled.DOUBTFUL) < 20


def doubtful_argument() -> np.float32:
    """A number whose exponential is so near the middle of two float32 that the form cannot decide."""
    x = np.random.default_rng(5).standard_normal(1 << 24).astype(np.float32)
    return x[(built()["exp float32"](x).view(np.uint32) == compiled.DOUBTFUL).argmax()]


@pytest.mark.parametrize("name", SURE)
def test_that_a_result_is_nan_is_never_in_doubt(name):
    """Of data half of which is negative NumPy would compute each logarithm again."""
    x = np.float32([np.nan, -np.nan, -1.0, -2.0**-149, -np.inf][:5 if name.startswith("log") else 2])
    assert np.isnan(FUNCTIONS[name](x)).all()
    found = built()[name](x)
    assert np.isnan(found).all() and (found.view(np.uint32) != compiled.DOUBTFUL).all()


def test_doubtful_results_are_mended():
    x = np.float32([1.0, np.nan, 1e30, -2.0, 0.0, doubtful_argument()])
    for fn, name in ((np.sin, "sin float32"), (np.exp, "exp float32")):
        assert (built()[name](x).view(np.uint32) == compiled.DOUBTFUL).any()
        for operand in (x, x[:, None], np.broadcast_to(x[1], (3, 2)), x[1], np.broadcast_to(x, (4, x.size))):
            got, want = compute(name, operand), fn(operand.astype(np.float64)).astype(np.float32)
            assert np.array_equal(got, want, equal_nan=True) and got.shape == want.shape


@pytest.mark.parametrize("shape", [(4000,), (40, 100), (4000, 1)])
def test_results_in_the_memory_of_the_operand(shape):
    """Doubtful results are computed from the operand, also where the result is to replace it."""
    x = np.resize(np.float32([1.0, 1e30, -2.0, 0.0, 7e25]), shape)
    for fn in (np.sin, np.log):
        given = x.copy()
        got = _numeric.wide(fn, given, out=given, dtype=float32)
        assert np.array_equal(got, fn(x.astype(np.float64)).astype(np.float32), equal_nan=True)
        overlapping = np.concatenate([x.reshape(-1), x.reshape(-1)[:1]])
        got = _numeric.wide(fn, overlapping[:-1], out=overlapping[1:], dtype=float32)
        assert np.array_equal(got, fn(x.reshape(-1).astype(np.float64)).astype(np.float32), equal_nan=True)


def test_an_error_while_mending_is_raised():
    def mend(x, result):
        raise KeyboardInterrupt

    x, out = np.float32([np.inf]), np.zeros(1, np.float32)
    before = sys.getrefcount(out)
    with pytest.raises(KeyboardInterrupt):
        built()["sin float32"](x, out, mend)
    assert sys.getrefcount(out) == before
