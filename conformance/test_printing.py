"""print, printf and formatted strings: the text, character by character."""

import enum
from dataclasses import dataclass

import numpy as np
import pytest

from conformance.harness.api import clause, ct, launch, needs, refuses
from conformance.harness.dtype_names import DTYPES, NUMPY
from conformance.harness.guarded_arrays import numbers
from conformance.harness.type_probes import on_target, refused

X1 = np.zeros(4, np.int32)


@pytest.fixture
def written(capfd):
    """The text that a kernel writes: launch it, and read standard output."""
    def see(kernel, *args, grid=(1,)):
        capfd.readouterr()
        launch(kernel, *args, grid=grid)
        return capfd.readouterr().out

    return see


@pytest.fixture
def text(written):
    """The text that a function of tile code writes."""
    def see(f):
        @ct.kernel
        def k():
            f()

        return written(k)

    return see


class Color(enum.Enum):
    RED = 1


def rename(text):
    Color.__str__ = Color.__repr__ = lambda self: text


@clause("PRINT-2.enum", "SEVAL-2.python")
def test_texts_that_static_code_changes(text):
    """Between prints of one member: each is as it is at its place."""
    def f():
        for name in ct.static_iter(("one", "two", "two", "three")):
            ct.static_eval(rename(name))
            print(Color.RED, 1)
            print(Color.RED, 1)
            print((Color.RED,))

    assert text(f) == "".join(f"{name} 1\n{name} 1\n({name},)\n" for name in ("one", "two", "two", "three"))


@dataclass(frozen=True)
class Point:
    x: int
    y: float


@dataclass(frozen=True)
class Named:
    x: int

    def __str__(self):
        return "Named!"


def helper():
    pass


def t4():
    return ct.arange(4, dtype=ct.int32)


@clause("PRINT-1.once")
def test_once_per_block(written):
    @ct.kernel
    def k():
        a, b = ct.bid(0), ct.bid(1)
        if a > 0:
            print(a, b)

    assert sorted(written(k, grid=(3, 2)).splitlines()) == ["1 0", "1 1", "2 0", "2 1"]


