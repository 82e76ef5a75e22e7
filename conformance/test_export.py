"""export_kernel: what it accepts, writes and refuses."""

import io
import linecache
import os
import threading
import time
from typing import Annotated, Any

import pytest

from conformance.harness.api import clause, ct, impl, needs
from conformance.harness.compiled_files import ELF, MAGIC, parameters, symbols, version_of
from conformance.harness.export import TARGETS, V1, V2, VERSIONS, arrays, bytecode, c, cubin, forward, scalar, signature

pytestmark = needs("export")
assembles = needs("cubins")


@ct.kernel
def double(x):
    ct.store(x, 0, ct.load(x, 0, 4) * 2)


@ct.kernel
def wrong(x):
    ct.store(x, 0, ct.exp(None))


def plain(x):
    pass


ONE = signature(forward(), convention=V1, symbol="one")


def export(kernel, signatures, output, **options):
    return c.export_kernel(kernel, signatures, output, **{
        "gpu_code": "sm_90", "output_format": "tileir_bytecode", "bytecode_version": "13.4", **options})


def fresh():
    """A signature that is not in any cache of an implementation."""
    return ONE.with_symbol(f"at_{time.time_ns()}")


def raises(name):
    return pytest.raises(impl.error(name))


# ------------------------------------------------------------------ kernels and signatures


@clause("EXP-1.kernel")
def test_it_gives_nothing():
    assert export(double, [ONE], io.BytesIO()) is None


@clause("EXP-1.function")
@pytest.mark.parametrize("kernel", [plain, None, 3, "double"], ids=["function", "None", "int", "str"])
def test_what_is_no_kernel(kernel):
    with pytest.raises((AttributeError, TypeError)):
        export(kernel, [ONE], io.BytesIO())


@assembles
@clause("EXP-1.options")
def test_options_of_the_kernel():
    """A higher optimisation level gives other code."""
    @ct.kernel(opt_level=0)
    def slow(x):
        ct.store(x, 0, ct.exp(ct.load(x, 0, 64)) + 1)

    quick = slow.replace_hints(opt_level=3)
    assert len(cubin(slow, ONE)) > len(cubin(quick, ONE))


@clause("EXP-2.entries", "EXP-2.symbol")
def test_entries_of_bytecode():
    code = bytecode(double, ONE, signature(forward(ct.int8), symbol="another"))
    assert code.startswith(MAGIC) and b"one" in code and b"another" in code


@assembles
@clause("EXP-2.entries", "EXP-2.symbol", "EXP-2.mangled", "EXP-4.cubin")
def test_entries_of_a_cubin():
    unnamed = signature(forward(ct.int8, 2), 3)

    @ct.kernel
    def of_two(x, n):
        pass

    code = cubin(of_two, signature(forward(), scalar(ct.int32), symbol="first"), unnamed, unnamed.with_symbol("last"))
    assert code.startswith(ELF) and symbols(code) == {"first", "of_two_Kt2_A2i8_3l0_I3", "last"}


@clause("EXP-2.mangled")
def test_the_name_of_the_function_is_mangled():
    assert b"double_Kt1_A1f32_1l0" in bytecode(double, signature(forward(), convention=V1))
    assert b"double_Kt2_A1f32_1l0" in bytecode(double, signature(forward(), convention=V2))


@clause("EXP-2.sequence")
@pytest.mark.parametrize("sequence", [list, tuple])
def test_sequences_of_signatures(sequence):
    out = io.BytesIO()
    export(double, sequence([ONE]), out)
    assert out.getvalue().startswith(MAGIC)


@clause("EXP-2.empty")
@pytest.mark.parametrize("output_format", ["tileir_bytecode", pytest.param("cubin", marks=assembles)])
def test_no_signatures(output_format):
    out = io.BytesIO()
    with pytest.raises(ValueError):
        export(double, [], out, output_format=output_format)
    assert not out.getvalue()


@pytest.mark.parametrize("signatures", [
    pytest.param([ONE, signature(forward(ct.int8), symbol="one")], marks=clause("EXP-2.equal")),
    pytest.param([ONE, ONE], marks=clause("EXP-2.equal")),
    pytest.param([ONE, signature(forward()), signature(forward())], marks=clause("EXP-2.unnamed")),
    pytest.param([signature(forward()), signature(forward(), symbol="double_Kt2_A1f32_1l0")],
                 marks=clause("EXP-2.equal"))],
    ids=["named", "equal", "unnamed", "mangled"])
def test_equal_symbols(signatures):
    with pytest.raises(ValueError):
        export(double, signatures, io.BytesIO())


@clause("EXP-2.kind")
@pytest.mark.parametrize("signatures", [ONE, None, 3, [3], [None], [forward()], ["one_Kt1_A1f32"]],
                         ids=["one", "None", "int", "ints", "Nones", "constraint", "names"])
