"""Backward functions: their parameters, and what they return."""

import re

import numpy as np
import pytest

import cutile as ct
from cutile.runtime.gradients import asked, by_input, check

N = 8


@ct.jit(grid=1, out=(ct.Out("N"), ct.Out("N")))
@ct.kernel
def both(x: ct.Array["N"], i: ct.Array["N"], total, product):
    a, b = ct.load(x, 0, 8), ct.load(i, 0, 8)
    ct.store(total, 0, a + b)
    ct.store(product, 0, a * b)


@ct.jit(grid=1, out=ct.Out("N"), defaults={"TILE": lambda N: N})
@ct.kernel
def backward(x: ct.Array["N"], grad_product: ct.Array["N"], grad_i, TILE: ct.Constant[int]):
    ct.store(grad_i, 0, ct.load(x, 0, TILE) * ct.load(grad_product, 0, TILE))


def returns(found):
    def gradients(x):
        return found

    return by_input(both, gradients, found, ["x", "i"])


def test_parameters_are_inputs_outputs_and_gradients():
    assert asked(both, lambda i, product, grad_total: {}) == ["i", "product", "grad_total"]
    assert asked(both, backward) == ["x", "grad_product"]  # the default of TILE is computed
    with pytest.raises(TypeError, match="<lambda> takes grad_totl, which is no parameter, output or gradient of both; "
                                        "did you mean grad_total.; there are x, i, total, product, grad_total, grad_p"):
        asked(both, lambda grad_totl: {})


def test_outputs_are_gradients():
    assert by_input(both, backward, 3, ["i"]) == {"i": 3}
    with pytest.raises(TypeError, match="output total of both is no gradient; those of both are named grad_x, grad_i$"):
        asked(both, both)
    with pytest.raises(TypeError, match="no gradient of x; declare outputs named grad_x, or wrap it in a function that "
                                        'returns {"x": ..., "i": ...}, with None where it is 0$'):
        by_input(both, backward, 3, ["x", "i"])
    with pytest.raises(TypeError, match="with None where it is 0; or otherwise$"):
        by_input(both, backward, 3, ["x", "i"], "; or otherwise")


def test_dictionaries_name_each_input():
    assert returns({"x": 1, "i": None}) == {"x": 1, "i": None}
    who = "^gradients, the backward function of both, "
    example = '{"x": ..., "i": ...}'
    for other, kind in (((1, 2), "tuple"), (None, "NoneType"), (1.0, "float")):
        with pytest.raises(TypeError, match=f"{who}must return a dictionary of .*, such as {example}, not {kind}$"):
            returns(other)
    with pytest.raises(TypeError, match=f"{who}returned a gradient of 'grad_x', which is no input; did you mean x.; "
                                        f"write {example}$"):
        returns({"grad_x": 1, "i": 2})
    with pytest.raises(TypeError, match=f"{who}returned a gradient of 7, which is no input; write {example}$"):
        returns({"x": 1, "i": 2, 7: 3})
    with pytest.raises(TypeError, match=f"{who}returned no gradient of i; write {example}, with None where it is 0$"):
        returns({"x": 1})


def test_gradients_of_kernels_have_the_dtype_of_their_input():
    found = {"i": np.zeros(8, np.float16)}
    check(both, backward, found, {"i": np.ones(8, np.float16)})
    with pytest.raises(TypeError, match="grad_i of backward has the dtype of its first array, float16, but `i` of both "
                                        "has float32: give it one by ct.Out.*, or the kernel the parameter `i`, whose"):
        check(both, backward, found, {"i": np.ones(8, np.float32)})
    declared = ct.jit(backward.kernel, grid=1, out=ct.Out("N", ct.float16), defaults={"TILE": 8})
    for other in (declared, lambda x: found):
        check(both, other, found, {"i": np.ones(8, np.float32)})


def test_gradients_have_the_shape_of_their_input():
    def of_sums(x):
        return {"x": x}

    who = "^of_sums, the backward function of both, returned a gradient of x"
    x = np.ones((3, 1))
    check(both, of_sums, {"x": np.ones((3, 1)), "i": None}, {"x": x})
    for shape, end in (((3, 4), "; sum over the other axes"), ((2, 3, 1), "; sum over the other axes"), ((2, 1), ""),
                       ((3,), ""), ((), "; write None where it is 0")):
        with pytest.raises(TypeError, match=re.escape(f" of shape {shape}, but x has (3, 1){end}") + "$") as e:
            check(both, of_sums, {"x": np.ones(shape)}, {"x": x})
        assert re.match(who, str(e.value))
    with pytest.raises(TypeError, match=f"{who}, which is no array here; leave it out$"):
        check(both, of_sums, {"x": np.ones(3)}, {})
