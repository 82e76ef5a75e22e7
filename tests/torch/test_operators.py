"""Operators made of functions [PT-5, PT-10]: schemas, opcheck, gradients, vmap, autocast, what is refused."""

import copy
import pickle
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402
from cutile.torch import gradients, operators  # noqa: E402
from cutile.torch.schema import schema  # noqa: E402
from tests.torch import graph_kernels as kernels  # noqa: E402

OPERATORS = kernels.OPERATORS


def same(a, b):
    a, b = (x if isinstance(x, tuple | list) else (x,) for x in (a, b))
    return len(a) == len(b) and all(torch.allclose(x, y) and x.dtype == y.dtype for x, y in zip(a, b, strict=True))


# PyTorch's own caches, when they are reset
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("name", OPERATORS)
def test_values(name):
    operator, arguments, meaning = OPERATORS[name]
    assert same(operator(*arguments), meaning(*arguments))


@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(name):
    operator, arguments, _ = OPERATORS[name]
    torch.library.opcheck(operator, arguments)


def test_opcheck_of_an_operator_that_writes_and_of_one_with_gradients():
    torch.library.opcheck(kernels.ADD, (torch.ones(40), kernels.X))
    torch.library.opcheck(OPERATORS["double"][0], (kernels.X.clone().requires_grad_(),))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(name, dynamic):
    operator, arguments, meaning = OPERATORS[name]
    f = torch.compile(lambda *a: operator(*a), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert same(f(*arguments), meaning(*arguments))


def test_sizes_stay_symbolic():
    sizes = []

    def backend(graph, inputs):
        sizes.append([n.meta["example_value"].shape for n in graph.graph.nodes if "cutile" in str(n.target)])
        return graph

    for operator, shape in [(OPERATORS["a computed size"][0], "2*s"), (OPERATORS["a size by a function"][0], "2*s"),
                            (OPERATORS["double"][0], "s")]:
        torch._dynamo.reset()
        sizes.clear()
        f = torch.compile(operator, fullgraph=True, backend=backend, dynamic=True)
        for n in (40, 50, 60):
            f(torch.ones(n))
        assert len(sizes) == 1 and str(sizes[0][0][0]).startswith(shape)


@pytest.mark.parametrize(("function", "text"), [
    (kernels.DOUBLE, "(Tensor x) -> Tensor"),
    (kernels.elementwise(kernels.plus), "(Tensor x, Tensor z, SymInt count) -> Tensor"),
    (kernels.elementwise(kernels.power), "(Tensor x, int? N=None, float P=2.0) -> Tensor"),
    (kernels.elementwise(kernels.scaled_by, name="y"),
     "(Tensor x, float factor, SymInt count, bool negative) -> Tensor"),
    (kernels.SUMS, "(Tensor x, int? TILE=None) -> (Tensor, Tensor)"),
    (kernels.ADD_TO, "(Tensor(a!) total, Tensor x) -> ()"),
])
def test_schemas(function, text):
    assert schema(function) == text


def test_the_function_itself_in_a_graph():
    """A function that has an operator is that operator where it is traced."""
    f = torch.compile(lambda x: kernels.DOUBLE(x) + 1, fullgraph=True, backend="aot_eager")
    assert same(f(kernels.X), kernels.X * 2 + 1)


def test_what_is_written():
    total = torch.zeros(40)
    kernels.ADD(total, kernels.X)
    assert same(total, kernels.X) and total._version >= 1

    @torch.compile(fullgraph=True, backend="aot_eager")
    def f(x):
        total = x * 2
        kernels.ADD(total, x)
        kernels.ADD(total, x)
        return total

    assert same(f(kernels.X), kernels.X * 4)


def test_gradients():
    double, x = OPERATORS["double"][0], kernels.X.clone().requires_grad_()
    [g] = torch.autograd.grad(double(x).pow(2).sum(), x)
    assert same(g, 8 * kernels.X)
    f = torch.compile(lambda x: double(double(x)), fullgraph=True, backend="aot_eager")
    assert same(torch.autograd.grad(f(x).sum(), x)[0], torch.full((40,), 4.0))
    assert torch.autograd.gradcheck(double, (torch.randn(40, dtype=torch.float64, requires_grad=True),))


def test_gradients_by_a_python_function():
    def backward(x, P, grad_y):
        return {"x": grad_y * P * x ** (P - 1)}

    cube = cutile.torch.op("cutile_tests::cube_g", kernels.elementwise(kernels.power), backward=backward)
    x = torch.rand(40, dtype=torch.float64, requires_grad=True) + 0.5
    assert torch.autograd.gradcheck(lambda x: cube(x, None, 3.0), (x,))


def test_an_operator_without_gradients_says_so():
    y = OPERATORS["like a parameter"][0](torch.ones(40, requires_grad=True))
    with pytest.raises(RuntimeError, match="cutile_tests::like has no gradient: make it by cutile.torch.op"):
        y.sum().backward()


@pytest.mark.parametrize("dim", [0, 1])
def test_vmap(dim):
    x = torch.randn(3, 40) if dim == 0 else torch.randn(40, 3)
    assert same(torch.vmap(OPERATORS["double"][0], in_dims=dim)(x), (x * 2).movedim(dim, 0))
    rows = torch.randint(-9, 10, (3, 8, 5)).float()  # whose sums are exact in every order
    got = torch.vmap(OPERATORS["two outputs"][0])(rows)
    assert same(got, (rows.sum(2), (rows * rows).sum(2)))
    batches = torch.randn(2, 3, 40)
    assert same(torch.vmap(torch.vmap(OPERATORS["double"][0]))(batches), batches * 2)


def test_a_rule_for_vmap():
    def rule(info, in_dims, x):
        return x * 2, in_dims[0]

    doubled = cutile.torch.op("cutile_tests::double_v", kernels.elementwise(kernels.double), vmap=rule)
    assert same(torch.vmap(doubled)(torch.ones(3, 40)), torch.full((3, 40), 2.0))


def test_autocast_converts_nothing():
    with torch.autocast("cpu", torch.bfloat16):
        assert OPERATORS["double"][0](kernels.X).dtype is torch.float32


def test_threads():
    found = [None] * 8

    def run(i):
        x = torch.full((40,), float(i))
        found[i] = all(same(OPERATORS["double"][0](x), x * 2) for _ in range(20))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(found)


# ------------------------------------------------------------------ refused


def test_what_is_no_function():
    for other in (None, 5, [], object()):
        with pytest.raises(TypeError, match="op.. makes an operator of a function made by ct.jit, not of "):
            cutile.torch.op("mine::other", other)
    with pytest.raises(TypeError, match="made by ct.jit, not of <kernel"):
        cutile.torch.op("cutile_tests::no", kernels.double)


def test_a_gradient_of_what_is_written():
    with pytest.raises(ValueError, match="add_to writes to total"):
        cutile.torch.op("cutile_tests::no", kernels.ADD_TO, backward=kernels.double_backward)


def test_names_of_backward():
    def backward(x, grad_z):
        return {}

    with pytest.raises(TypeError, match="takes grad_z, which is no parameter, output or gradient of double.*grad_y"):
        cutile.torch.op("cutile_tests::no1", kernels.elementwise(kernels.double), backward=backward)

    @ct.jit(grid="cdiv(N, 32)", out=ct.Out("N"))
    @ct.kernel
    def wrong(grad_y: ct.Array["N"], result):  # noqa: F821
        ct.store(result, ct.bid(0), ct.load(grad_y, ct.bid(0), 32))

    with pytest.raises(TypeError, match="output result of wrong is no gradient; those of double are named grad_x"):
        cutile.torch.op("cutile_tests::no2", kernels.elementwise(kernels.double), backward=wrong)


@pytest.mark.parametrize("make", [lambda f, t: cutile.torch.op("cutile_tests::no6", t),
                                  lambda f, t: cutile.torch.op("cutile_tests::no6", f, backward=t)])
def test_tuned_functions(make):
    f = kernels.elementwise(kernels.power)
    tuned = ct.autotune([{"P": 2.0}, {"P": 3.0}], quiet=True)(f)
    with pytest.raises(TypeError, match=r"power.function, and calls of the operator .*\*\*power.best"):
        make(f, tuned)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="f.function, with what a search has found"):
        torch.compile(lambda x: tuned(x), fullgraph=True, backend="eager")(kernels.X)


