"""GPU architectures: their names, and what each can do.

[ARCH-1.names]  a target is `sm_` and digits, with at most one letter behind (`sm_90a`); else ValueError
[ARCH-1.known]  sm_80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120 and 121 are known; another is refused
[ARCH-2.f8]  float8_e4m3fn and float8_e5m2 need sm_90
[ARCH-2.scales]  float8_e8m0fnu and float4_e2m1fn need sm_100
[ARCH-2.e5m3]  float8_e5m3fnu needs sm_107

Where ARCH-2 says nothing, the assembler was tried: it takes e5m3fnu for sm_107 only, and releases from 13.5 on also
take the float8 dtypes for sm_89, which 13.4 refuses. cutile accepts what every release takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cutile import dtypes
from cutile._support.structs import structure
from cutile.dtypes import DType
from cutile.errors import TileUnsupportedFeatureError
from cutile.spans import Span

if TYPE_CHECKING:
    from cutile.gpu.tileir import types as ty

ARCHITECTURES = (80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121)


@structure(frozen=True, slots=True)
class Target:
    """An architecture. `suffix` is the letter of names such as sm_90a, which the assembler does not need."""

    number: int
    suffix: str = ""

    @property
    def tool_name(self) -> str:
        return f"sm_{self.number}"

    @property
    def compute_capability(self) -> tuple[int, int]:
        return divmod(self.number, 10)

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"


_NAME = re.compile(r"sm_([0-9]{1,4})([a-z]?)")


def parse_target(name: str | Target) -> Target:
    """The target of a name such as `"sm_90"` or `"sm_90a"`. TypeError if it is no string, ValueError for another form,
    TileUnsupportedFeatureError for an unknown target; each lists the known ones.
    """
    if isinstance(name, Target):
        return name
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if not found:
        raise (ValueError if isinstance(name, str) else TypeError)(
            f"a GPU architecture is written like 'sm_90', not {name!r:.100}; {SUPPORTED}")
    target = Target(int(found[1]), found[2])
    if target.number not in ARCHITECTURES:
        raise TileUnsupportedFeatureError(f"GPU architecture {name} is not supported",
                                          help=f"the supported architectures are {names(ARCHITECTURES)}")
    return target


def of_device(major: int, minor: int) -> Target:
    """The target for a device of compute capability `major.minor`: its own, or the newest known one below it
    with the same major number.

    TileUnsupportedFeatureError if there is none.
    """
    number = 10 * major + minor
    for known in reversed(ARCHITECTURES):
        if known <= number and known // 10 == major:
            return Target(known)
    raise TileUnsupportedFeatureError(f"a GPU of compute capability {major}.{minor} is not supported",
                                      help=f"the supported architectures are {names(ARCHITECTURES)}")


def names(numbers) -> str:
    """The names as text, as in `sm_80, sm_86 and sm_87`."""
    out = [f"sm_{n}" for n in numbers]
    return ", ".join(out[:-1]) + " and " + out[-1] if len(out) > 1 else out[0]


SUPPORTED = f"the supported architectures are {names(ARCHITECTURES)}"


def _since(first: int) -> tuple[int, ...]:
    return tuple(n for n in ARCHITECTURES if n >= first)


# Features that only some architectures have. Hints (num_ctas, allow_tma, …) are not listed: an architecture that cannot
# follow one ignores it.
FEATURES: dict[str | DType, tuple[int, ...]] = {
    dtypes.float8_e4m3fn: _since(90),
    dtypes.float8_e5m2: _since(90),
    dtypes.float8_e8m0fnu: _since(100),
    dtypes.float4_e2m1fn: _since(100),
    dtypes.float8_e5m3fnu: (107,),
    "mma_scaled": _since(100),
    "atomic addition of bfloat16": _since(90),
}

# First bytecode version of a feature of the language [VER-*]. Not listed: features that need one operation of Tile IR
# or one of its attributes (`Lowering.needs` takes the version from the table of operations), features of one op
# (`since=` of that op), and features that older versions can express by other means.
FEATURE_SINCE: dict[str | DType, ty.Version] = {
    dtypes.float8_e8m0fnu: (13, 2),
    dtypes.float4_e2m1fn: (13, 3),
    dtypes.float8_e5m3fnu: (13, 4),
    "compilation for every target": (13, 3),
    "num_worker_warps other than 4 and 8": (13, 5),
}


def supports(target: Target | None, feature: str | DType) -> bool:
    """Whether a target has a feature. None stands for every target; then nothing is checked [EXP-5]."""
    return target is None or target.number in FEATURES.get(feature, ARCHITECTURES)


def check(target: Target | None, feature: str | DType, loc: Span | None = None) -> None:
    """TileUnsupportedFeatureError, naming the targets that have the feature, if this target lacks it."""
    if supports(target, feature):
        return
    raise TileUnsupportedFeatureError(
        f"{_words(feature)} is not supported on {target}", loc,
        help=f"compile for {'one of ' if len(FEATURES[feature]) > 1 else ''}{names(FEATURES[feature])}, "
             "or run the kernel in the interpreter (arrays in host memory)")


def check_version(version: ty.Version, feature: str | DType, loc: Span | None = None,
                  since: ty.Version | None = None) -> None:
    """TileUnsupportedFeatureError if a bytecode version lacks a feature [VER-*] that came with version `since`; by
    default the version in the table, or the first one.
    """
    if since is None:
        since = FEATURE_SINCE.get(feature, version)
    if version < since:
        from cutile.gpu.tileir import types as ty

        written = since in ty.VERSIONS
        raise TileUnsupportedFeatureError(
            f"{_words(feature)} needs Tile IR bytecode {ty.version_text(since)} or newer; "
            f"this kernel is compiled as {ty.version_text(version)}", loc,
            help=f'leave bytecode_version out, or ask for "{ty.version_text(since)}"' if written else None)


def _words(feature: str | DType) -> str:
    return f"dtype {feature.name}" if isinstance(feature, DType) else feature
