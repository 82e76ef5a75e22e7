"""Signatures and calling conventions: what they take and refuse; nothing of them can be changed [SIG-1…3, CC]."""

import copy
import pickle

import pytest

import cutile as ct
from cutile.compilation import (
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from tests.compilation.test_mangling import V1, V2, array


def test_signatures_normalise_and_are_immutable():
    s = KernelSignature([1, (2.0, ScalarConstraint(ct.int32))], V2)
    assert s.parameters == (ConstantConstraint(1), TupleConstraint([2.0, ScalarConstraint(ct.int32)]))
    with pytest.raises(AttributeError):
        s.symbol = "x"
    assert s.with_symbol("x").symbol == "x" and s.symbol is None
    for bad in ("x", None, [1]):
        with pytest.raises(TypeError):
            KernelSignature([bad], V2)
    with pytest.raises(TypeError):
        KernelSignature([], "t1")
    with pytest.raises(TypeError):
        KernelSignature([], V1, symbol=3)


def test_the_first_convention_has_no_tuples_and_constant_sizes():
    for p in ((1,), array(ct.float32, 1, shape_constant=(1,))):
        with pytest.raises(ValueError, match="v2"):
            KernelSignature([p], V1)


def test_alias_groups_join_parameters_of_one_kind():
    with pytest.raises(ValueError, match="only one"):
        KernelSignature([array(ct.float32, 1, alias_groups=("x",))], V1)
    table = ListConstraint(array(ct.float32, 1), alias_groups=("x",), elements_may_alias=False)
    with pytest.raises(ValueError, match="table"):
        KernelSignature([array(ct.float32, 1, alias_groups=("x",)), table], V1)


def test_conventions():
    assert repr(V1) == "CallingConvention('cutile_python_v1', 't1')" and V1 != V2 and V2.version == 2
    assert CallingConvention.from_code("t2") == V2
    with pytest.raises(ValueError):
        CallingConvention.from_code("t3")
    with pytest.raises(TypeError):
        hash(V1)


PARTS = {
    "scalar": ScalarConstraint(ct.int8), "constant": ConstantConstraint(2.5), "array": array(ct.float32, 2),
    "list": ListConstraint(array(ct.float32, 1), alias_groups=(), elements_may_alias=True),
    "tuple": TupleConstraint((1, (2.5, ScalarConstraint(ct.int8)))), "convention": V2,
    "signature": KernelSignature([1, array(ct.float32, 1)], V1, "name"),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_nothing_of_a_signature_can_be_changed(part):
    for name in getattr(part, "__match_args__", None) or part.__slots__:
        with pytest.raises(AttributeError):
            setattr(part, name, getattr(part, name))
        with pytest.raises(AttributeError):
            delattr(part, name)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
                         ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_copies_are_equal(part, copied):
    assert copied(part) == part and repr(copied(part)) == repr(part)
