"""How fast GPUs are at best, by their makers' data sheets: for rooflines."""

from __future__ import annotations

# Bytes a second from memory; operations a second of products of matrices (without sparsity) and of all else.
_FP32, _FP64 = "other float32", "other float64"
_NARROW = ("float16", "bfloat16")
_EIGHT = ("float8_e4m3fn", "float8_e5m2")


def _gpu(name: str, bandwidth: float, fp32: float, fp64: float, tf32: float, fp16: float, eight: float | None,
         int8: float, matrix_fp64: float) -> dict:
    peaks = {_FP32: fp32, _FP64: fp64, "matrix float32": fp32, "matrix tfloat32": tf32, "matrix float64": matrix_fp64,
             **{f"matrix {d}": fp16 for d in _NARROW}, "matrix int8": int8, "matrix uint8": int8}
    peaks |= {f"matrix {d}": eight for d in _EIGHT if eight}
    return {"name": name, "bandwidth": bandwidth, "peaks": peaks, "other": fp32}


T = 1e12
GPUS = [
    _gpu("H200", 4.8 * T, 67 * T, 34 * T, 494 * T, 989 * T, 1979 * T, 1979 * T, 67 * T),
    _gpu("H100 SXM", 3.35 * T, 67 * T, 34 * T, 494 * T, 989 * T, 1979 * T, 1979 * T, 67 * T),
    _gpu("A100 80GB SXM", 2.039 * T, 19.5 * T, 9.7 * T, 156 * T, 312 * T, None, 624 * T, 19.5 * T),
    _gpu("RTX 4090", 1.008 * T, 82.6 * T, 1.29 * T, 82.6 * T, 165.2 * T, 330.3 * T, 660.6 * T, 1.29 * T),
]
_NAMES = {"NVIDIA H200": "H200", "NVIDIA H100 80GB HBM3": "H100 SXM", "NVIDIA A100-SXM4-80GB": "A100 80GB SXM",
          "NVIDIA GeForce RTX 4090": "RTX 4090"}  # as the driver calls them


def of_name(name: str) -> dict | None:
    """The figures of a GPU that the driver calls so; None for one that is not listed, such as a part of a GPU."""
    return next((g for g in GPUS if g["name"] == _NAMES.get(name)), None)


def peak(gpu: dict, work: str) -> float | None:
    """Operations a second of a GPU at a kind of work such as "matrix float16"; None where the data sheet has none."""
    return gpu["peaks"].get(work, None if work.startswith("matrix") else gpu["other"])
