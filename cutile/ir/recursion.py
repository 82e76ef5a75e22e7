"""Recursive walks over programs that nest deeper than Python's limit of recursion.

Calls are compiled in place and nest up to the limit of the language [CALL-4]. Each `elif` is an `if` inside the `else`
of the one before, and the caller of cutile may itself be far down. Python counts frames per thread. So a walk that
comes near the limit goes on in a new thread, which has no frames yet, while the old thread waits. We do not raise
Python's limit, because that affects all threads: one with endless recursion would then overflow its stack. Only
`_compiled_in_room` does.
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

FRAMES = 600  # a walk switches threads at this many frames
FRAME_BYTES = 640  # bytes of stack that a frame takes at most [measured]
MARGIN = 400  # frames that a walk may use between two checks
STEPS = 8  # levels of a walk between two checks, where each check would cost too much
THREADS = 300  # threads of one walk; the language's limit of calls needs far fewer
DEEPEST = 2000  # levels of nested syntax that Python 3.11 can compile
FEW = 200  # frames; below this, C calls are not counted


def near_limit() -> bool:
    """Whether this thread has so many frames that a walk should go on in a new one."""
    limit = sys.getrecursionlimit()
    try:
        most = _this_thread.frames
    except AttributeError:
        most = _this_thread.frames = _frames_of_stack()
    try:
        sys._getframe(min(most, max(limit - MARGIN, limit // 2)))
    except ValueError:  # there are fewer frames
        return False
    return True


_this_thread = threading.local()


def _frames_of_stack() -> int:
    """How many frames fit on the stack of this thread. That of the main thread is large enough."""
    if threading.get_ident() == threading.main_thread().ident:
        return FRAMES
    size = _stack_size() or threading.stack_size()  # for new threads; 0 is the system's default
    return min(FRAMES, size // FRAME_BYTES) if size else FRAMES


def _stack_size() -> int:
    """The size of this thread's stack, in bytes; 0 where the system does not tell."""
    try:
        import ctypes  # loaded only when needed

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


def recursive(function: Callable) -> Callable:
    """Decorates a function that calls itself, directly or through others, as deep as a program nests."""

    @functools.wraps(function)
    def deeper(*args: Any) -> Any:
        return in_new_thread(function, *args) if near_limit() else function(*args)

    return deeper


def with_room(function: Callable, *args: Any) -> Any:
    """Begin a walk: in this thread or, if the caller is far down, in a new one."""
    return function(*args) if _has_room() else in_new_thread(function, *args)


def _has_room() -> bool:
    if near_limit():
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
    try:  # Python 3.11 also counts calls of C functions, which have no frames
        _nest(sys.getrecursionlimit() - frames - MARGIN // 2)
    except RecursionError:
        return False
    return True


def _nest(calls: int) -> None:
    if calls > 0:
        _nest(calls - 1)


def compiled(tree: ast.Module, filename: str, flags: int = 0) -> types.CodeType:
    """`compile`, which recurses in C; in a new thread if the stack of this one is not large enough."""
    try:
        return compile(tree, filename, "exec", flags, dont_inherit=True)
    except RecursionError:
        return in_new_thread(_compiled_in_room, tree, filename, flags)


def _compiled_in_room(tree: ast.Module, filename: str, flags: int) -> types.CodeType:
    """`compile` in a new thread. Python 3.11 counts nested syntax against its limit of recursion. If the limit is too
    low, it is raised during the call as far as needed, but never so far that another thread could overflow its stack.
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
    """How deep the nodes of a tree nest."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [inner for n in level for inner in ast.iter_child_nodes(n)]
    return depth


# ------------------------------------------------------------------ new threads


_threads: contextvars.ContextVar[int] = contextvars.ContextVar("cutile_threads_of_a_walk", default=0)


class _Stopped(SystemExit):
    """Ends a thread for which nobody waits any more; Python prints nothing about it."""


class _Work:
    """A call in a thread of its own, in the context of the caller and with its debugger."""

    def __init__(self, function: Callable, args: tuple):
        self.context = contextvars.copy_context()
        self.call = functools.partial(self.context.run, function, *args)
        self.trace = sys.gettrace()
        self.thread: int | None = None  # its id, once it runs
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
        """The waiting thread was interrupted: end the work at its next step, and wait for that."""
        self.unwanted = True
        if self.thread is None:
            return  # it has not begun, and will not
        import ctypes  # loaded only when needed

        thread, stopped = ctypes.c_ulong(self.thread), ctypes.py_object(_Stopped)
        if ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, stopped):
            self.wait()

    def wait(self) -> None:
        while not self.done.acquire(timeout=1):  # a timeout, since Windows cannot interrupt a wait without one
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


def in_new_thread(function: Callable, *args: Any) -> Any:
    """Call a function in a new thread; its result or exception. An interrupt of this thread ends the new one.

    RecursionError if the walk, or the process, has too many threads.
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
        del work  # its error refers to this frame: without this, they would keep each other alive
