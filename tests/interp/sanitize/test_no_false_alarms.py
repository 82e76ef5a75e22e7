"""The sanitizer reports nothing of kernels without fault: examples, and generated programs."""

from __future__ import annotations

import importlib

import pytest

import cutile as ct
from conformance.generate import generate
from conformance.referee.implementations import loaded
from tests.test_examples import EXAMPLES, FILES, NEEDS

QUICK = ("histogram", "look_back_scan", "softmax", "split_k", "transpose")  # atomics, flags, padding, views


def examples() -> list:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.deep) for name in FILES]


@pytest.mark.parametrize("name", examples())
def test_examples(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with ct.sanitize("all"):
        assert importlib.import_module(name).main()


def check(seed: int) -> None:
    program = generate(seed)
    with loaded(program) as modules, ct.sanitize("all"):
        module = modules("cutile")
        try:
            ct.launch(None, program.grid, module.kernel, module.arguments())
        except ct.TileSanitizerError as e:
            raise AssertionError(f"seed {seed}: {e}\n{program.source()}") from None


@pytest.mark.parametrize("seed", range(8))
def test_generated_programs(seed):
    check(seed)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(8, 3008, 300))
def test_many_generated_programs(first):
    for seed in range(first, first + 300):
        check(seed)
