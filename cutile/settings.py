"""Every CUTILE_* variable, in one table: what it is for, what it may be, what it is by default.

A setting is read when it is asked for: first what `override` says for the running context, then the environment. So
`os.environ["CUTILE_DEBUG"] = "1"` in a running program works, and threads and tasks do not disturb each other.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar
from types import MappingProxyType
from typing import Any

from cutile._support import environment
from cutile._support.environment import PREFIX
from cutile._support.structs import structure


class SettingError(ValueError):
    """A setting has a value that it does not accept."""


@structure(frozen=True, slots=True)
class Setting:
    """One row of the table. `convert` takes the text of the variable, or a value given to `override`.

    `convert` returns the setting's value, or raises ValueError; `accepts` says in words what `convert` takes.
    """

    name: str
    default: Any
    convert: Callable[[Any], Any]
    accepts: str
    doc: str
    device: bool = False  # the interpreter does not ask for it

    @property
    def variable(self) -> str:
        return PREFIX + self.name


# ------------------------------------------------------------------ how values are read


def _flag(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    return {"1": True, "true": True, "yes": True, "on": True,
            "0": False, "false": False, "no": False, "off": False}[given.strip().lower()]


def _integer(low: int, high: int | None = None) -> Callable[[Any], int]:
    def convert(given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, int | str):
            raise ValueError
        n = int(given)
        if n < low or high is not None and n > high:
            raise ValueError
        return n

    return convert


def _one_of(*names: str) -> Callable[[Any], str]:
    def convert(given: Any) -> str:
        name = given.strip().lower()
        if name not in names:
            raise ValueError
        return name

    return convert


CHECKS = ("bounds", "undetermined", "race", "alias")  # those that `all` stands for
TRAPS = ("nan", "overflow", "cast", "division")  # those that `traps` stands for
MEMCHECK = "memcheck"  # the check of GPU code, which stands alone


def _checks(given: Any) -> frozenset[str]:
    """Names with commas between them, or an iterable of names. `off` and an empty text are no checks."""
    names = given.split(",") if isinstance(given, str) else list(given)
    names = [n.strip().lower() for n in names if n.strip()]
    if names in (["off"], [MEMCHECK]):
        return frozenset() if names == ["off"] else frozenset(names)
    groups = {"all": CHECKS, "traps": TRAPS, **{n: (n,) for n in (*CHECKS, *TRAPS)}}
    return frozenset(check for n in names for check in groups[n])


def block_of(given: Any) -> tuple[int, int, int]:
    """A block id from a text such as "3,0,0", or from numbers; ValueError if it is none."""
    parts = given.split(",") if isinstance(given, str) else list(given)
    block = tuple(_integer(0)(p) for p in parts)
    if not 1 <= len(block) <= 3:
        raise ValueError
    return block + (0,) * (3 - len(block))


def _seconds(given: Any) -> float:
    seconds = float(given)
    if not seconds > 0:
        raise ValueError
    return seconds


def _text(given: Any) -> str:
    return os.fspath(given)


def _profile(given: Any) -> str | None:
    """Where a profile goes; None for no profile."""
    text = _text(given)
    try:
        return PROFILE_FILE if _flag(text) else None
    except KeyError:
        return text


PROFILE_FILE = "cutile.speedscope.json"


def _bytes(given: Any) -> int:
    """A number of bytes; K, M, G and T behind it count powers of 1024."""
    if isinstance(given, int):
        return _integer(0)(given)
    digits, unit = given.strip(), 0
    if digits[-1:].upper() in _UNITS:
        digits, unit = digits[:-1], _UNITS.index(digits[-1].upper()) + 1
    return _integer(0)(digits) << 10 * unit


_UNITS = ("K", "M", "G", "T")


# ------------------------------------------------------------------ the table

_TABLE: dict[str, Setting] = {s.name: s for s in (
    Setting("CHECK", False, _flag, "1 or 0",
            "check the IR after typing and after fma, and the dtype, shape and range of every value"),
    Setting("DEBUG", 0, _integer(0, 6), "an integer from 0 to 6",
            "what to show on stderr, each level with those below: 1 launches and fallbacks, 2 timings, 3 IR, "
            "4 IR after fma, 5 Tile IR text, 6 tool command lines"),
    Setting("SCHEDULE", None, _one_of("batch", "block", "interleave"), "batch, block or interleave",
            "how the interpreter runs the blocks of a grid; unset: interleave where blocks wait for each other, else "
            "block under a debugger, else batch"),
    Setting("SEED", 0, _integer(0), "an integer, 0 or more",
            "selects the order in which blocks take turns under the schedule interleave"),
    Setting("UNDETERMINED", "zero", _one_of("zero", "poison"), "zero or poison",
            "what undetermined elements read as: zero, or NaN and the lowest integer; with poison, what a maximum or "
            "minimum would hide is reported"),
    Setting("PORTABLE", False, _flag, "1 or 0",
            "equal bits on every machine: reductions combine half with half, and matrix products are "
            "summed in float64 in k order"),
    Setting("COMPILED", True, _flag, "1 or 0",
            "use the parts of the interpreter that are written in C, if they were built; results do not depend on it"),
    Setting("MEMORY", None, _bytes, "a number of bytes such as 500M or 2G",
            "how much memory the tiles of the blocks that the interpreter runs at once may take; one block runs even "
            "if it needs more; unset: as much as is fastest"),
    Setting("SANITIZE", frozenset(), _checks, "off, all, traps, or names of checks with commas between: bounds, "
            "undetermined, race, alias; nan, overflow, cast, division; or memcheck alone",
            "checks that report what the language leaves undefined (all): accesses outside an array (bounds), "
            "undetermined padding that matters (undetermined), accesses of blocks that nothing orders (race), "
            "arguments that overlap (alias); and on request (traps): NaN or infinity made of finite values (nan), "
            "integers that wrap (overflow), floats that do not fit an integer (cast), division by zero (division); "
            "memcheck: GPU code gets the checks of the assembler, for compute-sanitizer"),
    Setting("PROFILE", None, _profile, "1, or a file",
            "measure launches in the interpreter line by line; when the process ends, a table on stderr shows it, and "
            "a file for speedscope has it: cutile.speedscope.json, or the one that is named"),
    Setting("STEP_LIMIT", None, _integer(1), "a positive integer",
            "stop a kernel whose loops make more iterations than this; unset: no limit"),
    Setting("BACKEND", None, _one_of("interp"), "interp",
            "interp: launches on GPU arrays run in the interpreter, on copies; unset: the arguments decide",
            device=True),
    Setting("COMPUTE", "auto", _one_of("auto", "own", "cccl"), "auto, own or cccl",
            "how sorts of cutile.compute on GPU arrays run that cuda-cccl may do: own, in kernels of this language; "
            "cccl, through the package; auto, through the package where it is installed", device=True),
    Setting("COMPILER_TIMEOUT", None, _seconds, "a positive number of seconds",
            "how long the assembler of GPU code may run; unset: no limit", device=True),
    Setting("REPRODUCE", None, _text, "a directory",
            "where bytecode, command and messages are kept when the assembler fails; unset: nowhere", device=True),
    Setting("LINEINFO", False, _flag, "1 or 0",
            "put the kernel's files and lines into GPU code, for profilers and compute-sanitizer; with it, moved lines "
            "are compiled anew", device=True),
    Setting("CACHE", True, _flag, "1 or 0", "keep compiled GPU code on disk", device=True),
    Setting("CACHE_DIR", None, _text, "a directory",
            "where compiled GPU code is kept; unset: cutile in the user's cache folder", device=True),
    Setting("CACHE_SIZE", 2 << 30, _bytes, "a number of bytes such as 500M or 2G",
            "how much compiled GPU code is kept; the least recently used goes first", device=True),
    Setting("HINTS", True, _flag, "1 or 0",
            "choose hints for GPU code where a kernel leaves them open, make a variant without checks of bounds for "
            "launches that need none, and take cheaper forms of divisions and of functions of 16-bit floats; results "
            "stay within the same bounds, and sums may be added up in another order",
            device=True),
    Setting("TARGET", None, _text, "GPU architectures such as sm_90, with commas between",
            "what cutile.jax compiles kernels for where a program is lowered for GPUs; unset: the GPUs that JAX sees",
            device=True),
    Setting("LAUNCHER", None, _one_of("c", "python"), "c or python",
            "who runs repeated launches, asked for where a launch with new arguments runs; unset: c, where that "
            "extension was built", device=True),
    Setting("BLOCK", None, block_of, "a block id such as 3,0,0", "run only this block of a grid, to debug it"),
)}

_known: ContextVar[dict[str, Any] | None] = ContextVar("cutile_known_settings", default=None)
_overridden = bytearray(1)  # 1 once `override` has been used in this process, so that C code need not ask before
_overrides: ContextVar[Mapping[str, Any]] = ContextVar("cutile_settings", default=MappingProxyType({}))


def table() -> Mapping[str, Setting]:
    """All settings by name."""
    return MappingProxyType(_TABLE)


def get(name: str) -> Any:
    """The value of a setting here and now. ValueError if the variable's text is not one that the setting accepts."""
    given = _overrides.get()
    if given and name in given:
        return given[name]
    known = _known.get()
    if known is not None and name in known:
        return known[name]
    text = environment.text_of(name)
    value = _from_text(name, text) if text else _TABLE[name].default  # an empty variable counts as unset
    if known is not None and known is not _USUAL:
        known[name] = value
    return value


