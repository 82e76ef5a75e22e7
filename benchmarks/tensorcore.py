"""Kernels for tensor cores beside the libraries and `cuda.tile`.

    python benchmarks/tensorcore.py [--first N] [PART OF A NAME ...]

Matrix products (float16, bfloat16, float8; square, batched, of few rows, in groups) and attention (forward, backward,
decoding from pages), from `examples/gemm.py`, `flash_attention.py` and `paged_decode.py`. `ct.tune` searches the space
that _tensorcore_cases.py states for each. Beside them run, in the same process,

    cuBLAS, cuDNN, FlashAttention   as PyTorch has them; the fastest is "the library"
    official                        `cuda.tile`, where it is installed: the same source, tuned over the same space

Triton's tutorials are not among them: its wheels do not contain them.

The L2 cache is emptied before each call, calls take turns, figures are medians by the GPU's clock. Each result is
compared with a library's first. Most of the time goes to the assembler, of which as many run at once as the machine has
processors; so `--first N` searches only the first N configurations of each space, the same for both sides.
`--list` shows the names of rows, `--json FILE` writes all figures, after each row, `--configs` prints the configuration
that was chosen. The exit status is 1 if a result is wrong, or if a row is below 0.98 of official.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _gpu_export import load
from _tensorcore_cases import Case, Launch, Stage, cases

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "gemm", "flash_attention", "paged_decode"
OFFICIAL_BAR = 0.98
FILL_SECONDS = 100  # for compiling with `cuda.tile`; what is not there by then is compiled while it is tuned
BARS = {"matmul": 0.95, "forward": 1.0, "decode": None, "backward": None}  # of the libraries, in the geometric mean
SCALE = {"TFLOP/s": 1e9, "GB/s": 1e6}


class Side:
    """An implementation: its module, its kernels from the examples, its tuner."""

    def __init__(self, name: str, module: str, folder: Path):
        sys.path.insert(0, str(ROOT / "examples"))
        self.name, self.folder, self.ct = name, folder, importlib.import_module(module)
        self.tune = importlib.import_module(f"{module}.tune")
        self.sources = {source: load(f"examples/{source}.py", module, folder) for source in SOURCES}

    def launch(self, launch: Launch, stream: Any) -> None:
        self.ct.launch(stream, launch.grid, self.kernel(launch), launch.args)

    def kernel(self, launch: Launch) -> Any:
        kernel = getattr(self.sources[launch.source], launch.kernel)
        return kernel.replace_hints(**launch.hints) if launch.hints else kernel

    def compile(self, launches: Sequence[Launch], stream: Any) -> None:
        """Run launches in their order, as some read what others write. What fails here fails again while it is tuned.
        """
        with contextlib.suppress(Exception):
            for launch in launches:
                self.launch(launch, stream)

    def fill(self, found: dict[str, Case], first: int | None, stream: Any) -> float:
        """Compile all configurations of all cases, with as many assemblers at once as processors. Gives the seconds.

        The last cases, backward passes, take longest, so they come first. `cuda.tile` compiles one kernel at a time in
        a process, and in 16 threads some launch accessed illegal memory: it gets processes, which share its cache.
        """
        start, at_once = time.perf_counter(), os.cpu_count() or 1
        if self.name == "ours":
            with ThreadPoolExecutor(at_once) as pool:
                list(pool.map(lambda launches: self.compile(launches, stream),
                              (c for case in reversed(found.values()) for c in case.configurations())))
        else:
            command = [sys.executable, str(Path(__file__).with_name("_tensorcore_fill.py"))]
            rest = [str(at_once), str(first or 0), *reversed(found)]
            _all_end([subprocess.Popen([*command, str(self.folder), str(n), *rest]) for n in range(at_once)],
                     FILL_SECONDS)
        return time.perf_counter() - start

    def tuned(self, stage: Stage, stream: Any) -> Any:
        """The fastest configuration of the launch of a stage that is searched."""
        def searched(config) -> Launch:
            return stage.launches(config)[stage.searched]

        for config in stage.space:
            for launch in stage.launches(config)[:stage.searched]:
                self.launch(launch, stream)
        return self.tune.exhaustive_search(
            stage.space, stream, lambda c: searched(c).grid, lambda c: self.kernel(searched(c)),
            lambda c: searched(c).args, quiet=True).best.config

    def call(self, case: Case, configs: list, stream: Any) -> Callable[[], None]:
        launches = [(x.grid, self.kernel(x), x.args) for s, c in zip(case.stages, configs, strict=True)
                    for x in s.launches(c)]

        def call() -> None:
            for grid, kernel, args in launches:
                self.ct.launch(stream, grid, kernel, args)
        return call


def _all_end(processes: list[subprocess.Popen], seconds: float) -> None:
    """Wait until processes end; those that take longer are ended."""
    until = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def sides(folder: Path) -> Iterator[Side]:
    os.environ.setdefault("CUDA_TILE_CACHE_DIR", str(folder / "cuda_tile_cache"))
    for name, module in (("ours", "cutile"), ("official", "cuda.tile")):
        try:
            yield Side(name, module, folder)
        except ModuleNotFoundError as e:
            if name == "ours":
                raise
            print(f"without {module}: {e}")


# ------------------------------------------------------------------ rows


def measured(name: str, case: Case, of: list[Side], flushed: Any, stream: Any) -> dict[str, Any]:
    """The figures of a row: rates by side, chosen configurations, what is wrong."""
    from _gpu_timing import medians
    from _tensorcore_libraries import libraries, reference, wrong

    want = reference(case)
    calls: dict[str, Callable] = {}
    row: dict[str, Any] = {"row": name, "case": case.name, "unit": case.unit, "configs": {}, "wrong": []}
    for side in of:
        configs = [side.tuned(stage, stream) for stage in case.stages]
        row["configs"][side.name] = [list(c) if isinstance(c, tuple) else c for c in configs]
        calls[side.name] = side.call(case, configs, stream)
        if (error := wrong(case, calls[side.name], want)) is not None:
            row["wrong"].append(f"{side.name}: {error}")
    known = libraries(case)
    row["milliseconds"] = times = medians(calls | known, flushed)
    row["rates"] = rates = {n: case.amount / ms / SCALE[case.unit] for n, ms in times.items()}
    library = max(known, key=rates.get)
    row["library"] = library
    row["ratios"] = {"library": rates["ours"] / rates[library]}
    if "official" in rates:
        row["ratios"]["official"] = rates["ours"] / rates["official"]
    return row


def show(row: dict[str, Any], configs: bool) -> None:
    rates, ratios = row["rates"], row["ratios"]
    official = f"{rates['official']:10.1f} {ratios['official']:9.3f}" if "official" in ratios else f"{'–':>10} {'–':>9}"
    flags = "".join(f"  {text}" for text in (*(["BELOW"] if below(row) else []), *row["wrong"]))
    print(f"{row['case']:40} {row['unit']:8} {rates['ours']:10.1f} {rates[row['library']]:10.1f} "
          f"{ratios['library']:9.3f}  {row['library']:15} {official}{flags}", flush=True)
    if configs:
        print(f"{'':40} {row['configs']}")


def below(row: dict[str, Any]) -> bool:
    return row["ratios"].get("official", 1.0) < OFFICIAL_BAR


def means(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means of the ratios, by group of rows."""
    found: dict[str, dict[str, float]] = {}
    for group in BARS:
        mine = [r["ratios"] for r in rows if r["row"].startswith(f"{group}/")]
        found[group] = {k: statistics.geometric_mean(r[k] for r in mine)
                        for k in ("library", "official") if mine and all(k in r for r in mine)}
    return {group: values for group, values in found.items() if values}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--configs", action="store_true")
    parser.add_argument("--first", type=int, metavar="N")
    given = parser.parse_args()
    wanted = {n: make for n, make in cases().items() if not given.parts or any(p in n for p in given.parts)}
    if given.list:
        print("\n".join(wanted))
        return 0
    if not wanted:
        parser.error(f"no row has such a name; --list shows {len(cases())}")
    with tempfile.TemporaryDirectory() as folder:
        return run(wanted, Path(folder), given)


