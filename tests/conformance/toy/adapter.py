"""The conformance suite's adapter of the toy."""

import copy

from conformance.adapter import Adapter


class Toy(Adapter):
    name = "toy"
    module = "tests.conformance.toy.toytile"
    features = frozenset({"cpu arrays", "negative strides"})

    def compile(self, kernel, args) -> None:
        """The toy has no compiler: it refuses a kernel when a block runs."""
        self.launch((1,), kernel, copy.deepcopy(args))