def folder(name: str) -> str | None:
    """The path that a setting names, with ~ and ~user as home folders of now; None where it is unset. ValueError where
    there is no such home."""
    given = get(name)
    if given is None:
        return None
    path = os.path.expanduser(os.fsdecode(given))
    if path.startswith("~"):
        raise SettingError(f"{_TABLE[name].variable} is {given!r}, but there is no home folder of that name; a folder "
                         f"that is called so is written ./{path}")
    return path


def untouched(*names: str) -> bool:
    """Whether none of these settings is set or overridden, so that all have their defaults. Without names: whether
    all settings of the interpreter have defaults. Launches call it, so it is quick.
    """
    if _overrides.get():
        return False
    if not names:
        known = _known.get()
        if known is not None:
            return known is _USUAL
    return environment.none_set(names or INTERPRETED)


def watch(*names: str) -> tuple | None:
    """Data from which C code (runtime/_launcher.c) answers `untouched` itself; None where only `untouched` knows."""
    watched = environment.watch(names)
    return None if watched is None else (_overridden, _overrides.get, *watched)


INTERPRETED = tuple(s.name for s in _TABLE.values() if not s.device)  # what the interpreter asks for
_USUAL: dict[str, Any] = {name: _TABLE[name].default for name in INTERPRETED}


