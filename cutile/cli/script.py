"""Running a user's script within a verb, with its launches seen by the verb."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import typer

import cutile
from cutile.cli.failing import fail
from cutile.runtime import launch as launching
from cutile.runtime.kernel import Kernel
from cutile.runtime.prepare import Prepared

_launch, _run_prepared = launching.launch, Prepared.__call__

T = TypeVar("T")


class Caught(NamedTuple):
    """A launch that a script asked for, by ct.launch, a function of ct.jit, what ct.prepare made, or an algorithm."""

    grid: Any
    kernel: Kernel
    args: Any


See = Callable[[Caught, Callable[[], None]], None]  # takes the place of a launch, and may call the function, which runs


class NotLaunchedError(Exception):
    """The script ended without the launch that was asked for.

    globals   those of the script, where it ended by itself
    """

    globals: dict[str, Any] | None = None


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


def run(file: str, arguments: Sequence[str], see: See = lambda caught, go_on: go_on()) -> dict[str, Any]:
    """Run a script as `python FILE` does, with `see` in the place of its launches. Returns its globals, if it ends by
    itself. If it fails, its error is shown as Python shows it, and the command ends with status 1.
    """
    try:
        return _run(file, arguments, see)
    except typer.Exit:  # of the command
        raise
    except Exception as e:
        _show_error(e, file)
        raise typer.Exit(1) from None


def load(file: str, failed: str = "") -> dict[str, Any]:
    """The globals of a file that is run, though not as a script. If it fails, the command ends with status 1, and its
    error is shown as Python shows it; or, with `failed`, this text, for an error that was shown before.
    """
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        return runpy.run_path(file)
    except SystemExit as e:
        fail(failed or f"{file} ends with SystemExit({e.code!r}), also where it is no script")
    except Exception as e:
        if failed:
            fail(failed)
        _show_error(e, file)
        raise typer.Exit(1) from None


def _run(file: str, arguments: Sequence[str], see: See) -> dict[str, Any]:
    with _launching(see), _as_script(file, arguments):
        return runpy.run_path(file, run_name="__main__")


def at_launch(file: str, name: str, arguments: Sequence[str], number: int, then: Callable[[Caught], T]) -> T:
    """Run a script up to launch `number` of the kernel `name`, and return what `then` returns for it.

    NotLaunchedError if there is no such launch. If the script fails before, its error is shown too.
    """
    results: list[Callable[[], T]] = []
    seen: list[str] = []

    def see(caught: Caught, go_on: Callable[[], None]) -> None:
        if isinstance(caught.kernel, Kernel):
            seen.append(caught.kernel.__name__)
        if not (isinstance(caught.kernel, Kernel) and caught.kernel.__name__ == name and seen.count(name) == number):
            return go_on()
        try:
            result = then(caught)
            results.append(lambda: result)
        except Exception as e:  # is none of the script's
            results.append(partial(_raise, e))
        raise _Reached

    error = NotLaunchedError()
    try:
        error.globals = _run(file, arguments, see)
    except _Reached:
        return results[0]()
    except SystemExit:
        pass
    except Exception as e:
        _show_error(e, file)
        raise NotLaunchedError(f"{file} failed before launch {number} of {name}") from None
    error.args = (not_launched(name, file, seen),)
    raise error


def not_launched(name: str, file: str, seen: Sequence[str]) -> str:
    """Why there is no such launch. `seen`: the names of the kernels that were launched; `name`: "" is any kernel."""
    count = seen.count(name) if name else len(seen)
    times = f"launched {count} time{'s' * (count != 1)}" if count else "never launched"
    others = f"; it launches {', '.join(dict.fromkeys(seen))}" if seen and not count else ""
    return f"{name or 'a kernel'} was {times} by {file}{others}"


def _raise(e: Exception) -> NoReturn:
    raise e


def _show_error(e: Exception, file: str) -> None:
    """Show an error of a script as Python does, without the frames before the script's own."""
    own = e.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename != file:
        own = own.tb_next
    traceback.print_exception(e.with_traceback(own or e.__traceback__))


@contextmanager
def _launching(see: See) -> Iterator[None]:
    """Within the `with` block, `see` takes the place of launches."""
    from cutile.compute.steps import Step  # verbs that run no script need not load it

    def launch(*given: Any, **options: Any) -> None:
        if len(given) != 4:
            return _launch(*given, **options)  # which says what is wrong
        return see(Caught(*given[1:]), partial(_launch, *given, **options))

    def run_prepared(prepared: Prepared, stream: Any = None) -> None:
        return see(Caught(prepared.grid, prepared.kernel, prepared.arguments), partial(_run_prepared, prepared, stream))

    def run_step(step: Step, roots: list, alignment: int, stream: Any) -> None:
        return see(Caught(step.grid, step.kernel, step.arguments(roots)),
                   partial(before_step, step, roots, alignment, stream))

    before, before_step = cutile.launch, Step.run
    cutile.launch = launching.launch = launch
    Prepared.__call__, Step.run = run_prepared, run_step
    try:
        yield
    finally:
        cutile.launch, launching.launch, Prepared.__call__, Step.run = before, _launch, _run_prepared, before_step


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
