"""cutile's interpreter, on CPU tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.adapters.cutile_interp import Interp

# Bits that NumPy and torch both know, for dtypes that only one of them knows by name.
BITS = {1: np.uint8, 2: np.int16}


class Torch(Interp):
    """The interpreter on tensors."""

    name = "cutile:torch"
    features = Interp.features - {"negative strides", "float4 arrays"}

    def __init__(self) -> None:
        super().__init__()
        import torch

        self.torch = torch

    def to_device(self, array: np.ndarray) -> Any:
        """A tensor on the array's memory; the array itself where torch has no such dtype, strides or flags."""
        known = getattr(self.torch, array.dtype.name, None)
        if known is None or not array.flags.writeable or any(s < 0 or s % array.itemsize for s in array.strides):
            return array
        if array.dtype.kind == "V" or not array.dtype.isbuiltin == 1:
            return self.torch.from_numpy(array.view(BITS[array.itemsize])).view(known)
        return self.torch.from_numpy(array)
