"""cutile's GPU back end."""

from conformance.adapters.assembler import AHEAD_OF_TIME
from conformance.adapters.device import Device


class Gpu(Device):
    """cutile on a GPU."""

    name = "cutile:gpu"
    module = "cutile"
    features = AHEAD_OF_TIME | {"negative strides"}
