"""What a call moves and computes, how long it takes, and its share of what the GPU could do [BEN-8]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from cutile._support.float_mode import in_usual_mode
from cutile._support.structs import structure
from cutile.analysis import gpus
from cutile.analysis.aliasing import read_params, written_params
from cutile.errors import refusal
from cutile.functions import options
from cutile.functions.bench import do_bench
from cutile.functions.libraries import arrays_in, is_jax
from cutile.functions.tuning_check import on_host
from cutile.functions.tuning_model import work_of
from cutile.interp import HostLaunch
from cutile.interp.profile.lines import KernelProfile
from cutile.interp.schedule import CompiledKernel
from cutile.interp.traces.watchers import watched
from cutile.runtime import launch_plan
from cutile.runtime.arguments import array_of, host_values
from cutile.runtime.float4_packing import unpacked
from cutile.runtime.kernel import Kernel

BUS_WIDTH, MEMORY_CLOCK = 37, 36  # attributes of a GPU: bits, and kHz


@structure(frozen=True)
class Profile:
    """What a call moves, computes and takes.

    Parameters
    ----------
    bytes_read : int
        The bytes of elements that loads reach; what is read twice counts twice.
    bytes_written : int
        The bytes of elements that stores reach.
    operations : dict
        How many arithmetic operations, by unit and dtype, such as "matrix float16".
    milliseconds : float
        The time of a call.
    peak : float or None
        The bytes a second that the GPU's memory can move; None on a CPU.
    gpu : str, default ""
        The name of the GPU; empty on a CPU.
    rates : dict or None, default None
        For each kind of operations how many of them a second the GPU does at best; None where that is not known.
    arrays : int, default 0
        The bytes of all arrays that the kernel reads and of those that it writes: what it would move at least.
    estimated : bool, default False
        Whether bytes and operations were counted in the program, and not by a run.

    Attributes
    ----------
    bytes_read, bytes_written, operations, milliseconds, peak, gpu, rates, arrays, estimated
        As above.
    bandwidth : float
        The bytes a second that the call moved.
    rate : float
        The operations a second.
    share : float or None
        The share of the memory's bandwidth; above 1 where caches serve what is read more than once. None on a CPU.
    compute_share : float or None
        The share of the time that the busiest unit needs at least for its operations: products of matrices are one
        unit, all else another. None where the rates are not known.
    roofline : float or None
        The share of the time that the call takes at least: because of its operations, or to move each array once.
    limit : str or None
        Which of the two takes longer: "computing" or "memory".

    Notes
    -----
    [BEN-8] Rates are those of the makers' data sheets, without sparsity, for the H200, H100 SXM, A100 80GB SXM and RTX
    4090.

    Examples
    --------
    >>> print(cutile.testing.Profile(4000, 4000, {"other float32": 1000}, 0.001, None))
    0.0010 ms, 4,000 bytes read, 4,000 written, 8.0 GB/s; operations: 1,000 other float32
    >>> p = cutile.testing.Profile(2**28, 2**27, {"matrix float16": 2**37}, 0.2, 4.8e12, "NVIDIA H200",
    ...                            {"matrix float16": 989e12}, 3 * 2**25)
    >>> f"{p.compute_share:.2f} {p.roofline:.2f} {p.limit}"
    '0.69 0.69 computing'
    """

    bytes_read: int
    bytes_written: int
    operations: dict[str, int]
    milliseconds: float
    peak: float | None
    gpu: str = ""
    rates: dict[str, float] | None = None
    arrays: int = 0
    estimated: bool = False

    @property
    def bandwidth(self) -> float:
        return (self.bytes_read + self.bytes_written) / (self.milliseconds / 1000)

    @property
    def rate(self) -> float:
        return sum(self.operations.values()) / (self.milliseconds / 1000)

    @property
    def share(self) -> float | None:
        """The share of the memory's bandwidth; above 1 where caches serve what is read more than once."""
        return None if self.peak is None else self.bandwidth / self.peak

    @property
    def compute_share(self) -> float | None:
        """The share of the time that the busiest unit needs at least for its operations; None if that is not known."""
        if self.rates is None:
            return None
        units: Counter = Counter()
        for work, n in self.operations.items():
            units[work.partition(" ")[0]] += n / self.rates[work]
        return max(units.values(), default=0.0) / (self.milliseconds / 1000)

    @property
    def _memory_share(self) -> float | None:
        """The share of the time that moving each array once takes at least."""
        moved = min(self.arrays, self.bytes_read + self.bytes_written)
        return None if self.peak is None else moved / self.peak / (self.milliseconds / 1000)

    @property
    def roofline(self) -> float | None:
        """The share of the time that the call takes at least; None if that is not known."""
        computing, memory = self.compute_share, self._memory_share
        return None if computing is None or memory is None else max(computing, memory)

    @property
    def limit(self) -> str | None:
        """What takes longer at least: "computing" or "memory"; None if that is not known."""
        computing, memory = self.compute_share, self._memory_share
        return None if computing is None or memory is None else "computing" if computing > memory else "memory"

    def __str__(self) -> str:
        work = ", ".join(f"{n:,} {what}" for what, n in self.operations.items()) or "none"
        share = "" if self.share is None else f", {self.share:.0%} of the memory's bandwidth"
        return (f"{self.milliseconds:.4f} ms, {self.bytes_read:,} bytes read, {self.bytes_written:,} written, "
                f"{self.bandwidth / 1e9:.1f} GB/s{share}; operations: {work}{self._computing()}"
                + "; counted in the program" * self.estimated)

    def _computing(self) -> str:
        if not self.gpu:
            return ""
        if self.roofline is None or self.compute_share is None:
            return f"; how many of these a second the {self.gpu} does at best is not known here"
        return (f", {self.rate / 1e12:.1f} T a second, {self.compute_share:.0%} of what the {self.gpu} does at best; "
                f"{self.roofline:.0%} of the roofline, where {self.limit} is the limit")


