"""Prefix sum in one pass over memory: each block waits for what the blocks before it publish (decoupled look-back)."""

import numpy as np
from _report import check, show, timed

import cutile as ct

NOTHING, SUM, PREFIX = 0, 1, 2  # the state that a block has published


@ct.kernel
def look_back_scan(x, y, ticket, status, sums, prefixes, TILE: ct.Constant[int]):
    i = ct.atomic_add(ticket, 0, 1)  # tiles go out in the order in which blocks begin, so every awaited block runs
    scanned = ct.cumsum(ct.load(x, index=i, shape=TILE, padding_mode=ct.PaddingMode.ZERO), axis=0)
    total = ct.extract(scanned, TILE - 1, shape=1).item()
    ct.store(sums, index=i, tile=total)
    ct.atomic_xchg(status, i, SUM)
    before, k = 0, i - 1
    while k >= 0:
        published = ct.atomic_or(status, k, NOTHING)  # an atomic read
        if published == PREFIX:
            before += ct.load(prefixes, index=k, shape=()).item()
            break
        if published == SUM:
            before += ct.load(sums, index=k, shape=()).item()
            k -= 1
    ct.store(prefixes, index=i, tile=before + total)
    ct.atomic_xchg(status, i, PREFIX)
    ct.store(y, index=i, tile=before + scanned)


def main():
    n, tile = 20_000, 512
    x = np.random.default_rng(9).integers(-100, 100, n, dtype=np.int32)
    y = np.zeros_like(x)
    blocks = ct.cdiv(n, tile)
    ticket = np.zeros(1, np.int32)
    status, sums, prefixes = (np.zeros(blocks, np.int32) for _ in range(3))
    with timed() as watch:
        ct.launch(None, (blocks,), look_back_scan, (x, y, ticket, status, sums, prefixes, tile))
    return [check("look-back scan i32", (blocks,), (tile,), watch, (y, np.cumsum(x), 0))]


if __name__ == "__main__":
    show(main())