@clause("PRINT-1.once")
def test_values_that_depend_on_the_block(written):
    @ct.kernel
    def k(x):
        b = ct.bid(0)
        t = ct.load(x, b, 2)
        ct.print("block", b, t, ct.num_blocks(0))
        for i in range(b):
            ct.printf("%d.%d %d\n", b, i, t)

    want = ["block 0 [1, 2] 3", "block 1 [3, 4] 3", "1.0 [3, 4]", "block 2 [5, 6] 3", "2.0 [5, 6]", "2.1 [5, 6]"]
    got = written(k, numbers(6), grid=(3,))
    assert sorted(got) == sorted("".join(line + "\n" for line in want))  # blocks may mix their lines


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: print("a", "b"), "a b\n", marks=clause("PRINT-1.default")),
    pytest.param(lambda: print(), "\n", marks=clause("PRINT-1.default")),
    pytest.param(lambda: ct.print("a", 5), "a 5\n", marks=clause("PRINT-1.builtin")),
    pytest.param(lambda: print("a", 5), "a 5\n", marks=clause("PRINT-1.builtin")),
    pytest.param(lambda: print("a", "b", 3, sep=", ", end="!"), "a, b, 3!", marks=clause("PRINT-1.sep")),
    pytest.param(lambda: print("a", "b", sep="", end=""), "ab", marks=clause("PRINT-1.sep")),
    pytest.param(lambda: print("a", "b", "c", sep=f"<{ct.bid(0)}>", end=f"{ct.bid(0) + 1}\n"), "a<0>b<0>c1\n",
                 marks=clause("PRINT-1.strings")),
    pytest.param(lambda: print("x", print("y")), "y\nx None\n", marks=clause("PRINT-1.none", "PRINT-2.none")),
    pytest.param(lambda: print("it's \"so\" \t\\ 5"), "it's \"so\" \t\\ 5\n", marks=clause("PRINT-2.string")),
    pytest.param(lambda: print(f"<{ct.bid(0) + 3}|{t4()}>", "z"), "<3|[0, 1, 2, 3]> z\n",
                 marks=clause("PRINT-2.formatted")),
    pytest.param(lambda: print("100%", "%d %s %%", f"{ct.bid(0)}%", sep="%"), "100%%%d %s %%%0%\n",
                 marks=clause("PRINT-2.percent")),
    pytest.param(lambda: print(t4()), "[0, 1, 2, 3]\n", marks=clause("PRINT-2.tile")),
    pytest.param(lambda: print(t4().reshape((2, 2))), "[[0, 1], [2, 3]]\n", marks=clause("PRINT-2.tile")),
    pytest.param(lambda: print(t4().reshape((1, 2, 2, 1))), "[[[[0], [1]], [[2], [3]]]]\n",
                 marks=clause("PRINT-2.tile")),
    pytest.param(lambda: print(t4().extract((1,), (1,))), "[1]\n", marks=clause("PRINT-2.tile")),
    pytest.param(lambda: print(t4() > 1), "[0, 0, 1, 1]\n", marks=clause("PRINT-2.tile", "PRINT-3.b1")),
    pytest.param(lambda: print(5, 2.5, True, False, -3), "5 2.5 True False -3\n", marks=clause("PRINT-2.const")),
    pytest.param(lambda: print(1e10, float("nan"), float("inf"), 1e-7, 1 << 40),
                 "10000000000.0 nan inf 1e-07 1099511627776\n", marks=clause("PRINT-2.const")),
    pytest.param(lambda: print(ct.int8(5), ct.float16(2.5), ct.bool_(1), ct.uint8(300)), "5 2.5 True 44\n",
                 marks=clause("PRINT-2.const")),
    pytest.param(lambda: print(None), "None\n", marks=clause("PRINT-2.none")),
    pytest.param(lambda: print((1, "b", None), (1,), (), ((2.5,), True)), "(1, 'b', None) (1,) () ((2.5,), True)\n",
                 marks=clause("PRINT-2.tuple")),
    pytest.param(lambda: print(("it's",)), "(\"it's\",)\n", marks=clause("PRINT-2.tuple")),
    pytest.param(lambda: print((ct.bid(0), (t4(), 1.5)), Point(ct.bid(0), ct.bid(0).astype(ct.float32))),
                 "(0, ([0, 1, 2, 3], 1.5)) Point(x=0, y=0.000000)\n", marks=clause("PRINT-2.nested")),
    pytest.param(lambda: print(Point(1, 2.5), (Point(1, 2),)), "Point(x=1, y=2.5) (Point(x=1, y=2),)\n",
                 marks=clause("PRINT-2.record")),
    pytest.param(lambda: print(Named(1), (Named(1),)), "Named! (Named(x=1),)\n",
                 marks=clause("PRINT-2.record.str")),
    pytest.param(lambda: print(ct.int32, ct.float8_e4m3fn, t4().dtype), "int32 float8_e4m3fn int32\n",
                 marks=clause("PRINT-2.dtype")),
    pytest.param(lambda: print(ct.RoundingMode.RN, ct.MemoryScope.SYS), "RoundingMode.RN MemoryScope.SYS\n",
                 marks=clause("PRINT-2.enum")),
])
def test_print(text, f, want):
    assert text(f) == want


@clause("PRINT-2.function")
def test_functions(text):
    out = text(lambda: print(helper))
    assert out.startswith("<function helper") and out.endswith(">\n") and out.count("\n") == 1


@dataclass(frozen=True)
class Shown:
    x: int

    def __repr__(self):
        return f"Shown <{self.x}>"


