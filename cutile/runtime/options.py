"""Compiler options of a kernel, and values of them that depend on the target [KERN-2…4]."""

from __future__ import annotations

import re
from typing import Any

from cutile._support.structs import replace, structure
from cutile.ir.terms import to_builtin

_UNSET = object()


class ByTarget:
    """An option of a kernel that has a value for each GPU target.

    Parameters
    ----------
    default : object, optional
        The value on targets that are not listed. Without it, they have the option's own default.
    **targets : object
        The value on each target: `sm_90=2`.

    Attributes
    ----------
    key : tuple
        Hashable; equal for equal objects.

    Raises
    ------
    ValueError
        A name that is not sm_ and digits.

    Notes
    -----
    [KERN-4]

    Examples
    --------
    >>> @ct.kernel(occupancy=ct.ByTarget(sm_90=2, sm_100=4, default=1))
    ... def kernel(x):
    ...     pass
    >>> ct.ByTarget(sm_90=2, default=1).get("sm_90", None)
    2
    """

    __hash__ = None

    def __init__(self, *, default: Any = _UNSET, **targets: Any):
        for name in targets:
            if not re.fullmatch(r"sm_[0-9]+", name):
                from cutile.gpu.target import SUPPORTED

                raise ValueError(f"ByTarget keys are target names such as sm_90, not {name!r}; {SUPPORTED}")
        self._default, self._targets = to_builtin(default), {name: to_builtin(v) for name, v in targets.items()}

    def get(self, target: str, otherwise: Any) -> Any:
        """Give the value on a target.

        Parameters
        ----------
        target : str
            Such as "sm_90".
        otherwise : object
            The option's own default, for targets that are not listed where there is no `default`.

        Returns
        -------
        object
        """
        return self._targets.get(target, otherwise if self._default is _UNSET else self._default)

    @property
    def key(self) -> tuple:
        """A hashable key; equal for equal objects."""
        return ByTarget, self._default, frozenset(self._targets.items())

    def values(self) -> list[Any]:
        """Give all values, that of `default` last.

        Returns
        -------
        list
        """
        return [*self._targets.values(), *(() if self._default is _UNSET else (self._default,))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByTarget) and (self._default, self._targets) == (other._default, other._targets)

    def __repr__(self) -> str:
        parts = [f"{k}={v!r}" for k, v in self._targets.items()]
        if self._default is not _UNSET:
            parts.append(f"default={self._default!r}")
        return f"ByTarget({', '.join(parts)})"


# The values that an option may have. It may also be None if that is its default.
_ALLOWED: dict[str, range | tuple[int, ...]] = {
    "num_ctas": (1, 2, 4, 8, 16),
    "occupancy": range(1, 33),
    "opt_level": range(4),
    "num_worker_warps": (1, 2, 4, 8, 16, 32),
}
_DEFAULTS: dict[str, int | None] = {"num_ctas": None, "occupancy": None, "opt_level": 3, "num_worker_warps": None}


@structure(frozen=True)
class Options:
    num_ctas: Any = _DEFAULTS["num_ctas"]
    occupancy: Any = _DEFAULTS["occupancy"]
    opt_level: Any = _DEFAULTS["opt_level"]
    num_worker_warps: Any = _DEFAULTS["num_worker_warps"]

    def __post_init__(self):
        for name, default in _DEFAULTS.items():
            value = to_builtin(getattr(self, name))
            object.__setattr__(self, name, value)
            for v in value.values() if isinstance(value, ByTarget) else [value]:
                _check(name, v, default)

    @property
    def key(self) -> tuple:
        """A hashable key; equal for equal options."""
        return tuple(v.key if isinstance(v := getattr(self, name), ByTarget) else v for name in _DEFAULTS)

    def on(self, target: str) -> Options:
        """The options on one target such as "sm_90": each ByTarget replaced by its value there."""
        found = {name: getattr(self, name) for name in _DEFAULTS}
        return Options(**{k: v.get(target, _DEFAULTS[k]) if isinstance(v, ByTarget) else v for k, v in found.items()})

    def replace(self, **changes: Any) -> Options:
        unknown = changes.keys() - _ALLOWED.keys()
        if unknown:
            raise TypeError(f"unknown kernel option {sorted(unknown)[0]!r}; there are {', '.join(_ALLOWED)}")
        return replace(self, **changes)


def _check(name: str, value: Any, default: Any) -> None:
    if value is None and default is None:
        return
    allowed = _ALLOWED[name]
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        text = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
        raise ValueError(f"{name} must be one of {text}{' or None' if default is None else ''}, got {value!r}")
