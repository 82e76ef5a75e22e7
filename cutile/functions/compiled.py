"""Compiled functions: a kernel compiled for arguments of some kinds, without running it [CPL-1…7]."""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutile import settings
from cutile._support.float_mode import in_usual_mode
from cutile._support.structs import cached
from cutile.compilation.array_spec import Sample, samples
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.launch_signature import of_launch
from cutile.compilation.signature import KernelSignature
from cutile.errors import TileUnsupportedFeatureError, refusal
from cutile.front.source_text import definition_of
from cutile.functions import accepted, options, stored
from cutile.functions.binding import MISSING, Bound, bind, planned
from cutile.functions.stages import STAGES, Compilation
from cutile.gpu.cubin_resources import Resources, blocks_held, read
from cutile.gpu.target import Target, parse_target
from cutile.runtime.kernel import Kernel
from cutile.tracebacks import declares, for_callers, hidden

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

VIEWS = tuple(STAGES)
FORMAT = 2  # of files that `save` writes
_SUFFIXES = {".cubin": None, ".cutile": None, ".tileir": "tileir", ".sass": "sass", ".ir": "ir", ".py": "source",
             ".txt": "resources"}

__tracebackhide__ = hidden


class CompiledFunction:
    """A kernel compiled for a GPU. `compile` of a function and `ct.compile_all` make it; `load` reads it from a file.

    Attributes
    ----------
    name : str
        The name of the kernel.
    symbol : str
        The name of its entry in the machine code.
    target : str
        Such as "sm_90".
    cubin : bytes
        The machine code.
    key : str
        The key of the code in the cache on disk; "" where it was loaded from a file.
    seconds : float or None
        How long it took to compile; None if it was in the cache.
    resources : Resources
        Registers, stack and shared memory, threads and size of the code.
    blocks_held : int
        How many blocks one multiprocessor of the target holds at the same time.

    Notes
    -----
    [CPL-1…7] No GPU is needed, but the assembler is: the extra `gpu`.

    Examples
    --------
    >>> @ct.jit(grid="cdiv(N, 128)", out=ct.Out("N"))
    ... @ct.kernel
    ... def double(x: ct.Array["N"], y):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), 128))
    >>> c = double.compile(ct.ArraySpec("N", ct.float32), target="sm_90")
    >>> c
    <double compiled for sm_90>
    >>> isinstance(c, ct.CompiledFunction)
    True
    >>> "mulf" in c.text("tileir")
    True
    """

    name: str
    symbol: str
    target: str
    cubin: bytes
    key: str
    seconds: float | None
    if TYPE_CHECKING:
        accepts: list[accepted.Accepted]
        place: tuple[str, str]  # the module of its function, and the function's name there
        written: str  # the kernel's text, without comments

    def __init__(self) -> None:
        raise TypeError("compiled functions are made by f.compile(...), of a function by ct.jit, and by "
                        "CompiledFunction.load(path)")

    @property
    def _instead_of_launch(self) -> str:
        """What to do with it in the place of a launch, in words."""
        return f"{self!r} is called like its function, and not launched"

    @declares
    def text(self, view: str) -> str:
        """Give a view of it.

        Parameters
        ----------
        view : str
            "source", "ir", "fma", "passes", "tileir", "remarks", "resources", "sass" or "host".

        Returns
        -------
        str

        Raises
        ------
        ValueError
            Another view.
        TileUnsupportedFeatureError
            "ptx": machine code is made of Tile IR directly.
        """
        if view == "ptx":
            raise TileUnsupportedFeatureError("there is no PTX: the assembler makes machine code of Tile IR; look at "
                                              "the views \"tileir\" and \"sass\"")
        if view not in VIEWS:
            raise ValueError(f"no view {view!r:.40}; there are {', '.join(VIEWS)}")
        return self._text(view)

    def _text(self, view: str) -> str:
        raise NotImplementedError

    @for_callers
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function. TypeError where the arguments are of other kinds than those that it was compiled for."""
        function = self._called()
        accepted.check(function, self.accepts, function._named(args, kwargs))
        return function(*args, **kwargs)

    def _called(self) -> TileFunction:
        raise NotImplementedError

    def show(self, view: str = "resources") -> None:
        """Print a view.

        Parameters
        ----------
        view : str, default "resources"
            As for `text`.
        """
        print(self.text(view))

    @cached
    def resources(self) -> Resources:
        """Registers, stack and shared memory, threads and size of the code, read from the machine code."""
        return read(self.cubin, self.symbol)

    @property
    def blocks_held(self) -> int:
        """How many blocks one multiprocessor of the target holds at the same time."""
        return blocks_held(self.resources, parse_target(self.target))

    @declares
    def save(self, path: str | os.PathLike) -> None:
        """Write a file; its suffix says what.

        Parameters
        ----------
        path : path
            With the suffix .cubin, .tileir, .sass, .ir, .py (the source), .txt (resources), or .cutile, which has all
            of them and can be loaded.

        Raises
        ------
        ValueError
            Another suffix.
        """
        options.check_path("save()", path)
        suffix = Path(path).suffix
        if suffix not in _SUFFIXES:
            raise ValueError(f"{os.fspath(path)!r}: files end with {', '.join(_SUFFIXES)}")
        view = _SUFFIXES[suffix]
        if suffix == ".cutile":
            _write_archive(self, path)
        elif view is None:
            Path(path).write_bytes(self.cubin)
        else:
            Path(path).write_text(self.text(view) + "\n")

    @staticmethod
    @declares
    def load(path: str | os.PathLike, function: TileFunction | None = None) -> CompiledFunction:
        """Read a file .cutile that `save` wrote.

        Parameters
        ----------
        path : path
            The file.
        function : function, optional
            The function that calls go to. None: the one that has the name of the one that was compiled, in its module,
            which a call imports.

        Returns
        -------
        CompiledFunction
            It can be called as the one that was saved. A file has no rules for outputs and grids, so calls need the
            function.

        Raises
        ------
        ValueError
            Another file.
        TypeError
            At a call: there is no function made by `ct.jit`, its text is another than the one that was compiled, or
            the arguments are of other kinds.
        """
        options.check_path("CompiledFunction.load", path)
        return _read_archive(path, function)

    def __repr__(self) -> str:
        return f"<{self.name} compiled for {self.target}>"


class Fresh(CompiledFunction):
    """A function compiled in this process.

    function   its function;  signature: of its entry, or None where none can say its constants
    """

    def __init__(self, function: TileFunction, kernel: Kernel, values: tuple, target: Target):
        self.function, self.kernel, self._target = function, kernel, target
        self.name, self.target = kernel.__name__, str(target)
        self.arguments = kernel.classify(values)
        self._constants = {n: v for n, v in zip(kernel.names, values) if kernel.parameters[n].constant}
        self.constraints, self.symbol = of_launch(kernel, self.arguments)
        self.hints = kernel.options
        self.accepts = accepted.accepted(kernel.names, self.arguments, self.constraints)
        self.place, self.written = (function.__module__, _name_of(function)), _written(kernel)
        self._build()

    @cached
    def signature(self) -> KernelSignature | None:
        for convention in (CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2()):
            try:
                return KernelSignature(self.constraints, convention, self.symbol)
            except (TypeError, ValueError):
                continue
        return None

    @in_usual_mode
    def _build(self) -> None:
        from cutile.gpu import selection
        from cutile.gpu.cache_key import digest, key_text
        from cutile.gpu.facts import of_parameters

        program = self.kernel.program(self.arguments).kernel
        stored.check(self.function, program, constants=self._constants)
        wanted = program, self.constraints, self._target, self.kernel.options, self.symbol
        self.key = digest(key_text(program, of_parameters(self.constraints), *wanted[2:], settings.lineinfo()))
        found = selection.cached(*wanted)
        start = time.perf_counter()
        self.cubin = selection.build(*wanted) if found is None else found
        self.seconds = time.perf_counter() - start if found is None else None

    @property
    def _compilation(self) -> Compilation:
        """Made for each view anew, so that nothing keeps texts alive."""
        return Compilation(self.kernel, [a.arg_type for a in self.arguments], self.constraints, self.symbol,
                           self._target, "for these arguments")

    def _text(self, view: str) -> str:
        return STAGES[view].text(self._compilation)

    def _called(self) -> TileFunction:
        return self.function


class Stored(CompiledFunction):
    """A function that was loaded from a file."""

    def __init__(self, manifest: Mapping[str, Any], cubin: bytes, texts: Mapping[str, str], path: str,
                 function: TileFunction | None):
        self.name, self.symbol, self.target = manifest["name"], manifest["symbol"], manifest["target"]
        self.cubin, self.key, self.seconds, self._texts = cubin, "", None, dict(texts)
        self.accepts = [accepted.from_json(a) for a in manifest["accepts"]]
        self.place, self.written, self._path, self._function = manifest["place"], manifest["written"], path, function
        self._same: Any = None  # the function whose text is the one that was compiled

    def _called(self) -> TileFunction:
        f = found = _at(*self.place) if self._function is None else self._function
        if found is None:
            raise refusal(TypeError(f"{self._path!r} has machine code and texts of {'.'.join(self.place)}, which makes "
                                    f"outputs and grids, and is not there; give it: CompiledFunction.load(path, "
                                    f"function)"))
        f = getattr(found, "function", found)  # of a tuned one
        if not isinstance(getattr(f, "kernel", None), Kernel):
            raise refusal(TypeError(f"{self._path!r} was compiled of a function made by ct.jit, which {found!r:.100} "
                                    f"is not"))
        if f is not self._same:
            if _written(f.kernel) != self.written:
                raise refusal(TypeError(f"{self._path!r} was compiled of another text of {f.__name__}; compile it "
                                        f"anew"))
            self._same = f
        return f

    @property
    def signature(self) -> KernelSignature:
        """What the symbol says of the parameters; ValueError where no signature could say it."""
        from cutile.compilation.demangling import demangle_kernel_name

        return demangle_kernel_name(self.symbol)[1]

    def _text(self, view: str) -> str:
        if view == "sass":
            from cutile.gpu.disassembler import sass

            return sass(self.cubin)
        if view not in self._texts:
            raise ValueError(f"the file has no view {view!r}; it has {', '.join([*self._texts, 'sass'])}")
        return self._texts[view]


def _written(kernel: Kernel) -> str:
    return ast.unparse(definition_of(kernel.function).node)


def _name_of(function: TileFunction) -> str:
    """The name that a function has in its module, which may not be that of its kernel."""
    there = getattr(sys.modules.get(function.__module__), "__dict__", {})
    own = function.__qualname__
    return own if there.get(own) is function else next(
        (n for n, v in there.items() if v is function or getattr(v, "function", None) is function), own)


def _at(module: str, name: str) -> Any:
    """An object by its name in a module; None if it is not there."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