@dataclass(frozen=True)
class Wrong:
    x: int

    def __str__(self):
        return 5


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: print(Shown(4), (Shown(ct.bid(0)),)), "Shown <4> (Shown <0>,)\n",
                 marks=clause("PRINT-2.record.str")),
    pytest.param(lambda: print(repr("a"), str("b"), repr((1, "c")), repr(ct.bid(0))), "'a' b (1, 'c') 0\n",
                 marks=clause("PRINT-2.tuple")),
    pytest.param(lambda: print(end=""), "", marks=clause("PRINT-1.sep")),
    pytest.param(lambda: ct.printf(""), "", marks=clause("PRINT-5.end")),
    pytest.param(lambda: print(ct.bid(0), ct.bid(0) + 1, ct.bid(0)), "0 1 0\n", marks=clause("PRINT-1.sep")),
])
def test_more_of_print(text, f, want):
    assert text(f) == want


@clause("PRINT-2.record.str")
def test_a_str_that_is_no_string():
    refused("TileTypeError", lambda: print(Wrong(1)))


@clause("PRINT-2.function")
def test_functions_without_a_name_of_their_own(text):
    def inner():
        pass

    out = text(lambda: print(inner, lambda: 1))
    assert out.startswith("<function ") and out.count("<function ") == 2 and "inner" in out


@clause("PRINT-2.other")
def test_other_values(written):
    @ct.kernel
    def k(x):
        print(x, x.tiled_view(4), range(3), slice(0, 1, 1))

    out = written(k, X1)
    assert out.count("<object of type ") == 4 and out.startswith("<object of type ") and out.endswith(">\n")


def sevens(dtype):
    """-7 … or 7 for formats without a sign."""
    return ct.full((2,), 7, dtype) if dtype.name in UNSIGNED else ct.full((2,), -7, dtype)


UNSIGNED = ("bool_", "uint8", "uint16", "uint32", "uint64")
SHOWN = {"b1": "[1, 1]", **dict.fromkeys(("i8", "i16", "i32", "i64"), "[-7, -7]"),
         **dict.fromkeys(("u8", "u16", "u32", "u64"), "[7, 7]"),
         **dict.fromkeys(("f16", "bf16", "f32", "f64"), "[-7.000000, -7.000000]")}


@pytest.mark.parametrize("d", [pytest.param(d, marks=clause(f"PRINT-3.{d}", "PRINT-4.default")) for d in SHOWN])
def test_defaults_by_dtype(written, d):
    dtype, n = DTYPES[d], -7 if SHOWN[d][1] == "-" else 7

    @ct.kernel
    def k():
        t = ct.full((2,), n, dtype)
        print(t, f"{t}")

    assert written(k) == f"{SHOWN[d]} {SHOWN[d]}\n"


@pytest.mark.parametrize("d, values, want", [
    pytest.param("i64", [-(1 << 63), (1 << 63) - 1], "[-9223372036854775808, 9223372036854775807]",
                 marks=clause("PRINT-3.i64")),
    pytest.param("u64", [1 << 63, (1 << 64) - 1], "[9223372036854775808, 18446744073709551615]",
                 marks=clause("PRINT-3.u64")),
    pytest.param("i32", [-(1 << 31), (1 << 31) - 1], "[-2147483648, 2147483647]", marks=clause("PRINT-3.i32")),
    pytest.param("u32", [1 << 31, (1 << 32) - 1], "[2147483648, 4294967295]", marks=clause("PRINT-3.u32")),
    pytest.param("u8", [128, 255], "[128, 255]", marks=clause("PRINT-3.u8")),
    pytest.param("i8", [-128, 127], "[-128, 127]", marks=clause("PRINT-3.i8")),
    pytest.param("u16", [32768, 65535], "[32768, 65535]", marks=clause("PRINT-3.u16")),
    pytest.param("i16", [-32768, 32767], "[-32768, 32767]", marks=clause("PRINT-3.i16")),
    pytest.param("f32", [1 / 3, 1e9], "[0.333333, 1000000000.000000]", marks=clause("PRINT-3.f32")),
    pytest.param("f64", [1 / 3, -1e-3], "[0.333333, -0.001000]", marks=clause("PRINT-3.f64")),
    pytest.param("f16", [1 / 3, 65504], "[0.333252, 65504.000000]", marks=clause("PRINT-3.f16")),
    pytest.param("bf16", [1 / 3, 256], "[0.333984, 256.000000]", marks=clause("PRINT-3.bf16")),
    pytest.param("e4m3", [448, 0.1], "[448.000000, 0.101562]", marks=clause("PRINT-3.restricted")),
    pytest.param("e5m2", [-2, 0.1], "[-2.000000, 0.093750]", marks=clause("PRINT-3.restricted")),
])
def test_values_by_dtype(written, d, values, want):
    @ct.kernel
    def k(x):
        print(ct.load(x, 0, 2))

    with on_target(d):
        assert written(k, np.array(values).astype(NUMPY[d])) == want + "\n"


