"""What a call moves and computes, how long it takes, and its share of what the GPU's memory could do [BEN-8]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cutile._support.float_mode import in_usual_mode
from cutile._support.structs import structure
from cutile.functions.bench import do_bench
from cutile.functions.binding import read_array
from cutile.functions.tuning_check import on_host
from cutile.interp import HostLaunch
from cutile.interp.profile.lines import KernelProfile
from cutile.interp.schedule import CompiledKernel
from cutile.interp.traces.watchers import watched
from cutile.runtime.arguments import host_values
from cutile.runtime.float4_packing import unpacked

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

    Attributes
    ----------
    bytes_read, bytes_written, operations, milliseconds, peak
        As above.
    bandwidth : float
        The bytes a second that the call moved.
    share : float or None
        The share of the memory's bandwidth; above 1 where caches serve what is read more than once. None on a CPU.

    Notes
    -----
    [BEN-8]

    Examples
    --------
    >>> print(cutile.testing.Profile(4000, 4000, {"float float32": 1000}, 0.001, None))
    0.0010 ms, 4,000 bytes read, 4,000 written, 8.0 GB/s; operations: 1,000 float float32
    """

    bytes_read: int
    bytes_written: int
    operations: dict[str, int]
    milliseconds: float
    peak: float | None

    @property
    def bandwidth(self) -> float:
        return (self.bytes_read + self.bytes_written) / (self.milliseconds / 1000)

    @property
    def share(self) -> float | None:
        """The share of the memory's bandwidth; above 1 where caches serve what is read more than once."""
        return None if self.peak is None else self.bandwidth / self.peak

    def __str__(self) -> str:
        work = ", ".join(f"{n:,} {what}" for what, n in self.operations.items()) or "none"
        share = "" if self.share is None else f", {self.share:.0%} of the memory's bandwidth"
        return (f"{self.milliseconds:.4f} ms, {self.bytes_read:,} bytes read, {self.bytes_written:,} written, "
                f"{self.bandwidth / 1e9:.1f} GB/s{share}; operations: {work}")


def profile(f: Any, args: Sequence[Any], *, named: dict[str, Any] | None = None, **bench: Any) -> Profile:
    """Profile a call of a function made by `ct.jit`.

    Bytes and operations are counted by a run in the interpreter, on copies of the arguments.

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
    named = named or {}
    function, values = resolved(f, args, named)
    grid, kernel, arguments = function.launch_arguments(values)
    counted = _counted(kernel, grid, tuple(map(copied_to_host, arguments)))
    operations: Counter = Counter()
    for cost in counted.lines.values():
        operations += cost.operations
    ms = do_bench(lambda: f(*args, **named), **bench)
    return Profile(sum(c.bytes_read for c in counted.lines.values()),
                   sum(c.bytes_written for c in counted.lines.values()),
                   {f"{work.unit} {work.dtype.name}": n for work, n in operations.items()}, ms, _peak(arguments))


def resolved(f: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The function that is called, and its arguments by name."""
    if hasattr(f, "resolved"):  # of ct.autotune
        function, names, values = f.resolved(tuple(args), named)
        names = names if names is not None else list(function.parameters)
        return function, {**dict(zip(names, args)), **named, **values}
    if not hasattr(f, "launch_arguments"):
        raise TypeError(f"a function made by ct.jit is needed, not {f!r:.100}")
    return f, dict(f.__signature__.bind(*args, **named).arguments)


def copied_to_host(x: Any) -> Any:
    if isinstance(x, tuple | list):
        return type(x)(map(copied_to_host, x))
    return x if x is None or isinstance(x, bool | int | float | str) or not hasattr(x, "shape") else on_host(x)


@in_usual_mode
def _counted(kernel: Any, grid: tuple[int, int, int], arguments: tuple) -> KernelProfile:
    """The costs of a launch, from a run in the interpreter."""
    classified = kernel.classify(arguments)
    program = kernel.program(classified).kernel
    found = KernelProfile(program.name, program.span)
    launch = HostLaunch(CompiledKernel(watched(program, found)), repeatable=False)
    launch.run(grid, None, unpacked(host_values(classified)), False)
    return found


def _peak(arguments: Sequence[Any]) -> float | None:
    """Bytes a second of the memory of the GPU of the first array; None in CPU memory."""
    for x in arguments:
        a = read_array(x) if hasattr(x, "shape") else None
        if a is not None:
            return None if a[2] is None else _bandwidth(a[2])
    return None


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
