"""Every function of the language in exported bytecode, with each of its options, for the versions that have it.

An implementation may look at what the suite exports (`Adapter.exported`), for example by reading it back.
"""

import pytest

from conformance.harness.api import clause, ct, needs
from conformance.harness.compiled_files import version_of
from conformance.harness.export import VERSIONS, array, arrays, bytecode, scalar, signature

pytestmark = needs("export")

F16, BF16, F32, F64, TF32 = ct.float16, ct.bfloat16, ct.float32, ct.float64, ct.tfloat32
I8, I16, I32, I64, U8, U32, U64 = ct.int8, ct.int16, ct.int32, ct.int64, ct.uint8, ct.uint32, ct.uint64
R, M, S, P = ct.RoundingMode, ct.MemoryOrder, ct.MemoryScope, ct.PaddingMode
DIRECTED = (R.RN, R.RZ, R.RM, R.RP)


def of(x, dtype):
    return ct.load(x, 0, 16).astype(dtype)


def float_arithmetic(x, y):
    for dtype in ct.static_iter((F16, BF16, F32, F64)):
        a, b = of(x, dtype), of(y, dtype)
        ct.store(y, 0, (a + b - a * b / a).astype(F32))
        ct.store(y, 0, (a % b + a // b - ct.maximum(-a, ct.minimum(a, abs(b)))).astype(F32))
        ct.store(y, 0, ct.where((a < b) | (a <= b) & (a == b) ^ (a != b) | (a > b) & (a >= b), y.dtype(1), y.dtype(2)))


def rounded_arithmetic(x, y):
    for mode in ct.static_iter(DIRECTED):
        for dtype in ct.static_iter((F32, F64)):
            a, b = of(x, dtype), of(y, dtype)
            c = ct.add(a, b, rounding_mode=mode) * 3 + ct.sub(a, b, rounding_mode=mode)
            d = ct.mul(a, b, rounding_mode=mode) / ct.truediv(a, b, rounding_mode=mode)
            ct.store(y, 0, (c - d * ct.sqrt(a, rounding_mode=mode)).astype(F32))


def fused(x, y):
    for mode in ct.static_iter(DIRECTED):
        a, b = of(x, F32), of(y, F32)
        ct.store(y, 0, ct.add(ct.mul(a, b, rounding_mode=mode, flush_to_zero=True), a, rounding_mode=mode,
                              flush_to_zero=True))


def flushed(x, y):
    a, b = of(x, F32), of(y, F32)
    c = ct.add(a, b, flush_to_zero=True) // ct.sub(a, b, flush_to_zero=True)
    d = ct.mul(a, b, flush_to_zero=True) % ct.truediv(a, b, flush_to_zero=True)
    e = ct.sqrt(a, flush_to_zero=True) - ct.rsqrt(a, flush_to_zero=True)
    f = ct.maximum(c, d, flush_to_zero=True) * ct.minimum(d, e, propagate_nan=True, flush_to_zero=True)
    ct.store(y, 0, f + ct.exp2(a, flush_to_zero=True))


def f32(t):
    return t.astype(F32)


def float_functions(x, y):
    for dtype in ct.static_iter((F16, BF16, F32, F64)):
        a = of(x, dtype)
        b = ct.exp(a) + ct.exp2(a) - ct.log(a) * ct.log2(a) / ct.sqrt(a) + ct.rsqrt(a)
        c = ct.sin(a) + ct.cos(a) - ct.tan(a) * ct.sinh(a) / ct.cosh(a) + ct.tanh(a)
        d = ct.floor(a) + ct.ceil(a) - ct.pow(a, b) * a ** 3
        ct.store(y, 0, f32(b + c * d))


def approximate(x, y):
    a, b = of(x, F32), of(y, F32)
    c = ct.truediv(a, b, rounding_mode=R.APPROX) - ct.truediv(a, b, rounding_mode=R.FULL)
    ct.store(y, 0, c * ct.sqrt(a, rounding_mode=R.APPROX))


def integer_arithmetic(x, y):
    for dtype in ct.static_iter((I8, I16, I32, I64, U8, U32, U64)):
        a, b = of(x, dtype), of(y, dtype)
        c = (a + b - a * b) // a % b + ct.cdiv(a, b)
        d = ((a & b) ^ (a | b)) << 1 >> ct.maximum(-a, ct.minimum(a, ~b))
        ct.store(y, 0, f32(ct.where((a < b) | (a <= b) & (a == b) ^ (a != b) | (a > b) & (a >= b), c, d)))
    ct.store(y, 0, f32(abs(of(x, I32))))


def casts(x, y):
    for dtype in ct.static_iter((ct.bool_, I8, I16, I32, I64, U8, U32, U64, F16, BF16, F64, TF32)):
        a = of(x, dtype)
        for other in ct.static_iter((ct.bool_, I8, I64, U32, F16, F32, F64)):
            ct.store(y, 0, f32(a.astype(other)))
    ct.store(y, 0, ct.bitcast(ct.bitcast(of(x, F32), I32) + ct.bitcast(of(y, F32), I32), F32))


def shapes(x, y):
    a = ct.reshape(of(x, F32), (2, 8))
    b = ct.cat((ct.permute(a, (1, 0)), ct.transpose(a)), 1)
    c = ct.extract(b, (0, 1), (8, 2)) + ct.broadcast_to(ct.reshape(ct.arange(2, dtype=F32), (1, 2)), (8, 2))
    ct.store(y, 0, ct.reshape(c, (16,)) + ct.full((16,), 2.5, F32) - ct.zeros((16,), F32))


def reductions(x, y):
    for dtype in ct.static_iter((I32, U32, F32, F64)):
        a = ct.reshape(of(x, dtype), (2, 8))
        b = ct.sum(a, 1, keepdims=True) - ct.prod(a, 1, keepdims=True) * ct.max(a, 1, keepdims=True)
        c = b + ct.min(a, 1, keepdims=True) + ct.reduce(a, 1, lambda p, q: p * q + p, 0, keepdims=True)
        d = ct.argmax(a, 1, keepdims=True) - ct.argmin(a, 1, keepdims=True)
        e = ct.cumsum(a, 1) + ct.cumprod(a, 1, reverse=True) - ct.scan(a, 0, lambda p, q: p + q - 1, 0)
        ct.store(y, 0, ct.reshape(f32(e * c + d.astype(dtype)), (16,)))


def control_flow(x, y, n):
    a = of(x, F32)
    for i in range(n):
        if i == 3:
            continue
        if i > n - 7:
            break
        a = a * 2 if i % 2 == 0 else a - i
    while ct.sum(a) > 1:
        a = a / 2
    for i in range(ct.int64(9), 100, n):
        a = a + i
    ct.assert_(n > 0, "n is not positive")
    ct.printf("%d %f\n", n, a)
    ct.store(y, ct.bid(0) + ct.bid(1) * ct.num_blocks(2), a)


def memory(x, y, z, n, xs):
    i = ct.arange(16, dtype=I32)
    for mode in ct.static_iter((P.ZERO, P.NEG_ZERO, P.NAN, P.POS_INF, P.NEG_INF, P.UNDETERMINED)):
        ct.store(z, (0, n), ct.load(z, (n, 0), (2, 8), padding_mode=mode, latency=3))
        ct.store(z, (0, n), ct.load(z, (0, n), (8, 2), order=(1, 0), padding_mode=mode, allow_tma=False), latency=4)
    v = z.tiled_view((2, 8), padding_mode=P.ZERO)
    v.store((n, 0), v.load((0, n)) + ct.num_tiles(z, 1, (2, 8)))
    ct.scatter(y, i + n, ct.gather(x, i, mask=i > 3, padding_value=1.5), mask=i < n)
    ct.scatter(y, i, ct.gather(x, i * 2, check_bounds=False, latency=2), check_bounds=False)
    ct.store(y.slice(0, n, n + 9), 0, ct.load(x.slice(0, n, n + 9), 0, 16))
    ct.store(xs[n], n, ct.load(xs[len(xs) - 1], n, 16))


def raw_memory(x, y, n):
    i, a, b = ct.arange(16, dtype=I32), x.get_raw_memory(), y.get_raw_memory()
    b.store_offset(i, a.load_offset(i + n, mask=i > 3, padding_value=2.0, latency=5), mask=i < n)
    b.atomic_add_offset(i, 1.0, mask=i < n)


def ordered(x, y):
    for scope in ct.static_iter((S.BLOCK, S.DEVICE, S.SYS)):
        for first, then in ct.static_iter(((M.RELAXED, M.RELAXED), (M.ACQUIRE, M.RELEASE))):
            a = ct.load(x, 1, 16, memory_order=first, memory_scope=scope)
            ct.store(y, 1, a, memory_order=then, memory_scope=scope)


def atomics(n, u, z):
    i = ct.arange(16, dtype=I32)
    for scope in ct.static_iter((S.BLOCK, S.DEVICE, S.SYS)):
        for order in ct.static_iter((M.RELAXED, M.ACQUIRE, M.RELEASE, M.ACQ_REL)):
            ct.atomic_add(n, i, 1, memory_order=order, memory_scope=scope)
            ct.atomic_cas(n, i, 1, 2, memory_order=order, memory_scope=scope)
    ct.atomic_add(z, i, 1.5)
    for a in ct.static_iter((n, u)):
        ct.atomic_max(a, i, ct.atomic_min(a, i, a.dtype(3)))
        ct.atomic_and(a, i, ct.atomic_or(a, i, a.dtype(3)))
        ct.atomic_xchg(a, i, ct.atomic_xor(a, i, a.dtype(3), check_bounds=False))


def products(x, y):
    for dtype, to in ct.static_iter(((F16, F32), (F16, F16), (BF16, F32), (F32, F32), (TF32, F32), (F64, F64),
                                     (I8, I32), (U8, I32))):
        a = ct.reshape(ct.load(x, 0, 256), (16, 16)).astype(dtype)
        ct.store(y, 0, ct.reshape(f32(ct.mma(a, a, ct.zeros((16, 16), to))), (256,)))


FLOATS, NUMBER = array(F32, 1, stride_constant=(1,)), scalar(I32)
KERNELS = {  # and their parameters
    **dict.fromkeys((float_arithmetic, rounded_arithmetic, fused, flushed, float_functions, approximate,
                     integer_arithmetic, casts, shapes, reductions, ordered, products), [FLOATS, FLOATS]),
    control_flow: [FLOATS, FLOATS, NUMBER], raw_memory: [FLOATS, FLOATS, NUMBER],
    memory: [FLOATS, FLOATS, array(F32, 2), NUMBER, arrays(FLOATS)],
    atomics: [array(I32, 1), array(U32, 1), array(F32, 1)],
}


@clause("EXP-6.each")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("body", KERNELS, ids=lambda f: f.__name__)
def test_functions(body, version):
    code = bytecode(ct.kernel(body), signature(*KERNELS[body], symbol="k"), version=version)
    assert version_of(code) == version
