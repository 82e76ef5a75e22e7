"""Functions that find their fastest configuration by running them [TUN-1…12]."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from cutile._support.lru import LruDict
from cutile._support.opaque import opaque
from cutile._support.structs import structure
from cutile.errors import is_refusal, refusal
from cutile.functions import libraries, options
from cutile.functions.binding import bind
from cutile.functions.entry import OUTSIDE
from cutile.functions.factory import Factory
from cutile.functions.rules import nearest, of_function
from cutile.functions.tile_function import TileFunction
from cutile.functions.tuning_key import HINTS, TuningKey, check_names, key_of
from cutile.functions.tuning_store import Store, Tuning
from cutile.tracebacks import declares, for_callers, warn

LIMIT = 1000  # kinds of arguments for which a function keeps what a call does
Config = dict[str, Any]


@structure(frozen=True)
class Settings:
    """What `ct.autotune` was given."""

    configs: Any
    key: Any
    inputs: Any
    reference: Callable | None
    check: Callable | None
    budget_s: float | None
    timeout_s: float | None
    save: Any
    quiet: bool
    executor: Any


def configurations(given: Any) -> list[Config]:
    """Configurations as dictionaries of their own. TypeError for what is no list of dictionaries."""
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [None]
    if not all(isinstance(c, Mapping) for c in found):
        raise refusal(TypeError(f"configurations are a list of dictionaries, such as "
                                f"[{{\"TILE\": 64}}, {{\"TILE\": 128}}], not {given!r:.100}"))
    return [dict(c) for c in found]


class Tuned:
    """A function that finds its fastest configuration. `ct.autotune` makes it.

    Attributes
    ----------
    function : function
        What it tunes: a function made by `ct.jit`, or a factory.
    hint_names : tuple of str
        Options of the kernel that a call may give by name, too.
    last : Tuning or None
        The result of the last search; None before.
    """

    hint_names = HINTS

    def __init__(self, function: TileFunction | Factory, settings: Settings):
        functools.update_wrapper(self, function)
        self.function, self.settings = function, settings
        self.last: Tuning | None = None
        self._found: LruDict[TuningKey, Config] = LruDict(LIMIT)
        self._resolved: LruDict[tuple, tuple] = LruDict(LIMIT)  # by kinds of arguments, for quick calls
        self._with_hints: dict[tuple, TileFunction] = {}
        self._store = Store(settings.save)
        if not callable(settings.configs):
            self._check_keys(settings.configs)
        if isinstance(function, TileFunction):
            check_names(settings.key or (), function, self._keys())

    # -------------------------------------------------------------- configurations

    def _tunable(self) -> tuple[str, ...]:
        """What configurations may say, apart from hints."""
        if isinstance(self.function, Factory):
            return tuple(inspect.signature(self.function).parameters)
        return tuple(n for n in self.function.parameters if self.function.specs[n].constant)

    def _check_keys(self, configs: Sequence[Config]) -> None:
        valid = (*self._tunable(), *HINTS)
        for c in configs:
            for k in c:
                if k not in valid:
                    near = nearest(k, valid) if isinstance(k, str) else ""
                    raise ValueError(f"{self.__name__}: {k} cannot be tuned{near}; what can is "
                                     f"{', '.join(valid)}")

    def split(self, config: Config) -> tuple[Config, Config]:
        """The arguments that a configuration gives, and its hints."""
        values = {n: v for n, v in config.items() if n not in HINTS or n in self._tunable()}
        return values, {n: v for n, v in config.items() if n not in values}

    def configured(self, config: Config) -> tuple[TileFunction, Config]:
        """The function for a configuration, and the arguments that it needs."""
        values, hints = self.split(config)
        if isinstance(self.function, Factory):
            f, values = self.function(**values), {}
        else:
            f = self.function
        if hints:
            key = (f, *sorted(hints.items(), key=repr))
            if key not in self._with_hints:
                self._with_hints[key] = TileFunction(f.kernel, {**f.given, "hints": {**(f.given.get("hints") or {}),
                                                                                     **hints}}).inout(*f._inout)
            f = self._with_hints[key]
        return f, values

    def configs_for(self, args: tuple, named: Mapping[str, Any]) -> list[Config]:
        """The configurations for a call."""
        given = self.settings.configs
        if callable(given):
            names = self._names(args, named)
            rule = of_function(f"the configurations of {self.__name__}", given, list(names))
            try:
                found = rule.value(names)
            except Exception as e:
                raise refusal(ValueError(f"the configurations of {self.__name__} cannot be computed: "
                                         f"{type(e).__name__}: {e}")) from e
            given = configurations(found)
            if not given:
                raise refusal(ValueError(f"{self.__name__}: there are no configurations for these arguments"))
            self._check_keys(given)
        return given

    def _names(self, args: tuple, named: Mapping[str, Any]) -> dict[str, Any]:
        """Named sizes and arguments of a call; constants that a configuration gives are left out."""
        f = self.function
        if isinstance(f, Factory):
            if callable(self.settings.configs):
                raise TypeError(f"{self.__name__}: the configurations of a factory are a list, since the sizes have "
                                f"names only in the kernels that it returns")
            f = self.configured(self.settings.configs[0])[0]
        given = self.call_arguments(f, args, named)
        return bind(f, {n: v for n, v in given.items() if n in f.parameters}).names

    def call_arguments(self, f: TileFunction, args: tuple, named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name: positional ones are those that no configuration gives."""
        tuned = set(self._keys())
        order = [n for n, p in f.parameters.items() if p.kind is not p.KEYWORD_ONLY and n not in tuned]
        if len(args) > len(order):
            names = ", ".join(f"`{n}`" for n in order)
            raise refusal(TypeError(f"{self.__name__}() takes {len(order)} argument{'s' * (len(order) != 1)} by "
                                    f"position ({names}), got {len(args)}; what is tuned is given by name"))
        return {**dict(zip(order, args)), **named}

    def _check_arguments(self, args: tuple, named: Mapping[str, Any], config: Config) -> None:
        """TypeError or ValueError for arguments that no configuration makes right. `config`: one of them."""
        if isinstance(self.function, Factory):
            return
        values, _ = self.split(config)
        given = {**self.call_arguments(self.function, args, named), **values}
        try:
            self.function._filled(given, ())
        except (TypeError, ValueError) as e:
            if not any(n in str(e) for n in config):
                raise

    def _keys(self) -> list[str]:
        configs = self.settings.configs
        if callable(configs) or isinstance(self.function, Factory):
            return []
        return list(dict.fromkeys(k for c in configs for k in c if k in self.function.parameters))

    # -------------------------------------------------------------- calls

    @opaque("a tuned function searches by launching kernels; call it outside of what is compiled. In it, call the "
            "function that is tuned, f.function, with what a search has found, **f.best(...)")
    def _searching_call(self, *args: Any, **named: Any) -> Any:
        kind = _kind(args, named)
        try:
            f, names, values = self._resolved[kind]
        except (KeyError, TypeError):
            f, names, values = self.resolved(args, named)
            with contextlib.suppress(TypeError):  # an argument that cannot be hashed
                self._resolved.keep(kind, (f, names, values))
        if named:
            named = self._passed(f, named)
        return f(*args, **named) if names is None else f(**dict(zip(names, args)), **named, **values)

    __call__ = _searching_call  # until cutile.torch gives it one that compilers follow

    def __getitem__(self, grid: Any) -> NoReturn:
        raise TypeError(f"{self.__name__} takes no grid in brackets, since ct.jit was given one; call it as "
                        f"{self.__name__}(...)")

    def __getattr__(self, name: str) -> NoReturn:
        """For what only the function has that is tuned."""
        own = self.__dict__.get("function")
        if own is not None and hasattr(own, name) and not name.startswith("_"):
            raise AttributeError(f"{self.__name__} is a tuned function, which has no {name}; the function that is "
                                 f"tuned has one, {self.__name__}.function.{name}", name=name, obj=self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def _passed(self, f: TileFunction, named: Mapping[str, Any]) -> dict[str, Any]:
        """Named arguments without the hints, and the parameters of a factory, that the caller has chosen."""
        chosen = (*HINTS, *(self._config_keys() if isinstance(self.function, Factory) else ()))
        return {n: v for n, v in named.items() if n not in chosen or n in f.parameters}

    def resolved(self, args: tuple, named: Mapping[str, Any]) -> tuple[TileFunction, list[str] | None, Config]:
        """The function for a call, the names of positional arguments (None: as they are), and further arguments."""
        given = {n: v for n, v in named.items() if n not in ("out", "stream")}
        if isinstance(self.function, Factory):
            chosen = {n: v for n, v in given.items() if n in self._config_keys()}
            return self.configured(chosen or self.best(*args, **given))[0], None, {}
        names = list(self.call_arguments(self.function, args, {}))
        hints = {n: v for n, v in given.items() if n in HINTS and n not in self.function.parameters}
        if hints or any(n in given for n in self._keys()):
            return self.configured(hints)[0], names, {}  # the caller has chosen
        f, values = self.configured(self.best(*args, **given))
        return f, names, values

    @opaque(OUTSIDE)
    @for_callers
    def best(self, *args: Any, **named: Any) -> Config:
        """Give the configuration for a call: found before, remembered on disk, or searched now.

        Parameters
        ----------
        *args
            The arguments of the call.
        **named
            Those by name.

        Returns
        -------
        dict
        """
        self._check_named(named)
        key = self._key(args, named)
        config = self._found.get(key)
        if config is None:
            kept = self._store.get(key)
            config = self.tune(*args, **named).best if kept is None else kept.best
            self._found.keep(key, config)
            if kept is not None:
                self.last = kept
        return config

    @opaque(OUTSIDE)
    @for_callers
    def tune(self, *args: Any, **named: Any) -> Tuning:
        """Search now, and remember the result.

        Parameters
        ----------
        *args
            The arguments of the call.
        **named
            Those by name.

        Returns
        -------
        Tuning
            The times, and what failed.

        Raises
        ------
        ValueError
            No configuration ran; the text gives the most common reasons. Or configurations store different values and
            there is no reference, or none of them stores some element.
        OSError
            The folder of the file that `save` names does not exist, or may not be written to.
        """
        from cutile.functions.tuning_search import search

        self._check_named(named)
        if any(map(libraries.is_jax, (*args, *named.values()))):
            raise refusal(TypeError(f"{self.__name__}(): no search has run for such arrays, and one cannot run on "
                                    f"arrays of JAX; search with arrays of NumPy, PyTorch or CuPy of the same dtypes "
                                    f"and sizes on the same device, {self.__name__}.tune(...), or give the "
                                    f"configuration in the call"))
        key = self._key(args, named)
        self._store.check()
        self.last = found = search(self, args, named, key)
        self._resolved.clear()
        self._found.keep(key, found.best)
        self._store.keep(found)
        return found

    def _key(self, args: tuple, named: Mapping[str, Any]) -> TuningKey:
        """The key of a call. TypeError for arguments that it cannot have, before a search takes its time."""
        tracer = TileFunction._tracer
        if tracer is not None and (refused := tracer.refused(self)) is not None:
            raise refused
        try:
            return key_of(self, args, named)
        except TypeError as e:
            raise (e if is_refusal(e) else refusal(TypeError(f"{self.__name__}(): {e}"))) from None

    def _check_named(self, named: Mapping[str, Any]) -> None:
        """TypeError for a name that is no parameter, before a search takes its time."""
        for n in named if isinstance(self.function, TileFunction) else ():
            if n not in (*self.function.parameters, "out", "stream"):
                from cutile.functions.explanation import unknown  # loaded when it is needed

                raise unknown(self.function, n, self.__name__, HINTS)

    # -------------------------------------------------------------- without searching

    @opaque(OUTSIDE)
    @for_callers
    def compile(self, *specs: Any, target: Any = None, hints: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Compile for arguments of these kinds, as functions made by `ct.jit` do, without running anything.

        Parameters
        ----------
        *specs
            The arguments of a call, without what is tuned.
        target : str, optional
            Such as "sm_90". None: as for functions made by `ct.jit`.
        hints : dict, optional
            Other options of the kernel.
        **named
            Arguments by name. What is tuned is given here, as in `f.compile(x, **f.best(x))`. Where it is not, the
            result of a search for such arrays is taken, if one is kept.

        Returns
        -------
        CompiledFunction

        Raises
        ------
        TypeError
            No configuration is given, and none is kept.

        Notes
        -----
        [CPL-1, TUN-12]
        """
        from cutile.functions.compiled import compile_function

        given = {n: v for n, v in named.items() if n in self._config_keys()}
        if not given:
            given = self._kept(specs, named)
        f, values = self.configured(given)
        rest = {n: v for n, v in named.items() if n not in given}
        passed = {**self.call_arguments(f, specs, rest), **values}
        return compile_function(f, (), passed, target, hints)

    @opaque(OUTSIDE)
    @for_callers
    def compile_all(self, configs: Sequence[Config] | None = None, specs: Sequence[Any] = (), *,
                    targets: Sequence[Any] | None = None, threads: int | None = None, errors: str = "raise",
                    quiet: bool = True) -> list[Any]:
        """Compile many configurations at once, and for each of some targets.

        Parameters
        ----------
        configs : sequence of dict, optional
            The configurations. None: those that are tuned.
        specs : sequence, default ()
            The arguments of a call, without what is tuned.
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
        [CPL-5, TUN-12]
        """
        from cutile.functions.compile_all import check_specs, compile_all

        check_specs(self.__name__, specs, targets)
        wanted = self.configs_for(tuple(specs), {}) if configs is None else configurations(configs)
        self._check_keys(wanted)
        return compile_all([(self, tuple(specs), {**c, "target": t}) for c in wanted for t in targets or [None]],
                           threads=threads, errors=errors, quiet=quiet)

    @opaque(OUTSIDE)
    @for_callers
    def profile(self, *args: Any, **named: Any) -> Any:
        """Profile a call with the configuration that is found for it.

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

    def _config_keys(self) -> tuple[str, ...]:
        """What configurations give, hints too."""
        configs = self.settings.configs
        if callable(configs):
            return (*self._tunable(), *HINTS)
        return tuple(dict.fromkeys(k for c in configs for k in c))

    def _kept(self, args: tuple, named: Mapping[str, Any]) -> Config:
        """The configuration that a search found for such arguments; TypeError if there is none."""
        try:
            key = key_of(self, args, named)
            config = self._found.get(key) or getattr(self._store.get(key), "best", None)
        except Exception:  # no arrays, such as ArraySpecs
            config = None
        if config is None:
            keys = ", ".join(f"{k}=..." for k in self._config_keys())
            raise refusal(TypeError(
                f"{self.__name__}: to compile a tuned function, give a configuration by name ({keys}), or arrays for "
                f"which a search has run: {self.__name__}.best(...) returns one"))
        return config

    # -------------------------------------------------------------- files

    @declares
    def load(self, path: Any) -> None:
        """Use the results in a file that `export` wrote. They count before those on disk.

        Parameters
        ----------
        path : path
            The file. A warning if it has results of other functions alone.
        """
        options.check_path(f"{self.__name__}.load", path)
        functions = self._store.read(path)
        if functions and self.__name__ not in functions:
            warn(f"{os.fspath(path)!r} has no results of {self.__name__}, only of {', '.join(sorted(functions))}; "
                 f"calls of {self.__name__} search")
        self._found.clear()
        self._resolved.clear()

    @declares
    def export(self, path: Any) -> None:
        """Write all results for this function that are known here to a file, which can ship with a program.

        Parameters
        ----------
        path : path
            The file.
        """
        options.check_path(f"{self.__name__}.export", path)
        self._store.write(path)

    @property
    def _instead_of_launch(self) -> str:
        """What to do with it in the place of a launch, in words."""
        return f"{self.__name__} is a tuned function; call it as {self.__name__}(...)"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<tuned {self.function!r}>"


def _kind(args: tuple, named: Mapping[str, Any]) -> tuple:
    """What says of arguments which configuration they get."""
    return (*map(_one, args), *((n, _one(v)) for n, v in named.items() if n not in ("out", "stream")))


def _one(x: Any) -> Any:
    shape = getattr(x, "shape", None)
    if shape is None:
        return type(x), x
    return type(x), tuple(shape), x.dtype, str(getattr(x, "device", ""))
