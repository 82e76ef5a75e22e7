"""The kernel decorator."""

import functools

import numpy as np
import pytest

from conformance.harness.api import accepts, clause, ct, launch, named, refuses, run
from conformance.harness.tile_code import module


def one(x, out):
    ct.store(out, 0, x + 1)


def check(kernel, want=6):
    assert run(kernel, 5, np.zeros(1, np.int32)).tolist() == [want]


@clause("KERN-1.bare", "KERN-1.options")
def test_decoration():
    check(ct.kernel(one))
    check(ct.kernel()(one))
    check(ct.kernel(occupancy=2)(one))
    check(ct.kernel(one, num_ctas=2))


@clause("KERN-1.lambda")
def test_a_lambda_as_kernel():
    k = ct.kernel(lambda x, out: ct.store(out, 0, x + 1))
    check(k)


class Callable_:
    def __call__(self, x):
        return x


@clause("KERN-1.target")
@pytest.mark.parametrize("target", [5, "f", int, len, Callable_(), functools.partial(one, 1)], ids=named)
def test_what_is_no_function(target):
    with pytest.raises(TypeError):
        ct.kernel(target)


@clause("KERN-1.string")
def test_string_annotations():
    space = module("""
        @ct.kernel
        def k(n: "ct.Constant[int]", out):
            ct.static_assert(n == 4)
            ct.store(out, 0, n)
    """)
    assert run(space["k"], 4, np.zeros(1, np.int32)).tolist() == [4]
    space = module("""
        from __future__ import annotations
        @ct.kernel
        def k(n: ct.Constant, out):
            ct.static_assert(n == 4)
            ct.store(out, 0, n)
    """)
    assert run(space["k"], 4, np.zeros(1, np.int32)).tolist() == [4]


@clause("KERN-1.unresolvable")
def test_unresolvable_annotations():
    with pytest.raises(NameError):
        module("""
            @ct.kernel
            def k(n: "Nowhere"):
                pass
        """)


OPTIONS = {
    "num_ctas": ((1, 2, 4, 8, 16), (0, 3, 5, 32, -1)),
    "occupancy": ((1, 2, 17, 32), (0, 33, -1)),
    "opt_level": ((0, 1, 2, 3), (-1, 4)),
    "num_worker_warps": ((1, 2, 4, 8, 16, 32), (0, 3, 6, 64)),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=clause(f"KERN-2.{n}")) for n in OPTIONS])
def test_ranges_of_options(name):
    good, bad = OPTIONS[name]
    for v in good:
        ct.kernel(one, **{name: v})
    if name != "opt_level":
        ct.kernel(one, **{name: None})
    for v in bad:
        with pytest.raises(ValueError):
            ct.kernel(one, **{name: v})


@clause("KERN-2.unknown")
def test_unknown_options():
    with pytest.raises(TypeError):
        ct.kernel(one, num_warps=4)


@clause("KERN-2.result")
@pytest.mark.parametrize("options", [{"num_ctas": 2}, {"occupancy": 4}, {"opt_level": 0}, {"opt_level": 2},
                                     {"num_worker_warps": 4}], ids=named)
def test_options_do_not_change_results(options):
    check(ct.kernel(**options)(one))


@clause("KERN-4.option", "KERN-4.default")
@pytest.mark.parametrize("name, value", [("num_ctas", 1), ("occupancy", 2), ("opt_level", 3), ("num_worker_warps", 4)])
def test_options_by_target(name, value):
    check(ct.kernel(one, **{name: ct.ByTarget(default=value)}))
    check(ct.kernel(one, **{name: ct.ByTarget(sm_90=value, sm_100=value)}))
    check(ct.kernel(one, **{name: ct.ByTarget(default=value, sm_999=value)}))


@clause("KERN-4.key")
@pytest.mark.parametrize("key", ["hopper", "sm90", "sm_", "sm_x", "SM_90", "sm_90a"])
def test_keys_of_by_target(key):
    with pytest.raises(ValueError):
        ct.ByTarget(**{key: 1})


@clause("KERN-4.empty", "KERN-4.equal", "KERN-4.hash")
def test_by_target_objects():
    assert ct.ByTarget() == ct.ByTarget()
    assert ct.ByTarget(default=1, sm_90=2) == ct.ByTarget(sm_90=2, default=1)
    assert ct.ByTarget(default=1) != ct.ByTarget(default=2)
    assert ct.ByTarget(sm_90=1) != ct.ByTarget(sm_100=1)
    check(ct.kernel(one, occupancy=ct.ByTarget()))
    with pytest.raises(TypeError):
        hash(ct.ByTarget(default=1))


@clause("KERN-4.range")
def test_values_of_by_target_are_checked():
    for name, (_, bad) in OPTIONS.items():
        with pytest.raises(ValueError):
            ct.kernel(one, **{name: ct.ByTarget(sm_90=bad[0])})
        with pytest.raises(ValueError):
            ct.kernel(one, **{name: ct.ByTarget(default=bad[0])})


@clause("KERN-5.new", "KERN-5.unknown", "KERN-5.range")
def test_replace_hints():
    k = ct.kernel(one, occupancy=1)
    other = k.replace_hints(occupancy=2, opt_level=1)
    assert other is not k and type(other) is type(k)
    check(other)
    check(k)
    with pytest.raises(TypeError):
        k.replace_hints(warps=2)
    with pytest.raises(ValueError):
        k.replace_hints(occupancy=0)


@clause("KERN-6.positional", "KERN-6.keyword")
def test_kinds_of_parameters():
    @ct.kernel
    def k(a, /, b, *, c, out):
        ct.store(out, 0, a * 100 + b * 10 + c)

    assert run(k, 1, 2, 3, np.zeros(1, np.int32)).tolist() == [123]


@clause("KERN-6.variadic")
def test_variadic_kernels():
    @ct.kernel
    def k(a, *rest):
        pass

    @ct.kernel
    def m(a, **more):
        pass

    for kernel in (k, m):
        for args in ((1, 1), (1,), (1, 2, 3)):
            refuses("TileSyntaxError", kernel, *args)


@clause("KERN-6.defaults")
def test_defaults_are_ignored():
    @ct.kernel
    def k(out, a=1):
        ct.store(out, 0, a)

    out = np.zeros(1, np.int32)
    with pytest.raises(TypeError):
        launch(k, out)
    assert run(k, out, 5).tolist() == [5]


@clause("KERN-7.bare", "KERN-7.none")
def test_returning_from_kernels():
    @ct.kernel
    def bare(out):
        ct.store(out, 0, 1)
        if ct.bid(0) == 0:
            return
        ct.store(out, 0, 2)

    @ct.kernel
    def none(out):
        ct.store(out, 0, 1)
        return None

    assert run(bare, np.zeros(1, np.int32)).tolist() == [1]
    assert run(none, np.zeros(1, np.int32)).tolist() == [1]


@clause("KERN-7.value")
def test_returning_values():
    @ct.kernel
    def number(x):
        return 1

    @ct.kernel
    def tile(x):
        return x

    @ct.kernel
    def empty(x):
        return ()

    for k in (number, tile, empty):
        refuses("TileTypeError", k, 1)


@clause("KERN-7.async")
def test_coroutines_and_generators():
    def asynchronous():
        @ct.kernel
        async def k(x):
            pass
        accepts(k, 1)

    def generator():
        @ct.kernel
        def k(x):
            yield x
        accepts(k, 1)

    for f in (asynchronous, generator):
        with pytest.raises((TypeError, ct.TileError)):
            f()
