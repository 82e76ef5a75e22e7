"""The first run of a configuration in another process, which is ended if it takes too long [TUNE-6].

The process gets copies of the arrays, so that nothing of this one is touched, and the kernel by the name under which
its module can be imported. It serves many runs; one that it does not survive costs a new process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from cutile._support.structs import structure
from cutile.dtypes import DType
from cutile.runtime.arguments import array_of
from cutile.runtime.array_ref import ArrayRef
from cutile.runtime.kernel import Kernel

START_SECONDS = 60.0  # in which a new process must be ready


class TileLaunchTimeoutError(RuntimeError):
    """A configuration took longer than `single_run_timeout_sec`."""


@structure(frozen=True)
class Route:
    """How another process finds a kernel: a name in a module, which may be a function that makes it, and its options.

    file   of a module that is run as a script
    """

    module: str
    file: str | None
    name: str
    call: tuple[tuple, dict[str, Any]] | None
    hints: dict[str, Any]

    def kernel(self) -> Kernel:
        if self.file is not None:
            first, *rest = self.name.split(".")
            found: Any = _globals_of(self.file)[first]
        else:
            found, rest = importlib.import_module(self.module), self.name.split(".")
        for part in rest:
            found = getattr(found, part)
        if self.call is not None:
            found = found(*self.call[0], **self.call[1])
        found = found if isinstance(found, Kernel) else found.kernel
        return found.replace_hints(**self.hints)


class _Reached(BaseException):
    """A script that is run for its kernels has come to its own search."""


_loading = False


def stop_if_loading() -> None:
    """End a script that is run for its kernels, where it searches."""
    if _loading:
        raise _Reached


@functools.cache
def _globals_of(file: str) -> dict[str, Any]:
    """The globals of a script, which is run without being the main module, up to its search."""
    global _loading
    scope: dict[str, Any] = {"__name__": "__cutile_trial__", "__file__": file, "__builtins__": __builtins__}
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    _loading = True
    try:
        with open(file, "rb") as f:
            exec(compile(f.read(), file, "exec"), scope)
    except _Reached:
        pass
    finally:
        _loading = False
    return scope


def route_to(kernel: Kernel) -> Route | None:
    """None for a kernel that no other process can find."""
    origin = getattr(kernel, "_origin", None)  # of one that a factory made
    named, call = (kernel, None) if origin is None else (origin[0], origin[1:])
    if "<" in named.__qualname__:
        return None
    file = None
    if named.__module__ == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        if file is None:
            return None
    options = kernel.options
    hints = {n: getattr(options, n) for n in ("num_ctas", "occupancy", "opt_level", "num_worker_warps")}
    return Route(named.__module__, file, named.__qualname__, call, hints)


# ------------------------------------------------------------------ arguments


@structure(frozen=True)
class Copied:
    """An array as a copy: its memory from the lowest element to the highest, and where it was.

    first   the number of the byte at which element (0, …) begins;  gpu: the ordinal of its GPU
    """

    memory: bytes | bytearray
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    gpu: int | None

    def array(self, gpu: int | None = None) -> Any:
        """An array like the one that was copied, on this GPU if that was on one. None: a GPU of the same ordinal."""
        if self.gpu is None:
            from cutile.dtypes import INFO

            storage = INFO[self.dtype].storage
            return np.ndarray(self.shape, storage, bytearray(self.memory), self.first,
                              tuple(s * storage.itemsize for s in self.strides))
        return _OnGpu(self, self.gpu if gpu is None else gpu)


class _OnGpu:
    """An array in GPU memory of this process, which is freed with it."""

    def __init__(self, c: Copied, gpu: int):
        from cutile.dtypes import INFO
        from cutile.gpu.driver import driver

        d, storage = driver(), INFO[c.dtype].storage
        with d.device(gpu).current():
            pointer = int(d.ask("GPU memory cannot be allocated", d.api.cuMemAlloc(max(len(c.memory), 1))))
            weakref.finalize(self, d.api.cuMemFree, pointer)
            d.ask("GPU memory cannot be written", d.api.cuMemcpyHtoD(pointer, c.memory, len(c.memory)))
        self.dtype = storage
        self.__cuda_array_interface__ = {
            "data": (pointer + c.first, False), "shape": c.shape, "typestr": storage.str, "version": 3,
            "strides": tuple(s * storage.itemsize for s in c.strides)}


def copied(value: Any) -> Any:
    """An argument as another process can have it. TypeError where that is not possible."""
    if isinstance(value, tuple | list):
        return type(value)(list(map(copied, value)))
    ref = None if value is None or isinstance(value, bool | int | float | str) else array_of(value)
    return value if ref is None else _copy(ref)


def _copy(a: ArrayRef) -> Copied:
    if 0 in a.shape:
        return Copied(bytearray(), 0, a.shape, a.strides, a.dtype, a.device)
    if a.owner is not None and not isinstance(a.owner, np.ndarray):
        raise TypeError("packed arrays are not copied")
    low = sum(s * (n - 1) for s, n in zip(a.strides, a.shape) if s < 0) * a.itemsize
    high = (sum(s * (n - 1) for s, n in zip(a.strides, a.shape) if s > 0) + 1) * a.itemsize
    if a.owner is not None:
        import ctypes

        there = (ctypes.c_char * (high - low)).from_address(a.pointer + low)
        return Copied(bytearray(there), -low, a.shape, a.strides, a.dtype, None)
    from cutile.gpu.driver import driver

    d, memory = driver(), bytearray(high - low)
    ordinal = d.device_of_pointer(a.pointer) if a.device is None else a.device
    with d.device(ordinal).current():
        d.ask("GPU memory cannot be read", d.api.cuMemcpyDtoH(memory, a.pointer + low, high - low))
    return Copied(memory, -low, a.shape, a.strides, a.dtype, ordinal)


def here(value: Any, gpu: int | None = None) -> Any:
    """An argument of this process, from one that was copied; arrays of GPUs come to `gpu`, if that is given."""
    if isinstance(value, tuple | list):
        return type(value)([here(v, gpu) for v in value])
    return value.array(gpu) if isinstance(value, Copied) else value


# ------------------------------------------------------------------ the other process


class Trials:
    """Runs in another process, which is started when it is first needed. `close` ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._no_process = ""  # why there is none, after one did not come up

    def run(self, kernel: Kernel, grid: Any, args: Sequence[Any], seconds: float) -> bool:
        """Run a launch there. False if no other process can have the kernel or the arguments, and if the launch is
        refused there: then it is here too.

        TileLaunchTimeoutError if it takes longer than `seconds`; RuntimeError if it breaks the GPU or the process, or
        if that failed before it came to the launch.
        """
        route = route_to(kernel)
        if route is None:
            return False
        try:
            job = pickle.dumps((route, tuple(grid), copied(tuple(args))))
        except Exception:
            return False
        if self._process is None:
            self._start()
        answer = self._ask(job, seconds)
        if answer is None:
            self.close()
            raise TileLaunchTimeoutError(f"the first run took longer than {seconds} s")
        if answer[0] == "broken":
            self.close()
            raise RuntimeError(f"the first run, in a process of its own, failed: {answer[1]}")
        if answer[0] == "unable":
            raise RuntimeError(f"a process of its own could not make the first run: {answer[1]}; without a limit of "
                               f"time, this process makes it")
        return answer[0] == "ran"

    def _start(self) -> None:
        """Start the process; RuntimeError if it does not come up."""
        if self._no_process:
            raise RuntimeError(self._no_process)
        program = f"import sys; sys.path[:] = {sys.path!r}; from cutile.tune.trial import serve; serve()"
        try:
            self._process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            answer = self._ask(None, START_SECONDS)
        except OSError as e:
            answer = ("broken", str(e))
        if answer != ("ready",):
            self.close()
            why = f"is not ready after {START_SECONDS:.0f} s" if answer is None else f"does not start: {answer[1]}"
            self._no_process = (f"first runs have a limit of time in a process of their own, which {why}; without a "
                                f"limit, this process makes them")
            raise RuntimeError(self._no_process)

    def _ask(self, job: bytes | None, seconds: float) -> tuple | None:
        """Send a job, if there is one, and wait for the answer; None if it does not come in time."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        answers: list[tuple] = []

        def talk() -> None:
            try:
                if job is not None:
                    _write(process.stdin, job)  # type: ignore[arg-type]
                answers.append(pickle.loads(_read(process.stdout)))  # type: ignore[arg-type]
            except Exception:
                answers.append(("broken", "the process ended"))

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        thread.join(seconds)
        return answers[0] if answers else None

    def close(self) -> None:
        """End the process, at once."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]


