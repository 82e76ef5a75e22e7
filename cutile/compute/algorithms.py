"""All functions, under the name of `cuda.compute.algorithms`."""

from typing import Any

from cutile import compute

__all__ = [n for n in compute.__all__ if n[0].islower() and n not in (
    "backend", "clear_all_caches", "clear_pch_cache", "deserialize", "gpu_struct", "pch_cache_dir", "serialize")]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(compute, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
