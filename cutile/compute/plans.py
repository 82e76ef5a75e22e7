"""Plans: the launches of an algorithm for arguments of one signature, with temporary storage. Calls run them again.

An algorithm makes a plan by `plan.launch(…)`, in the order in which the launches run. Their arguments are made of the
operands' states and of temporary storage. A plan keeps no array: of each it notes which *root* it is part of. The roots
of a call are the addresses of its arrays, or the arrays themselves in host memory, and its numbers, one for each slot
of its operands (iterators.py); the last root is temporary storage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from cutile import settings
from cutile._support.lru import LruDict
from cutile.compute.arrays import NOWHERE, DeviceArray, Held, Piece, Temporary
from cutile.compute.iterators import Capturing, IteratorBase, Stored
from cutile.compute.operators import Operator
from cutile.compute.value_types import Number, ValueType
from cutile.dtypes import DType, info, uint8
from cutile.errors import TileError, TileSanitizerError, TileUnsupportedFeatureError, for_users, is_refusal
from cutile.front.context import Hidden
from cutile.runtime.array_ref import GPU, ref_of
from cutile.runtime.autograd import Written, before_writing
from cutile.runtime.launch_key import find_reader
from cutile.runtime.repeated import Repeated
from cutile.runtime.scratch import Scratch

ALIGNMENT = 256  # of the arrays in temporary storage, and of temporary storage on a GPU


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
        self._watched = any(isinstance(x, Operator) and x.watched for x in operands) or any(
            it.watched() for it in operands if isinstance(it, IteratorBase))
        self._repeatable = bool(arrays)
        self._steps: list[Step | _Call | _Apart | _Alike] = []
        captured = self._find_captured(operands)
        self._hidden, self._captured = tuple(captured), tuple(captured.values())
        self._used, self._largest = 0, 1
        self.used = False  # see LruDict

    # -------------------------------------------------------------- for algorithms

    @property
    def on_host(self) -> bool:
        """Whether kernels run in host memory, where other sizes of tiles may be quick."""
        return self.device is None

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
        self._steps.append(_Call(self, function, self._template(args)))

    def call_on_stream(self, function: Callable, *args: Any) -> None:
        """The same of a function that gets the stream, before `args`."""
        self._steps.append(_CallOnStream(self, function, self._template(args)))

    def now(self, args: Sequence[Any]) -> tuple:
        """`args` as a function gets them, in the call that the plan is made for. Temporary storage is nowhere."""
        return self.actual(self._template(tuple(args)), [*self.roots(), NOWHERE])

    def apart(self, lines: Sequence[Line], many: int) -> None:
        """What is checked before the launches: that of the lines of memory, the first `many`, which are written, share
        none with any other. ValueError, which names both.
        """
        pairs = [(a, b, *_shared(a, b)) for k, a in enumerate(lines[:many]) for b in lines[k + 1:]
                 if a.argument != b.argument and a.size > 0 and b.size > 0]
        if pairs:
            self._steps.append(_Apart([(a.argument, b.argument, self._positions[id(a.array)],
                                        self._positions[id(b.array)], *rest) for a, b, *rest in pairs]))

    def _find_captured(self, operands: Sequence[Any]) -> dict[Hidden, Any]:
        """What stands for the arrays that operators capture, with the states of the arrays."""
        found: dict[Hidden, Any] = {}
        for x in operands:
            for hidden, state in x.captured() if isinstance(x, IteratorBase | Capturing) else ():
                if state.array.device != self.device:
                    raise TypeError(f"an array that an operator captures is in {_memory(state.array.device)}, and the "
                                    f"arrays are in {_memory(self.device)}")
                if found.setdefault(hidden, state) is not state:
                    alike = _Alike(*(self._positions[id(s.array)] for s in (found[hidden], state)))
                    alike.run(self.roots(), 0, None)
                    self._steps.append(alike)
        return found

    def _template(self, arg: Any) -> Any:
        if isinstance(arg, Piece | Temporary):
            return _Part(self._positions[id(arg.array)], arg._replace(array=_Place(self.device)))
        if isinstance(arg, Held):
            return _Number(self._positions[id(arg)])
        return tuple(map(self._template, arg)) if type(arg) is tuple else arg

    def launches(self) -> Iterator[tuple[Any, tuple]]:
        """The kernel and the arguments of each launch, while no call has run them: temporary storage is nowhere."""
        roots = [*self.roots(), NOWHERE]
        return ((step.kernel, step.arguments(roots)) for step in self._steps if isinstance(step, Step))

    # -------------------------------------------------------------- for calls

    def actual(self, x: Any, roots: list) -> Any:
        """What a template stands for, in a call with these roots."""
        if isinstance(x, _Part):
            return (x.piece.on_host if self.device is None else x.piece.on_gpu)(roots[x.root])
        if isinstance(x, _Number):
            return roots[x.root]
        return tuple(self.actual(y, roots) for y in x) if type(x) is tuple else x

    def roots(self) -> list:
        """The roots of the operands that it is made with."""
        return [slot.root for slot in self._slots]

    def finish(self, outputs: Sequence[str], names: Sequence[str], args: Sequence[Any]) -> None:
        """No launches follow. `outputs`: which of the arguments, of these names, are written to."""
        self.nbytes = max(self._used, 1)
        tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        self._written = tuple((i, name) for i, name in enumerate(names) if name in outputs and self._steps
                              and isinstance(args[i], (IteratorBase, tensor) if tensor else IteratorBase))
        del self._positions, self._slots, self._captured, self.storage

    def run(self, args: tuple, roots: list, storage: Any, stream: Any) -> None:
        """Run it. `storage`: the user's temporary storage; ValueError if it is too small or misaligned."""
        self._run(args, [*roots, self._checked(storage)], stream)

    def run_once(self, args: tuple, roots: list, stream: Any) -> None:
        """Run it with temporary storage of its own."""
        if not self._used:
            self._run(args, [*roots, 0], stream)
        elif self.device is None:
            self._run(args, [*roots, np.empty(self.nbytes, np.uint8)], stream)
        else:
            with Scratch(self.device, self.nbytes, stream) as pointer:
                self._run(args, [*roots, pointer], stream)

    def _run(self, args: tuple, roots: list, stream: Any) -> None:
        if self._written:
            _tell_torch(self._written, args)
        alignment = 0 if self.device is None else roots[-1] & 15
        for step in self._steps:
            try:
                step.run(roots, alignment, stream)
            except TileSanitizerError as e:
                if not _only_in_place(e, roots):
                    raise

    def _checked(self, storage: Any) -> Any:
        """Temporary storage as a root."""
        if type(storage) is np.ndarray and storage.ndim == 1:
            have, pointer, whole, device = storage.nbytes, storage.ctypes.data, storage.strides[0], None
            root: Any = storage if whole == 1 else storage.view(np.uint8) if storage.flags.c_contiguous else storage
            contiguous = storage.flags.c_contiguous
        else:
            key: list = []
            values: list = []
            try:
                find_reader(type(storage))(storage, key, values)
            except Exception:
                raise TypeError(f"argument `temp_storage`: expected an array or None, got "
                                f"{type(storage).__name__}") from None
            (part,), (root,) = key, values
            if isinstance(root, np.ndarray):
                return self._checked(root.reshape(-1))
            have, contiguous, device = _bytes_there(part)
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
        return root


