"""Attention as an operator of PyTorch whose gradients are kernels too, beside PyTorch's own.

Arrays are (batch times heads, length, D). The forward kernel keeps the logarithm of the sum of each row, from which the
backward kernels compute the weights once more instead of reading them.
"""

import torch

import cutile as ct
import cutile.torch

ZERO = ct.PaddingMode.ZERO
T = 32  # rows of a tile
Rows, Numbers, Int, Bool = ct.Array["B L D"], ct.Array["B L"], ct.Constant[int], ct.Constant[bool]


def rows(x, head, i, D):
    return ct.load(x, (head, i, 0), (1, T, D), padding_mode=ZERO).reshape((T, D))


def numbers(x, head, i):
    return ct.load(x, (head, i), (1, T), padding_mode=ZERO).reshape((T, 1))


def product(a, b):
    return ct.mma(a, b, ct.zeros((a.shape[0], b.shape[1]), ct.float32))


def seen(i, j, length, CAUSAL: bool):
    """Which queries of tile i may attend to which keys of tile j."""
    row = i * T + ct.arange(T, dtype=ct.int32)[:, None]
    col = j * T + ct.arange(T, dtype=ct.int32)[None, :]
    inside = (row < length) & (col < length)
    return inside & (col <= row) if CAUSAL else inside


def weights(query, keys, lse, i, j, scale, length, CAUSAL: bool):
    return ct.where(seen(i, j, length, CAUSAL), ct.exp(product(query, ct.transpose(keys)) * scale - lse), 0.0)


def tile_gradients(p, values, grad_rows, delta):
    """The gradients of the scaled scores of a tile."""
    return p * (product(grad_rows, ct.transpose(values)) - delta)


@ct.jit(grid="cdiv(L, 32) B", out=(ct.Out(like="q", name="out"), ct.Out("B L", ct.float32, name="lse")),
        defaults={"scale": lambda D: D**-0.5})
@ct.kernel
def attention(q: Rows, k: Rows, v: Rows, out, lse, scale: float, D: Int, CAUSAL: Bool = False):
    i, head, length = ct.bid(0), ct.bid(1), q.shape[1]
    query = rows(q, head, i, D)
    top = ct.full((T, 1), -1e30, ct.float32)  # the largest score so far
    total = ct.zeros((T, 1), ct.float32)  # the sum of exp(score - top) so far
    acc = ct.zeros((T, D), ct.float32)  # that sum, weighted with the values
    for j in range(i + 1 if CAUSAL else ct.cdiv(length, T)):
        score = product(query, ct.transpose(rows(k, head, j, D))) * scale
        score = ct.where(seen(i, j, length, CAUSAL), score, -1e30)
        new_top = ct.maximum(top, ct.max(score, axis=1, keepdims=True))
        p, shrink = ct.exp(score - new_top), ct.exp(top - new_top)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        acc = ct.mma(p.astype(v.dtype), rows(v, head, j, D), acc * shrink)
        top = new_top
    ct.store(out, (head, i, 0), (acc / total).reshape((1, T, D)).astype(out.dtype))
    ct.store(lse, (head, i), (top + ct.log(total)).reshape((1, T)))


