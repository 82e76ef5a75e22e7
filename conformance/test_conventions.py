"""Calling conventions, and how compiled kernels take their parameters, as read from cubins; nothing runs."""

import functools

import pytest

from conformance.harness.api import clause, ct, needs
from conformance.harness.compiled_files import Parameter, parameters, reads
from conformance.harness.export import V1, V2, arrays, c, cubin, forward, scalar, signature

pytestmark = needs("export")


@pytest.mark.parametrize("convention, parts", [
    pytest.param(V1, ("cutile_python_v1", "t1", 1), marks=clause("CC-1.v1")),
    pytest.param(V2, ("cutile_python_v2", "t2", 2), marks=clause("CC-1.v2"))], ids=["v1", "v2"])
@clause("CC-1.repr")
def test_parts_of_a_convention(convention, parts):
    assert (convention.name, convention.code, convention.version) == parts
    assert repr(convention) == f"CallingConvention({parts[0]!r}, {parts[1]!r})"


@clause("CC-1.code")
def test_conventions_by_code():
    assert c.CallingConvention.from_code("t1") == V1 and c.CallingConvention.from_code("t2") == V2


@clause("CC-1.code.unknown")
@pytest.mark.parametrize("bad", ["t0", "t3", "t", "", "T1", "t11", "t1 ", "cutile_python_v1"])
def test_unknown_codes(bad):
    with pytest.raises(ValueError):
        c.CallingConvention.from_code(bad)


@clause("CC-1.equal")
def test_equal_conventions():
    assert V1 == c.CallingConvention.cutile_python_v1() and V2 == c.CallingConvention.cutile_python_v2()
    assert V1 != V2 and V1 != "t1"


@clause("CC-1.hash")
def test_conventions_are_unhashable():
    with pytest.raises(TypeError):
        hash(V1)


@clause("CC-1.frozen")
@pytest.mark.parametrize("name", ["name", "code", "version"])
def test_conventions_are_frozen(name):
    with pytest.raises(AttributeError):
        setattr(V1, name, getattr(V1, name))


# ------------------------------------------------------------------ what kernels take


def sized(dtype):
    return {ct.int32: 4, ct.uint32: 4, ct.int64: 8}[dtype]


def dtypes(*names):
    return [scalar(getattr(ct, n)) for n in names]


def pointers(*more):
    """A device pointer, and other values."""
    return [8, *more]


# Entry points: parameters, and the sizes of their values. All kernels have three parameters.
LAYOUTS = {
    "bool": (dtypes("bool_", "bool_", "bool_"), [1, 1, 1]),
    "bits8": (dtypes("int8", "uint8", "float8_e4m3fn"), [1, 1, 1]),
    "bits16": (dtypes("int16", "float16", "bfloat16"), [2, 2, 2]),
    "unsigned16": (dtypes("uint16", "uint8", "uint16"), [2, 1, 2]),
    "bits32": (dtypes("int32", "float32", "tfloat32"), [4, 4, 4]),
    "bits64": (dtypes("int64", "float64", "uint64"), [8, 8, 8]),
    "order": (dtypes("int8", "float64", "uint16"), [1, 8, 2]),
    "unsigned": (dtypes("uint32", "uint8", "uint64"), [4, 1, 8]),
    "int32": ([forward(ndim=2), scalar(ct.int8), forward(ndim=1)], [*pointers(4, 4, 4, 4), 1, *pointers(4, 4)]),
    "uint32": ([forward(ndim=2, index_dtype=ct.uint32), 1, 2], pointers(4, 4, 4, 4)),
    "int64": ([forward(ndim=3, index_dtype=ct.int64), 1, scalar(ct.int8)], [*pointers(8, 8, 8, 8, 8, 8), 1]),
    "point": ([forward(ndim=0), forward(ndim=0, index_dtype=ct.int64), 1], [*pointers(), *pointers()]),
    "known": ([forward(ct.float16, 2, shape_constant=(4, 8), stride_constant=(8, 1), base_addr_divisible_by=16),
               forward(ndim=2, stride_lower_bound_incl=0, shape_divisible_by=16, stride_divisible_by=4), 1],
              [*pointers(4, 4, 4, 4), *pointers(4, 4, 4, 4)]),
    "list": ([arrays(forward(ndim=2)), arrays(forward(ndim=3, index_dtype=ct.int64)), scalar(ct.int8)],
             [*pointers(4), *pointers(4), 1]),
    "items": ([(scalar(ct.int8), forward()), scalar(ct.int16), (arrays(forward()), 3, scalar(ct.float64))],
              [1, *pointers(4, 4), 2, *pointers(4), 8]),
    "nested": ([((scalar(ct.int8), (scalar(ct.int64),)), scalar(ct.int16)), (((forward(ndim=0),),),), 1],
               [1, 8, 2, *pointers()]),
    "empty": ([(), scalar(ct.int8), ((), ((),))], [1]),
    "constants": ([1, 2.5, True], []),
    "among": ([1, scalar(ct.int8), 2.5], [1]),
    "tuples": ([(1, 2.5), scalar(ct.int8), (True, (3, ()))], [1]),
}
OLD = ("bits8", "order", "int64", "list", "constants")  # which v1 has, too