def test_an_operator_of_an_operator():
    with pytest.raises(TypeError, match="cutile_tests::double is an operator already; the function is its attribute"):
        cutile.torch.op("cutile_tests::no7", OPERATORS["double"][0])


def test_wrong_arguments():
    operator = OPERATORS["a number"][0]
    with pytest.raises(TypeError, match="cutile_tests::plus has no argument cont; did you mean count"):
        operator(kernels.X, kernels.X, cont=2)
    with pytest.raises(TypeError, match="`x` must be a tensor, got None"):
        operator(None)


def test_a_parameter_whose_type_is_open():
    @ct.jit(grid="1", out=ct.Out("N", name="y"))
    @ct.kernel
    def f(x: ct.Array["N"], y, c=None):  # noqa: F821
        ct.store(y, 0, ct.load(x, 0, 4))

    with pytest.raises(TypeError, match="type of parameter `c` is open"):
        cutile.torch.op("cutile_tests::no3", f)


@pytest.mark.parametrize("name, kind", [("no4", ValueError), ("::no4", ValueError), ("a::b::no4", ValueError),
                                        ("a::n o", ValueError), ("", ValueError), (4, TypeError)])
def test_names_without_namespace(name, kind):
    with pytest.raises(kind, match='such as "mine::double", not'):
        cutile.torch.op(name, kernels.DOUBLE)


