"""Signatures and constraints: their attributes, and what they accept and refuse."""

import math
from typing import Annotated, Any

import numpy as np
import pytest

from conformance.harness.api import clause, ct, impl, needs
from conformance.harness.export import V1, V2, array, arrays, bytecode, c, cubin, forward, scalar, signature

pytestmark = needs("export")

EXAMPLES = {
    "scalar": lambda: scalar(ct.int32), "array": lambda: array(), "list": lambda: arrays(array()),
    "tuple": lambda: c.TupleConstraint((1, scalar(ct.int8))), "constant": lambda: c.ConstantConstraint(2.5),
}


# ------------------------------------------------------------------ signatures


@clause("SIG-1.fields")
def test_parts_of_a_signature():
    a = array()
    s = c.KernelSignature([a], V2, "name")
    assert (s.parameters, s.calling_convention, s.symbol) == ((a,), V2, "name")
    assert c.KernelSignature((a,), V2).symbol is None
    assert c.KernelSignature(parameters=[a], calling_convention=V1, symbol="x") == c.KernelSignature([a], V1, "x")


@clause("SIG-1.frozen")
@pytest.mark.parametrize("name", ["parameters", "calling_convention", "symbol"])
def test_signatures_are_frozen(name):
    s = signature(1, symbol="x")
    with pytest.raises(AttributeError):
        setattr(s, name, getattr(s, name))


@clause("SIG-1.constant", "SIG-1.tuple")
def test_plain_values_become_constraints():
    s = signature(1, 2.5, True, (3, (-0.0,), ()))
    want = [c.ConstantConstraint(1), c.ConstantConstraint(2.5), c.ConstantConstraint(True),
            c.TupleConstraint([c.ConstantConstraint(3), c.TupleConstraint([c.ConstantConstraint(-0.0)]),
                               c.TupleConstraint([])])]
    assert s.parameters == tuple(want) and list(map(type, s.parameters)) == list(map(type, want))


@clause("SIG-1.constant")
@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_constraints_stay_as_they_are(kind):
    p = EXAMPLES[kind]()
    assert signature(p).parameters == (p,)


@clause("SIG-1.sequence")
@pytest.mark.parametrize("given", [[1, 2], (1, 2), range(1, 3)], ids=str)
def test_sequences_of_parameters(given):
    s = c.KernelSignature(given, V1)
    assert type(s.parameters) is tuple and s == c.KernelSignature([1, 2], V1)


@clause("SIG-1.other")
@pytest.mark.parametrize("bad", [None, "x", b"x", [1], {1}, {}, 1j, ct.float32, object(), np.int32(1)],
                         ids=lambda v: type(v).__name__)
def test_other_parameters(bad):
    for parameters in ([bad], [1, bad], [(bad,)], [(1, (2, bad))]):
        with pytest.raises(TypeError):
            c.KernelSignature(parameters, V2)


@clause("SIG-1.convention")
@pytest.mark.parametrize("bad", ["t1", "cutile_python_v1", 1, None])
def test_what_is_no_convention(bad):
    with pytest.raises(TypeError):
        c.KernelSignature([], bad)


@clause("SIG-1.symbol")
@pytest.mark.parametrize("bad", [1, b"x", ("x",), True])
def test_what_is_no_symbol(bad):
    with pytest.raises(TypeError):
        c.KernelSignature([], V1, bad)
    with pytest.raises(TypeError):
        c.KernelSignature([], V1).with_symbol(bad)


@clause("SIG-1.equal")
def test_equal_signatures():
    assert signature(array(), 1, symbol="x") == signature(array(), 1, symbol="x")
    for other in (signature(array(), 1), signature(array(), 1, symbol="y"), signature(array(), 2, symbol="x"),
                  signature(array(), True, symbol="x"), signature(array(), 1, convention=V1, symbol="x"),
                  signature(array(ct.int32), 1, symbol="x"), signature(array(), symbol="x")):
        assert other != signature(array(), 1, symbol="x")


@clause("SIG-2.symbol")
def test_a_copy_with_another_symbol():
    s = signature(array(), symbol="x")
    assert s.with_symbol("y") == signature(array(), symbol="y") and s.with_symbol(None) == signature(array())
    assert s.symbol == "x"


