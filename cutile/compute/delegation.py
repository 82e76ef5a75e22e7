"""Sorts through an installed cuda-cccl, on GPU arrays: what tiles cannot do at the speed of the hardware [DLG-*].

It never changes a result. So it is for fewer than 2^31 numbers of NumPy's dtypes in contiguous arrays, for `radix_sort`
without a DoubleBuffer, and for `segmented_sort` of integers without values, whose equal keys cannot be told apart.
Whatever has an operator in Python runs in kernels of this language.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import cutile as ct
from cutile import settings
from cutile.compute.algorithm import WIDE, Algorithm
from cutile.compute.arrays import NOWHERE
from cutile.compute.iterators.memory import ArrayIterator
from cutile.compute.plans import Plan, is_for_user
from cutile.compute.value_types import Number, storage
from cutile.runtime.launch_cache import is_current
from cutile.runtime.scratch import gpu, stream_handle
from cutile.tracebacks import for_users

INTEGERS = (ct.int8, ct.int16, ct.int32, ct.int64, ct.uint8, ct.uint16, ct.uint32, ct.uint64)
NUMBERS = (*INTEGERS, ct.float16, ct.float32, ct.float64)
OFFSETS = (ct.int32, ct.int64)
MISSING = "CUTILE_COMPUTE=cccl, but {}: pip install 'cutile[compute]', or CUTILE_COMPUTE=own"


def backend(name: str | None = None) -> str:
    """Which way sorts on GPU arrays run that cuda-cccl may do, as CUTILE_COMPUTE says; or choose it for this process.

    "auto" and "cccl" run them through cuda-cccl, "own" in kernels of this language. "auto", the default, does so where
    the package can be imported; with "cccl" calls are an ImportError where it cannot. The results are equal. Objects
    keep the choice with which they were made.

    Parameters
    ----------
    name : {"auto", "own", "cccl"}, optional
        The new choice. By default it stays as it is.

    Returns
    -------
    str
        The choice.

    Raises
    ------
    ValueError
        For another name.

    Notes
    -----
    [DLG-1.choice] [DLG-2.equal] [DLG-5.host]

    Examples
    --------
    >>> before = ct.compute.backend()
    >>> ct.compute.backend("own")
    'own'
    >>> ct.compute.backend(before) == before
    True
    """
    if name not in (None, "auto", "own", "cccl"):
        raise ValueError(f"backend() takes 'auto', 'own' or 'cccl', not {name!r}")
    if name is not None:
        _choices[:] = [name]
    return _choices[0] if _choices else settings.get("COMPUTE")


_choices: list[str] = []  # the last one, if there was any


def chosen() -> str:
    """ "cccl" where sorts may run through it, else "own"."""
    if not _choices and settings.untouched("COMPUTE", "BACKEND"):
        return "cccl" if _installed() else "own"
    wanted = backend()
    return "own" if wanted == "own" or settings.on_host() or wanted == "auto" and not _installed() else "cccl"


@functools.cache
def _installed() -> bool:
    try:
        return importlib.util.find_spec("cuda.compute") is not None
    except (ImportError, ValueError):
        return False


@functools.cache
def _package() -> ModuleType | str:
    """cuda.compute, or why it cannot be imported."""
    try:
        import cuda.compute as found
    except Exception as e:  # of its libraries, too
        return f"cuda.compute cannot be imported ({type(e).__name__}: {e})"
    return found if getattr(found, "_BINDINGS_AVAILABLE", False) else "cuda.compute finds no driver"


def trouble() -> str | None:
    """Why cuda.compute cannot be imported; None where it can."""
    found = _package()
    return found if isinstance(found, str) else None


class Delegating(Algorithm):
    """The base of algorithms that may run through cuda-cccl. The last of their options is `chosen()`.

    theirs     the name of the sort in cuda.compute
    dtypes     that items may have there
    their_blob  of an object that came as bytes: what makes their object, without a compiler
    """

    theirs: str
    dtypes: tuple
    their_blob: bytes | None = None

    @property
    def backend(self) -> str:  # type: ignore[override]
        """The way that calls take where cuda-cccl takes the arguments: "own" or "cccl"."""
        return self.options[-1]

    def own(self) -> Delegating:
        return self._with("own")

    def _with(self, backend: str) -> Delegating:
        found = copy.copy(self)
        found.options = (*self.options[:-1], backend)
        return found

    def delegated(self, plan: Plan, items: dict[str, Any], offsets: dict[str, Any], given: dict[str, Any]) -> bool:
        """Put a call of the sort of cuda.compute into a plan, if it takes the arguments; whether it does.

        items, offsets   arguments of make_… and of the call by name: pairs of an operand, or None, and a number of
                         items
        given   other arguments of the call
        ImportError where CUTILE_COMPUTE demands the package, and it cannot be imported.
        """
        many = max(n for _, n in (items | offsets).values())
        if plan.on_host or many >= WIDE or not (_plain(items, self.dtypes) and _plain(offsets, OFFSETS)):
            return False
        package = _package()
        if isinstance(package, str):
            if backend() == "cccl":
                raise ImportError(MISSING.format(package))
            return False
        operands = items | offsets
        pieces = [it.state(n) for it, n in operands.values() if it is not None]
        there = {name: None if it is None else (storage(it.value_type), n) for name, (it, n) in operands.items()}
        calls = _Calls(self._maker(package), there, given, plan.device)
        nbytes = calls.nbytes(plan.places(pieces), plan.roots())
        calls.places = plan.places([*pieces, plan.array(nbytes, ct.uint8)])
        plan.step(calls)
        return True

    def _maker(self, package: ModuleType) -> Callable:
        """What makes an object of cuda.compute of its operands."""
        if self.their_blob is not None:
            blob = self.their_blob
            return lambda **operands: package.deserialize(blob)
        return functools.partial(getattr(package, f"make_{self.theirs}"),
                                 order=package.SortOrder[self.options[0].name])

    def delegated_part(self, capabilities: tuple[tuple[int, int], ...]) -> tuple[str, bytes] | None:
        package = _package() if self.backend == "cccl" and not self.options[1] and capabilities else ""
        types = {name: kind and _dtype_of(kind, OFFSETS if "offsets" in name else self.dtypes)
                 for name, kind in self.kinds.items()}
        if isinstance(package, str) or False in types.values():
            return None
        operands = {name: t and package.ProxyArray(t) for name, t in types.items()}
        made = self._maker(package)(**operands, compute_capability=list(capabilities))
        return version(), package.serialize(made)

    def with_delegated_part(self, made_by: str, blob: bytes) -> Delegating:
        if made_by != version() or isinstance(_package(), str):
            return self.own()
        found = self._with("cccl")
        found.their_blob = blob
        return found


def _dtype_of(kind: Any, dtypes: tuple) -> Any:
    """NumPy's dtype of an array of this kind; False for what is no array of one of the dtypes."""
    name, t, *_ = kind
    return storage(t) if name == "array" and isinstance(t, Number) and t.dtype in dtypes else False


