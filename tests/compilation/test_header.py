"""The C header of an exported kernel: it compiles, its arguments are those of the cubin, its checks are right."""

import io
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import cutile as ct
from cutile.compilation import (
    ArrayConstraint,
    CallingConvention,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    TupleConstraint,
    export_kernel,
)
from cutile.compilation.header import c_header
from tests.gpu.tileir.tool import needs_tool

AOT = Path(__file__).parents[2] / "examples" / "aot"
COMPILERS = [c for c in (("gcc", "-std=c99", "-xc"), ("g++", "-std=c++11", "-xc++")) if shutil.which(c[0])]
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror")
needs_compiler = pytest.mark.skipif(len(COMPILERS) < 2, reason="no gcc and g++")


def array(dtype=ct.float32, ndim=1, **kw) -> ArrayConstraint:
    return ArrayConstraint(dtype, ndim, **{"index_dtype": ct.int32, "stride_lower_bound_incl": None,
                                           "alias_groups": (), "may_alias_internally": True, **kw})


def signature(*parameters, symbol="k") -> KernelSignature:
    return KernelSignature(parameters, CallingConvention.cutile_python_v2(), symbol=symbol)


@ct.kernel
def of_all(a, many, pair, flag, half, wide, int, a_size, n):
    ct.store(a, (0,), ct.full((8,), half, ct.float32) + ct.astype(flag, ct.float32) + ct.astype(pair[1], ct.float32)
             + ct.load(many[0], (0, 0), (1, 8)).reshape((8,)) + ct.load(pair[0], (0,), (8,)) + int + a_size + n
             + ct.astype(wide, ct.float32))


ALL = signature(
    array(base_addr_divisible_by=16, shape_divisible_by=8, stride_constant=1, alias_groups=("g",)),
    ListConstraint(array(ndim=2, index_dtype=ct.int64, stride_lower_bound_incl=(0, None)), alias_groups=(),
                   elements_may_alias=False),
    TupleConstraint([array(index_dtype=ct.uint32, alias_groups=("g",)), ScalarConstraint(ct.int64)]),
    ScalarConstraint(ct.bool_), ScalarConstraint(ct.float16), ScalarConstraint(ct.float64),
    ScalarConstraint(ct.int8), ScalarConstraint(ct.float32), 5, symbol="of_all")


@ct.kernel
def of_nothing():
    pass


def compile_c(compiler, folder: Path, text: str, *more: str) -> None:
    source = folder / "x.txt"
    source.write_text(text)
    subprocess.run([compiler[0], *compiler[1:], *STRICT, *more, str(source)], check=True, capture_output=True)


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda c: c[0])
def test_it_is_c_and_cpp(tmp_path, compiler):
    text = c_header(of_all, [ALL]) + c_header(of_nothing, [signature(symbol=None), signature()])
    compile_c(compiler, tmp_path, text + "int main(void) { of_all_arguments a; (void)a; return 0; }", "-fsyntax-only",
              "-Wno-unused-function")


def members(header: str) -> list[tuple[str, str]]:
    """Type and expression of each argument, as the function of the pointers lists them."""
    types = {name: t for t, name in re.findall(r"^    (\w+) (\w+)(?:\[\d+\])?; ", header, re.M)}
    return [(types[re.match(r"\w+", x)[0]], x) for x in re.findall(r"p\[\d+\] = &a->(.*);", header)]


def test_arguments_in_order():
    assert members(c_header(of_all, [ALL])) == [
        ("uint64_t", "a"), ("int32_t", "a_size[0]"), ("int32_t", "a_stride[0]"),
        ("uint64_t", "many"), ("int32_t", "many_length"),
        ("uint64_t", "pair_0"), ("uint32_t", "pair_0_size[0]"), ("uint32_t", "pair_0_stride[0]"), ("int64_t", "pair_1"),
        ("int32_t", "flag"), ("uint16_t", "half"), ("double", "wide"), ("int8_t", "int_"), ("float", "a_size_")]


@needs_tool
def test_they_are_those_of_the_cubin():
    out = io.BytesIO()
    export_kernel(of_all, [ALL], out, gpu_code="sm_90", output_format="cubin")
    sizes = {"uint64_t": 8, "int64_t": 8, "double": 8, "int32_t": 4, "uint32_t": 4, "float": 4, "uint16_t": 2,
             "int8_t": 1}
    passed = [1 if x == "flag" else sizes[t] for t, x in members(c_header(of_all, [ALL]))]
    assert cubin_parameters(out.getvalue(), "of_all") == passed  # of a bool's 32 bits the driver takes what it needs