def _write(to: BinaryIO, data: bytes) -> None:
    to.write(len(data).to_bytes(8, "little") + data)
    to.flush()


def _read(source: BinaryIO) -> bytes:
    size = source.read(8)
    if len(size) < 8:
        raise EOFError
    return source.read(int.from_bytes(size, "little"))


def serve() -> None:
    """What the other process does: runs launches, one after another, until its input ends."""
    with _quiet() as out:
        _write(out, pickle.dumps(("ready",)))
        while True:
            try:
                job = _read(sys.stdin.buffer)
            except EOFError:
                return
            _write(out, pickle.dumps(_answer(job)))


def _answer(job: bytes) -> tuple:
    from cutile.errors import TileError, is_refusal
    from cutile.gpu.driver import DriverError
    from cutile.runtime.launch import launch

    try:
        route, grid, args = pickle.loads(job)
        kernel, values = route.kernel(), here(args)
    except BaseException as e:
        return "unable", f"{type(e).__name__}: {e}"
    try:
        launch(None, grid, kernel, values)
        _wait(args)
    except DriverError as e:
        return "broken", str(e)
    except BaseException as e:
        again = isinstance(e, TileError | TypeError | ValueError | OverflowError)  # here, where the result counts
        return "refused" if again or is_refusal(e) else "unable", f"{type(e).__name__}: {e}"
    return ("ran",)


def _wait(args: Any) -> None:
    """Wait for the GPUs of the arguments."""
    ordinals = {c.gpu for c in _flat(args) if isinstance(c, Copied) and c.gpu is not None}
    if ordinals:
        from cutile.gpu.driver import driver

        d = driver()
        for ordinal in ordinals:
            with d.device(ordinal).current():
                d.ask("the kernel failed", d.api.cuStreamSynchronize(0))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for v in value:
            yield from _flat(v)
    else:
        yield value


@contextlib.contextmanager
def _quiet() -> Iterator[BinaryIO]:
    """Answers go where standard output went; what kernels print goes nowhere."""
    answers = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    yield answers
