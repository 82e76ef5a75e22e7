"""Which configurations of a search are right [TUN-5].

With a reference each configuration is compared with what it returned. Without one they are compared with each other,
and none of them is trusted: all that ran must store the same. One that leaves elements of an output which another
stores is wrong, whichever came first. Where two of them store different values, nobody can say which is right, and the
search ends with an error; so it does where no configuration stores some element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutile._support.structs import replace, structure
from cutile.errors import refusal
from cutile.functions.tuning_check import Outcome, Outputs, agree, differing, elements
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


class DisagreementError(ValueError):
    """Configurations store different values, and there is no reference."""


class Judge:
    """Compares what configurations store.

    name      of the function
    expected  what the reference returned; None without one
    check     compares in the place of `agree`, if it is given
    """

    def __init__(self, name: str, expected: Outcome | None, check: Callable[[Any, Any], Any] | None = None):
        self.name, self.check = name, check
        self._reference = expected
        self._stored: Outcome | None = None  # what configurations have stored so far, all together
        self._by: Trial | None = None  # the last one that added to these
        self._missing: dict[str, np.ndarray] = {}  # elements that none of them has stored
        self._right: list[Trial] = []  # those that stored all that any of them did

    def hear(self, t: Trial, outcome: Outcome, outputs: Outputs) -> None:
        """Compare what a configuration stored, of a function with these outputs. ValueError, or what the caller's check
        raises, if it is wrong, and DisagreementError if nobody knows which one is. Those that were right before may
        become failures.
        """
        if self._reference is not None:
            self._against_reference(outcome, outputs)
        elif self._stored is None:
            self._stored, self._by, self._missing = outcome, t, dict(outcome.missing)
            self._right.append(t)
        else:
            self._against_others(t, outcome, self._stored)

    def close(self) -> None:
        """ValueError for elements that no configuration stored, if there were some that ran."""
        for name, where in self._missing.items() if self._right else ():
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
            self.check(outcome.arrays, want.arrays)
        elif (why := agree(outcome, want)) is not None:
            raise ValueError(why)

    def _against_others(self, t: Trial, outcome: Outcome, stored: Outcome) -> None:
        self._must_agree(t, outcome, stored)
        for name, before in list(self._missing.items()):
            new = before & ~outcome.missing.get(name, np.zeros_like(before))
            if new.any():
                self._add(t, outcome, name, new)
        for name, where in outcome.missing.items():
            lacks = where & ~self._missing.get(name, np.zeros_like(where))
            if lacks.any():
                raise ValueError(f"no block stores {elements(name, lacks)}. Other configurations store to them")
        self._right.append(t)

    def _must_agree(self, t: Trial, outcome: Outcome, stored: Outcome) -> None:
        assert self._by is not None
        first = self._right[0] if self._right else self._by
        shapes = [a.shape for a in outcome.arrays], [a.shape for a in stored.arrays]
        if outcome.names != stored.names or shapes[0] != shapes[1]:
            raise self._disagreement(f"{t.config} stores to {_arrays(outcome)}, {first.config} to {_arrays(stored)}")
        if self.check is not None:
            if outcome.missing or self._missing:
                return
            try:
                self.check(outcome.arrays, stored.arrays)
            except Exception as e:
                raise self._disagreement(f"check= refuses what {t.config} stores beside {first.config}: "
                                         f"{type(e).__name__}: {e}") from e
            return
        aside = {n: outcome.missing.get(n, False) | self._missing.get(n, False)
                 for n in {*outcome.missing, *self._missing}}
        found = differing(outcome, stored, aside)
        if found is not None:
            raise self._disagreement(f"`{found.name}`{list(found.index)} is {found.got} with {t.config} and "
                                     f"{found.want} with {first.config}; {found.how_many}")

    def _disagreement(self, how: str) -> DisagreementError:
        return refusal(DisagreementError(
            f"{self.name}: its configurations store different values, and without reference= nobody can say which are "
            f"right, so none is kept. {how}. Give ct.autotune reference=, a function of the arguments that returns "
            f"what is right" + ("" if self.check is not None else ", and check= where results may differ by more")))

    def _add(self, t: Trial, outcome: Outcome, name: str, new: np.ndarray) -> None:
        """Elements that this configuration stores, and none before did: those before are wrong."""
        assert self._stored is not None
        for other in self._right:
            other.fail(f"no block stores {elements(name, new)}. {t.config} stores to them")
        self._right, self._by = [], t
        arrays = tuple(np.where(new, got, have) if n == name else have
                       for n, got, have in zip(outcome.names, outcome.arrays, self._stored.arrays))
        self._stored = replace(self._stored, arrays=arrays)
        left = self._missing.pop(name) & ~new
        if left.any():
            self._missing[name] = left


def _arrays(outcome: Outcome) -> str:
    return ", ".join(f"{n} {list(a.shape)}" for n, a in zip(outcome.names, outcome.arrays)) or "no array"