# C's text: (value, dtype, spec) -> text. Values are run-time scalars.
FIELDS = {
    "PRINT-4.d": [(42, "i32", "d", "42"), (-42, "i8", "d", "-42")],
    "PRINT-4.i": [(42, "i32", "i", "42"), (-42, "i16", "i", "-42")],
    "PRINT-4.o": [(8, "i32", "o", "10"), (-1, "i32", "o", "37777777777"), (0, "i32", "o", "0")],
    "PRINT-4.u": [(42, "u32", "u", "42"), (-1, "i32", "u", "4294967295")],
    "PRINT-4.x": [(255, "i32", "x", "ff"), (-1, "i32", "x", "ffffffff"), (0xBEEF, "u16", "x", "beef")],
    "PRINT-4.X.capital": [(255, "i32", "X", "FF"), (0xBEEF, "i32", "8X", "    BEEF")],
    "PRINT-4.e": [(12345.678, "f32", "e", "1.234568e+04"), (0.0, "f32", "e", "0.000000e+00"),
                  (1e-10, "f64", "e", "1.000000e-10")],
    "PRINT-4.E.capital": [(12345.678, "f32", "E", "1.234568E+04")],
    "PRINT-4.f": [(2.5, "f32", "f", "2.500000"), (-2.5, "f16", "f", "-2.500000")],
    "PRINT-4.F.capital": [(2.5, "f32", "F", "2.500000")],
    "PRINT-4.g": [(0.0001, "f64", "g", "0.0001"), (1e-5, "f64", "g", "1e-05"), (2.5, "f32", "g", "2.5"),
                  (1e6, "f32", "g", "1e+06"), (123456.0, "f32", "g", "123456")],
    "PRINT-4.G.capital": [(1e6, "f32", "G", "1E+06"), (2.5, "f32", "G", "2.5")],
    "PRINT-4.a": [(1.0, "f64", "a", "0x1p+0"), (2.5, "f64", "a", "0x1.4p+1"),
        (-0.1, "f64", "a", "-0x1.999999999999ap-4"),
                  (0.0, "f64", "a", "0x0p+0"), (1.0, "f64", ".2a", "0x1.00p+0"), (1.96875, "f64", ".1a", "0x2.0p+0"),
                  (1.53125, "f64", ".1a", "0x1.8p+0"), (1.59375, "f64", ".1a", "0x1.ap+0"), (5e-324, "f64", "a",
                   "0x0.0000000000001p-1022"), (3.0, "f64", ".0a", "0x2p+1"), (2.0, "f64", "#.0a", "0x1.p+1")],
    "PRINT-4.A.capital": [(2.5, "f64", "A", "0X1.4P+1"), (171.0, "f64", "A", "0X1.56P+7")],
    "PRINT-4.plus": [(5, "i32", "+d", "+5"), (-5, "i32", "+d", "-5"), (2.5, "f32", "+f", "+2.500000"),
        (5, "i32", "+", "+5")],
    "PRINT-4.space": [(5, "i32", " d", " 5"), (-5, "i32", " d", "-5"), (2.5, "f32", " f", " 2.500000")],
    "PRINT-4.minus": [(5, "i32", "-d", "5"), (-5, "i32", "-4d", "  -5")],
    "PRINT-4.alt": [(8, "i32", "#o", "010"), (255, "i32", "#x", "0xff"), (255, "i32", "#X", "0XFF"),
        (0, "i32", "#x", "0"),
                    (0, "i32", "#o", "0"), (2.0, "f32", "#.0f", "2."), (2.0, "f32", "#g", "2.00000")],
    "PRINT-4.zero": [(5, "i32", "04d", "0005"), (-5, "i32", "04d", "-005"), (255, "i32", "#08x", "0x0000ff"),
                     (2.5, "f32", "010.2f", "0000002.50"), (-2.5, "f32", "010.2f", "-000002.50"), (5, "i32", "+05d",
                         "+0005"),
                     (1.0, "f64", "010a", "0x00001p+0"), (5, "i32", "05.3d", "  005")],
    "PRINT-4.width": [(5, "i32", "4d", "   5"), (12345, "i32", "3d", "12345"), (2.5, "f32", "10f", "  2.500000"),
                      (5, "i32", "4", "   5"), (2.5, "f32", "10", "  2.500000")],
    "PRINT-4.precision": [(2.71828, "f64", ".2f", "2.72"), (2.5, "f32", ".0f", "2"), (3.5, "f32", ".0f", "4"),
                          (5, "i32", ".3d", "005"), (-5, "i32", ".3d", "-005"), (0, "i32", ".0d", ""), (2.71828, "f64",
                              ".3g", "2.72"),
                          (2.71828, "f64", ".1e", "2.7e+00"), (2.71828, "f64", ".2", "2.72"), (255, "i32", "#.4x",
                              "0x00ff")],
    "PRINT-4.left": [(5, "i32", "<4d", "5   "), (2.5, "f32", "<8.1f", "2.5     "), (5, "i32", "<04d", "5   "),
        (255, "i32", "<#6x", "0xff  ")],
    "PRINT-4.right": [(5, "i32", ">4d", "   5"), (5, "i32", "^4d", "   5"), (5, "i32", ">04d", "0005")],
    "PRINT-4.order": [(5, "i32", "<+6.3d", "+005  "), (255, "i32", "> #08x", "0x0000ff"),
        (2.5, "f64", "<+#10.0f", "+2.       "),
                      (-2.5, "f32", "^ 012.3e", "-002.500e+00")],
    "PRINT-4.nonfinite": [(np.inf, "f32", "f", "inf"), (-np.inf, "f32", "f", "-inf"), (np.nan, "f32", "f", "nan"),
        (np.inf, "f32", "F", "INF"),
                          (np.nan, "f32", "G", "NAN"), (np.inf, "f32", "08f", "     inf"), (np.inf, "f32", "+f",
                              "+inf"), (-np.inf, "f64", "<8a", "-inf    ")],
    "PRINT-4.wide": [((1 << 40) + 7, "i64", "d", "1099511627783"), (-1, "i64", "x", "ffffffffffffffff"),
        ((1 << 64) - 1, "u64", "u", "18446744073709551615"),
                     (-(1 << 63), "i64", "d", "-9223372036854775808"), (-1, "i64", "o", "1777777777777777777777")],
    "PRINT-3.b1": [(True, "b1", "d", "1"), (False, "b1", "x", "0"), (True, "b1", "3", "  1")],
}


