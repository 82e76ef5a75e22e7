"""One small program for each operation of Tile IR, and for each form of an operation worth writing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Bounded, DivBy, Module, SameElements
from cutile.gpu.tileir.types import f16, f32, i1, i8, i32, i64, ptr, tile
from cutile.spans import Span

F, N, L, B = tile(f32, (8,)), tile(i32, (8,)), tile(i64, (8,)), tile(i1, (8,))
F2 = tile(f32, (4, 8))
VIEW = ty.TensorView(f32, (None, 64), (64, 1))


class Scene:
    """An entry `k(pointer to f32, i32)` of a module, its builder, and values to use."""

    def __init__(self, module: Module, name: str = "k"):
        self.module, self.name = module, name
        entry = module.entry(name, [tile(ptr(f32)), tile(i32)])
        self.base, self.n = entry.arguments
        self.b = entry.body
        self.op = self.b.op

    def of(self, t: ty.Tile, x=1):
        return self.b.constant(t, x)

    @property
    def pointers(self):
        one = self.op("reshape", [self.base], result=tile(ptr(f32), (1,)))
        return self.op("offset", [self.op("broadcast", [one], result=tile(ptr(f32), (8,))), self.of(N)])

    @property
    def tensor(self):
        return self.b.tensor_view(self.base, VIEW, [self.n], [])

    def view(self, kind: str, t: ty.View):
        return self.op(f"make_{kind}_view", [self.tensor], result=t)

    @property
    def partition(self):
        return self.view("partition", ty.PartitionView((4, 8), VIEW))

    @property
    def zeros(self):
        return [self.of(tile(i32), 0)] * 2



SAMPLES: dict[str, tuple[str, Callable[[Scene], object]]] = {}  # name[.form] -> first version, program


def sample(name: str, since: str, make: Callable[[Scene], object]) -> None:
    SAMPLES[name] = since, make


def _unary(names: str, t: ty.Tile, since: str = "13.1", form: str = "", **attrs) -> None:
    for name in names.split():
        sample(name + form, since, lambda s, name=name: s.op(name, [s.of(t)], **attrs))


def _binary(names: str, t: ty.Tile, since: str = "13.1", form: str = "", **attrs) -> None:
    for name in names.split():
        sample(name + form, since, lambda s, name=name: s.op(name, [s.of(t), s.of(t)], **attrs))


_unary("absf ceil cos cosh exp exp2 floor log log2 negf rsqrt sin sinh sqrt tan tanh", F)
_unary("absi negi", N)
_unary("exp2 rsqrt sqrt", F, form=".ftz", flush_to_zero=True)
_unary("exp", F, "13.3", ".approx", rounding_mode="approx")
_unary("tanh", F, "13.2", ".approx", rounding_mode="approx")
_unary("sqrt", F, form=".approx", rounding_mode="approx")
_unary("negi", N, "13.2", ".nsw", overflow="no_signed_wrap")
_binary("addf divf maxf minf mulf pow remf subf", F)
_binary("addf subf mulf divf", F, form=".rz_ftz", rounding_mode="zero", flush_to_zero=True)
_binary("divf", F, form=".approx", rounding_mode="approx")
_binary("maxf minf", F, form=".nan_ftz", propagate_nan=True, flush_to_zero=True)
_binary("maxf", F, form=".nan", propagate_nan=True)
_binary("addi andi muli mulhii ori shli subi xori", N)
_binary("addi", N, form=".nw", overflow="no_wrap")
_binary("divi maxi mini remi shri", N, signedness="signed")
_binary("divi maxi", N, form=".unsigned", signedness="unsigned")
_binary("divi", N, form=".floor", signedness="signed", rounding="negative_inf")
_binary("atan2", F, "13.2")
_binary("cmpf", F, comparison_predicate="less_than", comparison_ordering="ordered")
_binary("cmpf", F, form=".une", comparison_predicate="not_equal", comparison_ordering="unordered")
_binary("cmpi", N, comparison_predicate="greater_than_or_equal", signedness="unsigned")
sample("fma", "13.1", lambda s: s.op("fma", [s.of(F)] * 3))
sample("select", "13.1", lambda s: s.op("select", [s.of(B, True), s.of(F), s.of(F, 2)]))
sample("fpowi", "13.4", lambda s: s.op("fpowi", [s.of(F), s.of(N)]))

sample("assert", "13.1", lambda s: s.op("assert", [s.of(B, True)], message="a must be positive"))
sample("assume", "13.1", lambda s: s.b.assume(s.base, DivBy(16)))
sample("assume.div_every", "13.1", lambda s: s.b.assume(s.of(N), DivBy(4, 4, 0)))
sample("assume.bounded", "13.1", lambda s: s.b.assume(s.n, Bounded(-3, 70000)))
sample("assume.lower", "13.1", lambda s: s.b.assume(s.n, Bounded(0)))
sample("assume.same", "13.1", lambda s: s.b.assume(s.of(N), SameElements((4,))))
sample("bitcast", "13.1", lambda s: s.op("bitcast", [s.of(F)], result=N))
sample("broadcast", "13.1", lambda s: s.op("broadcast", [s.of(tile(f32, (1,)))], result=F))
sample("cat", "13.1", lambda s: s.op("cat", [s.of(F), s.of(F)], dim=0, result=tile(f32, (16,))))
sample("constant", "13.1", lambda s: s.of(F2, np.arange(32).reshape(4, 8)))
sample("constant.bool", "13.1", lambda s: s.of(B, [True, False, True, True, False, False, False, True]))
sample("exti", "13.1", lambda s: s.op("exti", [s.of(N, -1)], result=L, signedness="signed"))
sample("trunci", "13.1", lambda s: s.op("trunci", [s.of(L)], result=N))
sample("extract", "13.1", lambda s: s.op("extract", [s.of(F), [s.n]], result=tile(f32, (4,))))
sample("insert", "13.4", lambda s: s.op("insert", [s.of(tile(f32, (4,))), s.of(F), [s.n]]))
sample("ftof", "13.1", lambda s: s.op("ftof", [s.of(F)], result=tile(f16, (8,))))
sample("ftof.rz", "13.4", lambda s: s.op("ftof", [s.of(F)], result=tile(f16, (8,)), rounding_mode="zero"))
sample("ftoi", "13.1", lambda s: s.op("ftoi", [s.of(F)], result=N, signedness="signed"))
sample("ftoi.saturating", "13.4", lambda s: s.op("ftoi", [s.of(F)], result=N, signedness="signed", saturating=True))
sample("itof", "13.1", lambda s: s.op("itof", [s.of(N)], result=F, signedness="unsigned"))
sample("iota", "13.1", lambda s: s.op("iota", result=N))
sample("permute", "13.1", lambda s: s.op("permute", [s.of(F2)], result=tile(f32, (8, 4)), permutation=(1, 0)))
sample("reshape", "13.1", lambda s: s.op("reshape", [s.of(F2)], result=tile(f32, (32,))))
sample("pack", "13.3", lambda s: s.op("pack", [s.of(F)], result=tile(i8, (32,))))
sample("unpack", "13.3", lambda s: s.op("unpack", [s.of(tile(i8, (32,)))], result=F))
sample("int_to_ptr", "13.1", lambda s: s.op("int_to_ptr", [s.of(tile(i64), 256)], result=tile(ptr(f32))))
sample("ptr_to_int", "13.1", lambda s: s.op("ptr_to_int", [s.base], result=tile(i64)))
sample("ptr_to_ptr", "13.1", lambda s: s.op("ptr_to_ptr", [s.base], result=tile(ptr(i8))))
sample("offset", "13.1", lambda s: s.pointers)
sample("get_tile_block_id", "13.1", lambda s: s.op("get_tile_block_id"))
sample("get_num_tile_blocks", "13.1", lambda s: s.op("get_num_tile_blocks"))


def _mma(a: ty.Scalar, c: ty.Scalar, s: Scene, name: str, *more, **attrs):
    operands = [s.of(tile(a, (16, 32)), 1), s.of(tile(a, (32, 16)), 1), s.of(tile(c, (16, 16)), 0)]
    return s.op(name, [*operands, *more], **attrs)


def _scaled(s: Scene):
    scales = [s.of(tile(ty.e8m0, shape), 1) for shape in ((16, 1), (1, 16))]
    return _mma(ty.e4m3, f32, s, "mmaf_scaled", *scales)


sample("mmaf", "13.1", lambda s: _mma(f16, f32, s, "mmaf"))
sample("mmaf.fast", "13.3", lambda s: _mma(ty.e4m3, f32, s, "mmaf", fast_acc=True))
sample("mmai", "13.1", lambda s: _mma(i8, i32, s, "mmai", signedness_lhs="signed", signedness_rhs="unsigned"))
sample("mmaf_scaled", "13.3", _scaled)


def _global(s: Scene):
    s.module.variable(f"{s.name}_table", F, np.arange(8), alignment=16)
    return s.op("get_global", name=f"{s.name}_table", result=tile(ptr(f32)))


def _constant_global(s: Scene):
    s.module.variable(f"{s.name}_table", F, 1.5, constant=True, visibility="private")
    return s.op("get_global", name=f"{s.name}_table", result=tile(ptr(f32)))


sample("get_global", "13.1", _global)
sample("get_global.constant", "13.3", _constant_global)
sample("alloca", "13.3", lambda s: s.op("alloca", num_elem=64, alignment=16, result=tile(ptr(f32))))

sample("make_token", "13.1", lambda s: s.op("make_token"))
sample("join_tokens", "13.1", lambda s: s.op("join_tokens", [[s.op("make_token"), s.op("make_token")]]))
sample("gdc_launch_dependents_tko", "13.4", lambda s: s.op("gdc_launch_dependents_tko"))
sample("gdc_wait_tko", "13.4", lambda s: s.op("gdc_wait_tko", token=s.op("make_token")))
sample("print_tko", "13.1", lambda s: s.op("print_tko", [[s.of(N)]], str="i = %i\n"))
sample("print_tko.token", "13.2", lambda s: s.op("print_tko", [[]], str="done\n", token=s.op("make_token")))

sample("load_ptr_tko", "13.1", lambda s: s.op("load_ptr_tko", [s.pointers]))
sample("load_ptr_tko.all", "13.1", lambda s: s.op(
    "load_ptr_tko", [s.pointers, s.of(B, True), s.of(F, 0), s.op("make_token")], memory_scope="device",
    memory_ordering_semantics="acquire", optimization_hints={"sm_90": {"latency": 3}}))
sample("store_ptr_tko", "13.1", lambda s: s.op("store_ptr_tko", [s.pointers, s.of(F)]))
sample("store_ptr_tko.all", "13.1", lambda s: s.op(
    "store_ptr_tko", [s.pointers, s.of(F), s.of(B, True)], token=s.op("make_token"), memory_scope="sys",
    memory_ordering_semantics="release"))
sample("atomic_cas_tko", "13.1", lambda s: s.op(
    "atomic_cas_tko", [s.pointers, s.of(F), s.of(F)], memory_ordering_semantics="acq_rel", memory_scope="device"))
sample("atomic_rmw_tko", "13.1", lambda s: s.op(
    "atomic_rmw_tko", [s.pointers, s.of(F), s.of(B, True)], token=s.op("make_token"), mode="addf",
    memory_ordering_semantics="relaxed", memory_scope="device"))

sample("make_tensor_view", "13.1", lambda s: s.tensor)
sample("get_tensor_shape", "13.1", lambda s: s.op("get_tensor_shape", [s.tensor], result=[tile(i32)] * 2))
sample("make_partition_view", "13.1", lambda s: s.partition)
sample("make_partition_view.mapped", "13.1", lambda s: s.view(
    "partition", ty.PartitionView((4, 8), VIEW, (1, 0), "neg_inf")))
sample("get_index_space_shape", "13.1", lambda s: s.op("get_index_space_shape", [s.partition], result=[tile(i32)] * 2))
sample("make_strided_view", "13.3", lambda s: s.view("strided", ty.StridedView((4, 8), (2, 4), VIEW, padding="nan")))
sample("make_gather_scatter_view", "13.3", lambda s: s.view(
    "gather_scatter", ty.GatherScatterView((8, 8), VIEW, 0, "zero")))
sample("load_view_tko", "13.1", lambda s: s.op("load_view_tko", [s.partition, s.zeros]))
sample("load_view_tko.gather", "13.3", lambda s: s.op(
    "load_view_tko", [s.view("gather_scatter", ty.GatherScatterView((8, 8), VIEW, 0, "zero")), [s.of(N), s.zeros[0]]]))
sample("load_view_tko.inbounds", "13.4", lambda s: s.op(
    "load_view_tko", [s.partition, s.zeros], inbounds=(True, False), memory_ordering_semantics="relaxed",
    memory_scope="device"))
sample("store_view_tko", "13.1", lambda s: s.op("store_view_tko", [s.of(F2), s.partition, s.zeros]))
sample("store_view_tko.all", "13.3", lambda s: s.op(
    "store_view_tko", [s.of(F2), s.partition, s.zeros, s.op("make_token")],
    optimization_hints={"default": {"allow_tma": False, "latency": 2}}))
sample("atomic_red_view_tko", "13.3", lambda s: s.op(
    "atomic_red_view_tko", [s.partition, s.zeros, s.of(F2)], mode="addf", memory_ordering_semantics="relaxed",
    memory_scope="device"))


def _if(s: Scene):
    with s.b.if_(s.of(tile(i1), True), [F, N]) as branch:
        with branch.then:
            s.op("yield", [[s.of(F), s.of(N)]])
        with branch.otherwise:
            s.op("yield", [[s.of(F, 2), s.of(N, 2)]])
    return s.op("addf", [branch.results[0], branch.results[0]])


def _if_only(s: Scene):
    with s.b.if_(s.of(tile(i1), True)) as branch:
        with branch.then:
            s.op("return")


def _for(s: Scene, **options):
    with s.b.for_(s.zeros[0], s.n, s.of(tile(i32)), [s.of(F), s.op("make_token")], **options) as loop:
        i, acc, token = loop.arguments
        s.op("addi", [i, i])
        s.op("continue", [[s.op("mulf", [acc, acc]), token]])
    return s.op("addf", [loop.results[0], loop.results[0]])


def _loop(s: Scene):
    with s.b.loop([s.n], [tile(i32), F]) as loop:
        (i,) = loop.arguments
        end = s.op("cmpi", [i, s.of(tile(i32), 9)], comparison_predicate="equal", signedness="signed")
        with s.b.if_(end) as branch:
            with branch.then:
                s.op("break", [[i, s.of(F)]])
        s.op("continue", [[s.op("addi", [i, i])]])
    return s.op("addf", [loop.results[1], loop.results[1]])


def _reduce(s: Scene):
    with s.b.reduce([s.of(F2), s.of(tile(i32, (4, 8)))], 1, [-0.0, -5]) as r:
        x, sum_, i, low = r.arguments
        s.op("yield", [[s.op("addf", [sum_, x]), s.op("mini", [i, low], signedness="signed")]])
    return s.op("addf", [r.results[0], r.results[0]])


def _scan(s: Scene, t=F, x=1.0, name="mulf", reverse=False):
    with s.b.scan([s.of(t)], 0, [x], reverse=reverse) as r:
        element, accumulated = r.arguments
        s.op("yield", [[s.op(name, [accumulated, element])]])
    return r.results


sample("if", "13.1", _if)
sample("yield", "13.1", _if)
sample("if.only", "13.1", _if_only)
sample("return", "13.1", _if_only)
sample("for", "13.1", _for)
sample("continue", "13.1", _for)
sample("for.unsigned", "13.2", lambda s: _for(s, unsigned=True))
sample("loop", "13.1", _loop)
sample("break", "13.1", _loop)
sample("reduce", "13.1", _reduce)
sample("scan", "13.1", _scan)
sample("scan.reverse", "13.1", lambda s: _scan(s, reverse=True))
sample("scan.f64", "13.1", lambda s: _scan(s, tile(ty.f64, (8,)), -0.0, "addf"))
sample("scan.f16", "13.1", lambda s: _scan(s, tile(f16, (8,)), float("-inf"), "maxf"))
sample("scan.odd", "13.1", lambda s: _scan(s, tile(ty.f64, (8,)), -1 / 3, "addf"))
sample("scan.i64", "13.1", lambda s: _scan(s, L, -1, "andi"))


def add(module: Module, sample_name: str, entry_name: str = "k") -> None:
    """An entry with a sample in it."""
    scene = Scene(module, entry_name)
    SAMPLES[sample_name][1](scene)
    if not scene.b.block.terminated:
        scene.op("return")


def bytecode(sample_name: str, version: str) -> bytes:
    """A module with one sample."""
    module = Module(version)
    add(module, sample_name)
    return module.to_bytes()


def available(version: str) -> list[str]:
    """The samples that a version can express."""
    return [name for name, (since, _) in SAMPLES.items() if since <= version]


VECTOR = ty.TensorView(f32, (None,), (1,))


def vector_add(version: str, locs: dict[str, Span] | None = None) -> Module:
    """`c = a + b` in tiles of 128. `locs` may give sources to "kernel", "load", "add" and "store"."""
    locs = locs or {}
    module = Module(version)
    hints = {"default" if module.version >= (13, 3) else "sm_90": {"occupancy": 2}}
    entry = module.entry("vector_add", [tile(ptr(f32)), tile(i32)] * 3, hints=hints, loc=locs.get("kernel"))
    b, args = entry.body, entry.arguments
    with b.at(locs.get("load")):
        x, _, _ = b.op("get_tile_block_id")
        views = [b.op("make_partition_view", [b.tensor_view(b.assume(p, DivBy(16)), VECTOR, [n], [])],
                      result=ty.PartitionView((128,), VECTOR, padding="zero")) for p, n in zip(args[::2], args[1::2])]
        (lhs, t1), (rhs, t2) = (b.op("load_view_tko", [view, [x]]) for view in views[:2])
    total = b.op("addf", [lhs, rhs], loc=locs.get("add"))
    with b.at(locs.get("store")):
        b.op("store_view_tko", [total, views[2], [x], b.op("join_tokens", [[t1, t2]])])
        b.op("return")
    return module
