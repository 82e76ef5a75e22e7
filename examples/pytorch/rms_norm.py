"""RMS normalisation as an operator of PyTorch, with its gradients: two kernels, under autograd and torch.compile.

    y = rms_norm(x, weight)[0]
"""

import torch

import cutile as ct
import cutile.torch


@ct.jit(grid="M", out=(ct.Out("M N", name="y"), ct.Out("M", ct.float32, name="rstd")),
        defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
@ct.kernel
def forward(x: ct.Array["M N"], weight: ct.Array["N"], y, rstd, TILE: ct.Constant[int],  # noqa: F821, F722
            EPS: ct.Constant[float] = 1e-6):
    """A block normalises a row, and keeps the reciprocal of its root mean square. It computes in float32."""
    row, n = ct.bid(0), x.shape[1]
    t = ct.load(x, (row, 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    r = ct.rsqrt(ct.sum(t * t, 1) / n + EPS)
    w = ct.load(weight, 0, TILE, padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    ct.store(rstd, row, r)
    ct.store(y, (row, 0), (t * r[:, None] * w).astype(y.dtype))


@ct.jit(grid="M", out=(ct.Out("M N", name="grad_x"), ct.Out("N", ct.float32, fill=0, name="grad_weight")),
        defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
@ct.kernel
def backward(x: ct.Array["M N"], weight: ct.Array["N"], rstd: ct.Array["M"], grad_y: ct.Array["M N"],  # noqa: F821, F722
             grad_x, grad_weight, TILE: ct.Constant[int]):
    """The gradients of a row. Those of the weight add up in memory, in float32."""
    row, n = ct.bid(0), x.shape[1]
    r = ct.load(rstd, row, 1)[:, None]
    normal = ct.load(x, (row, 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32) * r
    g = ct.load(grad_y, (row, 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    weighted = g * ct.load(weight, 0, TILE, padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    d = r * (weighted - normal * (ct.sum(weighted * normal, 1, keepdims=True) / n))
    ct.store(grad_x, (row, 0), d.astype(grad_x.dtype))
    ct.atomic_add(grad_weight, ct.arange(TILE, dtype=ct.int32), ct.reshape(g * normal, (TILE,)))


rms_norm = cutile.torch.op("cutile_examples::rms_norm", forward, backward=backward, non_differentiable=("rstd",))


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x, weight, grad = (torch.randn(shape, device=device) for shape in ((64, 100), (100,), (64, 100)))
    x.requires_grad_()
    weight.requires_grad_()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def compiled(x, weight):
        return rms_norm(x, weight)[0]

    found = torch.autograd.grad(compiled(x, weight), (x, weight), grad)
    wanted = torch.autograd.grad(reference(x, weight), (x, weight), grad)
    for name, a, b in zip(("x", "weight"), found, wanted, strict=True):
        print(f"gradient of {name}: differs by at most {(a - b).abs().max().item():.1e}")


if __name__ == "__main__":
    main()
