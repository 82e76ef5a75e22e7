"""Device-wide algorithms beside other libraries: python benchmarks/compute.py [exponents…] [--only WORD]

For each algorithm and number of items (2^16, 2^20, 2^24 and 2^28 on a GPU, 2^16 and 2^20 without one): the time of a
call, that of the quickest other library, and how many times as quick cutile is; then what a call costs the host, where
it waits for nothing. The others are cuda.compute, CuPy and PyTorch on a GPU, as far as they are installed, and NumPy in
host memory. Each result is compared with another library's. Calls are timed when everything that they may run has been
compiled. `--only` takes the rows whose names hold a word. `--fill` only compiles what a GPU would run, into the cache,
on a machine without one.
"""

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cutile import compute
from cutile.compute import OpKind
from cutile.gpu import background

ROUNDS, CALLS = 9, 100
MOST = 0.05  # seconds that the calls of a round take, but for a single one
ROW = "{:34} {:>5} {:>10.4f} ms {:>9} {:>10} {:>6}   {:>7.1f} us"


def twice(v):
    return v * 2


def added(a, b):
    return a + b


def positive(v):
    return v > 0


def rows(xp: Any, n: int, dtype: Any, others: dict[str, Any]) -> Iterator[tuple[str, Callable, dict[str, Callable],
                                                                               Callable]]:
    """For each algorithm a name, a call of cutile, calls of others, and a function that gives both results."""
    torch, cc = others.get("torch"), others.get("cuda.compute")
    x = (xp.arange(n, dtype=np.int32) * 7 % 11 - 5).astype(dtype)
    y, z, one = xp.empty_like(x), xp.empty_like(x), xp.empty(1, dtype)
    t, u = (torch.as_tensor(a, device="cuda") for a in (x, z)) if torch else (None, None)
    first, name = np.zeros(1, dtype), np.dtype(dtype).name
    sums = {"cupy" if xp is not np else "numpy": lambda: x.sum(dtype=dtype)}
    doubled = {"cupy" if xp is not np else "numpy": lambda: xp.multiply(x, dtype(2), z)}
    scanned = {"cupy" if xp is not np else "numpy": lambda: xp.cumsum(x, dtype=dtype, out=z)}
    if torch:
        sums["torch"], doubled["torch"] = lambda: t.sum(dtype=t.dtype), lambda: torch.mul(t, 2, out=u)
        scanned["torch"] = lambda: torch.cumsum(t, 0, dtype=t.dtype, out=u)
    if cc:
        sums["cuda.compute"] = lambda: cc.reduce_into(d_in=x, d_out=one, num_items=n, op=cc.OpKind.PLUS, h_init=first)
        doubled["cuda.compute"] = lambda: cc.unary_transform(d_in=x, d_out=z, op=twice, num_items=n)
        scanned["cuda.compute"] = lambda: cc.inclusive_scan(d_in=x, d_out=z, op=cc.OpKind.PLUS, init_value=first,
                                                            num_items=n)
    yield (f"transform {name}", lambda: compute.unary_transform(x, y, twice, n), doubled,
           lambda: (y, xp.multiply(x, dtype(2))))
    factor = 2.0 if np.dtype(dtype).kind == "f" else 2
    yield (f"transform, fresh lambda {name}", lambda: compute.unary_transform(x, y, lambda v: v * factor, n), doubled,
           lambda: (y, xp.multiply(x, dtype(2))))
    yield (f"reduce PLUS {name}", lambda: compute.reduce_into(x, one, n, OpKind.PLUS, first), sums,
           lambda: (one, x.sum(dtype=dtype).reshape(1)))
    yield (f"reduce, function {name}", lambda: compute.reduce_into(x, one, n, added, first), sums,
           lambda: (one, x.sum(dtype=dtype).reshape(1)))
    yield (f"inclusive_scan PLUS {name}", lambda: compute.inclusive_scan(x, y, OpKind.PLUS, None, n), scanned,
           lambda: (y, xp.cumsum(x, dtype=dtype)))
    yield (f"exclusive_scan PLUS {name}", lambda: compute.exclusive_scan(x, y, OpKind.PLUS, first, n), scanned,
           lambda: (y[1:], xp.cumsum(x, dtype=dtype)[:-1]))
    yield from _segments(xp, n, x, torch, cc)
    yield from _sorts(xp, n, x, torch, cc)
    yield from _kin(xp, n, x, torch)
    if name == "int32":
        yield from _searches(xp, n, torch)


