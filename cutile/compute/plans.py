"""Plans: the launches of an algorithm for arguments of one signature, with temporary storage. Calls run them again.

An algorithm makes a plan by `plan.launch(…)`, in the order in which the launches run. Their arguments are made of the
operands' states and of temporary storage. A plan keeps no array: of each it notes which *root* it is part of. The roots
of a call are the addresses of its arrays, or the arrays themselves in host memory, and its numbers, one for each slot
of its operands (`iterators/base.py`); the last root is temporary storage.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from cutile import settings
from cutile._support import trace
from cutile._support.lru import LruDict
from cutile.compute.arrays import NOWHERE, DeviceArray, Held, Piece, Temporary, on_gpu, read_in_c
from cutile.compute.captured import Capturing
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import Stored
from cutile.compute.operators import Operator
from cutile.compute.overlaps import Alike, Apart, Line, layout, shared
from cutile.compute.steps import ArrayInPlan, Call, Either, FromRoot, Part, Step
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import DType, info, uint8
from cutile.errors import TileError, TileSanitizerError, is_refusal
from cutile.front.context import Hidden
from cutile.runtime import ahead, autograd, launch_cache
from cutile.runtime.array_ref import GPU, ref_of
from cutile.runtime.autograd import Written, before_writing
from cutile.runtime.launch_key import find_reader
from cutile.runtime.launch_plan import check_on_host
from cutile.runtime.scratch import Scratch, for_c, stream_handle, stream_readers
from cutile.tracebacks import for_users

ALIGNMENT = 256  # of the arrays in temporary storage, and of temporary storage on a GPU

F = TypeVar("F", bound=Callable)


def told_to_users(function: F) -> F:
    """A function whose errors of kernels show the user's frames only."""
    @functools.wraps(function)
    def running(*args):
        try:
            return function(*args)
        except Exception as e:
            if not is_for_user(e):
                raise
            error = for_users(e)
        raise error from error.__cause__

    return running  # type: ignore[return-value]