@clause("SIG-2.mangled")
def test_a_copy_with_the_mangled_symbol():
    s = signature(array(), 3, symbol="x", convention=V1)
    assert s.with_mangled_symbol("f") == s.with_symbol("f_Kt1_A1f32_I3")
    assert s.with_mangled_symbol("f").symbol == c.mangle_kernel_name("f", s) and s.symbol == "x"


@pytest.mark.parametrize("kind, name", [
    pytest.param("scalar", "dtype", marks=clause("SIG-4.frozen")),
    pytest.param("list", "element", marks=clause("SIG-10.frozen")),
    pytest.param("list", "alias_groups", marks=clause("SIG-10.frozen")),
    pytest.param("list", "elements_may_alias", marks=clause("SIG-10.frozen")),
    pytest.param("tuple", "items", marks=clause("SIG-11.frozen"))])
def test_constraints_are_frozen(kind, name):
    p = EXAMPLES[kind]()
    with pytest.raises(AttributeError):
        setattr(p, name, getattr(p, name))


# ------------------------------------------------------------------ of arguments


@ct.kernel
def of_all(x, xs, n, f, b, k: ct.Constant[int], pair):
    pass


def derived(kernel, *args, convention=V2, **options):
    moved = impl.moved(tuple(args), {})
    return c.KernelSignature.from_kernel_args(kernel, moved, convention, **options)


def some():
    return (np.zeros((4, 3), np.float32), [np.zeros(5, np.int8), np.zeros(7, np.int8)], 3, 2.5, True, 8,
            (4, np.zeros(2, np.float64)))


@clause("SIG-3.derived", "SIG-3.scalar", "SIG-3.constant")
def test_what_is_derived_of_arguments():
    s = derived(of_all, *some())
    x, xs, n, f, b, k, pair = s.parameters
    assert (x.dtype, x.ndim, x.index_dtype, x.may_alias_internally) == (ct.float32, 2, ct.int32, False)
    assert (xs.element.dtype, xs.element.ndim) == (ct.int8, 1)
    assert [p.dtype for p in (n, f, b)] == [ct.int32, ct.float32, ct.bool_] and k == c.ConstantConstraint(8)
    assert pair.items[0] == scalar(ct.int32) and pair.items[1].dtype == ct.float64
    assert bytecode(of_all, s)


@clause("SIG-3.symbol")
def test_symbols_of_what_is_derived():
    s = derived(of_all, *some())
    assert s.symbol == c.mangle_kernel_name("of_all", s)
    assert derived(of_all, *some(), symbol="mine") == s.with_symbol("mine")


@clause("SIG-3.count")
@pytest.mark.parametrize("args", [(), (1, 2)], ids=str)
def test_other_numbers_of_arguments(args):
    @ct.kernel
    def k(x):
        pass

    with pytest.raises(TypeError):
        derived(k, *args)


@clause("SIG-3.kind")
@pytest.mark.parametrize("bad", [object(), {1: 2}, {3}], ids=lambda v: type(v).__name__)
def test_objects_that_are_no_arguments(bad):
    @ct.kernel
    def k(x):
        pass

    with pytest.raises(TypeError):
        derived(k, bad)


# ------------------------------------------------------------------ scalars and constants


@clause("SIG-4.dtype")
@pytest.mark.parametrize("dtype", [ct.bool_, ct.uint8, ct.int64, ct.float16, ct.bfloat16, ct.float8_e4m3fn], ids=str)
def test_scalars(dtype):
    assert scalar(dtype).dtype == dtype and scalar(dtype) == scalar(dtype) and scalar(dtype) != scalar(ct.float64)


@clause("SIG-4.numeric")
@pytest.mark.parametrize("bad", ["int32", None, int, np.float32, np.dtype("int32"), 32], ids=str)
def test_what_is_no_dtype(bad):
    with pytest.raises(TypeError):
        scalar(bad)


@clause("SIG-4.pointer")
def test_foreign_pointers():
    with pytest.raises(TypeError):
        scalar(ct.foreign_pointer_dtype(ct.int32))


@clause("SIG-12.value")
@pytest.mark.parametrize("value", [True, False, 0, -5, 1 << 70, 2.5, math.inf], ids=str)
def test_constants(value):
    p = c.ConstantConstraint(value)
    assert p.value == value and type(p.value) is type(value)


@clause("SIG-12.kind")
@pytest.mark.parametrize("bad", [None, "x", 1j, (1,), ct.float32, np.int32(1), object()],
                         ids=lambda v: type(v).__name__)
