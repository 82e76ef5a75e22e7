"""Mistakes that a type checker must refuse: exactly the marked lines."""

import numpy as np

import cutile as ct


@ct.kernel
def k(x: ct.Array, N: ct.Constant[int]) -> None:
    t = ct.load(x, (0, 0), (1, N))
    t.reshpe((N,))  # refused
    ct.tahn(t)  # refused
    ct.load(x, (0, 0))  # refused
    ct.load(t, (0, 0), (1, N))  # refused
    ct.load(x, (0, 0), (1, 2.5))  # refused
    t.astype("float32")  # refused
    t.astype(float)  # refused
    t.astype(np.float16)
    t + "1"  # refused
    x + 1  # refused
    x[0]  # refused
    x.shape[0].nothing  # refused
    ct.sum(t, axis="rows")  # refused
    ct.load(x, (0, 0), (1, N), padding_mode="NIL")  # refused
    ct.exp(t, approximate=True)  # refused
    ct.sum(t, None, True)  # refused
    x.tiled_view((1, N)).load()  # refused
    y = ct.store(x, (0, 0), t) + 1  # refused
    x.get_raw_memory().shape  # refused
    ct.Tile.reshape(x, (4,))  # refused


k.replace_hnts(occupancy=2)  # refused
ct.launch(None, (1,), k, [1])  # refused
ct.launch(None, 4, k, (1,))  # refused
ct.launch(None, (1,), lambda x: None, (1,))  # refused


@ct.kernel(num_ctas="two")  # refused
def other() -> None:
    pass


@ct.kernel(num_warps=4)  # refused
def third() -> None:
    pass
