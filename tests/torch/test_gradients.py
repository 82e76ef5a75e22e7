"""Gradients of operators [PT-5, PT-7]: right or an error that names the operator, eagerly and in graphs."""

from typing import Annotated

import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402

BACKENDS = [None, "aot_eager"]
# PyTorch's own caches, when they are reset
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def compiled(f, backend):
    return f if backend is None else torch.compile(f, fullgraph=True, backend=backend)


def of_arrays(kernel, *outputs):
    return ct.jit(kernel, grid="cdiv(N, 32)", out=tuple(ct.Out("N", name=n) for n in outputs))


@ct.kernel
def product(x: ct.Array["N"], w: ct.Array["N"], y, e):  # noqa: F821
    """y = x * w, and e = exp(x), which the gradient needs in no way but might."""
    i = ct.bid(0)
    t = ct.load(x, i, 32)
    ct.store(y, i, (t * ct.load(w, i, 32)).astype(y.dtype))
    ct.store(e, i, ct.exp(t))


@ct.kernel
def of_product(x: ct.Array["N"], w: ct.Array["N"], grad_y: ct.Array["N"], grad_x, grad_w):  # noqa: F821
    i = ct.bid(0)
    g = ct.load(grad_y, i, 32)
    ct.store(grad_x, i, (g * ct.load(w, i, 32)).astype(grad_x.dtype))
    ct.store(grad_w, i, (g * ct.load(x, i, 32)).astype(grad_w.dtype))


@ct.kernel
def of_x_alone(w: ct.Array["N"], grad_y: ct.Array["N"], grad_x):  # noqa: F821
    i = ct.bid(0)
    ct.store(grad_x, i, ct.load(grad_y, i, 32) * ct.load(w, i, 32))


def by_python(x, w, grad_y):
    return {"x": grad_y * w, "w": grad_y * x}


PRODUCT = of_arrays(product, "y", "e")
BACKWARD = of_arrays(of_product, "grad_x", "grad_w")
both = cutile.torch.op("cutile_gradients::both", PRODUCT, backward=BACKWARD)
marked = cutile.torch.op("cutile_gradients::marked", of_arrays(product, "y", "e"), backward=BACKWARD,
                         non_differentiable=("e",))
python = cutile.torch.op("cutile_gradients::python", of_arrays(product, "y", "e"), backward=by_python,
                         non_differentiable=["e"])
bare = cutile.torch.op("cutile_gradients::bare", of_arrays(product, "y", "e"))


def given(dtype=torch.float64, other=None):
    generator = torch.Generator().manual_seed(5)
    x, w = (torch.randn(40, generator=generator, dtype=torch.float64) for _ in range(2))
    return x.to(dtype).requires_grad_(), w.to(other or dtype).requires_grad_()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operator", [both, marked, python])
def test_values(operator, backend):
    x, w = given()
    y = compiled(lambda x, w: operator(x, w)[0], backend)(x, w)
    for a, b in zip(torch.autograd.grad(y.pow(2).sum(), (x, w)), (2 * x * w * w, 2 * x * x * w)):
        assert torch.allclose(a, b)
    assert torch.autograd.gradcheck(lambda x, w: operator(x, w)[0], (x, w))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype, other", [(torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16),
                                          (torch.float16, torch.float64)])
def test_a_gradient_has_the_dtype_of_its_input(backend, dtype, other):
    """In the kernel already, so that what a block adds up loses nothing."""
    seen = []

    @ct.kernel
    def backward(x: ct.Array["N"], w: ct.Array["N"], grad_y: ct.Array["N"], grad_x, grad_w):  # noqa: F821
        i = ct.bid(0)
        ct.static_eval(seen.append((str(grad_x.dtype), str(grad_w.dtype))))
        g = ct.load(grad_y, i, 32).astype(ct.float64)
        ct.store(grad_x, i, (g * ct.load(w, i, 32).astype(ct.float64)).astype(grad_x.dtype))
        ct.store(grad_w, i, (g * ct.load(x, i, 32).astype(ct.float64)).astype(grad_w.dtype))

    @ct.kernel
    def forward(x: ct.Array["N"], w: ct.Array["N"], y):  # noqa: F821
        i = ct.bid(0)
        ct.store(y, i, (ct.load(x, i, 32).astype(ct.float64) * ct.load(w, i, 32).astype(ct.float64)).astype(y.dtype))

    operator = cutile.torch.op("cutile_gradients::mixed", of_arrays(forward, "y"),
                               backward=of_arrays(backward, "grad_x", "grad_w"))
    x, w = given(dtype, other)
    grads = torch.autograd.grad(compiled(operator, backend)(x, w).sum(), (x, w))
    assert [g.dtype for g in grads] == [dtype, other]
    assert torch.equal(grads[1], x.detach().to(other)) and torch.equal(grads[0], w.detach().double().to(dtype))
    assert seen and set(seen) == {(str(dtype).removeprefix("torch."), str(other).removeprefix("torch."))}


