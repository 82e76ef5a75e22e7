"""Tile functions: a kernel as an ordinary function of arrays and numbers [JIT-1…18]."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING, Any, NoReturn

from cutile._support import float_mode
from cutile._support.lru import LruDict
from cutile._support.opaque import opaque
from cutile._support.structs import cached
from cutile.errors import TileError, refusal
from cutile.functions import argument_kinds, libraries
from cutile.functions.binding import MISSING, REQUIRED, bind, planned
from cutile.functions.entry import OUTSIDE, Tracer, entry, entry_in_c, traced_entry, uses_itself
from cutile.functions.first_call import allocators, given_outputs, outcome
from cutile.functions.out import declared
from cutile.functions.parameters import default_rules, keyed, lasting, parameters
from cutile.functions.placement import check_names, named_sizes, placed, sizes_of_outputs
from cutile.functions.rules import nearest, of_sizes
from cutile.runtime import launch_cache
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import declares, for_callers, for_users, hidden

LIMIT = 1000  # sizes and dtypes for which a function keeps what a call does
_functions: weakref.WeakSet[TileFunction] = weakref.WeakSet()

__tracebackhide__ = hidden


class TileFunction:
    """A kernel as a function, which `ct.jit` makes: it allocates outputs, computes the grid and launches.

    Attributes
    ----------
    kernel : kernel
        The kernel, which `ct.launch` takes.
    launched : kernel
        The kernel with the function's hints.
    parameters : dict
        Those that callers pass, with their defaults.
    outputs : list
        What it allocates, in the order of the kernel's parameters.
    returned : list of str
        The parameters that a call returns.
    """

    _tracer: Tracer | None = None  # of cutile.torch, once it is imported

    def __new__(cls, *args: Any, **kwargs: Any) -> TileFunction:
        """Each function has a class of its own: its `__call__` is written for its parameters, unless C code is called,
        and help() shows its documentation.
        """
        c = launch_cache.extension()
        bases = (cls,) if c is None else (cls, c.Callable)
        return object.__new__(type(cls.__name__, bases, {"__module__": cls.__module__, "__slots__": ()}))

    def __init__(self, kernel: Kernel, given: Mapping[str, Any]):
        functools.update_wrapper(self, kernel.function)
        self.given = dict(given)
        self.kernel = kernel
        self.__name__ = given.get("name") or kernel.__name__
        self.launched = kernel.replace_hints(**given["hints"]) if given.get("hints") else kernel
        self.specs = kernel.parameters
        self.checks: bool = given.get("checks", True)
        self.target: str | None = given.get("target")
        self.missing = MISSING
        self.operator: Any = None  # of PyTorch, made of this function by cutile.torch
        self.wrap: Callable | None = None  # what then makes `__call__`
        self._inout: set[str] = set()
        self._forms: dict[str, set] = {}  # values of constants that calls had
        self._declare()
        self._forget()
        _functions.add(self)

    # -------------------------------------------------------------- declaration

    def _declare(self) -> None:
        outs = placed(self.__name__, self.kernel, self.given.get("out"), self.given.get("defaults") or {})
        inputs = [n for n in self.kernel.names if n not in outs]
        named = self.named = named_sizes(self.specs, inputs)
        later = sizes_of_outputs(self.specs, outs, inputs)
        known = [*named, *(n for n in inputs if n not in named)]
        numbers = [n for n in known if n in named or self.specs[n].array is None]
        arrays = [n for n in inputs if not (self.specs[n].constant or self.specs[n].scalar or self.specs[n].number)]
        self.outputs = [declared(outs[n], n, i, inputs, known, later, arrays)
                        for i, n in enumerate(self.kernel.names) if n in outs]
        grid = self.given.get("grid")
        if grid is None:
            raise TypeError(f"ct.jit needs the grid of {self.__name__}: grid=(8,), grid=\"cdiv(M, 128)\", or a "
                            f"function of named sizes and constants")
        arrays = {n: "an array; grids and defaults follow from numbers and from sizes that annotations name, such as "
                     "M of ct.Array[\"M N\"]" for n in inputs if n not in numbers}
        self.grid = of_sizes("the grid", grid if not isinstance(grid, int) else (grid,), numbers, {**arrays, **later})
        self.defaults = default_rules(self, numbers, inputs, {**arrays, **later})
        self.parameters = parameters(self, inputs, named)
        self.computed = {n for n, p in self.parameters.items() if p.default is MISSING}
        self.keyed = keyed(self, inputs)
        extra = [Parameter(n, Parameter.KEYWORD_ONLY, default=None) for n in (["out"] * bool(outs) + ["stream"])]
        check_names(self.__name__, inputs, outs, [n for n in self.kernel.names if uses_itself(n)])
        self.__signature__ = inspect.Signature([*self.parameters.values(), *extra])

    @cached
    def _constant_kinds(self) -> Mapping[str, Any]:
        """T of each parameter that is annotated ct.Constant[T]."""
        return argument_kinds.constant_kinds(self)

    def _forget(self) -> None:
        """Begin anew, after a change of what calls do."""
        self.returned = {o.name for o in self.outputs} | self._inout
        self.plans: LruDict[tuple, tuple] = LruDict(LIMIT)
        self.given_plans: LruDict[tuple, tuple] = LruDict(LIMIT)
        self.calls: dict[bytes, tuple] = {}  # those that C code runs, as LaunchCache.keep_call puts them there
        self.checked: LruDict[tuple, bool] = LruDict(LIMIT)  # kinds of calls whose outputs the kernel stores to
        self.warned: set[tuple[str, str]] = set()  # outputs and arguments for which callers gave one array
        self._lasts = lasting(self)
        self._first = next((n for n in self.parameters if not (self.specs[n].constant or self.specs[n].scalar
                            or self.specs[n].number or self.specs[n].is_tuple or self.specs[n].list)), None)
        self._write_entry()

    def _redeclared(self, **given: Any) -> TileFunction:
        """A function of the same kernel, for which other things are said."""
        return TileFunction(self.kernel, {**self.given, "name": self.__name__, **given})

    def _write_entry(self) -> None:
        written, cls = entry(self, self._first), type(self)
        self._in_c = entry_in_c(self, written)
        # A call of the function, also where it has an operator
        self.plain = written.__get__(self) if self._in_c is None else self._in_c
        if "__call__" in vars(cls):
            del cls.__call__
        if self.wrap is not None:
            cls.__call__ = self.wrap(self)
            return self._document()
        if self._tracer is not None:
            written = traced_entry(self, written, self._tracer)
        if self._in_c is None:
            cls.__call__ = written
        else:  # calls go past what inspect and PyTorch's Dynamo find
            launch_cache.extension().enter(self, self._in_c, written)
        return self._document()

    def _document(self) -> None:
        """Let help(), which shows the class of an object, show what calls take and return."""
        def shown(name: str, sizes: Any, dtype: Any) -> str:
            said = [x for x in (sizes, dtype) if x is not None]
            return f"{name} ({', '.join(said)})" if said else name

        takes = [shown(n, s.sizes and s.sizes.text, s.sizes and s.sizes.dtype and s.sizes.dtype.name)
                 for n in self.parameters for s in [self.specs[n]]]
        made = {o.name: shown(o.name, o.described(), o.dtype_in_words()) for o in self.outputs}
        gives = [made.get(n, n) for n in self.kernel.names if n in self.returned]
        own = self.kernel.function.__doc__
        cls: Any = type(self)
        cls.__signature__ = self.__signature__
        cls.__doc__ = (f"{inspect.cleandoc(own) + chr(10) * 2 if own else ''}Takes {', '.join(takes) or 'nothing'}. "
                       f"Returns {', '.join(gives) or 'nothing'}.")

    @declares
    def inout(self, *names: str) -> TileFunction:
        """Let calls return arguments too: arrays that the kernel writes. This changes the function itself.

        They come in the order of the kernel's parameters. For another function, that returns what it did, make one of
        the kernel by `ct.jit` again.

        Parameters
        ----------
        *names
            The parameters.

        Returns
        -------
        function
            This one.

        Raises
        ------
        TypeError
            A name is no array that callers pass. TileTypeError at the first call if the kernel only reads it.

        Notes
        -----
        [JIT-12]
        """
        for n in names:
            if not isinstance(n, str):
                raise TypeError(f"{self.__name__}.inout takes names of parameters, such as inout(\"x\"), not "
                                f"{n!r:.100}")
            if any(n == o.name for o in self.outputs):
                raise TypeError(f"{self.__name__}: `{n}` is an output, which calls return anyway")
            spec = self.specs.get(n)
            if n not in self.parameters or spec is not None and (spec.constant or spec.scalar or spec.number):
                meant = "" if n in self.parameters else nearest(n, list(self.parameters))
                raise TypeError(f"{self.__name__}: {n} is no array that callers pass{meant}")
        self._inout |= set(names)
        self._forget()
        return self

    # -------------------------------------------------------------- a call

    if TYPE_CHECKING:  # each function's class has its own
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __getitem__(self, grid: Any) -> NoReturn:
        raise TypeError(f"{self.__name__} takes no grid in brackets, since ct.jit was given one; call it as "
                        f"{self.__name__}(...)")

    def slow(self, inputs: Sequence[Any], out: Any, stream: Any) -> tuple[Any] | Exception:
        """A call with all checks. What it finds is kept for calls with arrays of the same sizes and dtypes.

        Returns a tuple of what the call returns, or an error for the caller to raise.
        """
        if not float_mode.usual():
            return float_mode.run(self.slow, inputs, out, stream)
        return outcome(self, inputs, out, stream)

    def _named(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name. TypeError where there are too few or too many, or one has no such name."""
        from cutile.functions.explanation import too_many  # loaded when it is needed

        order = [n for n, p in self.parameters.items() if p.kind is not p.KEYWORD_ONLY]
        if len(args) > len(order):
            raise too_many(self, args[len(order):])
        given = dict(zip(order, args))
        for n, v in named.items():
            if n not in self.parameters and n not in ("out", "stream"):
                raise refusal(TypeError(f"{self.__name__}() has no argument {n}{nearest(n, list(self.parameters))}"))
            if n in given:
                raise refusal(TypeError(f"{self.__name__}() got two values for the argument `{n}`"))
            given[n] = v
        left = {n: REQUIRED for n, p in self.parameters.items() if p.default is p.empty and n not in given}
        return {**given, **left}

    @for_callers
    def _filled(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The arguments of these names for a call, also those that are left out."""
        bound = bind(self, {n: given.get(n, p.default if p.default is not p.empty else REQUIRED)
                            for n, p in self.parameters.items()})
        return {n: bound.values[n] for n in names}

    def _unfit(self, more: Sequence[Any], other: Mapping[str, Any]) -> TypeError:
        """The error of a call with arguments for which there is no parameter."""
        from cutile.functions.explanation import too_many, unknown  # loaded when it is needed

        return for_users(too_many(self, more) if more else unknown(self, next(iter(other))))

    def explained(self, error: Exception, inputs: Sequence[Any], out: Any) -> Exception:
        """The error to raise when a launch on the short way failed: that of the checks, if they find one."""
        if isinstance(error, TypeError | ValueError | OverflowError | TileError):
            from cutile.functions.explanation import of_function  # loaded when it is needed

            try:
                bound = bind(self, dict(zip(self.parameters, inputs, strict=True)))
                given_outputs(self, bound, [planned(bound, o) for o in self.outputs], out)
            except (TypeError, ValueError) as e:
                return for_users(e)
            return for_users(of_function(self, error))
        return error

    def launch_arguments(self, values: Mapping[str, Any]) -> tuple[tuple[int, int, int], Kernel, tuple]:
        """Grid, kernel and arguments of the launch that a call makes, with outputs that are allocated for it.

        Elements of the outputs are NaN or the lowest integer, in GPU memory too. Of arrays of JAX it takes copies in
        NumPy, since a launch needs memory that it may write.
        """
        given = {n: libraries.in_numpy(values.get(n, p.default)) for n, p in self.parameters.items()}
        missing = [n for n, v in given.items() if v is Parameter.empty]
        if missing:
            raise TypeError(f"{self.__name__}() needs the argument `{missing[0]}`")
        bound = bind(self, given)
        wanted = [planned(bound, o) for o in self.outputs]
        grid = bound.grid()
        first = bound.first and bound.first.value
        makers, _ = allocators(self, bound, wanted, poisoned=True)
        outputs = {w.output.name: make(first) for w, make in zip(wanted, makers)}
        return grid, self.launched, tuple({**bound.values, **outputs}[n] for n in self.kernel.names)

    @opaque(OUTSIDE)
    @for_callers
    def profile(self, *args: Any, **named: Any) -> Any:
        """Profile a call.

        Parameters
        ----------
        *args
            The arguments of the call.
        **named
            Those by name.

        Returns
        -------
        Profile
            What the call moves, computes and takes: a `ct.testing.Profile` [BEN-8].
        """
        from cutile.functions.profiling import profile

        return profile(self, args, named=named)

    # -------------------------------------------------------------- without running it

    @opaque(OUTSIDE)
    @for_callers
    def compile(self, *specs: Any, target: Any = None, hints: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Compile for arguments of these kinds, without running anything. No GPU is needed.

        Parameters
        ----------
        *specs
            The arguments of a call: arrays, `ct.ArraySpec`s, numbers, dtypes for numbers, constants.
        target : str, optional
            Such as "sm_90". None: that of `ct.jit`, or of the GPU that is there.
        hints : dict, optional
            Other options of the kernel.
        **named
            Arguments by name.

        Returns
        -------
        CompiledFunction

        Raises
        ------
        TypeError
            A constant follows from a size that a spec leaves open.

        Notes
        -----
        [CPL-1]
        """
        from cutile.functions.compiled import compile_function

        return compile_function(self, specs, named, target, hints)

    @opaque(OUTSIDE)
    @for_callers
    def compile_all(self, configs: Sequence[Any], specs: Sequence[Any] = (), *, targets: Sequence[Any] | None = None,
                    threads: int | None = None, errors: str = "raise", quiet: bool = True) -> list[Any]:
        """Compile for many configurations at once, and for each of some targets.

        Parameters
        ----------
        configs : sequence
            Dictionaries of arguments by name, or tuples of further arguments behind `specs`.
        specs : sequence, default ()
            The first arguments, as for `compile`.
        targets : sequence of str, optional
            The targets. None: as for `compile`.
        threads : int, optional
            As for `ct.compile_all`.
        errors : {"raise", "collect"}, default "raise"
            As for `ct.compile_all`.
        quiet : bool, default True
            As for `ct.compile_all`.

        Returns
        -------
        list of CompiledFunction
            In the order of the configurations; those of one configuration for all targets stand together.

        Notes
        -----
        [CPL-5]
        """
        from cutile.functions.compile_all import check_specs, compile_all

        check_specs(self.__name__, specs, targets)
        wrong = isinstance(configs, Mapping | str) or not isinstance(configs, Iterable)
        found = [] if wrong else list(configs)
        if wrong or not all(isinstance(c, Mapping | tuple | list) for c in found):
            raise refusal(TypeError(f"configurations of {self.__name__}.compile_all are a list of dictionaries, or of "
                                    f"tuples of further arguments, not {configs!r:.100}"))
        jobs = [(self, (*specs, *(() if isinstance(c, Mapping) else c)),
                 {**(c if isinstance(c, Mapping) else {}), "target": t})
                for c in found for t in targets or [None]]
        return compile_all(jobs, threads=threads, errors=errors, quiet=quiet)

    def _arguments_of_kernel(self, call: Sequence[Any]) -> tuple:
        """Sample arguments for all parameters of the kernel, from those of a call: arrays, specs and numbers."""
        from cutile.functions.compiled import arguments_for

        return arguments_for(self, call, {})[1]

    # -------------------------------------------------------------- as an object

    def __repr__(self) -> str:
        return f"<tile function {self.__module__}.{self.__qualname__}{self.__signature__}>"

    @property
    def _instead_of_kernel(self) -> str:
        """What to do with it in the place of a kernel, in words."""
        return f"got {self.__name__}, a function made by ct.jit; its kernel is {self.__name__}.kernel"

    @property
    def _instead_of_launch(self) -> str:
        """What to do with it in the place of a launch, in words."""
        name = self.__name__
        return f"{name} is a function made by ct.jit; call it as {name}(...), or launch its kernel, {name}.kernel"

    def __copy__(self) -> TileFunction:
        return self

    def __deepcopy__(self, memo: Any) -> TileFunction:
        return self

    def __reduce__(self) -> Any:
        """A pickle holds its name, or where another object has that name the kernel and what `ct.jit` was given."""
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (_again, (self.kernel, self.given, tuple(sorted(self._inout))))


def let_trace(tracer: Tracer | None) -> None:
    """Let a compiler that traces Python follow the calls of all functions; None: nobody does."""
    TileFunction._tracer = tracer
    for f in list(_functions):
        f._write_entry()


def _again(kernel: Kernel, given: dict[str, Any], inout: tuple[str, ...]) -> TileFunction:
    return TileFunction(kernel, given).inout(*inout)


