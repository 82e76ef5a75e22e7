"""CPU tensors of PyTorch as arguments, without cutile importing it. Skipped where torch is not installed."""

import ml_dtypes
import numpy as np
import pytest

import cutile as ct

torch = pytest.importorskip("torch")


@ct.kernel
def double(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, N) + ct.load(x, i, N))


@ct.kernel
def copy(x, out, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, N))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"])
def test_arithmetic_dtypes(dtype):
    x = torch.arange(50).to(getattr(torch, dtype))
    out = torch.zeros_like(x)
    ct.launch(None, (4,), double, (x, out, 16))
    assert torch.equal(out, x + x)


@pytest.mark.parametrize("dtype", ["bool", "float8_e4m3fn", "float8_e5m2"])
def test_other_dtypes(dtype):
    x = torch.tensor([0.0, 1.0, 0.0, 1.0]).to(getattr(torch, dtype))
    out = torch.zeros(4).to(getattr(torch, dtype))
    ct.launch(None, (1,), copy, (x, out, 4))
    assert torch.equal(out.float(), x.float())


def test_pairs_of_float4():
    """A byte holds two elements, the first in its low half; the kernel sees single elements."""
    bits, out = torch.arange(24, dtype=torch.uint8).reshape(3, 8), torch.full((3, 8), 0xEE, dtype=torch.uint8)
    pairs = torch.float4_e2m1fn_x2

    @ct.kernel
    def doubled(x, y):
        values = ct.load(x, (0, 0), (4, 8)).astype(ct.float32)
        ct.store(y, (0, 0), (2 * values).astype(ct.float4_e2m1fn))

    def value(code):
        return [0, 0.5, 1, 1.5, 2, 3, 4, 6][code & 7] * (1 - (code >> 3) * 2)

    ct.launch(None, (1,), doubled, (bits.view(pairs)[:, :4], out.view(pairs)[:, 2:6]))
    for row, new in zip(bits[:, :4].tolist(), out[:, 2:6].tolist(), strict=True):
        for byte, got in zip(row, new, strict=True):
            for half in (0, 4):
                want = max(-6, min(6, 2 * value(byte >> half & 15)))
                assert value(got >> half & 15) == want
    assert bool((out[:, :2] == 0xEE).all()) and bool((out[:, 6:] == 0xEE).all())
    assert torch.equal(bits.flatten(), torch.arange(24, dtype=torch.uint8))


def test_pairs_of_float4_agree_with_ml_dtypes():
    bits = torch.arange(256, dtype=torch.uint8)
    out = np.zeros(512, ml_dtypes.float4_e2m1fn)
    ct.launch(None, (32,), copy, (bits.view(torch.float4_e2m1fn_x2), out, 16))
    assert out.view(np.uint8).tolist() == [half for byte in range(256) for half in (byte & 15, byte >> 4)]
    back = torch.zeros(256, dtype=torch.uint8)
    ct.launch(None, (32,), copy, (out, back.view(torch.float4_e2m1fn_x2), 16))
    assert torch.equal(back, bits)


def test_pairs_of_float4_of_one_tensor():
    bits = torch.arange(16, dtype=torch.uint8)
    x = bits.view(torch.float4_e2m1fn_x2)
    ct.launch(None, (3,), copy, (x[8:], x[:6], 4))
    assert bits.tolist() == [*range(8, 14), *range(6, 16)]

    @ct.kernel
    def halves(x, out):
        ct.store(out, 0, ct.load(x, 0, 4).astype(ct.uint8))

    with pytest.raises(TypeError, match="`x`, of float4_e2m1fn .* and `out`, of uint8, share; copy one"):
        ct.launch(None, (1,), halves, (x, bits))
    with pytest.raises(TypeError, match=r"`x`\): .*not contiguous along its last axis"):
        ct.launch(None, (1,), copy, (x[::2], x[::2], 4))


def test_views_and_gradients():
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    x = base.T[1].requires_grad_()  # strided
    out = torch.zeros(3)
    ct.launch(None, (1,), double, (x, out, 4))
    assert out.tolist() == [2.0, 10.0, 18.0]


def test_mixed_with_numpy():
    x = torch.ones(4)
    out = np.zeros(4, np.float32)
    ct.launch(None, (1,), double, (x, out, 4))
    assert out.tolist() == [2.0] * 4


def test_dtypes_in_tile_code():
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.full((4,), 1.5, torch.bfloat16).astype(torch.float32))

    out = torch.zeros(4)
    ct.launch(None, (1,), k, (out,))
    assert out.tolist() == [1.5] * 4


