"""Generated programs end with equal bits, however the interpreter runs them: in every schedule, with compiled forms and
without, in small chunks, as first launches and as repeated ones.
"""

import contextlib

import pytest

from conformance.generate import generate
from conformance.referee.implementations import flat, implementation, loaded
from cutile import settings

WAYS = {"first": {}, "repeated": {}, "once more": {},
        **{f"{schedule}, {forms}": {"SCHEDULE": schedule, "COMPILED": forms == "compiled forms"}
           for schedule in ("batch", "block") for forms in ("compiled forms", "NumPy forms")},
        "small chunks": {"MEMORY": 20_000}}
MANY, AT_ONCE = 3000, 100  # programs of the deep session


def bits(program, module, chosen):
    """What a program leaves in its arrays, or how it fails."""
    with settings.override(**chosen) if chosen else contextlib.nullcontext():  # C code runs launches without overrides
        try:
            found = flat(program, implementation("cutile:interp").run(program, module))
            return [(name, a.dtype.str, a.shape, a.tobytes()) for name, a in found]
        except Exception as e:
            return type(e).__name__


def different(seeds) -> list[str]:
    """The ways that differ from the first one, and how many programs end without an error."""
    out, ended = [], 0
    for seed in seeds:
        program = generate(seed)
        with loaded(program) as module:
            found = {way: bits(program, module, chosen) for way, chosen in WAYS.items()}
        ended += isinstance(found["first"], list)
        out += [f"program {seed}, {way}" for way, got in found.items() if got != found["first"]]
    assert 2 * ended > len(seeds)
    return out


@pytest.fixture(autouse=True)
def no_setting(monkeypatch):
    for s in settings.table().values():
        monkeypatch.delenv(s.variable, raising=False)


def test_some_programs():
    assert different(range(20)) == []


@pytest.mark.deep
@pytest.mark.parametrize("first", range(100, 100 + MANY, AT_ONCE))
def test_many_programs(first):
    assert different(range(first, first + AT_ONCE)) == []


def test_a_difference_is_found(monkeypatch):
    from cutile.ops import _rounding

    right = _rounding._round
    monkeypatch.setattr(_rounding, "_round", lambda dtype, x, out=None: right(dtype, x, out) * 2)
    assert any("NumPy forms" in d for d in different(range(12)))
