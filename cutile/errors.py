"""Source spans, and the errors that users see.

An error says what is wrong, where (source line, carets, call chain), and what to write instead. `TileInternalError`
itself, not its subclasses, means a bug of cutile.
"""

from __future__ import annotations

import itertools
import linecache
import os
import types
from collections.abc import Sequence
from typing import TypeVar

from cutile._support.notebook import cell_name
from cutile._support.structs import structure

_PACKAGE = os.path.dirname(__file__) + os.sep

E = TypeVar("E", bound=Exception)


class SourceFile(str):
    """The name of a file, with the lines that the file had when functions were read from it."""

    lines: Sequence[str] = ()

    def __reduce__(self):
        return str, (str(self),)


def line_of(filename: str, number: int) -> str:
    """A line of a source file, counted from 1; "" if there is none."""
    lines = lines_of(filename)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def lines_of(filename: str) -> Sequence[str]:
    """The lines that a source file had when functions were read from it or, for other files, has now."""
    return getattr(filename, "lines", None) or linecache.getlines(filename)


@structure(frozen=True, slots=True, eq=False)
class Span:
    """A piece of the user's source. Lines count from 1; columns count characters from 0 and `end_col` is exclusive.

    `call_site` is where tile code called the function that holds this piece; None in the kernel itself.
    """

    filename: str
    line: int
    col: int
    end_line: int
    end_col: int
    function: str
    call_site: Span | None = None

    def __eq__(self, other: object) -> bool:
        """Compares whole call chains, without recursion, since they may be longer than Python's stack allows."""
        if not isinstance(other, Span):
            return NotImplemented
        a: Span | None = self
        b: Span | None = other
        while a is not b:
            if a is None or b is None or a._own() != b._own():
                return False
            a, b = a.call_site, b.call_site
        return True

    def __hash__(self) -> int:
        return hash(tuple(s._own() for s in self.frames()))

    def _own(self) -> tuple:
        return self.filename, self.line, self.col, self.end_line, self.end_col, self.function

    def frames(self) -> list[Span]:
        """The call chain: the span in the kernel first, this span last."""
        chain, s = [], self
        while s is not None:
            chain.append(s)
            s = s.call_site
        return chain[::-1]

    def source_line(self) -> str:
        return line_of(self.filename, self.line).rstrip("\n")

    def render(self) -> str:
        """The position, the source line, and carets under this piece."""
        lines = f"line {self.line}" if self.end_line == self.line else f"lines {self.line}--{self.end_line}"
        last = max(self.end_col, self.col + 1)
        cols = f"col {self.col + 1}" if last == self.col + 1 else f"col {self.col + 1}-{last}"
        place = cell_name(self.filename) or f'"{self.filename}"'
        out = [f"  {place}, {lines}, {cols}, in {self.function}"]
        text = self.source_line()
        if text.strip():
            indent = len(text) - len(text.lstrip())
            end = min(last, len(text)) if self.end_line == self.line else len(text)
            start = min(max(self.col, indent), len(text))
            out.append("    " + text[indent:])
            out.append("    " + " " * (start - indent) + "^" * max(end - start, 1))
        return "\n".join(out)


class TileError(Exception):
    """Base class of all errors about kernels.

    message    what is wrong, in one line
    loc        the `Span` of the source that is wrong, or None
    help       what to write instead, or None
    notes      pairs of a text and the span that it is about, or None
    argument   the name of the parameter of an op whose argument is wrong, or None
    errors     all errors that were found in the kernel, this one first
    """

    counted, of = "error", "in this kernel"  # what `errors` has, in words

    def __init__(self, message: str = "", loc: Span | None = None, *, help: str | None = None,
                 notes: Sequence[tuple[str, Span | None]] = (), argument: str | None = None):
        super().__init__(message)
        self.message = message
        self.loc = loc
        self.help = help
        self.notes = tuple(notes)
        self.argument = argument
        self.errors: tuple[TileError, ...] = (self,)

    def __reduce__(self):
        # The state is passed separately, as it refers to this error.
        return (_blank, (type(self), self.message), self.__dict__.copy())

    def render(self) -> str:
        """The text of this error, without the other errors of the kernel."""
        parts = [self.message]
        if self.loc is not None:
            parts += _shortened([s.render() for s in self.loc.frames()])
        for text, span in self.notes:
            parts.append(f"  note: {text}")
            if span is not None:
                parts.append(span.render())
        if self.help:
            parts.append("  help: " + self.help.replace("\n", "\n        "))
        return "\n".join(parts)

    def __str__(self) -> str:
        if len(self.errors) <= 1:
            return self.render()
        n = len(self.errors) - 1
        rest = [f"{type(e).__name__}: {e.render()}" for e in self.errors[1:]]
        return "\n\n".join([self.render(), f"and {n} more {self.counted}{'s' if n > 1 else ''} {self.of}:", *rest])


