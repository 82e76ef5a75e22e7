"""Running a user's script within a verb, with its launches seen by the verb."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import cutile
from cutile.cli.failing import fail
from cutile.runtime import launch as launching
from cutile.runtime.kernel import Kernel

original = launching.launch

T = TypeVar("T")
Launch = Callable[..., None]  # with the parameters of ct.launch


class Caught(NamedTuple):
    """A launch that a script asked for."""

    grid: Any
    kernel: Kernel
    args: Any


class NotLaunchedError(Exception):
    """The script ended without the launch that was asked for."""


class _Reached(BaseException):
    """The launch that was asked for has been reached: ends the script."""


def split_target(target: str, status: int = 1) -> tuple[str, str]:
    """FILE.py::KERNEL as file and kernel; the kernel is "" where the target names only a file.

    Ends the command with this status if there is no such file, or if it cannot be run.
    """
    file, _, name = target.partition("::")
    if not Path(file).is_file():
        fail(f"there is no file {file}", status)
    try:
        compile(Path(file).read_bytes(), file, "exec")
    except (OSError, SyntaxError, ValueError) as e:  # ValueError: not a text file
        fail(f"{file} is no Python file that can be run: {e}", status)
    return file, name


def run(file: str, arguments: Sequence[str], launch: Launch = original) -> dict[str, Any]:
    """Run a script as `python FILE` does, with `launch` for ct.launch. Returns its globals, if it ends by itself."""
    with _launching(launch), _as_script(file, arguments):
        return runpy.run_path(file, run_name="__main__")


def at_launch(file: str, name: str, arguments: Sequence[str], number: int, then: Callable[[Caught], T]) -> T:
    """Run a script up to launch `number` of the kernel `name`, and return what `then` returns for it.

    NotLaunchedError if there is no such launch.
    """
    results: list[T] = []
    seen: list[str] = []

    def instead(stream: Any, grid: Any, kernel: Any, args: Any, /, **options: Any) -> None:
        if isinstance(kernel, Kernel):
            seen.append(kernel.__name__)
        if not (isinstance(kernel, Kernel) and kernel.__name__ == name and seen.count(name) == number):
            return original(stream, grid, kernel, args, **options)
        results.append(then(Caught(grid, kernel, args)))
        raise _Reached

    try:
        run(file, arguments, instead)
    except _Reached:
        return results[0]
    except SystemExit:
        pass
    times = f"launched {seen.count(name)} time(s)" if name in seen else "never launched"
    others = f"; it launches {', '.join(dict.fromkeys(seen))}" if seen and name not in seen else ""
    raise NotLaunchedError(f"{name} was {times} by {file}{others}")


@contextmanager
def _launching(launch: Launch) -> Iterator[None]:
    """Within the `with` block, ct.launch is `launch`, also for functions that ct.jit made."""
    before = cutile.launch
    cutile.launch = launching.launch = launch
    try:
        yield
    finally:
        cutile.launch, launching.launch = before, original


@contextmanager
def _as_script(file: str, arguments: Sequence[str]) -> Iterator[None]:
    """Within the `with` block, sys.argv and sys.path are those of a script."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [file, *arguments]
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