def test_unknown_names_without_gradient():
    with pytest.raises(ValueError, match="non_differentiable names 'Y', which is neither.*there are x, y"):
        cutile.torch.op("cutile_tests::no5", kernels.elementwise(kernels.double), non_differentiable=("Y",))


@pytest.mark.parametrize("call", [lambda o, x: o(x, 3.0), lambda o, x: o(x, factor=3.0),
                                  lambda o, x: o(x.clone().requires_grad_(), 3.0)])
def test_a_number_without_annotation(call):
    """The schema has a tensor there, so every call says what to annotate."""
    @ct.jit(grid="cdiv(N, 32)", out=ct.Out("N", name="y"))
    @ct.kernel
    def scale(x: ct.Array["N"], factor, y):  # noqa: F821
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 32) * factor)

    with pytest.raises(TypeError, match="takes `factor` for a tensor, because the parameter has no annotation, and got "
                                        "3.0: annotate it in the kernel, factor: float"):
        call(cutile.torch.op("cutile_tests::scale", scale), kernels.X)


def test_arrays_of_other_libraries():
    with pytest.raises(TypeError, match="takes tensors of PyTorch, and `x` is of type ndarray; torch.as_tensor.*double "
                                        "itself takes"):
        OPERATORS["double"][0](kernels.X.numpy())


# ------------------------------------------------------------------ a name that is used again


def test_a_name_that_is_used_again(recwarn):
    """Every call of either operator runs the new function; the old function is itself again."""
    old = kernels.elementwise(kernels.double)
    first = cutile.torch.op("cutile_tests::again", old)
    cutile.torch.op("cutile_tests::again", kernels.elementwise(kernels.double))  # the same function, defined again
    assert not recwarn.list
    with pytest.warns(UserWarning, match="cutile_tests::again was made of .*double, and is now made of .*as_float"):
        second = cutile.torch.op("cutile_tests::again", kernels.elementwise(kernels.as_float, dtype=ct.float32))
    for operator in (first, second):
        for call in (operator, lambda x, operator=operator: operator(x=x),
                     torch.compile(lambda x, operator=operator: operator(x), fullgraph=True, backend="eager")):
            assert same(call(kernels.X), kernels.X)
        assert same(operator(kernels.X.clone().requires_grad_()).detach(), kernels.X)
    assert same(old(kernels.X), kernels.X * 2)


def test_two_operators_of_one_function():
    function = kernels.elementwise(kernels.double)
    first, second = (cutile.torch.op(f"cutile_tests::of_one_{n}", function) for n in (1, 2))
    assert same(first(kernels.X), kernels.X * 2) and same(second(kernels.X), kernels.X * 2)
    assert function.operator is first  # what function(x) is in graphs and where x requires grad
    third = cutile.torch.op("cutile_tests::of_one_1", function)
    assert function.operator is third


# ------------------------------------------------------------------ what an operator has of its function