class Plan:
    """The launches for arguments of one signature.

    device  the ordinal of the GPU; None where the arrays are in host memory
    nbytes  of temporary storage; one at least, as in CUB
    """

    def __init__(self, operands: Sequence[Any]):
        slots = [slot for x in operands if hasattr(x, "slots") for slot in x.slots()]
        self._positions = {id(slot): i for i, slot in enumerate(slots)}
        self._slots = slots  # kept while the plan is made, since their addresses tell them apart
        arrays = [s for s in slots if isinstance(s, DeviceArray)]
        there = next((a for a in arrays if a.host is None), None)
        self.device = None if there is None else there.device
        self.storage = DeviceArray(Number(uint8), 0, 0, 1, self.device, True, None, None)
        self._positions[id(self.storage)] = len(slots)
        self.watched = any(isinstance(x, Operator) and x.watched for x in operands) or any(
            it.watched() for it in operands if isinstance(it, IteratorBase))
        self._repeatable = bool(arrays)
        self._steps: list[Any] = []  # each with a method `run`
        captured = self._find_captured(operands)
        self._hidden, self._captured = tuple(captured), tuple(captured.values())
        self._used, self._largest = 0, 1
        self._compiled = self.device is None  # whether the launches need no more code
        self._ready: dict[int, tuple] = {}  # the first steps as C code runs them, by the alignment of temporary storage
        self.for_c: tuple | None = None  # all of them, as `call_algorithm` in runtime/_launcher.c takes them
        self.large_enough: Any = None  # the part of a key of temporary storage that was checked last
        self.used = False  # see LruDict

    # -------------------------------------------------------------- for algorithms

    @property
    def on_host(self) -> bool:
        """Whether kernels run in host memory, where other sizes of tiles take less time."""
        return self.device is None

    @property
    def captures(self) -> bool:
        """Whether operators capture arrays, which they may update."""
        return bool(self._hidden)

    def array(self, size: int, dtype: DType) -> Temporary:
        """An array in temporary storage."""
        itemsize = info(dtype).storage.itemsize
        found = Temporary(self.storage, dtype, self._used, size)
        self._used += -(-size * itemsize // ALIGNMENT) * ALIGNMENT
        self._largest = max(self._largest, itemsize)
        return found

    def values(self, size: int, t: ValueType) -> Stored:
        """`size` values in temporary storage, as an operand."""
        return Stored(t, [self.array(size, d) for d in t.dtypes])

    def launch(self, blocks: int, kernel: Any, *args: Any) -> None:
        """A launch of a kernel over blocks. `args`: states of operands, arrays in temporary storage, ints, constants,
        and tuples of these.
        """
        if blocks:
            if self._hidden:
                kernel, args = kernel.with_hidden(self._hidden), (*args, *self._captured)
            self._steps.append(Step(self, kernel, blocks, self._template(args)))

    def call(self, function: Callable, *args: Any) -> None:
        """A call of a function of the host between launches. `args`: as those of a launch; in host memory it gets
        NumPy arrays.
        """
        self._steps.append(Call(self, function, self._template(args)))

    def either(self, function: Callable, args: Sequence[Any], otherwise: Callable[[], None]) -> None:
        """In host memory, a call of a function that says whether it did all; if not, the launches and calls follow that
        `otherwise` puts into the plan.
        """
        before, self._steps = self._steps, []
        otherwise()
        rest, self._steps = self._steps, before
        self._steps.append(Either(Call(self, function, self._template(tuple(args))), rest))

    def step(self, step: Any) -> None:
        """What else runs between launches, by its method `run(roots, alignment, stream)`."""
        self._steps.append(step)

    def places(self, arrays: Sequence[Piece | Temporary]) -> list[tuple[int, int]]:
        """Where arrays on a GPU lie: in which root, from which byte on."""
        return [(x.root, x.piece.moved) for x in self._template(tuple(arrays))]

    def apart(self, lines: Sequence[Line], many: int, in_place: bool = False) -> None:
        """What is checked before the launches: that of the lines of memory, the first `many`, which are written, share
        none with any other, or, `in_place`, are alike. ValueError, which names both.
        """
        pairs = [(a, b, in_place and a.is_like(b), *shared(a, b))
                 for k, a in enumerate(lines[:many]) for b in lines[k + 1:]
                 if a.argument != b.argument and a.size > 0 and b.size > 0]
        if pairs:
            self._steps.append(Apart([(a.argument, b.argument, self._positions[id(a.array)],
                                       self._positions[id(b.array)], *rest) for a, b, *rest in pairs],
                                     ", and not item for item" if in_place else ""))

    def _find_captured(self, operands: Sequence[Any]) -> dict[Hidden, Any]:
        """What stands for the arrays that operators capture, with the states of the arrays."""
        found: dict[Hidden, Any] = {}
        for x in operands:
            for hidden, state in x.captured() if isinstance(x, IteratorBase | Capturing) else ():
                if state.array.device != self.device:
                    raise TypeError(f"an array that an operator captures is in {_memory(state.array.device)}, and the "
                                    f"arrays are in {_memory(self.device)}")
                if found.setdefault(hidden, state) is not state:
                    alike = Alike(*(self._positions[id(s.array)] for s in (found[hidden], state)))
                    alike.run(self.roots(), 0, None)
                    self._steps.append(alike)
        return found

    def _template(self, arg: Any) -> Any:
        if isinstance(arg, Piece | Temporary):
            return Part(self._positions[id(arg.array)], arg._replace(array=ArrayInPlan(self.device)),
                        isinstance(arg, Piece) and arg.is_whole())
        if isinstance(arg, Held):
            return FromRoot(self._positions[id(arg)])
        return tuple(map(self._template, arg)) if type(arg) is tuple else arg

    def launches(self) -> Iterator[tuple[Any, tuple]]:
        """The kernel and the arguments of each launch, while no call has run them: temporary storage is nowhere."""
        roots = [*self.roots(), NOWHERE]
        return ((step.kernel, step.arguments(roots)) for step in self._steps if isinstance(step, Step))

    # -------------------------------------------------------------- for calls

    def actual(self, x: Any, roots: list) -> Any:
        """What a template stands for, in a call with these roots."""
        if isinstance(x, Part):
            return (x.piece.on_host if self.device is None else x.piece.on_gpu)(roots[x.root])
        if isinstance(x, FromRoot):
            return roots[x.root]
        return tuple(self.actual(y, roots) for y in x) if type(x) is tuple else x

    def roots(self) -> list:
        """The roots of the operands that it is made with."""
        return [slot.root for slot in self._slots]

    def finish(self, outputs: Sequence[str], names: Sequence[str], args: Sequence[Any]) -> None:
        """No launches follow. `outputs`: which of the arguments, of these names, are written to."""
        self.nbytes = max(self._used, 1)
        tensor: Any = getattr(sys.modules.get("torch"), "Tensor", ())
        written = [(i, name) for i, name in enumerate(names) if name in outputs and self._steps]
        self._written = tuple(Written((i,), name) for i, name in written if isinstance(args[i], tensor))
        self._written_through = tuple((i, name) for i, name in written if isinstance(args[i], IteratorBase)
                                      and any(a.is_tensor for a in args[i].arrays()))
        self._tells = bool(self._written or self._written_through)
        del self._positions, self._slots, self._captured, self.storage
        if self.device is None and not (self._used or self._tells):
            self.for_c = (self._on_host,), b"", {}, 1, None

    def check_stream(self, stream: Any) -> None:
        """TypeError for what is no stream."""
        if stream is not None:
            if self.device is None:
                check_on_host(stream)
            else:
                stream_handle(stream)

    @told_to_users
    def run(self, args: tuple, roots: list, storage: Any, stream: Any) -> None:
        """Run it. `storage`: the user's temporary storage; ValueError if it is too small or misaligned. The list of
        roots gets it.
        """
        found = on_gpu(storage)
        known = found is not None and found[0] == self.large_enough and not found[1] % self._largest
        roots.append(found[1] if known else self._checked(storage))
        self._run(args, roots, stream)

    @told_to_users
    def run_once(self, args: tuple, roots: list, stream: Any) -> None:
        """Run it with temporary storage of its own, which the list of roots gets."""
        if not self._used:
            roots.append(0)
            return self._run(args, roots, stream)
        if self.device is None:
            roots.append(np.empty(self.nbytes, np.uint8))
            return self._run(args, roots, stream)
        with Scratch(self.device, self.nbytes, stream) as pointer:
            roots.append(pointer)
            self._run(args, roots, stream)

    @told_to_users
    def _on_host(self, roots: list, stream: Any) -> Any:
        """The steps in host memory, as C code calls them; NotImplemented if it is left to `run_once`."""
        if stream is not None or settings.get("SANITIZE"):
            return NotImplemented
        return self._run_steps(0, [*roots, 0], 0, None)

    @told_to_users
    def go_on(self, done: int, roots: list, stream: Any, own: bool) -> None:
        """Run the steps that C code left. `own`: temporary storage, the last of the roots, is not the user's."""
        if not own or not self._used:
            return self._run_others(done, roots, stream)
        with Scratch(self.device, self.nbytes, stream, roots[-1]):
            self._run_others(done, roots, stream)

    def _run(self, args: tuple, roots: list, stream: Any) -> None:
        if self._tells:
            self._tell(args)
        if self.device is None:
            if stream is not None:
                check_on_host(stream)
            return self._run_steps(0, roots, 0, stream)
        if not self._compiled:
            self._compile(roots)
        ready = self._ready.get(roots[-1] & 15)
        done = 0 if ready is None else launch_cache.extension().run_steps(ready, roots, stream, b"", self._streams)
        if done < len(self._steps):
            self._run_others(done, roots, stream)

    def _tell(self, args: tuple) -> None:
        """Tell autograd which tensors are about to be written to."""
        if self._written:
            before_writing(self._written, args)
        if self._written_through:
            _tell_torch(self._written_through, args)

    def _run_others(self, done: int, roots: list, stream: Any) -> None:
        """Run the steps on a GPU that C code did not."""
        alignment = roots[-1] & 15
        self._run_steps(done, roots, alignment, stream)
        if alignment not in self._ready or done < len(self._ready[alignment]):
            self._make_ready(alignment)

    def _run_steps(self, first: int, roots: list, alignment: int, stream: Any) -> None:
        for step in self._steps[first:]:
            try:
                step.run(roots, alignment, stream)
            except TileSanitizerError as e:
                if not _only_in_place(e, roots):
                    raise

    def _make_ready(self, alignment: int) -> None:
        """Have C code run the first steps of later calls, as many as it can."""
        ready = []
        for step in self._steps if launch_cache.extension() is not None else ():
            if not hasattr(step, "in_c"):
                break
            if (found := step.in_c(alignment)) is None:
                self._ready.pop(alignment, None)
                self.for_c = None
                return
            ready.append(found)
        if ready:
            self._streams = stream_readers()
            self._ready[alignment] = tuple(ready)
        if not alignment and len(ready) == len(self._steps) > 0 and not self._written_through:
            memory = for_c(self.device, self.nbytes) if self._used else b""
            self.for_c = tuple(ready), memory, self._streams, self._largest, autograd.for_c(self._written)

    def _compile(self, roots: list) -> None:
        """Compile the launches, several at a time. What a launch would refuse is left to it."""
        try:
            ahead.build_together([(step.kernel, step.arguments(roots)) for step in self._steps
                                  if isinstance(step, Step)], self.device)
        except Exception as e:
            trace.say(trace.LAUNCHES, f"compiled one after another: {type(e).__name__}: {e}")
        self._compiled = True

    def _checked(self, storage: Any) -> Any:
        """Temporary storage as a root."""
        if type(storage) is np.ndarray and storage.ndim == 1:
            have, pointer, whole, device = storage.nbytes, storage.ctypes.data, storage.strides[0], None
            root: Any = storage if whole == 1 else storage.view(np.uint8) if storage.flags.c_contiguous else storage
            contiguous = storage.flags.c_contiguous
        else:
            part, root = on_gpu(storage) or _read_slowly(storage)
            if isinstance(root, np.ndarray):
                return self._checked(root.reshape(-1))
            have, contiguous, device = _known.get(part) or _bytes_there(storage, part)
            pointer = root
        if have < self.nbytes:
            raise ValueError(f"argument `temp_storage` has {have} bytes, and {self.nbytes} are needed; ask for another "
                             f"number of items anew")
        if not contiguous:
            raise ValueError("argument `temp_storage` must be contiguous")
        if pointer % self._largest:
            raise ValueError(f"argument `temp_storage` lies at {pointer:#x}, which is no multiple of {self._largest}")
        if self._used and device != self.device:
            raise TypeError(f"argument `temp_storage` is in {_memory(device)}, and the arrays are in "
                            f"{_memory(self.device)}")
        if device is not None:
            self.large_enough = part
        return root


def _tell_torch(written: tuple[tuple[int, str], ...], args: tuple) -> None:
    """Tell autograd which tensors are about to be written to through iterators."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is not None:
        found = [(name, a.owner) for i, name in written for a in args[i].arrays() if isinstance(a.owner, tensor)]
        if found:
            before_writing([Written((k,), name) for k, (name, _) in enumerate(found)], [t for _, t in found])


def _memory(device: int | None) -> str:
    return "host memory" if device is None else f"the memory of GPU {device}"


_known: LruDict[Any, tuple[int, bool, int]] = LruDict(1000)  # of temporary storage, by its part of a key


def _read_slowly(storage: Any) -> tuple[tuple, Any]:
    """Of temporary storage its part of a key, and its address or the NumPy array that it is."""
    key: list = []
    values: list = []
    try:
        find_reader(type(storage))(storage, key, values)
        if not isinstance(key[0], tuple):  # a number
            raise TypeError
    except Exception:
        raise TypeError(f"argument `temp_storage`: expected an array or None, got {type(storage).__name__}") from None
    if type(values[0]) is int:
        read_in_c(storage)
    return key[0], values[0]


def _bytes_there(storage: Any, part: Any) -> tuple[int, bool, int]:
    """The size in bytes of an array in GPU memory, whether it is contiguous, and its GPU."""
    said, _ = _read_slowly(storage)
    ref = ref_of(said, 256)
    step, contiguous = 1, True
    for n, s in zip(ref.shape[::-1], ref.strides[::-1], strict=True):
        contiguous = contiguous and (n == 1 or s == step)
        step *= n
    found = ref.size * ref.itemsize, contiguous, said[GPU]
    _known.keep(part, found)
    return found


def _only_in_place(e: TileSanitizerError, roots: list) -> bool:
    """Whether the sanitizer reports only that input and output are one array, as they may be: a kernel reads each tile
    before it writes it.
    """
    if any(found.check != "alias" for found in e.errors):
        return False
    arrays = [a for a in roots if isinstance(a, np.ndarray)]
    return not any(layout(a) != layout(b) and np.shares_memory(a, b) for a, b in combinations(arrays, 2))


def is_for_user(e: Exception) -> bool:
    """Whether an error shows the user's frames only: that of a kernel."""
    return not settings.get("DEBUG") and (isinstance(e, TileError) or is_refusal(e))
