"""Functions without an operator in graphs of torch.compile: results, sizes, what is written, what is refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402
from cutile.functions.tile_function import TileFunction, let_trace  # noqa: E402

X = torch.arange(300.0)
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")


@ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"), defaults={"TILE": lambda N: 64})
@ct.kernel
def scaled(x: ct.Array["N"], y, TILE: ct.Constant[int], factor: float = 2.0):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE) * factor)


@ct.jit(grid="cdiv(N, 64)", out=(ct.Out("N", name="a"), ct.Out("N", name="b", dtype=ct.int32)))
@ct.kernel
def two(x: ct.Array["N"], a, b):  # noqa: F821
    t = ct.load(x, ct.bid(0), 64)
    ct.store(a, ct.bid(0), t + 1)
    ct.store(b, ct.bid(0), t.astype(ct.int32))


@ct.jit(grid="cdiv(N, 64)", out=ct.Out("N", name="y"))
@ct.kernel
def beside(x: ct.Array["N"], count: ct.Array["N"], y):  # noqa: F821
    t = ct.load(x, ct.bid(0), 64)
    ct.store(y, ct.bid(0), t + 1)
    ct.store(count, ct.bid(0), t + 2)


beside.inout("count")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compiled(f, **options):
    return torch.compile(f, fullgraph=True, **{"backend": "aot_eager", **options})


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_are_those_outside_of_graphs(backend, dynamic):
    f = compiled(lambda x: (scaled(x) + 1, scaled(x, factor=3.0, TILE=32), *two(x)), backend=backend, dynamic=dynamic)
    for n in (300, 130):
        x = X[:n]
        for got, wanted in zip(f(x), (2 * x + 1, 3 * x, x + 1, x.int()), strict=True):
            assert torch.equal(got, wanted) and got.dtype == wanted.dtype


def test_what_is_written_comes_back():
    found = compiled(lambda x: beside(x * 1, torch.zeros_like(x)))(X)
    assert [torch.equal(a, b) for a, b in zip(found, (X + 2, X + 1), strict=True)] == [True, True]
    count = torch.zeros(300)
    compiled(lambda x, c: beside(x, c)[1] + 0)(X, count)
    assert torch.equal(count, X + 2)


def test_results_have_no_gradient_as_outside_of_graphs():
    w = torch.ones(300, requires_grad=True)
    compiled(lambda x: scaled(x) + x)(w).sum().backward()
    assert torch.equal(w.grad, torch.ones(300)) and not scaled(w).requires_grad


def test_a_leaf_is_not_written():
    with pytest.raises(RuntimeError, match="stores to parameter `count`"):
        compiled(lambda x, c: beside(x, c))(X, torch.zeros(300, requires_grad=True))


def test_functions_that_were_called_before_the_import(monkeypatch):
    monkeypatch.setattr(TileFunction, "_tracer", None)
    early = ct.jit(scaled.kernel, grid="cdiv(N, 64)", out=ct.Out("N"), defaults={"TILE": 64})
    early(X)
    monkeypatch.undo()
    let_trace(TileFunction._tracer)  # as the import does
    assert torch.equal(compiled(lambda x: early(x))(X), 2 * X)


def test_the_import_finds_all_functions():
    assert all(hasattr(type(f).__call__, "_torchdynamo_disable") is False for f in (scaled, two, beside))


def test_out_breaks_the_graph():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="only outside of graphs"):
        compiled(lambda x: scaled(x, out=torch.empty_like(x)))(X)
    f = torch.compile(lambda x: scaled(x + 1, out=torch.empty_like(x)) + 1, backend="aot_eager")
    assert torch.equal(f(X), 2 * (X + 1) + 1)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_need_names(strict):
    class Model(torch.nn.Module):
        def forward(self, x):
            return scaled(x) + 1

    with pytest.raises(Exception, match=r"cutile\.torch\.op"):
        torch.export.export(Model(), (X,), strict=strict)


@pytest.mark.parametrize("arguments, says", [
    ((torch.zeros(3, 4),), "`x` must have 1 axis"),
    ((torch.zeros(3, dtype=torch.complex64),), "complex64 cannot be passed"),
])
def test_errors_in_graphs(arguments, says):
    with pytest.raises(Exception, match=says):
        compiled(lambda *a: scaled(*a))(*arguments)


def test_calls_outside_of_graphs_are_plain():
    assert np.array_equal(scaled(np.ones(3, np.float32)), np.full(3, 2, np.float32))
    given = torch.empty(300)
    assert scaled(X, out=given) is given and torch.equal(given, 2 * X)
    with pytest.raises(TypeError, match="scaled"):
        scaled(X, 64, 2.0, 5)
