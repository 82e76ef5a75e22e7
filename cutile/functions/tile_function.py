"""Tile functions: a kernel as an ordinary function of arrays and numbers [JIT-1…18]."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING, Any, NoReturn

from cutile import settings
from cutile._support import float_mode
from cutile._support.lru import LruDict
from cutile._support.opaque import opaque
from cutile._support.structs import cached
from cutile.errors import TileError, is_for_users, refusal
from cutile.functions import argument_kinds, libraries, stored
from cutile.functions.binding import MISSING, REQUIRED, Bound, Planned, bind, check_given, planned
from cutile.functions.entry import OUTSIDE, Tracer, entry, entry_in_c, traced_entry, uses_itself
from cutile.functions.out import declared
from cutile.functions.placement import check_names, named_sizes, placed, sizes_of_outputs
from cutile.functions.rules import Rule, nearest, of_function, of_sizes
from cutile.runtime import launch as launching
from cutile.runtime import launch_cache
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import declares, for_callers, for_users, hidden, warn

LIMIT = 1000  # sizes and dtypes for which a function keeps what a call does
_functions: weakref.WeakSet[TileFunction] = weakref.WeakSet()
MANY_FORMS = 8  # compiled forms of a kernel, above which a function warns [JIT-22]

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
        self.defaults = self._default_rules(numbers, inputs, {**arrays, **later})
        self.parameters = self._signature(inputs, named)
        self.computed = {n for n, p in self.parameters.items() if p.default is MISSING}
        self.keyed = self._keyed(inputs)
        extra = [Parameter(n, Parameter.KEYWORD_ONLY, default=None) for n in (["out"] * bool(outs) + ["stream"])]
        check_names(self.__name__, inputs, outs, [n for n in self.kernel.names if uses_itself(n)])
        self.__signature__ = inspect.Signature([*self.parameters.values(), *extra])

    def _default_rules(self, known: Sequence[str], inputs: Sequence[str], later: Mapping[str, str]) -> dict[str, Rule]:
        found = {}
        for name, value in (self.given.get("defaults") or {}).items():
            if name not in inputs:
                raise TypeError(f"defaults of {self.__name__}: {name} is no input{nearest(name, inputs)}; inputs are "
                                f"{', '.join(inputs) or 'none'}")
            kind = getattr(self.kernel.function.__annotations__.get(name), "__origin__", None)  # T of ct.Constant[T]
            if isinstance(value, str) and kind in (int, float, bool):
                raise TypeError(f"defaults of {self.__name__}: `{name}` is {kind.__name__}, not text: write a number, "
                                f"or a function of named sizes, such as lambda N: N")
            if callable(value) and not isinstance(value, type):
                found[name] = of_function(f"the default of `{name}`", value, [k for k in known if k != name], later)
        return found

    def _signature(self, inputs: Sequence[str], named: Mapping[str, str]) -> dict[str, Parameter]:
        """The parameters that callers pass. Those without a default behind one with a default stay positional, those
        with a default before them become keyword-only.
        """
        plain = {n: v for n, v in (self.given.get("defaults") or {}).items() if n not in self.defaults}
        own = inspect.signature(self.kernel.function).parameters
        found: dict[str, Parameter] = {}
        for n in inputs:
            default = plain.get(n, MISSING if n in self.defaults else own[n].default)
            if default is Parameter.empty and n in named:
                default = MISSING
            kind = Parameter.KEYWORD_ONLY if own[n].kind is Parameter.KEYWORD_ONLY else Parameter.POSITIONAL_OR_KEYWORD
            found[n] = Parameter(n, kind, default=default)
        required = [i for i, p in enumerate(found.values()) if p.default is p.empty]
        for i, p in enumerate(list(found.values())):
            if p.default is not p.empty and required and i < required[-1]:
                found[p.name] = p.replace(kind=p.KEYWORD_ONLY)
        return dict(sorted(found.items(), key=lambda item: item[1].kind is Parameter.KEYWORD_ONLY))

    def _keyed(self, inputs: Sequence[str]) -> list[tuple[str, bool]]:
        """What the work of a call depends on: arrays by sizes and dtype, numbers by value."""
        rules = [self.grid, *self.defaults.values(), *(r for o in self.outputs for r in (o.shape, o.dtype) if r)]
        read = {n for r in rules for n in r.reads} | {n for n in inputs if self.specs[n].constant} | self.computed
        like = {n for o in self.outputs for n in (o.out.like, o.dtype_like) if n is not None}
        arrays = [n for n in inputs if self.specs[n].sizes is not None or n in like]
        return [(n, True) for n in arrays] + [(n, False) for n in inputs if n not in arrays and n in read]

    def _lasting(self) -> bool:
        """Whether what a call does follows from what is keyed: rules that read other things are evaluated each time."""
        arrays = {n for n, s in self.specs.items() if s.array is not None}
        out = [r for o in self.outputs for r in (o.shape, o.dtype) if r is not None]
        return all(r.lasts and not r.reads & arrays for r in [self.grid, *self.defaults.values(), *out])

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
        self._lasts = self._lasting()
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
        return self._outcome(inputs, out, stream)

    def _outcome(self, inputs: Sequence[Any], out: Any, stream: Any) -> tuple[Any] | Exception:
        bound, wanted = None, []
        try:
            bound = bind(self, dict(zip(self.parameters, inputs, strict=True)))
            wanted += [planned(bound, o) for o in self.outputs]
            given = self._given(bound, wanted, out)
            if bound.traced:
                from cutile.functions import traced

                return (traced.call(bound, wanted),)
            return (self._run(bound, wanted, given, inputs, out, stream),)
        except Exception as e:
            if settings.get("DEBUG") or not is_for_users(e):
                raise
            if self._tracer is not None and (refused := self._tracer.refused(self)) is not None:
                return for_users(refused)
            from cutile.functions.explanation import explained  # loaded when it is needed

            return for_users(explained(self, e, inputs, bound, wanted))

    def _given(self, bound: Bound, wanted: Sequence[Planned], out: Any) -> list[Any] | None:
        """The arrays that the caller gives for outputs; None if it gives none."""
        if out is None:
            return None
        arrays = out if isinstance(out, tuple | list) and len(wanted) > 1 else [out]
        if len(arrays) != len(wanted):
            raise refusal(TypeError(f"{self.__name__}(): out= takes {_as_outputs(wanted)}, got {len(arrays)} "
                                    f"array{'s' * (len(arrays) != 1)}"))
        for w, a in zip(wanted, arrays):
            check_given(bound, w, a)
        stored.check_apart(bound, {w.output.name: a for w, a in zip(wanted, arrays)})
        return list(arrays)

    def _run(self, bound: Bound, wanted: Sequence[Planned], given: list[Any] | None, inputs: Sequence[Any], out: Any,
             stream: Any) -> Any:
        nothing = bool(wanted) and not self._inout and all(0 in w.shape for w in wanted)
        grid = (0, 0, 0) if nothing else bound.grid()
        made = wanted if given is None else []
        makers, library = self._allocators(bound, made, given)
        first, stream_of = bound.first and bound.first.value, library.stream()
        if given is not None:
            outputs = given
        elif stream is None or not makers:
            outputs = [make(first) for make in makers]
        else:
            with libraries.on(first, stream, made[0].output.out.device):
                outputs = [make(first) for make in makers]
        values = {**bound.values, **{w.output.name: a for w, a in zip(wanted, outputs)}}
        fillers = [] if given is None else [_filler(w) for w in wanted]
        arguments = tuple(values[n] for n in self.kernel.names)
        if 0 not in grid:
            stored.check_call(bound, arguments, given is not None)
        asked = first if first is not None else outputs[0] if outputs else None
        at = stream_of(asked) if stream is None else stream
        for fill, w, a in zip(fillers, wanted, outputs):
            if w.output.out.fill is not None:
                with libraries.on(a, at):
                    fill(a)
        if 0 not in grid:
            launching.launch(at, grid, self.launched, arguments)
            if library.lasts and self._lasts:
                self._keep_in_c(bound, grid, library, inputs, values, made,
                                {w.output.name: fill for w, fill in zip(wanted, fillers)})
                self._keep(bound, (grid, stream_of, *(makers if given is None else fillers)), inputs,
                           None if given is None else outputs)
            self._count_forms(bound)
        returned = [values[n] for n in self.kernel.names if n in self.returned]
        return None if not returned else returned[0] if len(returned) == 1 else tuple(returned)

    def _allocators(self, bound: Bound, wanted: Sequence[Planned], given: Sequence[Any] | None = None,
                    poisoned: bool = False) -> tuple[list[Callable], libraries.Library]:
        """For each output what makes it, and the library that has the current stream.

        given      the arrays that the caller gives for outputs
        poisoned   whether outputs without fill are NaN or the lowest integer wherever they are
        """
        first = bound.first
        if first is None:
            pairs = [libraries.of_device(w.output.out.device) for w in wanted]
            makers = [library.maker(w.shape, w.dtype, _fill(w, poisoned), device)
                      for w, (library, device) in zip(wanted, pairs)]
            return makers, pairs[0][0] if pairs else libraries.of_given(given)
        assert first.ref is not None
        library = libraries.of_array(first.value, first.ref, allocates=bool(wanted))
        for w in wanted:
            if w.output.out.device is not None:
                raise refusal(TypeError(f"{self.__name__}(): output `{w.output.name}` is where the arrays are, so its "
                                        f"ct.Out takes no device"))
        return [library.maker(w.shape, w.dtype, _fill(w, poisoned), None) for w in wanted], library

    def _keep(self, bound: Bound, plan: tuple, inputs: Sequence[Any], given: Sequence[Any] | None) -> None:
        """Let the next calls like this one go the short way."""
        if bound.first is not None and bound.first.name != self._first:
            if bound.first.name in self.parameters:  # the first array is another parameter than supposed
                self._first = bound.first.name
                self.plans.clear()
                self.given_plans.clear()
                self._write_entry()
            return
        if bound.first is None and self._first is not None:
            return
        passed = dict(zip(self.parameters, inputs, strict=True))
        key = [] if self._first is None else [type(passed[self._first])]
        for name, is_array in self.keyed:
            key += [passed[name].shape, passed[name].dtype] if is_array else [passed[name], type(passed[name])]
        computed = [bound.values[n] for n in self.parameters if n in self.computed]
        plans = self.plans
        if given is not None:
            plans = self.given_plans
            key += [x for a in given for x in (a.shape, a.dtype)]
        try:
            plans.keep(tuple(key), (*plan, *computed))
        except TypeError:  # an argument that cannot be hashed
            pass

    def _keep_in_c(self, bound: Bound, grid: tuple, library: libraries.Library, inputs: Sequence[Any],
                   values: Mapping[str, Any], made: Sequence[Planned], fills: Mapping[str, Callable]) -> None:
        """Let C code run the next calls like this one. Not where grid or outputs follow from numbers that are no
        constants, since these are not in a signature; and without arrays only calls that are given outputs.

        made   the outputs that the call made
        fills  what fills those that it was given, by name
        """
        cache, first = self.launched.plans.launch_cache, bound.first
        if cache is None or any(not is_array and not self.specs[n].constant for n, is_array in self.keyed):
            return
        filled = [] if made else [o for o in self.outputs if o.out.fill is not None]
        passed = {**values, **dict(zip(self.parameters, inputs, strict=True)), **{w.output.name: None for w in made}}
        names = self.kernel.names
        if first is not None:
            asked, array = first.name, first.value
        elif self.outputs and not made:
            asked, array = self.outputs[0].name, values[self.outputs[0].name]
        else:
            return
        if any(type(values[o.name]) is not type(array) for o in filled):
            return  # of another library, whose current stream C code does not ask for
        if asked in names and self._in_c is not None and self._in_c.use(cache):
            source = library.stream_in_c(launch_cache.extension(), array)
            recipes = tuple(library.recipe(w.shape, w.dtype, w.output.out.fill, None, array) for w in made)
            fillers = tuple(x for o in filled for x in (names.index(o.name), fills[o.name]))
            cache.keep_call(self.calls, tuple(passed[n] for n in names), tuple(values[n] for n in names), grid,
                            names.index(asked), *source, recipes, fillers)

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

    def _too_many(self, more: Sequence[Any]) -> TypeError:
        from cutile.functions.explanation import too_many  # loaded when it is needed

        return for_users(too_many(self, more))

    def explained(self, error: Exception, inputs: Sequence[Any], out: Any) -> Exception:
        """The error to raise when a launch on the short way failed: that of the checks, if they find one."""
        if isinstance(error, TypeError | ValueError | OverflowError | TileError):
            from cutile.functions.explanation import of_function  # loaded when it is needed

            try:
                bound = bind(self, dict(zip(self.parameters, inputs, strict=True)))
                self._given(bound, [planned(bound, o) for o in self.outputs], out)
            except (TypeError, ValueError) as e:
                return for_users(e)
            return for_users(of_function(self, error))
        return error

    def _count_forms(self, bound: Bound) -> None:
        """Warn once of a constant, or a size that is one, that takes ever new values [JIT-22]."""
        for n, spec in self.specs.items():
            if spec.constant:
                self._forms.setdefault(n, set()).add(repr(bound.values.get(n)))
        for a in bound.arrays:
            if a.name in self.specs and (of := self.specs[a.name].array) is not None and of.static_shape_dims:
                self._forms.setdefault(a.name, set()).add(tuple(a.shape[d] for d in of.static_shape_dims))
        most = max(self._forms, key=lambda n: len(self._forms[n]), default=None)
        if most is None or len(self._forms[most]) <= MANY_FORMS:
            return
        kinds, self._forms = len(self._forms[most]), _Uncounted()
        warn(f"{self.__name__} was compiled for {kinds} values of `{most}`, each of which is other code; what varies "
             f"from call to call should be no constant")

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
        makers, _ = self._allocators(bound, wanted, poisoned=True)
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
        if isinstance(configs, Mapping | str) or not all(isinstance(c, Mapping | tuple | list) for c in configs):
            raise refusal(TypeError(f"configurations of {self.__name__}.compile_all are a list of dictionaries, or of "
                                    f"tuples of further arguments, not {configs!r:.100}"))
        jobs = [(self, (*specs, *(() if isinstance(c, Mapping) else c)),
                 {**(c if isinstance(c, Mapping) else {}), "target": t})
                for c in configs for t in targets or [None]]
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


def let_trace(tracer: Tracer) -> None:
    """Let a compiler that traces Python follow the calls of all functions."""
    TileFunction._tracer = tracer
    for f in list(_functions):
        f._write_entry()


def _again(kernel: Kernel, given: dict[str, Any], inout: tuple[str, ...]) -> TileFunction:
    return TileFunction(kernel, given).inout(*inout)


class _Uncounted(dict):
    """In the place of counts, once there was a warning: it stays empty."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return default


def _fill(w: Planned, poisoned: bool) -> Any:
    return libraries.lowest(w.dtype) if poisoned and w.output.out.fill is None else w.output.out.fill


def _filler(w: Planned) -> Callable[[Any], None]:
    """What fills an output that the caller gives, in the place of what makes one."""
    return _as_given if w.output.out.fill is None else libraries.filler(w.output.out.fill, w.dtype)


def _as_given(a: Any) -> None:
    """For an output without fill: the array stays as the caller gives it."""


def _as_outputs(wanted: Sequence[Planned]) -> str:
    names = ", ".join(f"`{w.output.name}`" for w in wanted)
    return f"an array for {names}" if len(wanted) == 1 else f"a tuple of {len(wanted)} arrays, for {names}"
