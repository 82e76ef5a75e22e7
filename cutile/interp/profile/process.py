"""The profiles of a process: those that CUTILE_PROFILE asks for. They are shown when the process ends."""

from __future__ import annotations

import atexit
import os
import sys

from cutile import settings
from cutile._support.locks import Lock
from cutile.interp.profile.lines import KernelProfile
from cutile.interp.traces.watchers import watched
from cutile.ir.nodes import Kernel

_lock = Lock()
_profiles: list[KernelProfile] = []  # of all kernels that have been measured, since their code tells them
_file = settings.PROFILE_FILE
_shown_by: int | None = None  # the process that shows them when it ends: no forked child does


def profiled(kernel: Kernel) -> Kernel:
    """The kernel with ops that measure it. Programs of one kernel, typed for different arguments, share a profile."""
    global _file, _shown_by
    with _lock.here():
        _file = settings.get("PROFILE") or _file
        found = next((p for p in _profiles if (p.name, p.span) == (kernel.name, kernel.span)), None)
        if found is None:
            found = KernelProfile(kernel.name, kernel.span)
            _profiles.append(found)
        if _shown_by is None:
            _shown_by = os.getpid()
            atexit.register(_show)
    return watched(kernel, found)


def take() -> list[KernelProfile]:
    """What has been measured so far, which the process does not show any more."""
    with _lock.here():
        return [taken for p in _profiles if (taken := p.take()).launches]


def _show() -> None:
    if os.getpid() != _shown_by or not (found := take()):
        return
    from cutile.interp.profile import report  # loaded when it is needed

    for p in found:
        report.show(p, sys.stderr)
    try:
        report.write_speedscope(found, _file)
    except OSError as e:
        print(f"cutile: the profile cannot be written to {_file}: {e.strerror or e}", file=sys.stderr)
    else:
        print(f"cutile: the profile is in {_file}, for https://www.speedscope.app", file=sys.stderr)
