"""A kernel to launch, arrays in GPU memory for it, and what the driver heard."""

import cutile as ct
from tests.gpu.extension import CuPyArray, LentTensor, Tensor

IN_C = "cuLaunchKernel in C"


def scaling():
    @ct.kernel
    def scale(x, y, f, N: ct.Constant):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16) * f)

    return scale


X, Y = CuPyArray(4096, (48,), (1,)), CuPyArray(8192, (50,), (2,))
TX, TY = Tensor(4096, (48,), (1,)), Tensor(8192, (50,), (2,))
LX, LY = LentTensor(4096, (48,), (1,)), LentTensor(8192, (50,), (2,))


def launches_of(fake):
    return [{k: v for k, v in one.items() if k != "function"} for one in fake.launches]