def test_the_function_of_an_operator():
    operator, (x, *_), _ = OPERATORS["double"]
    assert operator.function is kernels.DOUBLE and operator.kernel is kernels.double
    y = torch.empty_like(x)
    assert operator(x, out=y) is y and same(y, x * 2)
    assert same(operator(x, out=None, stream=None), x * 2)
    with pytest.raises(TypeError, match="the third argument of launch.. must be a kernel: cutile_tests::double is an "
                                        "operator; call it, or launch its kernel, double.kernel"):
        ct.launch(None, (2,), operator, (x, y))
    with pytest.raises(TypeError, match="dtype float32"):
        operator(x, out=y.double())
    ct.testing.assert_matches(operator, lambda x: x + x, (x,))
    assert operator._arguments_of_kernel((x,))[0].shape == x.shape and operator.launched is kernels.DOUBLE.launched
    for method in (operator.compile, operator.compile_all, operator.profile):
        assert method.__self__ is kernels.DOUBLE


def test_copies_and_pickles():
    """A module that holds an operator can be copied and saved; another process makes the operator first."""
    module = torch.nn.Module()
    module.operator = operator = OPERATORS["double"][0]
    assert copy.deepcopy(module).operator is operator and copy.copy(operator) is operator
    assert pickle.loads(pickle.dumps(module)).operator is operator
    code = f"import pickle, cutile.torch; pickle.loads({pickle.dumps(operator)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          cwd=Path(__file__).parents[2])
    assert "there is no operator cutile_tests::double here: import tests.torch.graph_kernels, or" in done.stderr


def test_out_in_a_graph():
    with pytest.raises((TypeError, torch._dynamo.exc.Unsupported), match="out= and stream= only outside of graphs"):
        torch.compile(lambda x, y: OPERATORS["double"][0](x, out=y), fullgraph=True, backend="eager")(
            kernels.X, kernels.X.clone())


def test_errors_of_types_under_autocast():
    @ct.jit(grid="cdiv(N, 32)", out=ct.Out("N"))
    @ct.kernel
    def times(x: ct.Array["N"], w: ct.Array["N"], y):  # noqa: F821
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 32) * ct.load(w, ct.bid(0), 32))

    operator, x = cutile.torch.op("cutile_tests::times", times), torch.eye(40) @ torch.eye(40)
    for requires_grad in (False, True):
        w = torch.ones(40, requires_grad=requires_grad)
        with pytest.raises(ct.TileTypeError) as error, torch.autocast("cpu", torch.bfloat16):
            operator((x @ x)[0], w)
        assert "register_autocast" in error.value.__notes__[0]
    operator.register_autocast("cpu", torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert operator((x @ x)[0], w).dtype is torch.float32


# ------------------------------------------------------------------ calls that go past the dispatcher


class Recorded(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))


def test_a_plain_call_goes_past_the_dispatcher(monkeypatch):
    operator, (x,), meaning = OPERATORS["double"]
    calls = []
    monkeypatch.setattr(operator, "direct", lambda *a: calls.append(a) or meaning(*a))
    with torch.no_grad():
        operator(x), operator(torch.nn.Parameter(x))
    with torch.inference_mode():
        operator(x)
    operator(x)
    assert len(calls) == 4


@pytest.mark.parametrize("what", ["grad", "mode", "vmap", "func.grad", "forward", "profiler", "trace", "keyword"])
def test_what_sees_operators_sees_every_call(what, monkeypatch):
    """Where something in the thread or in an argument asks for the dispatcher, no call goes past it."""
    operator, (x,), meaning = OPERATORS["double"]
    monkeypatch.setattr(operator, "direct", lambda *a: pytest.fail("the call went past the dispatcher"))
    monkeypatch.setattr(gradients, "kernel_is_next", lambda keyset: False)  # past what comes after autograd: below
    match what:
        case "grad":
            assert operator(x.clone().requires_grad_()).grad_fn is not None
        case "mode":
            with Recorded() as mode:
                operator(x)
            assert mode.names == [f"{operator._qualname.replace('::', '.')}.default"]
        case "vmap":
            assert same(torch.vmap(operator)(torch.stack([x, x])), torch.stack([meaning(x)] * 2))
        case "func.grad":
            assert same(torch.func.grad(lambda x: operator(x).sum())(x), torch.full_like(x, 2))
        case "forward":
            with torch.autograd.forward_ad.dual_level():
                operator(x)
        case "profiler":
            with torch.profiler.profile(record_shapes=True) as found:
                operator(x)
            assert operator._qualname in {e.key for e in found.key_averages()}
        case "trace":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                assert "double" in str(torch.jit.trace(lambda x: operator(x), (x,), check_trace=False).graph)
        case "keyword":
            assert same(operator(x=x), meaning(x))


