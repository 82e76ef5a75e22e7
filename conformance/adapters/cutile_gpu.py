"""cutile's GPU back end."""

from conformance.adapters.device import Device


class Gpu(Device):
    name = "cutile:gpu"
    module = "cutile"
    features = frozenset({"negative strides"})
