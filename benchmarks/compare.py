"""Two checkouts against each other: python benchmarks/compare.py OLD NEW [--pairs 20] [--rows WORD ...] [--gpu]

    repeated launches, on arrays of NumPy and, where it is installed, of PyTorch in CPU memory
    first launches, of a process and of a kernel in a process that has run others
    the rows of interp.py
    import cutile
    --gpu    also repeated launches on arrays of PyTorch and CuPy in GPU memory; these alone: --gpu --rows GPU

Each checkout has a worker, a process that measures what it is asked for; they are asked in turn, in pairs, and who
comes first alternates. A sample is the least of several runs, a pair gives the ratio new / old. A row shows the median
of the ratios and their quartiles. The exit status is 1 if the geometric mean of the medians is above 1.03, or a
median above 1.10. What is measured is written against the public API, and taken from the checkout of this file, so
both sides run the same. Folders are checkouts or copies of one, as `git archive` makes them; for --gpu, build the
C extension in each (`python setup.py build_ext --inplace`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEAN, ROW = 1.03, 1.10  # the most that new may take, as a multiple of old
LIFE = 2  # pairs of a worker: in each process memory lies elsewhere, which makes a difference, too
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Worker:
    """A process that measures rows with the package of a checkout."""

    def __init__(self, checkout: Path, scratch: Path):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CUTILE_", "PYTHON"))}
        environment |= dict.fromkeys(ONE_THREAD, "1")
        environment |= {"PYTHONPATH": str(checkout), "CUTILE_CACHE_DIR": str(scratch / "cache"),
                        "PYTHONPYCACHEPREFIX": str(scratch / "pyc")}
        self.process = subprocess.Popen([sys.executable, str(HERE / "_compare_rows.py"), str(checkout)], cwd=scratch,
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows = self._answer()

    def seconds(self, row: str) -> float:
        self.process.stdin.write(json.dumps(row) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker ended with status {self.process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def ratios(old: Path, new: Path, pairs: int, chosen, scratch: Path) -> dict[str, list[float]]:
    """By row, new / old of each pair."""
    found: dict[str, list[float]] = {}
    for first in range(0, pairs, LIFE):
        workers = [Worker(p, scratch / name) for p, name in ((old, "old"), (new, "new"))]
        rows = [r for r in workers[0].rows if r in workers[1].rows and chosen(r)]
        for pair in range(first, min(first + LIFE, pairs)):
            for row in rows:
                seconds = {}
                for k in ((0, 1), (1, 0))[pair % 2]:
                    seconds[k] = workers[k].seconds(row)
                found.setdefault(row, []).append(seconds[1] / seconds[0])
            print(f"\rpair {pair + 1} of {pairs}", end="", file=sys.stderr, flush=True)
        for w in workers:
            w.end()
    print(file=sys.stderr)
    return found


def show(found: dict[str, list[float]]) -> int:
    """Print the rows and the mean; the exit status."""
    print(f"{'new / old':44} {'median':>7}   quartiles")
    medians = {}
    for row, values in found.items():
        low, medians[row], high = statistics.quantiles(values, method="inclusive") if len(values) > 1 else values * 3
        print(f"{row:44} {medians[row]:7.3f}   {low:.3f} … {high:.3f}{'  !' if medians[row] > ROW else ''}")
    mean = math.exp(statistics.fmean(map(math.log, medians.values())))
    print(f"{'geometric mean':44} {mean:7.3f}{'  !' if mean > MEAN else ''}")
    return int(mean > MEAN or max(medians.values()) > ROW)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--rows", nargs="+", metavar="WORD", help="rows whose name has one of these; ? lists them")
    parser.add_argument("--gpu", action="store_true")
    given = parser.parse_args()
    words = given.rows or [""]
    checkouts = [p.resolve() for p in (given.old, given.new)]
    for p in checkouts:
        if not (p / "cutile" / "__init__.py").is_file():
            parser.error(f"{p} is no checkout of cutile")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for name in ("old", "new"):
            (scratch / name).mkdir()

        def chosen(row: str) -> bool:
            return any(w in row for w in words) and (given.gpu or "GPU" not in row)

        if words == ["?"]:
            worker = Worker(checkouts[1], scratch / "new")
            print("\n".join(worker.rows))
            worker.end()
            return 0
        found = ratios(*checkouts, given.pairs, chosen, scratch)
    if not found:
        parser.error("no row has such a name, or none can run here")
    return show(found)


if __name__ == "__main__":
    raise SystemExit(main())
