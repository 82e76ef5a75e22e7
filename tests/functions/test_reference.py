"""Functions that users give to say what is right: their errors are named as theirs."""

import traceback

import numpy as np
import pytest

import cutile as ct
from cutile.functions.reference import result_of

X = np.ones(8, np.float32)


def test_copies():
    def changes(x, *, y):
        x[0] = y[0] = 7
        return x, y

    x, y = np.zeros(2), np.zeros(2)
    found = result_of(changes, "f", (x,), {"y": y})
    assert found[0][0] == found[1][0] == 7 and not x.any() and not y.any()


def broken(x):
    raise KeyError("mine")


@pytest.mark.parametrize("error, text", [(KeyError("mine"), "raised KeyError: 'mine'"),
                                         (TypeError("no such thing"), "raised TypeError: no such thing"),
                                         (np.linalg.LinAlgError("singular"), "raised LinAlgError: singular")])
def test_an_error_of_the_reference(error, text):
    def reference(x):
        raise error

    with pytest.raises(RuntimeError, match=f"^the reference of f, reference, {text}$") as e:
        result_of(reference, "f", (X,), {})
    assert e.value.__cause__ is error and traceback.extract_tb(error.__traceback__)[-1].name == "reference"


@pytest.mark.parametrize("reference, args, named, text", [
    (lambda x, y: x, (X,), {}, r"the arguments of the call \(1 by position\), and does not take them: .* 'y'"),
    (lambda x: x, (X,), {"TILE": 4}, r"\(1 by position, `TILE`\), and does not take them: .* argument 'TILE'"),
    (lambda x: x, (), {}, r"\(none\), and does not take them: .* 'x'")])
def test_a_reference_that_does_not_take_the_arguments(reference, args, named, text):
    with pytest.raises(TypeError, match=f"^the reference of f, <lambda>, is called with .*{text}$"):
        result_of(reference, "f", args, named)


@ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"))
@ct.kernel
def doubled(x: ct.Array["N"], y, TILE: ct.Constant[int] = 4):
    ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), TILE))


@pytest.mark.parametrize("call", [
    lambda reference: ct.testing.assert_matches(doubled, reference, (X,)),
    lambda reference: ct.autotune([{"TILE": 4}], reference=reference, quiet=True, timeout_s=None)(doubled)(X)],
    ids=["assert_matches", "autotune"])
def test_all_that_take_a_reference(call, tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    with pytest.raises(RuntimeError, match="^the reference of doubled, broken, raised KeyError: 'mine'$") as e:
        call(broken)
    assert [f.name for f in traceback.extract_tb(e.value.__cause__.__traceback__)] == ["broken"]
    with pytest.raises(TypeError, match="^the reference of doubled, <lambda>, is called with .*1 by position"):
        call(lambda x, y: x)


def test_a_function_for_inputs(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))

    def tuned(inputs):
        return ct.autotune([{"TILE": 4}], inputs=inputs, quiet=True, timeout_s=None)(doubled)

    with pytest.raises(TypeError, match="^the function for inputs of doubled, <lambda>, is called with"):
        tuned(lambda: X)(X)
    with pytest.raises(RuntimeError, match="^the function for inputs of doubled, broken, raised KeyError"):
        tuned(broken)(X)