def test_other_constants(bad):
    with pytest.raises(TypeError):
        c.ConstantConstraint(bad)


@clause("SIG-12.type", "SIG-12.zero")
def test_constants_are_told_apart():
    values = [0, False, 0.0, -0.0, 1, True, 1.0, -1, 1 << 70]
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert (c.ConstantConstraint(a) == c.ConstantConstraint(b)) == (i == j), (a, b)


@clause("SIG-12.nan")
def test_a_nan_equals_itself():
    assert c.ConstantConstraint(math.nan) == c.ConstantConstraint(float("nan"))
    assert c.ConstantConstraint(math.nan) != c.ConstantConstraint(math.inf)


@clause("SIG-12.hash")
def test_constants_are_unhashable():
    with pytest.raises(TypeError):
        hash(c.ConstantConstraint(1))


# ------------------------------------------------------------------ arrays

PREDICATES = ("stride_lower_bound_incl", "stride_constant", "shape_constant", "stride_divisible_by",
              "shape_divisible_by")


@clause("SIG-5.fields")
def test_parts_of_an_array():
    a = c.ArrayConstraint(ct.float16, 2, index_dtype=ct.int64, stride_lower_bound_incl=(None, 3), alias_groups=["x"],
                          may_alias_internally=True, stride_constant=(4, None), shape_constant=(None, 6),
                          stride_divisible_by=(1, 2), shape_divisible_by=[8, 1], base_addr_divisible_by=16)
    assert (a.dtype, a.ndim, a.index_dtype, a.base_addr_divisible_by) == (ct.float16, 2, ct.int64, 16)
    assert (a.alias_groups, a.may_alias_internally) == (("x",), True)
    assert tuple(getattr(a, n) for n in PREDICATES) == ((None, 3), (4, None), (None, 6), (1, 2), (8, 1))
    assert a == c.ArrayConstraint(ct.float16, 2, **{n: getattr(a, n) for n in (
        *PREDICATES, "index_dtype", "alias_groups", "may_alias_internally", "base_addr_divisible_by")})


@clause("SIG-5.required")
@pytest.mark.parametrize("name", ["index_dtype", "stride_lower_bound_incl", "alias_groups", "may_alias_internally"])
def test_what_must_be_said_of_arrays(name):
    said = {"index_dtype": ct.int32, "stride_lower_bound_incl": 0, "alias_groups": (), "may_alias_internally": False}
    assert c.ArrayConstraint(ct.int8, 1, **said)
    said.pop(name)
    with pytest.raises(TypeError):
        c.ArrayConstraint(ct.int8, 1, **said)


@clause("SIG-5.dtype")
@pytest.mark.parametrize("bad", ["float32", None, float, np.float32], ids=str)
def test_arrays_of_what_is_no_dtype(bad):
    said = {"index_dtype": ct.int32, "stride_lower_bound_incl": 0, "alias_groups": (), "may_alias_internally": False}
    with pytest.raises(TypeError):
        c.ArrayConstraint(bad, 1, **said)


@clause("SIG-5.rank", "SIG-5.rank.zero")
def test_ranks():
    a = array(ndim=0)
    assert a.ndim == 0 and all(getattr(a, n) == () for n in PREDICATES)
    with pytest.raises(ValueError):
        array(ndim=-1)


@clause("SIG-5.frozen")
@pytest.mark.parametrize("name", ["dtype", "ndim", *PREDICATES])
def test_arrays_are_frozen(name):
    a = array()
    with pytest.raises(AttributeError):
        setattr(a, name, getattr(a, name))


@pytest.mark.parametrize("dtype", [pytest.param(ct.int32, marks=clause("SIG-6.int32")),
                                   pytest.param(ct.int64, marks=clause("SIG-6.int64")),
                                   pytest.param(ct.uint32, marks=clause("SIG-6.uint32"))], ids=str)
def test_index_dtypes(dtype):
    assert array(index_dtype=dtype).index_dtype == dtype


@clause("SIG-6.other")
@pytest.mark.parametrize("bad", [ct.int8, ct.int16, ct.uint16, ct.uint64, ct.float32, ct.bool_, "int32", None], ids=str)
def test_other_index_dtypes(bad):
    with pytest.raises(ValueError):
        array(index_dtype=bad)


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"SIG-7.scalar.{n}")) for n in PREDICATES])
def test_a_number_stands_for_every_dimension(name):
    assert getattr(array(ndim=3, **{name: 4}), name) == (4, 4, 4)
    assert array(ndim=3, **{name: 4}) == array(ndim=3, **{name: [4] * 3}) == array(ndim=3, **{name: (4,) * 3})