@pytest.mark.parametrize("value, d, spec, want", [
    pytest.param(*row, marks=clause(i), id=f"{row[1]}:{row[2]}:{row[3]}") for i,
    rows in FIELDS.items() for row in rows])
def test_fields(written, tmp_path, value, d, spec, want):
    show = formatter(tmp_path / "spec.py", spec)

    @ct.kernel
    def k(x):
        print(show(ct.load(x, 0, ())))

    assert written(k, np.array([value]).astype(NUMPY[d])) == want + "\n"


def formatter(path, spec):
    """A function with this spec in a formatted string, in a file, so that its source text can be read."""
    path.write_text(f"def show(s):\n    return f'{{s:{spec}}}'\n")
    space: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["show"]


@clause("PRINT-4.kind")
@pytest.mark.parametrize("f", [
    lambda: print(f"{ct.bid(0):f}"), lambda: print(f"{ct.bid(0):g}"), lambda: print(f"{ct.bid(0):A}"),
    lambda: print(f"{5:e}"), lambda: print(f"{True:f}"), lambda: print(f"{2.5:d}"), lambda: print(f"{2.5:x}"),
    lambda: print(f"{t4().astype(ct.float32):d}"), lambda: print(f"{t4().astype(ct.float16):o}")])
def test_letters_of_the_wrong_kind(f):
    refused("TileTypeError", f)


