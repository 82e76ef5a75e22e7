"""Running `tileiras`, NVIDIA's assembler of Tile IR: which versions it reads, bytecode to cubin.

The tool runs in a clean environment: with CUDA_HOME or CUDA_PATH set it loads that toolkit's libnvvm and fails
without a message. Every failure becomes an error of cutile at the user's line.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from cutile import settings
from cutile.errors import TileCompilerExecutionError, TileCompilerTimeoutError
from cutile.gpu.find_tileiras import Tool, find_tool
from cutile.gpu.process import Outcome, run
from cutile.gpu.target import Target, parse_target
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.bytecode_writer import encode
from cutile.gpu.tileir.diagnostics import first_error, location
from cutile.gpu.tileir.module import TileModule
from cutile.gpu.tileir.work_folder import work_folder
from cutile.spans import Span

# ------------------------------------------------------------------ what it is


@functools.lru_cache(maxsize=8)
def versions(tool: Tool | None = None) -> tuple[ty.Version, ...]:
    """The bytecode versions that both the tool reads and this package writes, oldest first."""
    tool = tool or find_tool()
    listed = _listed(tool)
    if listed is not None:
        return tuple(v for v in ty.VERSIONS if v in listed)
    return tuple(v for v in ty.VERSIONS if _reads(tool, v))  # release 13.1 has no --list-versions


@functools.lru_cache(maxsize=8)
def _listed(tool: Tool) -> frozenset[tuple[int, ...]] | None:
    """The versions that the tool says it reads, also those that this package does not write. None if it cannot say."""
    done = run([str(tool.path), "--list-versions"], 60)
    if done.code != 0:
        return None
    return frozenset(tuple(map(int, v)) for v in re.findall(r"^(\d+)\.(\d+)\s*$", done.output, re.M))


def takes_any_warps(tool: Tool | None = None) -> bool:
    """Whether the tool makes code for any number of worker warps; releases before 13.5 do for 4 and 8."""
    return max(_listed(tool or find_tool()) or (), default=(0, 0)) >= (13, 5)


def _reads(tool: Tool, version: ty.Version) -> bool:
    try:
        assemble(encode(TileModule(version)), "sm_120", tool=tool)
    except TileCompilerExecutionError:
        return False
    return True


def newest_version(tool: Tool | None = None) -> ty.Version:
    """The newest bytecode version that the tool reads; 13.1, with a warning, if it reads none that we write."""
    known = versions(tool)
    if known:
        return known[-1]
    warnings.warn(f"{(tool or find_tool()).path} reads no bytecode version that cutile writes; trying 13.1",
                  RuntimeWarning, stacklevel=2)
    return ty.VERSIONS[0]


# ------------------------------------------------------------------ running it

_limit: ContextVar[float | None] = ContextVar("cutile_compiler_timeout", default=None)


@contextmanager
def compiler_timeout(timeout_sec: float | None) -> Iterator[None]:
    """Let the assembler run for at most so many seconds, within a `with` block. Outside, CUTILE_COMPILER_TIMEOUT holds.

    Parameters
    ----------
    timeout_sec : float or None
        Seconds; None is no limit.

    Raises
    ------
    TileCompilerTimeoutError
        At a launch or an export of which the assembler takes longer.

    Notes
    -----
    [ENV-3]

    Examples
    --------
    >>> with ct.compiler_timeout(60):
    ...     pass  # launches on a GPU
    """
    number = isinstance(timeout_sec, int | float) and not isinstance(timeout_sec, bool)
    if timeout_sec is not None and not (number and timeout_sec > 0):
        raise ValueError(f"compiler_timeout takes a positive number of seconds, not {timeout_sec!r}")
    before = _limit.set(float("inf") if timeout_sec is None else float(timeout_sec))
    try:
        yield
    finally:
        _limit.reset(before)


def time_limit() -> float | None:
    """The limit in seconds that holds now; None: no limit."""
    limit = _limit.get()
    if limit is None:
        limit = settings.get("COMPILER_TIMEOUT")
    return None if limit in (None, float("inf")) else limit


def assemble(code: bytes, target: Target | str, *, opt_level: int = 3, lineinfo: bool = False,
             device_debug: bool = False, memcheck: bool = False, tool: Tool | None = None, spans: Iterable[Span] = (),
             name: str = "kernel") -> bytes:
    """The cubin of some bytecode. `spans` are the positions in it, so that an error has its exact place; `name` is for
    messages.

    Raises TileCompilerExecutionError if the tool refuses or crashes, with what it printed as `.tool_output`;
    TileCompilerTimeoutError if it runs too long; FileNotFoundError if there is none. Safe in threads.
    """
    target = parse_target(target)
    tool = tool or find_tool()
    flags = [f"--gpu-name={target.tool_name}", f"-O{opt_level}"]
    flags += ["--device-debug"] * device_debug + ["--lineinfo"] * (lineinfo and not device_debug)
    flags += ["--sanitize=memcheck"] * memcheck
    with work_folder() as folder:
        source, cubin = folder / "kernel.tileirbc", folder / "kernel.cubin"
        source.write_bytes(code)
        command = [str(tool.path), *flags, str(source), "-o", str(cubin)]
        _say(command)
        done = run(command, time_limit(), folder)
        if done.code == 0 and cubin.is_file():
            return cubin.read_bytes()
    raise _failure(done, code, target, tool, flags, spans, name)


def remarks(code: bytes, target: Target | str, *, opt_level: int = 3, tool: Tool | None = None) -> str:
    """What the tool remarks about memory and tensor cores when it assembles some bytecode; raises as `assemble`."""
    target = parse_target(target)
    tool = tool or find_tool()
    flags = [f"--gpu-name={target.tool_name}", f"-O{opt_level}", "--remarks=all"]
    with work_folder() as folder:
        source = folder / "kernel.tileirbc"
        source.write_bytes(code)
        done = run([str(tool.path), *flags, str(source), "-o", str(folder / "kernel.cubin")], time_limit(), folder)
    if done.code != 0:
        raise _failure(done, code, target, tool, flags, (), "kernel")
    return done.output.replace(f"{folder}/", "").strip()


def disassemble(code: bytes, *, debug_info: bool = False, tool: Tool | None = None) -> str:
    """The text of bytecode, by the tool's own disassembler. Raises FileNotFoundError or TileCompilerExecutionError."""
    tool = tool or find_tool()
    if not tool.disassembler.is_file():
        raise FileNotFoundError(f"{tool.path} has no tileirdisasm beside it")
    with work_folder() as folder:
        source = folder / "kernel.tileirbc"
        source.write_bytes(code)
        command = [str(tool.disassembler), *["-g"] * debug_info, str(source)]
        done = run(command, time_limit(), folder, merged=False)
    if done.code == 0:
        return done.output
    error = TileCompilerExecutionError(f"tileirdisasm cannot read this bytecode: {first_error(done.output)}",
                                       compiler_version=tool.version)
    error.tool_output = done.output
    raise error


