"""What a kernel says: the format, how its arguments are extended, assertions."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.gpu.target import parse_target, supports
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.builder import Module
from cutile.gpu.to_bytecode import module_of
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import TARGETS, typed, usual
from tests.gpu.tileir.rules.small_kernels import SINGLE, attributes, operations, scalar, tile
from tests.gpu.tileir.tool import needs_tool


def speaking(a):
    x = ct.load(a, 0, 4)
    print("x:", x, x.extract(0, ()).item(), "100%")
    ct.assert_(x.astype(ct.float32) == 1, "all ones")
    ct.assert_(x.extract(0, ()).astype(ct.bool_))


@needs_tool
@pytest.mark.parametrize("target", TARGETS)
def test_every_dtype(target):
    m = Module("13.4")
    for d in SINGLE:
        if supports(parse_target(target), d):
            kernel = typed(speaking, ArrayType(d, 1))
            module_of(kernel, [usual(p.type) for p in kernel.params], target, symbol=d.name, module=m)
    assert tileiras.assemble(m.to_bytes(), parse_target(target), opt_level=0)


def printing(text: str):
    def f(x):
        ct.printf(text, x)
        return x

    return f


@pytest.mark.parametrize(("dtype", "given", "wanted", "element"), [
    (ct.int8, "%d", "%d", "i32"), (ct.uint16, "%u", "%u", "i32"), (ct.bool_, "%d", "%d", "i32"),
    (ct.int64, "%d", "%lld", "i64"), (ct.int32, "%lx", "%llx", "i64"), (ct.uint64, "%llu", "%llu", "i64"),
    (ct.int64, "%hhd", "%hhd", "i32"), (ct.float16, "%+8.3f", "%+8.3f", "f32"), (ct.float64, "%g", "%g", "f64"),
    (ct.float8_e5m2, "%e", "%e", "f32")])
def test_arguments_as_c_takes_them(dtype, given, wanted, element):
    (made,) = [o for o in operations(printing(given), scalar(dtype)) if o.spec.name == "print_tko"]
    assert made.attrs["str"] == wanted
    assert [str(v.type.element) for v in made.operands[0]] == [element]


def test_signs_are_kept():
    for d, sign in ((ct.int8, "signed"), (ct.uint8, "unsigned")):
        assert attributes("exti", printing("%d"), scalar(d)) == [{"signedness": sign}]


def test_percent_signs_are_doubled():
    def f(x):
        print("100%", x, "5%d")
        return x

    assert attributes("print_tko", f, tile(ct.int32)) == [{"str": "100%% %d 5%%d\n"}]


@pytest.mark.parametrize("version", ["13.1", "13.2", "13.4"])
def test_every_version_prints(version):
    found = attributes("print_tko", printing("%d"), scalar(ct.int32), version=version)
    assert found == [{"str": "%d"}]


def test_assertions():
    def f(x):
        ct.assert_(x > 0, "a must be positive")
        ct.assert_(x > 1)
        return x

    assert attributes("assert", f, tile(ct.int32)) == [{"message": "a must be positive"}, {"message": ""}]
