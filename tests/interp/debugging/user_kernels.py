"""What a user debugs: one kernel with a helper, loops, branches and combine functions. Run as a script, it launches it.

The tests find lines by their text, so a comment at a line's end does no harm, but two equal lines would.
"""

import numpy as np

import cutile as ct

T = 16


def scale(t, factor):
    shifted = t + 1.0
    return shifted * factor


def larger(a, b):
    bigger = a > b
    return ct.where(bigger, a, b)


@ct.kernel
def kernel(x, out, n: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, (i,), (T,))
    acc = ct.zeros((T,), ct.float32)
    for k in range(n):
        if k == 1:
            acc = acc + tile
        else:
            acc = acc - 1.0
        acc = ct.exp2(acc)
    part = scale(acc, 3.0)
    top = ct.reduce(part, 0, larger, -np.inf)
    low = ct.reduce(part, 0, lambda p, q: ct.minimum(p, q), np.inf)
    both = (top, low)  # noqa: F841
    if i > 1:
        part = part + top
    ct.store(out, (i,), part)


def main():
    x = np.arange(64, dtype=np.float32) / 64
    out = np.zeros_like(x)
    ct.launch(None, (4,), kernel, (x, out, 2))
    return out


if __name__ == "__main__":
    print("out", main().reshape(4, T).sum(axis=1).tolist())
