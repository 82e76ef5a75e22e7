"""Lowering of the choice between two tiles."""

from __future__ import annotations

from cutile.gpu.tileir.rules._regular import elementwise
from cutile.gpu.tileir.rules._rule import rule
from cutile.ops import select

rule(select.where)(elementwise)
