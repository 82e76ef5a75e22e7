"""Functions made of kernels: calls, arguments, outputs that callers give, and the functions as objects."""

import copy
import inspect
import pickle
import threading
import warnings

import numpy as np
import pytest

import cutile as ct
from cutile.runtime import launch as launching
from cutile.runtime import launch_cache
from tests.functions import kernels
from tests.functions.kernels import scaled, scaled_kernel, softmax, softmax_kernel
from tests.functions.shows import shows

X = np.random.default_rng(0).random((5, 12)).astype(np.float32)
LINE = np.arange(10, dtype=np.float32)


def expected(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_calls_of_many_sizes():
    for n in (1, 12, 5, 12):
        assert np.allclose(softmax(X[:, :n]), expected(X[:, :n]), rtol=1e-5)


@shows("JIT-6.keyword", "JIT-6.default")
def test_keywords_and_defaults():
    want = LINE * 3
    for got in (scaled(LINE, 3.0), scaled(x=LINE, factor=3.0), scaled(LINE, factor=3.0, TILE=16), scaled(LINE, 3.0, 2)):
        assert np.array_equal(got, want)
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), defaults={"factor": 2.0, "TILE": 8})
    assert np.array_equal(f(LINE), LINE * 2)


@shows("JIT-6.computed")
def test_computed_defaults():
    assert np.allclose(softmax(X), softmax(X, TILE=32), rtol=1e-6)
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"),
               defaults={"TILE": lambda N, factor: 4 if factor > 2 else kernels.power_of_two(N)})
    assert np.array_equal(f(LINE, 3.0), LINE * 3) and np.array_equal(f(LINE, 1.0), LINE)


@shows("JIT-6.signature")
def test_signatures():
    assert str(inspect.signature(softmax)) == "(x, TILE=<computed>, *, out=None, stream=None)"
    assert str(inspect.signature(scaled)) == "(x, factor, TILE=4, *, out=None, stream=None)"


@shows("JIT-6.signature")
def test_help_shows_what_calls_take_and_return():
    import pydoc

    @ct.kernel
    def documented(x: ct.Array["M N", ct.float32], y, z):
        """Rows of x."""

    for f, takes, gives in [
            (softmax, "x (M N), TILE", "y (M N)"),
            (ct.jit(documented, grid="M", out=(ct.Out(like="x"), ct.Out(("M", 1), ct.int8))).inout("x"),
             "x (M N, float32)", "x, y (like x), z (M 1, int8)")]:
        shown = pydoc.plain(pydoc.render_doc(type(f)))
        assert f"Takes {takes}. Returns {gives}." in shown and str(inspect.signature(f)) in shown
        assert "object object at" not in shown and ("Rows of x." in shown) is (f is not softmax)
    assert "Takes x (M N), TILE. Returns y (M N)." in pydoc.plain(pydoc.render_doc(softmax))


@shows("JIT-6.count")
def test_counts():
    with pytest.raises(TypeError, match=r"scaled\(\) needs the argument `factor`$"):
        scaled(LINE)
    with pytest.raises(TypeError, match=r"takes 3 arguments \(`x`, `factor`, `TILE`\), got 4; `y` is an output, which "
                       "the call makes and returns; out= takes an array of yours instead$"):
        scaled(LINE, 1.0, 4, 5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        scaled(LINE, 1.0, y=LINE)


def test_a_constant_that_a_call_leaves_out():
    @ct.kernel
    def k(x: ct.Array["M N"], T: ct.Constant[int], y, w):
        ct.store(y, (0, 0), ct.load(x, (0, 0), (1, T)) * ct.load(w, 0, 1))

    f = ct.jit(k, grid=(1,), out=ct.Out("M N", name="y"), name="scaled")
    one = np.ones(1, np.float32)
    for out in (None, np.empty_like(X)):
        for _ in range(2):
            with pytest.raises(TypeError, match=r'scaled\(\) needs the argument `T`, .* defaults={"T": lambda N: '):
                f(X, w=one, out=out)
            with pytest.raises(TypeError, match=r"scaled\(\) needs the argument `w`$"):
                f(X, 4, out=out)
            with pytest.raises(TypeError, match=r"scaled\(\) needs the arguments `T` and `w`$"):
                f(X, out=out)
            assert f(X, 4, one, out=out)[0, 3] == X[0, 3]
    with pytest.raises(TypeError, match=r"scaled\(\) needs the arguments `x` and `w`$"):
        f(T=4)


@shows("JIT-6.order")
def test_a_default_before_a_required_parameter():
    @ct.kernel
    def k(n: ct.Constant[int], x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4) + n)

    f = ct.jit(k, grid=(1,), out=ct.Out("N"), defaults={"n": 1})
    assert str(inspect.signature(f)) == "(x, *, n=1, out=None, stream=None)"
    assert np.array_equal(f(LINE[:4]), LINE[:4] + 1) and np.array_equal(f(LINE[:4], n=5), LINE[:4] + 5)


