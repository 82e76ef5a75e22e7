"""Run every example and print one table. `python examples/demo.py [name ...]` runs some of them."""

from __future__ import annotations

import importlib
import os
import sys
import time

# Products of tiles are too small for several BLAS threads, which only disturb each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

EXAMPLES = ("vector_add", "softmax", "layer_norm", "matmul", "gemm", "transpose", "attention", "flash_attention",
            "paged_decode", "histogram", "split_k", "look_back_scan", "image_filter", "digits",
            "table_statistics", "top_p", "sparse_matrix", "k_means")


def numbers(values: tuple) -> str:
    return " × ".join(map(str, values))


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def table(rows: list) -> Table:
    t = Table(title="Every result was compared with NumPy in float64", caption="time: one launch, compilation included")
    t.add_column("kernel")
    for name in ("grid", "tile"):
        t.add_column(name, justify="right")
    for name in ("largest error", "allowed there", "time"):  # numbers stay whole on narrow terminals, names wrap
        t.add_column(name, justify="right", no_wrap=True, min_width=8)
    for r in rows:
        t.add_row(r.kernel, numbers(r.grid), numbers(r.tile), f"{r.error:.1e}" if r.error else "exact",
                  f"{r.allowed:.1e}" if r.allowed else "–", duration(r.seconds))
    return t


def run(names: tuple[str, ...], console: Console) -> bool:
    """Run these examples, show progress, print the table. Gives whether all results are right."""
    rows, failures, start = [], [], time.perf_counter()
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=f"examples/{name}.py")
            if not console.is_terminal:
                console.print(f"examples/{name}.py")
            try:
                rows += importlib.import_module(name).main()
            except Exception as e:  # one failure must not hide the other results
                failures.append((name, e))
            progress.advance(task)
    console.print(table(rows))
    for name, error in failures:
        console.print(f"[red]failed[/red] examples/{name}.py: {type(error).__name__}: ", end="")
        console.print(str(error), markup=False)
    verdict = f"{len(failures)} of {len(names)} examples failed" if failures else f"all {len(names)} examples are right"
    console.print(f"{verdict}, {time.perf_counter() - start:.1f} s")
    return not failures


def main(arguments: list[str]) -> int:
    unknown = [name for name in arguments if name not in EXAMPLES]
    if unknown:
        print(f"no example is called {', '.join(unknown)}; there are {', '.join(EXAMPLES)}", file=sys.stderr)
        return 2
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console = Console(width=120)
    return 0 if run(tuple(arguments) or EXAMPLES, console) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
