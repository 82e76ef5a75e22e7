"""What the code of a kernel takes of a multiprocessor, as text."""

from __future__ import annotations

from cutile.gpu.cubin_resources import Resources, blocks_held
from cutile.gpu.target import Target


def lines(taken: Resources, target: Target) -> list[str]:
    """One line a resource."""
    held = blocks_held(taken, target)
    cluster = f" in clusters of {taken.ctas} blocks" if taken.ctas > 1 else ""
    return [f"threads a block          {taken.threads}{cluster}",
            f"registers a thread       {taken.registers}",
            f"stack a thread           {taken.stack} bytes",
            f"shared memory a block    {taken.shared} bytes",
            f"code                     {taken.code} bytes",
            f"blocks a multiprocessor  {held}, which is {held * taken.warps} warps"]