def test_names_of_parameters_that_are_keywords():
    @ct.kernel
    def k(x, stream):
        pass

    with pytest.raises(TypeError, match="parameter `stream` of the kernel has the name of a keyword"):
        ct.jit(k, grid=(1,))


def test_an_output_may_be_called_out():
    @ct.kernel
    def k(x: ct.Array["N"], out):
        ct.store(out, 0, ct.load(x, 0, 4))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    o = np.zeros(4, np.float32)
    assert np.array_equal(f(LINE[:4]), LINE[:4]) and f(LINE[:4], out=o) is o and np.array_equal(o, LINE[:4])


# ------------------------------------------------------------------ outputs


@shows("JIT-10.out", "JIT-10.code")
def test_the_array_for_an_output():
    before = len(softmax_kernel._programs)
    want = softmax(X)
    programs = len(softmax_kernel._programs)
    for o in (np.zeros_like(X), np.zeros_like(X), np.zeros((5, 24), np.float32)[:, ::2]):
        assert softmax(X, out=o) is o and np.array_equal(o, want)
    assert len(softmax_kernel._programs) == programs >= before


W = X[:3, :4].copy()


@ct.kernel
def total(x: ct.Array["M N"], y, z, TILE: ct.Constant[int] = 4):
    t = ct.load(x, (ct.bid(0), 0), (1, TILE))
    ct.atomic_add(y, ct.arange(TILE, dtype=ct.int32), t.reshape((TILE,)))
    ct.store(z, ct.bid(0), ct.sum(t, axis=1))


@shows("JIT-7.fill", "JIT-10.out")
def test_an_array_that_is_given_is_filled(monkeypatch):
    f = ct.jit(total, grid="M", out=(ct.Out("N", fill=0), ct.Out("M")))
    y, z = np.full(4, 7, np.float32), np.full(3, 7, np.float32)
    wanted, others = (W.sum(axis=0), W.sum(axis=1)), (y[::-1], z)
    for out in ((y, z), (y, z), others, others, [y, z]):
        got = f(W, out=out)
        assert got[0] is out[0] and np.array_equal(got[0], wanted[0]) and np.array_equal(got[1], wanted[1])
    monkeypatch.setattr(type(f), "slow", None)
    f(W, out=(y, z))
    f(W, out=(y, z))
    assert np.array_equal(y, wanted[0])


@shows("JIT-7.fill")
def test_an_array_that_is_given_stays_without_a_fill():
    f = ct.jit(total, grid="M", out=(ct.Out("N"), ct.Out("M")))
    y, z = np.ones(4, np.float32), np.ones(3, np.float32)
    for n in range(1, 4):
        f(W, out=(y, z))
        assert np.allclose(y, 1 + n * W.sum(axis=0))


@shows("JIT-7.fill", "JIT-13.grid")
def test_filled_where_nothing_is_launched():
    f = ct.jit(total, grid=(0,), out=(ct.Out("N", fill=3), ct.Out("M")))
    assert f(W, out=(np.ones(4, np.float32), np.ones(3, np.float32)))[0].tolist() == [3] * 4


@shows("JIT-7.fill", "JIT-12.same")
def test_an_argument_is_not_filled():
    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4))

    f, x = ct.jit(k, grid=(1,), out=ct.Out("N", fill=0)), W[0].copy()
    f(x, out=np.empty_like(x))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"out= is the array that `x` is, too, and output `y` is filled with 0"):
            f(x, out=x)
    assert np.array_equal(x, W[0])


