"""What operators of PyTorch cost beside launches: python benchmarks/operator_calls.py (with PyTorch and a GPU)

Two tables, of medians of rounds in which all ways take turns.

    host    microseconds that a call costs the host, for 1, 3 and 8 input tensors of 16 elements: `ct.launch` into an
            output that stays, and `empty` with `ct.launch`; the operator with `out=`, allocating, and in PyTorch's
            dispatcher, which calls take where a gradient or a mode needs it
    GPU     microseconds from kernel to kernel of about 20 us each, where the host waits for nothing, and what that is
            of `empty` and `ct.launch` outside of graphs: one kernel a call, eight after each other in a call, and the
            eight in a CUDA graph, for launches, functions by `ct.jit` and operators that torch.compile compiles. The
            row of PyTorch is its own addition, compiled
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from function_calls import of_1, of_3, of_8

import cutile as ct
import cutile.torch

ROUNDS, CALLS = 15, 200  # calls of a round stay below the length of the driver's queue
TILE, ITEMS = 1024, 2**23  # two float32 tensors read and one written, 100 MB: about 23 us of an H200
REPEATED = 8
HOST = "{:>6}  {:>9} {:>9}  {:>9} {:>9} {:>11}   {:>8} {:>8}"


@ct.kernel
def added(a: ct.Array["N"], b: ct.Array["N"], y):
    ct.store(y, ct.bid(0), ct.load(a, ct.bid(0), TILE) + ct.load(b, ct.bid(0), TILE))


def microseconds(ways: dict[str, Callable[[], Any]], *, until_done: bool = False) -> dict[str, float]:
    """The median time of a call of each, which take turns: what the host takes, or until the GPU is done with all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            way()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                way()
            if until_done:
                torch.cuda.synchronize()
            times[name].append((time.perf_counter() - start) / CALLS * 1e6)
            torch.cuda.synchronize()
    return {name: statistics.median(t) for name, t in times.items()}


def _host_ways(kernel: Any, operator: Callable, dispatched: Callable, xs: tuple[torch.Tensor, ...], y: torch.Tensor,
               stream: Any) -> dict[str, Callable[[], Any]]:
    def allocated() -> None:
        ct.launch(stream, (1,), kernel, (*xs, torch.empty(16, device="cuda")))

    return {"launch": lambda: ct.launch(stream, (1,), kernel, (*xs, y)), "+ empty": allocated,
            "out": lambda: operator(*xs, out=y), "allocates": lambda: operator(*xs),
            "dispatched": lambda: dispatched(*xs)}


def host_table() -> None:
    print(HOST.format("inputs", "launch", "+ empty", "out=", "allocates", "dispatched", "out=", "alloc."))
    for kernel, count in ((of_1, 1), (of_3, 3), (of_8, 8)):
        operator = cutile.torch.op(f"benchmark::of_{count}", ct.jit(kernel, grid=(1,), out=ct.Out("N")))
        dispatched = getattr(torch.ops.benchmark, f"of_{count}")
        xs = tuple(torch.arange(16., device="cuda") for _ in range(count))
        y = torch.empty_like(xs[0])
        assert torch.equal(operator(*xs), xs[0]) and operator(*xs, out=y) is y and torch.equal(dispatched(*xs), y)

        us = microseconds(_host_ways(kernel, operator, dispatched, xs, y, torch.cuda.current_stream()))
        print(HOST.format(count, *(f"{t:.2f}" for t in us.values()), f"{us['out'] - us['launch']:+.2f}",
                          f"{us['allocates'] - us['+ empty']:+.2f}"), flush=True)


def gpu_table() -> None:
    print(f"{'':20} {'one':>14} {'eight':>14} {'eight in a graph':>16}")
    function = ct.jit(added, grid=f"cdiv(N, {TILE})", out=ct.Out("N"))
    operator = cutile.torch.op("benchmark::added", ct.jit(added, grid=f"cdiv(N, {TILE})", out=ct.Out("N")))
    grid = (ITEMS // TILE,)

    def launch(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(a)
        ct.launch(None, grid, added, (a, b, y))
        return y

    a, b = torch.rand(2, ITEMS, device="cuda")
    for t in (a, b):
        torch._dynamo.mark_static_address(t)  # otherwise CUDA graphs copy them
    ways: dict[str, Callable] = {"ct.launch": launch}
    for name, way in (("PyTorch", torch.add), ("ct.launch", launch), ("ct.jit", function), ("operator", operator)):
        ways[f"{name}|1"] = torch.compile(_repeated(way, 1), fullgraph=True)
        ways[f"{name}|{REPEATED}"] = torch.compile(_repeated(way, REPEATED), fullgraph=True)
        ways[f"{name}|graph"] = torch.compile(_repeated(way, REPEATED), fullgraph=True, mode="reduce-overhead")
    for name, way in ways.items():
        right = torch.add if name == "ct.launch" or name.endswith("|1") else _repeated(torch.add, REPEATED)
        for _ in range(4):  # a CUDA graph is recorded at the second call or later
            a += 1
            assert torch.equal(way(a, b), right(a, b)), name
    us = microseconds({name: lambda way=way: way(a, b) for name, way in ways.items()}, until_done=True)
    eager = us.pop("ct.launch")
    print(f"{'ct.launch, eager':20} {eager:7.2f}")
    for name in ("PyTorch", "ct.launch", "ct.jit", "operator"):
        each = [us[f"{name}|1"], us[f"{name}|{REPEATED}"] / REPEATED, us[f"{name}|graph"] / REPEATED]
        print(f"{name + ', compiled':20} " + " ".join(f"{t:7.2f} {t / eager:6.3f}" for t in each))


def _repeated(way: Callable, count: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The kernel again and again, on its own result."""
    def call(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            a = way(a, b)
        return a

    call.__code__ = call.__code__.replace()  # torch.compile keeps what it compiled by code, and tries one after another
    return call


if __name__ == "__main__":
    print("torch", torch.__version__, torch.cuda.get_device_name())
    host_table()
    print()
    gpu_table()