def _tell_torch(written: tuple[tuple[int, str], ...], args: tuple) -> None:
    """Tell autograd which tensors are about to be written to."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is not None:
        found = [(name, t) for i, name in written for t in
                 ([args[i]] if isinstance(args[i], tensor) else [a.owner for a in args[i].arrays()])
                 if isinstance(t, tensor)]
        if found:
            before_writing([Written((k,), name) for k, (name, _) in enumerate(found)], [t for _, t in found])


def _memory(device: int | None) -> str:
    return "host memory" if device is None else f"the memory of GPU {device}"


_known: LruDict[tuple, tuple[int, bool, int]] = LruDict(1000)


def _bytes_there(part: tuple) -> tuple[int, bool, int]:
    """The size in bytes of an array in GPU memory, whether it is contiguous, and its GPU, from its part of a key."""
    found = _known.get(part)
    if found is None:
        ref = ref_of(part, 256)
        step, contiguous = 1, True
        for n, s in zip(ref.shape[::-1], ref.strides[::-1], strict=True):
            contiguous = contiguous and (n == 1 or s == step)
            step *= n
        found = ref.size * ref.itemsize, contiguous, part[GPU]
        _known.keep(part, found)
    return found


# ------------------------------------------------------------------ launches


class _Place:
    """What is left of an array in a plan."""

    __slots__ = ("device",)
    writable = True

    def __init__(self, device: int | None):
        self.device = device


class _Part:
    """An argument that is a piece of a root."""

    __slots__ = ("root", "piece")

    def __init__(self, root: int, piece: Piece | Temporary):
        self.root, self.piece = root, piece


class _Number:
    """An argument that is a root."""

    __slots__ = ("root",)

    def __init__(self, root: int):
        self.root = root


class Step:
    """A launch of a plan: a kernel over a grid. `template`: its arguments, with parts and numbers in the place of what
    differs.
    """

    __slots__ = ("kernel", "grid", "_plan", "_template", "_repeated", "_constants", "_moves", "_parts")

    def __init__(self, plan: Plan, kernel: Any, blocks: int, template: tuple):
        self.kernel, self.grid, self._plan, self._template = kernel, (blocks, 1, 1), plan, template
        self._repeated: dict[int, Repeated] = {}  # by the alignment of temporary storage
        leaves = list(_leaves(template, kernel.specs))
        self._constants = [None if isinstance(x, _Part | _Number) else x for x in leaves]
        moves = [(i, x.root, 0 if isinstance(x, _Number) else x.piece.moved) for i, x in enumerate(leaves)
                 if isinstance(x, _Number) or isinstance(x, _Part) and plan.device is not None]
        self._moves: tuple[tuple[int, int, int], ...] = tuple(moves)
        self._parts: tuple[tuple[int, int, Callable], ...] = tuple(
            (i, x.root, x.piece.on_host) for i, x in enumerate(leaves) if isinstance(x, _Part) and plan.device is None)

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        found = self._repeated.get(alignment)
        if found is None or not found.unchanged():
            found = self._made(roots, stream)
            if found.repeatable:
                self._repeated[alignment] = found
            return found.run(stream, found.values)
        values = self._constants.copy()
        for i, root, moved in self._moves:
            values[i] = roots[root] + moved
        for i, root, take in self._parts:
            values[i] = take(roots[root])
        found.run(stream, values)

    def arguments(self, roots: list) -> tuple:
        """Those of ct.launch."""
        return self._plan.actual(self._template, roots)

    def _made(self, roots: list, stream: Any) -> Repeated:
        return Repeated(self.kernel, self.grid, self.arguments(roots), stream, self._plan._watched)


class _Call:
    """A call of a function of the host."""

    __slots__ = ("_plan", "_function", "_template")

    def __init__(self, plan: Plan, function: Callable, template: tuple):
        self._plan, self._function, self._template = plan, function, template

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        self._function(*self._plan.actual(self._template, roots))


class _CallOnStream(_Call):
    __slots__ = ()

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        self._function(stream, *self._plan.actual(self._template, roots))


class Line(NamedTuple):
    """Items of an argument: `size` of them in an array, from byte `start` of it on."""

    argument: str
    array: DeviceArray
    start: int
    size: int


class _Apart:
    """A check that lines of memory share none.

    `pairs`: two arguments, their roots, and what `_shared` gives.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: list[tuple]):
        self._pairs = pairs

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        at = [x if type(x) is int else x.__array_interface__["data"][0] for x in roots[:-1]]
        for one, other, i, j, moved, low, high, step, item, last in self._pairs:
            between = at[j] - at[i] + moved
            if low < between < high and not (step and item <= between % step <= last):
                raise ValueError(f"arguments `{one}` and `{other}` share memory; pass another array as `{one}`")


