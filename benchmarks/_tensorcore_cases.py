"""The cases of benchmarks/tensorcore.py: arrays, launches, and the spaces that are searched for the fastest launch.

A case is made by a function of `new`, which makes arrays: `new(dtype, *shape)` of random numbers, `new.ints(values)`;
`new.processors` is the number of multiprocessors. So the benchmark has arrays on a GPU, and tests small ones in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cutile as ct


@dataclass(frozen=True)
class Launch:
    """A launch of the kernel of that name in `examples/<source>.py`."""

    source: str
    kernel: str
    grid: tuple[int, ...]
    args: tuple
    hints: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Launches that belong together. One is searched for the fastest configuration; the others follow from that.

    searched  its position. Before a search those before it run once for each configuration: it reads their results
    """

    space: tuple
    launches: Callable[[Any], Sequence[Launch]]
    searched: int = 0


@dataclass(frozen=True)
class Case:
    """One row.

    kind     the reference and the libraries: a name in _tensorcore_libraries.py
    arrays   what those need, by name; `outputs` among them are compared
    amount   the work of all launches, in `unit`: floating-point operations ("TFLOP/s") or bytes read ("GB/s")
    """

    name: str
    kind: str
    unit: str
    amount: float
    stages: tuple[Stage, ...]
    arrays: dict[str, Any]
    outputs: tuple[str, ...]
    numbers: dict[str, Any] = field(default_factory=dict)

    def searching(self, first: int | None) -> Case:
        """The case with no more than the first configurations of each stage; None for all."""
        return replace(self, stages=tuple(replace(s, space=s.space[:first]) for s in self.stages))

    def configurations(self) -> Iterator[Sequence[Launch]]:
        """The launches of each configuration of each stage."""
        for stage in self.stages:
            yield from map(stage.launches, stage.space)


def hints(ctas: int | None = None, occupancy: int | None = None, warps: int | None = None) -> dict:
    given = {"num_ctas": ctas, "occupancy": occupancy, "num_worker_warps": warps}
    return {k: v for k, v in given.items() if v is not None}