def test_a_gradient_whose_dtype_nothing_says():
    @ct.kernel
    def backward(x: ct.Array["N"], grad_y: ct.Array["N"], grad_x, grad_w):  # noqa: F821
        ct.store(grad_x, ct.bid(0), ct.load(x, ct.bid(0), 32))
        ct.store(grad_w, ct.bid(0), ct.load(x, ct.bid(0), 32))

    operator = cutile.torch.op("cutile_gradients::open", of_arrays(product, "y", "e"),
                               backward=of_arrays(backward, "grad_x", "grad_w"))
    x, w = given(torch.float32, torch.float64)
    with pytest.raises(TypeError, match="grad_w of backward has the dtype of its first array, torch.float32, but `w` "
                                        "of product has torch.float64"):
        operator(x, w)[0].sum().backward()


# ------------------------------------------------------------------ no gradient is lost in silence


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_function_of_an_operator(backend):
    """[PT-5] A call of the function is one of its operator, also outside of graphs."""
    x, w = given()
    assert both.function is PRODUCT and PRODUCT.operator is both
    y = compiled(lambda x, w: PRODUCT(x, w=w)[0], backend)(x, w)
    assert torch.allclose(torch.autograd.grad(y.sum(), w)[0], x)
    assert not PRODUCT(x.detach(), w.detach())[0].requires_grad
    with torch.no_grad():
        assert not PRODUCT(x, w)[0].requires_grad


def test_the_function_of_an_operator_takes_other_arrays_and_is_transformed():
    x, w = (t.detach() for t in given())
    y, _ = PRODUCT(x.numpy(), w.numpy())
    assert type(y).__module__ == "numpy" and torch.equal(torch.from_numpy(y), x * w)
    assert torch.allclose(torch.vmap(PRODUCT)(torch.stack([x, w]), torch.stack([w, x]))[0], x * w)


@pytest.mark.parametrize("keyword", ["out", "stream"])
@pytest.mark.parametrize("call", [both, PRODUCT])
def test_keywords_of_functions_that_have_no_gradient(call, keyword):
    x, w = given()
    value = (torch.empty_like(x), torch.empty_like(x)) if keyword == "out" else 0
    with pytest.raises(RuntimeError, match=f"no gradient in a call with {keyword}=, but `x` requires grad"):
        call(x, w, **{keyword: value})
    with torch.no_grad():
        assert torch.equal(call(x, w, **{keyword: value})[0], x * w)
    if keyword == "out":
        assert torch.equal(value[0], x * w)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backward_that_forgets_an_input(backend):
    kernel = cutile.torch.op("cutile_gradients::forgets", of_arrays(product, "y", "e"),
                             backward=of_arrays(of_x_alone, "grad_x"))
    function = cutile.torch.op("cutile_gradients::forgets_too", of_arrays(product, "y", "e"),
                               backward=lambda w, grad_y: {"x": grad_y * w})
    for operator, how in (kernel, "of_x_alone, .*declare outputs named grad_w"), (function, "<lambda>, .*write "):
        x, w = given()
        f = compiled(lambda x, w, operator=operator: operator(x, w)[0], backend)
        assert torch.allclose(torch.autograd.grad(f(x, w.detach()).sum(), x)[0], w)
        who, what = how.split(".*")
        text = (f"{who}the backward function of product, returned no gradient of w; {what}.*None where it is 0; or say "
                f"by non_differentiable=")
        with pytest.raises((TypeError, RuntimeError), match=text):
            f(x, w).sum().backward()


def test_an_input_without_gradient():
    operator = cutile.torch.op("cutile_gradients::without", of_arrays(product, "y", "e"),
                               backward=of_arrays(of_x_alone, "grad_x"), non_differentiable=("w", "e"))
    x, w = given()
    operator(x, w)[0].sum().backward()
    assert torch.allclose(x.grad, w) and w.grad is None


