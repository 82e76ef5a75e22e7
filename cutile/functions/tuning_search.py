"""The search of a tuned function: which configurations are tried, in which order, and when it ends.

Up to `FEW` configurations are all tried. Of more, the search tries on a GPU the most promising ones by an estimate
(tuning_model.py), and some of the others; without an estimate, some that are spread over all of them. Then it goes from
the fastest to their neighbours, which differ in one key by one step, until no neighbour is faster, and leaves out those
whose estimate is far above. The fastest few are then measured precisely, while nothing else runs.
"""

from __future__ import annotations

import collections
import concurrent.futures
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from cutile import settings
from cutile._support import terminal, trace
from cutile.errors import refusal
from cutile.functions import libraries, tuning_model
from cutile.functions import tuning_spread as spread
from cutile.functions.reference import result_of
from cutile.functions.tuning_check import Outcome, Outputs, outcome_of
from cutile.functions.tuning_inputs import inputs_like
from cutile.functions.tuning_judge import Judge, Trial
from cutile.functions.tuning_key import TuningKey
from cutile.functions.tuning_store import Tuning, now
from cutile.runtime import launch_plan
from cutile.tune import exhaustive_search
from cutile.tune.candidates import Candidate, Clocks
from cutile.tune.trial import stop_if_loading

if TYPE_CHECKING:
    from cutile.functions.tuned import Config, Tuned

FEW = 24  # configurations that are all tried
SPREAD = 6  # of more, every sixth is tried first where there are no estimates
PROMISING, OTHERS = 12, 4  # where there are, so many of the best by estimate, and of those that are not hopeless
HOPELESS = 4.0  # times the best estimate
WORTH = 2.0  # times the estimate of the fastest: other neighbours are not tried
STARTS = 3  # the fastest ones whose neighbours are tried
NEIGHBOURS = 8  # of these that are tried at once, the best by estimate
FINALISTS = 5  # that are measured precisely
GAIN = 0.99  # of the time of the fastest: a round that gains less is the last one
CLOSE = 1.1  # times the fastest: where not all were tried, slower ones are not among them
TOO_SLOW = 1.5  # times the fastest: its neighbours are not tried
SPILLED = 1024  # bytes of a thread's stack above which code is not run


def search(tuned: Tuned, args: tuple, named: Mapping[str, Any], key: TuningKey) -> Tuning:
    """Find the fastest configuration for a call; ValueError with the most common reasons if none ran."""
    stop_if_loading()
    start = time.monotonic()
    s = Search(tuned, *inputs_like(tuned.settings.inputs, args, named, tuned.__name__))
    try:
        s.judge = Judge(tuned.__name__, s.expected(), tuned.settings.check)
        s.rounds(start)
        s.judge.close()
        times = s.finals()
    finally:
        s.clocks.close()
    failures = [(t.config, t.why) for t in s.trials if t.why]
    if not times:
        reasons = collections.Counter(why.partition("\n")[0] for _, why in failures).most_common(3)
        raise refusal(ValueError(f"{tuned.__name__}: none of {len(failures)} configurations ran; "
                                 + "; ".join(f"{n} × {why}" for why, n in reasons)))
    skipped = len(s.trials) - len(failures) - sum(t.us < float("inf") for t in s.trials)
    found = Tuning(key, dict(times[0][0]), times, failures, skipped, round(time.monotonic() - start, 3), now())
    if not tuned.settings.quiet:
        s.progress("")
        print(found)
    return found


