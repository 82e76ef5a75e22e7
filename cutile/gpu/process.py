"""Runs a tool in a clean environment. If this process dies, so does the tool."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from cutile._support.structs import structure
from cutile.gpu.background import stopped_by
from cutile.gpu.executables import absolute, on_path

# The variables that a tool sees.
KEPT = ("PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "LANG")


@structure(frozen=True, slots=True)
class Outcome:
    """How a process ended: its return code (None: it ran out of time) and what it printed."""

    code: int | None
    output: str


def run(command: list[str], limit: float | None, folder: Path | None = None, merged: bool = True) -> Outcome:
    """Run a command to its end, or for `limit` seconds. `folder` is its working folder and that of its temporary files.

    merged  stderr is part of the output, in order; otherwise it is appended only if the command fails
    """
    environment = {k: os.environ[k] for k in KEPT if k in os.environ}
    environment["PATH"] = absolute(environment.get("PATH"))
    if folder is not None:
        environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    own_group = {"process_group": 0} if os.name == "posix" else {}
    command = [*_waits_for_its_own(), *_dies_with_us(), *command]
    with subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT if merged else subprocess.PIPE, text=True, encoding="utf-8",
                          errors="replace", **own_group) as process:
        try:
            with stopped_by(functools.partial(_kill, process)):
                out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _kill(process)
            out, _ = process.communicate()
            return Outcome(None, out or "")
        except BaseException:
            _kill(process)
            raise
    return Outcome(process.returncode, (out or "") if process.returncode == 0 else (out or "") + (err or ""))


@functools.lru_cache(maxsize=8)
def version_of(path: Path) -> str:
    """Release and build of a tool, as "13.5.37"; "unknown" if it does not say."""
    out = run([str(path), "--version"], 60).output
    found = re.search(r"\bV(\d+(?:\.\d+)+)", out)
    return found[1] if found else "unknown"


@functools.cache
def _dies_with_us() -> tuple[str, ...]:
    """A prefix for commands: a command with it ends when this process ends, in whatever way. Empty if the system has no
    such thing.

    `run` handles exceptions, Ctrl-C among them. This is for signals after which no Python code runs.
    """
    tool = on_path("setpriv", os.environ.get("PATH")) if sys.platform == "linux" else None
    if tool is None:
        return ()
    prefix = (tool, "--pdeathsig", "KILL")
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:  # old releases lack the option
        return prefix if subprocess.run([*prefix, tool, "--version"], **quiet, timeout=10).returncode == 0 else ()
    except (OSError, subprocess.SubprocessError):
        return ()


def _waits_for_its_own() -> tuple[str, ...]:
    """A prefix for commands where this process ignores SIGCHLD, as servers do that leave their children to the system.
    A tool would inherit that, and learn nothing of the tools that it starts itself. Nor does this process learn the
    return code then: it is taken for 0, and what the tool wrote must tell.
    """
    if os.name != "posix" or signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN:
        return ()
    tool = on_path("env", os.environ.get("PATH"))
    return () if tool is None or not _resets_signals(tool) else (tool, "--default-signal=CHLD")


@functools.cache
def _resets_signals(env: str) -> bool:
    """Whether this release of env has the option."""
    try:
        done = subprocess.run([env, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return False
    return "--default-signal" in done.stdout


def _kill(process: subprocess.Popen) -> None:
    """Kill the tool and the processes that it started, if it still runs."""
    if process.returncode is not None:
        return
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
            return
        except ProcessLookupError:
            pass
    process.kill()