def _kin(xp: Any, n: int, x: Any, torch: Any) -> Iterator[tuple]:
    """What keeps some items in their order: many of them, or few."""
    name, mine, count = x.dtype.name, "cupy" if xp is not np else "numpy", xp.zeros(1, np.int64)
    y, z = xp.empty_like(x), xp.empty(n, np.int32)
    for what, items in (("5 of 11", x), ("1 of 1,000", xp.where(xp.arange(n) % 1000 == 7, 1, -1).astype(x.dtype))):
        kept: dict[str, Callable] = {mine: lambda items=items: items[items > 0]}
        if torch:
            t = torch.as_tensor(items, device="cuda")
            kept["torch"] = lambda t=t: torch.masked_select(t, t > 0)
        yield (f"select of {what} {name}", lambda items=items: compute.select(items, y, count, positive, n), kept,
               lambda items=items: (y[:int(count[0])], items[items > 0]))
    ones = xp.ones(n, np.int32)
    for length in (4, 1000) if name == "int32" else ():
        runs = xp.arange(n, dtype=np.int32) // length
        beside: dict[str, Callable] = {}
        if torch:
            u = torch.as_tensor(runs, device="cuda")
            beside["torch"] = lambda u=u: torch.unique_consecutive(u, return_counts=True)
        yield (f"run_length_encode, runs of {length}", lambda runs=runs: compute.run_length_encode(
            runs, y, z, count, n), beside, lambda runs=runs, length=length: (y[:int(count[0])], runs[::length]))
        yield (f"reduce_by_key, runs of {length}", lambda runs=runs: compute.reduce_by_key(
            runs, ones, y, z, count, OpKind.PLUS, n), {},
               lambda runs=runs, length=length: (y[:int(count[0])], runs[::length]))


def _searches(xp: Any, n: int, torch: Any) -> Iterator[tuple]:
    """Many values in a million items, and a million values in many items."""
    mine, few = "cupy" if xp is not np else "numpy", min(n, 1 << 20)
    rng = xp.random.default_rng(1)
    for items, values in ((few, n), (n, few)):
        data, wanted = (rng.integers(0, 1 << 30, k).astype(np.int32) for k in (items, values))
        data.sort()
        out = xp.empty(values, np.int32)
        for order in ("random", "sorted"):
            if order == "sorted":
                wanted = xp.sort(wanted)
            for bound, side in ((compute.lower_bound, "left"), (compute.upper_bound, "right")):
                beside: dict[str, Callable] = {mine: lambda data=data, wanted=wanted, side=side: xp.searchsorted(
                    data, wanted, side)}
                if torch:
                    d, w = (torch.as_tensor(a, device="cuda") for a in (data, wanted))
                    beside["torch"] = lambda d=d, w=w, side=side: torch.searchsorted(d, w, side=side, out_int32=True)
                yield (f"{bound.__name__} of {values}, {order}",
                       lambda bound=bound, data=data, wanted=wanted, out=out: bound(
                           data, len(data), wanted, len(wanted), out), beside,
                       lambda data=data, wanted=wanted, side=side, out=out: (out, xp.searchsorted(data, wanted, side)))


