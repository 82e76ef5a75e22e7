"""What an implementation of the whole API can export on this machine: cubins only with an assembler."""

import importlib.metadata
import shutil


def found() -> bool:
    """Whether there is an assembler, from the pip packages or on the path."""
    try:
        return bool(importlib.metadata.version("nvidia-cuda-tileiras"))
    except importlib.metadata.PackageNotFoundError:
        return shutil.which("tileiras") is not None


AHEAD_OF_TIME = frozenset({"export", "cubins"} if found() else {"export"})
