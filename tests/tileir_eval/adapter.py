"""The bytecode of cutile's kernels, run by the evaluator: `--impl tests.tileir_eval.adapter:TileIR`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.adapter import Adapter
from tests.tileir_eval.disassembled import check
from tests.tileir_eval.kernels import instead_of_interpreter


class TileIR(Adapter):
    name = "cutile:tileir"
    module = "cutile"
    features = frozenset({"cpu arrays", "export", "float4 arrays", "measured", "overlap", "assertion errors"})
    options: dict[str, Any] = {}  # of run() in kernels.py

    def __init__(self) -> None:
        super().__init__()
        self.not_applicable = (type("NotInTileIR", (self.ct.TileUnsupportedFeatureError,), {}),)

    def launch(self, grid: tuple[int, ...], kernel: Any, args: Sequence[Any]) -> None:
        with instead_of_interpreter(**self.options) as ran:
            try:
                super().launch(grid, kernel, args)
            except self.ct.TileUnsupportedFeatureError as e:  # of an export it is an answer
                e.__class__ = self.not_applicable[0]
                raise
        assert ran or 0 in grid, "the launch went past the evaluator"


class Ordered(TileIR):
    """Also checks that tokens order the accesses of a block that meet in memory."""

    name = "cutile:tileir, ordered"
    # The bytecode promises that overlapping arguments do not overlap, so nothing orders their accesses.
    features = TileIR.features - {"overlap"}
    options = {"ordered": True}


class Unchecked(TileIR):
    """Where a launch may run the program without checks of bounds, that runs: a promise that breaks is an error."""

    name = "cutile:tileir, unchecked"
    options = {"unchecked": True}


class Disassembled(Ordered):
    """Also checks that NVIDIA's disassembler reads each kernel as our reader does, exported ones too. Reductions begin
    with identities.
    """

    name = "cutile:tileir, disassembled"
    options = {**Ordered.options, "disassembled": True, "identities": True}

    def exported(self, code: bytes) -> None:
        check(code)


class Oldest(Disassembled):
    """In the oldest bytecode that every target takes, which lacks some operations."""

    name = "cutile:tileir, 13.3"
    options = {**Disassembled.options, "version": "13.3"}