@clause("SIG-7.none")
@pytest.mark.parametrize("name", PREDICATES[:3])
def test_nothing_said(name):
    assert getattr(array(ndim=2, **{name: None}), name) == (None, None)
    assert getattr(array(ndim=2, **{name: (None, 4)}), name) == (None, 4)


@clause("SIG-7.length")
@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize("name", PREDICATES)
def test_sequences_of_other_lengths(name, length):
    with pytest.raises(ValueError):
        array(ndim=2, **{name: [1] * length})


@clause("SIG-7.stride")
@pytest.mark.parametrize("stride", [-4, 0, 1, 7])
def test_constant_strides(stride):
    assert array(stride_constant=stride).stride_constant == (stride,)


@clause("SIG-7.shape.zero")
def test_constant_sizes():
    assert array(ndim=2, shape_constant=(0, 5)).shape_constant == (0, 5)


@clause("SIG-7.shape.negative")
@pytest.mark.parametrize("bad", [-1, (None, -1)], ids=str)
def test_negative_sizes(bad):
    with pytest.raises(ValueError):
        array(ndim=2, shape_constant=bad)


@clause("SIG-7.shape.bool")
def test_bools_as_sizes():
    with pytest.raises(TypeError):
        array(ndim=2, shape_constant=(True, None))


@clause("SIG-7.int")
@pytest.mark.parametrize("bad", [1.0, "1", (1,)], ids=str)
@pytest.mark.parametrize("name", PREDICATES)
def test_entries_are_ints(name, bad):
    with pytest.raises(TypeError):
        array(ndim=2, **{name: (1, bad)})


@clause("SIG-7.divisor")
@pytest.mark.parametrize("bad", [0, -1, -16])
@pytest.mark.parametrize("name", PREDICATES[3:])
def test_divisors_below_1(name, bad):
    for given in (bad, (1, bad)):
        with pytest.raises((TypeError, ValueError)):
            array(ndim=2, **{name: given})


@clause("SIG-7.base")
@pytest.mark.parametrize("bad", [0, -1, -16])
def test_divisors_of_addresses_below_1(bad):
    with pytest.raises(ValueError):
        array(base_addr_divisible_by=bad)


@clause("SIG-7.base.int")
@pytest.mark.parametrize("bad", [None, 1.0, (1,), "1"], ids=str)
def test_divisors_of_addresses_are_ints(bad):
    with pytest.raises(TypeError):
        array(base_addr_divisible_by=bad)


@clause("SIG-7.large")
@pytest.mark.parametrize("name", [*PREDICATES, "base_addr_divisible_by"])
def test_what_no_array_has(name):
    with pytest.raises(ValueError):
        array(**{name: 1 << 70})


@ct.kernel
def copy(x, out):
    ct.store(out, (0, 0), ct.load(x, (0, 0), (4, 4)))


@needs("cubins")
@clause("SIG-7.compiles")
@pytest.mark.parametrize("known", [{"stride_constant": (0, 1)}, {"stride_constant": 0}, {"shape_constant": (0, 4)},
                                   pytest.param({"stride_constant": (-4, 1), "stride_lower_bound_incl": None},
                                                marks=needs("negative strides"))], ids=str)
def test_strides_and_sizes_of_zero(known):
    x = forward(ndim=2, may_alias_internally=True, **known)
    assert cubin(copy, signature(x, forward(ndim=2), symbol="k"))


@pytest.mark.parametrize("known", [
    pytest.param({"stride_constant": (-1, 1), "stride_lower_bound_incl": 0}, marks=clause("SIG-8.stride.bound")),
    pytest.param({"stride_constant": (4, 1), "stride_lower_bound_incl": (5, 0)}, marks=clause("SIG-8.stride.bound")),
    pytest.param({"stride_constant": (3, 1), "stride_divisible_by": (2, 1)}, marks=clause("SIG-8.stride.divisor")),
    pytest.param({"stride_constant": (4, 1), "stride_divisible_by": 2}, marks=clause("SIG-8.stride.divisor")),
    pytest.param({"shape_constant": (3, 1), "shape_divisible_by": (2, 1)}, marks=clause("SIG-8.shape.divisor")),
    pytest.param({"shape_constant": (None, 8), "shape_divisible_by": 16}, marks=clause("SIG-8.shape.divisor"))],
    ids=str)