@shows("JIT-10.several")
def test_several_outputs():
    @ct.kernel
    def k(x: ct.Array["N"], y, z):
        t = ct.load(x, 0, 4)
        ct.store(y, 0, t + 1)
        ct.store(z, 0, (t + 2).astype(ct.int32))

    f = ct.jit(k, grid=(1,), out=(ct.Out("N"), ct.Out("N", ct.int32)))
    o = np.zeros(4, np.float32), np.zeros(4, np.int32)
    for _ in range(2):
        got = f(LINE[:4], out=o)
        assert type(got) is tuple and got[0] is o[0] and got[1] is o[1] and o[1].tolist() == [2, 3, 4, 5]
    for wrong in (o[0], (o[0],), (*o, o[0])):
        with pytest.raises(TypeError, match="out= takes a tuple of 2 arrays, for `y`, `z`"):
            f(LINE[:4], out=wrong)


@shows("JIT-10.checked", "JIT-16.before")
def test_arrays_for_outputs_are_checked(monkeypatch):
    read_only = np.zeros_like(X)
    read_only.flags.writeable = False
    softmax(X, out=np.zeros_like(X))
    for wrong, error, message in ((np.zeros((5, 11), np.float32), ValueError, "have the shape (5, 12), got (5, 11)"),
                                  (np.zeros(60, np.float32), ValueError, "must have the shape (5, 12), got (60,)"),
                                  (np.zeros((5, 12)), TypeError, "must have dtype float32, got float64"),
                                  (read_only, ValueError, "is read-only"), (3, TypeError, "must be an array")):
        with pytest.raises(error) as e:
            softmax(X, out=wrong)
        assert message in str(e.value) and "`y`" in str(e.value)
    from cutile.functions import libraries

    def never(*args):
        raise AssertionError("allocated")

    monkeypatch.setattr(libraries._NumPy, "maker", never)
    with pytest.raises(AssertionError, match="allocated"):
        ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": 16})(X)
    fresh = ct.jit(softmax_kernel, grid="M+1", out=ct.Out("M N"), defaults={"TILE": 16})
    with pytest.raises(TypeError, match="must be an array"):
        fresh(3)
    with pytest.raises(ValueError, match="must have 2 axes"):
        fresh(LINE)
    with pytest.raises(ValueError, match="the grid"):
        ct.jit(softmax_kernel, grid="M-6", out=ct.Out("M N"), defaults={"TILE": 16})(X)


@shows("JIT-11.returns")
def test_no_outputs():
    @ct.kernel
    def k(x):
        ct.store(x, 0, 7)

    x = np.zeros(1, np.int32)
    f = ct.jit(k, grid=(1,))
    assert f(x) is None and f(x, stream=None) is None and x[0] == 7
    assert not isinstance(scaled(LINE, 1.0), tuple)


@shows("JIT-11.empty")
def test_without_arguments():
    ran = []

    @ct.kernel
    def k():
        ct.static_eval(ran.append(1))

    f = ct.jit(k, grid=(1,))
    assert f() is None and f() is None and ran


@shows("JIT-12.inout")
def test_arguments_that_are_written():
    @ct.kernel
    def k(y, x: ct.Array["N"], z):
        t = ct.load(x, 0, 4)
        ct.store(x, 0, t + 1)
        ct.store(y, 0, t)
        ct.store(z, 0, t * 2)

    f = ct.jit(k, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("N", name="z"))).inout("x")
    x = np.arange(4, dtype=np.float32)
    for step in range(2):
        y, same, z = f(x)
        assert same is x and x[0] == step + 1 and y[0] == step and z[0] == 2 * step
    with pytest.raises(TypeError, match="w is no array that callers pass"):
        f.inout("w")