@clause("PRINT-4.unknown")
@pytest.mark.parametrize("f", [
    lambda: print(f"{ct.bid(0):s}"), lambda: print(f"{ct.bid(0):b}"), lambda: print(f"{ct.bid(0):n}"),
    lambda: print(f"{ct.bid(0):,}"),
    lambda: print(f"{ct.bid(0):_d}"), lambda: print(f"{ct.bid(0):dd}"), lambda: print(f"{ct.bid(0):=4}"),
    lambda: print(f"{ct.bid(0):*>4}"),
    lambda: print(f"{ct.bid(0):c}"), lambda: print(f"{2.5:%}"), lambda: print(f"{ct.bid(0):.}"),
    lambda: print(f"{ct.bid(0):4 d}")])
def test_unknown_specs(f):
    refused(("TileTypeError", "TileInternalError"), f)


@clause("PRINT-4.tuple")
def test_a_spec_on_what_is_no_number():
    refused("TileTypeError", lambda: print(f"{(1, 2):d}"))
    refused("TileTypeError", lambda: print(f"{(ct.bid(0),):4}"))


@clause("PRINT-4.const")
def test_constants_in_formatted_strings(text):
    assert text(lambda: print(f"{True} {2.5} {5} {-3} {ct.int8(-1):x} {1 << 40:d} {0.1} {2.5:.1f} {5:03d}")) == \
        "1 2.500000 5 -3 ffffffff 1099511627776 0.100000 2.5 005\n"


@clause("PRINT-4.const", "PRINT-2.formatted")
def test_other_values_in_formatted_strings(text):
    assert text(lambda: print(f"{'a'} {None} {(1, 'b')} {ct.int32} {Point(1, 2)}")) == \
        "a None (1, 'b') int32 Point(x=1, y=2)\n"


@clause("PRINT-4.default", "PRINT-2.tile")
def test_fields_that_are_tiles(text):
    assert text(lambda: print(f"{t4() + 8:03d}|{(t4() > 2).reshape((2, 2)):x}")) == \
        "[008, 009, 010, 011]|[[0, 0], [0, 1]]\n"


@clause("CV-5.add", "CV-5.fstring")
def test_sums_of_formatted_strings(text):
    assert text(lambda: print(f"{ct.bid(0)}" + "b", "a" + f"{ct.bid(0)}", f"{ct.bid(0)}" + f"{ct.bid(0) + 1}")) == \
        "0b a0 01\n"


@clause("PRINT-1.refused", "PRINT-1.file")
@pytest.mark.parametrize("f", [
    lambda: print("a", sep=None), lambda: print("a", end=None), lambda: print("a", sep=1), lambda: print("a", end=2.5),
    lambda: print("a", sep=t4()), lambda: ct.print("a", end=(1,)), lambda: print("a", flush=True), lambda: print("a",
        file=None),
    lambda: ct.print("a", file=None), lambda: ct.print("a", flush=False)])
