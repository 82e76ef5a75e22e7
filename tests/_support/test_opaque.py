"""PyTorch's compiler skips marked functions, which break the graph, whatever its state. Skipped without torch."""

import subprocess
import sys
import textwrap

import pytest

import cutile as ct

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own compiler causes warnings of torch


@ct.kernel
def twice(x, out):
    ct.store(out, 0, ct.load(x, 0, (4,)) * 2)


def doubled(x, kernel=twice):
    out = torch.zeros(4)
    ct.launch(None, (1,), kernel, (x, out))
    return out


def plain(x):
    return doubled(x) + 1


def repeated(x):
    return doubled(doubled(x) / 2) + 1


def in_a_loop(x):
    for _ in range(3):
        x = doubled(x) / 2
    return x * 2 + 1


def in_a_branch(x):
    if x.sum() > 0:
        return doubled(x) + 1
    return x


def in_a_mode(x):
    with torch.no_grad():
        y = doubled(x)
    return y + 1


def decorated_inside(x):
    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, (4,)) * 2)

    return doubled(x, k) + 1


def with_hints(x):
    return doubled(x, twice.replace_hints(occupancy=2)) + 1


class OfAutograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return doubled(x)

    @staticmethod
    def backward(ctx, g):
        return doubled(g)


def in_a_function_of_autograd(x):
    return OfAutograd.apply(x) + 1


@pytest.fixture
def compiled():
    torch._dynamo.reset()
    yield lambda f, **how: torch.compile(f, **{"backend": "eager", **how})
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("f", [plain, repeated, in_a_loop, in_a_branch, in_a_mode, decorated_inside, with_hints,
                               in_a_function_of_autograd], ids=lambda f: f.__name__)
def test_compiled_functions_launch(compiled, f, backend):
    g = compiled(f, backend=backend)
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            for x in (torch.arange(4.0), torch.arange(4.0) + 1):
                assert g(x).tolist() == [2 * v + 1 for v in x.tolist()]


def test_a_whole_graph_is_refused_by_name(compiled):
    with pytest.raises(RuntimeError, match=r"(?s)function launch.*ct\.launch\(\) runs a kernel.*import cutile.torch"):
        compiled(plain, fullgraph=True)(torch.arange(4.0))
    with pytest.raises(RuntimeError, match="a kernel is made of a function's source text"):
        compiled(decorated_inside, fullgraph=True)(torch.arange(4.0))


def test_a_custom_op_is_in_the_graph(compiled):
    op = torch.library.custom_op("cutile_tests::doubled", doubled_alone, mutates_args=())
    op.register_fake(torch.empty_like)
    assert compiled(lambda x: op(x) + 1, fullgraph=True)(torch.arange(4.0)).tolist() == [1, 3, 5, 7]


def doubled_alone(x: torch.Tensor) -> torch.Tensor:
    return doubled(x)


@pytest.mark.parametrize("dynamic", [None, True])
def test_cdiv_breaks_no_graph(compiled, dynamic):
    f = compiled(lambda x: x + ct.cdiv(x.shape[0], 3), fullgraph=True, dynamic=dynamic)
    assert [f(torch.zeros(n))[0].item() for n in (3, 4, 7, 9, 10)] == [1, 2, 3, 3, 4]


def test_errors_come_through(compiled):
    with pytest.raises(TypeError, match=r"kernel argument #0 \(`x`\).*complex64"):
        compiled(plain)(torch.zeros(4, dtype=torch.complex64))


STATES = {
    "torch first": "import torch\nimport cutile as ct",
    "torch later": "import cutile as ct\nimport torch",
    "launched before": "import cutile as ct\nimport numpy as np\n@ct.kernel\ndef k(x): ct.store(x, 0, 1.0)\n"
                       "ct.launch(None, (1,), k, (np.zeros(4),))\nimport torch",
}
PROGRAMS = {
    "traced": "f = lambda x: doubled(x) + 1",
    # Dynamo does not see these calls, and gets their frames directly.
    "below a frame that is skipped": """
        @torch._dynamo.decorators.skip
        def hidden(x):
            kernel, out = ct.kernel(other), torch.zeros(4)
            list(map(functools.partial(ct.launch, None, (1,)), [kernel], [(x, out)]))
            return out
        f = lambda x: hidden(x) + 1
    """,
}


# Each program runs in a process that is new, but for what has been imported: that takes seconds.
RUN = """
import functools
{state}
import os
import torch._dynamo

@ct.kernel
def twice(x, out):
    ct.store(out, 0, ct.load(x, 0, (4,)) * 2)

def other(x, out):
    ct.store(out, 0, ct.load(x, 0, (4,)) * 2)

def doubled(x):
    out = torch.zeros(4)
    ct.launch(None, (1,), twice, (x, out))
    return out

for name, program in {programs!r}.items():
    print(name, flush=True)
    if (child := os.fork()) == 0:
        exec(program)
        for _ in range(2):
            print(torch.compile(f, backend="eager")(torch.arange(4.0)).tolist(), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.mark.parametrize("state", STATES)
def test_processes_of_their_own(tmp_path, state):
    programs = {name: textwrap.dedent(program) for name, program in PROGRAMS.items()}
    file = tmp_path / "program.py"
    file.write_text(RUN.format(state=STATES[state], programs=programs))
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=300)
    printed = "".join(f"{name}\n" + "[1.0, 3.0, 5.0, 7.0]\n" * 2 for name in PROGRAMS)
    assert done.returncode == 0 and done.stdout == printed, done.stderr[-2000:]