def cubin_parameters(elf: bytes, symbol: str) -> list[int]:
    """The sizes of an entry's parameters, from the records 0x17 of its section .nv.info."""
    table, = struct.unpack_from("<Q", elf, 0x28)
    count, names = struct.unpack_from("<HH", elf, 0x3c)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * i) for i in range(count)]
    for name, _, _, _, offset, size, *_ in sections:
        at = sections[names][4] + name
        if elf[at:elf.index(b"\0", at)] == f".nv.info.{symbol}".encode():
            return [size for _, size in sorted(_records(elf[offset:offset + size]))]
    raise AssertionError(f"no {symbol}")


def _records(data: bytes):
    at = 0
    while at < len(data):
        form, kind, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            if kind == 0x17:
                _, ordinal, _, flags = struct.unpack_from("<IHHI", data, at)
                yield ordinal, flags >> 18
            at += length


@needs_compiler
def test_promises_are_checked(tmp_path):
    header = c_header(of_all, [ALL])
    program = header + """
#include <stdio.h>
static void say(of_all_arguments a) { const char *b = of_all_broken(&a); puts(b ? b : "fine"); }
int main(void) {
    void *p[OF_ALL_ARGUMENTS];
    of_all_arguments a = {0};
    a.a = 32; a.a_size[0] = 24; a.a_stride[0] = 1;
    of_all_pointers(&a, p);
    printf("%d %s %d %d\\n", OF_ALL_ARGUMENTS, OF_ALL_SYMBOL, p[0] == (void*)&a.a, p[13] == (void*)&a.a_size_);
    say(a);
    a.a = 40; say(a); a.a = 32;
    a.a_size[0] = 20; say(a); a.a_size[0] = 24;
    a.a_stride[0] = 2; say(a);
    return 0;
}
"""
    compile_c(COMPILERS[0], tmp_path, program, "-o", str(tmp_path / "x"))
    done = subprocess.run([str(tmp_path / "x")], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["14 of_all 1 1", "fine", "a % 16 == 0", "a_size[0] % 8 == 0",
                                        "a_stride[0] == 1"]


def test_what_c_cannot_check_is_written_down():
    header = c_header(of_all, [ALL])
    for note in ("of_all(a, many, pair, flag, half, wide, int, a_size, n=5)", "a, pair_0 may share memory",
                 "no other arrays share memory", "the arrays of many share no memory",
                 "the table many has 5 64-bit words for each array", "for each array a of many: a_stride[0] >= 0",
                 "of test_header.py"):
        assert note in header
    plain = c_header(of_nothing, [signature(symbol=None)])
    assert "promises" not in plain and '#define OF_NOTHING_KT2_SYMBOL "of_nothing_Kt2"' in plain


def test_a_signature_for_another_kernel():
    with pytest.raises(ValueError, match=r"of_nothing has 0 parameter\(s\), the signature has 1"):
        c_header(of_nothing, [signature(5)])


# ------------------------------------------------------------------ the example


def cuda_h() -> Path | None:
    """A folder with cuda.h: of the pip packages, or of a toolkit."""
    folders = [Path(p, "nvidia", "cu13", "include") for p in sys.path]
    folders += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include"),
                *Path("/usr/local").glob("cuda*/include")]
    return next((f for f in folders if (f / "cuda.h").is_file()), None)


@needs_tool
def test_the_example_exports(tmp_path):
    done = subprocess.run([sys.executable, str(AOT / "export.py"), str(tmp_path)], capture_output=True, text=True,
                          check=True, cwd=tmp_path)
    assert (tmp_path / "softmax.cubin").read_bytes()[:4] == b"\x7fELF" and "softmax.h" in done.stdout
    arguments = members((tmp_path / "softmax.h").read_text())
    assert [x for _, x in arguments][-1] == "sharpness" and len(arguments) == 11
    assert cubin_parameters((tmp_path / "softmax.cubin").read_bytes(), "softmax") == [8, 4, 4, 4, 4] * 2 + [4]
    if COMPILERS and cuda_h():
        subprocess.run(["g++", "-std=c++17", *STRICT, "-fsyntax-only", f"-I{tmp_path}", "-isystem", str(cuda_h()),
                        str(AOT / "main.cpp")], check=True)
