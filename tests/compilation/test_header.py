"""The C header of an exported kernel: it compiles, its arguments are those of the cubin, its checks are right."""

import io
import keyword
import os
import re
import runpy
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
from cutile.dtypes import int_range
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


def test_there_is_something_to_declare():
    with pytest.raises(ValueError, match="signatures is empty"):
        c_header(of_nothing, [])
    with pytest.raises(ValueError, match="two signatures have the symbol 'k'"):
        c_header(of_nothing, [signature(), signature()])
    with pytest.raises(TypeError, match="signatures is a list of tuples of sample arguments, or of KernelSignature"):
        c_header(of_nothing, signature())


@needs_tool
def test_the_symbol_is_that_of_the_export():
    def größe():
        pass

    kernel, out = ct.kernel(größe), io.BytesIO()
    of_arguments = KernelSignature.from_kernel_args(kernel, (), CallingConvention.cutile_python_v2())
    for s in (signature(symbol=None), of_arguments):
        export_kernel(kernel, [s], out, gpu_code="sm_90", output_format="tileir_bytecode")
        symbol = re.search(r'_SYMBOL "(.*)"', c_header(kernel, [s]))[1]
        assert symbol == "gr__e_Kt2" and symbol.encode() in out.getvalue()


# ------------------------------------------------------------------ names in C

STANDARD = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype""".split()
NOT_IN_CPP = {"complex", "stdalign", "stdatomic", "stdnoreturn", "tgmath", "threads"}
NOT_IN_C99 = {"stdalign", "stdatomic", "stdnoreturn", "threads", "uchar"}
DIALECTS = [("gcc", "-std=c99", "-xc"), ("gcc", "-std=c11", "-xc"), ("gcc", "-std=gnu11", "-xc"),
            ("gcc", "-std=gnu2x", "-xc"), ("g++", "-std=c++11", "-xc++"), ("g++", "-std=gnu++17", "-xc++"),
            ("g++", "-std=gnu++20", "-xc++")]
CLAIMED = """NULL EOF BUFSIZ INT_MAX SIZE_MAX CHAR_BIT SIGINT EINTR M_PI TRUE I errno stdin stdout stderr unix linux
bool char co_await concept const_cast constinit complex default double enum export float goto inline int long mutable
namespace new nullptr operator register restrict short signed sizeof static_assert struct switch template this
thread_local true typeof typename union unsigned virtual void volatile xor int8_t int32_t uint64_t size_t ptrdiff_t
_Bool _Atomic _Generic _Static_assert _Complex __FILE__ __LINE__ __func__ __attribute__ __int128 __linux__ __asm__
isnan INFINITY va_arg alignas noreturn and_eq st_mtime h_errno si_pid sa_handler _ __ ___ _x a p size stride a_size
error file PRId64 EOF_ I_ \u03c0 \u03a9 x\u0301""".split()


def headers_of(compiler) -> str:
    left_out = NOT_IN_CPP if compiler[0] == "g++" else NOT_IN_C99 if compiler[1] == "-std=c99" else ()
    return "".join(f"#include <{h}.h>\n" for h in STANDARD if h not in left_out)


def header_of_parameters(tmp_path: Path, names: list[str], symbol="k") -> str:
    """A header for numbers and arrays in turn under these names."""
    numbers = (ct.float32, ct.int32, ct.uint64)
    given = [array(ct.float32, 2, stride_lower_bound_incl=0, stride_constant=(None, 1)) if i % 2 else
             ScalarConstraint(numbers[i % 3]) for i in range(len(names))]
    return c_header(kernel_of(tmp_path, names), [signature(*given, symbol=symbol)])


def kernel_of(tmp_path: Path, names: list[str]):
    file = tmp_path / "nothing.py"
    file.write_text(f"import cutile as ct\n\n@ct.kernel\ndef nothing({', '.join(names)}):\n    pass\n")
    return runpy.run_path(str(file))["nothing"]


@needs_compiler
@pytest.mark.parametrize("first", ["", "all"], ids=["alone", "after the standard headers"])
@pytest.mark.parametrize("compiler", DIALECTS, ids=lambda c: c[1])
def test_parameters_named_as_c_does(tmp_path, compiler, first):
    before = headers_of(compiler) if first else ""
    text = header_of_parameters(tmp_path, CLAIMED) + header_of_parameters(tmp_path, CLAIMED[::-1], "_Bool")
    compile_c(compiler, tmp_path, f"{before}\n{text}", "-fsyntax-only", "-Wno-unused-function")


@needs_compiler
@pytest.mark.parametrize("compiler", [DIALECTS[2], DIALECTS[5]], ids=lambda c: c[1])
def test_every_macro_of_the_standard_headers(tmp_path, compiler):
    """As the compiler lists them, with its own."""
    before = headers_of(compiler)
    (tmp_path / "all.h").write_text(before)
    listed = subprocess.run([*compiler, "-dM", "-E", str(tmp_path / "all.h")], capture_output=True, text=True,
                            check=True).stdout
    names = sorted(n for n in set(re.findall(r"^#define (\w+) ", listed, re.M)) if not keyword.iskeyword(n))
    assert len(names) > 500 and {"EOF", "errno", "INT_MAX"} <= set(names)
    text = f"{before}\n{header_of_parameters(tmp_path, names)}"
    compile_c(compiler, tmp_path, text, "-fsyntax-only", "-Wno-unused-function")


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda c: c[0])
def test_symbols_that_c_cannot_tell_apart(tmp_path, compiler):
    symbols = ["k", "K", "a$b", "a_b", "A_B", "int", "NULL", "_Bool", "__FILE__"]
    text = c_header(of_nothing, [signature(symbol=s) for s in symbols])
    assert sorted(re.findall(r'_SYMBOL "(.*)"', text)) == sorted(symbols)
    compile_c(compiler, tmp_path, text, "-fsyntax-only", "-Wno-unused-function")


@needs_compiler
@pytest.mark.parametrize("index", [ct.int32, ct.uint32, ct.int64], ids=str)
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda c: c[0])
def test_numbers_at_the_ends_of_their_range(tmp_path, compiler, index):
    low, high = int_range(index)
    farthest = max(low, -2**63 + 1)
    ends = [array(ct.int8, base_addr_divisible_by=2**63 - 1, index_dtype=index),
            *[array(ct.int8, index_dtype=index, **{field: value})
              for field, values in {"shape_constant": (0, high), "stride_constant": (farthest, high),
                                    "shape_divisible_by": (high,), "stride_divisible_by": (high,),
                                    "stride_lower_bound_incl": (low, low + 1, high - 1)}.items() for value in values]]
    kernel = kernel_of(tmp_path, [f"x{i}" for i in range(len(ends))])
    compile_c(compiler, tmp_path, c_header(kernel, [signature(*ends)]), "-fsyntax-only", "-Wno-unused-function")


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


def test_a_function_stands_for_its_kernel():
    from tests.functions.kernels import softmax

    convention, call = CallingConvention.cutile_python_v1(), (ct.ArraySpec("M 64", ct.float32),)
    signature = KernelSignature.from_kernel_args(softmax, call, convention)
    full = (*call, ct.ArraySpec("M 64", ct.float32), 64)
    assert signature == KernelSignature.from_kernel_args(softmax.kernel, full, convention)
    wanted = c_header(softmax.kernel, [signature])
    assert c_header(softmax, [signature]) == wanted and signature.symbol in c_header(softmax, [call])
