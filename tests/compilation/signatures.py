"""Random signatures, and for each a kernel that uses every parameter."""

from __future__ import annotations

from hypothesis import strategies as st

import cutile as ct
from cutile.compilation import ArrayConstraint, KernelSignature, ListConstraint, ScalarConstraint, TupleConstraint
from cutile.compilation.mangling import CODES
from cutile.dtypes import int_range
from tests.compilation.test_mangling import V2

DTYPES = [*CODES, ct.float4_e2m1fn, ct.float8_e5m3fnu]
INDEX = [ct.int32, ct.uint32, ct.int64]


def _near(limit: int) -> st.SearchStrategy:
    """Numbers that something may depend on, up to a limit."""
    powers = st.integers(0, limit.bit_length() - 1).map(lambda k: 1 << k)
    return st.one_of(st.sampled_from([1, 2, 3, 16]), powers, powers.map(lambda n: max(n - 1, 1)), st.just(limit))


@st.composite
def arrays(draw):
    """Constraints of arrays: predicates near the limits of the index dtype, constants that satisfy them."""
    index, n = draw(st.sampled_from(INDEX)), draw(st.sampled_from([0, 1, 1, 1, 2, 2, 2, 3, 4, 5, 16, 64]))
    low, high = int_range(index)
    dtype = draw(st.sampled_from(DTYPES))
    reach = min(high, (1 << 62) * 8 // max(dtype.bitwidth, 8))

    def each(s):
        return [draw(s) for _ in range(n)]

    rarely = st.sampled_from([False, False, True])
    sizes = [draw(_near(high)) if draw(rarely) else None for _ in range(n)]
    strides = [draw(_near(reach)) * draw(st.sampled_from([1, 1, -1 if low else 1])) if draw(rarely) else None
               for _ in range(n)]
    lowest = -(1 << index.bitwidth - 1)
    bounds = [None if s is not None else b
              for s, b in zip(strides, each(st.one_of(st.none(), st.just(0), _near(high), st.just(lowest))))]
    return ArrayConstraint(
        dtype, n, index_dtype=index, stride_lower_bound_incl=bounds, alias_groups=(),
        may_alias_internally=draw(st.booleans()), shape_constant=sizes, stride_constant=strides,
        shape_divisible_by=[1 if s is not None else d for s, d in zip(sizes, each(_near(high)))],
        stride_divisible_by=[1 if s is not None else d for s, d in zip(strides, each(_near(high)))],
        base_addr_divisible_by=draw(_near((1 << 63) - 1)))


scalars = st.sampled_from(DTYPES).map(ScalarConstraint)
whole = st.sampled_from([0, -1, 2**31, -2**31, 2**63 - 1, -2**63, 2**64 - 1, 2**64, 2**200])
constants = st.one_of(st.booleans(), whole, st.floats())
lists = st.builds(lambda element, alias: ListConstraint(element, alias_groups=(), elements_may_alias=alias),
                  arrays(), st.booleans())
parameters = st.recursive(st.one_of(arrays(), arrays(), arrays(), scalars, constants, lists),
                          lambda inner: st.lists(inner, max_size=3).map(TupleConstraint), max_leaves=4)
signatures = st.lists(parameters, min_size=1, max_size=3).map(lambda p: KernelSignature(p, V2, "k"))


def source(signature: KernelSignature) -> str:
    """A kernel that reads every parameter and writes to every array."""
    lines = [line for i, p in enumerate(signature.parameters) for line in _use(f"p{i}", p)]
    names = ", ".join(f"p{i}" for i in range(len(signature.parameters)))
    return f"import cutile as ct\n\n\n@ct.kernel\ndef k({names}):\n" + "".join(f"    {x}\n" for x in lines or ["pass"])


def _use(name: str, p) -> list[str]:
    """Statements that copy an array onto itself in every way of access, and print numbers."""
    if isinstance(p, TupleConstraint):
        return [line for i, item in enumerate(p.items) for line in _use(f"{name}[{i}]", item)]
    if isinstance(p, ListConstraint):
        return _use(f"{name}[ct.bid(0)]", p.element)
    if isinstance(p, ArrayConstraint):
        where, tile = f"({'ct.bid(0), ' * p.ndim})", f"({'1, ' * (p.ndim - 1)}{'2, ' * bool(p.ndim)})"
        lines = [f"ct.store({name}, {where}, ct.load({name}, {where}, {tile}))"]
        if 1 <= p.ndim <= 4:
            wide = f"({'1, ' * (p.ndim - 1)}4096)" if p.dtype.bitwidth > 4 else tile
            part = f"ct.load({name}.slice(0, 1, 5), {where}, {tile})"
            lines += [f"ct.store({name}, {where}, ct.load({name}, {where}, {wide}, order='F'))",
                      f"ct.store({name}.slice(0, 1, ct.bid(0)), {where}, {part})"]
        if 1 <= p.ndim <= 4 and p.dtype.bitwidth > 4:
            points = f"({'ct.arange(4, dtype=ct.int32), ' * p.ndim})"
            lines.append(f"ct.scatter({name}, {points}, ct.gather({name}, {points}))")
        return lines + [f"print({name}.shape[{k}], {name}.strides[{k}])" for k in range(min(p.ndim, 2))]
    return [f"print({name})"]
