"""Launches in graphs [PT-1…4, PT-6…8]: torch.compile, torch.export, other processes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402
from cutile.torch import launching  # noqa: E402
from tests.torch.graph_kernels import Scale, increment, scaled  # noqa: E402

ROOT = Path(__file__).parents[2]


# PyTorch's own caches, when they are reset
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compiled(f, **options):
    return torch.compile(f, **{"fullgraph": True, "backend": "aot_eager", **options})


def scale(x, factor):
    y = torch.empty_like(x)
    ct.launch(None, (ct.cdiv(x.shape[0], 16),), scaled, (x * 2, y, factor, 16))
    return y + 1


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("factor", [3, 0.5, True])
def test_a_launch_in_a_full_graph(dynamic, factor):
    f = compiled(scale, dynamic=dynamic)
    for n in (16, 50, 51):
        x = torch.randn(n)
        assert torch.equal(f(x, factor), x * 2 * factor + 1)


def test_sizes_stay_symbolic():
    graphs = []
    f = compiled(scale, dynamic=True, backend=lambda graph, _: graphs.append(graph) or graph)
    for n in (16, 50, 51):
        f(torch.ones(n), 2.0)
    assert len(graphs) == 1


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch calls it itself
def test_code_by_inductor():
    """The compiler moves writes to where it can: the values must stay."""
    def f(x):
        y = torch.empty_like(x)
        ct.launch(None, (2,), scaled, (x, y, 2.0, 16))
        z = y * 3
        ct.launch(None, (2,), increment, (y,))
        return y, z

    y, z = compiled(f, backend="inductor")(torch.ones(32))
    assert torch.equal(y, torch.full((32,), 3.0)) and torch.equal(z, torch.full((32,), 6.0))


def test_what_is_written_follows_from_the_kernel():
    """[PT-3] Only what the kernel stores to counts as written."""
    graphs = []
    x = torch.ones(16)
    compiled(scale, backend=lambda graph, _: graphs.append(graph) or graph)(x, 2.0)
    [node] = [n for n in graphs[0].graph.nodes if "cutile" in str(n.target)]
    read, written = node.args[:2]
    assert len(read) == 1 and len(written) == 1 and "empty_like" in str(written[0].target)
    assert x._version == 0


def test_an_input_that_is_written():
    def f(x):
        ct.launch(None, (2,), increment, (x,))
        return x.sum()

    x = torch.zeros(32)
    before = x._version
    assert compiled(f)(x) == 32 and x._version > before and torch.equal(x, torch.ones(32))
    view = torch.zeros(64)
    compiled(f)(view[32:])
    assert view.sum() == 32 and view[:32].sum() == 0


def test_kernels_are_told_apart():
    @ct.kernel
    def negated(x, y, factor, N: ct.Constant[int]):
        ct.store(y, ct.bid(0), -ct.load(x, ct.bid(0), N))

    def f(kernel, x):
        y = torch.zeros_like(x)
        ct.launch(None, (1,), kernel, (x, y, 2, 16))
        return y

    g = compiled(f)
    hinted = scaled.replace_hints(occupancy=2)
    for kernel, want in [(scaled, 2), (negated, -1), (scaled, 2), (hinted, 2), (negated, -1)]:
        assert g(kernel, torch.ones(16))[0] == want


def test_constants_are_told_apart():
    @ct.kernel
    def power(x, y, P: ct.Constant):
        ct.store(y, 0, ct.load(x, 0, 16) ** P)

    def f(x, p):
        y = torch.zeros_like(x)
        ct.launch(None, (1,), power, (x, y, p))
        return y

    g = compiled(f)
    assert [g(torch.full((16,), 3.0), p)[0].item() for p in (1, 2, 3, 2.0, 3.0, 0.5)] == [
        3, 9, 27, 9, 27, pytest.approx(3**0.5)]


def test_lists_and_tuples():
    @ct.kernel
    def k(xs, pair):
        ct.store(pair[1], 0, ct.load(xs[0], 0, 16) + ct.load(xs[1], 0, 16) + ct.load(pair[0], 0, 16))

    def f(x):
        y = torch.zeros_like(x)
        ct.launch(None, (1,), k, ([x, x * 2], (x * 3, y)))
        return y

    assert torch.equal(compiled(f)(torch.ones(16)), torch.full((16,), 6.0))


def test_a_constant_that_no_text_holds():
    @ct.kernel
    def cast(x, y, D: ct.Constant):
        ct.store(y, 0, ct.load(x, 0, 16).astype(D).astype(ct.float32))

    def f(x):
        y = torch.zeros_like(x)
        ct.launch(None, (1,), cast, (x, y, torch.int32))
        return y

    assert torch.equal(compiled(f)(torch.full((16,), 2.5)), torch.full((16,), 2.0))


def test_dimensions_that_are_constants():
    @ct.kernel
    def whole(x: ct.Array["=N"], y):  # noqa: F722
        ct.store(y, 0, ct.load(x, 0, x.shape[0]))

    def f(x):
        y = torch.zeros_like(x)
        ct.launch(None, (1,), whole, (x, y))
        return y

    for n in (16, 32):
        assert torch.equal(compiled(f)(torch.ones(n)), torch.ones(n))


def test_errors_of_kernels_keep_their_lines():
    @ct.kernel
    def wrong(x, y):
        ct.store(y, 0, ct.load(x, 0, 3))

    def f(x):
        y = torch.zeros_like(x)
        ct.launch(None, (1,), wrong, (x, y))
        return y

    with pytest.raises(ct.TileTypeError, match="power of two.*\n.*test_launching.py"):
        compiled(f)(torch.ones(16))


def test_vmap_has_no_rule_and_says_so():
    def f(x):
        return torch.func.vmap(lambda row: scale(row, 3))(x)

    with pytest.raises(Exception, match="a launch inside vmap has no rule.*register_vmap"):
        compiled(f)(torch.ones(2, 16))


def test_an_array_that_no_kernel_takes():
    with pytest.raises(TypeError, match=r"kernel argument #0 \(`x`\).*complex64"):
        compiled(lambda x: ct.launch(None, (1,), scaled, (x, x, 1.0, 16)), fullgraph=False)(
            torch.zeros(16, dtype=torch.complex64))


def test_wrong_calls():
    for call in (lambda x: ct.launch(None, (1,), scaled, (x,)), lambda x: ct.launch(None, (1,), scaled.function, (x,)),
                 lambda x: ct.launch(None, 1, scaled, (x, x, 1, 16))):
        with pytest.raises((TypeError, torch._dynamo.exc.Unsupported)):
            compiled(call)(torch.ones(16))


def test_eager_launches_are_as_before():
    x, y = torch.ones(16), torch.zeros(16)
    ct.launch(None, (1,), scaled, (x, y, 2, 16))
    assert torch.equal(y, x * 2) and y._version == 1
    out = np.zeros(16, np.float32)
    ct.launch(None, (1,), scaled, (x, out, 2, 16))
    assert out[0] == 2


def test_leaves_that_require_grad_are_refused():
    """[PT-7]"""
    x = torch.ones(16, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        ct.launch(None, (1,), increment, (x,))
    assert torch.equal(compiled(scale)(torch.ones(16, requires_grad=True), 2.0).detach(), torch.full((16,), 5.0))


# ------------------------------------------------------------------ export


@pytest.mark.parametrize("strict", [False, True])
def test_export(strict):
    x = torch.arange(48.0)
    length = torch.export.Dim("length", min=16, max=1000)
    program = torch.export.export(Scale(), (x,), strict=strict, dynamic_shapes=({0: length},))
    assert "cutile.launch" in str(program.graph)
    for n in (48, 20, 777):
        x = torch.randn(n)
        assert torch.equal(program.module()(x), (x + 1) * 3 - 1)


LOAD = """
import sys, torch
import cutile.torch
{also}
program = torch.export.load(sys.argv[1])
x = torch.randn(50)
print(torch.equal(program.module()(x), (x + 1) * 3 - 1))
"""


def in_another_process(path, also=""):
    code = LOAD.format(also=also)
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, cwd=ROOT)


def test_a_program_of_another_process(tmp_path):
    """[PT-2] The kernel is found by its name, or the error says what to import."""
    path = tmp_path / "scale.pt2"
    torch.export.save(torch.export.export(Scale(), (torch.ones(50),)), path)
    done = in_another_process(path, "import tests.torch.graph_kernels")
    assert done.stdout == "True\n", done.stderr
    assert "import tests.torch.graph_kernels before you run the graph" in in_another_process(path).stderr


def test_a_kernel_without_a_name(tmp_path):
    @ct.kernel
    def local(x, y):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16))

    class Module(torch.nn.Module):
        def forward(self, x):
            y = torch.empty_like(x)
            ct.launch(None, (4,), local, (x, y))
            return y

    path = tmp_path / "local.pt2"
    program = torch.export.export(Module(), (torch.ones(50),))
    assert torch.equal(program.module()(torch.ones(50)), torch.ones(50))
    torch.export.save(program, path)
    assert "define it at the top level of a module" in in_another_process(path).stderr


UNPREPARED = """
import torch, cutile as ct

