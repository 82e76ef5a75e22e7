"""cutile's interpreter with the faults of GPUs and compilers, in tests of chosen names."""

import os
import time

from conformance.adapters.cutile_interp import Interp


class Faulty(Interp):
    name = "faulty"
    limit = 6.0
    spoiled = False

    def launch(self, grid, kernel, args):
        test = os.environ["PYTEST_CURRENT_TEST"]
        if "[int8]" in test:
            os._exit(9)
        if "[int16]" in test:
            time.sleep(100)
        if "[int32]" in test:
            self.spoiled = True
        if self.spoiled:
            raise RuntimeError("an illegal memory access was encountered")
        super().launch(grid, kernel, args)

    def lost(self):
        return "the GPU can be used no more" if self.spoiled else None
