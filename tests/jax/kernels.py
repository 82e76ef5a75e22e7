"""Kernels of these tests, in a module that other processes can do without."""

import cutile as ct

N = 8


@ct.kernel
def scale(x, y, f, T: ct.Constant[int]):
    ct.store(y, ct.bid(0), (ct.load(x, ct.bid(0), T) * f).astype(y.dtype))


@ct.kernel
def add(x, y, z):
    ct.store(z, 0, ct.load(x, 0, N) + ct.load(y, 0, N))


@ct.kernel
def accumulate(x, y):
    ct.store(y, 0, ct.load(y, 0, N) + ct.load(x, 0, N))


@ct.kernel
def copy(x, y):
    ct.store(y, 0, ct.load(x, 0, N))


@ct.kernel
def fill(y):
    ct.store(y, 0, ct.full((N,), 3, y.dtype))


@ct.jit(grid=1, out=ct.Out("N"))
@ct.kernel
def square(x: ct.Array["N"], y, T: ct.Constant[int] = N):
    t = ct.load(x, 0, T)
    ct.store(y, 0, t * t)


@ct.jit(grid=1, out=ct.Out("N"))
@ct.kernel
def square_backward(x: ct.Array["N"], grad_y: ct.Array["N"], grad_x, T: ct.Constant[int] = N):
    ct.store(grad_x, 0, 2 * ct.load(x, 0, T) * ct.load(grad_y, 0, T))


@ct.kernel
def first_half(x, y):
    ct.store(y, 0, ct.load(x, 0, N // 2))
