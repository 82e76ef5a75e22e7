"""@kernel, @function and launch: from a Python function and arguments to a running grid.

A kernel keeps the programs it was typed to, one per specialisation key (arguments.py). A program also knows what it
read from outside (globals, closures, helper functions); a launch that finds any of it changed types it anew. Kernels
that differ in their options alone share programs, those with equal options what launches prepared, too.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from cutile import settings
from cutile._support import trace
from cutile._support.float_mode import in_usual_mode
from cutile._support.locks import Lock
from cutile._support.lru import LruDict
from cutile._support.opaque import opaque
from cutile._support.structs import structure
from cutile.front.dependencies import Dependencies
from cutile.front.program import Blueprint, compile_kernel, inside, parameter_names
from cutile.front.python_objects import declaration
from cutile.front.source_text import definition_of, remember
from cutile.ir import nodes
from cutile.ir.check import check
from cutile.ir.text import to_text
from cutile.passes.fma import fma
from cutile.runtime.annotations import PLAIN, ParameterSpec, specs_of
from cutile.runtime.arguments import Argument, key_of, understand_all
from cutile.runtime.options import ByTarget, Options

if TYPE_CHECKING:
    Hint = int | ByTarget

LIMIT = 1000  # programs that a kernel keeps, and plans and loaded code for each of its options
OPTIONS_LIMIT = 100  # different options of a kernel for which something is kept


@structure(eq=False)
class TypedProgram:
    """A kernel typed and fused for one specialisation, what it depends on outside itself, what it was compiled to."""

    kernel: nodes.Kernel
    dependencies: Dependencies
    compiled: Any = None  # the interpreter's CompiledKernel, once a launch needed it
    used: bool = False  # by a recent launch (see LruDict)

    def on_host(self) -> Any:
        """What the interpreter derives from it, made at the first launch there."""
        if self.compiled is None:
            from cutile.interp import CompiledKernel  # back ends are loaded when they are needed

            self.compiled = CompiledKernel(self.kernel)
        return self.compiled


class Remembered:
    """What launches of a kernel with some options keep for others like them (launch_plan.py, launch_cache.py)."""

    def __init__(self) -> None:
        self.plans: LruDict[tuple, Any] = LruDict(LIMIT)
        self.loaded: LruDict[tuple, tuple] = LruDict(LIMIT)
        self.again: Callable[..., Any] | None = None


_WHY = "a kernel is made of a function's source text, which cannot be traced; make it outside of what is compiled"


class Kernel:
    """Declare a function as a tile kernel, as a decorator, bare or with options [KERN-1…4]; `ct.launch` runs it.

    num_ctas          CTAs per cluster: 1, 2, 4, 8, 16, or None
    occupancy         expected CTAs per multiprocessor: 1 … 32, or None
    opt_level         0 … 3
    num_worker_warps  1, 2, 4, 8, 16, 32, or None
    Each may be a `ByTarget`. Options are hints for GPUs; the interpreter checks and ignores them.
    TypeError if the target is no Python function, ValueError for an option out of range.
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
            raise TypeError(f"@ct.kernel needs a Python function, got {type(fn).__name__}")
        self = functools.update_wrapper(object.__new__(cls), fn)
        remember(fn)
        self._fn = fn
        self._names = [p.name for p in inspect.signature(fn, follow_wrapped=False).parameters.values()]
        specs = specs_of(fn)
        self.specs = [specs.get(n, PLAIN) for n in self._names]
        self._programs = LruDict(LIMIT)
        self._by_options = LruDict(OPTIONS_LIMIT)
        self._lock = Lock()  # for threads that want one program
        return self._with(options)

    def _with(self, options: Options) -> Kernel:
        """This kernel with other options. It shares what does not depend on them, and all with those of equal ones."""
        remembered = self._by_options.get(options.key)
        if remembered is None:
            remembered = Remembered()
            self._by_options.keep(options.key, remembered)
        self._options, self.remembered = options, remembered
        return self

    @property
    def function(self) -> types.FunctionType:
        """The Python function."""
        return self._fn

    @property
    def options(self) -> Options:
        """The compiler options."""
        return self._options

    @property
    def parameters(self) -> dict[str, ParameterSpec]:
        """What the annotation of each parameter asks for, by name."""
        return dict(zip(self._names, self.specs, strict=True))

    @opaque(_WHY)
    def replace_hints(self, **hints: Any) -> Kernel:
        """A new kernel with other compiler options; TypeError for an unknown name [KERN-5].

        Kernels with equal options that come from one kernel share what is compiled, so this may be called for every
        launch. The interpreter ignores options, so for it all of them do.
        """
        options = self._options.replace(**hints)
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
        key = key_of(arguments)
        found = self._programs.get(key)
        if found is None or not found.dependencies.unchanged():
            if inside():  # another thread may wait for what this one holds
                found = self._typed(key, arguments)
            else:
                with self._lock.here():
                    found = self._typed(key, arguments)
        found.used = True
        return found

    def _typed(self, key: Any, arguments: list[Argument]) -> TypedProgram:
        found = self._programs.get(key)
        if found is None or not found.dependencies.unchanged():
            found = typed(self, [a.blueprint for a in arguments])
            self._programs.keep(key, found)
        return found

    def understand(self, values: tuple) -> list[Argument]:
        """Classify launch arguments; errors name the parameter."""
        if len(values) != len(self._names):
            parameter_names(definition_of(self._fn))  # *args is what is wrong with a kernel, before the count
        return understand_all(self._names, self.parameters, values, self.__name__, bool(self._fn.__defaults__))


@in_usual_mode
def typed(kernel: Kernel, blueprints: Sequence[Blueprint]) -> TypedProgram:
    """A kernel typed for arguments of these kinds, with its multiply-adds fused: what back ends take."""
    fn = kernel.function
    with trace.timed(f"typing {fn.__qualname__}"):
        program = compile_kernel(fn, blueprints)
    _stage("typed", program.kernel, trace.IR)
    with trace.timed(f"passes of {fn.__qualname__}"):
        fused = fma(program.kernel)  # the one pass that is part of the meaning [MACH-7]
    _stage("after fma", fused, trace.PASSES)
    return TypedProgram(fused, program.dependencies)


def _stage(name: str, program: nodes.Kernel, level: int) -> None:
    """Check the IR of a stage under CUTILE_CHECK, and print it if the ladder reaches it."""
    if settings.get("CHECK"):
        check(program)
    if trace.on(level):
        trace.say(level, f"{name}\n{to_text(program, spans=False)}")


# ------------------------------------------------------------------ functions


@structure(frozen=True)
class Space:
    """Where a function may be called from."""

    fn: types.FunctionType
    host: bool
    tile: bool


def function(func: Callable | None = None, /, *, host: bool = False, tile: bool = True):
    """Declare where a function can be called from [FN-1]: tile code only by default, with host=True also host code."""

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

        on_host._cutile_function = Space(fn, host, tile)
        return on_host

    return decorate if func is None else decorate(func)
