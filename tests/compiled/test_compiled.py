"""Compiled forms against the NumPy forms that define them: the same bits, for operands of every layout."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import threading
from pathlib import Path

import numpy as np
import pytest

from cutile import compiled, settings
from cutile._support import float_mode
from tests.compiled.numpy_forms import ALONG, ELEMENTS, ELEMENTWISE, FUNCTIONS, OPERANDS, built, compute
from tests.gpu.extension import DEFINED

SOURCES = Path(compiled.__file__).parent
rng = np.random.default_rng(16)


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def types_of(name: str) -> list[np.dtype]:
    return [np.dtype(t) for t in OPERANDS[name]]


# ------------------------------------------------------------------ values


def edges(dtype: np.dtype) -> np.ndarray:
    """Values at which forms may go wrong; among them one NaN, because NumPy may take either of two."""
    if dtype.kind != "f":
        return np.arange(256).astype(dtype)
    f = np.finfo(dtype)
    values = [0.0, 1.0, 1.5, 3.0, f.max, f.tiny, f.smallest_subnormal, np.inf, 65504.0, 65519.0, 65520.0, 2.0**-14,
              2.0**-24, 2.0**-25, 448.0, 464.0, 6.0, 5.0, 2.0**-127, 2.0**-133, 1 + 2.0**-8, 1 + 3 * 2.0**-8]
    values = np.array(values, dtype)
    near = np.concatenate([values, np.nextafter(values, 0, dtype=dtype), np.nextafter(values, np.inf, dtype=dtype)])
    return np.concatenate([near, -near])


def nans(dtype: np.dtype) -> np.ndarray:
    """NaNs with payloads, of both signs, quiet and signalling."""
    word = np.dtype(f"u{dtype.itemsize}")
    fraction = np.finfo(dtype).nmant
    top = word.type((1 << (8 * dtype.itemsize - 1)) - (1 << fraction))
    quiet = 1 << (fraction - 1)
    payloads = np.array([1, quiet, 2 * quiet - 1, 5 << (fraction - 10), quiet | 9], word)
    return np.concatenate([payloads | top, payloads | top | word.type(1 << (8 * dtype.itemsize - 1))]).view(dtype)


def random(dtype: np.dtype, n: int) -> np.ndarray:
    """Values of all magnitudes that occur, none of them NaN."""
    if dtype.kind != "f":
        return rng.integers(0, 256, (n, dtype.itemsize), np.uint8).view(dtype).reshape(n)
    x = rng.integers(0, 256, (n, dtype.itemsize), np.uint8).view(dtype).reshape(n)
    x = np.where(np.isnan(x), dtype.type(0.5), x)
    near_one = rng.standard_normal(n).astype(dtype)
    return np.where(rng.random(n) < 0.5, x, near_one)


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    word = f"u{got.dtype.itemsize}"
    a, b = (np.ascontiguousarray(x).view(word).ravel() for x in (got, want))
    different = np.flatnonzero(a != b)
    assert not different.size, f"{different.size} differ, first at {different[0]}: {got.ravel()[different[0]]!r} " \
                               f"instead of {want.ravel()[different[0]]!r}"


def assert_agree(name: str, got: np.ndarray, want: np.ndarray) -> None:
    """The same bits; but which NaN a function results in differs between NumPy's own forms, too."""
    if name in FUNCTIONS:
        got, want = (np.where(np.isnan(x), x.dtype.type(np.nan), x) for x in (got, want))
    assert_same_bits(got, want)


# ------------------------------------------------------------------ values


def test_every_form_is_compared():
    assert set(built()) == {*ELEMENTWISE, *ELEMENTS, *ALONG}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_edges(name):
    dtypes = types_of(name)
    values = [edges(d) for d in dtypes]
    few = [v[::1 if len(dtypes) < 3 else 3] for v in values]
    operands = [g.copy() for g in np.meshgrid(*few, indexing="ij")]
    assert_agree(name, compute(name, *operands), ELEMENTWISE[name](*operands))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_one_nan(name):
    dtypes = types_of(name)
    for k, d in enumerate(dtypes):
        if d.kind != "f":
            continue
        values = [edges(e)[:40] for e in dtypes]
        values[k] = nans(d)
        operands = [g.copy() for g in np.meshgrid(*values, indexing="ij")]
        assert_agree(name, compute(name, *operands), ELEMENTWISE[name](*operands))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_random_values(name):
    operands = [random(d, 60_000) for d in types_of(name)]
    assert_agree(name, compute(name, *operands), ELEMENTWISE[name](*operands))


# ------------------------------------------------------------------ layouts


def layouts(x: np.ndarray):
    """The elements of a packed (3, 40, 6) array in other layouts."""
    yield x
    yield x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    yield x.transpose(2, 0, 1).copy().transpose(1, 2, 0)
    wide = np.zeros((3, 80, 18), x.dtype)
    wide[:, ::2, ::3] = x
    yield wide[:, ::2, ::3]
    moved = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    yield moved


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_layouts(name):
    dtypes = types_of(name)
    packed = [random(d, 3 * 40 * 6).reshape(3, 40, 6) for d in dtypes]
    want = ELEMENTWISE[name](*packed)
    kinds = list(zip(*map(layouts, packed), strict=True))
    for i in range(len(kinds)):
        operands = [kinds[(i + k) % len(kinds)][k] for k in range(len(dtypes))]
        assert_agree(name, compute(name, *operands), want)
        for out in layouts(np.zeros_like(want)):
            assert compute(name, *operands, out=out) is out
            assert_agree(name, out, want)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("shapes", [[(), (), ()], [(5,), (4, 1), (1,)], [(4, 1, 5), (1, 3, 1), (5,)], [(0,), (1,), ()],
                                    [(2, 0, 3), (3,), ()], [(1, 1), (), (1,)], [(700, 3), (3,), (700, 1)]], ids=str)
