"""RMS normalisation in JAX, with its gradients: two kernels, in a layer that learns by jax.grad inside jax.jit.

    y = rms_norm(x, weight)[0]
"""

import jax
import jax.numpy as jnp

import cutile as ct
import cutile.jax


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


@ct.jit(grid="M", out=ct.Out("M N", name="grad_x"), defaults={"TILE": lambda N: 1 << (N - 1).bit_length()})
@ct.kernel
def of_rows(x: ct.Array["M N"], weight: ct.Array["N"], rstd: ct.Array["M"], grad_y: ct.Array["M N"],  # noqa: F821, F722
            grad_x, TILE: ct.Constant[int]):
    """The gradient of a row of x."""
    row, n = ct.bid(0), x.shape[1]
    r = ct.load(rstd, row, 1)[:, None]
    normal = ct.load(x, (row, 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32) * r
    g = ct.load(grad_y, (row, 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    weighted = g * ct.load(weight, 0, TILE, padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    found = r * (weighted - normal * (ct.sum(weighted * normal, 1, keepdims=True) / n))
    ct.store(grad_x, (row, 0), found.astype(grad_x.dtype))


def backward(x, weight, rstd, grad_y):
    """The gradients by input: that of x by a kernel, that of the weight, a sum over rows in float32, by JAX."""
    return {"x": of_rows(x, weight, rstd, grad_y), "weight": jnp.sum(grad_y * (x * rstd[:, None]), 0)}


rms_norm = cutile.jax.custom_vjp(forward, backward, non_differentiable=("rstd",))


def plain(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, 1, keepdims=True) + 1e-6) * weight


def loss(parameters, x, y, normalised):
    weight, matrix = parameters
    return jnp.mean((normalised(x, weight) @ matrix - y) ** 2)


def losses(normalised, steps):
    """What a normalised linear layer loses, step by step."""
    keys = jax.random.split(jax.random.key(0), 3)
    x, y = jax.random.normal(keys[0], (64, 100)), jax.random.normal(keys[1], (64, 10))
    parameters = jnp.ones(100), jax.random.normal(keys[2], (100, 10)) / 10

    @jax.jit
    def step(parameters):
        value, gradients = jax.value_and_grad(loss)(parameters, x, y, normalised)
        return value, jax.tree.map(lambda p, g: p - 0.5 * g, parameters, gradients)

    found = []
    for _ in range(steps):
        value, parameters = step(parameters)
        found.append(value.item())
    return found


def main() -> None:
    ours, theirs = losses(lambda x, w: rms_norm(x, w)[0], 20), losses(plain, 20)
    for i in (0, 9, 19):
        print(f"step {i + 1:2}: loss {ours[i]:.6f} with kernels, {theirs[i]:.6f} without")


if __name__ == "__main__":
    main()
