"""The cases of benchmarks/membound.py: arrays, launches, and the same work as an expression of PyTorch.

A case is a function from its sizes to a `Problem`. Each has sizes that fill a large GPU, and small ones, on which the
interpreter checks it in host memory. A case of a kind that programs use at several sizes has several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

DTYPES = {"f16": torch.float16, "f32": torch.float32, "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32}


@dataclass
class Problem:
    """A launch, and the same work in PyTorch.

    results    the arrays in which the kernel leaves its results, or what computes them
    library    the expression; it returns the results in the same order, and leaves the kernel's arguments alone
    moved      bytes that the work has to read and write
    tolerance  the largest norm of the error, relative to that of the result; 0 for equal results
    compiled   whether torch.compile makes a kernel of its own of the expression
    checked    whether the kernel and the library compute the same
    """

    kernel: str
    grid: tuple[int, ...]
    arguments: tuple
    results: tuple[torch.Tensor, ...]
    library: Callable[[], Any]
    moved: int
    tolerance: float = 2e-3
    compiled: bool = True
    checked: bool = True


@dataclass
class Case:
    """One row of the table. `other` says that it is of the second two dozen kinds."""

    name: str
    make: Callable[[], Problem]
    other: bool


@dataclass
class Arrays:
    """Makes arrays on a device: random ones with a seed of their own."""

    device: str

    def normal(self, *shape: int, dtype: str = "f16") -> torch.Tensor:
        return torch.randn(shape, device=self.device).to(DTYPES[dtype])

    def zeros(self, *shape: int, dtype: str = "f16") -> torch.Tensor:
        return torch.zeros(shape, device=self.device, dtype=DTYPES[dtype])

    def below(self, limit: int, *shape: int, dtype: str = "i32") -> torch.Tensor:
        return torch.randint(0, limit, shape, device=self.device, dtype=DTYPES[dtype])


@dataclass
class _Kind:
    name: str
    function: Callable[..., Problem]
    large: list[tuple]
    small: tuple
    other: bool = False


_KINDS: list[_Kind] = []


def kind(name: str, large: list[tuple], small: tuple, *, other: bool = False) -> Callable:
    def note(function: Callable[..., Problem]) -> Callable[..., Problem]:
        _KINDS.append(_Kind(name, function, large, small, other))
        return function

    return note


def cases(device: str, small: bool) -> Iterator[Case]:
    arrays = Arrays(device)
    for k in _KINDS:
        for sizes in [k.small] if small else k.large:
            yield Case(f"{k.name} {'x'.join(map(str, sizes))}", lambda k=k, sizes=sizes: k.function(arrays, *sizes),
                       k.other)


def size(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


ROWS = [(32768, 1024), (16384, 4096)]
TILE = 4096


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


# ------------------------------------------------------------------ the usual kinds


@kind("copy f16", [(1 << 27,)], (8192,))
def copy(a: Arrays, n: int) -> Problem:
    x, out = a.normal(n), a.zeros(n)
    return Problem("copy", (n // TILE,), (x, out, TILE), (out,), lambda: x.clone(), size(x, out))


@kind("add f16", [(1 << 27,)], (8192,))
def add(a: Arrays, n: int) -> Problem:
    x, y, out = a.normal(n), a.normal(n), a.zeros(n)
    return Problem("add", (n // TILE,), (x, y, out, TILE), (out,), lambda: x + y, size(x, y, out))


@kind("swiglu f16", [(1 << 27,)], (8192,))
def swiglu(a: Arrays, n: int) -> Problem:
    x, y, out = a.normal(n), a.normal(n), a.zeros(n)
    return Problem("swiglu", (n // TILE,), (x, y, out, TILE), (out,), lambda: (F.silu(x.float()) * y).half(),
                   size(x, y, out))


@kind("dropout f16", [(1 << 27,)], (8192,))
def dropout(a: Arrays, n: int) -> Problem:
    x, out = a.normal(n), a.zeros(n)
    return Problem("dropout", (n // TILE,), (x, out, 7, 0.9, TILE), (out,), lambda: F.dropout(x, 0.1), size(x, out),
                   checked=False)


@kind("softmax f16", [(32768, 1024), (8192, 4096), (4096, 16384)], (20, 256))
def softmax(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n), a.zeros(m, n)
    return Problem("softmax", (m,), (x, out, n), (out,), lambda: torch.softmax(x, 1), size(x, out))


@kind("rms norm f16", ROWS, (20, 256))
def rms_norm(a: Arrays, m: int, n: int) -> Problem:
    x, w, out = a.normal(m, n), a.normal(n), a.zeros(m, n)
    return Problem("rms_norm", (m,), (x, w, out, n, n), (out,), lambda: F.rms_norm(x, (n,), w, 1e-6), size(x, out))


@kind("layer norm f16", ROWS, (20, 256))
def layer_norm(a: Arrays, m: int, n: int) -> Problem:
    x, w, b, out = a.normal(m, n), a.normal(n), a.normal(n), a.zeros(m, n)
    mean, rstd = a.zeros(m, dtype="f32"), a.zeros(m, dtype="f32")
    return Problem("layer_norm", (m,), (x, w, b, out, mean, rstd, n, n), (out,),
                   lambda: F.layer_norm(x, (n,), w, b), size(x, out))


@kind("layer norm dx f16", ROWS, (20, 256))
def layer_norm_dx(a: Arrays, m: int, n: int) -> Problem:
    x, w, dy, dx = a.normal(m, n), a.normal(n), a.normal(m, n), a.zeros(m, n)
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1, unbiased=False) + 1e-5)

    given = [t.float() if a.device == "cpu" else t for t in (dy, x, w)]  # on CPUs, dtypes must be equal

    def library():
        return torch.ops.aten.native_layer_norm_backward(
            given[0], given[1], [n], mean[:, None], rstd[:, None], given[2], None, [True, False, False])[0]

    return Problem("layer_norm_dx", (m,), (dy, x, w, mean, rstd, dx, n, n), (dx,), library, size(x, dy, dx))


@kind("quantise f16 to int8", ROWS, (20, 256))
def quantise(a: Arrays, m: int, n: int) -> Problem:
    x, out, scale = a.normal(m, n), a.zeros(m, n, dtype="i8"), a.zeros(m, dtype="f32")

    def library():
        s = x.float().abs().amax(1, True).clamp_min(1e-8) / 127
        return torch.floor(x.float() / s + 0.5).to(torch.int8)

    return Problem("quantise", (m,), (x, out, scale, n), (out,), library, size(x, out), 2e-3)


@kind("rotary f16", [(16384, 32, 64)], (10, 4, 16))
def rotary(a: Arrays, length: int, h: int, d: int) -> Problem:
    x, out = a.normal(length, h, 2 * d), a.zeros(length, h, 2 * d)
    cos, sin = a.normal(length, d, dtype="f32"), a.normal(length, d, dtype="f32")

    def library():
        p, q = x[..., :d].float(), x[..., d:].float()
        c, s = cos[:, None], sin[:, None]
        return torch.cat([p * c - q * s, q * c + p * s], -1).half()

    return Problem("rotary", (length,), (x, cos, sin, out, h, d), (out,), library, size(x, out, cos, sin))


@kind("cross entropy f16", [(4096, 50257)], (6, 1000))
def cross_entropy(a: Arrays, m: int, n: int) -> Problem:
    x, target, out = a.normal(m, n), a.below(n, m), a.zeros(m, dtype="f32")
    return Problem("cross_entropy", (m,), (x, target, out, min(TILE, _power(n) // 4)), (out,),
                   lambda: F.cross_entropy(x.float(), target.long(), reduction="none"), size(x))


@kind("transpose f16", [(8192, 8192)], (128, 192))
def transpose(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n), a.zeros(n, m)
    return Problem("transpose", (m // 64, n // 64), (x, out, 64), (out,), lambda: x.t().contiguous(), size(x, out))


@kind("sum of rows f32", [(32768, 2048)], (20, 256))
def sum_rows(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n, dtype="f32"), a.zeros(m, dtype="f32")
    return Problem("sum_rows", (m,), (x, out, n), (out,), lambda: x.sum(1), size(x), 1e-4)


@kind("sum of columns f32", [(32768, 2048)], (100, 96))
def sum_columns(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n, dtype="f32"), a.zeros(n, dtype="f32")
    return Problem("sum_columns", (n // 32,), (x, out, 32, 32), (out,), lambda: x.sum(0), size(x), 1e-4)


@kind("embedding f16", [(65536, 1024)], (40, 64))
def embedding(a: Arrays, m: int, n: int) -> Problem:
    table, index, out = a.normal(50257, n), a.below(50257, m), a.zeros(m, n)
    return Problem("embedding", (m,), (table, index, out, n), (out,), lambda: F.embedding(index, table),
                   2 * size(out), compiled=False)


@kind("gather f32", [(1 << 26, 1 << 25)], (5000, 2048))
def gather(a: Arrays, m: int, n: int) -> Problem:
    x, index, out = a.normal(m, dtype="f32"), a.below(m, n), a.zeros(n, dtype="f32")
    return Problem("gather", (n // 1024,), (x, index, out, 1024), (out,), lambda: x[index], 3 * size(out))


@kind("histogram i32", [(1 << 24, 4096)], (4096, 100))
def histogram(a: Arrays, n: int, bins: int) -> Problem:
    x, count = a.below(bins, n), a.zeros(bins, dtype="i32")
    return Problem("histogram", (n // 1024,), (x, count, 1024), (count,), lambda: torch.bincount(x, minlength=bins),
                   size(x), 0)


# ------------------------------------------------------------------ other kinds


@kind("bias and gelu f16", [(16384, 4096)], (64, 128), other=True)
def bias_gelu(a: Arrays, m: int, n: int) -> Problem:
    x, b, out = a.normal(m, n), a.normal(n), a.zeros(m, n)
    return Problem("bias_gelu", (m // 16, n // 128), (x, b, out, 16, 128), (out,),
                   lambda: F.gelu(x.float() + b.float(), approximate="tanh").half(), size(x, out))


@kind("batch norm f16", [(64, 256, 4096)], (2, 4, 256), other=True)
def batch_norm(a: Arrays, images: int, channels: int, pixels: int) -> Problem:
    x, out = a.normal(images, channels, pixels), a.zeros(images, channels, pixels)
    mean, w, b = (a.normal(channels, dtype="f32") for _ in range(3))
    var = a.normal(channels, dtype="f32").abs() + 0.1
    tile = min(pixels, 2048)
    return Problem("batch_norm", (images, channels, pixels // tile), (x, mean, var, w, b, out, 1, tile), (out,),
                   lambda: F.batch_norm(x.float(), mean, var, w, b, False, 0.0, 1e-5).half(), size(x, out))


@kind("group norm f16", [(256, 32, 16, 1024)], (2, 3, 4, 64), other=True)
def group_norm(a: Arrays, images: int, groups: int, c: int, pixels: int) -> Problem:
    """`c` channels a group."""
    channels = groups * c
    x, out = a.normal(images, channels, pixels), a.zeros(images, channels, pixels)
    w, b = a.normal(channels), a.normal(channels)
    return Problem("group_norm", (images, groups), (x, w, b, out, c, pixels), (out,),
                   lambda: F.group_norm(x.float(), groups, w.float(), b.float(), 1e-5).half(), size(x, out))


@kind("add and rms norm f16", [(16384, 3072)], (20, 200), other=True)
def add_rms_norm(a: Arrays, m: int, n: int) -> Problem:
    x, residual, w, out = a.normal(m, n), a.normal(m, n), a.normal(n), a.zeros(m, n)
    before = residual.clone()

    def library():
        t = x.float() + before.float()
        return F.rms_norm(t, (n,), w.float(), 1e-6).half(), t.half()

    return Problem("add_rms_norm", (m,), (x, residual, w, out, n, _power(n)), (out, residual), library,
                   2 * size(x, out))


@kind("cumulative sum f32", [(16384, 4096)], (20, 256), other=True)
def cumulative_sum(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n, dtype="f32"), a.zeros(m, n, dtype="f32")
    return Problem("cumulative_sum", (m,), (x, out, n), (out,), lambda: x.cumsum(1), size(x, out), 1e-4)


@kind("argmax f16", [(32768, 4096)], (20, 256), other=True)
def argmax(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n), a.zeros(m, dtype="i32")
    x[torch.arange(m, device=a.device), a.below(n, m).long()] = 100  # of equal elements, any may be found
    return Problem("argmax", (m,), (x, out, n), (out,), lambda: x.argmax(1), size(x), 0)


@kind("top 1 and its probability f16", [(8192, 16000)], (20, 200), other=True)
def top1(a: Arrays, m: int, n: int) -> Problem:
    x, value, index = a.normal(m, n), a.zeros(m, dtype="f32"), a.zeros(m, dtype="i32")
    return Problem("top1", (m,), (x, value, index, _power(n)), (value,),
                   lambda: tuple(torch.softmax(x.float(), 1).max(1)), size(x))


@kind("masked fill f16", [(1 << 27,)], (8192,), other=True)
def masked_fill(a: Arrays, n: int) -> Problem:
    x, mask, out = a.normal(n), a.below(2, n, dtype="u8"), a.zeros(n)
    return Problem("masked_fill", (n // 2048,), (x, mask, out, -1.5, 2048), (out,),
                   lambda: x.masked_fill(mask != 0, -1.5), size(x, mask, out))


@kind("pad f32", [(8188, 8188)], (60, 124), other=True)
def pad(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n, dtype="f32"), a.zeros(m + 4, n + 4, dtype="f32")
    return Problem("pad", ((m + 4) // 8, (n + 4) // 128), (x, out, 2, 8, 128), (out,), lambda: F.pad(x, (2,) * 4),
                   size(x, out), 0)


@kind("crop f16", [(12288, 8192)], (64, 128), other=True)
def crop(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m + 40, n + 24), a.zeros(m, n)
    return Problem("crop", (m // 16, n // 128), (x, out, 13, 8, 16, 128), (out,),
                   lambda: x[13:13 + m, 8:8 + n].contiguous(), 2 * size(out), 0)


@kind("int8 to f16 by a scale", [(32768, 4096)], (20, 256), other=True)
def dequantise(a: Arrays, m: int, n: int) -> Problem:
    q, scale, out = a.below(127, m, n, dtype="i8"), a.normal(m, dtype="f32"), a.zeros(m, n)
    return Problem("dequantise", (m,), (q, scale, out, n), (out,), lambda: (q.float() * scale[:, None]).half(),
                   size(q, out))


@kind("4 bits to f16 by groups of 32", [(8192, 16384)], (12, 2048), other=True)
def unpack4(a: Arrays, m: int, n: int) -> Problem:
    q, scale, out = a.below(256, m, n // 2, dtype="u8"), a.normal(m, n // 32), a.zeros(m, n)

    def library():
        t = torch.stack([q & 15, q >> 4], -1).view(m, n // 32, 32).float() - 8
        return (t * scale[..., None].float()).half().view(m, n)

    return Problem("unpack4", (m, n // 2048), (q, scale, out, 32, 2048), (out,), library, size(q, scale, out))


@kind("max pool 2x2 f16", [(16384, 8192)], (64, 256), other=True)
def max_pool(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n), a.zeros(m // 2, n // 2)
    return Problem("max_pool", (m // 32, n // 128), (x, out, 16, 64), (out,), lambda: F.max_pool2d(x[None], 2)[0],
                   size(x, out), 0)


@kind("histogram in 256 copies i32", [(1 << 26, 4096)], (8192, 100), other=True)
def histogram_copies(a: Arrays, n: int, bins: int) -> Problem:
    x, count = a.below(bins, n), a.zeros(256, bins, dtype="i32")
    return Problem("histogram_copies", (n // 2048,), (x, count, 256, 2048), (count,),
                   lambda: torch.bincount(x, minlength=bins), size(x), 0, compiled=False)


@kind("interleave f16", [(1 << 26,)], (8192,), other=True)
def interleave(a: Arrays, n: int) -> Problem:
    x, y, out = a.normal(n), a.normal(n), a.zeros(2 * n)
    return Problem("interleave", (n // 2048,), (x, y, out, 2048), (out,), lambda: torch.stack([x, y], 1).view(-1),
                   size(x, y, out), 0)


@kind("pixel shuffle f16", [(16, 64, 256, 256)], (2, 3, 4, 32), other=True)
def pixel_shuffle(a: Arrays, images: int, channels: int, rows: int, width: int) -> Problem:
    x = a.normal(images, 4 * channels, rows, width)
    out = a.zeros(images, channels, 2 * rows, 2 * width)
    return Problem("pixel_shuffle", (images, channels, rows), (x, out, width), (out,),
                   lambda: F.pixel_shuffle(x, 2), size(x, out), 0)


@kind("bias gradient f16", [(32768, 4096)], (128, 128), other=True)
def bias_gradient(a: Arrays, m: int, n: int) -> Problem:
    dy, out, part = a.normal(m, n), a.zeros(n, dtype="f32"), min(m // 2, 1024)
    return Problem("bias_gradient", (m // part, n // 64), (dy, out, part, 32, 64), (out,),
                   lambda: dy.float().sum(0), size(dy), 1e-3)


@kind("adam f32", [(1 << 25,)], (8192,), other=True)
def adam(a: Arrays, n: int) -> Problem:
    p, g, m, v = (a.normal(n, dtype=d) for d in ("f32", "f16", "f32", "f32"))
    v.abs_()
    was = [t.clone() for t in (p, m, v)]

    def library():
        first = 0.9 * was[1] + 0.1 * g.float()
        second = 0.999 * was[2] + 0.001 * g.float() * g.float()
        return was[0] - 0.01 * first / (torch.sqrt(second) + 1e-8), first, second

    return Problem("adam", (n // 1024,), (p, g, m, v, 0.01, 1024), (p, m, v), library, 2 * size(p, m, v) + size(g),
                   1e-4)


@kind("clip f32 to f16", [(1 << 27,)], (8192,), other=True)
def clip_cast(a: Arrays, n: int) -> Problem:
    x, out = a.normal(n, dtype="f32"), a.zeros(n)
    return Problem("clip_cast", (n // 2048,), (x, out, -1.0, 1.0, 2048), (out,), lambda: x.clamp(-1, 1).half(),
                   size(x, out))


@kind("one-hot i8", [(32768, 4096)], (20, 256), other=True)
def one_hot(a: Arrays, m: int, n: int) -> Problem:
    index, out = a.below(n, m), a.zeros(m, n, dtype="i8")
    columns = torch.arange(n, device=a.device, dtype=torch.int32)
    return Problem("one_hot", (m,), (index, out, n), (out,), lambda: (index[:, None] == columns).to(torch.int8),
                   size(out), 0)


@kind("sum of four gathered rows f16", [(32768, 2048)], (20, 128), other=True)
def gather_add(a: Arrays, m: int, n: int) -> Problem:
    x, index, out = a.normal(65536, n), a.below(65536, m, 4), a.zeros(m, n)
    return Problem("gather_add", (m,), (x, index, out, n), (out,), lambda: x[index].float().sum(1).half(),
                   5 * size(out))


@kind("scatter-add of rows f32", [(65536, 512)], (40, 64), other=True)
def scatter_add(a: Arrays, m: int, n: int) -> Problem:
    x, index, out = a.normal(m, n, dtype="f32"), a.below(max(m // 4, 4), m), a.zeros(max(m // 4, 4), n, dtype="f32")
    empty = torch.zeros_like(out)
    return Problem("scatter_add", (m,), (x, index, out, n), (out,), lambda: empty.index_add(0, index, x),
                   2 * size(x), 1e-4)


@kind("logsumexp f16", [(16384, 8192)], (20, 256), other=True)
def logsumexp(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n), a.zeros(m, dtype="f32")
    return Problem("logsumexp", (m,), (x, out, n), (out,), lambda: x.float().logsumexp(1), size(x))


@kind("KL divergence f16", [(32768, 2048)], (20, 256), other=True)
def kl_divergence(a: Arrays, m: int, n: int) -> Problem:
    p, q = (torch.log_softmax(a.normal(m, n).float(), 1).half() for _ in range(2))
    out = a.zeros(m, dtype="f32")

    def library():
        return (p.float().exp() * (p.float() - q.float())).sum(1)

    return Problem("kl_divergence", (m,), (p, q, out, n), (out,), library, size(p, q))


@kind("box filter f32", [(8192, 8192)], (64, 128), other=True)
def box_filter(a: Arrays, m: int, n: int) -> Problem:
    x, out = a.normal(m, n, dtype="f32"), a.zeros(m, n, dtype="f32")
    return Problem("box_filter", (m // 16, n // 64), (x, out, 16, 64), (out,),
                   lambda: F.avg_pool2d(x[None, None], 3, 1, 1)[0, 0], size(x, out), 1e-4)