class _Alike:
    """A check that two roots are one array: one that an operator captures which stands in two places."""

    __slots__ = ("_one", "_other")

    def __init__(self, one: int, other: int):
        self._one, self._other = one, other

    def run(self, roots: list, alignment: int, stream: Any) -> None:
        if _layout_of(roots[self._one]) != _layout_of(roots[self._other]):
            raise TileUnsupportedFeatureError(
                "two operators of equal code capture different arrays, and equal operators share code",
                help="tell the functions apart, for example by a default argument: def f(x, which=1): …")


def _layout_of(root: Any) -> Any:
    return root if type(root) is int else _layout(root)


def _shared(a: Line, b: Line) -> tuple[int, int, int, int, int, int]:
    """When lines share memory, from how far apart the addresses of their arrays are. With what the first number adds,
    it is between the second and the third, and no multiple of `step` plus what leaves room for both items.
    """
    spans = [(min(0, (x.size - 1) * x.array.stride), max(0, (x.size - 1) * x.array.stride) + x.array.itemsize)
             for x in (a, b)]
    (first, end), (other, other_end) = spans
    step = gcd(a.array.stride, b.array.stride)
    return b.start - a.start, first - other_end, end - other, step, a.array.itemsize, step - b.array.itemsize


def _only_in_place(e: TileSanitizerError, roots: list) -> bool:
    """Whether the sanitizer reports only that input and output are one array, as they may be: a kernel reads each tile
    before it writes it.
    """
    if any(found.check != "alias" for found in e.errors):
        return False
    arrays = [a for a in roots if isinstance(a, np.ndarray)]
    return not any(_layout(a) != _layout(b) and np.shares_memory(a, b) for a, b in combinations(arrays, 2))


def _layout(a: np.ndarray) -> tuple:
    return a.ctypes.data, a.dtype, a.shape, a.strides


def _leaves(args: Sequence[Any], specs: Any) -> Iterator[Any]:
    """What becomes a launch value each, in order."""
    for arg, spec in zip(args, specs, strict=True):
        if type(arg) is tuple:
            yield from _leaves(arg, islice(spec.items, len(arg)))
        elif not spec.constant:
            yield arg


def for_user(run: Callable, *args: Any) -> None:
    """Run a plan; errors of kernels show the user's frames only."""
    try:
        return run(*args)
    except Exception as e:
        if settings.get("DEBUG") or not (isinstance(e, TileError) or is_refusal(e)):
            raise
        error = for_users(e)
    raise error from error.__cause__
