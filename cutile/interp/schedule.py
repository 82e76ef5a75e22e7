"""Which schedule a kernel runs under, and the code and properties that the interpreter derives from a typed kernel.

The default, `batch`, takes a chunk of blocks at a time, whose tiles fit into the cache. `block` runs one block after
another, for debuggers and as the oracle of batching. `interleave` lets blocks take turns, for kernels whose blocks wait
for each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from cutile import settings
from cutile._support.structs import replace, structure
from cutile.analysis.aliasing import written_params
from cutile.analysis.spin_wait import waiting_loops
from cutile.dtypes import info
from cutile.errors import TileRecursionError
from cutile.interp import debugger
from cutile.interp.codegen.emit import EmittedCode, is_breakpoint
from cutile.interp.exec.capacity import MAX_BATCHED_AXES, check_sizes
from cutile.ir.nodes import For, If, Kernel, Op, Value, While, results_of
from cutile.ir.walk import nodes_of, walk
from cutile.ops import debug
from cutile.ops._combine import ufunc_of
from cutile.ops._op import PRODUCT, REDUCTION, SCAN
from cutile.passes.flatten_frames import flatten_some
from cutile.tracebacks import in_package
from cutile.types import ArrayType, ListType, RoundingMode, TileType

if TYPE_CHECKING:
    import ast

# Most bytes that the largest tile may take, summed over the blocks of a chunk [measured].
BUDGET = 512 << 10
REDUCE_BUDGET = 1 << 20  # kernels that reduce or scan
MATMUL_BUDGET = 512 << 10  # kernels with matrix products, also if they reduce
SCAN_BUDGET = 16 << 20  # kernels with a scan that runs as a Python loop over its elements
STREAM_BUDGET = 4 << 20  # kernels whose tiles take no memory of their own
MAX_BLOCKS = 1 << 14  # of a chunk

SCHEDULES = ("batch", "block", "interleave")  # each has an emitter of that name in codegen, loaded when it is needed


class ExecutionPlan(NamedTuple):
    """How a launch runs."""

    schedule: str
    why: str
    function: Callable
    blocks: int  # of a chunk, at most
    code: EmittedCode
    checks: tuple[str, ...] = ()  # of the sanitizer
    noted: set | None = None  # sites for which a note was printed


class CompiledKernel:
    """A typed kernel with what the interpreter derives from it: properties, code for each schedule, execution plans.

    The kernel's typed program keeps it for later launches. Threads may share one: if two of them derive the same thing
    at the same time, one result is dropped.
    """

    __slots__ = ("kernel", "elements", "_made")

    def __init__(self, kernel: Kernel, elements: Kernel | None = None):
        """`elements`: the kernel before its element functions were lifted, if it has any; debuggers follow that one."""
        self.kernel, self.elements = kernel, elements
        self._made: dict[tuple, Any] = {}

    def params(self) -> list[tuple[Any, str, bool]]:
        """Type and name of each parameter, and whether the kernel stores to it."""
        return self._once(("params",), _params)

    def properties(self) -> KernelProperties:
        return self._once(("properties",), self._properties)

    def _properties(self, kernel: Kernel) -> KernelProperties:
        found = properties_of(kernel)
        stops = self.elements is not None and any(map(is_breakpoint, walk(self.elements.body)))
        return replace(found, breakpoint=True) if stops else found

    def shown(self, values: Sequence[Any]) -> list[Any]:
        """The arguments as `block` and `interleave` take them: numbers as the tiles that a debugger shows."""
        from cutile.interp.show import Tile  # loaded when it is needed

        return [Tile(carrier=a, type=v.type) if isinstance(v.type, TileType) else a
                for v, a in zip(self.kernel.params, values, strict=True)]

    def plan(self, asked: str | None, defaults: bool) -> ExecutionPlan:
        """How a launch runs under the current settings. `asked`: the schedule that the caller asks for; `defaults`: all
        settings have their defaults.

        One plan is kept for each combination of the settings that `choose` and `_plan` read.
        """
        get = settings.get
        key = ("usual", asked, debugger.follows()) if defaults else (
            asked, get("SCHEDULE"), get("BLOCK") is None, get("CHECK"), get("STEP_LIMIT") is None, get("SANITIZE"),
            get("UNDETERMINED"), get("MEMORY"), get("PROFILE") is None, get("COMPILED"), debugger.follows())
        found = self._made.get(key)
        return self._made.setdefault(key, self._plan(asked)) if found is None else found

    def _plan(self, asked: str | None) -> ExecutionPlan:
        known = self.properties()
        schedule, why = choose(known, asked)
        check, limited = settings.get("CHECK"), settings.get("STEP_LIMIT") is not None
        checks, profiled = self._checks(), settings.get("PROFILE") is not None
        stepping = schedule == "block" and not checks and not profiled and (
            known.breakpoint or debugger.follows() is not None)
        written = self.elements if stepping else None

        def code_with(checks: tuple[str, ...], profiled: bool) -> EmittedCode:
            key = "code", schedule, check, limited, checks, profiled, settings.get("COMPILED"), written is not None
            return self._once(key, lambda _: _emitter(schedule).compile_kernel(
                written or self._extended(schedule, checks, profiled), check=check, step_limit=limited))

        try:
            code, plain = code_with(checks, profiled), code_with((), False)
        except RecursionError:
            raise TileRecursionError(
                f"{self.kernel.name} nests deeper than Python can compile for the schedule {schedule}",
                self.kernel.span, help="split the kernel's innermost code off into functions") from None
        noted = self._once(("noted",), lambda kernel: set()) if checks else None
        # Chunks have the size that they have without further ops, so that results have the same bits.
        blocks = most_blocks(known, plain.streams)
        if (memory := settings.get("MEMORY")) is not None:
            blocks = max(1, min(blocks, memory // self._bytes_of_a_block()))
        return ExecutionPlan(schedule, why, code.objects[".kernel"], blocks, code, checks, noted)

    def _bytes_of_a_block(self) -> int:
        from cutile.interp import footprint  # loaded when it is needed

        return self._once(("bytes of a block",), footprint.bytes_of_a_block)

    def _checks(self) -> tuple[str, ...]:
        """The checks of the sanitizer that the settings ask for."""
        if not settings.get("SANITIZE") and settings.get("UNDETERMINED") == "zero":
            return ()
        from cutile.interp.sanitize import instrument  # loaded when it is needed

        return instrument.checks()

    def _extended(self, schedule: str, checks: tuple[str, ...], profiled: bool) -> Kernel:
        """The kernel with the ops of these checks, and with those that measure it."""
        if profiled:
            from cutile.interp.profile import process

            return process.profiled(self._extended("", checks, False))
        if not checks:
            return _without_own_frames(self.kernel) if schedule == "batch" else self.kernel
        from cutile.interp.sanitize import instrument

        return self._once(("checked", checks), lambda kernel: instrument.instrument(kernel, self.elements, checks))

    def _once(self, key: tuple, derive: Callable[[Kernel], Any]) -> Any:
        found = self._made.get(key)
        return self._made.setdefault(key, derive(self.kernel)) if found is None else found


def _without_own_frames(kernel: Kernel) -> Kernel:
    """The kernel with functions of this package in the place of their calls, so that a tile is a view of memory, and an
    op computes straight into an array, where they load or store. What is the user's stays a function, for tracebacks.
    """
    return flatten_some(kernel, lambda n: in_package(n.def_span.filename))


def syntax_of(plan: ExecutionPlan) -> list[ast.FunctionDef]:
    """The functions that a plan runs, as Python syntax: they are emitted again, since a plan does not keep it."""
    code = plan.code
    again = _emitter(plan.schedule).compile_kernel(code.kernel, check=code.check, step_limit=code.step_limit,
                                                   syntax=True)
    return again.syntax


def _emitter(schedule: str) -> ModuleType:
    return importlib.import_module(f"cutile.interp.codegen.{schedule}")


def _params(kernel: Kernel) -> list[tuple[Any, str, bool]]:
    stored = written_params(kernel)
    return [(p.type, name, p in stored) for p, name in zip(kernel.params, kernel.param_names, strict=True)]


# ------------------------------------------------------------------ the choice


@structure(frozen=True)
class KernelProperties:
    """The properties of a kernel on which the choice of schedule and chunk depends."""

    value_bytes: int  # of its largest tile
    budget: int
    breakpoint: bool
    unbatchable: str | None  # why the batch schedule cannot run it
    waiting: str | None = None  # where its blocks wait for each other


def properties_of(kernel: Kernel) -> KernelProperties:
    largest, ops, unbatchable, stepwise = 1, set(), None, False
    axes = max(map(_axes_of, kernel.params), default=0)
    seen: set[int] = set()  # ids of types: many values share one
    for n in nodes_of(kernel):
        results = n.results if type(n) is Op else results_of(n)
        for v in results:
            if id(v.type) not in seen:
                seen.add(id(v.type))
                check_sizes(v.type, n)
                axes = max(axes, _axes_of(v))
                if isinstance(v.type, TileType):
                    largest = max(largest, v.type.size * info(v.type.dtype).carrier.itemsize)
        if type(n) is Op:
            ops.add(n.op)
            stepwise = stepwise or n.op.accumulates == SCAN and not _is_one_call(n)
        elif results and isinstance(n, If | For | While) and any(type(v.type) is ListType for v in results):
            unbatchable = f"line {n.span.line} chooses between lists of arrays"
    if axes > MAX_BATCHED_AXES:
        unbatchable = f"{axes} axes leave NumPy too few for blocks"
    accumulated = {o.accumulates for o in ops}
    budget = SCAN_BUDGET if stepwise else MATMUL_BUDGET if PRODUCT in accumulated else \
        REDUCE_BUDGET if accumulated & {REDUCTION, SCAN} else BUDGET
    waiting = min((n.span.line for n in waiting_loops(kernel)), default=None)
    why = None if waiting is None else f"the loop in line {waiting} waits for other blocks"
    return KernelProperties(largest, budget, debug.breakpoint in ops, unbatchable, why)


def _axes_of(v: Value) -> int:
    t = v.type.element if isinstance(v.type, ListType) else v.type
    return t.ndim if isinstance(t, (TileType, ArrayType)) else 0


def _is_one_call(scan: Op) -> bool:
    """Whether one NumPy call computes a scan: one of integers, or of floats whose carrier rounds as the dtype does."""
    if scan.region is not None:
        return ufunc_of(scan.region) is not None
    i = info(scan.results[0].type.dtype)
    return (not i.floating or i.carried_exactly) \
        and not scan.attrs["flush_to_zero"] and scan.attrs["rounding_mode"] in (None, RoundingMode.RN)


def choose(properties: KernelProperties, asked: str | None) -> tuple[str, str]:
    """The schedule for a launch of a kernel with these properties, and the reason for messages."""
    asked, why = (asked, "asked for") if asked else (settings.get("SCHEDULE"), "CUTILE_SCHEDULE")
    if asked not in (None, *SCHEDULES):
        raise ValueError(f"there is no schedule {asked!r}; the schedules are 'batch', 'block' and 'interleave'")
    if properties.waiting and asked != "interleave":  # under another schedule, blocks would wait for ever
        return "interleave", properties.waiting
    if asked in ("block", "interleave"):
        return asked, why
    if settings.get("BLOCK") is not None:
        return "block", "CUTILE_BLOCK"
    if properties.unbatchable:
        return "block", properties.unbatchable
    if asked:
        return asked, why
    if properties.breakpoint:
        return "block", "the kernel has a breakpoint"
    if (why := debugger.follows()) is not None:
        return "block", why
    return "batch", "default"


def most_blocks(properties: KernelProperties, streams: bool) -> int:
    """How many blocks the budget allows in a chunk."""
    budget = STREAM_BUDGET if streams else properties.budget
    return max(1, min(budget // properties.value_bytes, MAX_BLOCKS))
