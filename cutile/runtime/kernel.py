"""@kernel and @function: a Python function as a kernel, its programs, its launch plans.

A kernel keeps one typed program per specialisation key (arguments.py), with the program's dependencies: what typing
read from outside, such as globals, closures and helper functions. If one of them has changed, the next launch types the
kernel again. Kernels that differ only in their options share programs, and those with equal options share
launch plans.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from cutile import settings
from cutile._support import trace
from cutile._support.float_mode import in_usual_mode
from cutile._support.locks import Lock
from cutile._support.lru import LruDict
from cutile._support.opaque import opaque
from cutile._support.structs import field, structure
from cutile.front.context import Hidden
from cutile.front.dependencies import Dependencies
from cutile.front.program import ArgType, is_typing, parameter_names, type_kernel
from cutile.front.python_objects import declaration
from cutile.front.source_text import definition_of, remember
from cutile.ir import nodes
from cutile.ir.check import check
from cutile.ir.text import to_text
from cutile.ir.walk import nodes_of
from cutile.passes.fma import fma
from cutile.runtime.annotations import PLAIN, ArrayAnnotation, ParameterSpec, specs_of
from cutile.runtime.arguments import Argument, classify_all
from cutile.runtime.options import ByTarget, Options

if TYPE_CHECKING:
    Hint = int | ByTarget

LIMIT = 1000  # programs that a kernel keeps, and plans and loaded code for each of its options
OPTIONS_LIMIT = 100  # different options of a kernel for which something is kept


@structure(eq=False)
class TypedProgram:
    """A kernel typed and fused for one specialisation, with its dependencies and what back ends made of it.

    elements  the kernel with its element functions as the user wrote them, for debuggers; in `kernel` they are lifted
    """

    kernel: nodes.Kernel
    dependencies: Dependencies
    elements: nodes.Kernel | None = None
    compiled: Any = None  # the interpreter's CompiledKernel, from the first launch there on
    loaded: LruDict[tuple, Any] = field(default_factory=lambda: LruDict(LIMIT))  # handles of GPU functions
    used: bool = False  # by a recent launch (see LruDict)


class KernelPlans(LruDict[tuple, Any]):
    """The launch plans of a kernel with some options, by launch key (launch_plan.py).

    launch_cache  the fast way to find and run those on a GPU, where the extension was built (launch_cache.py)
    """

    def __init__(self) -> None:
        super().__init__(LIMIT)
        self.launch_cache: Any = None


_numbers = itertools.count()

_WHY = "a kernel is made of a function's source text, which cannot be traced; make it outside of what is compiled"


class Kernel:
    """Declare a function as a tile kernel, as a decorator, bare or with options; `ct.launch` runs it.

    Options are hints for GPUs. The interpreter checks and ignores them. Each may be a `ct.ByTarget`.

    Parameters
    ----------
    function : function
        The kernel: its parameters are arrays, numbers, tuples and lists of them, and constants annotated `ct.Constant`.
    num_ctas : int or None, default None
        How many CTAs a cluster has: 1, 2, 4, 8 or 16. None: the compiler decides.
    occupancy : int or None, default None
        How many CTAs are expected on a multiprocessor: 1 to 32. None: the compiler decides.
    opt_level : int, default 3
        How much the compiler optimises: 0 to 3.
    num_worker_warps : int or None, default None
        How many warps work on a block: 1, 2, 4, 8, 16 or 32. None: the compiler decides.
    **unknown
        Any other option is a TypeError.

    Attributes
    ----------
    function : function
        The Python function.
    parameters : dict
        What the annotation of each parameter asks for.

    Raises
    ------
    TypeError
        The target is no Python function, or an option is unknown.
    ValueError
        An option is out of range.

    Notes
    -----
    [KERN-1…7]

    Examples
    --------
    >>> @ct.kernel(occupancy=2)
    ... def scale(x, out, factor, TILE: ct.Constant[int]):
    ...     i = ct.bid(0)
    ...     ct.store(out, i, factor * ct.load(x, i, TILE))
    >>> x, out = np.arange(8), np.zeros(8, int)
    >>> ct.launch(None, (2,), scale, (x, out, 3, 4))
    >>> print(out)
    [ 0  3  6  9 12 15 18 21]
    """

    _cutile_kernel = True

    if TYPE_CHECKING:
        __name__: str
        __qualname__: str
        __wrapped__: Callable[..., Any]

        @overload
        def __new__(cls, function: Callable[..., Any], /, *, num_ctas: Hint | None = None,
                    occupancy: Hint | None = None, opt_level: Hint = 3,
                    num_worker_warps: Hint | None = None) -> Kernel: ...

        @overload
        def __new__(cls, function: None = None, /, *, num_ctas: Hint | None = None,
                    occupancy: Hint | None = None, opt_level: Hint = 3,
                    num_worker_warps: Hint | None = None) -> Callable[  # type: ignore[misc]
                        [Callable[..., Any]], Kernel]: ...

    @opaque(_WHY)
    def __new__(cls, function: Callable | None = None, /, *, num_ctas=None, occupancy=None, opt_level=3,
                num_worker_warps=None, **unknown) -> Any:
        return cls._declared(function, num_ctas, occupancy, opt_level, num_worker_warps, unknown)

    @classmethod
    @opaque(_WHY)
    def _declared(cls, function: Callable | None, num_ctas: Any, occupancy: Any, opt_level: Any, num_worker_warps: Any,
                  unknown: dict) -> Any:
        options = Options(num_ctas, occupancy, opt_level, num_worker_warps).replace(**unknown)
        return (lambda fn: cls._of(fn, options)) if function is None else cls._of(function, options)

    @classmethod
    def _of(cls, fn: Callable, options: Options) -> Kernel:
        if (space := declaration(fn)) is not None:
            fn = space.fn
        if not isinstance(fn, types.FunctionType):
            instead = getattr(fn, "_instead_of_kernel", None)  # of objects that functions/ makes
            raise TypeError(f"@ct.kernel needs a Python function, {instead or f'got {type(fn).__name__}'}")
        self = functools.update_wrapper(object.__new__(cls), fn)
        remember(fn)
        self._fn = fn
        self.names = [p.name for p in inspect.signature(fn, follow_wrapped=False).parameters.values()]
        specs = specs_of(fn)
        self.specs = [specs.get(n, PLAIN) for n in self.names]
        self.hidden: tuple[Hidden, ...] = ()  # what its last parameters stand for, which its function does not name
        self._variants: LruDict[tuple[Hidden, ...], Kernel] = LruDict(OPTIONS_LIMIT)  # by what is hidden
        self._programs = LruDict(LIMIT)
        self._by_options = LruDict(OPTIONS_LIMIT)
        self._lock = Lock()  # for threads that want one program
        return self._with(options)

    def _with(self, options: Options) -> Kernel:
        """Give it options. It shares programs with the kernel that it was made from, and plans with those of equal
        options.
        """
        plans = self._by_options.get(options.key)
        if plans is None:
            plans = KernelPlans()
            self._by_options.keep(options.key, plans)
        self.options, self.plans = options, plans
        self.identity = f"kernel {next(_numbers)}"  # compilers that trace Python tell kernels apart by it
        return self

    def with_hidden(self, hidden: tuple[Hidden, ...]) -> Kernel:
        """The kernel with a further parameter for each array that its functions capture: one kernel for equal ones."""
        found = self._variants.get(hidden)
        if found is None:
            found = object.__new__(type(self))
            found.__dict__.update(self.__dict__)
            found.hidden, found._programs, found._by_options = hidden, LruDict(LIMIT), LruDict(OPTIONS_LIMIT)
            found.names = [*self.names, *(h.name for h in hidden)]
            annotations = (ArrayAnnotation(index_dtype=h.type.index_dtype) for h in hidden)
            found.specs = [*self.specs, *(ParameterSpec(array=a) for a in annotations)]
            self._variants.keep(hidden, found._with(self.options))
        return found

    @property
    def function(self) -> types.FunctionType:
        """The Python function."""
        return self._fn

    @property
    def parameters(self) -> dict[str, ParameterSpec]:
        """What the annotation of each parameter asks for, by name."""
        return dict(zip(self.names, self.specs, strict=True))

    @opaque(_WHY)
    def replace_hints(self, **hints: Any) -> Kernel:
        """Give a kernel with other options.

        Kernels that come from one kernel and have equal options share what is compiled, so this may be called for every
        launch.

        Parameters
        ----------
        **hints
            Options, as for `ct.kernel`.

        Returns
        -------
        kernel

        Raises
        ------
        TypeError
            An unknown option.
        ValueError
            An option out of range.

        Notes
        -----
        [KERN-5]
        """
        options = self.options.replace(**hints)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other._with(options)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"kernel {self.__name__} cannot be called like a function; start it with "
                        f"ct.launch(stream, grid, {self.__name__}, args)")

    def __getitem__(self, grid):
        raise TypeError(f"kernel {self.__name__} cannot be subscripted; start it with "
                        f"ct.launch(stream, grid, {self.__name__}, args)")

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"

    def __reduce__(self) -> str:
        """As with functions: a copy is the kernel itself, and pickles hold its name."""
        return self.__qualname__

    def program(self, arguments: list[Argument]) -> TypedProgram:
        """The typed program for arguments of these kinds; typed once per key, by one thread."""
        key = tuple(a.key for a in arguments)
        found = self._programs.get(key)
        if found is None or not found.dependencies.unchanged():
            if is_typing():  # no lock: another thread may wait for one this thread holds
                found = self._typed(key, arguments)
            else:
                with self._lock.here():
                    found = self._typed(key, arguments)
        found.used = True
        return found

    def _typed(self, key: tuple, arguments: list[Argument]) -> TypedProgram:
        found = self._programs.get(key)
        if found is None or not found.dependencies.unchanged():
            found = typed(self, [a.arg_type for a in arguments])
            self._programs.keep(key, found)
        return found

    def classify(self, values: tuple) -> list[Argument]:
        """Classify launch arguments; errors name the parameter."""
        if len(values) != len(self.names):
            parameter_names(definition_of(self._fn))  # *args is what is wrong with a kernel, before the count
        return classify_all(self.names, self.specs, values, self.__name__, bool(self._fn.__defaults__))


@in_usual_mode
def typed(kernel: Kernel, arg_types: Sequence[ArgType]) -> TypedProgram:
    """A kernel typed for arguments of these kinds, with its multiply-adds fused: what back ends take."""
    fn = kernel.function
    with trace.timed(f"typing {fn.__qualname__}"):
        program = type_kernel(fn, arg_types, kernel.hidden)
    _stage("typed", program.kernel, trace.IR)
    with trace.timed(f"passes of {fn.__qualname__}"):
        fused = fma(program.kernel)  # the one pass that is part of the meaning [MACH-7]
    _stage("after fma", fused, trace.PASSES, changed=fused is not program.kernel)
    lifted = fused
    if any(n.region is not None and not n.op.accumulates for n in nodes_of(fused) if type(n) is nodes.Op):
        from cutile.passes.lift import lift  # loaded when it is needed

        with trace.timed(f"lifting element functions of {fn.__qualname__}"):
            lifted = lift(fused)
        _stage("lifted", lifted, trace.PASSES)
    return TypedProgram(lifted, program.dependencies, None if lifted is fused else fused)


def _stage(name: str, program: nodes.Kernel, level: int, changed: bool = True) -> None:
    """Check the IR of a stage under CUTILE_CHECK, if it has changed since the last one, and print it if the level of
    CUTILE_DEBUG includes it.
    """
    if changed and settings.get("CHECK"):
        check(program)
    if trace.on(level):
        trace.say(level, f"{name}\n{to_text(program, spans=False)}")


# ------------------------------------------------------------------ functions


@structure(frozen=True)
class CallableFrom:
    """Where a function may be called from."""

    fn: types.FunctionType
    host: bool
    tile: bool


def function(func: Callable | None = None, /, *, host: bool = False, tile: bool = True):
    """Declare where a function can be called from. Functions that kernels call need no declaration.

    Parameters
    ----------
    func : function
        The function.
    host : bool, default False
        Whether Python code may call it, too. If not, such a call is a RuntimeError.
    tile : bool, default True
        Whether tile code may call it.

    Notes
    -----
    [FN-1]

    Examples
    --------
    >>> @ct.function(host=True)
    ... def half(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """

    def decorate(fn: Callable):
        if not callable(fn):
            raise TypeError(f"@ct.function needs a function, got {type(fn).__name__}")
        if isinstance(fn, types.FunctionType):
            remember(fn)

        @functools.wraps(fn)
        def on_host(*args, **kwargs):
            if not host:
                why = "is a tile function: it can be called from tile code only" if tile else (
                    "can be called from nowhere: write @ct.function(host=True, tile=False)")
                raise RuntimeError(f"{fn.__name__}() {why}")
            return fn(*args, **kwargs)

        on_host._cutile_function = CallableFrom(fn, host, tile)
        return on_host

    return decorate if func is None else decorate(func)