def test_what_are_no_signatures(signatures):
    with pytest.raises((AttributeError, TypeError)):
        export(double, signatures, io.BytesIO())


@assembles
@clause("EXP-2.name")
@pytest.mark.parametrize("symbol", ["", "a b", "1a", "a.b", "a-b", "größe", "a\n", 'a"b'])
def test_symbols_that_are_no_names(symbol):
    with pytest.raises((ValueError, impl.error("TileCompilerExecutionError"))):
        cubin(double, ONE.with_symbol(symbol))


# ------------------------------------------------------------------ where it is written


@pytest.mark.parametrize("kind", [pytest.param(str, marks=clause("EXP-3.str")),
                                  pytest.param(os.fsencode, marks=clause("EXP-3.bytes")),
                                  pytest.param(lambda p: p, marks=clause("EXP-3.pathlike"))],
                         ids=["str", "bytes", "Path"])
@clause("EXP-3.replace")
def test_paths(kind, tmp_path):
    path = tmp_path / "a kernel.bin"
    path.write_bytes(b"what was there before" * 1000)
    export(double, [ONE], kind(path))
    assert path.read_bytes() == bytecode(double, ONE)


@clause("EXP-3.file")
def test_files(tmp_path):
    path = tmp_path / "kernels.bin"
    with open(path, "wb") as file:
        file.write(b"head")
        export(double, [ONE], file)
        assert not file.closed
        file.write(b"tail")
    assert path.read_bytes() == b"head" + bytecode(double, ONE) + b"tail"


@clause("EXP-3.write")
def test_objects_that_can_be_written_to():
    class Writer:
        def __init__(self):
            self.written = []

        def write(self, data):
            self.written.append(bytes(data))

    writer = Writer()
    export(double, [ONE], writer)
    assert b"".join(writer.written) == bytecode(double, ONE)


@clause("EXP-3.other")
@pytest.mark.parametrize("output", [None, object(), 2.5, ["x"], io.StringIO()],
                         ids=["None", "object", "float", "list", "text"])
def test_what_cannot_be_written_to(output):
    with pytest.raises((AttributeError, TypeError)):
        export(double, [ONE], output)


@clause("EXP-3.other")
def test_a_number_is_no_file():
    """Not even the number of an open file."""
    reader, writer = os.pipe()
    try:
        with pytest.raises((AttributeError, TypeError)):
            export(double, [ONE], writer)
    finally:
        for end in (reader, writer):
            try:
                os.close(end)
            except OSError:  # the exporter has closed it
                pass


@clause("EXP-3.folder")
def test_a_path_in_no_folder(tmp_path):
    for path in (tmp_path / "none" / "k.bin", tmp_path):
        with pytest.raises(OSError):
            export(double, [ONE], path)


@clause("EXP-3.failure", "EXP-3.failure.file", "EXP-3.failure.keep")
@pytest.mark.parametrize("output_format", ["tileir_bytecode", pytest.param("cubin", marks=assembles)])
def test_nothing_is_written_for_a_wrong_kernel(output_format, tmp_path):
    new, old, file = tmp_path / "new", tmp_path / "old", io.BytesIO()
    old.write_bytes(b"as it was")
    for output in (new, old, file):
        with raises("TileTypeError"):
            export(wrong, [ONE], output, output_format=output_format)
    assert not new.exists() and old.read_bytes() == b"as it was" and not file.getvalue()


@clause("EXP-3.failure")
def test_nothing_is_written_if_one_of_several_is_wrong(tmp_path):
    path = tmp_path / "new"
    with raises("TileTypeError"):
        export(double, [ONE, signature(1, symbol="two")], path)
    assert not path.exists()


