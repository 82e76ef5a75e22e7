"""What functions of floats refuse, each with the user's line and what to write instead."""

import numpy as np
import pytest

import cutile as ct
from cutile import lib
from tests.lib.applied import refused

OF_FLOATS = [lib.erf, lib.log1p, lib.expm1, lib.sigmoid, lib.silu, lib.gelu, lib.gelu_tanh, lib.softplus, lib.mean,
             lib.var, lib.std, lib.norm, lib.logsumexp, lib.softmax, lib.rint, lib.trunc]


@pytest.mark.parametrize("f", OF_FLOATS)
@pytest.mark.parametrize(("operand", "says"), [
    (lambda t: 2.5, r"expected a tile, got the number 2.5; .*ct.static_eval"),
    (lambda t: (t, t), "expected a tile, got tuple"),
    (lambda t: t.astype(ct.float8_e5m2), r"float8_e5m2 has no arithmetic; convert it first: x.astype\(ct.float32\)"),
])
def test_operands(f, operand, says):
    e = refused(lambda t: f(operand(t)), np.zeros(4, np.float32), says=rf"{f.__name__}\(\): {says}")
    assert __file__ in str(e)


@pytest.mark.parametrize("f", OF_FLOATS)
def test_arrays(f):
    @ct.kernel
    def kernel(x):
        f(x)

    with pytest.raises(ct.TileStaticAssertionError, match=rf"{f.__name__}\(\): got an array of float32; load a tile"):
        ct.launch(None, (1,), kernel, (np.zeros(4, np.float32),))