def test_contradictions(known):
    with pytest.raises(ValueError):
        array(ndim=2, **known)


@clause("SIG-8.dropped")
def test_what_a_constant_makes_redundant():
    a = array(ndim=2, stride_constant=(8, None), stride_lower_bound_incl=(3, 3), stride_divisible_by=(4, 4),
              shape_constant=(None, 32), shape_divisible_by=16)
    assert (a.stride_lower_bound_incl, a.stride_divisible_by, a.shape_divisible_by) == ((None, 3), (1, 4), (16, 1))
    assert a == array(ndim=2, stride_constant=(8, None), stride_lower_bound_incl=(None, 3), stride_divisible_by=(1, 4),
                      shape_constant=(None, 32), shape_divisible_by=(16, 1))


# ------------------------------------------------------------------ aliasing


def groups(*names):
    return forward(alias_groups=names)


@clause("SIG-9.string", "SIG-10.groups")
def test_one_string_is_no_sequence_of_groups():
    for made in (lambda: array(alias_groups="x"), lambda: arrays(array(), "x")):
        with pytest.raises(TypeError):
            made()


@clause("SIG-9.kind", "SIG-10.groups")
@pytest.mark.parametrize("bad", [(1,), ("x", None), None], ids=str)
def test_groups_are_strings(bad):
    for made in (lambda: array(alias_groups=bad), lambda: arrays(array(), bad)):
        with pytest.raises(TypeError):
            made()


@clause("SIG-9.twice", "SIG-10.groups")
def test_a_group_twice():
    for made in (lambda: array(alias_groups=("x", "x")), lambda: arrays(array(), ("x", "y", "x"))):
        with pytest.raises(ValueError):
            made()


@pytest.mark.parametrize("parameters", [
    pytest.param(lambda: [groups("x")], marks=clause("SIG-9.single")),
    pytest.param(lambda: [groups("x", "y"), groups("x")], marks=clause("SIG-9.single")),
    pytest.param(lambda: [arrays(array(), ("x",))], marks=clause("SIG-9.single")),
    pytest.param(lambda: [arrays(groups("x"))], marks=clause("SIG-9.single")),
    pytest.param(lambda: [(1, groups("x")), groups("y"), groups("y")], marks=clause("SIG-9.single")),
    pytest.param(lambda: [groups("x"), arrays(array(), ("x",))], marks=clause("SIG-9.table")),
    pytest.param(lambda: [arrays(groups("x"), ("x",))], marks=clause("SIG-9.table")),
    pytest.param(lambda: [(groups("x"), (arrays(array(), ("x",)),))], marks=clause("SIG-9.table"))])
def test_groups_that_join_nothing(parameters):
    with pytest.raises(ValueError):
        signature(*parameters())


@pytest.mark.parametrize("parameters", [
    pytest.param(lambda: [groups("x"), arrays(groups("x"))], marks=clause("SIG-9.element")),
    pytest.param(lambda: [arrays(groups("x"), ("t",)), arrays(groups("x"), ("t",))], marks=clause("SIG-9.element")),
    pytest.param(lambda: [(groups("x"), 1), groups("x")], marks=clause("SIG-9.nested")),
    pytest.param(lambda: [(groups("x"), (groups("x"),))], marks=clause("SIG-9.nested"))])
def test_groups_that_join(parameters):
    @ct.kernel
    def one(a):
        pass

    @ct.kernel
    def two(a, b):
        pass

    given = parameters()
    assert bytecode(one if len(given) == 1 else two, signature(*given, symbol="k"))


# ------------------------------------------------------------------ lists and tuples


@clause("SIG-10.fields")
def test_parts_of_a_list():
    p = c.ListConstraint(array(), alias_groups=["x"], elements_may_alias=True)
    assert (p.element, p.alias_groups, p.elements_may_alias) == (array(), ("x",), True)
    assert p == arrays(array(), ("x",), True) != arrays(array(), ("x",), False)


@clause("SIG-10.element")
@pytest.mark.parametrize("kind", ["scalar", "list", "tuple", "constant"])
def test_lists_of_what_is_no_array(kind):
    with pytest.raises(TypeError):
        arrays(EXAMPLES[kind]())
    for bad in (1, None, ct.float32):
        with pytest.raises(TypeError):
            arrays(bad)


