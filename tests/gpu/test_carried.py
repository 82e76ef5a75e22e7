"""Code that a program brings along: where it may run, and that launches take it as long as it is held."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from cutile._support.structs import replace
from cutile.compilation.launch_signature import of_launch
from cutile.gpu import carried
from cutile.gpu.carried import Carried, Code
from cutile.gpu.facts import nothing_known
from cutile.gpu.target import Target
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed


@ct.kernel
def copy(x, y, n: int):
    ct.store(y, (ct.bid(0),), ct.load(x, (ct.bid(0),), (16,)) + n)


def described(x, y, n=1):
    arguments = copy.classify((x, y, n))
    return copy.program(arguments).kernel, of_launch(copy, arguments)[0]


def layouts():
    x = np.zeros(400, np.float32)
    return x[:64], x[:60], x[1:65], x[::4], x[::3], x[63::-1], x[:1], x[:0]


def held(layout=None, target=90):
    """Code for arrays laid out like one, of any size, and for any others."""
    x = layouts()[0] if layout is None else layout
    program, constraints = described(x, x)
    assumed = enumerate(carried.assumptions(program, constraints))
    codes = [Code(facts, f"copy{i}", b"code %d" % i) for i, facts in assumed]
    return Carried({carried.name_of(program, Target(target), copy.options): codes})


def found(x, y, target=90):
    program, constraints = described(x, y)
    return carried.find(program, constraints, Target(target), copy.options)


def test_the_best_code_whose_assumptions_hold():
    kept = held()
    usual, other = next(iter(kept.codes.values()))
    assert [found(x, x) for x in layouts()] == [usual] * 2 + [other] * 4 + [usual] * 2
    assert found(layouts()[0], layouts()[2]) is other
    assert found(layouts()[0], layouts()[0], target=100) is None
    assert found(*[layouts()[0].astype(np.float64)] * 2) is None
    with settings.override(SANITIZE="memcheck"):
        assert found(layouts()[0], layouts()[0]) is None
    del kept, usual, other
    assert found(layouts()[0], layouts()[0]) is None


@pytest.mark.parametrize("field,stronger", [
    ("shape_constant", (7,)), ("stride_constant", (2,)), ("shape_divisible_by", (8,)), ("stride_divisible_by", (4,)),
    ("stride_lower_bound_incl", (0,)), ("base_addr_divisible_by", 16), ("may_alias_internally", False)])
def test_each_assumption_counts(field, stronger):
    program, _ = described(layouts()[0], layouts()[0])
    weak = nothing_known(program.params[0].type)
    strong = replace(weak, **{field: stronger})

    def serves(assumed, known):
        kept = Carried({carried.name_of(program, Target(90), copy.options): [Code([assumed, weak, None], "copy", b"")]})
        return carried.find(program, [known, weak, None], Target(90), copy.options) is not None and bool(kept)
    assert serves(strong, strong) and serves(weak, strong) and not serves(strong, weak)
    if field in ("shape_divisible_by", "stride_divisible_by"):  # a constant has divisors, too
        constant = field.replace("divisible_by", "constant")
        assert [serves(strong, replace(weak, **{constant: (c,)})) for c in (16, 3)] == [True, False]


def test_names_of_functions_and_places_do_not_count():
    def one(v):
        return v + 1

    def other(v):
        return v + 1

    def third(v):
        return v + 2

    def name(f):
        @ct.kernel
        def apply(x):
            ct.store(x, (0,), f(ct.load(x, (0,), (16,))))
        return carried.name_of(apply.program(apply.classify((layouts()[0],))).kernel, Target(90), apply.options)
    assert name(one) == name(other) != name(third)


def test_launches_take_it(monkeypatch):
    fake = installed(monkeypatch)
    x = Cuda(np.zeros(64, np.float32))
    kept = held(layout=x)
    ct.launch(None, (4,), ct.kernel(copy.function), (x, x, 1))
    assert not fake.built
    assert [c[1] for c in fake.calls if c[0] == "cuModuleLoadData"] == [b"code 0"]
    assert [c[1] for c in fake.calls if c[0] == "cuModuleGetFunction"] == [b"copy0"]
    del kept
    ct.launch(None, (4,), ct.kernel(copy.function), (x, x, 1))
    assert len(fake.built) == 1
