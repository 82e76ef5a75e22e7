"""Functions without an operator in graphs of torch.compile: results, sizes, what is written, what is refused."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402
from cutile.functions.tile_function import TileFunction, let_trace  # noqa: E402
from tests.torch import graph_kernels as kernels  # noqa: E402
from tools.docgen import framework_errors  # noqa: E402

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


# ------------------------------------------------------------------ what cannot be in a graph


def tuned(**given):
    return ct.autotune([{"P": 2.0}, {"P": 3.0}], quiet=True, timeout_s=None, **given)(
        ct.jit(kernels.power, grid="cdiv(N, 32)", out=ct.Out("N")))


@pytest.mark.parametrize("strict", [False, True])
def test_a_tuned_function_in_an_export(strict):
    f = tuned(reference=lambda x: x ** 2)

    class Model(torch.nn.Module):
        def forward(self, x):
            return f(x) + 1

    said = (r"^power is a tuned function: it searches by launching kernels, and torch.export has tensors without "
            r"memory. Search before, best = power.best\(...\), .*layer = cutile.torch.op\(.mine::power., "
            r"power.function\), and call layer\(..., ..best")
    with pytest.raises(TypeError, match=said):
        torch.export.export(Model(), (X,), strict=strict)


def test_what_the_error_of_an_export_says_to_write(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    f = tuned(check=lambda got, want: True)
    best = f.best(X)
    layer = cutile.torch.op("cutile_tests::found", f.function)

    class Model(torch.nn.Module):
        def forward(self, x):
            return layer(x, **best) + 1

    assert torch.equal(torch.export.export(Model(), (X,)).module()(X), f(X) + 1)


@pytest.mark.parametrize("strict", [False, True])
def test_a_function_in_an_export(strict):
    class Model(torch.nn.Module):
        def forward(self, x):
            return scaled(x) + 1

    with pytest.raises(TypeError, match=r'^torch.export needs operators with names: make one of scaled, layer = cutile.'
                                        r'torch.op\("mine::scaled", scaled\), and call that$'):
        torch.export.export(Model(), (X,), strict=strict)


@pytest.mark.parametrize("call", [
    lambda x: scaled.profile(x), lambda x: scaled.compile(x, target="sm_90"),
    lambda x: scaled.compile_all([{}], (x,), targets=["sm_90"]),
    lambda x: ct.testing.assert_matches(scaled, lambda x: 2 * x.double(), (x,)),
    lambda x: ct.testing.assert_repeatable(scaled, (x,)), lambda x: ct.testing.do_bench(lambda: None, repeats=1)],
    ids=["profile", "compile", "compile_all", "assert_matches", "assert_repeatable", "do_bench"])
def test_what_runs_or_compiles_kernels(call):
    """It breaks a graph, and is an error that says so where none may be broken."""
    with pytest.raises(torch._dynamo.exc.Unsupported, match="call it outside of what is compiled"):
        torch.compile(lambda x: call(x) or x, backend="eager", fullgraph=True)(X)
    assert torch.equal(torch.compile(lambda x: (call(x), x + 1)[1], backend="eager")(X), X + 1)


# ------------------------------------------------------------------ errors of PyTorch, which docs/errors.md explains


def compiled_in_full(call):
    return torch.compile(call, backend="eager", fullgraph=True)(X)


@pytest.mark.parametrize("part, call", [
    ("does not require grad", lambda: scaled(X.clone().requires_grad_()).sum().backward()),
    ("torch.compiler.disable", lambda: compiled_in_full(lambda x: scaled.profile(x))),
    ("graph_break", lambda: compiled_in_full(lambda x: scaled(x, out=torch.empty_like(x)))),
    ("failed to bind", lambda: compiled_in_full(lambda x: scaled(x, wrong=3))),
    ("Expected a value of type 'int'", lambda: compiled_in_full(lambda x: by_tiles(x, T=32.0)))])
def test_errors_of_pytorch(part, call):
    shown = next(text for text, *_ in framework_errors.PYTORCH if part in text)
    with pytest.raises(Exception, match=re.escape(shown)):
        call()


@ct.jit(grid="cdiv(N, T)", out=ct.Out("N"))
@ct.kernel
def by_tiles(x: ct.Array["N"], y, T: ct.Constant[int] = 32):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T))