@clause("SIG-10.required")
@pytest.mark.parametrize("said", [{}, {"alias_groups": ()}, {"elements_may_alias": True}], ids=str)
def test_what_must_be_said_of_lists(said):
    with pytest.raises(TypeError):
        c.ListConstraint(array(), **said)


@clause("SIG-11.items", "SIG-11.normal")
def test_tuples():
    p = c.TupleConstraint([1, (2.5, scalar(ct.int8)), array()])
    assert type(p.items) is tuple
    assert p.items == (c.ConstantConstraint(1), c.TupleConstraint((c.ConstantConstraint(2.5), scalar(ct.int8))),
                       array())
    assert p == c.TupleConstraint((1, (2.5, scalar(ct.int8)), array())) != c.TupleConstraint((1, (2.5,), array()))
    for bad in (None, "x", [1]):
        with pytest.raises(TypeError):
            c.TupleConstraint((1, bad))


@clause("SIG-11.convention", "CC-2.tuple")
@pytest.mark.parametrize("bad", [(), (1,), (scalar(ct.int32),)], ids=["empty", "constant", "scalar"])
def test_tuples_need_v2(bad):
    assert signature(bad, convention=V2)
    with pytest.raises(ValueError):
        signature(bad, convention=V1)


@clause("CC-2.v1", "CC-2.v2")
def test_what_conventions_have():
    common = [scalar(ct.int32), array(), arrays(array()), 1, 2.5, True]
    assert signature(*common, convention=V1).parameters == signature(*common, convention=V2).parameters
    assert signature((1,), array(shape_constant=4), convention=V2)


@pytest.mark.parametrize("bad", [
    pytest.param(lambda: array(shape_constant=4), marks=clause("CC-2.size")),
    pytest.param(lambda: array(ndim=2, shape_constant=(None, 0)), marks=clause("CC-2.size")),
    pytest.param(lambda: arrays(array(shape_constant=4)), marks=clause("CC-2.list"))])
def test_constant_sizes_need_v2(bad):
    assert signature(bad(), convention=V2)
    with pytest.raises(ValueError):
        signature(bad(), convention=V1)


# ------------------------------------------------------------------ names of what arguments give


def fresh(*shape, dtype=np.float32):
    """An array at an address divisible by 16, for any allocator."""
    size = math.prod(shape)
    memory = np.zeros(size * np.dtype(dtype).itemsize + 16, np.uint8)
    start = -memory.ctypes.data % 16
    return memory[start:start + size * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


@ct.kernel
def kern(x):
    pass


@ct.kernel
def sized(x: Annotated[Any, ct.ArrayAnnotation(static_shape_dims=(0, 2))]):
    pass


@ct.kernel
def stepped(x: Annotated[Any, ct.ArrayAnnotation(static_stride_dims=(0,))]):
    pass


@pytest.mark.parametrize("kernel, argument, convention, symbol", [
    pytest.param(kern, lambda: fresh(16, 32), V1, "kern_Kt1_A2f32_1v4l0_2t1_3i16_p16",
                 marks=clause("MNG-22.aligned")),
    pytest.param(kern, lambda: fresh(15, 31), V1, "kern_Kt1_A2f32_1l0_2t1_p16", marks=clause("MNG-22.odd")),
    pytest.param(kern, lambda: fresh(1, 32), V2, "kern_Kt2_A2f32_1s1v4l0_2i16t1_p16", marks=clause("MNG-22.one")),
    pytest.param(kern, lambda: fresh(1, 32), V1, "kern_Kt1_A2f32_1v4l0_2i16t1_p16", marks=clause("MNG-22.one.v1")),
    pytest.param(kern, lambda: [fresh(16), fresh(32)], V2, "kern_Kt2_LiA1f32_1i16t1_p16", marks=clause("MNG-23")),
    pytest.param(sized, lambda: fresh(5, 3, 7), V2, "sized_Kt2_A3f32_1s5_3l0_4s7t1_p16", marks=clause("MNG-24.shape")),
    pytest.param(stepped, lambda: fresh(5, 6, 7), V2, "stepped_Kt2_A3f32_1t42_6l0_p16",
                 marks=clause("MNG-24.stride"))],
    ids=lambda v: v if isinstance(v, str) else "")
def test_symbols_of_arguments(kernel, argument, convention, symbol):
    assert derived(kernel, argument(), convention=convention).symbol == symbol