def refusal(e: E) -> E:
    """Mark an error about what the host passes to a launch: its traceback will end at the call of the launch."""
    e.__dict__["_cutile_refusal"] = True
    return e


def is_refusal(e: Exception) -> bool:
    return "_cutile_refusal" in e.__dict__


def for_users(e: E) -> E:
    """Remove the frames of cutile from the traceback of an error and of its cause. Returns the error.

    The frames of kernels and of other code of the user stay.
    """
    if e.__cause__ is not None:
        e.__cause__.__traceback__ = _users_frames(e.__cause__.__traceback__)
    return e.with_traceback(_users_frames(e.__traceback__))


def _users_frames(tb: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(tb)
        tb = tb.tb_next
    shown = None
    for t in reversed(kept):
        line = t.tb_lineno or t.tb_frame.f_code.co_firstlineno  # None in generated code without a line
        shown = types.TracebackType(shown, t.tb_frame, t.tb_lasti, line)
    return shown


def _shortened(frames: list[str]) -> list[str]:
    """A call chain that shows a repeated frame, as of a recursion, three times, and then how often it repeats."""
    out: list[str] = []
    for text, group in itertools.groupby(frames):
        n = len(list(group))
        out += [text] * min(n, 3)
        if n > 3:
            out.append(f"  … and {n - 3} more times the same call")
    return out


def _blank(cls: type[TileError], message: str) -> TileError:
    e = cls.__new__(cls)
    Exception.__init__(e, message)
    return e


class TileSyntaxError(TileError):
    """Python that tile code does not have, or an undefined name."""


class TileTypeError(TileError):
    """An operand of the wrong kind, dtype, shape or rank, or a value that must be constant and is not."""


class TileValueError(TileError):
    """A constant that is out of range, or outside the domain of an operation."""


class TileRecursionError(TileError, RecursionError):
    """Calls that nest deeper than the limit. Tile code has no recursion at run time."""


class TileUnsupportedFeatureError(TileError):
    """The target or the bytecode version lacks what the kernel needs."""


class TileStaticEvalError(TileError):
    """A static_eval, static_iter or static_assert that is used wrongly."""


class StaticException(TileStaticEvalError):
    """An exception raised by `raise ct.static_exception(...)` or by Python inside a static construct."""


class TileStaticAssertionError(TileError):
    """A static_assert that does not hold, or ensure_constant of a run-time value."""


class UnsupportedCallError(TileError):
    """A call of something that cannot be called from tile code."""


class TileInternalError(TileError):
    """A bug of cutile."""


class InternalCompilerError(TileInternalError):
    """The assembler failed. `compiler_flags` and `compiler_version` are those of its run."""

    def __init__(self, message="", loc=None, compiler_flags: str = "", compiler_version: str | None = None, **kw):
        super().__init__(message, loc, **kw)
        self.compiler_flags = compiler_flags
        self.compiler_version = compiler_version


class TileCompilerExecutionError(InternalCompilerError):
    """The assembler refused the program, or crashed."""


class TileCompilerTimeoutError(InternalCompilerError):
    """The assembler ran longer than compiler_timeout allows."""


class TileAssertionError(TileError, AssertionError):
    """`ct.assert_` failed in a running block."""


class TileDeadlockError(TileError):
    """Every block that has not finished waits for memory that no block changes."""


class TileStepLimitError(TileError):
    """The loops of a launch ran more iterations than CUTILE_STEP_LIMIT allows."""


class TileSanitizerError(TileError):
    """The sanitizer saw an access or a value that the language leaves undefined, or a trap that was asked for.

    check    which check reports it, such as "bounds"
    array    the parameter that it is about, in words
    block    the first block in which it was found; None if it is about the arguments alone
    element  the index of the first element of the array that it is about, of a trap that of the tile; or None
    times    how often it was found in the launch
    `errors` has all findings of the launch, ten at most.
    """

    counted, of = "finding", "of this launch"

    def __init__(self, message="", loc=None, *, check: str = "", array: str = "",
                 block: tuple[int, int, int] | None = None, element: tuple[int, ...] | None = None, times: int = 1,
                 **kw):
        super().__init__(message, loc, **kw)
        self.check, self.array, self.block, self.element, self.times = check, array, block, element, times
