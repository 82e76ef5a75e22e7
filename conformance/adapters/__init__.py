"""Implementations that the suite knows by name: `--impl cutile:interp`, or any `package.module:Class`."""

from __future__ import annotations

import importlib

from conformance.adapter import Adapter

KNOWN = {
    "cutile:interp": "conformance.adapters.cutile_interp:Interp",
    "cutile:torch": "conformance.adapters.cutile_torch:Torch",
    "cutile:gpu": "conformance.adapters.cutile_gpu:Gpu",
    "cutile:prepared": "conformance.adapters.cutile_gpu:Prepared",
    "cuda.tile": "conformance.adapters.cuda_tile:CudaTile",
    "cuda.tile:export": "conformance.adapters.cuda_tile:WithoutGpu",
    "cutile:acceptance": "conformance.adapters.acceptance:Cutile",
    "cuda.tile:acceptance": "conformance.adapters.acceptance:CudaTile",
}


def load(name: str) -> Adapter:
    """The adapter of a name. For an unknown name SystemExit with the known ones; if a package is missing, with its
    name.
    """
    path = KNOWN.get(name, name)
    module, _, cls = path.partition(":")
    if not cls:
        known = ", ".join(KNOWN)
        raise SystemExit(f"--impl {name}: known are {known}; for another one give package.module:AdapterClass")
    try:
        return getattr(importlib.import_module(module), cls)()
    except ImportError as e:
        raise SystemExit(f"--impl {name}: {e}. Install what it needs, or name another one with --impl") from e
    except AttributeError as e:
        raise SystemExit(f"--impl {name}: {e}") from e
