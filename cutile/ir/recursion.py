"""Walks over programs that nest deeper than Python lets functions nest.

Calls are compiled in place and nest up to the language's limit [CALL-4], an `elif` is an `if` inside the other's
`else`, and the caller may itself be far down. Python counts frames by thread. So a walk that comes near the limit goes
on in a further thread, where it begins at none, while the thread that it comes from waits. The limit stays as it is:
raised for one thread, it is raised for all, and code that runs into it would run over the end of its stack instead.
(`compiled` tells of one exception.)
"""

from __future__ import annotations

import _thread
import ast
import contextvars
import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from cutile._support.locks import Lock

FRAMES = 600  # that a thread may have where a walk goes on in it
FRAME_BYTES = 640  # of the thread's stack that such a frame takes, at most [measured]
MARGIN = 400  # frames between two places where a walk asks, and for what it calls there
STEPS = 8  # of a walk that asks at every so many only
THREADS = 300  # of one walk: it would take the language's limit of calls several times to need them
DEEPEST = 2000  # nodes in nodes of what Python 3.11 compiles
FEW = 200  # frames, among which there are not enough calls of C functions to matter


def far_down() -> bool:
    """Whether this thread has so many frames that a walk should go on in another one."""
    limit = sys.getrecursionlimit()
    try:
        borne = _this_thread.frames
    except AttributeError:
        borne = _this_thread.frames = _frames_borne()
    try:
        sys._getframe(min(borne, max(limit - MARGIN, limit // 2)))
    except ValueError:  # there are fewer
        return False
    return True


_this_thread = threading.local()


def _frames_borne() -> int:
    """How many frames the stack of this thread bears: that of the main thread is large."""
    if threading.get_ident() == threading.main_thread().ident:
        return FRAMES
    size = _stack_size() or threading.stack_size()  # the latter is what new threads get; 0 is the system's default
    return min(FRAMES, size // FRAME_BYTES) if size else FRAMES


def _stack_size() -> int:
    """Of this thread, in bytes; 0 where the system does not say."""
    try:
        import ctypes  # loaded when it is needed

        c = ctypes.PyDLL(None)
        attributes = ctypes.create_string_buffer(256)
        low, size = ctypes.c_void_p(), ctypes.c_size_t()
        if c.pthread_getattr_np(ctypes.c_ulong(threading.get_ident()), attributes):
            return 0
        c.pthread_attr_getstack(attributes, ctypes.byref(low), ctypes.byref(size))
        c.pthread_attr_destroy(attributes)
    except (AttributeError, ImportError, OSError, TypeError):  # no Linux
        return 0
    return size.value


def deep(function: Callable) -> Callable:
    """Decorates a function that calls itself, by whatever way, as deep as a program nests."""

    @functools.wraps(function)
    def deeper(*args: Any) -> Any:
        return apart(function, *args) if far_down() else function(*args)

    return deeper


def roomy(function: Callable, *args: Any) -> Any:
    """Begin a walk: here, or in a further thread if the caller is far down."""
    return function(*args) if _has_room() else apart(function, *args)


def _has_room() -> bool:
    if far_down():
        return False
    if sys.version_info >= (3, 12):
        return True
    try:
        frame = sys._getframe(FEW)
    except ValueError:
        return True
    frames = FEW
    while frame is not None:
        frame, frames = frame.f_back, frames + 1
    try:  # Python 3.11 counts the calls of C functions too, which have no frames
        _nest(sys.getrecursionlimit() - frames - MARGIN // 2)
    except RecursionError:
        return False
    return True


def _nest(calls: int) -> None:
    if calls > 0:
        _nest(calls - 1)


def compiled(tree: ast.Module, filename: str, flags: int = 0) -> types.CodeType:
    """What Python compiles, which recurses in C; in a further thread if the stack of this one is not enough."""
    try:
        return compile(tree, filename, "exec", flags, dont_inherit=True)
    except RecursionError:
        return apart(_compiled_in_room, tree, filename, flags)


def _compiled_in_room(tree: ast.Module, filename: str, flags: int) -> types.CodeType:
    """Python 3.11 counts how deep a tree nests against the limit of calls: where that is not enough, it is raised for
    this moment by as much as it takes, and never so far that code of other threads could come to the end of its stack.
    """
    try:
        return compile(tree, filename, "exec", flags, dont_inherit=True)
    except RecursionError:
        before, nested = sys.getrecursionlimit(), _depth(tree) + FEW
        if sys.version_info >= (3, 12) or not before < nested <= DEEPEST:
            raise
    with _raising.here():
        before = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(before, nested))
            return compile(tree, filename, "exec", flags, dont_inherit=True)
        finally:
            sys.setrecursionlimit(before)


_raising = Lock()


def _depth(tree: ast.AST) -> int:
    """How deep nodes nest."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [inner for n in level for inner in ast.iter_child_nodes(n)]
    return depth


# ------------------------------------------------------------------ a further thread


_threads: contextvars.ContextVar[int] = contextvars.ContextVar("cutile_threads_of_a_walk", default=0)


class _Stopped(SystemExit):
    """Ends a thread whose work nobody waits for any more; Python prints nothing of it."""


class _Work:
    """A call in a thread of its own, in the context of the caller and with its debugger."""

    def __init__(self, function: Callable, args: tuple):
        self.context = contextvars.copy_context()
        self.call = functools.partial(self.context.run, function, *args)
        self.trace = sys.gettrace()
        self.thread: int | None = None  # once it runs
        self.unwanted = False
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = _thread.allocate_lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            self.thread = _thread.get_ident()
            if self.unwanted:
                return
            if callable(self.trace):
                sys.settrace(self.trace)
            self.result = self.call()
        except BaseException as e:
            self.error = e
        finally:
            self.done.release()

    def stop(self) -> None:
        """After an interrupt of the thread that waits: the work ends at its next step, and is waited for."""
        self.unwanted = True
        if self.thread is None:
            return  # it has not begun, and will not
        import ctypes  # loaded when it is needed

        thread, stopped = ctypes.c_ulong(self.thread), ctypes.py_object(_Stopped)
        if ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, stopped):
            self.wait()

    def wait(self) -> None:
        while not self.done.acquire(timeout=1):  # on Windows, nothing interrupts one that waits for ever
            pass


def _start(work: _Work) -> None:
    before = _threads.get()
    if before >= THREADS:
        raise RecursionError("this nests deeper than cutile can follow")
    work.context.run(_threads.set, before + 1)
    try:
        _thread.start_new_thread(work.run, ())
    except RuntimeError as e:
        raise RecursionError(f"this nests deeper than Python's stack allows, and no thread can go on: {e}") from None


def apart(function: Callable, *args: Any) -> Any:
    """What a call gives or raises, in a further thread. An interrupt of this thread ends that one.

    RecursionError where there are too many threads already, of one walk or of the process.
    """
    work = _Work(function, args)
    try:
        _start(work)
        work.wait()
    except BaseException:
        work.stop()
        raise
    if work.error is None:
        return work.result
    try:
        raise work.error
    finally:
        del work  # its error holds this frame