def run(wanted: dict[str, Callable], folder: Path, given: argparse.Namespace) -> int:
    import torch
    from _gpu_timing import scratch
    from _tensorcore_libraries import Arrays

    start, stream = time.perf_counter(), torch.cuda.current_stream()
    new, of = Arrays(), list(sides(folder))
    flushed = scratch()
    machine = f"{torch.cuda.get_device_name()}, PyTorch {torch.version.__version__}, CUDA {torch.version.cuda}"
    print(machine)
    found = {name: make(new).searching(given.first) for name, make in wanted.items()}
    for side in of:
        print(f"{side.name}: compiled in {side.fill(found, given.first, stream):.1f} s")
    torch.cuda.synchronize()
    print(f"{'':40} {'':8} {'ours':>10} {'library':>10} {'ratio':>9}  {'':15} {'official':>10} {'ratio':>9}")
    rows, failed = [], []
    for name, case in found.items():
        try:
            rows.append(measured(name, case, of, flushed, stream))
        except Exception as e:  # a failing row must not hide those after it
            failed.append(name)
            print(f"{case.name:40} {type(e).__name__}: {str(e).splitlines()[:1]}", flush=True)
        else:
            show(rows[-1], given.configs)
            if given.json:
                given.json.write_text(json.dumps({"machine": machine, "first": given.first, "rows": rows,
                                                  "means": means(rows)}, indent=1))
    for group, values in means(rows).items():
        bar = f" (bar {BARS[group]})" if BARS[group] else ""
        print(f"{group}: geometric mean " + ", ".join(f"{v:.3f} of the {k}" if k == "library" else f"{v:.3f} of {k}"
                                                      for k, v in values.items()) + bar)
    print(f"{time.perf_counter() - start:.0f} s")
    return int(bool(failed) or any(r["wrong"] or below(r) for r in rows))


if __name__ == "__main__":
    sys.exit(main())