@assembles
@clause("EXP-3.failure.assembler", "ERR-10", "ENV-3.limit", "EXC-2.timeout")
def test_nothing_is_written_if_the_assembler_fails(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_bytes(b"as it was")
    for path in (new, old):
        with raises("TileCompilerTimeoutError") as e, ct.compiler_timeout(0.001):
            export(double, [fresh()], path, output_format="cubin")
        assert getattr(e.value.loc, "filename", None) is None
    assert not new.exists() and old.read_bytes() == b"as it was"


@assembles
@clause("ENV-3.nested")
def test_limits_in_limits():
    with ct.compiler_timeout(300):
        with ct.compiler_timeout(0.001), raises("TileCompilerTimeoutError"):
            cubin(double, fresh())
        assert cubin(double, fresh()).startswith(ELF)
    with ct.compiler_timeout(0.001):
        with ct.compiler_timeout(300):
            assert cubin(double, fresh()).startswith(ELF)
        with raises("TileCompilerTimeoutError"):
            cubin(double, fresh())


@clause("EXC-2.class", "ERR-10")
def test_classes_of_errors():
    execution, timeout = impl.error("TileCompilerExecutionError"), impl.error("TileCompilerTimeoutError")
    for e in (execution, timeout):
        assert issubclass(e, impl.error("TileInternalError")) and e is not impl.error("TileInternalError")
    assert not issubclass(execution, timeout) and not issubclass(timeout, execution)


@clause("EXC-2.loc")
def test_the_place_of_an_error():
    with raises("TileTypeError") as e:
        bytecode(wrong, ONE)
    assert e.value.loc.filename == __file__
    assert "ct.exp(None)" in linecache.getline(__file__, e.value.loc.line)


# ------------------------------------------------------------------ format, target, version


@clause("EXP-4.bytecode")
def test_bytecode():
    assert bytecode(double, ONE).startswith(MAGIC)


@clause("EXP-4.other")
@pytest.mark.parametrize("output_format", ["ptx", "", "CUBIN", None, 1])
def test_other_formats(output_format):
    with pytest.raises(ValueError):
        export(double, [ONE], io.BytesIO(), output_format=output_format)


@clause("EXP-4.required")
def test_a_format_is_needed():
    with pytest.raises(TypeError):
        c.export_kernel(double, [ONE], io.BytesIO(), gpu_code="sm_90")


@assembles
@clause("EXP-5.target")
def test_the_target_of_a_cubin():
    """Code for GPUs of two generations differs."""
    assert cubin(double, ONE, target="sm_80") != cubin(double, ONE, target="sm_120")


@clause("EXP-5.none.cubin")
def test_a_cubin_needs_a_target():
    with pytest.raises(ValueError):
        export(double, [ONE], io.BytesIO(), output_format="cubin", gpu_code=None)
    with pytest.raises(ValueError):
        c.export_kernel(double, [ONE], io.BytesIO(), output_format="cubin")


@clause("EXP-5.none.bytecode", "VER-3.target", "EXP-5.none.older")
@pytest.mark.parametrize("version", VERSIONS)
def test_bytecode_without_target(version):
    if version >= "13.3":
        assert version_of(bytecode(double, ONE, target=None, version=version)) == version
    else:
        with raises("TileUnsupportedFeatureError"):
            bytecode(double, ONE, target=None, version=version)


@clause("EXP-5.none.dtype")
@pytest.mark.parametrize("dtype", [ct.float8_e4m3fn, ct.float8_e8m0fnu, ct.float8_e5m3fnu, ct.float4_e2m1fn], ids=str)
def test_every_dtype_without_target(dtype):
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 4))

    both = signature(*[forward(dtype, stride_constant=1)] * 2, symbol="k")
    with raises("TileUnsupportedFeatureError"):
        bytecode(k, both, target="sm_80")
    assert bytecode(k, both, target=None)


@clause("EXP-6.each")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_versions(version, target):
    assert version_of(bytecode(double, ONE, version=version, target=target)) == version


@assembles
@clause("EXP-6.cubin")
@pytest.mark.parametrize("version", VERSIONS)
def test_cubins_by_way_of_each_version(version):
    assert symbols(cubin(double, ONE, version=version)) == {"one"}


@assembles
@clause("EXP-6.none")
def test_the_newest_version():
    """The assembler reads bytecode written without a version, and no newer version is listed."""
    newest = version_of(bytecode(double, ONE, version=None))
    assert newest in VERSIONS
    assert cubin(double, ONE, version=newest)
    for newer in VERSIONS[VERSIONS.index(newest) + 1:]:
        with raises("TileCompilerExecutionError"):
            cubin(double, ONE, version=newer)


@clause("EXP-6.other")
@pytest.mark.parametrize("version", ["13.5", "13.0", "13", "", "v13.1", 13.1, (13, 1)], ids=str)
def test_other_versions(version):
    with pytest.raises(ValueError):
        bytecode(double, ONE, version=version)


# ------------------------------------------------------------------ parameters and annotations


@ct.kernel
def annotated(n: ct.ScalarInt64, k: ct.Constant[int], t: tuple[ct.Constant[int], int], a: ct.IndexedWithInt64[Any],
              x: Annotated[Any, ct.ListAnnotation(element=ct.ArrayAnnotation())], free):
    pass


GOOD = {"n": scalar(ct.int64), "k": 1, "t": (2, scalar(ct.int32)), "a": forward(), "x": arrays(forward()),
        "free": scalar(ct.float32)}