def version() -> str:
    """The version of cuda-cccl that is installed; "" without one."""
    from importlib import metadata

    try:
        return metadata.version("cuda-cccl")
    except metadata.PackageNotFoundError:
        return ""


def _plain(operands: dict[str, Any], dtypes: tuple) -> bool:
    """Whether they are contiguous arrays of these dtypes, where they are there."""
    return all(type(it) is ArrayIterator and isinstance(it.value_type, Number) and it.value_type.dtype in dtypes
               and it.array.stride == it.array.itemsize for it, _ in operands.values() if it is not None)


class _Stream:
    def __init__(self) -> None:
        self.handle = 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class _Array:
    """A line of numbers as cuda.compute takes it, which each call puts to another address."""

    def __init__(self, dtype: np.dtype, size: int):
        self.dtype, self.nbytes, self.size = dtype, size * dtype.itemsize, size
        self.data, self.ptr = self, NOWHERE  # as of arrays of CuPy, which they read in less time than others

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.size,), "strides": None, "typestr": self.dtype.str, "data": (self.ptr, False),
                "version": 3}


class _Calls:
    """A step of a plan that calls an object of cuda.compute, of which each thread has its own: it is for one thread at
    a time.

    make      makes it, given its operands
    operands  dtype and size of each array, by its argument; None for one that is missing
    given     all other arguments of a call
    places    root and byte of each array, and of temporary storage
    """

    places: Sequence[tuple[int, int]]

    def __init__(self, make: Callable, operands: dict[str, tuple[np.dtype, int] | None], given: dict[str, Any],
                 device: Any):
        self._make, self._operands, self._given = make, operands, given
        self._gpu, self._of_thread, self._bytes = gpu(device), threading.local(), 0
        self._is_current = is_current(self._gpu) or (lambda: False)

    def nbytes(self, places: Sequence[tuple[int, int]], roots: Sequence[int]) -> int:
        """Of temporary storage, for arrays there."""
        with self._gpu.current():
            run, arrays, scratch, _, given = self._here()
            for array, (root, moved) in zip(arrays[:-1], places, strict=True):
                array.ptr = roots[root] + moved
            self._bytes = run(**given | {"temp_storage": None, "stream": None})
        scratch.nbytes = scratch.size = self._bytes
        return self._bytes

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        self._call(roots, stream)

    def in_c(self, alignment: int) -> Callable[[list, Any], None]:
        """What C code calls (`run_steps`)."""
        return self._call

    def _call(self, roots: list, stream: Any) -> None:
        entered = not self._is_current() and self._gpu.enter()
        try:
            try:
                run, arrays, queue, given = self._of_thread.found
            except AttributeError:
                run, arrays, queue, given = self._placed()
            for array, root, moved in arrays:
                array.ptr = roots[root] + moved
            if stream is None:
                given["stream"] = None
            else:
                queue.handle = stream_handle(stream)
                given["stream"] = queue if queue.handle else None  # which they read in less time
            return run(**given)
        except Exception as e:
            if not is_for_user(e):
                raise
            error = for_users(e)
        finally:
            if entered:
                self._gpu.leave()
        raise error from error.__cause__

    def _placed(self) -> tuple:
        """What this thread calls; the arrays that it passes, with their places; the stream; all arguments."""
        run, arrays, _, queue, given = self._here()
        found = run, [(array, *place) for array, place in zip(arrays, self.places, strict=True)], queue, given
        self._of_thread.found = found
        return found

    def _here(self) -> tuple:
        """The same without the places; the last one of the arrays is temporary storage, which stands by itself, too."""
        try:
            return self._of_thread.made
        except AttributeError:
            arrays = {name: x and _Array(*x) for name, x in self._operands.items()}
            scratch, queue = _Array(np.dtype(np.uint8), self._bytes), _Stream()
            given = {**arrays, **self._given, "temp_storage": scratch, "stream": queue}
            found = self._make(**arrays), [*(a for a in arrays.values() if a), scratch], scratch, queue, given
            self._of_thread.made = found
            return found