# ------------------------------------------------------------------ files


def _write_archive(c: CompiledFunction, path: str | os.PathLike) -> None:
    manifest = {"format": FORMAT, "name": c.name, "symbol": c.symbol, "target": c.target, "place": c.place,
                "written": c.written, "accepts": [a.as_json() for a in c.accepts]}
    texts = {}
    for view in VIEWS:
        if view != "sass":
            try:
                texts[view] = c.text(view)
            except (FileNotFoundError, ValueError):  # without the assembler's tools, and what a loaded file lacks
                continue
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("manifest.json", json.dumps(manifest))
        z.writestr("code.cubin", c.cubin)
        for view, text in texts.items():
            z.writestr(f"{view}.txt", text)


def _read_archive(path: str | os.PathLike, function: TileFunction | None) -> Stored:
    try:
        with zipfile.ZipFile(path) as z:
            manifest = json.loads(z.read("manifest.json"))
            if manifest["format"] != FORMAT:
                raise ValueError(f"{os.fspath(path)!r} was written by another version of cutile")
            texts = {v: z.read(f"{v}.txt").decode() for v in VIEWS if f"{v}.txt" in z.namelist()}
            return Stored(manifest, z.read("code.cubin"), texts, os.fspath(path), function)
    except (zipfile.BadZipFile, KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{os.fspath(path)!r} is no file that save() wrote") from None


# ------------------------------------------------------------------ compiling


def compile_function(f: TileFunction, specs: Sequence[Any], named: Mapping[str, Any], target: str | Target | None,
                     hints: Mapping[str, Any] | None) -> Fresh:
    """Compile a function for arguments like `specs`; those of `named` are given by name."""
    options.check(f"{f.__name__}.compile", {"hints": hints}, {"hints": options.BY_NAME})
    kernel, values = arguments_for(f, specs, named, hints)
    where = _target(f, target)
    return Fresh(f, kernel, values, where)


def arguments_for(f: TileFunction, specs: Sequence[Any], named: Mapping[str, Any],
                  hints: Mapping[str, Any] | None = None) -> tuple[Kernel, tuple]:
    """The kernel, and sample arguments for all its parameters, outputs too."""
    given = f._named(specs, named)
    values = samples([given.get(n, p.default) for n, p in f.parameters.items()], [f.specs[n] for n in f.parameters])
    bound = bind(f, dict(zip(f.parameters, values)), open=open_sizes(f))
    for o in f.outputs:
        p = planned(bound, o)
        bound.values[o.name] = Sample(p.shape, p.dtype)
    kernel = f.launched if not hints else f.launched.replace_hints(**hints)
    return kernel, tuple(bound.values[n] for n in kernel.names)


def open_sizes(f: TileFunction) -> Callable[[Bound], None]:
    """A check that no constant follows from a size that is open."""
    def check(bound: Bound) -> None:
        left_open: dict[str, str] = {}
        for a in bound.arrays:
            axes = getattr(a.value, "open", frozenset())
            spec = f.specs.get(a.name)
            if not axes or spec is None or spec.sizes is None:
                continue
            items = spec.sizes.axes
            star = next((i for i, x in enumerate(items) if x.rest), len(items))
            for position in axes:
                item = items[position] if position < star else items[max(star, position - len(a.shape) + len(items))]
                if item.name is not None:
                    left_open.setdefault(item.name, a.name)
                    if item.text.startswith("="):
                        raise refusal(TypeError(f"{f.__name__}: the size {item.name} of `{a.name}` is a constant of "
                                                f"the kernel; the spec must say how much it is"))
        for name, value in bound.values.items():
            rule = f.defaults.get(name)
            reads = {name} if rule is None else rule.reads
            if value is MISSING and f.specs[name].constant and (found := sorted(reads & left_open.keys())):
                raise refusal(TypeError(f"{f.__name__}: the constant `{name}` follows from {found[0]}, which the spec "
                                        f"of `{left_open[found[0]]}` leaves open; give {name}, or the size"))
    return check


def _target(f: TileFunction, target: str | Target | None) -> Target:
    """What to compile for: as given, as ct.jit was given, or the GPU that is there."""
    named = target or f.target
    if named is not None:
        return parse_target(named)
    from cutile.gpu.driver import driver

    try:
        return driver().device(0).target
    except Exception:
        raise ValueError("compile() needs a target, such as target=\"sm_90\", where there is no GPU") from None