@pytest.mark.parametrize("name, constraint", [
    pytest.param("n", scalar(ct.int32), marks=clause("EXP-8.int64")),
    pytest.param("n", scalar(ct.float64), marks=clause("EXP-8.int64")),
    pytest.param("n", forward(), marks=clause("EXP-8.int64")),
    pytest.param("k", scalar(ct.int32), marks=clause("EXP-8.constant")),
    pytest.param("k", forward(), marks=clause("EXP-8.constant")),
    pytest.param("t", 1, marks=clause("EXP-8.tuple")),
    pytest.param("t", scalar(ct.int32), marks=clause("EXP-8.tuple")),
    pytest.param("t", forward(), marks=clause("EXP-8.tuple")),
    pytest.param("t", (scalar(ct.int32), scalar(ct.int32)), marks=clause("EXP-8.tuple.items")),
    pytest.param("t", (2,), marks=clause("EXP-8.length")),
    pytest.param("t", (), marks=clause("EXP-8.length")),
    pytest.param("t", (2, scalar(ct.int32), 3), marks=clause("EXP-8.length")),
    pytest.param("a", scalar(ct.int32), marks=clause("EXP-8.array")),
    pytest.param("a", arrays(forward()), marks=clause("EXP-8.array")),
    pytest.param("x", forward(), marks=clause("EXP-8.list")),
    pytest.param("x", scalar(ct.int32), marks=clause("EXP-8.list"))],
    ids=lambda v: v if isinstance(v, str) else "")
def test_constraints_that_do_not_fit_annotations(name, constraint):
    assert bytecode(annotated, signature(*GOOD.values()))
    with pytest.raises(TypeError):
        bytecode(annotated, signature(*(GOOD | {name: constraint}).values()))


@clause("EXP-8.count")
@pytest.mark.parametrize("given", [(), (forward(), forward()), (forward(), 1)], ids=["none", "two", "constant"])
def test_numbers_of_parameters(given):
    with pytest.raises(ValueError):
        bytecode(double, signature(*given))


@clause("EXP-8.default")
def test_defaults_do_not_count():
    @ct.kernel
    def k(x, n=1):
        pass

    with pytest.raises(ValueError):
        bytecode(k, signature(forward()))


@clause("EXP-8.constant.any")
@pytest.mark.parametrize("value", [4, 2.5, True, (1, (2, 3))], ids=str)
def test_constants_for_parameters_without_annotation(value):
    @ct.kernel
    def k(x):
        first = x
        ct.static_assert(first == value)

    assert bytecode(k, signature(value, symbol="k"))


@ct.kernel
def looks_at_sizes(x: ct.IndexedWithInt64[Any]):
    ct.static_assert(x.shape[0].dtype == ct.int32)


@clause("EXP-8.index")
def test_the_index_dtype_of_the_constraint_counts():
    assert bytecode(looks_at_sizes, signature(forward(index_dtype=ct.int32)))
    with raises("TileStaticAssertionError"):
        bytecode(looks_at_sizes, signature(forward(index_dtype=ct.int64)))


@ct.kernel
def rows(x: Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(1,))]):
    ct.store(x, (0, 0), ct.zeros((1, x.shape[1]), x.dtype))


@ct.kernel
def steps(x: Annotated[Any, ct.ArrayAnnotation(static_stride_dims=(-1,))]):
    ct.store(x, (0, 0), ct.zeros((1, x.strides[1]), x.dtype))


@ct.kernel
def free(x):
    ct.store(x, (0, 0), ct.zeros((1, x.shape[1]), x.dtype))


@pytest.mark.parametrize("kernel, known", [
    pytest.param(rows, {"shape_constant": (None, 8)}, marks=clause("EXP-8.static_shape")),
    pytest.param(steps, {"stride_constant": (None, 8)}, marks=clause("EXP-8.static_stride"))],
    ids=["shape", "stride"])
@clause("EXP-8.static.value")
def test_static_dims(kernel, known):
    """The value is a constant of the language: a shape can use it."""
    assert bytecode(kernel, signature(forward(ndim=2, **known)))
    for bad in ({}, {name: values[::-1] for name, values in known.items()}):
        with pytest.raises(TypeError):
            bytecode(kernel, signature(forward(ndim=2, **bad)))


@clause("EXP-8.known")
def test_what_is_known_of_other_dims():
    with raises("TileTypeError"):
        bytecode(free, signature(forward(ndim=2, shape_constant=(None, 8))))


@clause("EXP-9")
def test_threads():
    wanted, found = bytecode(double, ONE), []
    threads = [threading.Thread(target=lambda: found.extend(bytecode(double, ONE) for _ in range(5))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [wanted] * 20


@assembles
@clause("CC-8.versions")
def test_both_conventions_take_the_same():
    @ct.kernel
    def k(x, n, w, many):
        pass

    given = forward(ct.float16, 2, index_dtype=ct.int64), scalar(ct.int8), 3, arrays(forward())
    code = cubin(k, signature(*given, convention=V1, symbol="old"), signature(*given, convention=V2, symbol="new"))
    assert parameters(code, "old") == parameters(code, "new")
