"""What a kernel needs for its effects: without all else it prints the same, and what is needed is no more than that."""

from __future__ import annotations

import cutile as ct
from cutile.analysis.live import Live
from cutile.ir.nodes import TERMINATORS, Bind, Kernel, Node, Op, Value, results_of, uses_of
from cutile.ir.walk import rewrite, substitute, walk
from cutile.ops import arithmetic
from tests.front.compiling import A1, F32, I32, typed
from tests.interp import ir_programs
from tests.passes.random_programs import printed, program, trace
from tests.seeds import seeds


def reduced(kernel: Kernel) -> Kernel:
    """The kernel without the nodes that it does not need; what nobody needs to be read is 0."""
    live = Live(kernel)

    def change(old: Node, n: Node) -> list[Node]:
        if isinstance(n, Bind) or not isinstance(n, TERMINATORS) and not live.needs(old):
            return []
        code, zeros = ir_programs.Code(), {}
        for v in set(uses_of(old)).difference(live.uses(old)):
            zeros[v] = zero(code, v)
        return [*code.nodes, substitute(n, zeros)]

    return rewrite(kernel, change)


def zero(code: ir_programs.Code, like: Value) -> Value:
    number = code.const(0)
    if like.type == ir_programs.B1:
        return code.less(number, number)
    return number if like.type == ir_programs.I32 else code.pair(number)


@seeds(25, 60)
def test_random_programs(seed):
    small = reduced(program(seed))
    assert trace(small, seed) == printed(seed)
    read = {v for n in walk(small.body) for v in uses_of(n)}
    assert all(not results_of(n) or not read.isdisjoint(results_of(n)) for n in walk(small.body)
               if isinstance(n, Op) and n.op.effect == "pure")


def product_uses(kernel) -> int:
    """How many uses of the only product are needed."""
    k = typed(kernel, A1, A1, F32, I32)
    live = Live(k)
    (product,) = (n.results[0] for n in walk(k.body) if isinstance(n, Op) and n.op is arithmetic.mul)
    return sum(v is product for n in walk(k.body) for v in live.uses(n))


def test_an_op_without_an_effect():
    def kernel(a, b, x, n):
        p = x * x
        ct.exp(ct.sqrt(p))

    assert product_uses(kernel) == 0


def test_conditions_and_bounds():
    def dead(a, b, x, n):
        p = x * x
        if p > 1.0:
            ct.exp(x)

    def condition(a, b, x, n):
        p = x * x
        if p > 1.0:
            ct.store(b, 0, x)

    def of_while(a, b, x, n):
        p = x * x
        i = 0
        while p > x:
            ct.store(b, i, x)
            i += 1

    def bound(a, b, x, n):
        p = x * x
        for i in range(ct.astype(p, ct.int32)):
            ct.store(b, i, x)

    assert [product_uses(k) for k in (dead, condition, of_while, bound)] == [0, 1, 1, 1]


def test_carried_values():
    def own_cycle(a, b, x, n):
        p = x * x
        q, r = p, x
        for i in range(n):
            q, r = ct.exp(r), ct.exp(q)
            ct.store(b, i, x)

    def after(a, b, x, n):
        p = x * x
        q, r = p, x
        for _ in range(n):
            q, r = ct.exp(r), ct.exp(q)
        ct.store(b, 0, r)

    def inside(a, b, x, n):
        p = x * x
        q = p
        for i in range(n):
            ct.store(b, i, q)
            q = ct.exp(q)

    def at_a_break(a, b, x, n):
        p = x * x
        q, i = x, 0
        while True:
            ct.store(b, i, q)
            i += 1
            if i > n:
                q = p
                break

    def after_a_break(a, b, x, n):
        p = x * x
        q, i = x, 0
        while True:
            i += 1
            if i > n:
                q = p
                break
        ct.store(b, i, q)

    assert [product_uses(k) for k in (own_cycle, after, inside, at_a_break, after_a_break)] == [0, 1, 1, 0, 1]


def test_jumps():
    def leaves_the_kernel(a, b, x, n):
        p = x * x
        if p > 1.0:
            return
        ct.exp(x)

    def goes_on(a, b, x, n):
        p = x * x
        for i in range(n):
            ct.store(b, i, x)
            if p > 1.0:
                continue

    def leaves_a_dead_loop(a, b, x, n):
        p = x * x
        for _ in range(n):
            if p > 1.0:
                break

    def early(b, p):
        if p > 1.0:
            return 1.0
        return p

    def calls(a, b, x, n):
        p = x * x
        early(b, p)

    def calls_and_stores(a, b, x, n):
        p = x * x
        ct.store(b, 0, early(b, p))

    kernels = leaves_the_kernel, goes_on, leaves_a_dead_loop, calls, calls_and_stores
    assert [product_uses(k) for k in kernels] == [1, 1, 0, 0, 2]


def test_regions_of_ops():
    def kernel(a, b, x, n):
        p = x * x
        t = ct.load(a, 0, 4)
        ct.store(b, 0, ct.reduce(t, 0, lambda y, z: y + z, 0.0))
        ct.reduce(t + p, 0, lambda y, z: ct.maximum(y, z), 0.0)

    assert product_uses(kernel) == 0
