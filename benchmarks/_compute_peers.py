"""What `compute_peers.py` compares: each algorithm as one call that any package with the surface of cuda.compute takes.

A row is a function of the number of items and their dtype. It gives a call, which gets the package; the outputs by
which results are compared; calls of CuPy and PyTorch that do the same; and the bars.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy as cp
import numpy as np
import torch

SEGMENT, BINS, SEARCHED = 1000, 256, 1 << 22


class Row(NamedTuple):
    """name     of the function in both packages
    arguments   of it, which the package gives (its enums and iterators), by name
    outputs     what is compared: numbers of the outputs, at most the first `size(package's outputs)` of each
    others      calls of other libraries by name
    bar         at 2^28 of the best, or of cuda.compute where that is `of`
    """

    name: str
    arguments: Callable[[Any], dict[str, Any]]
    outputs: Callable[[], list]
    others: dict[str, Callable]
    bar: float
    of: str = "best"
    sorts: bool = False


def twice(v):
    return v * 2


def added(a, b):
    return a + b


def positive(v):
    return v > 0


def negative(v):
    return v < 0


def both(pair):
    return pair[0] + pair[1]


def items(n: int, dtype: Any) -> Any:
    """Whole numbers from −5 to 5, without order."""
    below_11 = cp.arange(n, dtype=np.uint32) * np.uint32(2654435761) % np.uint32(11)
    return below_11.astype(dtype) - np.dtype(dtype).type(5)


def keys(n: int, dtype: Any) -> Any:
    """Numbers over the whole range of their dtype."""
    bits = cp.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    if np.dtype(dtype).kind == "f":
        return (bits >> np.uint64(40)).astype(dtype)
    return (bits >> np.uint64(64 - 8 * np.dtype(dtype).itemsize)).astype(dtype)


def tensor(x: Any) -> Any:
    return torch.as_tensor(x, device="cuda")


def transform(n: int, dtype: Any) -> Row:
    x, y, z = items(n, dtype), cp.empty(n, dtype), cp.empty(n, dtype)
    t, u, two = tensor(x), tensor(z), np.array(2, dtype)[()]
    return Row("unary_transform", lambda m: {"d_in": x, "d_out": y, "op": twice, "num_items": n}, lambda: [y],
               {"cupy": lambda: cp.multiply(x, two, z), "torch": lambda: torch.mul(t, 2, out=u)}, 0.97)


def transform_pairs(n: int, dtype: Any) -> Row:
    a, b, y, z = items(n, dtype), items(n, dtype), cp.empty(n, dtype), cp.empty(n, dtype)
    t, s, u = tensor(a), tensor(b), tensor(z)
    return Row("unary_transform", lambda m: {"d_in": m.ZipIterator(a, b), "d_out": y, "op": both, "num_items": n},
               lambda: [y], {"cupy": lambda: cp.add(a, b, z), "torch": lambda: torch.add(t, s, out=u)}, 0.97)


def reduce(n: int, dtype: Any, function: bool = False) -> Row:
    x, y, h = items(n, dtype), cp.empty(1, dtype), np.zeros(1, dtype)
    t = tensor(x)
    return Row("reduce_into", lambda m: {"d_in": x, "d_out": y, "num_items": n,
                                         "op": added if function else m.OpKind.PLUS, "h_init": h}, lambda: [y],
               {"cupy": lambda: x.sum(dtype=dtype), "torch": lambda: t.sum(dtype=t.dtype)}, 0.97)


def reduce_function(n: int, dtype: Any) -> Row:
    return reduce(n, dtype, True)


def scan(n: int, dtype: Any) -> Row:
    x, y, z = items(n, dtype), cp.empty(n, dtype), cp.empty(n, dtype)
    t, u, h = tensor(x), tensor(z), np.zeros(1, dtype)
    return Row("inclusive_scan", lambda m: {"d_in": x, "d_out": y, "op": m.OpKind.PLUS, "init_value": h,
                                            "num_items": n}, lambda: [y],
               {"torch": lambda: torch.cumsum(t, 0, dtype=t.dtype, out=u)}, 0.9)


def scan_before(n: int, dtype: Any) -> Row:
    x, y, h = items(n, dtype), cp.empty(n, dtype), np.zeros(1, dtype)
    return Row("exclusive_scan", lambda m: {"d_in": x, "d_out": y, "op": m.OpKind.PLUS, "init_value": h,
                                            "num_items": n}, lambda: [y], {}, 0.9)


def select(n: int, dtype: Any) -> Row:
    x, y, many = items(n, dtype), cp.empty(n, dtype), cp.zeros(1, np.int64)
    t = tensor(x)
    return Row("select", lambda m: {"d_in": x, "d_out": y, "d_num_selected_out": many, "cond": positive,
                                    "num_items": n}, lambda: [many, y[:int(many[0])]],
               {"torch": lambda: torch.masked_select(t, t > 0)}, 1.0)


def partition(n: int, dtype: Any) -> Row:
    x, many = items(n, dtype), cp.zeros(2, np.int64)
    parts = [cp.empty(n, dtype) for _ in range(3)]

    def outputs() -> list:
        a, b = (int(v) for v in many)
        return [many, parts[0][:a], parts[1][:b], parts[2][:n - a - b]]

    return Row("three_way_partition", lambda m: {
        "d_in": x, "d_first_part_out": parts[0], "d_second_part_out": parts[1], "d_unselected_out": parts[2],
        "d_num_selected_out": many, "select_first_part_op": positive, "select_second_part_op": negative,
        "num_items": n}, outputs, {}, 1.0)


def unique(n: int, dtype: Any) -> Row:
    k = (cp.arange(n, dtype=np.int64) // 3).astype(dtype)
    v, out, values, many = items(n, dtype), cp.empty(n, dtype), cp.empty(n, dtype), cp.zeros(1, np.int64)
    return Row("unique_by_key", lambda m: {
        "d_in_keys": k, "d_in_items": v, "d_out_keys": out, "d_out_items": values, "d_out_num_selected": many,
        "op": m.OpKind.EQUAL_TO, "num_items": n}, lambda: [many, out[:int(many[0])], values[:int(many[0])]], {}, 1.0)


def segments(n: int, dtype: Any) -> Row:
    x, many, h = items(n, dtype), n // SEGMENT, np.zeros(1, dtype)
    y, bounds = cp.empty(many, dtype), cp.arange(many + 1, dtype=np.int32) * SEGMENT
    shown = tensor(x[:many * SEGMENT].reshape(many, SEGMENT))
    starts, ends = bounds[:-1], bounds[1:]
    return Row("segmented_reduce", lambda m: {
        "d_in": x, "d_out": y, "num_segments": many, "start_offsets_in": starts, "end_offsets_in": ends,
        "op": m.OpKind.PLUS, "h_init": h}, lambda: [y], {"torch, rows": lambda: shown.sum(1, dtype=shown.dtype)}, 0.9)


def uneven(n: int, dtype: Any) -> Row:
    """Segments of 200 items on average, of which the longest has a thousand times as many."""
    x, h = items(n, dtype), np.zeros(1, dtype)
    part = cp.maximum(cp.arange(n // 300, dtype=np.uint32) * np.uint32(2654435761) / 2**32, 1e-5)
    bounds = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum((part ** -0.7 * 60).astype(np.int64))])
    bounds = bounds[bounds <= n].astype(np.int32)
    starts, ends, many = bounds[:-1].copy(), bounds[1:].copy(), len(bounds) - 1
    y = cp.empty(many, dtype)
    return Row("segmented_reduce", lambda m: {
        "d_in": x, "d_out": y, "num_segments": many, "start_offsets_in": starts, "end_offsets_in": ends,
        "op": m.OpKind.PLUS, "h_init": h}, lambda: [y], {}, 0.9)


def search(n: int, dtype: Any) -> Row:
    x, many = cp.sort(keys(n, dtype)), min(n, SEARCHED)
    v, y = keys(many, dtype), cp.empty(many, np.uint64)
    t, s = tensor(x), tensor(v)
    return Row("lower_bound", lambda m: {"d_data": x, "num_items": n, "d_values": v, "num_values": many, "d_out": y},
               lambda: [y], {"torch": lambda: torch.searchsorted(t, s)}, 0.97)


def histogram(n: int, dtype: Any) -> Row:
    x = (cp.arange(n, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)).astype(dtype)
    bins = 128 if dtype == np.int8 else BINS
    x, y, t = x % np.dtype(dtype).type(bins - 1), cp.zeros(bins, np.int32), None
    others: dict[str, Callable] = {}
    if np.dtype(dtype).kind == "i":
        t = tensor(x)
        others["torch"] = lambda: torch.bincount(t, minlength=bins)
    low, high = (np.array(v, dtype)[()] for v in (0, min(bins, 127) if dtype == np.int8 else bins))
    return Row("histogram_even", lambda m: {
        "d_samples": x, "d_histogram": y, "num_output_levels": int(high) + 1, "lower_level": low,
        "upper_level": high, "num_samples": n}, lambda: [y], others, 0.25, "cuda.compute")


def radix(n: int, dtype: Any) -> Row:
    x, y = keys(n, dtype), cp.empty(n, dtype)
    t = tensor(x)
    return Row("radix_sort", lambda m: {
        "d_in_keys": x, "d_out_keys": y, "d_in_values": None, "d_out_values": None, "num_items": n,
        "order": m.SortOrder.ASCENDING}, lambda: [y], {"torch": lambda: torch.sort(t)}, 0.15, "best", True)


def radix_pairs(n: int, dtype: Any) -> Row:
    x, y, v, w = keys(n, dtype), cp.empty(n, dtype), cp.arange(n, dtype=np.int32), cp.empty(n, np.int32)
    return Row("radix_sort", lambda m: {
        "d_in_keys": x, "d_out_keys": y, "d_in_values": v, "d_out_values": w, "num_items": n,
        "order": m.SortOrder.ASCENDING}, lambda: [y, w], {}, 0.15, "best", True)


def merge(n: int, dtype: Any) -> Row:
    x, y = keys(n, dtype), cp.empty(n, dtype)
    t = tensor(x)
    return Row("merge_sort", lambda m: {
        "d_in_keys": x, "d_in_values": None, "d_out_keys": y, "d_out_values": None, "num_items": n,
        "op": m.OpKind.LESS}, lambda: [y], {"torch": lambda: torch.sort(t)}, 0.5, "best", True)


def merge_pairs(n: int, dtype: Any) -> Row:
    x, y, v, w = keys(n, dtype), cp.empty(n, dtype), cp.arange(n, dtype=np.int32), cp.empty(n, np.int32)
    return Row("merge_sort", lambda m: {
        "d_in_keys": x, "d_in_values": v, "d_out_keys": y, "d_out_values": w, "num_items": n,
        "op": m.OpKind.LESS}, lambda: [y, w], {}, 0.5, "best", True)


def segmented_sort(n: int, dtype: Any) -> Row:
    x, y, many = keys(n, dtype), cp.zeros(n, dtype), n // SEGMENT
    bounds = cp.arange(many + 1, dtype=np.int32) * SEGMENT
    starts, ends = bounds[:-1], bounds[1:]
    shown = tensor(x[:many * SEGMENT].reshape(many, SEGMENT))
    return Row("segmented_sort", lambda m: {
        "d_in_keys": x, "d_out_keys": y, "d_in_values": None, "d_out_values": None, "num_items": n,
        "num_segments": many, "start_offsets_in": starts, "end_offsets_in": ends,
        "order": m.SortOrder.ASCENDING}, lambda: [y[:many * SEGMENT]],
               {"torch, rows": lambda: torch.sort(shown, 1)}, 0.4, "best", True)


ROWS = {f.__name__: f for f in (transform, transform_pairs, reduce, reduce_function, scan, scan_before, select,
                                partition, unique, segments, uneven, search, histogram, radix, radix_pairs, merge,
                                merge_pairs, segmented_sort)}
