"""The errors that users see.

An error says what is wrong, where (source line, carets, call chain), and what to write instead. `TileInternalError`
itself, not its subclasses, means a bug of cutile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cutile.spans import Span

E = TypeVar("E", bound=Exception)


class TileError(Exception):
    """An error of a kernel: the base class of all others.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    loc : Span or None, default None
        The piece of the source that is wrong.
    help : str or None, default None
        What to write instead.
    notes : sequence of tuples, default ()
        Pairs of a text and the piece of the source that it is about, or None.
    argument : str or None, default None
        The parameter of an op whose argument is wrong.

    Attributes
    ----------
    message : str
        What is wrong, in one line.
    loc : Span or None
        Where it is: `filename`, `line`, `col` and `function`, and `call_site` if a kernel called the function.
    help : str or None
        What to write instead.
    notes : tuple
        Pairs of a text and the piece of the source that it is about, or None.
    argument : str or None
        The parameter of an op whose argument is wrong.
    errors : tuple of TileError
        All errors of the kernel, this one first.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     t = ct.load(x, 0, 3)
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(3),))
    ... except ct.TileError as error:
    ...     print(type(error).__name__, error.loc.line, error.help[:8])
    TileTypeError 3 use 4 (o
    """

    _counted, _of = "error", "in this kernel"  # what `errors` has, in words
    _conversion: Any = None  # if it is about one that is not implicit: the dtypes from and to

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
        """Give the text of this error, without the other errors of the kernel.

        Returns
        -------
        str
        """
        parts = [self.message]
        if self.loc is not None:
            parts.append(self.loc.render_calls())
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
        return "\n\n".join([self.render(), f"and {n} more {self._counted}{'s' if n > 1 else ''} {self._of}:", *rest])


def _blank(cls: type[TileError], message: str) -> TileError:
    e = cls.__new__(cls)
    Exception.__init__(e, message)
    return e


def refusal(e: E) -> E:
    """Mark an error about what the host passes to a launch: its traceback will end at the call of the launch."""
    e.__dict__["_cutile_refusal"] = True
    return e


def is_refusal(e: Exception) -> bool:
    return "_cutile_refusal" in e.__dict__


def is_for_users(e: BaseException) -> bool:
    """Whether an error is one for users, and not a bug or an interrupt."""
    return isinstance(e, TileError) or "_cutile_refusal" in e.__dict__


class TileSyntaxError(TileError):
    """Python that tile code does not have, or a name that is not defined.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     a = [1, 2]
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4),))
    ... except ct.TileSyntaxError as error:
    ...     print(error.message)
    tile code does not support a list
    """


class TileTypeError(TileError):
    """An operand of the wrong kind, dtype, shape or rank, or a run-time value where a constant is needed.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     t = ct.load(x, 0, 4) @ 2.5
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4),))
    ... except ct.TileTypeError as error:
    ...     print(error.message)
    Invalid argument "y" of matmul(): expected a tile of rank 1, 2 or 3, got shape ()
    """


class TileValueError(TileError):
    """A constant that is out of range, or outside the domain of an operation.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     ct.store(x, 0, 1 // 0)
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4, np.int8),))
    ... except ct.TileValueError as error:
    ...     print(error.message)
    division by zero in the constant expression floordiv(1, 0)
    """


class TileRecursionError(TileError, RecursionError):
    """Calls that nest deeper than the limit: a function in tile code must not call itself without end.

    It is a RecursionError of Python, too.

    Examples
    --------
    >>> def again(x):
    ...     return again(x)
    >>> @ct.kernel
    ... def kernel(x):
    ...     again(x)
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4),))
    ... except ct.TileRecursionError as error:
    ...     print(error.message)
    calls are nested more than 1000 deep
    """


class TileUnsupportedFeatureError(TileError):
    """The GPU, or the version of the bytecode, lacks what the kernel needs.

    Examples
    --------
    >>> @ct.jit(grid="N", out=ct.Out("N"))
    ... @ct.kernel
    ... def copy(x: ct.Array["N"], y):
    ...     ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 1))
    >>> try:
    ...     copy.compile(ct.ArraySpec("N", ct.float32), target="sm_90").text("ptx")
    ... except ct.TileUnsupportedFeatureError as error:
    ...     print(error.message)
    there is no PTX: the assembler makes machine code of Tile IR; look at the views "tileir" and "sass"
    """


class TileStaticEvalError(TileError):
    """A `static_eval`, `static_iter` or `static_assert` that is used wrongly.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     n = ct.static_eval(ct.static_eval(1))
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4),))
    ... except ct.TileStaticEvalError as error:
    ...     print(error.message)
    static_eval() cannot be used inside static_eval()
    """


class StaticException(TileStaticEvalError):
    """What `raise ct.static_exception(...)` raises, and what an exception inside a static construct becomes.

    The exception itself is its `__cause__`.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, n: ct.Constant[int]):
    ...     part = ct.static_eval(100 // n)
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4), 0))
    ... except ct.StaticException as error:
    ...     print(repr(error.__cause__))
    ZeroDivisionError('integer division or modulo by zero')
    """


class TileStaticAssertionError(TileError):
    """A `static_assert` whose condition is False, or an `ensure_constant` of a run-time value.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, n: ct.Constant[int]):
    ...     ct.static_assert(n % 2 == 0, "n must be even")
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4), 3))
    ... except ct.TileStaticAssertionError as error:
    ...     print(error.message)
    Static assertion failed: n must be even
    """


class UnsupportedCallError(TileError):
    """A call of something that cannot be called from tile code."""


class TileInternalError(TileError):
    """A bug of cutile. Please report it.

    Its subclasses are errors of the assembler, which need not be bugs of cutile.

    Examples
    --------
    >>> issubclass(ct.TileCompilerTimeoutError, ct.TileInternalError)
    True
    """


class InternalCompilerError(TileInternalError):
    """The assembler failed. `compiler_flags` and `compiler_version` are those of its run."""

    def __init__(self, message="", loc=None, compiler_flags: str = "", compiler_version: str | None = None, **kw):
        super().__init__(message, loc, **kw)
        self.compiler_flags = compiler_flags
        self.compiler_version = compiler_version


class TileCompilerExecutionError(InternalCompilerError):
    """The assembler refused the program, or crashed.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    loc : Span or None, default None
        The piece of the source that is wrong.
    compiler_flags : str, default ""
        The flags of the assembler.
    compiler_version : str or None, default None
        The release of the assembler.
    **kw
        The other parameters of `TileError`.

    Attributes
    ----------
    compiler_flags : str
        The flags of the assembler.
    compiler_version : str or None
        The release of the assembler.

    Examples
    --------
    >>> error = ct.TileCompilerExecutionError("the assembler crashed", compiler_flags="--gpu-name=sm_90")
    >>> error.compiler_flags
    '--gpu-name=sm_90'
    """


class TileCompilerTimeoutError(InternalCompilerError):
    """The assembler ran longer than `ct.compiler_timeout` or CUTILE_COMPILER_TIMEOUT allows.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    loc : Span or None, default None
        The piece of the source that is wrong.
    compiler_flags : str, default ""
        The flags of the assembler.
    compiler_version : str or None, default None
        The release of the assembler.
    **kw
        The other parameters of `TileError`.

    Attributes
    ----------
    compiler_flags : str
        The flags of the assembler.
    compiler_version : str or None
        The release of the assembler.

    Examples
    --------
    >>> error = ct.TileCompilerTimeoutError("the assembler ran for 60 s", compiler_flags="--gpu-name=sm_90")
    >>> error.compiler_flags
    '--gpu-name=sm_90'
    """


class TileAssertionError(TileError, AssertionError):
    """The condition of a `ct.assert_` was False in a block that ran. It is an AssertionError of Python, too.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x):
    ...     ct.assert_(ct.load(x, 0, 4) > 0, "x must be positive")
    >>> try:
    ...     ct.launch(None, (1,), kernel, (np.zeros(4),))
    ... except ct.TileAssertionError as error:
    ...     print(error.message)
    assertion failed: x must be positive in block (0, 0, 0)
    """


class TileDeadlockError(TileError):
    """Every block that has not finished waits for memory that no block will change.

    Examples
    --------
    >>> @ct.kernel
    ... def wait(flag):
    ...     while ct.atomic_add(flag, 0, 0) == 0:
    ...         pass
    >>> try:
    ...     ct.launch(None, (1,), wait, (np.zeros(1, np.int32),))
    ... except ct.TileDeadlockError as error:
    ...     print(error.message)
    deadlock: 1 block waits for memory that no block changes; 0 finished
    """


class TileStepLimitError(TileError):
    """The loops of a launch ran more iterations than CUTILE_STEP_LIMIT allows.

    Examples
    --------
    >>> error = ct.TileStepLimitError("the loops ran more than 1000 iterations")
    >>> isinstance(error, ct.TileError)
    True
    """


class TileSanitizerError(TileError):
    """The sanitizer saw an access or a value that the language leaves undefined, or a trap that was asked for.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    loc : Span or None, default None
        The piece of the source that is wrong.
    check : str
        Which check reports it, such as "bounds".
    array : str
        The parameter that it is about, in words.
    block : tuple of int, or None
        The first block in which it was found; None if it is about the arguments alone.
    element : tuple of int, or None
        The index of the first element that it is about: of the array, or for a trap of the tile.
    times : int, default 1
        How often it was found in the launch.
    **kw
        The other parameters of `TileError`.

    Attributes
    ----------
    check : str
        Which check reports it, such as "bounds".
    array : str
        The parameter that it is about, in words.
    block : tuple of int, or None
        The first block in which it was found; None if it is about the arguments alone.
    element : tuple of int, or None
        The index of the first element that it is about: of the array, or for a trap of the tile.
    times : int
        How often it was found in the launch.

    Notes
    -----
    `errors` has all findings of the launch, ten at most.

    Examples
    --------
    >>> @ct.kernel
    ... def kernel(x, out):
    ...     ct.store(out, 0, ct.load(x, 1, 4))
    >>> with ct.sanitize("bounds"):
    ...     try:
    ...         ct.launch(None, (1,), kernel, (np.zeros(4), np.zeros(4)))
    ...     except ct.TileSanitizerError as error:
    ...         print(error.check, error.block, error.times)
    bounds (0, 0, 0) 1
    """

    _counted, _of = "finding", "of this launch"

    def __init__(self, message="", loc=None, *, check: str = "", array: str = "",
                 block: tuple[int, int, int] | None = None, element: tuple[int, ...] | None = None, times: int = 1,
                 **kw):
        super().__init__(message, loc, **kw)
        self.check, self.array, self.block, self.element, self.times = check, array, block, element, times