def _segments(xp: Any, n: int, x: Any, torch: Any, cc: Any) -> Iterator[tuple]:
    """Sums of segments, of one length and of any."""
    first, name = x.dtype.type(0), x.dtype.name
    for mean in (16, 100, 1024):
        many = n // mean
        out, shown = xp.empty(many, x.dtype), x[:many * mean].reshape(many, mean)
        for kind in ("alike", "unequal"):
            offsets = xp.arange(0, n + 1, mean, dtype=np.int32)
            if kind == "unequal":  # between 0 and twice as many items
                offsets[1:-1] += xp.arange(1, many, dtype=np.int32) * 7919 % mean - mean // 2
            others: dict[str, Callable] = {}
            if xp is np:
                others["numpy"] = lambda offsets=offsets: np.add.reduceat(x, offsets[:-1])
            elif kind == "alike":
                others["cupy, rows"] = lambda shown=shown: shown.sum(axis=1)
            if torch and kind == "alike":
                t = torch.as_tensor(shown, device="cuda")
                others["torch, rows"] = lambda t=t: t.sum(1, dtype=t.dtype)
            elif torch and name == "float32":
                t, sizes = (torch.as_tensor(a, device="cuda") for a in (x[:many * mean], xp.diff(offsets)))
                others["torch"] = lambda t=t, sizes=sizes: torch.segment_reduce(t, "sum", lengths=sizes, unsafe=True)
            if cc:
                others["cuda.compute"] = lambda out=out, many=many, offsets=offsets: cc.segmented_reduce(
                    d_in=x, d_out=out, num_segments=many, start_offsets_in=offsets[:-1], end_offsets_in=offsets[1:],
                    op=cc.OpKind.PLUS, h_init=np.array([first]))
            for what, op in (("", OpKind.PLUS), (", function", added)):
                yield (f"segments of {mean}, {kind}{what} {name}",
                       lambda out=out, many=many, offsets=offsets, op=op: compute.segmented_reduce(
                           x, out, many, offsets[:-1], offsets[1:], op, first), others,
                       lambda out=out, offsets=offsets: (out, _sums(xp, x, offsets)))


def _sums(xp: Any, x: Any, offsets: Any) -> Any:
    """Those of segments, of items that are whole numbers."""
    before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(x.astype(np.int64))])
    return (before[offsets[1:]] - before[offsets[:-1]]).astype(x.dtype)


def _sorts(xp: Any, n: int, x: Any, torch: Any, cc: Any) -> Iterator[tuple]:
    """What looks at the order or the number of equal items. Sorts run as CUTILE_COMPUTE says."""
    y, t = xp.empty_like(x), torch.as_tensor(x, device="cuda") if torch else None
    mine, up, name = "cupy" if xp is not np else "numpy", compute.SortOrder.ASCENDING, x.dtype.name
    beside: dict[str, Callable] = {mine: lambda: xp.sort(x)}
    if torch:
        beside["torch"] = lambda: torch.sort(t)
    if cc:
        beside["cuda.compute"] = lambda: cc.radix_sort(d_in_keys=x, d_out_keys=y, d_in_values=None, d_out_values=None,
                                                       num_items=n, order=cc.SortOrder.ASCENDING)
    yield (f"radix_sort {name}", lambda: compute.radix_sort(x, y, None, None, n, up), beside, lambda: (y, xp.sort(x)))
    k, top = 100, xp.empty(100, x.dtype)
    beside = {mine: lambda: xp.sort(xp.partition(x, n - k)[n - k:])[::-1]}
    if torch:
        beside["torch"] = lambda: torch.topk(t, k)
    yield (f"top_k of {k} {name}", lambda: compute.top_k(x, top, None, None, n, k), beside,
           lambda: (top, xp.sort(x)[::-1][:k]))
    kept, many, unused = xp.empty(n, np.int32), xp.zeros(1, np.int64), compute.DiscardIterator()
    for length in (4, 1000) if name == "int32" else ():
        runs = xp.arange(n, dtype=np.int32) // length
        beside = {mine: lambda runs=runs: runs[xp.concatenate([xp.ones(1, bool), runs[1:] != runs[:-1]])]}
        if torch:
            u = torch.as_tensor(runs, device="cuda")
            beside["torch"] = lambda u=u: torch.unique_consecutive(u)
        yield (f"unique_by_key, runs of {length}", lambda runs=runs: compute.unique_by_key(
            runs, compute.ConstantIterator(np.uint8(0)), kept, unused, many, OpKind.EQUAL_TO, n), beside,
               lambda runs=runs, length=length: (kept[:int(many[0])], runs[::length]))
    for bins in (256, 4096) if name == "int32" else ():
        samples, counts = xp.arange(n, dtype=np.int32) * 7 % bins, xp.empty(bins, np.int32)
        beside = {mine: lambda samples=samples, bins=bins: xp.bincount(samples, minlength=bins)}
        if torch:
            s = torch.as_tensor(samples, device="cuda")
            beside["torch"] = lambda s=s, bins=bins: torch.bincount(s, minlength=bins)
        yield (f"histogram_even of {bins} int32", lambda samples=samples, counts=counts, bins=bins:
               compute.histogram_even(samples, counts, bins + 1, np.int32(0), np.int32(bins), n), beside,
               lambda samples=samples, counts=counts, bins=bins: (counts, xp.bincount(samples, minlength=bins)))


