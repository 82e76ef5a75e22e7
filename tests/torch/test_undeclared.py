"""Operators whose kernel stores to what is not declared: refused in graphs and at the first call [PT-5]."""

from typing import Annotated

import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402

X = torch.arange(40.0)
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@ct.kernel
def scaled(x: ct.Array["N"], f: float):  # noqa: F821
    ct.store(x, ct.bid(0), ct.load(x, ct.bid(0), 64) * f)


@ct.kernel
def counted(x: ct.Array["N"], count: ct.Array["N"], y, TWICE: ct.Constant[bool] = False):  # noqa: F821
    t = ct.load(x, ct.bid(0), 64)
    ct.store(y, ct.bid(0), t)
    if TWICE:
        ct.atomic_add(count, ct.arange(64, dtype=ct.int32), t)


def in_place():
    return ct.jit(scaled, grid="1")


def beside():
    return ct.jit(counted, grid="1", out=ct.Out("N", name="y"))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def graph(f):
    return torch.compile(f, fullgraph=True, backend="aot_eager")


def exported(f):
    class Module(torch.nn.Module):
        def forward(self, *args):
            return f(*args)

    return lambda *args: torch.export.export(Module(), args)


@pytest.mark.parametrize("how", [lambda f: f, graph, exported, torch.vmap, torch.func.grad],
                         ids=["eager", "compiled", "exported", "vmap", "grad"])
def test_operators(how):
    operator = cutile.torch.op("cutile_tests::undeclared", in_place())
    with pytest.raises(Exception, match=r"scaled stores to `x`, which is no output: write scaled.inout..?\"x"):
        how(lambda x: operator(x, 2.0))(X[:, None].clone() if how is torch.vmap else X.clone())


def test_fake_tensors():
    operator = cutile.torch.op("cutile_tests::undeclared_m", in_place())
    with torch._subclasses.FakeTensorMode() as mode, pytest.raises(ct.TileTypeError, match="scaled stores to `x`"):
        operator(mode.from_tensor(X), 2.0)


def test_functions_in_graphs_until_they_declare_it():
    f, x = in_place(), X.clone()
    with pytest.raises(Exception, match=r"write scaled.inout..?\"x"):
        graph(lambda x: f(x, 2.0))(x)
    f(x, 2.0)
    assert torch.equal(x, X * 2)  # outside of graphs
    f.inout("x")
    graph(lambda x: f(x, 2.0))(x)
    assert torch.equal(x, X * 4)


def test_lists():
    @ct.jit(grid="1")
    @ct.kernel
    def clear(xs: Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation())]):
        for i in range(len(xs)):
            ct.store(xs[i], 0, ct.zeros((64,), ct.float32))

    operator = cutile.torch.op("cutile_tests::clear", clear)
    with pytest.raises(ct.TileTypeError, match="clear stores to `xs`"):
        operator([X.clone()])
    operator = cutile.torch.op("cutile_tests::clear_2", clear.inout("xs"))

    @graph
    def f(x):
        a, b = x * 2, x * 3
        operator([a, b])
        return a + b

    assert torch.equal(f(X), torch.zeros(40))
    w = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="`xs`"):
        operator([X.clone(), w])
    y = w * 1
    operator([y])
    with pytest.raises(RuntimeError, match="writes to xs"):
        y.sum().backward()


def test_each_kind_of_call():
    """Constants say here what is stored to."""
    operator = cutile.torch.op("cutile_tests::counted", beside(), non_differentiable=("count",),
                               backward=lambda grad_y: {"x": grad_y})
    x = X.clone().requires_grad_()
    operator(x, torch.zeros(40)).sum().backward()
    assert torch.equal(x.grad, torch.ones(40))
    with pytest.raises(ct.TileTypeError, match="counted stores to `count`"):
        operator(x, torch.zeros(40), True)


def test_a_backward_by_a_kernel():
    @ct.jit(grid="1", out=ct.Out("N", name="grad_x"))
    @ct.kernel
    def back(grad_y: ct.Array["N"], count: ct.Array["N"], grad_x):  # noqa: F821
        ct.store(grad_x, ct.bid(0), ct.load(grad_y, ct.bid(0), 64))
        ct.store(count, ct.bid(0), ct.load(grad_y, ct.bid(0), 64))

    operator = cutile.torch.op("cutile_tests::counted_g", beside(), backward=back, non_differentiable=("count",))
    with pytest.raises(ct.TileTypeError, match="back stores to `count`"):
        operator(X.clone().requires_grad_(), torch.zeros(40)).sum().backward()
