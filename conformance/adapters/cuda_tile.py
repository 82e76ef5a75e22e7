"""The official implementation, as a black box: on a GPU, or compiling ahead of time on a machine without one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.adapter import Adapter
from conformance.adapters import dlpack
from conformance.adapters.assembler import AHEAD_OF_TIME
from conformance.adapters.device import Device, NoArray


class CudaTile(Device):
    """The official implementation on a GPU."""

    name = "cuda.tile"
    module = "cuda.tile"
    package = "cuda-tile"
    features = AHEAD_OF_TIME
    lambdas = False  # 1.7.0 fails on those from outside tile code

    def to_device(self, array: np.ndarray) -> Any:
        """1.7.0 asks the CUDA array interface for the dtype; that has no names for 8-bit floats, so they go by
        DLPack.
        """
        view = super().to_device(array)
        if array.dtype.name not in dlpack.CODES:
            return view
        return dlpack.Exported(view.memory, view.__cuda_array_interface__["data"][0], array, self.memory.device())

    def compile(self, kernel: Any, args: Sequence[Any]) -> None:
        """Export what a launch would compile, because the driver refuses to launch empty grids."""
        compilation = self.ct.compilation
        signature = compilation.KernelSignature.from_kernel_args(
            kernel, self.moved(tuple(args), {}), compilation.CallingConvention.cutile_python_v2())
        compilation.export_kernel(kernel, [signature], io.BytesIO(), output_format="cubin",
                                  gpu_code=self.memory.architecture())


class WithoutGpu(Adapter):
    """Tests that launch, or compile for arguments, are not applicable: it takes arrays in GPU memory only."""

    name = "cuda.tile:export"
    module = "cuda.tile"
    package = "cuda-tile"
    features = AHEAD_OF_TIME
    lambdas = False
    not_applicable = (NoArray,)

    def moved(self, x: Any, done: dict[int, tuple[Any, np.ndarray]]) -> Any:
        raise NoArray("arguments lie in GPU memory, and there is no GPU")