def test_what_print_refuses(f):
    refused("TileTypeError", f)


# ------------------------------------------------------------------ printf


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: ct.printf("a %d b %d\n", 5, ct.bid(0)), "a 5 b 0\n", marks=clause("PRINT-5.text")),
    pytest.param(lambda: ct.printf("%d", 5), "5", marks=clause("PRINT-5.end")),
    pytest.param(lambda: ct.printf("plain"), "plain", marks=clause("PRINT-5.text", "PRINT-5.end")),
    pytest.param(lambda: ct.printf("%+d|% d|%-4d|%04d|%#x", 5, 5, 5, 5, 255), "+5| 5|5   |0005|0xff",
        marks=clause("PRINT-5.flag")),
    pytest.param(lambda: ct.printf("%8.3f|%.2e|%5d|%.3d|%.f", 2.5, 2.5, 7, 7, 2.5), "   2.500|2.50e+00|    7|007|2",
        marks=clause("PRINT-5.width")),
    pytest.param(lambda: ct.printf("%.3d|%.0d|%.0d|%4.2x", 0, 0, 7, 5), "000||7|  05", marks=clause("PRINT-5.width")),
    pytest.param(lambda: ct.printf("%+04d|%-04d|%#06x|% 05.1f|%007d", 5, 5, 255, 2.5, 7),
        "+005|5   |0x00ff| 02.5|0000007", marks=clause("PRINT-5.width.zero")),
    pytest.param(lambda: ct.printf("%d %i %u %o %x %X %d", 10, 10, 10, 10, 10, 10, True), "10 10 10 12 a A 1",
        marks=clause("PRINT-5.int")),
    pytest.param(lambda: ct.printf("%u %x", ct.bid(0) - 1, ct.int8(-1)), "4294967295 ffffffff",
        marks=clause("PRINT-5.int")),
    pytest.param(lambda: ct.printf("%e %E %f %F %g %G %a %A", 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5),
                 "2.500000e+00 2.500000E+00 2.500000 2.500000 2.5 2.5 0x1.4p+1 0X1.4P+1",
                 marks=clause("PRINT-5.float")),
    pytest.param(lambda: ct.printf("%f %g", ct.bid(0).astype(ct.float16) + 1.5, ct.float64(0.25)), "1.500000 0.25",
        marks=clause("PRINT-5.float")),
    pytest.param(lambda: ct.printf("100%% %d%%%%\n", 5), "100% 5%%\n", marks=clause("PRINT-5.percent")),
    pytest.param(lambda: ct.printf("<%d|%2d>", t4(), t4().reshape((2, 2))), "<[0, 1, 2, 3]|[[ 0,  1], [ 2,  3]]>",
        marks=clause("PRINT-5.tile")),
    pytest.param(lambda: ct.printf("%ld %lld %lu %llx %hd %hhd", 5, 6, 7, 255, 8, 9), "5 6 7 ff 8 9",
        marks=clause("PRINT-5.length")),
    pytest.param(lambda: ct.printf("%lld %lf", ct.bid(0).astype(ct.int64) - (1 << 40), ct.bid(0).astype(ct.float64)),
        "-1099511627776 0.000000", marks=clause("PRINT-5.length")),
    pytest.param(lambda: ct.printf("%lu %lx %llu", ct.int64(-1), ct.int64(-1), ct.int64(-1)),
        "18446744073709551615 ffffffffffffffff 18446744073709551615", marks=clause("PRINT-5.length")),
    pytest.param(lambda: ct.printf("%d %d\n", ct.bid(0) + 1, ct.bid(0) + 2), "1 2\n", marks=clause("PRINT-5.text")),
])
def test_printf(text, f, want):
    assert text(f) == want


