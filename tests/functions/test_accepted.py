"""Which arguments compiled functions take, and after they were saved and loaded."""

import subprocess
import sys

import numpy as np
import pytest

import cutile as ct
from cutile.functions.accepted import accepted, from_json
from tests.functions.kernels import scaled, softmax
from tests.functions.shows import shows

X = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    softmax.compile(ct.ArraySpec("M 64", ct.float32), target="sm_90").save(tmp_path / "k.cutile")
    return tmp_path / "k.cutile"


@shows("CPL-2.call")
def test_calls_of_what_was_loaded(path):
    c = ct.CompiledFunction.load(path)
    for f in (c, ct.CompiledFunction.load(path, softmax)):
        assert np.array_equal(f(X), softmax(X)) and np.array_equal(f(x=X, TILE=64), softmax(X))
        out = np.empty_like(X)
        assert f(X, out=out) is out
    for args, message in [((X.astype(np.float64),), "another `x`: for float32 array of rank 2, got float64"),
                          ((X, 128), "another `TILE`: for 64, got 128"),
                          ((X[:, :63],), "another `x`|another `TILE`|another `y`")]:
        with pytest.raises(TypeError, match=message):
            c(*args)
    with pytest.raises(TypeError, match="needs the argument `x`"):
        c()
    c.save(path.with_name("again.cutile"))
    assert np.array_equal(ct.CompiledFunction.load(path.with_name("again.cutile"))(X), softmax(X))


@shows("CPL-2.call")
def test_arrays_for_which_code_was_not_made(path):
    wide, line = np.ones((4, 128), np.float32), np.ones(4 * 64 + 4, np.float32)
    overlapping = np.lib.stride_tricks.as_strided(X, (4, 64), (16, 4))
    for c in (softmax.compile(X, target="sm_90"), ct.CompiledFunction.load(path)):
        for x in (X, wide[:, :64], line[:-4].reshape(4, 64)):
            assert np.array_equal(c(x), softmax(x))
        for x, message in [(X[::-1], "its stride along axis 0 must be at least 0, got -64"),
                           (X[:, ::-1], "its stride along axis 1 must be 1, got -1"),
                           (np.asfortranarray(X), "its stride along axis 0 must be divisible by 4, got 1"),
                           (overlapping, "no two of its elements may share memory"),
                           (np.broadcast_to(X[0], (4, 64)), "no two of its elements may share memory"),
                           (wide[:, 1:65], "its address must be divisible by 16")]:
            with pytest.raises(TypeError, match=f"^softmax was compiled for another `x`: {message}"):
                c(x)
        with pytest.raises(TypeError, match="another `TILE`: for 64, got 32; it follows from N = 32, the size of `x` "
                                            "along axis 1$"):
            c(X[:, :32])
        with pytest.raises(TypeError, match="another `x`: its size along axis 1 must be divisible by 16, got 63"):
            c(X[:, :63])


@shows("CPL-2.call")
def test_in_another_process(path):
    code = f"""
import sys
import numpy as np, cutile as ct
c = ct.CompiledFunction.load({str(path)!r})
assert "tests.functions.kernels" not in sys.modules
print(c(np.ones((2, 64), np.float32)).sum(), c.resources.threads)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["2.0", "128"], done.stderr


@shows("CPL-2.call")
def test_functions_that_are_not_the_one(path, tmp_path):
    @ct.jit(grid="M", out=ct.Out("M N"))
    @ct.kernel
    def local(x: ct.Array["M N"], y):
        ct.store(y, (ct.bid(0), 0), ct.load(x, (ct.bid(0), 0), (1, 64)))

    local.compile(ct.ArraySpec("M 64", ct.float32), target="sm_90").save(tmp_path / "local.cutile")
    c = ct.CompiledFunction.load(tmp_path / "local.cutile")
    with pytest.raises(TypeError, match=r"local, which makes outputs and grids, and is not there; give "
                                        r"it: CompiledFunction.load\(path, function\)$"):
        c(X)
    assert np.array_equal(ct.CompiledFunction.load(tmp_path / "local.cutile", local)(X), X)
    for other, message in [(scaled, "was compiled of another text of scaled; compile it anew"),
                           (softmax.kernel, "was compiled of a function made by ct.jit, which <kernel .*> is not")]:
        with pytest.raises(TypeError, match=message):
            ct.CompiledFunction.load(path, other)(X)


def test_files_keep_all_of_it():
    c = softmax.compile(ct.ArraySpec("M N", ct.float32, divisible={"N": 16}), TILE=64, target="sm_90")
    again = [from_json(a.as_json()) for a in c.accepts]
    assert again == c.accepts and [a.name for a in again] == ["x", "y", "TILE"]
    assert again[0].promises["shape_divisible_by"] == (1, 16)
    assert accepted([], [], []) == []
