"""Stores to tensors that autograd follows [PT-7]: refused, or an error once a gradient is asked for; never wrong."""

import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402

BACKENDS = [None, "eager", "aot_eager"]
# PyTorch's own caches, when they are reset
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@ct.kernel
def fill(x, value):
    ct.store(x, ct.bid(0), ct.full((4,), value, x.dtype))


@ct.kernel
def copy(x, pair):
    ct.store(pair[1], ct.bid(0), ct.load(x, ct.bid(0), 4) + ct.load(pair[0], ct.bid(0), 4))


def filled(t):
    ct.launch(None, (2,), fill, (t, 3.0))
    return t


def run(f, backend):
    """The value and the gradient of f at ones."""
    p = torch.nn.Parameter(torch.ones(8))
    y = (f if backend is None else torch.compile(f, fullgraph=True, backend=backend))(p)
    y.backward()
    return y.item(), p.grad


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
@pytest.mark.parametrize("part", [lambda p: p, lambda p: p[4:], lambda p: p.view(2, 4)[1]])
def test_a_leaf_that_requires_grad(backend, part):
    def f(p):
        filled(part(p))
        return (p * p).sum()

    with pytest.raises(RuntimeError, match="stores to parameter `x`.*leaf that requires grad"):
        run(f, backend)


@pytest.mark.parametrize("strict", [False, True])
def test_a_leaf_in_an_exported_program(strict):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.p = torch.nn.Parameter(torch.ones(8))

        def forward(self, x):
            return x * filled(self.p)

    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        torch.export.export(Module(), (torch.ones(8),), strict=strict)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("part", [lambda q: q, lambda q: q[4:], lambda q: q.view(2, 4)[1]])
@pytest.mark.parametrize("before", [lambda p: p * 2, torch.exp])  # the second saves its result
def test_a_gradient_through_what_a_kernel_stored(backend, part, before):
    def f(p):
        q = before(p)
        filled(part(q))
        return (q * q).sum()

    with pytest.raises(RuntimeError, match="a kernel stored to parameter `x`|modified by an inplace operation"):
        run(f, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tensor_in_a_tuple(backend):
    def f(p):
        q = p * 2
        ct.launch(None, (2,), copy, (p.detach(), (p.detach(), q)))
        return q.sum()

    with pytest.raises(RuntimeError, match="a kernel stored to parameter `pair"):
        run(f, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f, value", [
    (lambda p: (p * p).sum() + filled(p * 2).detach().sum(), 32),
    (lambda p: (p * p * filled(torch.zeros_like(p))).sum(), 24),
    (lambda p: (p * p).sum() + filled(p.detach().clone()).sum(), 32),
])
def test_stores_that_no_gradient_goes_through(backend, f, value):
    y, grad = run(f, backend)
    assert y == value and torch.equal(grad, torch.full((8,), 6.0 if value == 24 else 2.0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_grad_mode(backend):
    def f(p):
        with torch.no_grad():
            filled(p)
        return (p * p).sum()

    assert run(f, backend)[0] == 72


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_that_asks_for_no_gradient_runs(backend):
    f = lambda p: filled(p * 2).sum()
    g = f if backend is None else torch.compile(f, fullgraph=True, backend=backend)
    assert g(torch.ones(8, requires_grad=True)).item() == 24


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # Dynamo does so itself
@pytest.mark.parametrize("backend", BACKENDS)
def test_inside_a_function_of_autograd(backend):
    """Its backward gives the gradient, so nothing is refused."""
    class Filled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            return filled(y)

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    assert torch.equal(run(lambda p: Filled.apply(p * 2).sum(), backend)[1], torch.full((8,), 10.0))
