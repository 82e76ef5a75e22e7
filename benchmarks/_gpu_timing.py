"""Medians of CUDA event times, in which several sides take turns and the cache is emptied before each launch.

The times are those of the GPU. It is kept busy until the host has queued the call: else a side whose call takes the
host long, as one of torch.compile does, would seem slow.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

FLUSHED = 256 * 2**20  # bytes, several times the L2 cache
FLUSHES = 16  # about a millisecond on an H200, longer than the host takes for a call


def scratch() -> torch.Tensor:
    """What `medians` overwrites to empty the cache."""
    return torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")


def medians(calls: dict[str, Callable[[], object]], flushed: torch.Tensor) -> dict[str, float]:
    """Milliseconds of each call, by name; short calls take more turns than long ones."""
    for call in calls.values():
        _once(call, flushed)
    slowest = max(_once(call, flushed) for call in calls.values())
    turns = max(15, min(60, round(150 / slowest)))
    found: dict[str, list[float]] = {side: [] for side in calls}
    for _ in range(turns):
        for side, call in calls.items():
            found[side].append(_once(call, flushed))
    return {side: statistics.median(times) for side, times in found.items()}


def _once(call: Callable[[], object], flushed: torch.Tensor) -> float:
    for _ in range(FLUSHES):
        flushed.zero_()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)
