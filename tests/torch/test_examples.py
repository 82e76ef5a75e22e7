"""The examples of docs/torch.md and examples/pytorch: gradients and a training run against plain PyTorch."""

import functools
import inspect
import os
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import cutile.torch  # noqa: E402
from cutile.torch import operators  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rms():
    return runpy.run_path(str(ROOT / "examples" / "pytorch" / "rms_norm.py"))


@pytest.mark.parametrize("dtype, of_weight, error", [(torch.float32, torch.float32, 1e-5),
                                                     (torch.bfloat16, torch.bfloat16, 5e-3),
                                                     (torch.bfloat16, torch.float32, 5e-3)])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_rms_norm(rms, dtype, of_weight, error, compiled):
    """All rows add to the gradient of the weight with one sign, so that a sum in bfloat16 would stop growing."""
    g = torch.Generator().manual_seed(4)
    x, weight = torch.randn(700, 12, generator=g).to(dtype), (torch.rand(12, generator=g) + 0.5).to(of_weight)
    grad = (torch.rand(700, 12, generator=g) + 0.5).to(dtype) * x.sign()
    torch._dynamo.reset()

    def gradients(f, x, weight):
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        y = f(x, weight)
        return y, *torch.autograd.grad(y, (x, weight), grad.to(y.dtype))

    def ours(x, weight):
        return rms["rms_norm"](x, weight)[0]

    found = gradients(torch.compile(ours, fullgraph=True, backend="aot_eager") if compiled else ours, x, weight)
    exact = gradients(rms["reference"], x.double(), weight.double())
    for a, b, d in zip(found, exact, (dtype, dtype, of_weight), strict=True):
        assert a.dtype is d and (a.double() - b).abs().max() <= error * b.abs().max()


def test_opcheck_of_rms_norm(rms):
    torch.library.opcheck(rms["rms_norm"], (torch.randn(4, 8, requires_grad=True), torch.randn(8, requires_grad=True)))


def test_the_loss_curve_of_plain_pytorch():
    pytest.importorskip("sklearn")
    mlp = runpy.run_path(str(ROOT / "examples" / "pytorch" / "digits_mlp.py"))
    x, y = mlp["data"]("cpu")
    ours, plain = (mlp["train"](mlp["network"](mlp[layer], "cpu"), x, y, 20) for layer in ("Layer", "PlainLayer"))
    assert ours == pytest.approx(plain, rel=1e-3) and ours[-1] < 0.9 * ours[0]


def test_the_loss_curve_in_two_processes():
    """Each has half of a batch; gradients go from one to the other by Gloo."""
    pytest.importorskip("sklearn")
    script = ROOT / "examples" / "pytorch" / "digits_distributed.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    ran = subprocess.run(command, env={**os.environ, "STEPS": "6", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                         capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and ran.stdout.startswith("2 processes, gloo"), ran.stderr
    losses = [list(map(float, line.split()[1:])) for line in ran.stdout.splitlines()[2:]]
    assert len(losses) == 6 and all(ours == pytest.approx(plain, rel=1e-3) for ours, plain in losses)
    assert losses[-1][0] < losses[0][0]


@pytest.fixture(scope="module")
def attention():
    return runpy.run_path(str(ROOT / "examples" / "pytorch" / "attention.py"))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, error", [(torch.float32, 2e-6), (torch.bfloat16, 2e-2)])
def test_gradients_of_attention(attention, causal, dtype, error):
    q, k, v, grad = torch.randn(4, 1, 2, 40, 16, generator=torch.Generator().manual_seed(3)).to(dtype)
    plain = torch.nn.functional.scaled_dot_product_attention
    ours = attention["gradients"](attention["multi_head"], (q, k, v), grad, causal=causal)
    exact = attention["gradients"](plain, (q.double(), k.double(), v.double()), grad, is_causal=causal)
    for x, y in zip(ours, exact):
        assert x.dtype is dtype and (x.double() - y).abs().max() <= error * y.abs().max()


def test_opcheck_of_attention(attention):
    given = tuple(torch.randn(2, 20, 16, requires_grad=True) for _ in range(3))
    torch.library.opcheck(attention["attention_op"], given, {"CAUSAL": True})


def test_the_page(tmp_path):
    text = (ROOT / "docs" / "torch.md").read_text()
    [code] = [c for c in re.findall(r"```python\n(.*?)```", text, re.S) if "squared =" in c]
    path = tmp_path / "page.py"
    path.write_text("import torch\nimport cutile as ct\nimport cutile.torch\n" + code)
    squared = runpy.run_path(str(path))["squared"]
    x = torch.randn(300, requires_grad=True)
    assert torch.equal(squared(x), x * x)
    assert torch.equal(torch.autograd.grad(squared(x).sum(), x)[0], 2 * x)


def test_the_layer_of_the_page(rms):
    """It learns as PyTorch's own does."""
    text = (ROOT / "docs" / "torch.md").read_text()
    [code] = [c for c in re.findall(r"```python\n(.*?)```", text, re.S) if "class RMSNorm" in c]
    scope = {"torch": torch, "rms_norm": rms["rms_norm"]}
    exec(code, scope)
    x, ours, plain = torch.randn(2, 3, 10), scope["RMSNorm"](10), torch.nn.RMSNorm(10, 1e-6)
    for layer in (ours, plain):
        loss = (layer(x) - 1).pow(2).sum()
        loss.backward()
        torch.optim.SGD(layer.parameters(), 0.1).step()
    assert torch.allclose(ours(x), plain(x), atol=1e-5)


def test_the_tuned_function_of_the_page(rms, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "torch.md").read_text()
    [code] = [c for c in re.findall(r"```python\n(.*?)```", text, re.S) if "tuned.best" in c]
    x, weight = torch.randn(5, 100), torch.randn(100, requires_grad=True)
    here = types.SimpleNamespace(autotune=functools.partial(cutile.autotune, quiet=True, timeout_s=None))
    scope = {**rms, "ct": here, "x": x, "weight": weight}
    exec(code, scope)
    assert torch.allclose(scope["y"][0], rms["reference"](x, weight), atol=1e-5) and (tmp_path / "best.json").exists()
    [found], [wanted] = (torch.autograd.grad(y.sum(), weight) for y in (scope["y"][0], rms["reference"](x, weight)))
    assert torch.allclose(found, wanted, atol=1e-4)


def test_every_parameter_of_op_is_described():
    text = inspect.getdoc(operators.op).partition("Parameters\n")[2].partition("Returns\n")[0]
    assert re.findall(r"^(\w+) : ", text, re.M) == list(inspect.signature(operators.op).parameters)