def test_broadcasting(name, shapes):
    dtypes = types_of(name)
    operands = [random(d, max(1, int(np.prod(s)))).ravel()[:int(np.prod(s))].reshape(s)
                for d, s in zip(dtypes, shapes)]
    full = [x.copy() for x in np.broadcast_arrays(*operands)]
    want = np.asarray(ELEMENTWISE[name](*full)) if full[0].size else np.empty(full[0].shape)
    got = compute(name, *operands)
    assert_agree(name, got, want.astype(got.dtype, copy=False))
    wrong = np.zeros((9, 9), got.dtype)
    assert compute(name, *operands, out=wrong) is not wrong and not wrong.any()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_axis_along_which_nothing_varies_is_computed_once(name):
    operands = [np.broadcast_to(random(d, 6).reshape(6, 1), (4, 6, 8)) for d in types_of(name)]
    got = compute(name, *operands)
    assert got.strides[0] == got.strides[2] == 0
    assert_agree(name, got, ELEMENTWISE[name](*(x.copy() for x in operands)))


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_the_result_lies_in_memory_as_numpy_would_put_it(name, order):
    back = np.argsort(order)
    operands = [random(d, 24).reshape(np.take((2, 3, 4), order)).transpose(back) for d in types_of(name)]
    operands[-1] = operands[-1][:1]
    got, numpys = compute(name, *operands), np.add(operands[0], operands[-1])
    assert np.argsort(got.strides).tolist() == np.argsort(numpys.strides).tolist()


def test_operands_of_other_dtypes_are_refused():
    fma = built()["fma float32"]
    x = np.ones(4, np.float32)
    for other in (x.astype(np.float64), x.astype(np.int32), x.astype(">f4"), x.astype(np.complex64)):
        with pytest.raises(TypeError, match="expected an array"):
            fma(x, other, x)
        with pytest.raises(TypeError, match="expected an array"):
            fma(x, x, x, other)
    with pytest.raises(ValueError, match="broadcast"):
        fma(x, np.ones(3, np.float32), x)
    with pytest.raises(TypeError, match="takes 3 arrays"):
        fma(x, x)
    read_only = x.copy()
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="read-only|not writable"):
        fma(x, x, x, read_only)
    assert (read_only == 1).all()


# ------------------------------------------------------------------ the thread


def test_a_flushing_thread_gets_the_same_bits_and_keeps_its_mode():
    environment = float_mode._environment()
    if environment is None:
        pytest.skip("the mode of this thread cannot be changed")
    import ctypes

    tiny = np.full(1000, 2.0**-70, np.float32)
    want = built()["fma float32"](tiny, tiny, tiny * 0)
    assert (want == np.float32(2.0**-140)).all()
    get, put, _ = environment
    before = ctypes.create_string_buffer(64)
    get(before)
    try:
        mode = ctypes.create_string_buffer(before.raw, 64)
        mode[29] = before.raw[29] | 0x80  # x86: flush to zero
        put(mode)
        if float_mode.usual():
            pytest.skip("this CPU has no such mode, or keeps it elsewhere")
        got = built()["fma float32"](tiny, tiny, tiny * 0)
        flushes = not float_mode.usual()
    finally:
        put(before)
    assert flushes and (got == want).all()


def test_flags_of_earlier_arithmetic_stay_and_no_new_ones_are_raised():
    x = np.full(10, 1e38, np.float32)
    with np.errstate(all="raise"):
        assert np.isinf(built()["fma float32"](x, x, x)).all()
        np.add(x, np.float32(1))  # no flag was left behind


def test_long_loops_let_other_threads_run():
    x = np.ones(1 << 22, np.float32)
    turns, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1

    other = threading.Thread(target=count)
    other.start()
    try:
        before = turns[0]
        for _ in range(200):
            built()["fma float32"](x, x, x, x.copy())
            if turns[0] > before:
                break
        assert turns[0] > before
    finally:
        stop.set()
        other.join()


# ------------------------------------------------------------------ the setting, and the build


def test_a_setting_turns_them_off():
    name = next(iter(built()))
    assert compiled.form(name) is built()[name]
    with settings.override(COMPILED=False):
        assert compiled.form(name) is None
    assert compiled.form("no such form") is None


def test_a_package_without_them_works(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cutile.compiled._forms", None)  # its import fails
    assert compiled._loaded.__wrapped__() == {}


@pytest.mark.parametrize("source", sorted(p.name for p in SOURCES.glob("*.c")))
def test_the_compiler_has_nothing_to_say(source, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    include = sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists():
        pytest.skip("needs a C compiler and Python's headers")
    subprocess.run([compiler, "-std=c11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror",
                    "-Wno-unused-parameter", "-Wno-missing-field-initializers", *DEFINED, "-fPIC", f"-I{include}",
                    "-c", SOURCES / source, "-o", tmp_path / "out.o"], check=True)
