"""Objects made before their arguments exist, and for some GPUs only; the names of cuda.compute's modules."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from cutile import compute
from cutile.compute import OpKind, ProxyArray, ProxyValue, algorithms, types
from cutile.compute.op import RawOp, make_op_adapter
from cutile.compute.proxies import capabilities
from cutile.errors import TileUnsupportedFeatureError
from tests.compute.checks import check_docstring
from tests.gpu.arrays import Cuda
from tests.gpu.fake_driver import installed


def test_an_object_made_of_stand_ins():
    array = ProxyArray(np.float32)
    reduce = compute.make_reduce_into(array, ProxyArray(np.float64), OpKind.PLUS, ProxyValue(np.float64))
    x, o = np.arange(100, dtype=np.float32), np.zeros(1)
    need = reduce(None, x, o, OpKind.PLUS, 100, 0.5)
    reduce(np.empty(need, np.uint8), x, o, OpKind.PLUS, 100, 0.5)
    assert o[0] == 4950.5
    with pytest.raises(TypeError, match="`d_in`: this object was made for array of float32, got array of float64"):
        reduce(None, x.astype(np.float64), o, OpKind.PLUS, 100, 0.5)
    for arguments, name in (((array, o, OpKind.PLUS, 100, 0.5), "a ProxyArray"),
                            ((x, o, OpKind.PLUS, 100, ProxyValue(np.float64)), "a ProxyValue")):
        argument = "h_init" if name == "a ProxyValue" else "d_in"
        with pytest.raises(RuntimeError, match=f"argument `{argument}`: {name} stands for an argument"):
            reduce(None, *arguments)


def test_stand_ins_in_calls_are_named():
    """Wherever they are: an argument, or part of one."""
    x, o, p, v = np.arange(6, dtype=np.int32), np.zeros(6, np.int32), ProxyArray(np.int32), ProxyValue(np.int32)
    calls = {
        "d_in": [lambda it=it: compute.unary_transform(it, o, lambda z: 1, 6)
                 for it in (p, p + 2, compute.ReverseIterator(p), compute.ZipIterator(x, p),
                            compute.PermutationIterator(x, p), compute.PermutationIterator(p, x),
                            compute.TransformIterator(p, lambda w: w + 1))],
        "d_out": [lambda it=it: compute.unary_transform(x, it, OpKind.NEGATE, 6)
                  for it in (p, compute.TransformOutputIterator(p, lambda w: w, np.int32))],
        "h_init": [lambda: compute.reduce_into(x, o, 6, OpKind.PLUS, v)],
        "init_value": [lambda: compute.inclusive_scan(x, o, OpKind.PLUS, v, 6)],
        "d_out_keys": [lambda: compute.radix_sort(x, p, None, None, 6, compute.SortOrder.ASCENDING)],
        "d_in_keys": [lambda: compute.radix_sort(compute.DoubleBuffer(p, p), None, None, None, 6,
                                                 compute.SortOrder.ASCENDING)]}
    for name, some in calls.items():
        for call in some:
            with pytest.raises(RuntimeError, match=f"argument `{name}`: a Proxy.* stands for an argument"):
                call()
    assert not o.any()


def test_compute_capabilities():
    assert [capabilities(c) for c in (None, 90, (9, 0), "9.0", "90", [90, "10.0"], ((9, 0), (12, 1)), "sm_120")] == [
        None, ((9, 0),), ((9, 0),), ((9, 0),), ((9, 0),), ((9, 0), (10, 0)), ((9, 0), (12, 1)), ((12, 0),)]
    for wrong in ([], (), "", "nine", 9, 9.0, True, [None]):
        with pytest.raises(ValueError, match="compute_capability"):
            compute.make_unary_transform(ProxyArray("f4"), ProxyArray("f4"), OpKind.NEGATE, compute_capability=wrong)


@pytest.mark.parametrize("name", [n for n in compute.__all__ if n.startswith("make_")])
def test_all_objects_are_made_for_compute_capabilities(name):
    make = getattr(compute, name)
    given = {"order": compute.SortOrder.ASCENDING, "op": OpKind.PLUS, "h_init": 0, "equal": None, "comp": None,
             "init_value": 0, "cond": OpKind.IDENTITY, "h_num_output_levels": 9, "h_lower_level": 0, "h_upper_level": 8,
             "num_samples": 5, "select_first_part_op": OpKind.IDENTITY, "select_second_part_op": OpKind.IDENTITY,
             "determinism": compute.Determinism.RUN_TO_RUN, "compute_capability": [90, "10.0"]}
    if "unary" in name:
        given["op"] = OpKind.NEGATE
    taken = inspect.signature(make).parameters
    wide = ("d_out",) if "bound" in name else ()
    made = make(**{n: given[n] if n in given else ProxyArray(np.uint64 if n in wide else np.int32) for n in taken})
    assert made.capabilities == ((9, 0), (10, 0))


def test_an_object_runs_on_gpus_that_it_was_made_for(monkeypatch):
    fake = installed(monkeypatch)
    compute.clear_all_caches()
    x = Cuda(np.zeros(8, np.float32))
    for given in (90, [80, (9, 0)]):
        compute.make_unary_transform(x, x, OpKind.NEGATE, compute_capability=given)(x, x, OpKind.NEGATE, 8)
    assert len(fake.launches) == 2
    other = compute.make_unary_transform(x, x, OpKind.NEGATE, compute_capability=[80, (10, 0)])
    with pytest.raises(RuntimeError, match=r"GPU 0 has compute capability 9.0, and this object was made for 8.0, 10.0"):
        other(x, x, OpKind.NEGATE, 8)
    host = np.arange(3, dtype=np.float32)
    compute.make_unary_transform(host, host, OpKind.NEGATE, compute_capability=80)(host, host, OpKind.NEGATE, 3)
    assert host.tolist() == [0, -1, -2] and len(fake.launches) == 2


def test_names_of_cuda_compute():
    assert algorithms.reduce_into is compute.reduce_into and "reduce_into" in algorithms.__all__
    with pytest.raises(AttributeError, match="no attribute 'sort_all'"):
        _ = algorithms.sort_all
    assert types.int32 == types.from_numpy_dtype(np.int32) and types.boolean == types.from_numpy_dtype(bool)
    pair = types.struct({"a": types.int8, "b": np.float32})
    assert str(pair) == "AnonymousStruct(a: int8, b: float32)" and len(pair.dtypes) == 2
    with pytest.raises(TileUnsupportedFeatureError, match="pointers are no items"):
        types.pointer(types.int32)
    raw = RawOp(ltoir=b"code", name="f")
    with pytest.raises(TileUnsupportedFeatureError, match="argument `op`: LTO-IR cannot be linked"):
        compute.reduce_into(np.zeros(2), np.zeros(1), 2, raw)
    assert make_op_adapter(OpKind.PLUS) is make_op_adapter(OpKind.PLUS)


@pytest.mark.parametrize("cls", [ProxyArray, ProxyValue])
def test_documentation(cls):
    check_docstring(cls)
