"""The official implementation, as a black box."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.adapters import dlpack
from conformance.adapters.device import Device


class CudaTile(Device):
    name = "cuda.tile"
    module = "cuda.tile"
    package = "cuda-tile"
    lambdas = False  # 1.7.0 fails on those from outside tile code

    def to_device(self, array: np.ndarray) -> Any:
        """1.7.0 asks the CUDA array interface for the dtype, and that has no names for 8-bit floats; DLPack has."""
        view = super().to_device(array)
        if array.dtype.name not in dlpack.CODES:
            return view
        return dlpack.Exported(view.memory, view.__cuda_array_interface__["data"][0], array, self.memory.device())

    def compile(self, kernel: Any, args: Sequence[Any]) -> None:
        """Export what a launch would compile: the driver refuses to launch empty grids."""
        compilation = self.ct.compilation
        signature = compilation.KernelSignature.from_kernel_args(
            kernel, self.moved(tuple(args), {}), compilation.CallingConvention.cutile_python_v2())
        compilation.export_kernel(kernel, [signature], io.BytesIO(), output_format="cubin",
                                  gpu_code=self.memory.architecture())