class Search:
    """One search."""

    def __init__(self, tuned: Tuned, args: tuple, named: Mapping[str, Any]):
        self.tuned, self.args, self.named, self.settings = tuned, args, dict(named), tuned.settings
        self.trials = [Trial(c) for c in tuned.configs_for(args, named)]
        tuned._check_arguments(args, named, self.trials[0].config)
        self.stream = self._stream()
        self.clocks = Clocks(self.stream, True)
        if self.settings.timeout_s is not None:
            self.clocks.limit_first_runs(self.settings.timeout_s)
        self.judge = Judge(tuned.__name__, None)

    def expected(self) -> Outcome | None:
        """What the reference returns, which gets copies of the arguments; None without one."""
        if self.settings.reference is None:
            return None
        found = result_of(self.settings.reference, self.tuned.__name__, self.args, self.named)
        return Outcome.of_reference(found, self._outputs(self.trials[0].config).names)

    def _stream(self) -> Any:
        """The current stream of the library of the first array."""
        for value in (*self.args, *self.named.values()):
            for _, x in libraries.arrays_in(value, ""):
                stream = libraries.current_stream(x)
                if stream is not None:
                    return stream
        return None

    # -------------------------------------------------------------- which, and in which order

    def rounds(self, start: float) -> None:
        """Try configurations, round by round, until there are no more worth it or the budget is spent."""
        limit, best = self.settings.budget_s, float("inf")
        wanted = self._first_round()
        while wanted:
            self._try(wanted, None if limit is None else start + limit)
            if limit is not None and time.monotonic() - start > limit:
                return
            before, best = best, min(t.us for t in self.trials)
            if best > GAIN * before:
                return
            wanted = self._neighbours()

    def _first_round(self) -> list[Trial]:
        if len(self.trials) <= FEW:
            return self.trials
        self._estimate()
        ranked = sorted((t for t in self.trials if t.cycles is not None), key=lambda t: t.rank)
        if not ranked:
            return self.trials[::SPREAD]
        rest = [t for t in ranked[PROMISING:] if t.rank <= HOPELESS * ranked[0].rank]
        return ranked[:PROMISING] + rest[::-(-len(rest) // OTHERS) or 1]

    def _estimate(self) -> None:
        """Estimate all configurations that would run on a GPU. Those that differ in hints alone do the same work."""
        known: dict[str, Any] = {}
        for t in self.trials:
            values, hints = self.tuned.split(t.config)
            key = repr(values)
            if key not in known:
                known[key] = self._work(t.config)
            if known[key] is not None:
                model, work, grid = known[key]
                t.cycles = model.cycles(work, grid, hints)

    def _work(self, config: Config) -> tuple | None:
        """The model of the GPU, what a block does, and the grid. None where it does not run, or not on a GPU."""
        try:
            grid, kernel, args = self._launch(config)
            plan, values = launch_plan.find(kernel, args, self.stream)
            if plan.ordinal is None or settings.on_host():
                return None
            return (tuning_model.of_gpu(plan.ordinal),
                    tuning_model.work_of(plan.program.kernel, grid, plan.dims, values), grid)
        except Exception:  # its trial reports what is wrong with it
            return None

    def _neighbours(self) -> list[Trial]:
        """Untried configurations that differ from one of the fastest in one key, by one step among its values."""
        untried = [t for t in self.trials if t.us == float("inf") and not t.why]
        if not untried:
            return []
        ran = sorted((t for t in self.trials if t.us < float("inf")), key=lambda t: t.us)
        if not ran:
            return untried[:FEW]
        values = {k: list(dict.fromkeys(repr(t.config[k]) for t in self.trials if k in t.config))
                  for t in self.trials for k in t.config}
        near = [t for t in ran[:STARTS] if t.us <= TOO_SLOW * ran[0].us]
        found = [u for u in untried if any(_steps(u.config, t.config, values) == 1 for t in near)]
        worth = [u for u in found if u.cycles is None or u.rank <= WORTH * min(t.rank for t in near)]
        return worth if len(self.trials) <= FEW else sorted(worth, key=lambda u: u.rank)[:NEIGHBOURS]

    # -------------------------------------------------------------- trying

    def _try(self, wanted: Sequence[Trial], until: float | None) -> None:
        if self.settings.executor is not None:
            self._try_elsewhere(wanted, until)
        else:
            self._try_here(wanted, until)

    def _try_elsewhere(self, wanted: Sequence[Trial], until: float | None) -> None:
        """Have the executor measure configurations, and take the results in order."""
        waiting = [(t, f) for t in wanted if (f := self._submit(t)) is not None]
        try:
            for n, (t, future) in enumerate(waiting, 1):
                self.progress(f"{n}/{len(waiting)} {t.config}")
                concurrent.futures.wait([future], None if until is None else max(until - time.monotonic(), 0))
                if not future.done():
                    return
                self._take(t, spread.result(future))
        finally:
            for _, future in waiting:
                future.cancel()  # those that have not begun

    def _submit(self, t: Trial) -> Future | None:
        try:
            grid, kernel, args = self._launch(t.config)
        except Exception as e:
            t.why = f"{type(e).__name__}: {e}"
            return None
        return spread.submit(self.settings.executor,
                             spread.job(t.config, kernel, grid, args, self.settings.timeout_s, self._outputs(t.config)))

    def _take(self, t: Trial, found: spread.Measured) -> None:
        """The result of a configuration that another process measured."""
        t.why = found.why
        if found.outcome is not None:
            try:
                self.judge.hear(t, found.outcome, self._outputs(t.config))
                t.us = found.us
            except Exception as e:
                t.why = f"{type(e).__name__}: {e}"

    def _try_here(self, wanted: Sequence[Trial], until: float | None) -> None:
        """Compile configurations at once, and run each as soon as it is compiled."""
        with ThreadPoolExecutor() as pool:
            try:
                waiting = [(t, self._compile(t, pool)) for t in wanted]
                for n, (t, future) in enumerate(waiting, 1):
                    if until is not None and time.monotonic() > until:
                        pool.shutdown(wait=False, cancel_futures=True)
                        return
                    self.progress(f"{n}/{len(wanted)} {t.config}")
                    if isinstance(future, Future):
                        future.exception()  # wait; the run fails with the same error
                    if t.candidate is not None:
                        self._run(t)
            except BaseException:  # Ctrl-C: finish those that run, and begin no other
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _compile(self, t: Trial, pool: Any) -> Any:
        try:
            grid, kernel, args = self._launch(t.config)
            t.candidate = Candidate(t.config, self.clocks, grid, kernel, lambda c: args)
            return t.candidate.compile_ahead(pool)
        except Exception as e:
            t.why = f"{type(e).__name__}: {e}"
            return None

    def _launch(self, config: Config) -> tuple[Any, Any, tuple]:
        f, values = self.tuned.configured(config)
        passed = self.tuned.call_arguments(f, self.args, self.named)
        return f.launch_arguments({**passed, **values})

    def _run(self, t: Trial) -> None:
        """Run a configuration: in a process of its own, then for its outputs, then for its time."""
        c = t.candidate
        assert c is not None
        try:
            args = c.args_fn(t.config)
            if (why := self._spills(c, args)) is not None:
                raise RuntimeError(why)
            self.clocks.first_run(c.kernel, c.grid, args)
            outputs = self._outputs(t.config)
            self.judge.hear(t, outcome_of(c.kernel, c.grid, args, self.stream, outputs), outputs)
            t.us = min(c.run(args) for _ in range(2))
        except Exception as e:
            t.why = f"{type(e).__name__}: {e}"

    def _spills(self, c: Candidate, args: tuple) -> str | None:
        """Why the code of a configuration is not worth a run; None if it is."""
        found = c.plan(args)
        if found is None or found[0].ordinal is None:
            return None
        taken = _resources(c, args, found[0].ordinal)
        if taken is not None and taken.stack > SPILLED:
            return f"its code takes {taken.stack} bytes of stack a thread, so registers were spilled"
        return None

    def _outputs(self, config: Config) -> Outputs:
        return Outputs.of(self.tuned.configured(config)[0])

    # -------------------------------------------------------------- the end

    def finals(self) -> list[tuple[Config, float, float | None]]:
        """The times of all that ran, as a Tuning has them. The fastest few are measured once more, precisely; the
        others follow them.
        """
        ran = sorted((t for t in self.trials if t.us < float("inf")), key=lambda t: t.us)
        if self.settings.executor is not None:
            return self._finals_elsewhere(ran)
        limit = CLOSE * ran[0].us if len(self.trials) > FEW and ran else float("inf")
        best = [t for t in ran[:FINALISTS] if t.candidate is not None and t.us <= limit]
        if not best:
            return []
        by_id = {id(t.config): t.candidate for t in best}
        result = exhaustive_search(
            [t.config for t in best], self.stream, lambda c: by_id[id(c)].grid, lambda c: by_id[id(c)].kernel,
            lambda c: by_id[id(c)].args_fn(c), quiet=True)
        precise = sorted(((m.config, round(m.median_us or 0.0, 3), round(m.deviation_us or 0.0, 3))
                          for m in result.successes), key=lambda t: t[1])
        return precise + [_roughly(t) for t in ran if t not in best]

    def _finals_elsewhere(self, ran: Sequence[Trial]) -> list[tuple[Config, float, float | None]]:
        """Like `finals`: the fastest few are measured again, one after another."""
        for t in ran[:FINALISTS]:
            future = self._submit(t)
            if future is not None and (again := spread.result(future)).outcome is not None:
                t.us = min(t.us, again.us)
        return [_roughly(t) for t in sorted(ran, key=lambda t: t.us)]

    def progress(self, text: str) -> None:
        if not self.settings.quiet and terminal.terminal() is not None:
            terminal.show(text[:100])
        elif text:
            trace.say(trace.LAUNCHES, f"{self.tuned.__name__}: {text}")


def _roughly(t: Trial) -> tuple[Config, float, None]:
    return t.config, round(t.us, 3), None


def _steps(a: Mapping[str, Any], b: Mapping[str, Any], values: Mapping[str, Iterable[str]]) -> int:
    """How many steps lie between two configurations: a key that only one of them has is far away."""
    if a.keys() != b.keys():
        return 2
    total = 0
    for k in a:
        order = list(values[k])
        total += abs(order.index(repr(a[k])) - order.index(repr(b[k])))
    return total


def _resources(c: Candidate, args: tuple, ordinal: int) -> Any:
    """What the GPU code of a configuration takes; None where it is not in the cache on disk."""
    from cutile.compilation.launch_signature import of_launch
    from cutile.gpu import selection
    from cutile.gpu.cubin_resources import read
    from cutile.gpu.driver import driver

    arguments = c.kernel.classify(args)
    constraints, symbol = of_launch(c.kernel, arguments)
    target = driver().device(ordinal).target
    code = selection.cached(c.kernel.program(arguments).kernel, constraints, target, c.kernel.options, symbol)
    try:
        return None if code is None else read(code, symbol)
    except ValueError:
        return None