def profile(f: Any, args: Sequence[Any], *, named: dict[str, Any] | None = None, **bench: Any) -> Profile:
    """Profile a call of a function made by `ct.jit`.

    On arrays in CPU memory, bytes and operations are counted by a run on copies of the arguments. On a GPU they are
    counted in the program, for all blocks of the grid: tiles count whole, loops that depend on data as one turn, both
    arms of a branch half.

    Parameters
    ----------
    f : function
        Made by `ct.jit` or `ct.autotune`.
    args : sequence
        Its arguments.
    named : dict, optional
        Arguments by name.
    **bench
        Keywords of `do_bench`, which takes the time.

    Returns
    -------
    Profile

    Raises
    ------
    TypeError
        The function is of another kind.

    Notes
    -----
    [BEN-8]

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, 128)", out=ct.Out("N"))
    ... @ct.kernel
    ... def double(x: ct.Array["N"], y):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), 128))
    >>> found = cutile.testing.profile(double, (np.ones(1000, np.float32),), repeats=5)
    >>> found.bytes_read, found.bytes_written
    (4000, 4000)
    """
    options.check("profile", {"args": args, "named": named}, {"args": options.ARGUMENTS, "named": options.BY_NAME})
    named = named or {}
    function, values = resolved(f, args, named)
    grid, kernel, arguments = function.launch_arguments(values)
    ordinal = _ordinal(kernel, arguments)
    if ordinal is None:
        read, written, operations = _counted(kernel, grid, tuple(map(copied_to_host, arguments)))
    else:
        read, written, operations = _estimated(kernel, grid, arguments)
    ms = do_bench(lambda: f(*args, **named), **bench)
    arrays = _bytes_of_arrays(kernel, arguments)
    if ordinal is None:
        return Profile(read, written, operations, ms, None, arrays=arrays)
    name = _name(ordinal)
    return Profile(read, written, operations, ms, _bandwidth(ordinal), name, _rates(name, operations), arrays, True)


