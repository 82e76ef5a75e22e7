"""Array libraries for the GPU scripts: NumPy arrays moved to PyTorch or CuPy and back, streams, capture of graphs."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

BITS = {1: np.uint8, 2: np.int16}  # for dtypes that NumPy has only from ml_dtypes


class Torch:
    name = "torch"

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
        self.torch = torch

    def to_device(self, a: np.ndarray) -> Any:
        known = getattr(self.torch, a.dtype.name, None)
        if known is None:
            raise TypeError(f"torch has no dtype {a.dtype}")
        a = np.ascontiguousarray(a)
        if a.dtype.isbuiltin == 1:
            return self.torch.from_numpy(a.copy()).cuda()
        return self.torch.from_numpy(a.view(BITS[a.itemsize]).copy()).view(known).cuda()

    def to_host(self, t: Any) -> np.ndarray:
        import ml_dtypes

        t = t.detach().cpu()
        name = str(t.dtype).removeprefix("torch.")
        if hasattr(ml_dtypes, name):
            bits = {1: self.torch.uint8, 2: self.torch.int16}[t.element_size()]
            return t.contiguous().view(bits).numpy().view(getattr(ml_dtypes, name))
        return t.numpy()

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def new_stream(self) -> Any:
        return self.torch.cuda.Stream()

    def current(self) -> Any:
        return self.torch.cuda.current_stream()

    def number(self, stream: Any) -> int:
        return stream.cuda_stream

    @contextlib.contextmanager
    def captured(self, into: list):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            yield self.torch.cuda.current_stream()
        into.append(graph.replay)


class CuPy:
    name = "cupy"

    def __init__(self) -> None:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        self.cupy = cupy

    def to_device(self, a: np.ndarray) -> Any:
        return self.cupy.asarray(a)

    def to_host(self, a: Any) -> np.ndarray:
        return self.cupy.asnumpy(a)

    def synchronize(self) -> None:
        self.cupy.cuda.runtime.deviceSynchronize()

    def new_stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def current(self) -> Any:
        return self.cupy.cuda.get_current_stream()

    def number(self, stream: Any) -> int:
        return stream.ptr

    @contextlib.contextmanager
    def captured(self, into: list):
        stream = self.new_stream()
        with stream:
            stream.begin_capture()
            try:
                yield stream
            finally:
                graph = stream.end_capture()
        into.append(lambda: graph.launch(stream))


def libraries() -> list[Any]:
    """The installed libraries that see a GPU."""
    found = []
    for cls in (Torch, CuPy):
        try:
            found.append(cls())
        except Exception as e:
            print(f"without {cls.name}: {type(e).__name__}: {e}")
    return found
