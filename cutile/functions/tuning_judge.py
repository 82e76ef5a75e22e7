"""Which configurations of a search are right [TUN-5].

With a reference each configuration is compared with what it returned. Without one they are compared with each other,
and none of them is trusted. One that leaves elements of an output which another stores is wrong, whichever came first.
The others must store the same: where two of them store different values, nobody can say which is right, and the search
ends with an error; so it does where no configuration stores some element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.functions.tuning_check import Outcome, Outputs, agree, differing, elements
from cutile.functions.tuning_key import HINTS
from cutile.tune.candidates import Candidate


@structure(eq=False)
class Trial:
    """A configuration of a search.

    us      what a run took, infinity if there was none
    why     it failed
    cycles  estimated; None where there is no estimate
    """

    config: dict[str, Any]
    candidate: Candidate | None = None
    us: float = float("inf")
    why: str = ""
    cycles: float | None = None

    @property
    def rank(self) -> float:
        return float("inf") if self.cycles is None else self.cycles

    def fail(self, why: str) -> None:
        self.us, self.why = float("inf"), why


class Judge:
    """Compares what configurations store.

    name      of the function
    expected  what the reference returned; None without one
    check     compares in the place of `agree`, if it is given
    """

    def __init__(self, name: str, expected: Outcome | None, check: Callable[[Any, Any], Any] | None = None):
        self.name, self.check = name, check
        self._reference = expected
        self._missing: dict[str, np.ndarray] | None = None  # elements that none has stored; None before the first
        self._right: list[Trial] = []  # those that stored all that any of them did
        self._stored: Outcome | None = None  # by the first of these
        self._dispute: ValueError | None = None  # about which of these stores other values
        self._misused: TypeError | None = None  # by a check that returns something else than it may

    def hear(self, t: Trial, outcome: Outcome, outputs: Outputs) -> None:
        """Compare what a configuration stored, of a function with these outputs. ValueError, or what the caller's check
        raises, if it is wrong. Those that were right before may become failures.
        """
        if self._reference is not None:
            self._against_reference(outcome, outputs)
        else:
            self._must_have_stored_all(t, outcome)
            if self._stored is None:
                self._stored = outcome
            elif self._dispute is None:
                self._dispute = self._disagreement(t, outcome, self._stored)
            self._right.append(t)

    def close(self) -> None:
        """ValueError if configurations that lack nothing disagree, and for elements that none of them stored; TypeError
        if the caller's check returned what says nothing.
        """
        if self._misused is not None:
            raise self._misused
        if self._dispute is not None:
            raise self._dispute
        for name, where in (self._missing or {}).items() if self._right else ():
            raise refusal(ValueError(
                f"{self.name}: no configuration stores {elements(name, where)}. Is the grid too small, or does the "
                f"output have another shape? If these elements are not meant to be stored, declare the output with "
                f"fill="))

    def _against_reference(self, outcome: Outcome, outputs: Outputs) -> None:
        """A reference may return what the function returns, or all arrays that the kernel stores to."""
        want = self._reference
        assert want is not None
        if len(want.arrays) == len(outputs.names):
            outcome = outcome.only(outputs.names)
        if self.check is not None:
            self._ask(outcome, want)
        elif (why := agree(outcome, want)) is not None:
            raise ValueError(why)

    def _must_have_stored_all(self, t: Trial, outcome: Outcome) -> None:
        """ValueError for a configuration that lacks what another one stores. If it stores what the right ones so far
        lack, these are wrong.
        """
        before = outcome.missing if self._missing is None else self._missing
        self._missing = {n: both for n, where in before.items()
                         if n in outcome.missing and (both := where & outcome.missing[n]).any()}
        for name, where in before.items():
            if (new := _but(where, self._missing.get(name))).any():
                for other in self._right:
                    other.fail(f"no block stores {elements(name, new)}. {t.config} stores to them")
                self._right, self._stored, self._dispute = [], None, None
        for name, where in outcome.missing.items():
            if (lacks := _but(where, self._missing.get(name))).any():
                raise ValueError(f"no block stores {elements(name, lacks)}. Other configurations store to them")

    def _disagreement(self, t: Trial, outcome: Outcome, stored: Outcome) -> ValueError | None:
        """An error if a configuration stores other values than the first right one; None if it does not."""
        first = self._right[0]
        shapes = [a.shape for a in outcome.arrays], [a.shape for a in stored.arrays]
        if outcome.names == stored.names and (differ := [n for n, a, b in zip(outcome.names, *shapes) if a != b]):
            on = [f"`{k}`" for k in t.config if t.config[k] != first.config.get(k) and k not in HINTS]
            return refusal(ValueError(
                f"{self.name}: the shape of `{differ[0]}` depends on {' or '.join(on) or 'the configuration'}, so "
                f"results cannot be compared: {t.config} stores to {_arrays(outcome)}, {first.config} to "
                f"{_arrays(stored)}. Give ct.autotune reference=, a function of the arguments that returns what is "
                f"right, and check=, which compares outputs of any of these shapes with it"))
        if outcome.names != stored.names:
            return self._dispute_of(f"{t.config} stores to {_arrays(outcome)}, {first.config} to {_arrays(stored)}")
        if self.check is None:
            d = differing(outcome, stored, self._missing)
            return d and self._dispute_of(f"`{d.name}`{list(d.index)} is {d.got} with {t.config} and {d.want} with "
                                          f"{first.config}; {d.how_many}")
        try:
            if not self._missing:
                self._ask(outcome, stored)
        except Exception as e:
            found = self._dispute_of(f"{t.config} beside {first.config}: {e}")
            found.__cause__ = e.__cause__
            return found
        return None

    def _ask(self, got: Outcome, want: Outcome) -> None:
        """ValueError where the caller's check raises or returns False."""
        assert self.check is not None
        try:
            answer = self.check(got.arrays, want.arrays)
        except Exception as e:
            raise ValueError(f"check= raised {type(e).__name__}: {e}") from e
        if answer is None or isinstance(answer, bool | np.bool_) and answer:
            return
        if not isinstance(answer, bool | np.bool_):
            shown = "an array" if getattr(answer, "shape", ()) else f"{answer!r:.100}"
            self._misused = refusal(TypeError(
                f"{self.name}: check= returned {shown}; it gets two tuples of arrays, what a configuration "
                f"stored and what is expected, and raises or returns False where they differ too much"))
        raise ValueError("check= returned False" if self._misused is None else str(self._misused))

    def _dispute_of(self, how: str) -> ValueError:
        return refusal(ValueError(
            f"{self.name}: its configurations store different values, and without reference= nobody can say which are "
            f"right, so none is kept. {how}. Give ct.autotune reference=, a function of the arguments that returns "
            f"what is right" + ("" if self.check is not None else ", and check= where results may differ by more")))


def _but(where: np.ndarray, without: np.ndarray | None) -> np.ndarray:
    return where if without is None else where & ~without


def _arrays(outcome: Outcome) -> str:
    return ", ".join(f"{n} {list(a.shape)}" for n, a in zip(outcome.names, outcome.arrays)) or "no array"