def _failure(done: Outcome, code: bytes, target: Target, tool: Tool, flags: list[str], spans: Iterable[Span],
             name: str) -> TileCompilerExecutionError | TileCompilerTimeoutError:
    context = {"compiler_flags": " ".join(flags), "compiler_version": tool.version}
    if done.code is None:
        error = TileCompilerTimeoutError(
            f"tileiras needed more than {time_limit():g} s for {name} on {target}", **context,
            help="give it longer with ct.compiler_timeout(seconds) or CUTILE_COMPILER_TIMEOUT, or use smaller tiles")
    elif done.code < 0:
        error = TileCompilerExecutionError(
            f"Return code {done.code}: tileiras crashed ({_signal(-done.code)}) on {name} for {target}", **context)
    else:
        said = first_error(done.output) or "it gave no reason"
        error = TileCompilerExecutionError(
            f"Return code {done.code}: tileiras did not accept {name} for {target}: {said}",
            location(done.output, spans), **context)
    error.tool_output = done.output
    kept = _reproduction(code, tool, flags, done.output)
    if kept:
        error.notes += ((f"the bytecode, the command and what the tool said are in {kept}*", None),)
    return error


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _reproduction(code: bytes, tool: Tool, flags: list[str], output: str) -> str | None:
    """Write the failure to CUTILE_REPRODUCE. Returns the common beginning of the file names, or None."""
    folder = settings.folder("REPRODUCE")
    if folder is None:
        return None
    stem = Path(folder, "tileiras-" + hashlib.sha256(code + " ".join(flags).encode()).hexdigest()[:12])
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        bytecode = stem.with_suffix(".tileirbc")
        bytecode.write_bytes(code)
        stem.with_suffix(".txt").write_text(
            f"{_typed([tool.path, *flags, bytecode, '-o', stem.with_suffix('.cubin')])}\n"
            f"version {tool.version} ({tool.origin})\n\n{output}", encoding="utf-8")
    except OSError as e:
        warnings.warn(f"could not keep the failure in {folder}: {e}", RuntimeWarning, stacklevel=2)
        return None
    return str(stem)


def _say(command: list[str]) -> None:
    if settings.get("DEBUG") >= 6:
        print(f"cutile: {_typed(command)}", file=sys.stderr)


def _typed(command: list[str | Path]) -> str:
    """A command as one would type it into a shell."""
    words = [str(w) for w in command]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
