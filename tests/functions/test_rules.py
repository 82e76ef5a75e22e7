"""Grids, as rules of named sizes and of arguments [JIT-18]."""

import pytest

import cutile as ct
from tests.functions.kernels import LINE, X
from tests.functions.shows import shows


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