@pytest.mark.parametrize("returned, text", [
    ({"X": 0}, "returned a gradient of 'X', which is no input"),
    ({"grad_x": 0}, "returned a gradient of 'grad_x', which is no input; did you mean x"),
    ((0, 0), "must return a dictionary of gradients by input, such as .*not tuple"),
    (None, "not NoneType"),
    ({"x": 1.0, "w": None}, "returned a gradient of `x` that is no tensor, but of type float"),
    ({"x": torch.ones(1), "w": None}, r"returned a gradient of x of shape \(1,\), but x has \(\d+,\)$"),
    ({}, "no gradient of x, w"),
])
def test_wrong_results_of_backward(returned, text):
    operator = cutile.torch.op("cutile_gradients::wrong", of_arrays(product, "y", "e"),
                               backward=lambda grad_y: returned)
    with pytest.raises(TypeError, match=text):
        operator(*given())[0].sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_output_whose_gradient_backward_does_not_take(backend):
    x, w = given()
    y, e = compiled(lambda x, w: marked(x, w), backend)(x, w)
    assert y.requires_grad and not e.requires_grad
    f = compiled(lambda x, w: sum(both(x, w)), backend)
    error = TypeError if backend is None else RuntimeError  # in a graph, PyTorch shows the TypeError in its own
    with pytest.raises(error, match="comes to output `e` of product, but .*, its backward function, takes no grad_e: "
                                    "take grad_e in .*, or say by non_differentiable=..e.,. of cutile.torch.op that"):
        f(x, w).sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_two_outputs(backend):
    """That of an output that nothing follows from is zero."""
    operator = cutile.torch.op("cutile_gradients::two", of_arrays(product, "y", "e"),
                               backward=lambda x, w, e, grad_y, grad_e: {"x": grad_y * w + grad_e * e,
                                                                         "w": grad_y * x})
    for pick in (lambda y, e: y, lambda y, e: e, lambda y, e: y + e):
        x, w = given()
        y = compiled(lambda x, w, pick=pick: pick(*operator(x, w)), backend)(x, w)
        found = torch.autograd.grad(y.sum(), (x, w))
        wanted = torch.autograd.grad((pick(x * w, x.exp()) + 0 * w).sum(), (x, w))
        assert all(map(torch.allclose, found, wanted))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operator_without_backward(backend):
    """It runs, and its results require grad; a gradient through them is an error."""
    x, w = given()
    y, _ = compiled(lambda x, w: bare(x, w), backend)(x, w)
    assert torch.allclose(y, x * w) and y.requires_grad
    with pytest.raises(RuntimeError, match=r"cutile_gradients::bare has no gradient.*backward=\.\.\."):
        y.sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_operators_that_write(backend):
    @ct.jit(grid="cdiv(N, 32)")
    @ct.kernel
    def add(total: ct.Array["N"], x: ct.Array["N"]):  # noqa: F821
        ct.store(total, ct.bid(0), ct.load(total, ct.bid(0), 32) + ct.load(x, ct.bid(0), 32))

    operator = cutile.torch.op("cutile_gradients::add", add.inout("total"))
    x, w = given()

    def into_leaf(x, w):
        operator(w, x)
        return w.sum()

    def into_result(x, w):
        y = w * 2
        operator(y, x)
        return y

    def into_new(x, w):
        y = torch.zeros_like(w)
        operator(y, x)
        return y

    with pytest.raises(RuntimeError, match="stores to parameter `total`.*leaf that requires grad"):
        compiled(into_leaf, backend)(x, w)
    for f, start in ((into_result, 2 * w), (into_new, 0 * w)):
        y = compiled(f, backend)(x, w)
        assert torch.allclose(y, start + x)
        with pytest.raises(RuntimeError, match="cutile_gradients::add has no gradient: it writes to total"):
            y.sum().backward()
    with torch.no_grad():
        operator(w, x)


# ------------------------------------------------------------------ higher derivatives, torch.func


