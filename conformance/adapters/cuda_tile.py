"""The official implementation, as a black box."""

from conformance.adapters.device import Device


class CudaTile(Device):
    name = "cuda.tile"
    module = "cuda.tile"
