"""python -m conformance.referee.export FOLDER --apis cutile,cuda.tile: programs as cubins, made without a GPU.

`python -m conformance.referee --second exported:cutile:FOLDER --second exported:cuda.tile:FOLDER` then runs them on a
GPU without a compiler. Every program is compiled alone, as a launch would compile it. Programs that do not compile
are counted and listed. --discard keeps the verdicts and deletes the cubins.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from conformance.generate import Options, Program, generate
from conformance.referee.compare import failure
from conformance.referee.implementations import Modules, loaded
from conformance.referee.sharding import CHUNK, End, Lost, each
from conformance.referee.summary import hardware, versions

SYMBOL = "kernel"
INDEX = "export.json"
APPLICABLE, REFUSED, LOST = "not applicable", "refused", "lost"
ASSEMBLED = "assembled"


@dataclass(frozen=True)
class Settings:
    """What to export, and where."""

    folder: Path
    apis: tuple[str, ...]
    target: str
    options: Options
    keep: bool


class Exporter:
    """Writes the cubins of a seed. Gives its digest and, for each API, what went wrong [sharding.Work]."""

    spoiled = False

    def __init__(self, settings: Settings):
        warnings.simplefilter("ignore", RuntimeWarning)
        self.settings, self.seconds, self.runs = settings, Counter(), Counter()
        self.apis = {name: importlib.import_module(name) for name in settings.apis}

    def __call__(self, seed: int) -> tuple[str, dict[str, tuple[str, str]]]:
        start = time.perf_counter()
        program = generate(seed, self.settings.options)
        with loaded(program) as modules:
            try:
                module = modules("cutile")
                signature = signature_of(module.kernel, module.arguments())
            except Exception as e:
                return "", dict.fromkeys(self.apis, (REFUSED, failure(e)))
            self._count("generate", start)
            said = {name: self._exported(seed, name, modules, signature) for name in self.apis}
        return digest(program, signature), {name: why for name, why in said.items() if why is not None}

    def _exported(self, seed: int, name: str, modules: Modules, signature: Any) -> tuple[str, str] | None:
        """Write the cubins of one API for a program. Gives what went wrong."""
        start, out, api = time.perf_counter(), io.BytesIO(), self.apis[name]
        try:
            export(api, modules(name).kernel, signature, self.settings.target, out)
        except Exception as e:  # any error of a compiler is a finding
            lacking = isinstance(e, api.TileUnsupportedFeatureError)
            return APPLICABLE if lacking else REFUSED, failure(e)
        finally:
            self._count(name, start)
        if self.settings.keep:
            path_of(self.settings.folder, seed, name).write_bytes(out.getvalue())
        return None

    def _count(self, stage: str, start: float) -> None:
        self.seconds[stage] += time.perf_counter() - start
        self.runs[stage] += 1

    def end(self) -> tuple[Counter, Counter]:
        return self.seconds, self.runs


def export(api: Any, kernel: Any, signature: Any, target: str, out: io.BytesIO) -> None:
    """Export a kernel of an API for a signature of cutile's. Another API gets the signature by the mangled name."""
    c = api.compilation
    if not isinstance(signature, c.KernelSignature):
        mangled = signature.with_mangled_symbol(SYMBOL).symbol
        signature = c.demangle_kernel_name(mangled)[1].with_symbol(SYMBOL)
    c.export_kernel(kernel, [signature], out, output_format="cubin", gpu_code=target)


def signature_of(kernel: Any, args: Sequence[Any]) -> Any:
    """The signature for which a launch with these arguments would compile."""
    from cutile.compilation import CallingConvention, KernelSignature

    return KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2(), symbol=SYMBOL)


def digest(program: Program, signature: Any) -> str:
    """A digest that tells whether a program and its arguments are those that were exported."""
    return blake2b(f"{program.source()}\n{signature!r}".encode(), digest_size=8).hexdigest()


def path_of(folder: Path, seed: int, api: str) -> Path:
    """The file of a seed's cubin for an API."""
    return folder / f"{seed}.{api}.cubin"


def main() -> int:
    parser = argparse.ArgumentParser("python -m conformance.referee.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--apis", default="cutile", help="modules with the cuda.tile API, with commas")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--official", action="store_true", help="leave out what the official implementation lacks")
    parser.add_argument("--discard", action="store_true", help="keep no cubins")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--chunk", type=int, default=CHUNK, help="programs of a process")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one program")
    parser.add_argument("--seconds", type=float, help="begin no more programs after so many")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    apis = tuple(given.apis.split(","))
    options = Options(official=given.official, sm_100=not given.official)
    settings = Settings(given.folder, apis, given.target, options, not given.discard)
    found = exported(settings, range(given.seed, given.seed + given.count), given)
    (given.folder / INDEX).write_text(json.dumps(found, indent=1) + "\n")
    for name in apis:
        print(f"{name}, {given.target}: {', '.join(f'{k} {n}' for k, n in found['verdicts'][name].items())}")
    rates = ", ".join(f"{k} {r}/s" for k, r in found["programs a second of one process"].items())
    print(f"{found['programs a second']} programs a second by {given.jobs} process(es); each process: {rates}")
    return int(any(set(v) - {ASSEMBLED, APPLICABLE} for v in found["verdicts"].values()))


def exported(settings: Settings, seeds: Sequence[int], given: argparse.Namespace) -> dict:
    """Export all programs. Gives the index."""
    start = said = time.monotonic()
    programs: dict[str, str] = {}
    failures: dict[str, dict] = {name: {} for name in settings.apis}
    verdicts = {name: Counter() for name in settings.apis}
    seconds, runs = Counter(), Counter()
    for found in each(partial(Exporter, settings), seeds, jobs=given.jobs, chunk=given.chunk, limit=given.limit,
                      seconds=given.seconds):
        if isinstance(found, End):
            seconds, runs = seconds + found.value[0], runs + found.value[1]
            continue
        if isinstance(found, Lost):
            value = "", dict.fromkeys(settings.apis, (LOST, found.why))
        else:
            value = found.value
        programs[str(found.seed)] = value[0]
        for name in settings.apis:
            verdicts[name][value[1][name][0] if name in value[1] else ASSEMBLED] += 1
            if name in value[1]:
                failures[name][str(found.seed)] = kind, why = value[1][name]
                if kind != APPLICABLE:
                    print(f"program {found.seed}: {kind}: {name}: {why}", flush=True)
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(f"{len(programs)} of {len(seeds)} programs", file=sys.stderr, flush=True)
    took = time.monotonic() - start
    return {"target": settings.target, "official": settings.options.official, "seeds": [seeds[0], seeds[-1] + 1],
            "hardware": hardware(), "versions": versions(), "seconds": round(took, 1), "processes": given.jobs,
            "programs a second": round(len(programs) / took, 1),
            "programs a second of one process": {k: round(runs[k] / s, 1) for k, s in seconds.items()},
            "verdicts": {k: dict(v) for k, v in verdicts.items()}, "failures": failures, "programs": programs}


if __name__ == "__main__":
    raise SystemExit(main())