@shows("JIT-13.grid", "JIT-13.outputs")
def test_nothing_is_launched_over_nothing():
    ran = []

    @ct.kernel
    def k(x: ct.Array["M N"], y):
        ct.static_eval(ran.append(1))
        ct.store(y, (0, 0), ct.load(x, (0, 0), (1, 1)))

    assert ct.jit(k, grid="M", out=ct.Out("N 1"))(np.zeros((0, 3), np.float32)).shape == (3, 1)
    assert ct.jit(k, grid="M", out=ct.Out("M N"))(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert ct.jit(k, grid=lambda M, N: (M // N,), out=ct.Out("M N"))(np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert not ran
    ct.jit(k, grid="M", out=ct.Out("M N"))(np.zeros((1, 1), np.float32))
    assert ran


# ------------------------------------------------------------------ grids


def grid_of(grid, x=X, **given):
    seen = []

    @ct.kernel
    def k(x: ct.Array["M N"], y, T: ct.Constant[int], w: ct.Array["W"]):
        ct.store(y, 0, ct.num_blocks(0) * 10000 + ct.num_blocks(1) * 100 + ct.num_blocks(2))

    f = ct.jit(k, grid=grid, out=ct.Out("1", ct.int32, name="y"), **given)
    for _ in range(2):
        value = int(f(x, 4, LINE)[0])
        seen.append((value // 10000, value // 100 % 100, value % 100))
    assert seen[0] == seen[1]
    return seen[0]


@shows("JIT-18.names")
def test_grids():
    assert grid_of((3,)) == (3, 1, 1)
    assert grid_of(3) == (3, 1, 1)
    assert grid_of("M cdiv(N,T)") == (5, 3, 1)
    assert grid_of(("M", 2, "W")) == (5, 2, 10)
    assert grid_of(lambda M, T: (M, T)) == (5, 4, 1)
    assert grid_of(lambda **names: (names["M"], names["T"])) == (5, 4, 1)
    for wrong in (lambda w: (1,), lambda Q: (1,), "w", "Q"):
        with pytest.raises(TypeError, match="no named size and no argument|reads w, an array"):
            grid_of(wrong)


@shows("JIT-18.negative")
@pytest.mark.parametrize("grid", ["M-6", lambda M: (M / 2,), lambda M: (M, -1), lambda M: M, lambda: (True,)])
def test_grids_that_are_no_grids(grid):
    with pytest.raises((ValueError, TypeError), match="the grid must"):
        grid_of(grid)


@shows("JIT-18.limit")
def test_grids_that_are_too_large():
    with pytest.raises(ValueError, match=r"at most 65535 along axis 1, got 65536 in \(1, 65536\)"):
        grid_of((1, 65536))
    with pytest.raises(ValueError, match="along axis 0"):
        grid_of((2**31,))
    with pytest.raises(ValueError, match="at most three axes"):
        grid_of((1, 1, 1, 1))


@shows("JIT-18.failure")
def test_errors_in_rules():
    with pytest.raises(ValueError, match=r"k\(\): the grid cannot be computed: ZeroDivisionError: .*, for N = 0; `x` "
                                         r"is empty") as e:
        grid_of(lambda N: (5 // N,), X[:, :0])
    assert isinstance(e.value.__cause__, ZeroDivisionError)


BLOCKS = 1


@shows("JIT-18.globals")
def test_globals_of_rules(monkeypatch):
    seen = []

    @ct.kernel
    def k(x, y):
        ct.store(y, 0, ct.num_blocks(0))

    f = ct.jit(k, grid=lambda: (BLOCKS,), out=ct.Out("1", ct.int32))
    for n in (1, 2, 3):
        monkeypatch.setitem(globals(), "BLOCKS", n)
        seen.append(int(f(LINE)[0]))
    assert seen == [1, 2, 3]


# ------------------------------------------------------------------ objects


@shows("JIT-17.pickle", "JIT-17.copy", "JIT-17.wrapped")
def test_as_objects():
    assert pickle.loads(pickle.dumps(kernels.softmax_kernel)) is softmax_kernel
    assert copy.copy(softmax) is copy.deepcopy(softmax) is softmax
    assert softmax.__wrapped__ is softmax_kernel.function
    assert "softmax" in repr(softmax) and len({softmax, scaled, softmax}) == 2


@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
@ct.kernel
def at_the_top(x: ct.Array["N"], y):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 4))


again = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"), defaults={"TILE": 8})


@shows("JIT-17.made")
def test_pickles():
    assert pickle.loads(pickle.dumps(at_the_top)) is at_the_top
    other = pickle.loads(pickle.dumps(again))
    assert other is not again and other.kernel is scaled_kernel
    assert np.array_equal(other(LINE, 2.0), LINE * 2)


@shows("JIT-17.class")
def test_in_a_class():
    class Model:
        soft = softmax

        def __call__(self, x):
            return self.soft(x)

    assert np.array_equal(Model()(X), softmax(X))


@shows("JIT-22.warning")
def test_many_forms():
    @ct.kernel
    def k(x: ct.Array["M"], y, n: ct.Constant[int], m: ct.Constant[int]):
        ct.store(y, 0, n + m)

    f = ct.jit(k, grid=(1,), out=ct.Out("1"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(12):
            f(LINE, n, n % 2)
    assert len(seen) == 1 and "`n`" in str(seen[0].message) and "for 9 values" in str(seen[0].message)
    assert seen[0].filename == __file__


@shows("JIT-23.silent", "JIT-23.once")
def test_threads(capfd):
    @ct.kernel
    def k(x: ct.Array["M N"], y):
        i = ct.bid(0)
        ct.store(y, (i, 0), ct.load(x, (i, 0), (1, 16)) * 2)

    f = ct.jit(k, grid="M", out=ct.Out("M N"))
    results, start = [], threading.Barrier(4)

    def call():
        start.wait()
        results.append(f(X))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 and all(np.array_equal(r, X * 2) for r in results)
    assert len(k._programs) == 1 and capfd.readouterr() == ("", "")


def test_errors_of_the_kernel_are_those_of_a_launch():
    @ct.kernel
    def k(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 3))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    with pytest.raises(ct.TileTypeError, match="power of two"):
        f(LINE)


def test_a_number_where_the_kernel_takes_an_array():
    with pytest.raises((TypeError, ct.TileError)) as e:
        ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"))(X, "no")
    assert e.value


def test_numbers_before_the_first_array():
    @ct.kernel
    def k(n, x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 4) + n)

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    for n in (1, 2, 3):
        assert np.array_equal(f(n, LINE[:4]), LINE[:4] + n)
    assert f.plans or f.calls


def test_the_short_way_is_taken(monkeypatch):
    f = ct.jit(scaled_kernel, grid="cdiv(N, TILE)", out=ct.Out("N", name="y"))
    o = np.zeros_like(LINE)
    want = f(LINE, 2.0)
    f(LINE, 2.0, out=o)
    monkeypatch.setattr(type(f), "slow", None)
    assert np.array_equal(f(LINE, 2.0), want) and f(LINE, 2.0, out=o) is o
    assert np.array_equal(f(LINE + 1, 3.0), (LINE + 1) * 3)
    with pytest.raises(TypeError):
        f(LINE[:3], 2.0)


def test_lists_of_arrays():
    @ct.kernel
    def k(xs, y, n: ct.Constant[int]):
        t = ct.zeros((4,), ct.float32)
        for i in range(n):
            t = t + ct.load(xs[i], 0, 4)
        ct.store(y, 0, t)

    f = ct.jit(k, grid=(1,), out=ct.Out((4,), name="y"))
    assert np.array_equal(f([LINE[:4], LINE[:4]], 2), LINE[:4] * 2)


# ------------------------------------------------------------------ calls that C code runs


@pytest.fixture
def no_python(monkeypatch):
    """After `no_python()`, a launch that Python code runs is a failure."""
    if launch_cache.extension() is None:
        pytest.skip("the compiled module is not built")
    monkeypatch.delenv("CUTILE_CHECK", raising=False)  # launches in C are off then

    def forbid():
        monkeypatch.setattr(launching, "launch", lambda *a: pytest.fail("Python code ran the launch"))

    return forbid


@ct.kernel
def split_kernel(x: ct.Array["N"], high, low, limit: ct.Constant[float]):
    t = ct.load(x, 0, 16)
    ct.store(high, 0, ct.where(t > limit, t, 0.0).astype(high.dtype))
    ct.store(low, 0, ct.where(t > limit, 0.0, t).astype(low.dtype))


@ct.kernel
def checked_kernel(x: ct.Array["N"], y):
    t = ct.load(x, 0, 16)
    ct.assert_(ct.min(t) >= 0, "a negative number")
    ct.store(y, 0, t)


def split(**given):
    return ct.jit(split_kernel, grid=(1,), out=(ct.Out("N", name="high"), ct.Out("N", name="low")), **given)


def test_calls_with_given_outputs_run_in_c(no_python):
    f, out = split(), (np.zeros_like(LINE), np.zeros_like(LINE))
    whole = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
    to = np.zeros_like(X)
    f(LINE, 4.0, out=out), whole(X, out=to), whole(X, TILE=32, out=to)
    no_python()
    to[:] = 0
    for o in out:
        o[:] = -1
    assert f(LINE + 1, 4.0, out=out) == out
    assert np.array_equal(out[0], np.where(LINE + 1 > 4, LINE + 1, 0)) and out[0].sum() + out[1].sum() == 55
    assert whole(X, out=to) is to and np.allclose(to, expected(X), rtol=1e-5)
    assert whole(X, TILE=32, out=to) is to


def test_calls_without_outputs_run_in_c(no_python):
    @ct.kernel
    def doubles(x: ct.Array["N"]):
        ct.store(x, ct.bid(0), 2 * ct.load(x, ct.bid(0), 4))

    f, x = ct.jit(doubles, grid="cdiv(N, 4)").inout("x"), LINE.copy()
    f(x)
    no_python()
    assert f(x) is x and np.array_equal(x, LINE * 4)


@shows("JIT-7.poison", "JIT-7.fill", "JIT-11.returns")
def test_calls_that_make_their_outputs_run_in_c(no_python):
    @ct.kernel
    def some(x: ct.Array["N"], y, kept, n):  # outputs in the middle, of which not all is stored to
        ct.store(y, 0, ct.load(x, 0, 4) * 2)
        ct.store(kept, 1, ct.full((4,), n, ct.int16) + ct.arange(4, dtype=ct.int16))

    f = ct.jit(some, grid=(1,), out=(ct.Out("N", name="y"), ct.Out("N", ct.int16, fill=7, name="kept")))
    whole = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
    before = f(LINE, 5)
    whole(X)
    no_python()
    y, kept = f(LINE + 1, 6)
    assert y.dtype == np.float32 and np.array_equal(y[:4], 2 * (LINE + 1)[:4]) and np.isnan(y[4:]).all()
    assert kept.dtype == np.int16 and kept.tolist() == [7] * 4 + [6, 7, 8, 9] + [7] * 2
    assert y is not before[0] and before[1].tolist() == [7] * 4 + [5, 6, 7, 8] + [7] * 2
    assert np.allclose(whole(X), expected(X), rtol=1e-5) and whole(X) is not whole(X)


def test_what_c_code_does_not_know_python_runs(no_python):
    f, out = split(), (np.zeros_like(LINE), np.zeros_like(LINE))
    f(LINE, 4.0, out=out)
    for x, limit in ((LINE[::-1], 4.0), (LINE, 5.0), (LINE.astype(np.float64), 4.0)):
        f(x, limit, out=out if x.dtype == LINE.dtype else tuple(o.astype(x.dtype) for o in out))
    f(LINE[::-1], 4.0, out=out)
    assert np.array_equal(out[0], np.where(LINE > 4, LINE, 0)[::-1])
    with pytest.raises(ValueError, match="output `low` must have the shape"):
        f(LINE, 4.0, out=(out[0], np.zeros(3, np.float32)))
    with pytest.raises(TypeError, match="takes a tuple of 2 arrays"):
        f(LINE, 4.0, out=out[0])
    frozen = out[1].copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(LINE, 4.0, out=(out[0], frozen))


def test_a_grid_from_a_number_is_none_of_a_signature():
    @ct.kernel
    def counted(x: ct.Array["N"], blocks, y):
        ct.atomic_add(y, 0, ct.sum(ct.load(x, ct.bid(0), 2)))

    f = ct.jit(counted, grid="blocks", out=ct.Out((1,), fill=0, name="y"))
    y = np.zeros(1, np.float32)
    for blocks in (2, 3, 2):
        y[:] = 0
        assert f(LINE, blocks, out=y)[0] == LINE[:2 * blocks].sum()
    assert not f.calls


def test_errors_of_kernels_that_ran_before():
    f, x, y = ct.jit(checked_kernel, grid=(1,), out=ct.Out("N")), LINE.copy(), np.zeros_like(LINE)
    f(x, out=y)
    x[3] = -1
    with pytest.raises(ct.TileAssertionError, match="a negative number") as e:
        f(x, out=y)
    assert "test_tile_function.py" in str(e.value)


def test_without_the_compiled_module(monkeypatch):
    @ct.kernel
    def copied(x: ct.Array["N"], y):
        ct.store(y, 0, ct.load(x, 0, 16))

    monkeypatch.setenv("CUTILE_LAUNCHER", "python")
    f, y = ct.jit(copied, grid=(1,), out=ct.Out("N")), np.zeros_like(LINE)
    assert f(LINE, out=y) is f(LINE, out=y) is y and np.array_equal(y, LINE) and not f.calls
