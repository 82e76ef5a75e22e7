"""The verb `explore`: reads its arguments and reports what was found."""

from __future__ import annotations

import json as json_
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from typing import Annotated, Any

import numpy as np
import typer

from cutile.cli import script
from cutile.cli.explore import search
from cutile.cli.explore.outcomes import Outcome, Rerun
from cutile.cli.explore.search import Seeds
from cutile.cli.failing import WRONG_ARGUMENTS, fail
from cutile.errors import TileError, TileSanitizerError
from cutile.interp.exec.turn_order import Step
from cutile.runtime.turn_schedule import write_steps


def explore(
    target: Annotated[str, typer.Argument(help="FILE.py::KERNEL")],
    arguments: Annotated[list[str] | None, typer.Argument(help="arguments of the script, after --")] = None,
    seeds: Annotated[int, typer.Option(help="how many orders of blocks to try", min=1)] = 200,
    launch: Annotated[int, typer.Option(help="which launch of the kernel, counted from 1")] = 1,
    workers: Annotated[int, typer.Option(help="processes that try seeds; each runs the script", min=1)] = 1,
    replay: Annotated[str | None, typer.Option(help="where to write the order that was found; by default KERNEL.json "
                                                    "in the current folder")] = None,
    json: Annotated[bool, typer.Option(help="print JSON")] = False,
) -> None:
    """Look for an order of blocks that changes the results, the prints or the errors of a launch, and for races.

    The file is run as a script up to the launch, which then runs in many orders, on CPU arrays, with the sanitizer's
    check `race`. Races matter also where no order makes a difference here: a GPU may keep accesses back.

    If an order makes a difference or shows a race, it is shortened. Its steps are printed, and written to a file for
    ct.schedule(replay=...). The exit status is 1 if there is one, or if the launch fails in every order.

    python -m cutile explore examples/histogram.py::histogram --seeds 50
    """
    file, name = script.split_target(target, WRONG_ARGUMENTS)
    if not name:
        fail(f"{target!r} is not FILE.py::KERNEL", WRONG_ARGUMENTS)
    words, found = arguments or [], None
    try:
        if workers > 1:
            with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
                found = search.try_seeds_by(pool, workers, file, name, words, launch, range(seeds))
        with redirect_stdout(sys.stderr if json else sys.stdout):  # what the script prints is not part of the JSON
            report = script.at_launch(file, name, words, launch,
                                      lambda caught: _explored(Rerun(caught), seeds, found, replay))
    except (TileError, script.NotLaunchedError) as e:
        fail(str(e), WRONG_ARGUMENTS)
    print(json_.dumps(report, indent=2) if json else _text(report))
    if report["depends on order"] or report["races"] or report["error"]:
        raise typer.Exit(1)


def _explored(launch: Rerun, seeds: int, tried: Seeds | None, replay: str | None) -> dict[str, Any]:
    """What was found, as data. `tried`: what the seeds show, if workers have tried them."""
    usual = search.usual(launch)
    tried = search.try_seeds(launch, range(seeds), usual) if tried is None else tried
    found = search.explain(launch, tried, usual)
    report = {"kernel": launch.kernel, "seeds": seeds, "depends on order": tried.differing is not None,
              "error": usual.outcome.error, "races": list(map(_race, found.races.values()))}
    if tried.first() is None and not found.races:
        return report
    path = replay or f"{launch.kernel}.json"
    write_steps(path, launch.kernel, [s.block for s in found.steps])
    return {**report, "seed": tried.first(), "differences": _differences(launch, usual.outcome, found.outcome),
            "steps": list(map(_step, found.steps)), "replay": path}


def _race(e: TileSanitizerError) -> dict[str, Any]:
    lines = [span.line for span in (e.loc, *(span for _, span in e.notes)) if span is not None]
    return {"message": e.message, "lines": lines, "array": e.array, "element": e.element, "block": e.block,
            "text": e.render()}


def _differences(launch: Rerun, usual: Outcome, other: Outcome) -> list[str]:
    out = []
    if usual.error != other.error:
        out.append(f"it fails: {other.error}" if other.error else
                   f"it does not fail, though in the usual order it does: {usual.error}")
    for k, name in enumerate(launch.names):
        if usual.arrays[k] != other.arrays[k]:
            a, b = launch.elements(usual, k), launch.elements(other, k)
            differ = _bytes_differ(a, b)
            at = tuple(map(int, np.argwhere(differ)[0]))
            index, count = ", ".join(map(str, at)), int(differ.sum())
            out.append(f"{name}[{index}] is {b[at]}, and {a[at]} in the usual order; {count} of {a.size} element(s) "
                       f"differ")
    if usual.printed != other.printed:
        pairs = zip(usual.printed.splitlines() + [""], other.printed.splitlines() + [""], strict=False)
        a, b = next(((a, b) for a, b in pairs if a != b), ("", ""))
        out.append(f"it prints {b!r}, and {a!r} in the usual order")
    return out


def _bytes_differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which elements differ in a bit, as -0.0 and 0.0 do."""
    a, b = (np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.itemsize) for x in (a, b))
    return (a != b).any(axis=-1)


def _step(s: Step) -> dict[str, Any]:
    return {"block": s.block, "line": None if s.at is None else s.at.line,
            "source": "" if s.at is None else s.at.source_line().strip()}


def _text(report: dict[str, Any]) -> str:
    out = _summary(report) + (_how_to_repeat(report) if "steps" in report else [])
    for r in report["races"]:
        out += ["", r["text"]]
    return "\n".join(out)


def _summary(report: dict[str, Any]) -> list[str]:
    name, seeds, races = report["kernel"], report["seeds"], report["races"]
    if report["depends on order"]:
        return [f"What {name} does depends on the order of its blocks. With seed {report['seed']}:",
                *(f"  {d}" for d in report["differences"])]
    if report["error"]:
        return [f"{name} fails in each of {seeds} orders of its blocks: {report['error']}"]
    same = f"{name} did the same in {seeds} orders of its blocks"
    return [f"{same}, but its accesses race: a GPU may order them in other ways." if races else f"{same}."]


def _how_to_repeat(report: dict[str, Any]) -> list[str]:
    shown = "a difference" if report["depends on order"] else "a race"
    out = [f"The fewest steps found that show {shown}, {len(report['steps'])}; then each block runs to its end:"
           if report["steps"] else f"It shows {shown} if each block runs to its end before the next one begins."]
    for k, s in enumerate(report["steps"], 1):
        what = "begins" if s["line"] is None else f"line {s['line']}: {s['source']}"
        out.append(f"  {k}. block {tuple(s['block'])} {what}")
    check = "" if report["depends on order"] else 'ct.sanitize("race"), '
    return [*out, f"To repeat it: with {check}ct.schedule(replay={report['replay']!r}) around the launch."]
