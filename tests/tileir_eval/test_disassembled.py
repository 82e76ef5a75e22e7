"""The check that NVIDIA's disassembler reads bytecode as we do finds what differs."""

from __future__ import annotations

import pytest

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Module
from cutile.gpu.tileir.operations import OPS
from tests.gpu.tileir.samples import add, available
from tests.gpu.tileir.tool import needs_tool
from tests.tileir_eval import disassembled
from tests.tileir_eval.bytecode_reader import decode

pytestmark = needs_tool


def sum_of_two() -> bytes:
    m = Module("13.4")
    f = m.entry("k", [ty.tile(ty.f32)])
    f.body.op("addf", [f.arguments[0], f.arguments[0]], rounding_mode="zero", flush_to_zero=True)
    f.body.op("return")
    return m.to_bytes()


@pytest.mark.parametrize("name", available("13.4"))
def test_every_sample_is_read_alike(name):
    m = Module("13.4")
    add(m, name, "k")
    disassembled.check(m.to_bytes())


@pytest.mark.parametrize("change, said", [
    (lambda o: setattr(o, "spec", OPS["subf"]), "addf"),
    (lambda o: o.attrs.update(rounding_mode="positive_inf"), "is read as {'.*zero'"),
    (lambda o: o.attrs.update(flush_to_zero=False), "is read as {.*'flush_to_zero'"),
    (lambda o: setattr(o.results[0], "type", ty.tile(ty.f16)), "addf with tile<f16> is read as")])
def test_a_difference_is_found(monkeypatch, change, said):
    program = decode(sum_of_two())
    change(program.entries[0].block.ops[0])
    monkeypatch.setattr(disassembled, "decode", lambda bytecode: program)
    disassembled.check.cache_clear()
    with pytest.raises(AssertionError, match=said):
        disassembled.check(sum_of_two())


def test_a_refusal_is_told():
    with pytest.raises(AssertionError, match="the disassembler refuses"):
        disassembled.check(sum_of_two()[:60])