@needs("measured")
@clause("PRINT-5.length")
def test_short_lengths_cut_the_value(text):
    assert text(lambda: ct.printf("%llu %lx", ct.bid(0) - 1, ct.int8(-1))) == "18446744073709551615 ffffffffffffffff"
    assert text(lambda: ct.printf("%hhd %hd %hhu %hu %hhx", 300, 70000, -1, -1, 0x1FF)) == "44 4464 255 65535 ff"


@clause("PRINT-5.once")
def test_printf_of_blocks(written):
    @ct.kernel
    def k():
        ct.printf("%d,%d\n", ct.bid(0), ct.bid(1))

    assert sorted(written(k, grid=(2, 2)).splitlines()) == ["0,0", "0,1", "1,0", "1,1"]


@pytest.mark.parametrize("f", [
    pytest.param(lambda: ct.printf(5), marks=clause("PRINT-5.format")),
    pytest.param(lambda: ct.printf(f"{ct.bid(0)}"), marks=clause("PRINT-5.format")),
    pytest.param(lambda: ct.printf(None), marks=clause("PRINT-5.format")),
    pytest.param(lambda: ct.printf(), marks=clause("PRINT-5.format")),
    pytest.param(lambda: ct.printf("%+-d", 5), marks=clause("PRINT-5.flag")),
    pytest.param(lambda: ct.printf("%--d", 5), marks=clause("PRINT-5.flag")),
    pytest.param(lambda: ct.printf("%*d", 5, 5), marks=clause("PRINT-5.width")),
    pytest.param(lambda: ct.printf("%.*f", 5, 2.5), marks=clause("PRINT-5.width")),
    *(pytest.param(f, marks=clause("PRINT-5.grammar")) for f in (
        lambda: ct.printf("%c", 5), lambda: ct.printf("%s", "a"), lambda: ct.printf("%p", 5), lambda: ct.printf("%n",
            5),
        lambda: ct.printf("%Lf", 2.5), lambda: ct.printf("%"), lambda: ct.printf("5 %"), lambda: ct.printf("% % d", 5),
        lambda: ct.printf("%q", 5), lambda: ct.printf("%hhhd", 5), lambda: ct.printf("%zd", 5),
        lambda: ct.printf("%jd", 5))),
    pytest.param(lambda: ct.printf("%d", 2.5), marks=clause("PRINT-5.int.kind")),
    pytest.param(lambda: ct.printf("%x", ct.float16(1)), marks=clause("PRINT-5.int.kind")),
    pytest.param(lambda: ct.printf("%u", t4().astype(ct.float32)), marks=clause("PRINT-5.int.kind")),
    pytest.param(lambda: ct.printf("%f", 5), marks=clause("PRINT-5.float.kind")),
    pytest.param(lambda: ct.printf("%g", ct.bid(0)), marks=clause("PRINT-5.float.kind")),
    pytest.param(lambda: ct.printf("%a", True), marks=clause("PRINT-5.float.kind")),
    pytest.param(lambda: ct.printf("%d"), marks=clause("PRINT-5.count")),
    pytest.param(lambda: ct.printf("%d", 1, 2), marks=clause("PRINT-5.count")),
    pytest.param(lambda: ct.printf("a", 1), marks=clause("PRINT-5.count")),
    pytest.param(lambda: ct.printf("%%", 1), marks=clause("PRINT-5.count")),
    pytest.param(lambda: ct.printf("%d", "a"), marks=clause("PRINT-5.args")),
    pytest.param(lambda: ct.printf("%d", None), marks=clause("PRINT-5.args")),
    pytest.param(lambda: ct.printf("%d", (1,)), marks=clause("PRINT-5.args")),
    pytest.param(lambda: ct.printf("%d", ct.int32), marks=clause("PRINT-5.args")),
])
def test_what_printf_refuses(f):
    refused("TileTypeError", f)


@clause("PRINT-5.args", "GEN-1.kind")
def test_printf_of_an_array():
    @ct.kernel
    def k(x):
        ct.printf("%d", x)

    refuses("TileTypeError", k, X1)