@pytest.mark.parametrize("way", [operators._unfollowed, operators._unfollowed_one_by_one])
def test_which_arguments_go_past_the_dispatcher(way):
    class Tensor(torch.Tensor):
        pass

    def asked(args, arrays, grad):
        return way(args, bytes(arrays), operators._TENSORS, operators._OTHERS, grad)

    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    parameter, sub = torch.nn.Parameter(x, requires_grad=False), x.as_subclass(Tensor)
    cases = [(x, True, True), (parameter, True, True), (w, False, True), (sub, False, False), ([x], False, False),
             (3.0, False, False), (None, False, False), (np.ones(3), False, False)]
    for value, followed, unfollowed in cases:
        for args, arrays in (((value, 2), (1, 0)), ((x, 2, value), (1, 0, 1)), ((value,), (1, 0, 1))):
            assert asked(args, arrays, True) is followed and asked(args, arrays, False) is unfollowed
    for value, known in ((3, True), ("a", True), (None, True), (x, True), (np.float32(3), False), ([3], False)):
        assert asked((x, value), (1, 0), True) is known
    assert asked((x, sub), (1,), True) and asked((), (1, 0), True)  # what is too many the function refuses


def test_what_the_function_refuses_goes_to_the_dispatcher():
    operator, (x,), meaning = OPERATORS["double"]
    negative = torch.complex(torch.zeros_like(x), x).conj().imag
    with pytest.raises(TypeError, match="lazily negated"):
        operator.function.plain(negative)
    assert negative.is_neg() and same(operator(negative), meaning(-x))
    assert operator(x.to("meta")).shape == x.shape


@pytest.mark.parametrize("number", ["float32", "int64"])
def test_numbers_of_numpy_are_what_the_dispatcher_makes_of_them(number, monkeypatch):
    operator, x = cutile.torch.op("cutile_tests::scaled_by_numpy", scaled), torch.ones(40)
    given = []
    monkeypatch.setattr(operator, "direct", lambda x, factor, *_: given.append(type(factor)) or x * factor)
    assert same(operator(x, getattr(np, number)(3)), x * 3) and given == [float]


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of PyTorch, in its own code
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_graph_goes_past_what_comes_after_autograd(backend, monkeypatch):
    operator, (x,), meaning = OPERATORS["double"]
    calls = []
    f = torch.compile(lambda x: operator(operator(x)), fullgraph=True, backend=backend)
    with torch.no_grad():
        assert same(f(x), 4 * x)
        monkeypatch.setattr(operator, "direct", lambda *a: calls.append(a) or meaning(*a))
        assert same(f(x), 4 * x) and len(calls) == 2


@pytest.mark.parametrize("what", ["grad", "mode", "subclass", "negative", "meta"])
def test_what_comes_after_autograd_sees_calls_that_it_changes(what, monkeypatch):
    operator, (x,), meaning = OPERATORS["double"]
    monkeypatch.setattr(operator, "direct", lambda *a: pytest.fail("the call went past the dispatcher"))
    dispatched = getattr(torch.ops.cutile_tests, operator._qualname.split("::")[1])
    match what:
        case "grad":
            assert dispatched(x.clone().requires_grad_()).grad_fn is not None
        case "mode":
            with Recorded() as mode:
                dispatched(x)
            assert mode.names == [f"{operator._qualname.replace('::', '.')}.default"]
        case "negative":
            negative = torch.complex(torch.zeros_like(x), x).conj().imag
            assert same(dispatched(negative), meaning(-x))
        case "subclass":
            monkeypatch.undo()
            assert same(dispatched(Wrapped(x)), meaning(x))
        case "meta":
            assert dispatched(x.to("meta")).shape == x.shape


@pytest.mark.parametrize("call", ["call", "graph"])
def test_a_kernel_that_pytorch_was_told_of_is_called(call):
    operator = cutile.torch.op("cutile_tests::told", kernels.elementwise(kernels.plus))
    operator.register_kernel("cpu")(lambda x, z, count: x - z)
    f = operator if call == "call" else torch.compile(operator, fullgraph=True, backend="aot_eager")
    assert same(f(kernels.X, kernels.X, 40), torch.zeros(40))