def test_a_dtype_that_tile_code_lacks():
    with pytest.raises(TypeError, match="complex64"):
        ct.launch(None, (1,), copy, (torch.zeros(4, dtype=torch.complex64), torch.zeros(4), 4))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "bool"])
def test_launches_like_one_before(dtype):
    kernel = ct.kernel(copy.function)
    for n in (20, 20, 24, 20):
        x = (torch.arange(n) % 3).to(getattr(torch, dtype))
        out = torch.zeros(n).to(getattr(torch, dtype))
        ct.launch(None, (3,), kernel, (x, out, 8))
        assert torch.equal(out.float(), x.float())
    assert len(kernel.plans) == 2


def test_a_tensor_that_becomes_a_lazy_view_is_refused_at_each_launch():
    x, out = torch.arange(4).to(torch.complex64), torch.zeros(4)
    for _ in range(2):
        with pytest.raises(TypeError, match="resolve_neg"):
            ct.launch(None, (1,), copy, (x.conj().imag, out, 4))
        ct.launch(None, (1,), copy, (x.real, out, 4))
        assert out.tolist() == [0, 1, 2, 3]


# ------------------------------------------------------------------ captured tensors


def evaluating(f):
    @ct.kernel
    def k(out):
        ct.store(out, 0, ct.static_eval(float(f())))

    def value():
        out = np.zeros(1, np.float32)
        ct.launch(None, (1,), k, (out,))
        return out[0]

    return value


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "bool"])
def test_elements_of_a_captured_tensor_count(dtype):
    rows = torch.ones(3, 4).to(getattr(torch, dtype))
    t = rows.T
    value = evaluating(lambda: t[3, 2])
    assert value() == 1
    rows.view(torch.uint8)[2].zero_()
    assert value() == 0


def test_the_layout_of_a_captured_tensor_counts():
    t, elsewhere = torch.ones(3, 4), torch.ones(5, 6, device="meta")
    value = evaluating(lambda: t.shape[0] * 100 + t.stride(0) * 10 + elsewhere.numel())
    assert value() == 370
    t.resize_(2, 2)
    assert value() == 250
    with pytest.raises(ct.TileStaticEvalError, match="a tensor on meta.*`elsewhere`"):
        evaluating(lambda: elsewhere.sum())()


def test_what_a_captured_module_has_counts():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.n = torch.nn.Linear(4, 5, device="meta"), 1

        def tile(self):
            return self.n * 10 + self.inner.weight.shape[0]

    net = Net()
    value = evaluating(lambda: net.tile())
    assert value() == 15
    net.n = 2
    assert value() == 25
    net.inner = torch.nn.Linear(4, 7, device="meta")
    assert value() == 27


# ------------------------------------------------------------------ autograd


@ct.kernel
def increment(x):
    ct.store(x, 0, ct.load(x, 0, (4,)) + 1)


def test_what_is_written_has_its_version_raised():
    x, out = torch.ones(4), torch.zeros(4)
    for n in range(1, 4):
        ct.launch(None, (1,), double, (x, out, 4))
        assert (x._version, out._version) == (0, n)
    view = out[1:]
    ct.launch(None, (1,), double, (x, view, 4))
    assert out._version == view._version == 4


def test_a_gradient_that_needs_what_was_overwritten():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    ct.launch(None, (1,), increment, (y,))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("wrap", [lambda x: x, torch.nn.Parameter, lambda x: x[:]])
def test_leaves_that_require_grad(wrap):
    x = torch.ones(4, requires_grad=True)
    t = wrap(x)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"parameter `x`.*leaf that requires grad.*no_grad"):
            ct.launch(None, (1,), increment, (t,))
        with torch.no_grad():
            ct.launch(None, (1,), increment, (t,))
        ct.launch(None, (1,), increment, (t.detach(),))
    assert t.tolist() == [5.0] * 4 and t._version == 4


def test_inference_mode():
    with torch.inference_mode():
        x = torch.zeros(4)
        ct.launch(None, (1,), increment, (x,))
    ct.launch(None, (1,), increment, (x,))
    assert x.tolist() == [2.0] * 4


