"""What a trace found, as plain data in the form of form.py."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cutile._support.notebook import cell_name
from cutile.analysis.gpus import GPUS
from cutile.errors import TileSanitizerError
from cutile.interp.profile.report import operations
from cutile.interp.traces.elements import Numbering
from cutile.ir.nodes import Frame, Kernel
from cutile.ir.walk import walk
from cutile.ops._op import READ, WRITE
from cutile.pictures.cells import Cells
from cutile.pictures.form import VERSION
from cutile.pictures.record import AccessTotals, Recorder, item_bytes
from cutile.pictures.trace import Trace
from cutile.spans import Span, lines_of
from cutile.types import PaddingMode

CELLS, ARRAY_CELLS = 1 << 17, 4096  # most cells of all arrays together, and of one
STEPS_SIZE = 1_500_000  # characters of the steps of all blocks together, which keeps a page small


def data(t: Trace) -> dict[str, Any]:
    """The data about a launch."""
    r = t.recorder
    arrays = r.arrays or Numbering([], [])
    sources = _Sources(t.program)
    found = [_finding(f, r, arrays) for f in t.findings]
    accesses = [_access(a, r) for a in r.accesses.values()]
    lines, shown = _lines(r), _arrays(r, arrays) if r.arrays else []
    return {
        "format": "cutile view", "version": VERSION, "kernel": t.program.name, "grid": list(t.grid),
        "error": None if t.error is None else f"{type(t.error).__name__}: {t.error.message}",
        "arrays": shown, "accesses": accesses, "lines": lines, "totals": _totals(lines, shown), "gpus": GPUS,
        "blocks": _blocks(r), "cells": _cells(r) if r.arrays else None, "findings": found,
        "places": [_place(span, r, sources) for span in list(r.places.values())],
        "sources": sources.listed,
    }


# ------------------------------------------------------------------ the source


class _Sources:
    """The functions of a kernel, each with its text."""

    def __init__(self, kernel: Kernel):
        self.listed: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._of: dict[Span, int] = {}
        self.kernel = self._add(kernel.name, kernel.span)
        for n in walk(kernel.body):
            if isinstance(n, Frame):
                self._of[n.span] = self._add(n.function, n.def_span)

    def _add(self, function: str, definition: Span) -> int:
        key = str(definition.filename), definition.line
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            lines = inspect.getblock(list(lines_of(definition.filename)[definition.line - 1:]))
            self.listed.append({"file": cell_name(key[0]) or key[0], "function": function, "first": definition.line,
                                "lines": [line.rstrip("\n") for line in lines]})
        return self._numbers[key]

    def of(self, span: Span) -> int:
        """Which function a place is in."""
        return self.kernel if span.call_site is None else self._of.get(span.call_site, self.kernel)


def _place(span: Span, r: Recorder, sources: _Sources) -> dict[str, Any]:
    return {"source": sources.of(span), "line": span.line, "caller": span.call_site and r.place(span.call_site)}


# ------------------------------------------------------------------ arrays and accesses


def _arrays(r: Recorder, arrays: Numbering) -> list[dict[str, Any]]:
    out, most = [], min(ARRAY_CELLS, CELLS // (2 * max(1, len(arrays.names))))
    for i, (name, buffer) in enumerate(zip(arrays.names, arrays.buffers, strict=True)):
        part, shape = slice(arrays.first[i], arrays.first[i + 1]), buffer.array.shape
        reads, writes = (x[part].reshape(shape) for x in (r.reads, r.writes))
        out.append({"name": name, "dtype": buffer.dtype.name, "shape": list(shape),
                    "bytes": buffer.array.size * buffer.dtype.bitwidth // 8,
                    "reads": _counted(reads, most), "writes": _counted(writes, most),
                    "touched": {"read": int(np.count_nonzero(reads)), "written": int(np.count_nonzero(writes))}})
    return out


def _counted(x: np.ndarray, most: int) -> dict[str, Any]:
    cells = Cells(x.shape, max(1, most))
    return {"cell": list(cells.cell), "counts": list(cells.counts),
            "mean": [round(v, 3) if v % 1 else int(v) for v in cells.mean(x).reshape(-1).tolist()],
            "least": int(x.min(initial=x.flat[0] if x.size else 0)), "most": int(x.max(initial=0)),
            "total": int(x.sum())}


def _access(total: AccessTotals, r: Recorder) -> dict[str, Any]:
    a = total.access
    padding = a.padding.name if isinstance(a.padding, PaddingMode) else None if a.padding is None else "value"
    return {"at": r.place(a.op.span), "call": a.op.op.spelling, "effect": a.effect, "unit": a.unit,
            "shape": list(a.shape), "arrays": sorted(total.arrays), "padding": padding, "masked": a.mask is not None,
            "calls": [f"{s.line}: {_text(s)}" for s in a.op.span.frames()[:-1]], "check_bounds": a.check_bounds,
            "memory_order": a.memory_order.name, "memory_scope": a.memory_scope.name,
            "runs": total.runs, "elements": total.elements, "masked out": total.masked, "outside": total.outside,
            "bytes": int(total.elements * item_bytes(a))}


def _text(span: Span) -> str:
    """A piece of the source, of its first line."""
    return span.source_line()[span.col:span.end_col if span.end_line == span.line else None].strip()


# ------------------------------------------------------------------ costs


def _lines(r: Recorder) -> list[dict[str, Any]]:
    places = {tuple((s.function, str(s.filename), s.line) for s in span.frames()): number
              for number, span in enumerate(r.places.values())}
    return [{"at": places[line], "runs": cost.times, "bytes read": cost.bytes_read,
             "bytes written": cost.bytes_written, "operations": operations(cost)}
            for line, cost in r.lines.lines.items()]


def _totals(lines: Sequence[dict], arrays: Sequence[dict]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for line in lines:
        total.update(line["operations"])
    read, written = (sum(line[f"bytes {what}"] for line in lines) for what in ("read", "written"))
    touched = sum((a["touched"]["read"] + a["touched"]["written"]) * a["bytes"] // max(_size(a), 1) for a in arrays)
    count = sum(total.values())
    return {"bytes read": read, "bytes written": written, "touched bytes": touched, "operations": dict(total),
            "intensity": count / (read + written) if read + written else None,
            "intensity of touched bytes": count / touched if touched else None}


def _size(array: dict) -> int:
    return int(np.prod(array["shape"]))


# ------------------------------------------------------------------ blocks


def _blocks(r: Recorder) -> list[dict[str, Any]]:
    """The blocks with their steps, as far as there is room: those that were asked for first come first."""
    out, room = [], STEPS_SIZE
    for block, steps in r.steps.items():
        kept = []
        for step in steps:
            room -= len(json.dumps(step))
            if room < 0:
                break
            kept.append(step)
        if not kept:
            continue
        hulls = {effect: [{"array": a, "box": hull.boxes()[0]} for (e, a), hull in sorted(r.hulls[block].items())
                          if e == effect] for effect in (READ, WRITE)}
        out.append({"block": list(block), "steps": kept, "reads": hulls[READ], "writes": hulls[WRITE],
                    "complete": block not in r.shortened and len(kept) == len(steps)})
    return sorted(out, key=lambda b: b["block"])


def _cells(r: Recorder) -> dict[str, Any]:
    read, written = r.reached[READ], r.reached[WRITE]
    return {"cell": list(r.grid.cell), "counts": list(r.grid.counts), "bytes read": r.blocks_read.tolist(),
            "bytes written": r.blocks_written.tolist(),
            "boxes": [a.with_(b).boxes() for a, b in zip(read, written, strict=True)],
            "boxes read": [a.boxes() for a in read], "boxes written": [a.boxes() for a in written]}


# ------------------------------------------------------------------ findings


def _finding(f: TileSanitizerError, r: Recorder, arrays: Numbering) -> dict[str, Any]:
    return {"check": f.check, "message": f.message, "help": f.help, "at": None if f.loc is None else r.place(f.loc),
            "array": arrays.names.index(f.array) if f.array in arrays.names else None,
            "block": None if f.block is None else list(f.block),
            "element": None if f.element is None else list(f.element), "times": f.times}
