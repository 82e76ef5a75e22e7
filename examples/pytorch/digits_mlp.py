"""A perceptron whose layer, x @ weight.T + bias and GELU, is one kernel, trained on scikit-learn's digits.

The same network of plain PyTorch starts from the same weights: both loss curves agree.
"""

import math

import torch

import cutile as ct
import cutile.torch

INNER = 1 / math.sqrt(2)
DENSITY = 1 / math.sqrt(2 * math.pi)


@ct.jit(grid="cdiv(B, 64) cdiv(H, 64)", out=(ct.Out("B H", name="y"), ct.Out("B H", name="z")))
@ct.kernel
def linear_gelu(x: ct.Array["B K"], weight: ct.Array["H K"], bias: ct.Array["H"], y, z):  # noqa: F821, F722
    """A block computes 64 by 64 results: z before GELU, y after it."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((64, 64), ct.float32)
    for k in range(ct.cdiv(x.shape[1], 32)):
        a = ct.load(x, (i, k), (64, 32), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(weight, (j, k), (64, 32), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, ct.transpose(b), acc)
    t = acc + ct.load(bias, j, 64, padding_mode=ct.PaddingMode.ZERO)
    ct.store(z, (i, j), t)
    ct.store(y, (i, j), ct.lib.gelu(t))


@ct.jit(grid="cdiv(B, 32) cdiv(H, 64)", out=ct.Out(like="z", name="grad"))
@ct.kernel
def gelu_gradient(z: ct.Array["B H"], grad_y: ct.Array["B H"], grad):  # noqa: F722
    where = ct.bid(0), ct.bid(1)
    t = ct.load(z, where, (32, 64), padding_mode=ct.PaddingMode.ZERO)
    slope = 0.5 + 0.5 * ct.lib.erf(t * INNER) + t * DENSITY * ct.exp(-0.5 * t * t)
    ct.store(grad, where, slope * ct.load(grad_y, where, (32, 64), padding_mode=ct.PaddingMode.ZERO))


gelu_gradient_op = cutile.torch.op("cutile_examples::gelu_gradient", gelu_gradient)


def backward(x, weight, z, grad_y):
    grad_z = gelu_gradient_op(z, grad_y)
    return {"x": grad_z @ weight, "weight": grad_z.T @ x, "bias": grad_z.sum(0)}


linear_gelu_op = cutile.torch.op("cutile_examples::linear_gelu", linear_gelu, backward=backward,
                                 non_differentiable=("z",))


class Layer(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear_gelu_op(x, self.weight, self.bias)[0]


class PlainLayer(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(super().forward(x))


def network(layer: type[torch.nn.Linear], device: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(layer(64, 48), layer(48, 32), torch.nn.Linear(32, 10)).to(device)


def data(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return (torch.tensor(digits.data / 16, dtype=torch.float32, device=device),
            torch.tensor(digits.target, device=device))


def train(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int = 60) -> list[float]:
    """The loss of each step, on batches of 256 in turn."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-3), []
    for step in range(steps):
        rows = torch.arange(step * 256, (step + 1) * 256, device=x.device) % len(x)
        loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = data(device)
    ours, plain = network(Layer, device), network(PlainLayer, device)
    found, wanted = train(ours, x, y), train(plain, x, y)
    print("step  loss with kernels  loss of plain PyTorch")
    for step in range(0, len(found), 10):
        print(f"{step:4}  {found[step]:17.5f}  {wanted[step]:21.5f}")
    print(f"accuracy {(ours(x).argmax(1) == y).float().mean().item():.1%}")


if __name__ == "__main__":
    main()
