"""cutile's interpreter, on NumPy arrays. Compiling ahead of time is the same wherever kernels run."""

from conformance.adapter import Adapter
from conformance.adapters.assembler import AHEAD_OF_TIME


class Interp(Adapter):
    """cutile's interpreter."""

    name = "cutile:interp"
    module = "cutile"
    features = AHEAD_OF_TIME | {"cpu arrays", "float4 arrays", "measured", "safe memory", "negative strides", "overlap",
                                "assertion errors"}
