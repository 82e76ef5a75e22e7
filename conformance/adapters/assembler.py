"""What an implementation of the whole API can export on this machine."""

import importlib.metadata
import shutil


def found() -> bool:
    """Whether there is an assembler: that of the pip packages, or one on the path."""
    try:
        return bool(importlib.metadata.version("nvidia-cuda-tileiras"))
    except importlib.metadata.PackageNotFoundError:
        return shutil.which("tileiras") is not None


AHEAD_OF_TIME = frozenset({"export", "cubins"} if found() else {"export"})
