"""Compile a share of the configurations of benchmarks/tensorcore.py with `cuda.tile`, into its cache on disk.

    python benchmarks/_tensorcore_fill.py FOLDER SHARE OF FIRST ROW ...

`cuda.tile` compiles one kernel at a time in a process, so tensorcore.py starts OF such processes, whose SHAREs are 0 to
OF - 1, and then finds all code in the cache. Kernels are compiled by launching them, on arrays that nobody filled.
FIRST is as for tensorcore.py; 0 stands for all. FOLDER is where tensorcore.py has its kernels for `cuda.tile`: to the
cache, code of other files is other code. Where the cache is, `CUDA_TILE_CACHE_DIR` says. What fails here fails again
while it is tuned, and is reported then.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from _tensorcore_cases import cases
from _tensorcore_libraries import Arrays
from tensorcore import Side


class Unfilled(Arrays):
    """Arrays of any contents: random numbers would take time and memory in each process."""

    def __call__(self, dtype: str, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")


def main(folder: str, share: int, of: int, first: int, names: list[str]) -> None:
    stream, new, position = torch.cuda.current_stream(), Unfilled(), 0
    side = Side("official", "cuda.tile", Path(folder))
    for name in names:
        case = cases()[name](new).searching(first or None)
        for configuration in case.configurations():
            if position % of == share:
                side.compile(configuration, stream)
            position += 1


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5:])