class steady:  # used like a function
    """Within `with steady():`, each variable that the interpreter asks for is looked up once, so that a launch sees
    only one value of it.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _known.set(_USUAL if untouched() else {})

    def __exit__(self, *_: object) -> None:
        _known.reset(self._token)


def fixed(**values: Any) -> Context:
    """A new context in which settings have these values, the others that the interpreter asks for their defaults,
    whatever the environment says.
    """
    context = Context()
    context.run(_known.set, _USUAL | {name: _convert(name, value) for name, value in values.items()})
    return context


@contextmanager
def override(**values: Any) -> Iterator[None]:
    """Give settings other values for a while, in this context only: `with settings.override(CHECK=True):`.

    None stands for "unset" and is accepted where that is the default.
    """
    checked = {name: _convert(name, value) for name, value in values.items()}
    before = _overrides.get()
    _overridden[0] = 1
    try:  # not with a token: an interrupt could lose it
        _overrides.set(MappingProxyType({**before, **checked}))
        yield
    finally:
        _overrides.set(before)


def sanitize(checks: str = "all") -> Any:
    """Run launches in the interpreter with checks, within a `with` block.

    It holds in this thread and context only. An inner `with` takes the place of an outer one.

    Parameters
    ----------
    checks : str, default "all"
        "all" (bounds, undetermined, race, alias), "traps", or names of checks with commas between; "off" is none.
        "memcheck" stands alone: launches run where they usually do, with GPU code for compute-sanitizer.

    Raises
    ------
    TileSanitizerError
        At the end of a launch of which the checks report something.
    SettingError
        A check of another name.

    Examples
    --------
    >>> @ct.kernel
    ... def double(x, out):
    ...     i = ct.bid(0)
    ...     ct.store(out, i, 2 * ct.load(x, i, 4))
    >>> x, out = np.arange(8), np.zeros(8, int)
    >>> with ct.sanitize("bounds"):
    ...     try:
    ...         ct.launch(None, (3,), double, (x, out))
    ...     except ct.TileSanitizerError as error:
    ...         print(error.check, error.block)
    bounds (2, 0, 0)
    """
    return override(SANITIZE=checks)


def on_host() -> bool:
    """Whether launches on GPU arrays run in the interpreter, on copies of them."""
    return get("BACKEND") == "interp" or bool(get("SANITIZE") - {MEMCHECK})


def memcheck() -> bool:
    """Whether GPU code has the assembler's checks of memory."""
    return MEMCHECK in get("SANITIZE")


def lineinfo() -> bool:
    """Whether GPU code has the kernel's files and lines."""
    return get("LINEINFO") or memcheck()


def _convert(name: str, given: Any) -> Any:
    if name not in _TABLE:
        raise ValueError(f"there is no setting {name!r}; the settings are {', '.join(_TABLE)}")
    setting = _TABLE[name]
    if given is None and setting.default is None:
        return None
    try:
        return setting.convert(given)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise SettingError(f"{setting.variable} is {given!r}; it accepts {setting.accepts}") from None


@functools.lru_cache(maxsize=256)  # prepared launches under CUTILE_CHECK ask each time
def _from_text(name: str, text: str) -> Any:
    return _convert(name, text)


def unknown() -> list[str]:
    """Variables in the environment that look like settings and are none: most likely spelling mistakes."""
    return sorted(v for v in os.environ if v.startswith(PREFIX) and v.removeprefix(PREFIX) not in _TABLE)
