"""The examples of docs/jax.md and examples/xla: gradients, and a training run against plain JAX."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rms():
    return runpy.run_path(str(ROOT / "examples" / "xla" / "rms_norm.py"))


@pytest.mark.parametrize("shape", [(4, 8), (3, 5)])
def test_gradients_of_rms_norm(rms, shape):
    from jax.test_util import check_grads

    x, weight = (jax.random.normal(jax.random.key(i), s) for i, s in enumerate((shape, shape[1:])))
    assert np.allclose(rms["rms_norm"](x, weight)[0], rms["plain"](x, weight), atol=1e-6)
    check_grads(lambda x, w: rms["rms_norm"](x, w)[0], (x, weight), order=1, modes=["rev"], atol=1e-2, rtol=1e-2)


def test_the_loss_curve_of_plain_jax(rms):
    ours, plain = rms["losses"](lambda x, w: rms["rms_norm"](x, w)[0], 10), rms["losses"](rms["plain"], 10)
    assert ours == pytest.approx(plain, rel=1e-4) and ours[-1] < 0.7 * ours[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The names that the code of the page makes, which runs from top to bottom."""
    path = tmp_path_factory.mktemp("page") / "page.py"
    path.write_text("\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "jax.md").read_text(), re.S)))
    return runpy.run_path(str(path))


def test_the_page(page):
    x = np.arange(1000.0)
    assert np.array_equal(page["f"](x.astype(np.float32)), 2 * x + 1) and np.array_equal(page["gradient"], 2 * x)
    assert np.array_equal(page["z"], 2 * x + 1)
    x = x.astype(np.float32)
    assert np.array_equal(page["y"], x * x * x) and np.array_equal(page["slope"], 3 * x * x)


def test_the_layer_of_the_page(page, rms):
    keys = jax.random.split(jax.random.key(1), 3)
    x, w, g = (jax.random.normal(k, s) for k, s in zip(keys, ((7, 100), (100,), (7, 100))))
    found = jax.grad(lambda x, w: (page["rms_norm"](x, w)[0] * g).sum(), (0, 1))(x, w)
    plain = jax.grad(lambda x, w: (rms["plain"](x, w) * g).sum(), (0, 1))(x, w)
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(found, plain))
    assert np.all(np.diff(page["losses"]) < 0)


@pytest.mark.parametrize("source", ["rms", "page"])
def test_gradients_of_bfloat16(source, request):
    """They are off by one rounding: sums over rows are made in float32."""
    f = request.getfixturevalue(source)["rms_norm"]
    plain = request.getfixturevalue("rms")["plain"]
    keys = jax.random.split(jax.random.key(2), 3)
    x, w, g = (jax.random.normal(k, s).astype(jnp.bfloat16)
               for k, s in zip(keys, ((512, 20), (20,), (512, 20))))

    def exact(a):
        return a.astype(jnp.float32)

    found = jax.grad(lambda x, w: exact(f(x, w)[0] * (g + 1)).sum(), (0, 1))(x, w)
    wanted = jax.grad(lambda x, w: (plain(x, w) * exact(g + 1)).sum(), (0, 1))(exact(x), exact(w))
    for a, b in zip(found, wanted):
        assert a.dtype == jnp.bfloat16 and np.allclose(exact(a), b, rtol=2 ** -8, atol=2 ** -8 * np.abs(b).max())
