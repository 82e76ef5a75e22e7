"""The results of a run as lines and as JSON: verdicts, disagreements, the speed of each stage, the hardware."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from conformance.adapter import processor
from conformance.harness.known_differences import Known
from conformance.referee.compare import DIFFER, INCONCLUSIVE, REFUSED, Verdict
from conformance.referee.judging import Tally

LOST = "lost"  # the program crashed its process, or hung
WRONG = (DIFFER, REFUSED, LOST)
PACKAGES = ("numpy", "ml_dtypes", "cuda-bindings", "cuda-tile", "nvidia-cuda-tileiras")


@dataclass
class Against:
    """The verdicts on the programs for one implementation."""

    name: str
    known: Known
    kinds: Counter = field(default_factory=Counter)
    wrong: dict[int, Verdict] = field(default_factory=dict)
    pages: dict[int, str] = field(default_factory=dict)

    def add(self, seed: int, v: Verdict) -> bool:
        """Count a verdict. Gives whether it is an unexplained disagreement."""
        explained = v.kind in WRONG and self.known.explains(f"program {seed}: {v}")
        self.kinds["known" if explained else v.kind] += 1
        if v.kind in WRONG and not explained:
            self.wrong[seed] = v
            return True
        return False


@dataclass
class Summary:
    """A run so far."""

    first: str
    against: list[Against]
    jobs: int
    seeds: range
    tally: Tally = field(default_factory=Tally)
    ran: int = 0
    memory: int = 0  # of the largest process, in MiB
    start: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0

    def stop(self) -> None:
        self.seconds = time.perf_counter() - self.start

    @property
    def wrong(self) -> int:
        return sum(len(a.wrong) for a in self.against)

    def progress(self) -> str:
        rate = self.ran / (time.perf_counter() - self.start)
        return f"{self.ran} of {len(self.seeds)} programs, {self.wrong} disagreement(s), {rate:.0f} a second"

    def lines(self) -> list[str]:
        n = max(self.ran, 1)
        out = []
        for a in self.against:
            out.append(f"{self.ran} programs on {self.first} and {a.name}: "
                       f"{', '.join(f'{k} {v}' for k, v in a.kinds.items())}")
            out.append(f"inconclusive {a.kinds[INCONCLUSIVE] / n:.2%}; {a.known.report()}")
        stages = ", ".join(f"{k} {r:.0f}/s" for k, r in self.rates())
        out.append(f"{self.ran / self.seconds:.1f} programs a second by {self.jobs} process(es), the largest of "
                   f"{self.memory} MiB; each process, by stage: {stages}")
        return out

    def rates(self) -> list[tuple[str, float]]:
        """Programs a second of one process, for each stage. Running on an implementation is one stage."""
        return [(k, self.tally.runs[k] / max(s, 1e-9)) for k, s in self.tally.seconds.items()]

    def as_json(self) -> dict:
        counts = self.tally.counts
        return {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "hardware": hardware(), "versions": versions(),
            "seeds": [self.seeds.start, self.seeds.stop], "programs": self.ran, "seconds": round(self.seconds, 1),
            "processes": self.jobs, "memory of the largest process, MiB": self.memory,
            "programs a second": round(self.ran / self.seconds, 1),
            "programs a second of one process": {k: round(r, 1) for k, r in self.rates()},
            "first": self.first,
            "against": [{"name": a.name, "verdicts": dict(a.kinds), "known": a.known.report(),
                         "inconclusive": a.kinds[INCONCLUSIVE] / max(self.ran, 1),
                         "disagreements": [{"seed": s, "verdict": str(v), "page": a.pages.get(s)}
                                           for s, v in sorted(a.wrong.items())]} for a in self.against],
            "occurrences": {"counted": counts.programs, "summary": str(counts).splitlines() if counts.programs else [],
                            "ops": {f"{op} {d}".strip(): n for (op, d), n in sorted(counts.ops.items())},
                            "statements": dict(counts.kinds.most_common())},
        }

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=1) + "\n")


def hardware() -> dict[str, object]:
    """The processor, the number of cores, and GPUs if there are any."""
    out: dict[str, object] = {"processor": processor(), "processors": os.cpu_count()}
    try:
        gpus = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=30)
        out["GPUs"] = gpus.stdout.split("\n")[:-1] if gpus.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        out["GPUs"] = []
    return out


def versions() -> dict[str, str]:
    """The versions of Python and of the packages on which results depend."""
    out = {"python": platform.python_version()}
    if "cutile" in sys.modules:
        out["cutile"] = sys.modules["cutile"].__version__
    for name in PACKAGES:
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return out