@ct.kernel
def k(x, y):
    ct.store(y, 0, ct.load(x, 0, 4))

class Module(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        ct.launch(None, (1,), k, (x, y))
        return y

f, x = ct.jit(k, grid=(1,), out=ct.Out(like="x")), torch.ones(4)
for call in (lambda: ct.torch.op, lambda: torch.export.export(Module(), (x,)),
             lambda: torch.compile(Module(), fullgraph=True, backend="eager")(x),
             lambda: torch.compile(f, fullgraph=True, backend="eager")(x)):
    try:
        call()
    except Exception as e:
        print("@", e)
"""


def test_without_the_import(tmp_path):
    """Messages name it."""
    script = tmp_path / "script.py"
    script.write_text(UNPREPARED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    wanted = ["until you write: import cutile.torch", "import cutile.torch: launches become operators",
              "import cutile.torch, and the launch becomes an operator", "import cutile.torch, and the call becomes"]
    found = done.stdout.split("@ ")[1:]
    assert len(found) == 4, done.stderr
    for text, message in zip(wanted, found):
        assert text in message


def test_importing_cutile_does_not_import_torch():
    """[PT-1]"""
    code = "import cutile, cutile.functions, cutile.lib, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    importing = [p for p in (ROOT / "cutile").rglob("*.py") if p.parent.name != "torch"
                 and any(line.startswith(("import torch", "from torch")) for line in p.read_text().splitlines())]
    assert importing == []


def test_keys_name_kernels():
    compiled(scale)(torch.ones(16), 2.0)
    assert any(k.startswith("tests.torch.graph_kernels:scaled|[false") for k in launching._known)


@pytest.mark.parametrize("stream", [None, 0])
@pytest.mark.parametrize("current", ["default", "another"])
def test_the_default_stream(stream, current, monkeypatch):
    """In a graph it is the stream on which the graph runs, which CUDA graphs capture [PT-4]."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: current)
    monkeypatch.setattr(torch.cuda, "default_stream", lambda device=None: "default")
    graphs = []

    def f(x):
        y = torch.empty_like(x)
        ct.launch(stream, (2,), scaled, (x, y, 2.0, 16))
        return y

    f = torch.compile(f, backend=lambda graph, _: graphs.append(graph) or graph, fullgraph=current == "default")
    assert torch.equal(f(torch.ones(32)), torch.full((32,), 2.0))
    streams = [n.args[5] for g in graphs for n in g.graph.nodes if "cutile.launch" in str(n.target)]
    assert streams == [launching.CURRENT] * (current == "default")