def milliseconds(f: Callable, wait: Callable, inner: int) -> float:
    f()
    wait()
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(inner):
            f()
        wait()
        found.append((time.perf_counter() - start) / inner)
    return statistics.median(found) * 1e3


def host_microseconds(f: Callable, wait: Callable, calls: int) -> float:
    found = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            f()
        found.append((time.perf_counter() - start) / calls)
    wait()
    return min(found) * 1e6


def agree(a: Any, b: Any) -> bool:
    a, b = (np.asarray(v.get() if hasattr(v, "get") else v) for v in (a, b))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-3, atol=1e-2 * max(1.0, float(abs(b).max()))))


def fill() -> None:
    """Compile what the rows would run on an H200."""
    from cutile.compilation.prefill import prefill
    from cutile.compute import plans

    class Filled:
        def __init__(self, kernel: Any, grid: tuple, args: tuple, *_: Any):
            prefill(kernel, [args], ["sm_90"])
            self.repeatable, self.values = False, ()

        def run(self, *_: Any) -> None:
            pass

    plans.Repeated, plans.Plan.on_host = Filled, False  # type: ignore[misc,assignment]
    for exponent in (16, 20, 24):
        for dtype in (np.int32, np.float32):
            for name, call, _, _ in rows(np, 1 << exponent, dtype, {}):
                start = time.perf_counter()
                call()
                print(f"{name} 2^{exponent}: {time.perf_counter() - start:.1f} s", flush=True)


def main() -> None:
    others: dict[str, Any] = {}
    for name in ("cupy", "torch", "cuda.compute"):
        try:
            others[name] = importlib.import_module(name)
        except ImportError:
            pass
    cupy = others.get("cupy")
    try:
        on_gpu = cupy is not None and cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # there is no driver
        on_gpu = False
    xp, wait = (cupy, cupy.cuda.Device().synchronize) if on_gpu else (np, lambda: None)
    print("on", cupy.cuda.runtime.getDeviceProperties(0)["name"].decode() if on_gpu else "the host")
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    exponents = [int(a) for a in sys.argv[1:] if a.isdigit()] or ([16, 20, 24, 28] if on_gpu else [16, 20])
    for exponent in exponents:
        for dtype in (np.int32, np.float32):
            for name, call, beside, results in rows(xp, 1 << exponent, dtype, others if on_gpu else {}):
                if only in name:
                    _show(name, exponent, call, beside, results, wait)


def _show(name: str, exponent: int, call: Callable, beside: dict[str, Callable], results: Callable,
          wait: Callable) -> None:
    try:
        call()
        if not agree(*results()):
            print(f"{name} 2^{exponent}: WRONG", flush=True)
            return
        for _ in range(2):  # repeated launches have code made in the background
            call()
            background.wait()
        start = time.perf_counter()
        call()
        wait()
        some = int(MOST / (time.perf_counter() - start))
        inner = max(1, min(200 >> max(exponent - 18, 0), some))
        ours = milliseconds(call, wait, inner)
        found = {n: milliseconds(f, wait, inner) for n, f in beside.items()}
        best = min(found, key=lambda n: found[n], default="no other")
        other, ratio = (f"{found[best]:.4f}", f"{found[best] / ours:.2f}") if found else ("", "")
        host = host_microseconds(call, wait, max(1, min(CALLS, some))) if exponent <= 20 else 0.0
        print(ROW.format(name, f"2^{exponent}", ours, other, best, ratio, host), flush=True)
    except Exception as e:
        print(f"{name} 2^{exponent}: {type(e).__name__}: {str(e)[:300]}", flush=True)


if __name__ == "__main__":
    fill() if sys.argv[1:] == ["--fill"] else main()
