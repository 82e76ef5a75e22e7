"""Kernels, functions and operators of the tests, under names that other processes find."""

import torch

import cutile as ct
import cutile.torch


@ct.kernel
def scaled(x, y, factor, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, N) * factor)


@ct.kernel
def increment(x):
    ct.store(x, ct.bid(0), ct.load(x, ct.bid(0), 16) + 1)


class Scale(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        ct.launch(None, (ct.cdiv(x.shape[0], 16),), scaled, (x + 1, y, 3.0, 16))
        return y - 1


def elementwise(kernel, **options):
    return ct.jit(kernel, grid="cdiv(N, 32)", out=ct.Out("N", **options))


@ct.kernel
def double(x: ct.Array["N"], y):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 32) + ct.load(x, ct.bid(0), 32))


@ct.kernel
def plus(x: ct.Array["N"], z: ct.Array["N"], y, count: ct.ScalarInt64):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 32) + ct.load(z, ct.bid(0), 32) * count)


@ct.kernel
def power(x: ct.Array["N"], y, N: ct.Constant[int], P: ct.Constant[float] = 2.0):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 32) ** P)


@ct.kernel
def scaled_by(x: ct.Array["N"], y, factor: float, count: int, negative: bool):  # noqa: F821
    t = ct.load(x, ct.bid(0), 32) * factor * count
    ct.store(y, ct.bid(0), -t if negative else t)


@ct.kernel
def as_float(x: ct.Array["N"], y):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 32).astype(ct.float32))


@ct.kernel
def sums(x: ct.Array["M N"], row, square, TILE: ct.Constant[int]):  # noqa: F722
    t = ct.load(x, (ct.bid(0), 0), (1, TILE), padding_mode=ct.PaddingMode.ZERO)
    ct.store(row, ct.bid(0), ct.sum(t, 1))
    ct.store(square, ct.bid(0), ct.sum(t * t, 1))


@ct.kernel
def joined(x: ct.Array["N"], y):  # noqa: F821
    i = ct.bid(0)
    t = ct.load(x, i, 32, padding_mode=ct.PaddingMode.ZERO)
    places = i * 32 + ct.arange(32, dtype=ct.int32)
    ct.scatter(y, places, t)
    ct.scatter(y, places + x.shape[0], -t, mask=places < x.shape[0])


@ct.kernel
def add_to(total: ct.Array["N"], x: ct.Array["N"]):  # noqa: F821
    ct.store(total, ct.bid(0), ct.load(total, ct.bid(0), 32) + ct.load(x, ct.bid(0), 32))


def tile(N):
    return 1 << (N - 1).bit_length()


SUMS = ct.jit(sums, grid="M", out=(ct.Out("M", name="row"), ct.Out("M", name="square")), defaults={"TILE": tile})
JOINED = ct.jit(joined, grid="cdiv(N, 32)", out=ct.Out("2*N"))
HALVED = ct.jit(joined, grid="cdiv(N, 32)", out=ct.Out(lambda N: (2 * N,)))
ADD_TO = ct.jit(add_to, grid="cdiv(N, 32)").inout("total")
DOUBLE = elementwise(double)
LIKE = ct.jit(double, grid="cdiv(N, 32)", out=ct.Out(like="x"))


@ct.jit(grid="cdiv(N, 32)", out=ct.Out("N", name="grad_x"))
@ct.kernel
def double_backward(grad_y: ct.Array["N"], grad_x):  # noqa: F821
    ct.store(grad_x, ct.bid(0), ct.load(grad_y, ct.bid(0), 32) * 2)


X, WHOLE = torch.linspace(-2, 2, 40), torch.arange(40, dtype=torch.int32)
# The operator, arguments, and what it computes.
OPERATORS = {
    "double": (cutile.torch.op("cutile_tests::double", DOUBLE, backward=double_backward), (X,), lambda x: x + x),
    "double of integers": (cutile.torch.op("cutile_tests::double_i", elementwise(double)), (WHOLE,), lambda x: x + x),
    "double of bfloat16": (cutile.torch.op("cutile_tests::double_b", elementwise(double)), (X.bfloat16(),),
                           lambda x: x + x),
    "double of float64": (cutile.torch.op("cutile_tests::double_d", elementwise(double)), (X.double(),),
                          lambda x: x + x),
    "a number": (cutile.torch.op("cutile_tests::plus", elementwise(plus)), (X, X * 2, 3), lambda x, z, n: x + z * n),
    "a constant": (cutile.torch.op("cutile_tests::power", elementwise(power)), (X,), lambda x: x * x),
    "a constant that is given": (cutile.torch.op("cutile_tests::cube", elementwise(power)), (X.abs(), 40, 3.0),
                                 lambda x, n, p: x ** p),
    "another dtype": (cutile.torch.op("cutile_tests::as_float", elementwise(as_float, dtype=ct.float32)), (WHOLE,),
                      lambda x: x.float()),
    "two outputs": (cutile.torch.op("cutile_tests::sums", SUMS), (X.reshape(8, 5),),
                    lambda x: (x.sum(1), (x * x).sum(1))),
    "a computed size": (cutile.torch.op("cutile_tests::joined", JOINED), (X,), lambda x: torch.cat((x, -x))),
    "a size by a function": (cutile.torch.op("cutile_tests::halved", HALVED), (X,), lambda x: torch.cat((x, -x))),
    "like a parameter": (cutile.torch.op("cutile_tests::like", LIKE), (X,), lambda x: x + x),
}
ADD = cutile.torch.op("cutile_tests::add_to", ADD_TO)