def blocks(new, tiles: int, ctas: int, occupancy: int, persistent: bool) -> tuple[int]:
    """A grid with a block for each tile, or with as many as fit."""
    return (min(tiles, max(new.processors * occupancy // ctas, 1)) if persistent else tiles,)


# ------------------------------------------------------------------ matrix products

# tile (m, n, k in bytes), CTAs of a block, occupancy, warps, rows of tiles in a group, persistent
SQUARE = (
    ((128, 128, 128), 1, 2, None, 8, False), ((256, 128, 128), 2, 2, None, 8, False),
    ((128, 256, 128), 1, 1, 8, 8, False), ((256, 128, 128), 1, 1, 8, 8, False), ((128, 128, 128), 1, 1, 8, 8, False),
    ((128, 128, 128), 1, 2, None, 8, True), ((128, 256, 128), 1, 1, 8, 8, True), ((256, 128, 128), 1, 1, 8, 8, True),
    ((256, 128, 128), 2, 2, None, 8, True), ((128, 128, 128), 1, 2, None, 16, False),
)
SMALL = (
    ((128, 128, 128), 1, 2, None, 8, False), ((64, 256, 128), 2, 1, None, 8, False),
    ((64, 128, 128), 1, 2, None, 8, False), ((128, 64, 128), 1, 2, None, 8, False),
    ((64, 64, 128), 1, 2, None, 8, False), ((64, 128, 256), 1, 1, None, 8, False),
    ((128, 64, 256), 1, 1, None, 8, False), ((64, 64, 256), 1, 2, None, 8, False),
)
# tile (m, n, k), CTAs of a block, occupancy, warps, persistent
BATCHED = (
    ((128, 128, 64), 1, 2, None, False), ((256, 128, 64), 2, 2, None, False), ((128, 256, 64), 1, 1, 8, True),
    ((256, 128, 64), 1, 1, 8, True), ((128, 128, 64), 1, 2, None, True), ((256, 128, 64), 2, 2, None, True),
)
# tile (m, n, k), CTAs of a block, occupancy, warps, rows of tiles in a group
GROUPED = (
    ((128, 128, 64), 1, 2, None, 8), ((128, 128, 64), 1, 2, None, 16), ((256, 128, 64), 2, 2, None, 8),
    ((128, 256, 64), 1, 1, 8, 8), ((256, 128, 64), 1, 1, 8, 8), ((128, 128, 64), 1, 1, 8, 16),
)
# tile of n and k, parts of the sum over k, occupancy
SKINNY = ((32, 128, 1, 2), (32, 128, 1, 4), (32, 64, 1, 2), (32, 256, 1, 2), (64, 128, 1, 2), (64, 128, 4, 2),
          (128, 64, 4, 4))


def matmul(new, dtype: str, n: int, space=SQUARE, by_rows: bool = False) -> Case:
    """Square. float8 operands give bfloat16, and b is given by rows, as the library takes it."""
    size = 1 if dtype == "float8_e4m3fn" else 2
    a, b, c = new(dtype, n, n), new(dtype, n, n), new("bfloat16" if size == 1 else dtype, n, n)

    def launches(config) -> list[Launch]:
        (tm, tn, tk), ctas, occupancy, warps, group, persistent = config
        grid = blocks(new, ct.cdiv(n, tm) * ct.cdiv(n, tn), ctas, occupancy, persistent)
        return [Launch("gemm", "gemm_persistent" if persistent else "gemm", grid,
                       (a, b, c, 1.0, tm, tn, tk // size, group, by_rows), hints(ctas, occupancy, warps))]

    return Case(f"matmul {dtype} {n}", "matmul_by_rows" if by_rows else "matmul", "TFLOP/s", 2 * n**3,
                (Stage(space, launches),), {"a": a, "b": b, "c": c}, ("c",))


def batched(new, dtype: str, batch: int, n: int, space=BATCHED) -> Case:
    a, b, c = (new(dtype, batch, n, n) for _ in range(3))

    def launches(config) -> list[Launch]:
        (tm, tn, tk), ctas, occupancy, warps, persistent = config
        grid = blocks(new, ct.cdiv(n, tm) * ct.cdiv(n, tn) * batch, ctas, occupancy, persistent)
        return [Launch("gemm", "gemm_batched", grid, (a, b, c, tm, tn, tk, 8), hints(ctas, occupancy, warps))]

    return Case(f"matmul {dtype} {batch} × {n}", "matmul", "TFLOP/s", 2 * batch * n**3, (Stage(space, launches),),
                {"a": a, "b": b, "c": c}, ("c",))


def skinny(new, dtype: str, m: int, n: int, k: int, space=SKINNY) -> Case:
    """At most 16 rows: reading b is the work."""
    a, b, c = new(dtype, m, k), new(dtype, k, n), new(dtype, m, n)
    parts = {s: new("float32", s, m, n) if s > 1 else c[None] for s in {config[2] for config in space}}

    def launches(config) -> list[Launch]:
        tn, tk, split, occupancy = config
        first = Launch("gemm", "gemm_skinny", (ct.cdiv(n, tn), split), (a, b, parts[split], 16, tn, tk, False),
                       hints(occupancy=occupancy))
        add = Launch("gemm", "add_parts", (ct.cdiv(n, 512), ct.cdiv(m, 4)), (parts[split], c, split, 4, 512))
        return [first, add] if split > 1 else [first]

    return Case(f"matmul {dtype} {m} × {n} × {k}", "matmul", "GB/s", 2 * (m * k + k * n + m * n),
                (Stage(space, launches),), {"a": a, "b": b, "c": c}, ("c",))


def grouped(new, dtype: str, sizes: Sequence[int], n: int, k: int, space=GROUPED) -> Case:
    """Rows of a in groups of these sizes, each with a b of its own."""
    m, groups = sum(sizes), len(sizes)
    a, b, c = new(dtype, m, k), new(dtype, groups, k, n), new(dtype, m, n)
    ends = new.ints([sum(sizes[:i + 1]) for i in range(groups)])
    plans = {tm: new.ints([[0] * 3] * (m // tm + groups)) for tm in {config[0][0] for config in space}}

    def launches(config) -> list[Launch]:
        (tm, tn, tk), ctas, occupancy, warps, group = config
        plan = plans[tm]
        return [Launch("gemm", "group_tiles", (ct.cdiv(plan.shape[0], 32),),
                       (ends, plan, 32, tm, 1 << (groups - 1).bit_length())),
                Launch("gemm", "gemm_grouped", (plan.shape[0] * ct.cdiv(n, tn),),
                       (a, b, c, plan, tm, tn, tk, group), hints(ctas, occupancy, warps))]

    return Case(f"matmul {dtype} in {groups} groups", "grouped", "TFLOP/s", 2 * m * n * k,
                (Stage(space, launches, searched=1),), {"a": a, "b": b, "c": c, "ends": ends}, ("c",))


# ------------------------------------------------------------------ attention

# kernel, tile of queries and of keys, occupancy, warps
FORWARD = (("forward_ahead", 64, 128, 2, None), ("forward", 128, 128, 1, 8), ("forward_pairs", 128, 128, 1, 8),
           ("forward_halves", 128, 64, 2, 4), ("forward", 128, 64, 2, 8), ("forward", 64, 128, 2, None),
           ("forward_pairs", 64, 64, 2, None))
# tile of queries and of keys, occupancy, warps
BACKWARD = ((64, 128, 1, 8), (128, 64, 2, None), (64, 128, 2, None), (128, 128, 1, 8), (64, 64, 2, None),
            (128, 64, 1, 8), (128, 128, 2, 8))
# splits, occupancy
DECODE = ((1, None), (1, 4), (2, 3), (2, 4), (4, 3), (4, 4))


def by_tiles(length: int, tile: int, heads: int, batch: int, causal: bool) -> tuple[int, int, int]:
    """The grid of `grid_of` in examples/flash_attention.py."""
    tiles = ct.cdiv(length, tile)
    return (heads, tiles, batch) if causal else (tiles, heads, batch)


def attention(new, batch: int, heads: int, kv_heads: int, length: int, d: int, causal: bool, space=FORWARD) -> Case:
    q, out = new("float16", batch, heads, length, d), new("float16", batch, heads, length, d)
    k, v = new("float16", batch, kv_heads, length, d), new("float16", batch, kv_heads, length, d)
    lse, scale = new("float32", batch, heads, length), 1 / math.sqrt(d)

    def launches(config) -> list[Launch]:
        kernel, tm, tn, occupancy, warps = config
        return [Launch("flash_attention", kernel, by_tiles(length, tm, heads, batch, causal),
                       (q, k, v, out, lse, scale, heads // kv_heads, tm, tn, d, causal),
                       hints(occupancy=occupancy, warps=warps))]

    kind = "causal" if causal else "full"
    of = f", {heads // kv_heads} queries a key" if heads != kv_heads else ""
    return Case(f"attention {kind} D={d}{of}", "attention", "TFLOP/s",
                4 * batch * heads * length**2 * d * (0.5 if causal else 1), (Stage(space, launches),),
                {"q": q, "k": k, "v": v, "out": out}, ("out",), {"causal": causal, "scale": scale})


def backward(new, batch: int, heads: int, length: int, d: int, causal: bool, space=BACKWARD) -> Case:
    """From the results of the forward pass, which the reference fills in: delta, then dk and dv, then dq."""
    names = ("q", "k", "v", "out", "dout", "dq", "dk", "dv")
    arrays = {name: new("float16", batch, heads, length, d) for name in names}
    q, k, v, out, dout, dq, dk, dv = arrays.values()
    arrays["lse"] = lse = new("float32", batch, heads, length)
    delta = new("float32", batch, heads, length)
    scale = 1 / math.sqrt(d)

    def constants(config) -> tuple:
        return scale, 1, *config[:2], d, causal

    def rows(config) -> list[Launch]:
        return [Launch("flash_attention", "backward_rows", (ct.cdiv(length, config), heads, batch),
                       (out, dout, delta, config, d))]

    def keys(config) -> list[Launch]:
        return [Launch("flash_attention", "backward_keys", by_tiles(length, config[1], heads, batch, causal),
                       (q, k, v, dout, lse, delta, dk, dv, *constants(config)),
                       hints(occupancy=config[2], warps=config[3]))]

    def queries(config) -> list[Launch]:
        return [Launch("flash_attention", "backward_queries", by_tiles(length, config[0], heads, batch, causal),
                       (q, k, v, dout, lse, delta, dq, *constants(config)),
                       hints(occupancy=config[2], warps=config[3]))]

    return Case(f"backward {'causal' if causal else 'full'} D={d}", "backward", "TFLOP/s",
                10 * batch * heads * length**2 * d * (0.5 if causal else 1),
                (Stage((16, 64), rows), Stage(space, keys), Stage(space, queries)), arrays, ("dq", "dk", "dv"),
                {"causal": causal, "scale": scale})


def decode(new, sequences: int, kv_heads: int, group: int, length: int, page: int, d: int, space=DECODE) -> Case:
    """One query a sequence. Pages of the libraries' keys are put together beforehand, since they take no pages."""
    pages = sequences * length // page
    q, out = new("float16", sequences, kv_heads, group, d), new("float16", sequences, kv_heads, group, d)
    k, v = new("float16", pages, kv_heads, page, d), new("float16", pages, kv_heads, page, d)
    each = length // page
    table = new.ints([[(s * each + n) * 31 % pages for n in range(each)] for s in range(sequences)])  # each page once
    lengths, scale, g = new.ints([length] * sequences), 1 / math.sqrt(d), max(16, group)
    parts = {s: new("float32", sequences, kv_heads, s, g, d) for s in {config[0] for config in space}}
    stats = {s: new("float32", 2, sequences, kv_heads, s, g) for s in parts}

    def launches(config) -> list[Launch]:
        splits, occupancy = config
        work = parts[splits], stats[splits]
        return [Launch("paged_decode", "decode", (sequences, kv_heads, splits),
                       (q, k, v, table, lengths, *work, scale, splits, g, page, d), hints(occupancy=occupancy)),
                Launch("paged_decode", "join", (sequences, kv_heads, group), (*work, out, splits, g, d))]

    return Case(f"decode, {group} queries a key, D={d}", "decode", "GB/s", 4 * sequences * kv_heads * length * d,
                (Stage(space, launches),), {"q": q, "k": k, "v": v, "table": table, "out": out}, ("out",),
                {"scale": scale})


# Rows of the groups of a mixture of experts, none the same.
GROUPS = (2040, 136, 1384, 712, 8, 3016, 520, 1120, 904, 1624, 256, 640, 1880, 304, 1472, 368)


def cases() -> dict[str, Callable[[Any], Case]]:
    """Every row by its group and a short name; the value makes the case."""
    made: dict[str, Callable[[Any], Case]] = {}
    for dtype, n in (("float16", 1024), ("float16", 4096), ("float16", 8192), ("bfloat16", 4096), ("bfloat16", 8192)):
        space = SMALL if n == 1024 else SQUARE
        made[f"matmul/{dtype} {n}"] = lambda new, dtype=dtype, n=n, space=space: matmul(new, dtype, n, space)
    for n in (4096, 8192):
        made[f"matmul/float8 {n}"] = lambda new, n=n: matmul(new, "float8_e4m3fn", n, by_rows=True)
    made["matmul/batched"] = lambda new: batched(new, "float16", 64, 1024)
    made["matmul/skinny"] = lambda new: skinny(new, "float16", 16, 8192, 8192)
    made["matmul/grouped"] = lambda new: grouped(new, "bfloat16", GROUPS, 4096, 2048)
    for causal in (False, True):
        for d in (128, 64):
            made[f"forward/{'causal' if causal else 'full'} {d}"] = (
                lambda new, causal=causal, d=d: attention(new, 4, 16, 16, 4096, d, causal))
    made["forward/grouped queries"] = lambda new: attention(new, 4, 32, 8, 4096, 128, True)
    made["decode/paged"] = lambda new: decode(new, 64, 8, 8, 8192, 64, 128)
    for causal in (False, True):
        for d in (128, 64):
            made[f"backward/{'causal' if causal else 'full'} {d}"] = (
                lambda new, causal=causal, d=d: backward(new, 4, 16, 4096, d, causal))
    return made
