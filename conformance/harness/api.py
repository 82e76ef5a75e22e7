"""What tests import: the implementation's module as `ct`, `@clause`, and ways to state what must happen.

    from conformance.harness.api import ct, clause, run, refuses

    @clause("UN-4.exp2.ninf")
    def test_exp2_of_minus_infinity():
        @ct.kernel
        def k(x, out): ct.store(out, 0, ct.exp2(ct.load(x, 0, 4)))
        out = run(k, f32([-inf] * 4), f32([1] * 4))
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from conformance import adapters
from conformance.harness import absent, watchdog

impl = adapters.load(os.environ.get("CONFORMANCE_IMPL", "cutile:interp"))
ct, ABSENT = absent.filled(impl.ct)  # the API, and the names that it lacks


def clause(*ids: str) -> Callable:
    """Marks a test that shows whether these clauses hold. Ids are those of conformance/spec."""
    return pytest.mark.clause(*ids)


def needs(*features: str) -> Callable:
    """Marks a test that applies only to implementations with these features."""
    missing = sorted(set(features) - impl.features)
    return pytest.mark.skipif(bool(missing), reason=f"not applicable: {impl.name} has no {', '.join(missing)}")


def named(value: Any) -> str:
    """The name of a parameter in a test's id, without addresses, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def launch(kernel: Any, *args: Any, grid: Sequence[int] = (1,)) -> None:
    """Run a kernel over a grid."""
    watchdog.feed()
    impl.launch(tuple(grid), kernel, args)


def run(kernel: Any, *args: Any, grid: Sequence[int] = (1,)) -> Any:
    """Run a kernel and give its last array argument, which by custom is the output."""
    launch(kernel, *args, grid=grid)
    return next(a for a in reversed(args) if isinstance(a, np.ndarray))


def accepts(kernel: Any, *args: Any) -> None:
    """Assert that the kernel compiles for these arguments."""
    watchdog.feed()
    (impl.judge or impl.compile)(kernel, args)


def refuses(error: str | tuple[str, ...], kernel: Any, *args: Any, match: str | None = None) -> Any:
    """Assert that the kernel does not compile for these arguments. `error` names the public class, or several."""
    if impl.judge:
        return impl.judge(kernel, args)
    watchdog.feed()
    names = (error,) if isinstance(error, str) else error
    with pytest.raises(tuple(impl.error(n) for n in names), match=match) as found:
        impl.compile(kernel, args)
    return found.value


def fails(error: type[BaseException] | tuple, kernel: Any, *args: Any, grid: Any = (1,),
          match: str | None = None) -> None:
    """Assert that launching raises a Python error, as for misuse of the host API [ERR-11]."""
    if impl.judge:
        impl.judge(kernel, args)
        return
    watchdog.feed()
    with pytest.raises(error, match=match):
        impl.launch(grid, kernel, args)


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Assert that arrays are equal bit for bit; any NaN equals any NaN."""
    got, want = np.asarray(got), np.asarray(want)
    same = got.dtype == want.dtype and got.shape == want.shape
    assert same, f"{got.dtype}{got.shape} is not {want.dtype}{want.shape}"
    ok = (got == want) & (np.signbit(got) == np.signbit(want)) if got.dtype.kind not in "biu" else got == want
    if got.dtype.kind not in "biu":
        ok |= np.isnan(got) & np.isnan(want)
    bad = np.argwhere(~ok)
    assert not len(bad), f"{len(bad)} of {got.size} differ, first at {tuple(bad[0])}: got {got[tuple(bad[0])]!r}, " \
                         f"wanted {want[tuple(bad[0])]!r}"


def within_ulp(got: np.ndarray, exact: np.ndarray, ulp: float) -> None:
    """Assert that `got` is within `ulp` units in the last place of a reference computed in float64 or better."""
    got, exact = np.asarray(got), np.asarray(exact)
    unit = np.spacing(np.abs(exact).astype(got.dtype)).astype(np.float64)
    error = np.abs(got.astype(np.float64) - exact.astype(np.float64)) / unit
    special = ~np.isfinite(exact) | (np.asarray(exact).astype(got.dtype) == got)
    error = np.where(special, np.where(_equal(got, exact.astype(got.dtype)), 0, np.inf), error)
    worst = np.unravel_index(np.nanargmax(error), error.shape)
    assert error[worst] <= ulp, (f"{error[worst]:.2f} ulp at {worst}: got {got[worst]!r}, exact {exact[worst]!r}, "
                                 f"allowed {ulp}")


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | np.isnan(a) & np.isnan(b)