@ct.jit(grid="cdiv(L, 32) B", out=(ct.Out(like="k", name="grad_k"), ct.Out(like="v", name="grad_v")))
@ct.kernel
def keys_and_values(q: Rows, k: Rows, v: Rows, grad_out: Rows, lse: Numbers, delta: Numbers, grad_k, grad_v,
                    scale: float, D: Int, CAUSAL: Bool = False):
    """A block adds up what all queries that see its keys contribute."""
    j, head, length = ct.bid(0), ct.bid(1), q.shape[1]
    keys, values = rows(k, head, j, D), rows(v, head, j, D)
    acc_k, acc_v = ct.zeros((T, D), ct.float32), ct.zeros((T, D), ct.float32)
    for i in range(j if CAUSAL else 0, ct.cdiv(length, T)):
        query, grad_rows = rows(q, head, i, D), rows(grad_out, head, i, D)
        p = weights(query, keys, numbers(lse, head, i), i, j, scale, length, CAUSAL)
        acc_v = ct.mma(ct.transpose(p.astype(v.dtype)), grad_rows, acc_v)
        ds = tile_gradients(p, values, grad_rows, numbers(delta, head, i))
        acc_k = ct.mma(ct.transpose(ds.astype(q.dtype)), query, acc_k)
    ct.store(grad_k, (head, j, 0), (acc_k * scale).reshape((1, T, D)).astype(grad_k.dtype))
    ct.store(grad_v, (head, j, 0), acc_v.reshape((1, T, D)).astype(grad_v.dtype))


@ct.jit(grid="cdiv(L, 32) B", out=ct.Out(like="q", name="grad_q"))
@ct.kernel
def queries(q: Rows, k: Rows, v: Rows, grad_out: Rows, lse: Numbers, delta: Numbers, grad_q, scale: float, D: Int,
            CAUSAL: Bool = False):
    i, head, length = ct.bid(0), ct.bid(1), q.shape[1]
    query, grad_rows = rows(q, head, i, D), rows(grad_out, head, i, D)
    acc = ct.zeros((T, D), ct.float32)
    for j in range(i + 1 if CAUSAL else ct.cdiv(length, T)):
        keys = rows(k, head, j, D)
        p = weights(query, keys, numbers(lse, head, i), i, j, scale, length, CAUSAL)
        ds = tile_gradients(p, rows(v, head, j, D), grad_rows, numbers(delta, head, i))
        acc = ct.mma(ds.astype(k.dtype), keys, acc)
    ct.store(grad_q, (head, i, 0), (acc * scale).reshape((1, T, D)).astype(grad_q.dtype))


keys_and_values_op = cutile.torch.op("cutile_examples::attention_keys_and_values", keys_and_values)
queries_op = cutile.torch.op("cutile_examples::attention_queries", queries)


def backward(q, k, v, out, lse, grad_out, scale, CAUSAL):
    scale = q.shape[-1]**-0.5 if scale is None else scale
    delta = (out.float() * grad_out.float()).sum(-1)  # what softmax's derivative subtracts from each row
    given = (q, k, v, grad_out.contiguous(), lse, delta)
    grad_k, grad_v = keys_and_values_op(*given, scale=scale, CAUSAL=CAUSAL)
    return {"q": queries_op(*given, scale=scale, CAUSAL=CAUSAL), "k": grad_k, "v": grad_v}


attention_op = cutile.torch.op("cutile_examples::attention", attention, backward=backward,
                               non_differentiable=("lse",))


def multi_head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """As torch.nn.functional.scaled_dot_product_attention, for arrays (batch, heads, length, D)."""
    out, _ = attention_op(*(x.flatten(0, 1) for x in (q, k, v)), CAUSAL=causal)
    return out.unflatten(0, q.shape[:2])


def gradients(function, inputs, grad, **named):
    inputs = [x.detach().requires_grad_() for x in inputs]
    out = function(*inputs, **named)
    return [out, *torch.autograd.grad(out, inputs, grad.to(out.dtype))]


def main() -> None:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q, k, v, grad = torch.randn(4, 2, 4, 100, 32, device=device)
    plain = torch.nn.functional.scaled_dot_product_attention
    for causal in (False, True):
        ours = gradients(torch.compile(multi_head, fullgraph=True, backend="eager"), (q, k, v), grad, causal=causal)
        exact = gradients(plain, (q.double(), k.double(), v.double()), grad, is_causal=causal)
        for name, x, y in zip(("out", "grad_q", "grad_k", "grad_v"), ours, exact):
            print(f"{'causal' if causal else 'full':6} {name:6} differs from float64 by {(x - y).abs().max():.1e}")


if __name__ == "__main__":
    main()