def resolved(f: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The function that is called, and its arguments by name."""
    if hasattr(f, "resolved"):  # of ct.autotune
        function, names, values = f.resolved(tuple(args), named)
        names = names if names is not None else list(function.parameters)
        return function, {**dict(zip(names, args)), **named, **values}
    if not hasattr(f, "launch_arguments"):
        raise refusal(TypeError(f"a function made by ct.jit is needed, not {f!r:.100}{_instead(f)}"))
    return f, {n: v for n, v in f._named(args, named).items() if n not in ("out", "stream")}


def _instead(f: Any) -> str:
    """What to give in the place of something else."""
    if isinstance(f, Kernel):
        return f"; {f.__name__} is a kernel, of which ct.jit(kernel, grid=..., out=...) makes a function"
    if hasattr(f, "cache_info") and hasattr(f, "given"):
        return f"; {f.__name__} is a factory: give what it returns, {f.__name__}(...)"
    return "; give the function that was compiled" if hasattr(f, "cubin") else ""


def copied_to_host(x: Any) -> Any:
    if isinstance(x, tuple | list):
        return type(x)(map(copied_to_host, x))
    return x if x is None or isinstance(x, bool | int | float | str) or not hasattr(x, "shape") else on_host(x)


Counts = tuple[int, int, dict[str, int]]  # bytes read, bytes written, operations by unit and dtype


@in_usual_mode
def _counted(kernel: Any, grid: tuple[int, int, int], arguments: tuple) -> Counts:
    """What a launch does, from a run in the interpreter."""
    classified = kernel.classify(arguments)
    program = kernel.program(classified).kernel
    found = KernelProfile(program.name, program.span)
    launch = HostLaunch(CompiledKernel(watched(program, found)), repeatable=False)
    launch.run(grid, None, unpacked(host_values(classified)), False)
    operations: Counter = Counter()
    for cost in found.lines.values():
        operations += cost.operations
    return (sum(c.bytes_read for c in found.lines.values()), sum(c.bytes_written for c in found.lines.values()),
            {f"{work.unit} {work.dtype.name}": n for work, n in operations.items()})


def _estimated(kernel: Any, grid: tuple[int, int, int], arguments: tuple) -> Counts:
    """What a launch does, from its program, grid, sizes and numbers."""
    plan, values = launch_plan.find(kernel, arguments, None)
    work, blocks = work_of(plan.program.kernel, grid, plan.dims, values), prod(grid)
    operations: Counter = Counter()
    for (kind, _), n in work.products.items():
        operations[kind] += n
    for kind, n in work.operations.items():
        operations[kind] += n
    return (round(work.read * blocks), round(work.written * blocks),
            {f"{kind.unit} {kind.dtype.name}": round(n * blocks) for kind, n in operations.items()})


def _bytes_of_arrays(kernel: Any, arguments: tuple) -> int:
    """The bytes of the arrays that a kernel reads, and of those that it writes; of lists and tuples those of all."""
    program = kernel.program(kernel.classify(arguments)).kernel
    named = {p: n.partition("[")[0] for p, n in zip(program.params, program.param_names)}
    times = Counter(name for reached in (read_params(program), written_params(program))
                    for name in {named[p] for p in reached})
    return sum(times[name] * prod(r.shape) * r.dtype.bitwidth // 8
               for name, value in zip(kernel.names, arguments) if times[name]
               for _, x in arrays_in(value, "") if (r := array_of(x)) is not None)


def _ordinal(kernel: Any, arguments: tuple) -> int | None:
    """The GPU on which a launch runs; None in CPU memory, and for arrays of JAX, which are copied there."""
    if any(is_jax(x) for value in arguments for _, x in arrays_in(value, "")):
        return None
    return launch_plan.find(kernel, arguments, None)[0].ordinal


def _name(ordinal: int) -> str:
    from cutile.gpu.driver import driver

    return driver().name(ordinal)


def _rates(gpu: str, operations: dict[str, int]) -> dict[str, float] | None:
    """How many operations of each kind a GPU does a second at best; None if one of them is not known."""
    found = gpus.of_name(gpu)
    if found is None:
        return None
    rates = {work: rate for work in operations if (rate := gpus.peak(found, work)) is not None}
    return rates if len(rates) == len(operations) else None


def _bandwidth(ordinal: int) -> float:
    from cutile.gpu.driver import driver

    d = driver()
    attribute = d.api.CUdevice_attribute
    bits, khz = (int(d.ask("the GPU does not say how fast its memory is",
                           d.api.cuDeviceGetAttribute(attribute(n), d.handle(ordinal))))
                 for n in (BUS_WIDTH, MEMORY_CLOCK))
    return bits / 8 * khz * 1000 * 2  # two transfers a clock


@contextmanager
def nvtx(name: str) -> Iterator[None]:
    """Mark what happens within a `with` block as a range that NVIDIA's profilers show.

    PyTorch, CuPy or the package nvtx marks it; where there is none of them, nothing happens.

    Parameters
    ----------
    name : str
        The name of the range.

    Examples
    --------
    >>> with cutile.testing.nvtx("step"):
    ...     pass  # launches
    """
    import sys

    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    elif cupy is not None:
        push, pop = cupy.cuda.nvtx.RangePush, cupy.cuda.nvtx.RangePop
    else:
        try:
            import nvtx as marks
        except ImportError:
            yield
            return
        push, pop = marks.push_range, marks.pop_range
    push(name)
    try:
        yield
    finally:
        pop()
