"""cutile's interpreter, on NumPy arrays."""

from conformance.adapter import Adapter


class Interp(Adapter):
    name = "cutile:interp"
    module = "cutile"
    features = frozenset({"cpu arrays", "float4 arrays", "measured", "safe memory", "negative strides", "overlap",
                          "assertion errors"})