@ct.kernel
def three(a, b, d):
    pass


@functools.cache
def layouts():
    """All entry points in one cubin."""
    new = [signature(*p, symbol=name) for name, (p, _) in LAYOUTS.items()]
    old = [signature(*LAYOUTS[name][0], convention=V1, symbol=f"{name}_old") for name in OLD]
    return cubin(three, *new, *old)


def laid_out(sizes):
    """Each value at the next multiple of its size."""
    out, at = [], 0
    for size in sizes:
        at = -(-at // size) * size
        out.append(Parameter(at, size))
        at += size
    return out


@pytest.mark.parametrize("name", [
    pytest.param(n, marks=clause(*ids.split())) for n, ids in {
        "bool": "CC-4.bool", "bits8": "CC-4.8", "bits16": "CC-4.16", "unsigned16": "CC-4.16 CC-3.align",
        "bits32": "CC-4.32", "bits64": "CC-4.64", "order": "CC-3.order CC-3.align CC-4.64",
        "unsigned": "CC-4.32 CC-4.64 CC-3.align", "int32": "CC-5.int32 CC-3.order", "uint32": "CC-5.uint32",
        "int64": "CC-5.int64 CC-3.align", "point": "CC-5.scalar", "known": "CC-5.known", "list": "CC-6.list",
        "items": "CC-7.items CC-3.order", "nested": "CC-7.nested", "empty": "CC-7.empty",
        "constants": "CC-8.constant", "among": "CC-8.constant", "tuples": "CC-8.tuple"}.items()])
@needs("cubins")
def test_layouts(name):
    assert parameters(layouts(), name) == laid_out(LAYOUTS[name][1])


@pytest.mark.parametrize("name", OLD)
@needs("cubins")
@clause("CC-8.versions")
def test_both_conventions_take_the_same(name):
    assert parameters(layouts(), f"{name}_old") == parameters(layouts(), name)


@ct.kernel
def one_fact(x, out, which: ct.Constant[int]):
    """Stores a size of x, or a stride."""
    if which < 2:
        ct.store(out, 0, x.shape[which].astype(ct.int64))
    else:
        ct.store(out, 0, x.strides[which - 2].astype(ct.int64))


@needs("cubins")
@clause("CC-5.sizes")
@pytest.mark.parametrize("dtype", [ct.int32, ct.uint32, ct.int64], ids=str)
def test_sizes_stand_before_strides(dtype):
    """The code reads only the value that it stores."""
    x, out = forward(ndim=2, index_dtype=dtype), forward(ct.int64, shape_constant=1, stride_constant=1)
    code = cubin(one_fact, *[signature(x, out, k, symbol=f"k{k}") for k in range(4)], target="sm_80")
    places = [8 + k * sized(dtype) for k in range(4)]
    found = [reads(code, f"k{k}") & set(places) for k in range(4)]
    assert found == [{place} for place in places]