def test_a_name_used_again_for_a_function_without_module():
    first, second = (ct.jit(kernels.SUMS.kernel, grid="M", out=kernels.SUMS.given["out"], defaults={"TILE": 64})
                     for _ in range(2))
    first.__module__ = None  # as of a function that an interpreter's prompt makes
    cutile.torch.op("mine::without_module", first)
    with pytest.warns(UserWarning, match=r"was made of \w+, and is now made of tests\.torch"):
        cutile.torch.op("mine::without_module", second)


# ------------------------------------------------------------------ what users get wrong


@ct.jit(grid="cdiv(N, T)", out=ct.Out("N"))
@ct.kernel
def scaled(x: ct.Array["N"], y, factor: float, T: ct.Constant[int] = 32):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T) * factor)


@ct.jit(grid="cdiv(N, 32)", out=ct.Out("N"))
def factory(f):
    return scaled.kernel


def made(function=scaled, name="cutile_tests::wrong", **given):
    return cutile.torch.op(name, function, **given)


WRONG = {"op": None}


def operator():
    WRONG["op"] = WRONG["op"] or made(name="cutile_tests::misused", backward=lambda factor, grad_y: {
        "x": factor * grad_y})
    return WRONG["op"]


@pytest.mark.parametrize("call, error, text", [
    (lambda: cutile.torch.op(scaled, "mine::scaled"), TypeError,
     "op() takes the name first: op('mine::scaled', scaled)"),
    (lambda: made(factory), TypeError, "factory is a factory: give what it returns, factory(...)"),
    (lambda: made(backward=factory), TypeError, "factory is a factory: give what it returns, factory(...)"),
    (lambda: made(name="aten::scaled"), ValueError, "the namespace aten is PyTorch's own; take another one, such as"),
    (lambda: made(non_differentiable="y"), TypeError,
     "non_differentiable is a tuple of names, such as ('y',), not 'y'"),
    (lambda: made(vmap=3), TypeError, "vmap of cutile.torch.op is a function, not 3"),
    (lambda: made(tags="pt2"), TypeError, "tags of cutile.torch.op is a tuple of tags, such as (torch.Tag.pointwise,), "
                                          "not 'pt2'"),
    (lambda: operator()[(3,)], TypeError,
     "cutile_tests::misused is an operator, and takes no grid in brackets; call it"),
    (lambda: operator()([kernels.X], 2.0), TypeError, "cutile_tests::misused takes tensors of PyTorch, and `x` is of "
                                                      "type list"),
    (lambda: operator()(kernels.X, 2.0, 32.0), TypeError,
     "`T` is a constant of the kernel, annotated as int, got 32.0; "
     "write 32"),
    (lambda: operator()(kernels.X.clone().requires_grad_(), 2.0, T=32.0), TypeError, "got 32.0; write 32"),
    (lambda: operator()(kernels.X, 2.0, T=torch.tensor(32)), TypeError,
     "got an array without axes (torch.Tensor); pass "
     "int(T)"),
    (lambda: operator()(kernels.X, torch.tensor(2.0)), TypeError, "`factor` is annotated as a number, got an array of "
                                                                  "shape (); pass factor.item()"),
    (lambda: operator()(kernels.X), TypeError, "scaled() needs the argument `factor`"),
    (lambda: torch.compile(lambda x: operator()(x, 2.0), backend="eager", fullgraph=True)(kernels.X[None]), Exception,
     "scaled(): `x` must have 1 axis (N), got the shape (1, "),
    (lambda: torch.compile(lambda x: operator()(x, 2.0), backend="eager", fullgraph=True)(kernels.X[0]), Exception,
     "scaled(): `x` must have 1 axis (N), got the shape (); x.reshape(1) gives it 1 of size 1")])
def test_what_users_get_wrong(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_a_graph_of_fx_has_the_operator():
    class Model(torch.nn.Module):
        def forward(self, x):
            return operator()(x, 2.0) + 1

    traced = torch.fx.symbolic_trace(Model())
    assert any("misused" in str(n.target) for n in traced.graph.nodes)
    assert torch.equal(traced(kernels.X), 2 * kernels.X + 1)
