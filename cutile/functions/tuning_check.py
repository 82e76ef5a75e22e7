"""Whether configurations of a search store the same [TUN-5]."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from cutile._support.structs import cached, field, structure
from cutile.analysis.aliasing import written_params
from cutile.dtypes import INFO
from cutile.errors import refusal
from cutile.functions import libraries
from cutile.runtime import launch as launching
from cutile.runtime import launch_plan
from cutile.runtime.arguments import array_of
from cutile.runtime.kernel import Kernel
from cutile.runtime.restoring import restored
from cutile.tune.trial import Copied, copied

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

SLACK = 2.0**-13  # of the largest element: what sums in another order may differ by
ULPS = 4  # of the dtype of an output
PART = 1 << 15  # elements that are compared at once: as float64 they stay in a processor's cache
MANY, THREADS = 16, 8  # parts from which on threads compare them, and how many


@structure(frozen=True)
class Outputs:
    """Which parameters a function returns. The elements of those in `fresh` are undetermined before a launch."""

    names: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()

    @staticmethod
    def of(f: TileFunction) -> Outputs:
        return Outputs(tuple(n for n in f.kernel.names if n in f.returned),
                       tuple(o.name for o in f.outputs if o.out.fill is None))


@structure(frozen=True)
class Outcome:
    """Arrays that a launch stored to, and those that a function returns, as copies in CPU memory.

    missing   by name, where elements are that no block stored; only of arrays that have such elements
    """

    names: tuple[str, ...]
    arrays: tuple[np.ndarray, ...]
    missing: Mapping[str, np.ndarray] = field(default_factory=dict)

    def only(self, names: Collection[str]) -> Outcome:
        kept = [(n, a) for n, a in zip(self.names, self.arrays) if n in names]
        return Outcome(tuple(n for n, _ in kept), tuple(a for _, a in kept), self.missing)

    @staticmethod
    def of_reference(given: Any, names: Sequence[str]) -> Outcome:
        """What a reference returned for outputs with these names: one array, or a tuple of them. TypeError for anything
        else.
        """
        arrays = referred(given, names)
        return Outcome(tuple(f"output {i}" for i in range(len(arrays))), tuple(arrays))

    @cached
    def scales(self) -> tuple[float, ...]:
        """The largest finite magnitude in each array."""
        return tuple(max(_at_once(_largest, _parts(a)), default=0.0) for a in self.arrays)


@structure(frozen=True)
class Differing:
    """Where an array differs from what is expected: the first such element, and how many there are.

    allowed   how far elements may be away; None of integers, which must be equal
    """

    name: str
    index: tuple[int, ...]
    got: Any
    want: Any
    count: int
    size: int
    allowed: float | None = None

    @property
    def how_many(self) -> str:
        return f"{self.count} of {self.size} elements differ"

    def __str__(self) -> str:
        return f"`{self.name}`{list(self.index)} is {self.got} instead of {self.want}, and {self.how_many}"


def referred(given: Any, names: Sequence[str]) -> list[np.ndarray]:
    """The arrays that a reference returned, in CPU memory. TypeError for what is none."""
    found = []
    for item in given if isinstance(given, tuple | list) else (given,):
        try:
            a = None if isinstance(item, dict | set | str | bytes) else np.asarray(on_host(item))
        except (TypeError, ValueError):
            a = None
        if a is None or a.dtype.kind in "OUSMm":
            what = type(item).__name__ if item is given else f"{type(item).__name__} in a {type(given).__name__}"
            what = "None" if given is None else f"a {what}"
            raise refusal(TypeError(f"the reference returned {what}; return {in_order(names)}"))
        found.append(a)
    return found


def in_order(names: Sequence[str]) -> str:
    """What a reference is to return, in words."""
    return f"one array, for `{names[0]}`" if len(names) == 1 else f"a tuple in the order ({', '.join(names)})"


def _count(n: int) -> str:
    return f"{n} array{'s' * (n != 1)}"


def on_host(a: Any) -> np.ndarray:
    """A copy of an array in CPU memory."""
    c: Any = copied(a) if array_of(a) is not None else np.asarray(a)
    if not isinstance(c, Copied):
        return c
    storage = INFO[c.dtype].storage
    return np.ndarray(c.shape, storage, c.memory, c.first, tuple(s * storage.itemsize for s in c.strides))


# ------------------------------------------------------------------ what a launch stores


def outcome_of(kernel: Kernel, grid: Any, args: tuple, stream: Any, outputs: Outputs) -> Outcome:
    """What a launch stores. Afterwards the arrays are as before."""
    try:
        plan, values = launch_plan.find(kernel, args, stream)
    except Exception:
        launching.launch(stream, grid, kernel, args)  # raises the error
        raise
    program = plan.program.kernel
    stored = {n for p, n in zip(program.params, program.param_names) if p in written_params(program)}
    wanted = stored.union(outputs.names)
    arrays = {n: a for n, a in zip(kernel.names, args) if n in wanted and array_of(a) is not None}

    def run() -> None:
        launching.launch(stream, grid, kernel, args)
        wait(plan.ordinal, stream)

    with restored(plan, values, stream):
        run()
        got = {n: on_host(a) for n, a in arrays.items()}
    doubtful = {n: arrays[n] for n in got if n in outputs.fresh and as_begun(got[n]).any()}
    if not doubtful:
        return Outcome(tuple(got), tuple(got.values()))
    with restored(plan, values, stream):
        for a in doubtful.values():
            clear(a)
        run()
        missing = {n: as_begun(got[n]) & ~_set_bits(on_host(a)) for n, a in doubtful.items()}
    return Outcome(tuple(got), tuple(got.values()), {n: m for n, m in missing.items() if m.any()})


def as_begun(a: np.ndarray) -> np.ndarray:
    """Which elements are what elements of an output begin as, so that it is not known whether a block stored them."""
    begun = libraries.beginning(a.dtype)
    return np.asarray(a != a) if begun != begun else np.asarray(a == begun)


def clear(a: Any) -> None:
    """Set all bits of an output to 0, which no element begins as."""
    ref = array_of(a)
    if isinstance(ref.owner, np.ndarray):
        ref.owner.fill(0)
    elif ref.owner is None and ref.size:
        from cutile.gpu.driver import driver

        d = driver()
        ordinal = d.device_of_pointer(ref.pointer) if ref.device is None else ref.device
        with d.device(ordinal).current():
            d.ask("GPU memory cannot be written", d.api.cuMemsetD8(ref.pointer, 0, ref.size * ref.itemsize))
            wait(ordinal, None)


def _set_bits(a: np.ndarray) -> np.ndarray:
    """Which elements have a bit that is 1."""
    return np.ascontiguousarray(a).view(np.uint8).reshape(*a.shape, a.dtype.itemsize).any(axis=-1)


def wait(ordinal: int | None, stream: Any) -> None:
    if ordinal is not None:
        from cutile.gpu.driver import driver
        from cutile.gpu.streams import handle

        d = driver()
        with d.device(ordinal).current():
            d.ask("the kernel failed", d.api.cuStreamSynchronize(handle(stream)))


def copies(args: Any) -> Any:
    """Arguments with copies of the arrays among them, by the means of their libraries: others may change them."""
    if isinstance(args, dict):
        return {n: copies(a) for n, a in args.items()}
    if isinstance(args, tuple | list):
        return type(args)([copies(a) for a in args])
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(args, torch.Tensor):
        return args.detach().clone()
    copy = getattr(args, "copy", None)
    return copy() if callable(copy) and hasattr(args, "shape") and hasattr(args, "dtype") else args


# ------------------------------------------------------------------ whether it is the same


def agree(got: Outcome, want: Outcome) -> str | None:
    """Where two outcomes differ by more than sums in another order may; None if they do not.

    Integers must be equal. Floats may differ by 2**-13 of the largest element, and by 4 ulp of the dtype at it.
    """
    if len(got.arrays) != len(want.arrays):
        return (f"the reference returned {_count(len(want.arrays))}, and the kernel stores to "
                f"{_count(len(got.arrays))}; return {in_order(got.names)}")
    for name, a, b in zip(got.names, got.arrays, want.arrays):
        if a.shape != b.shape:
            return f"`{name}` has shape {a.shape} instead of {b.shape}"
    found = differing(got, want)
    if found is not None and (where := got.missing.get(found.name)) is not None and where[found.index]:
        return f"no block stores {elements(found.name, where)}"
    if found is None:
        return None
    limit = "integers must be equal" if found.allowed is None else f"{found.allowed:.3g} is allowed"
    return f"{found}; {limit}; give check= where results may differ by more"


def elements(name: str, where: np.ndarray) -> str:
    """The first element of a mask, and how many there are."""
    index = list(map(int, np.argwhere(where)[0])) if where.any() else []
    return f"element {index} of `{name}`; there are {int(where.sum())} such elements, of {where.size}"


def differing(got: Outcome, want: Outcome, but: Mapping[str, np.ndarray] | None = None) -> Differing | None:
    """The first elements that differ; None if there are none. The arrays have equal shapes.

    but   elements that do not count, by name
    """
    for name, a, b, scale in zip(got.names, got.arrays, want.arrays, want.scales):
        near, skipped = scale * max(SLACK, ULPS * _epsilon(a.dtype)), (but or {}).get(name)
        masks = [None] * -(-a.size // PART) if skipped is None else _parts(skipped)
        counted = _at_once(functools.partial(_count_wrong, near), list(zip(_parts(a), _parts(b), masks)))
        count = sum(n for n, _ in counted)
        if count:
            at = next(k * PART + first for k, (n, first) in enumerate(counted) if n)
            index = tuple(map(int, np.unravel_index(at, a.shape)))
            integers = a.dtype.kind in "biu" and b.dtype.kind in "biu"
            return Differing(name, index, a[index], b[index], count, a.size, None if integers else near)
    return None


def _parts(a: np.ndarray) -> list[np.ndarray]:
    flat = np.ascontiguousarray(a).reshape(-1)
    return [flat[i:i + PART] for i in range(0, flat.size, PART)]


def _at_once(f: Callable[[Any], Any], parts: list) -> list:
    """What a function gives for each part; in threads where they are many, since NumPy lets these run at once."""
    if len(parts) < MANY:
        return list(map(f, parts))
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(f, parts))


def _count_wrong(near: float, part: tuple) -> tuple[int, int]:
    """How many elements of a part are wrong, and the position of the first."""
    a, b, aside = part
    wrong = _wrong(a, b, near)
    if wrong is None:
        return 0, -1
    if aside is not None:
        wrong &= ~aside
    return int(np.count_nonzero(wrong)), int(wrong.argmax())


def _wrong(a: np.ndarray, b: np.ndarray, near: float) -> np.ndarray | None:
    """Which elements differ too much; None if all bits are equal."""
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return None
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return np.asarray(a != b)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        right = np.abs(x - y) <= near
        if not right.all():
            right |= (x == y) | (np.isnan(x) & np.isnan(y))
    return np.asarray(~right)


def _largest(a: np.ndarray) -> float:
    """The largest finite magnitude."""
    x = np.abs(a.astype(np.float64))
    return float(np.max(x, initial=0.0, where=np.isfinite(x)))


def _epsilon(dtype: np.dtype) -> float:
    import ml_dtypes

    if dtype.kind in "biu":
        return 0.0
    return float(ml_dtypes.finfo(dtype).eps)
