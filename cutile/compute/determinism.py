"""How far results may differ, under the name of `cuda.compute.determinism`."""

from cutile.compute.reduce import Determinism

__all__ = ["Determinism"]
