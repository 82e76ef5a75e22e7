"""export_kernel: what it takes, refuses and writes [EXP-1…8]. None of it needs a GPU."""

import enum
import importlib.util
import io
import warnings
from typing import Annotated

import numpy as np
import pytest

import cutile as ct
from cutile.compilation import ConstantConstraint, KernelSignature, ListConstraint, ScalarConstraint, export_kernel
from cutile.compilation.export import arg_types
from cutile.compilation.prefill import prefill
from cutile.gpu import find_tileiras
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.tileiras import disassemble
from tests.compilation.test_mangling import V1, V2, array

if importlib.util.find_spec("nvidia") is None:
    pytest.skip("the Tile IR assembler is not installed (pip install 'cutile[gpu]')", allow_module_level=True)

A = array(ct.float32, 1, stride_lower_bound_incl=0, stride_constant=1, base_addr_divisible_by=16)


@ct.kernel(occupancy=2)
def add(a, b, c, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(c, i, ct.load(a, i, T) + ct.load(b, i, T))


SIGNATURE = KernelSignature([A, A, A, 1024], V1)


def export(kernel, signatures, **options):
    out = io.BytesIO()
    export_kernel(kernel, signatures, out, **{"gpu_code": "sm_90", "output_format": "tileir_bytecode", **options})
    return out.getvalue()


def test_a_function_by_jit():
    """Its calls stand for arguments of the kernel, with its hints; named sizes are compared, as in a call."""
    @ct.kernel
    def plus(a: ct.Array["N"], b: ct.Array["N"], c, T: ct.Constant[int]):  # noqa: F821
        i = ct.bid(0)
        ct.store(c, i, ct.load(a, i, T) + ct.load(b, i, T))

    function = ct.jit(plus, grid="cdiv(N, T)", out=ct.Out("N"), defaults={"T": 512}, hints={"occupancy": 2})
    whole, other = ct.ArraySpec("4096", ct.float32), ct.ArraySpec("4000", ct.float32)
    wanted = export(plus.replace_hints(occupancy=2), [(whole, whole, whole, 512), (whole, whole, whole, 256)])
    assert export(function, [(whole, whole), (whole, whole, 256)]) == wanted
    with pytest.raises(ValueError, match="the size of `b` along axis 0 is 4000, but N is 4096"):
        export(function, [(whole, other)])
    with pytest.raises(TypeError, match="signatures is a list"):
        export(function, (whole, whole))


def test_bytecode_and_cubin():
    symbol = SIGNATURE.with_mangled_symbol("add").symbol.encode()
    code = export(add, [SIGNATURE])
    assert code.startswith(b"\x7fTileIR") and symbol in code
    cubin = export(add, [SIGNATURE], output_format="cubin")
    assert cubin.startswith(b"\x7fELF") and symbol in cubin


def test_symbols_are_what_the_assembler_takes():
    """Of a name in Python, other characters become underscores; a symbol that is asked for is refused with them."""
    def größe(a, b, c, T: ct.Constant[int]):
        ct.store(c, 0, ct.load(a, 0, T))

    code = export(ct.kernel(größe), [SIGNATURE], output_format="cubin")
    assert SIGNATURE.with_mangled_symbol("gr__e").symbol.encode() in code
    for symbol in ("größe", "a b", "1a", ""):
        with pytest.raises(ValueError, match="cannot be the symbol of a kernel"):
            export(add, [SIGNATURE.with_symbol(symbol)])


def test_constants_of_subclasses():
    """A member of an IntEnum and NumPy's float64 are the numbers that they are."""
    class Level(enum.IntEnum):
        LOW = 1

    same, plain = KernelSignature([Level.LOW, np.float64(1.5), True], V1), KernelSignature([1, 1.5, True], V1)
    assert same == plain and [type(p.value) for p in same.parameters] == [int, float, bool]
    assert same.with_mangled_symbol("f").symbol == plain.with_mangled_symbol("f").symbol


def test_one_entry_for_each_signature(tmp_path):
    path = tmp_path / "add.bin"
    export_kernel(add, [SIGNATURE.with_symbol("small"), KernelSignature([A, A, A, 4096], V1, "large")], path,
                  gpu_code="sm_80", output_format="tileir_bytecode", bytecode_version="13.1")
    code = path.read_bytes()
    assert b"small" in code and b"large" in code


@pytest.mark.parametrize("none", [[], (), iter(())], ids=["list", "tuple", "iterator"])
def test_something_must_be_exported(none):
    with pytest.raises(ValueError, match="signatures is empty"):
        export(add, none)


@pytest.mark.parametrize("signatures", [SIGNATURE, None, [SIGNATURE, A], ["add"]], ids=["one", "None", "array", "text"])
def test_what_is_no_list_of_signatures(signatures):
    with pytest.raises(TypeError, match="signatures .*KernelSignature"):
        export(add, signatures)


def test_symbols_differ():
    other = KernelSignature([A, A, A, 64], V1)
    for two in ([SIGNATURE.with_symbol("same"), other.with_symbol("same")], [SIGNATURE, SIGNATURE],
                [SIGNATURE, other.with_symbol(SIGNATURE.with_mangled_symbol("add").symbol)]):
        for form in ("tileir_bytecode", "cubin"):
            with pytest.raises(ValueError, match="two signatures have the symbol '(same|add_K)"):
                export(add, two, output_format=form)


def test_without_a_target():
    assert export(add, [SIGNATURE], gpu_code=None)
    with pytest.raises(ct.TileUnsupportedFeatureError):
        export(add, [SIGNATURE], gpu_code=None, bytecode_version="13.2")


@pytest.mark.parametrize("code", ["90", "SM_90", "Sm_90", "sm90", "sm_90 ", "sm_9٠", "compute_90", "gfx942", "hopper",
                                  "", "sm_75", "sm_101", "sm_" + "9" * 5000, 90, 9.0, b"sm_90", ("sm_90",), True])
def test_a_wrong_target_lists_those_that_there_are(code):
    for form in ("tileir_bytecode", "cubin"):
        with pytest.raises((ValueError, TypeError, ct.TileUnsupportedFeatureError), match=r"(?s)sm_80.* and sm_121"):
            export(add, [SIGNATURE], gpu_code=code, output_format=form)
    with pytest.raises((ValueError, TypeError, ct.TileUnsupportedFeatureError), match=r"(?s)sm_80.* and sm_121"):
        prefill(add, [], [code])


@pytest.mark.parametrize("targets", ["sm_90", "SM_90", None, 90])
def test_targets_of_prefill_are_a_list(targets):
    with pytest.raises(TypeError, match=r'targets is a list such as \["sm_90"\].*sm_80.* and sm_121'):
        prefill(add, [], targets)


@pytest.mark.parametrize("options", [{"output_format": "ptx"}, {"output_format": "cubin", "gpu_code": None},
                                     {"gpu_code": "hopper"}, {"bytecode_version": "13.9"}])
def test_options_that_make_no_sense(options):
    with pytest.raises(ValueError):
        export(add, [SIGNATURE], **options)


@pytest.mark.parametrize("output", [None, 1, 2.5, object()], ids=["None", "descriptor", "float", "object"])
def test_what_nothing_can_be_written_to(output):
    """It is refused before anything is compiled; the number of an open file is none."""
    with pytest.raises(TypeError, match="output_file is a path, or a binary file"):
        export_kernel(add, [SIGNATURE], output, gpu_code="sm_90", output_format="tileir_bytecode")


class NoMethod:
    write = 5


@pytest.mark.parametrize("output", [NoMethod(), io.BytesIO], ids=["attribute", "class"])
def test_what_only_looks_like_a_file(output):
    with pytest.raises(TypeError, match="a binary file with a method write"):
        export_kernel(add, [SIGNATURE], output, gpu_code="sm_90", output_format="cubin")


def test_text_files_take_no_bytes(tmp_path):
    """They are refused before anything is compiled: here the kernel would be."""
    with open(tmp_path / "x", "w") as text:
        for file in (text, io.StringIO()):
            with pytest.raises(TypeError, match='text file.*mode "wb", or use io.BytesIO'):
                export_kernel(add, [KernelSignature([A, A, A, 3], V1)], file, gpu_code="sm_90", output_format="cubin")


@pytest.mark.parametrize("size", [1 << 25, 1 << 31, 1 << 40, 1 << 63])
@pytest.mark.parametrize("output_format", ["tileir_bytecode", "cubin"])
def test_tiles_larger_than_gpus_have(size, output_format):
    with pytest.raises(ct.TileUnsupportedFeatureError, match=f"{size} elements, and on GPUs .* at most 16777216") as e:
        export(add, [KernelSignature([A, A, A, size], V1)], output_format=output_format)
    assert e.value.loc.filename == __file__
    export(add, [KernelSignature([A, A, A, 1 << 24], V1)])


def test_a_plain_function_is_refused():
    with pytest.raises(TypeError, match="plain function, not a kernel: decorate it with @ct.kernel"):
        export(lambda: None, [])


def test_a_tuple_that_stands_in_no_list():
    spec = ct.ArraySpec("N", ct.float32)
    with pytest.raises(TypeError, match=r"signatures is a list, with a tuple .*: write \[\(ArraySpec.*\)\]"):
        export(add, (spec, spec, spec, 1024))
    assert export(add, [(spec, spec, spec, 1024)]) == export(add, ((spec, spec, spec, 1024),))


def test_a_constant_needs_its_value():
    spec = ct.ArraySpec("N", ct.float32)
    with pytest.raises(TypeError, match="parameter `T` is a constant, .* not <DType 'int32'>; give its value"):
        export(add, [(spec, spec, spec, ct.int32)])


def test_bytecode_without_an_assembler(monkeypatch):
    """It is that of the oldest version that will do."""
    spec = ct.ArraySpec("N", ct.float32)
    want = {code: export(add, [SIGNATURE], gpu_code=code, bytecode_version=v)
            for code, v in (("sm_90", "13.1"), (None, "13.3"))}

    def nowhere():
        raise FileNotFoundError("tileiras was not found")

    for module in (find_tileiras, tileiras):
        monkeypatch.setattr(module, "find_tool", nowhere)
    for code in want:
        assert export(add, [SIGNATURE], gpu_code=code) == want[code]
    with pytest.raises(FileNotFoundError, match="tileiras"):
        export(add, [(spec, spec, spec, 1024)], output_format="cubin")


def test_nothing_is_written_if_compilation_fails(tmp_path):
    @ct.kernel
    def wrong(a):
        ct.store(a, 0, ct.zeros((3,), ct.float32))

    with pytest.raises(ct.TileTypeError):
        export_kernel(wrong, [KernelSignature([A], V1)], tmp_path / "x", gpu_code="sm_90", output_format="cubin")
    assert not (tmp_path / "x").exists()


@ct.kernel
def typed(n: ct.ScalarInt64, c: ct.Constant[int], t: tuple[int, int], xs: ct.IndexedWithInt64):
    pass


GOOD = [ScalarConstraint(ct.int64), 1, (ScalarConstraint(ct.int32), 2), A]


@pytest.mark.parametrize(("at", "bad", "error"), [
    (0, ScalarConstraint(ct.int32), TypeError), (1, ScalarConstraint(ct.int32), TypeError), (2, 3, TypeError),
    (2, (1,), TypeError), (3, ScalarConstraint(ct.float32), TypeError),
    (3, ListConstraint(A, alias_groups=(), elements_may_alias=False), TypeError)])
def test_constraints_that_do_not_fit_the_annotations(at, bad, error):
    assert len(arg_types(typed, KernelSignature(GOOD, V2))) == 4
    with pytest.raises(error, match=list(typed.parameters)[at]):
        arg_types(typed, KernelSignature([*GOOD[:at], bad, *GOOD[at + 1:]], V2))


def test_counts_must_agree():
    with pytest.raises(ValueError, match="4 parameter"):
        arg_types(typed, KernelSignature(GOOD[:3], V2))


Small = Annotated[int, ct.ScalarAnnotation()]


@ct.kernel
def numbers(plain: Small, wide: ct.ScalarInt64, pair: tuple[Small, int], deep: tuple[tuple[ct.ScalarInt64, ...], int]):
    pass


FITTING = [2**31 - 1, -2**63, (-2**31, 2**40), ((2**63 - 1, -2**63), 0)]


@pytest.mark.parametrize(("at", "bad", "error", "name"), [
    (0, 2**31, OverflowError, "plain"), (0, -2**31 - 1, OverflowError, "plain"), (1, 2**63, OverflowError, "wide"),
    (2, (2**31, 0), OverflowError, r"pair\[0\]"), (3, ((0, 2**63), 0), OverflowError, r"deep\[0\]\[1\]"),
    (0, 1.0, TypeError, "plain"), (1, True, TypeError, "wide"), (2, (False, 0), TypeError, r"pair\[0\]"),
    (3, ((0.5,), 0), TypeError, r"deep\[0\]\[0\]")])
def test_constants_that_launches_would_refuse(at, bad, error, name):
    """A constant for a parameter that is annotated as an integer is one of its dtype."""
    assert len(arg_types(numbers, KernelSignature(FITTING, V2))) == 4
    with pytest.raises(error, match=f"parameter `{name}` is annotated as int"):
        arg_types(numbers, KernelSignature([*FITTING[:at], bad, *FITTING[at + 1:]], V2))


def test_a_constant_is_no_array():
    with pytest.raises(TypeError, match="parameter `xs` is annotated as an array or list"):
        arg_types(typed, KernelSignature([*GOOD[:3], 5], V2))


def test_a_constant_may_be_given_for_any_parameter():
    assert arg_types(add, KernelSignature([A, A, 1.5, ConstantConstraint(4)], V1))[2].value == 1.5


@ct.kernel
def rows(a: Annotated[object, ct.ArrayAnnotation(static_shape_dims=(0,))]):
    pass


@ct.kernel
def twice_a_dim(a: Annotated[object, ct.ArrayAnnotation(static_shape_dims=(0, -1))]):
    pass


def test_static_dims_are_named_once():
    arg_types(twice_a_dim, KernelSignature([array(ct.float32, 2, shape_constant=(8, 4))], V2))
    with pytest.raises(TypeError, match="twice"):
        arg_types(twice_a_dim, KernelSignature([array(ct.float32, 1, shape_constant=(8,))], V2))


def test_static_dims_need_constants():
    with pytest.raises(TypeError, match="shape_constant"):
        arg_types(rows, KernelSignature([A], V2))
    b, = arg_types(rows, KernelSignature([array(ct.float32, 1, shape_constant=(8,))], V2))
    assert b.static_shape == (8,)


# ------------------------------------------------------------------ hints


@ct.kernel(num_ctas=2, occupancy=3, num_worker_warps=8)
def hinted(a):
    ct.store(a, 0, ct.load(a, 0, (4,), latency=3) + 1, allow_tma=False)


ON_SM_90, ELSEWHERE = ["num_worker_warps=8"], ["num_ctas=2", "occupancy=3", "num_worker_warps=8", "latency=3",
                                               "allow_tma=False"]


@pytest.mark.parametrize(("version", "target", "lost"), [
    ("13.1", "sm_90", ON_SM_90), ("13.2", "sm_90", ON_SM_90), ("13.1", "sm_107", ELSEWHERE),
    ("13.1", "sm_86", ELSEWHERE), ("13.2", "sm_86", ON_SM_90), ("13.3", "sm_90", []), ("13.4", "sm_86", []),
    ("13.3", None, [])])
def test_hints_that_a_version_cannot_carry(version, target, lost):
    """Each is named in a warning at its line. [VER-*]"""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        export(hinted, [KernelSignature([A], V1)], gpu_code=target, bytecode_version=version)
    assert [str(w.message).split()[2] for w in seen] == lost
    assert all(w.category is UserWarning and w.filename == __file__ for w in seen)
    first = hinted.function.__code__.co_firstlineno
    assert {w.lineno - first for w in seen if "latency" in str(w.message)} <= {2}


def test_what_the_compiler_chose_itself_is_lost_in_silence():
    @ct.kernel
    def plain(a):
        ct.store(a, 0, ct.load(a, 0, (4,)) + 1)

    assert export(plain, [KernelSignature([A], V1)], gpu_code="sm_107", bytecode_version="13.1")


# ------------------------------------------------------------------ numbers at the ends of their range


@ct.kernel
def far(a):
    ct.store(a, (ct.bid(0), 0), ct.load(a, (ct.bid(0), 0), (16384, 1)) + 1)


@pytest.mark.parametrize("stride", [2**31 - 1, 2**31, 2**49, 2**60, 2**63 - 1, -2**31, -2**62])
def test_constant_strides_of_any_size(stride):
    """The assembler multiplies those that it is told by sizes of tiles."""
    a = array(ct.int8, 2, index_dtype=ct.int64, stride_constant=(stride, 1))
    assert export(far, [KernelSignature([a], V1)], output_format="cubin").startswith(b"\x7fELF")


@pytest.mark.parametrize(("index", "bounded"), [(ct.int32, True), (ct.int64, True), (ct.uint32, False)], ids=str)
def test_bounds_are_not_promised_of_unsigned_numbers(index, bounded):
    """To the assembler all are signed: above 2**31 they would be negative."""
    a = array(ct.float32, 2, index_dtype=index, stride_lower_bound_incl=(2**31 - 1, 0))
    text = disassemble(export(far, [KernelSignature([a], V1)], gpu_code="sm_90"))
    assert ("bounded" in text) == bounded
    if index is ct.uint32:
        a = array(ct.float32, 2, index_dtype=index, stride_lower_bound_incl=2**32 - 1)
        assert export(far, [KernelSignature([a], V1)], output_format="cubin")
