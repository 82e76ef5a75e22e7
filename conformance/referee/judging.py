"""The referee's work in one process: make programs, run them, compare, count."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from conformance.generate import Options, generate
from conformance.generate.counts import Counts
from conformance.referee.cases import file, investigate, text
from conformance.referee.compare import Verdict, compare_all
from conformance.referee.implementations import implementation


@dataclass(frozen=True)
class Settings:
    """What to compare: each of `others` with `first`, on programs with these options."""

    first: str
    others: tuple[str, ...]
    options: Options


@dataclass
class Tally:
    """Totals of the programs of a process: how often things occur, and seconds and runs of each stage."""

    counts: Counts = field(default_factory=Counts)
    seconds: Counter = field(default_factory=Counter)
    runs: Counter = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.counts = self.counts + other.counts
        self.seconds += other.seconds
        self.runs += other.runs


class Judge:
    """Gives the verdicts on a seed, one for each of the other implementations [sharding.Work]."""

    def __init__(self, settings: Settings):
        warnings.simplefilter("ignore", RuntimeWarning)  # warnings of the reference, for casts with an open result
        self.settings, self.tally = settings, Tally()
        self.first, *self.others = map(implementation, (settings.first, *settings.others))

    @property
    def spoiled(self) -> bool:
        return any(i.spoiled for i in (self.first, *self.others))

    def __call__(self, seed: int) -> list[Verdict]:
        start, seconds = time.perf_counter(), Counter()
        program = generate(seed, self.settings.options)
        seconds["generate"] = time.perf_counter() - start
        verdicts = compare_all(program, self.first, self.others, seconds)
        self.tally.counts.add(program)
        self.tally.seconds += seconds
        self.tally.runs.update(seconds.keys())
        return verdicts

    def end(self) -> Tally:
        return self.tally


class Investigator:
    """Writes the page of a disagreement. Gives its path and a line about it [sharding.Work]."""

    spoiled = False

    def __init__(self, settings: Settings, folder: Path, verdicts: dict[int, Verdict], shrink: bool):
        self.settings, self.folder, self.verdicts, self.shrink = settings, folder, verdicts, shrink
        self.first, self.other = map(implementation, (settings.first, settings.others[0]))

    def __call__(self, seed: int) -> str:
        program, verdict, found = generate(seed, self.settings.options), self.verdicts[seed], None
        names = self.first.name, self.other.name
        if self.shrink:
            program, verdict, found = investigate(program, self.first, self.other, verdict)
        return str(file(self.folder, text(program, verdict, found, names), seed, names))

    def end(self) -> None:
        return None