def test_lists_and_tuples_of_tensors():
    @ct.kernel
    def k(xs, pair):
        ct.store(xs[1], 0, ct.load(pair[0], 0, (4,)))
        ct.store(pair[1], 0, ct.load(pair[0], 0, (4,)))

    a, b, c, d = (torch.zeros(4) for _ in range(4))
    for n in (1, 2):
        ct.launch(None, (1,), k, ([a, b], (c, d)))
        assert (b._version, c._version, d._version) == (n, 0, n)
    with pytest.raises(RuntimeError, match=r"parameter `pair\[1\]`"):
        ct.launch(None, (1,), k, ([a, b], (c, d.requires_grad_())))


def test_subclasses_run_none_of_their_code():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args, **kwargs):
            raise AssertionError

    memory = torch.zeros(4)
    ct.launch(None, (1,), increment, (memory.as_subclass(Loud),))
    assert memory.tolist() == [1.0] * 4 and memory._version == 1


def test_methods_of_subclasses_are_not_called():
    class Own(torch.Tensor):
        def data_ptr(self):
            raise AssertionError

        def numpy(self):
            raise AssertionError

        shape = dtype = requires_grad = property(lambda self: 1 / 0)

    memory, out = torch.arange(4.0), torch.zeros(4)
    ct.launch(None, (1,), copy, (memory.as_subclass(Own), out.as_subclass(Own), 4))
    assert torch.equal(memory, out) and out._version == 1
    with pytest.raises(RuntimeError, match="is a leaf that requires grad"):
        ct.launch(None, (1,), copy, (memory, torch.Tensor._make_subclass(Own, torch.zeros(4), True), 4))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch calls it itself
def test_tangents_of_forward_mode_would_be_wrong():
    from torch.autograd import forward_ad

    x, y = torch.arange(4.0), torch.zeros(4)
    for _ in range(3):  # so that C code runs it
        ct.launch(None, (1,), copy, (x, y, 4))
    with forward_ad.dual_level():
        ct.launch(None, (1,), copy, (x, y, 4))
        dual = forward_ad.make_dual(torch.zeros(4), torch.ones(4))
        for _ in range(3):
            with pytest.raises(RuntimeError, match="parameter `out`.*has a tangent of forward mode"):
                ct.launch(None, (1,), copy, (x, dual, 4))
            ct.launch(None, (1,), copy, (dual, y, 4))
        ct.launch(None, (1,), copy, (x, forward_ad.unpack_dual(dual).primal, 4))
    step = ct.prepare(copy, (1,), (x, y, 4))
    with forward_ad.dual_level():
        step.replace(out=forward_ad.make_dual(torch.zeros(4), torch.ones(4)))
        with pytest.raises(RuntimeError, match="has a tangent of forward mode"):
            step(None)
    ct.launch(None, (1,), copy, (x, y, 4))
    assert torch.equal(x, y)


def test_tensors_of_outside_inside_a_transform():
    x, y = torch.arange(4.0), torch.zeros(4)

    def f(t):
        ct.launch(None, (1,), copy, (x, y, 4))
        return t.sum()

    with pytest.raises(TypeError, match="inside vmap, grad or another transform of torch.func, even if it was made"):
        torch.func.grad(f)(torch.ones(4))


# ------------------------------------------------------------------ tensors without memory of their own


def by_vmap(f):
    torch.func.vmap(f)(torch.ones(2, 4))


def by_grad(f):
    torch.func.grad(lambda x: f(x).sum())(torch.ones(4))


def by_jvp(f):
    torch.func.jvp(f, (torch.ones(4),), (torch.ones(4),))


def by_functionalize(f):
    torch.func.functionalize(f)(torch.ones(4))


def fake(f):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        f(torch.ones(4))


def meta(f):
    f(torch.ones(4, device="meta"))


def given_back(f):
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    f(x)


def zeros_of_autograd(f):
    f(torch._efficientzerotensor(4))


def nested(f):
    f(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged))


def many_axes(f):
    f(torch.ones((1,) * 70))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch calls it itself
@pytest.mark.parametrize("state, says", [
    (by_vmap, "vmap.*custom_op"), (by_grad, "torch.func"), (by_jvp, "torch.func"), (by_functionalize, "torch.func"),
    (fake, "fake.*real one"), (meta, "device meta.*device='cpu'"), (given_back, "storage was given back"),
    (zeros_of_autograd, r"zeros.*x\.clone"), (nested, "NestedTensor"), (many_axes, r"\[0, 64\]")])
def test_tensors_without_memory(state, says):
    def launches(x):
        out = np.zeros(4, np.float32)
        ct.launch(None, (1,), copy, (x, out, 4))
        return x

    with pytest.raises(TypeError, match=rf"kernel argument #0 \(`x`\): a torch tensor.*{says}"):
        state(launches)