def test_second_derivatives():
    x, w = given()
    assert torch.autograd.gradgradcheck(lambda x, w: python(x, w)[0], (x, w))
    [grad] = torch.autograd.grad(both(x, w)[0].pow(2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="cutile_gradients::both has no second derivative, because its backward is a "
                                           "kernel"):
        grad.sum().backward()


def test_a_backward_that_is_an_operator_with_a_backward():
    def of_backward(x, w, grad_y, grad_grad_x, grad_grad_w):
        return {"x": grad_grad_w * grad_y, "w": grad_grad_x * grad_y, "grad_y": grad_grad_x * w + grad_grad_w * x}

    backward = cutile.torch.op("cutile_gradients::of_product", of_arrays(of_product, "grad_x", "grad_w"),
                               backward=of_backward)
    operator = cutile.torch.op("cutile_gradients::twice", of_arrays(product, "y", "e"), backward=backward,
                               non_differentiable=("e",))
    assert torch.autograd.gradgradcheck(lambda x, w: operator(x, w)[0], given())


@pytest.mark.parametrize("operator", [both, python])
def test_transforms_of_torch_func(operator):
    x, w = (t.detach() for t in given())
    loss = lambda x, w: operator(x, w)[0].pow(2).sum()
    assert all(map(torch.allclose, torch.func.grad(loss, (0, 1))(x, w), (2 * x * w * w, 2 * x * x * w)))
    jacobian = torch.func.jacrev(lambda x: operator(x, w)[0])(x)
    assert torch.allclose(jacobian, torch.diag(w))
    xs = torch.stack([x, 2 * x, w])
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(0, None))(xs, w)
    assert torch.allclose(each, 2 * xs * w * w)
    assert torch.allclose(torch.func.grad(lambda xs: torch.vmap(loss, (0, None))(xs, w).sum())(xs), each)
    in_graph = torch.compile(torch.func.grad(loss), fullgraph=True, backend="aot_eager")
    assert torch.allclose(in_graph(x, w), 2 * x * w * w)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch calls it itself
@pytest.mark.parametrize("operator", [both, bare])
def test_forward_mode(operator):
    x, w = (t.detach() for t in given())
    with pytest.raises(RuntimeError, match=f"{operator._qualname} has no derivative in forward mode"):
        torch.func.jvp(lambda x: operator(x, w)[0], (x,), (x,))
    with torch.autograd.forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="no derivative in forward mode"):
            operator(torch.autograd.forward_ad.make_dual(x, x), w)
        assert torch.equal(operator(x, w)[0], x * w)


def test_gradients_that_pytorch_was_told_of():
    operator = cutile.torch.op("cutile_gradients::told", of_arrays(product, "y", "e"))
    operator.register_autograd(lambda ctx, grad_y, grad_e: (grad_y * 7, None))
    x, w = given()
    assert torch.equal(torch.autograd.grad(operator(x, w)[0].sum(), x)[0], torch.full_like(x, 7))


def test_a_list_of_tensors():
    @ct.kernel
    def total(xs: Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation())], like: ct.Array["N"], y):  # noqa: F821
        i = ct.bid(0)
        ct.store(y, i, ct.load(xs[0], i, 32) + 3 * ct.load(xs[1], i, 32))

    operator = cutile.torch.op("cutile_gradients::list", ct.jit(total, grid="cdiv(N, 32)", out=ct.Out("N", name="y")),
                               backward=lambda grad_y: {"xs": [grad_y, 3 * grad_y], "like": None})
    x, w = given()
    found = torch.autograd.grad(operator([x, w], x.detach()).sum(), (x, w))
    assert torch.equal(found[0], torch.ones_like(x)) and torch.equal(found[1], torch.full_like(x, 3))
    assert torch.equal(torch.autograd.grad(operator([x.detach(), w], w).sum(), w)[0], torch.full_like(x, 3))
    for pair in ([x.detach(), w], (x, w.detach())):
        with pytest.raises(RuntimeError, match="no gradient in a call with out=, but `xs` requires grad"):
            operator(pair, x.detach(), out=torch.empty_like(x))


def test_a_backward_function_gets_what_the_caller_left_out():
    @ct.jit(grid="cdiv(N, T)", out=ct.Out("N"), defaults={"T": lambda N: 32})
    @ct.kernel
    def scale(x: ct.Array["N"], y, T: ct.Constant[int], N: ct.Constant[int],  # noqa: F821
              factor: ct.Constant[float] = 2.0):
        ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), T) * factor)

    seen = []

    def backward(T, N, factor, grad_y):
        seen.append((T, N, factor))
        return {"x": grad_y * factor}

    operator = cutile.torch.op("cutile_gradients::left_out", scale, backward=backward)
    x = torch.ones(100, requires_grad=True)
    operator(x).sum().backward()
    operator(x, T=16, factor=3.0).sum().backward()
    assert seen == [(32, 100, 2.0), (16, 100, 3.0)] and (x.grad == 5).all()


@pytest.mark.parametrize("backward, text", [
    (3, "the backward function of product is made by ct.jit or a function of Python, not 3"),
    (lambda *a: {}, "are names among x, w, y, e, grad_y, grad_e, and `.a` is none"),
    (lambda **a: {}, "are names among x, w, y, e, grad_y, grad_e, and `..a` is none")])
def test_what_is_no_backward_function(backward, text):
    with pytest.raises(TypeError, match=text):
        cutile.torch.op("cutile_gradients::none", of_arrays(product, "y", "e"), backward=backward)
