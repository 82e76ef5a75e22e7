"""What the checks of a launch report: all of it together, at the end of the launch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cutile._support.structs import structure
from cutile.errors import TileSanitizerError
from cutile.interp.exec.block_set import BlockSet, Dim3, Launch
from cutile.interp.sanitize.sites import Site
from cutile.spans import Span

SHOWN = 10  # findings that the error of a launch lists at most; the rest is counted


class Report(NamedTuple):
    """One finding in words.

    message  what is wrong; without the block, unless `complete` says that it names the block already
    array    the parameter that it is about, with an index if that is a list: `xs[1]`
    element  the index of the array's element that it is about, if it is about one
    help     what to write instead
    notes    pairs of a text and the place in the source that it is about
    """

    message: str
    array: str = ""
    element: tuple[int, ...] | None = None
    help: str | None = None
    notes: tuple[tuple[str, Span | None], ...] = ()
    complete: bool = False


@structure(slots=True)
class Finding:
    """The first of all equal findings of a launch, and how often it was found in all."""

    check: str
    report: Report
    span: Span
    block: Dim3 | None
    times: int = 0

    def error(self) -> TileSanitizerError:
        r = self.report
        where = "" if self.block is None or r.complete else f", in block {self.block}"
        more = f"; so in {self.times:,} runs of this line, over all blocks" if self.times > 1 else ""
        return TileSanitizerError(f"{self.check}: {r.message}{where}{more}", self.span, help=r.help, notes=r.notes,
                                  check=self.check, array=r.array, block=self.block, element=r.element,
                                  times=self.times)


@structure(slots=True)
class Note:
    """What is right, but may be a mistake: the first call in which a line did so, and the number of other calls."""

    message: str
    help: str
    span: Span
    block: Dim3
    others: int = 0

    def render(self) -> str:
        said = [f"cutile: note: {self.message}, in block {self.block}", self.span.render_calls()]
        if self.others:
            said.append(f"  so in {self.others} more call{'s' if self.others > 1 else ''} of line {self.span.line}")
        return "\n".join([*said, f"  help: {self.help}"])


class CheckedLaunch(Launch):
    """A launch with checks. `state` holds what a check keeps from one op to the next, by its name; `noted` the sites
    and lines that earlier launches of the program have noted.
    """

    __slots__ = ("findings", "noted", "notes", "state")

    def __init__(self, grid: Dim3, step_limit: int | None, noted: set):
        super().__init__(grid, step_limit)
        self.findings: dict[tuple, Finding] = {}
        self.notes: dict[tuple, Note] = {}
        self.noted, self.state = noted, {}

    def report(self, check: str, site: Site, ctx: BlockSet, wrong: np.ndarray, describe: Callable[[int], Report],
               which: object = None) -> None:
        """Report a site for the blocks where `wrong`, a carrier of a bool scalar, is True.

        `describe(i)` makes the report for the i-th running block.
        Reports with equal `which` are one finding. Without `which`, reports of one site are.
        """
        flat = ctx.flat(np.asarray(wrong), 0)
        key = check, site if which is None else which
        found, i = self.findings.get(key), int(flat.argmax())
        block, times = ctx.blocks()[i], int(np.count_nonzero(flat))
        if found is None or block < found.block:  # the first block in grid order, whatever the schedule
            times += 0 if found is None else found.times
            found = self.findings[key] = Finding(check, describe(i), site.span, block)
        found.times += times

    def add(self, check: str, span: Span, report: Report) -> None:
        """Report a finding that belongs to no block."""
        self.findings[check, span, report.message] = Finding(check, report, span, None, 1)

    def note(self, site: Site, ctx: BlockSet, wrong: np.ndarray, describe: Callable[[int], str],
             help: str) -> None:
        """Note a site for the first of the blocks where `wrong` is True: once per place in the source, and once per
        program.
        """
        if site in self.noted:
            return
        self.noted.add(site)
        span = site.span
        line = span.filename, span.line, span.col
        if line in self.notes:
            self.notes[line].others += 1
        elif line not in self.noted:
            i = int(ctx.flat(np.asarray(wrong), 0).argmax())
            self.notes[line] = Note(describe(i), help, span, ctx.blocks()[i])

    def print_notes(self) -> None:
        """Print the notes of the launch to stderr."""
        for line, note in self.notes.items():
            self.noted.add(line)
            print(note.render(), file=sys.stderr)

    def error(self) -> TileSanitizerError | None:
        """One error for all findings; None if there are none."""
        if not self.findings:
            return None
        # Those without a block first, then in the order of the source.
        found = sorted(self.findings.values(), key=lambda f: (f.block is not None, _position(f.span)))
        errors = [f.error() for f in found[:SHOWN]]
        if (more := len(self.findings) - len(errors)):
            errors[-1].notes += ((f"{more} more finding{'s' if more > 1 else ''} of this launch "
                                  f"{'are' if more > 1 else 'is'} not shown", None),)
        errors[0].errors = tuple(errors)
        return errors[0]


def _position(span: Span) -> list[tuple[int, int]]:
    """For the order of findings: that of the program."""
    return [(s.line, s.col) for s in span.frames()]


def at_block(x: np.ndarray, rank: int, ctx: BlockSet, i: int) -> np.ndarray:
    """The part of a carrier that belongs to the i-th running block."""
    return ctx.flat(np.asarray(x), rank)[i]


def per_block(x: np.ndarray, rank: int) -> np.ndarray:
    """Whether any element is True, for each block: a carrier of a tile of rank `rank` becomes that of a scalar."""
    return x.any(axis=tuple(range(x.ndim - rank, x.ndim))) if rank else x


def index_words(index: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, index)) + ("," if len(index) == 1 else "") + ")"
