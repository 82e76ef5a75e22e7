"""Compiled functions: a kernel compiled for arguments of some kinds, without running it [CPL-1…7]."""

from __future__ import annotations

import json
import os
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
from cutile.compilation.derive import constraints_of
from cutile.compilation.launch_signature import of_launch
from cutile.compilation.signature import KernelSignature
from cutile.errors import TileUnsupportedFeatureError, for_users, hidden, is_for_users, refusal
from cutile.functions import stored
from cutile.functions.binding import MISSING, Bound, bind, planned
from cutile.functions.stages import STAGES, Compilation
from cutile.gpu.cubin_resources import Resources, blocks_held, read
from cutile.gpu.target import Target, parse_target
from cutile.runtime.kernel import Kernel

if TYPE_CHECKING:
    from cutile.functions.tile_function import TileFunction

VIEWS = tuple(STAGES)
FORMAT = 1  # of files that `save` writes
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
    def load(path: str | os.PathLike) -> CompiledFunction:
        """Read a file .cutile that `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        CompiledFunction

        Raises
        ------
        ValueError
            Another file.
        """
        return _read_archive(path)

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
        self.constraints, self.symbol = of_launch(kernel, self.arguments)
        self.hints = kernel.options
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
        stored.check(self.function, program)
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function. TypeError where the arguments are of other kinds than those that it was compiled for."""
        check_fits(self, self.function.__signature__.bind(*args, **kwargs).arguments)
        return self.function(*args, **kwargs)


class Stored(CompiledFunction):
    """A function that was loaded from a file."""

    def __init__(self, manifest: Mapping[str, Any], cubin: bytes, texts: Mapping[str, str]):
        self.name, self.symbol, self.target = manifest["name"], manifest["symbol"], manifest["target"]
        self.cubin, self.key, self.seconds, self._texts = cubin, "", None, dict(texts)

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


# ------------------------------------------------------------------ files


def _write_archive(c: CompiledFunction, path: str | os.PathLike) -> None:
    manifest = {"format": FORMAT, "name": c.name, "symbol": c.symbol, "target": c.target}
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


def _read_archive(path: str | os.PathLike) -> Stored:
    try:
        with zipfile.ZipFile(path) as z:
            manifest = json.loads(z.read("manifest.json"))
            if manifest["format"] != FORMAT:
                raise ValueError(f"{os.fspath(path)!r} was written by another version of cutile")
            texts = {v: z.read(f"{v}.txt").decode() for v in VIEWS if f"{v}.txt" in z.namelist()}
            return Stored(manifest, z.read("code.cubin"), texts)
    except (zipfile.BadZipFile, KeyError, TypeError, json.JSONDecodeError):
        raise ValueError(f"{os.fspath(path)!r} is no file that save() wrote") from None


# ------------------------------------------------------------------ compiling


def compile_function(f: TileFunction, specs: Sequence[Any], named: Mapping[str, Any], target: str | Target | None,
                     hints: Mapping[str, Any] | None) -> Fresh:
    """Compile a function for arguments like `specs`; those of `named` are given by name."""
    where = _target(f, target)
    try:
        kernel, values = arguments_for(f, specs, named, hints)
        return Fresh(f, kernel, values, where)
    except Exception as e:
        if settings.get("DEBUG") or not is_for_users(e):
            raise
        raise for_users(e) from e.__cause__


def arguments_for(f: TileFunction, specs: Sequence[Any], named: Mapping[str, Any],
                  hints: Mapping[str, Any] | None = None) -> tuple[Kernel, tuple]:
    """The kernel, and sample arguments for all its parameters, outputs too."""
    given = f.__signature__.bind(*specs, **named)
    given.apply_defaults()
    given.arguments.pop("stream", None)
    given.arguments.pop("out", None)
    names = list(given.arguments)
    values = samples(list(given.arguments.values()), [f.specs[n] for n in names])
    bound = bind(f, {n: dict(zip(names, values))[n] for n in f.parameters}, open=open_sizes(f))
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


def check_fits(c: Fresh, given: Mapping[str, Any]) -> None:
    """TypeError where arguments are of other kinds than those that a function was compiled for."""
    f = c.function
    values = {n: given.get(n, p.default) for n, p in f.parameters.items()}
    bound = bind(f, values)
    for o in f.outputs:
        p = planned(bound, o)
        bound.values[o.name] = Sample(p.shape, p.dtype)
    arguments = c.kernel.classify(tuple(bound.values[n] for n in c.kernel.names))
    for name, was, now in zip(c.kernel.names, c.arguments, arguments):
        if was.key != now.key:
            raise TypeError(f"{f.__name__} was compiled for another `{name}`: for {_shown(was)}, got {_shown(now)}")
    convention = CallingConvention.cutile_python_v2()
    passed = constraints_of(c.kernel, [a.arg_type for a in arguments], arguments, convention)
    for name, was, now in zip(c.kernel.names, c.constraints, passed):
        if (why := _less(was, now)) is not None:
            raise TypeError(f"{f.__name__} was compiled for another `{name}`: {why}")


def _shown(argument: Any) -> str:
    t = argument.arg_type
    describe = getattr(t, "describe", None)
    return describe() if describe is not None else repr(getattr(t, "value", t))


def _less(was: Any, now: Any) -> str | None:
    """What was promised of a parameter and does not hold; None if all does."""
    for what, holds in (("base_addr_divisible_by", lambda a, b: b % a == 0),
                        ("shape_divisible_by", lambda a, b: all(y % x == 0 for x, y in zip(a, b))),
                        ("stride_divisible_by", lambda a, b: all(y % x == 0 for x, y in zip(a, b))),
                        ("shape_constant", lambda a, b: all(x is None or x == y for x, y in zip(a, b))),
                        ("stride_constant", lambda a, b: all(x is None or x == y for x, y in zip(a, b)))):
        a, b = getattr(was, what, None), getattr(now, what, None)
        if a is None or b is None:
            continue
        if what.endswith("divisible_by") and isinstance(b, tuple):
            constants = getattr(now, what.replace("divisible_by", "constant"))
            b = tuple(d if c is None else (c or d) for d, c in zip(b, constants))
        if not holds(a, b):
            return f"{what.replace('_', ' ')} was {a}, and is {b}"
    return None
