"""Which parameters are the outputs of a function."""

from typing import Annotated

import numpy as np
import pytest

import cutile as ct
from cutile.functions.placement import decorator
from tests.functions.kernels import unstored
from tests.functions.shows import shows

X = np.arange(4, dtype=np.float32)


def outputs(kernel, *outs, **given):
    return [o.name for o in ct.jit(kernel, grid=(1,), out=outs, **given).outputs]


def number(annotation):
    """A kernel with a number of this annotation behind the output."""
    @ct.kernel
    def k(x: ct.Array["N"], y, n: annotation):
        ct.store(y, 0, ct.load(x, 0, 4) * n)

    return k


@shows("JIT-7.unnamed")
@pytest.mark.parametrize("annotation", [
    int, float, bool, np.float32, np.int64, np.bool_, np.number, ct.float32, ct.int64, ct.Constant[int],
    ct.ScalarInt64, Annotated[float, "metres"], int | None, int | float])
def test_numbers_are_no_outputs(annotation):
    assert outputs(number(annotation), ct.Out("N")) == ["y"]


@shows("JIT-7.unnamed")
def test_parameters_with_defaults_are_no_outputs():
    @ct.kernel
    def k(x: ct.Array["N"], y, factor, scale=2.0, bias=None):
        unstored(y)

    assert outputs(k, ct.Out("N")) == ["bias"]  # None may stand for an array
    assert outputs(k, ct.Out("N"), defaults={"bias": 1.0}) == ["factor"]
    assert outputs(k, ct.Out("N"), defaults={"bias": 1.0, "factor": lambda N: N}) == ["y"]
    assert outputs(number("float"), ct.Out("N")) == ["y"]


@shows("JIT-7.unnamed")
def test_the_parameter_out():
    @ct.kernel
    def k(out, x: ct.Array["N"], factor):
        ct.store(out, 0, ct.load(x, 0, 4) * factor)

    f = ct.jit(k, grid="N//4", out=ct.Out("N"))
    assert np.array_equal(f(X, 3.0), 3 * X) and f(X, 2.0, out=(given := np.empty_like(X))) is given
    with pytest.raises(TypeError, match="and is no output: that is `x` and `factor`, since outputs without a name"):
        outputs(k, ct.Out("4"), ct.Out("4"))
    with pytest.raises(TypeError, match="has the name of a keyword of its function; rename it"):
        outputs(k, ct.Out((4,), name="x"))


@shows("JIT-7.annotated")
def test_annotated_outputs():
    @ct.kernel
    def k(x: ct.Array["M N"], y: ct.Array["N", ct.float16]):
        ct.store(y, 0, ct.sum(ct.load(x, (0, 0), (2, 4)), axis=0).astype(y.dtype))

    x = np.ones((2, 4), np.float32)
    assert ct.jit(k, grid=(1,), out=ct.Out("N"))(x).dtype == np.float16
    assert ct.jit(k, grid=(1,), out=ct.Out(lambda M, N: (N,), "x"), checks=False) is not None
    for out, message in [
            (ct.Out("M N"), r'the output has the sizes "M N", but its parameter `y` is annotated ct.Array\["N", '
                            r'ct.float16\]. `y` was taken for the output, since'),
            (ct.Out(("M", 3), name="y"), r'"M 3", but its parameter `y` is annotated ct.Array\["N", ct.float16\]$'),
            (ct.Out("N", ct.float32, name="y"), "the output has dtype float32, but its parameter `y`")]:
        with pytest.raises(TypeError, match=message):
            ct.jit(k, grid=(1,), out=out)
    for out, message in [
            (ct.Out("M"), "the size of `y` along axis 0 is 2, but N is 4, the size of `x` along axis 1"),
            (ct.Out(like="x", dtype=ct.float16), r"`y` must have 1 axis \(N\), got the shape \(2, 4\)"),
            (ct.Out("N", "x"), "`y` must have dtype float16, got float32")]:
        with pytest.raises((TypeError, ValueError), match=rf"^k\(\): {message}"):
            ct.jit(k, grid=(1,), out=out)(x)


@pytest.mark.parametrize("out, message", [
    ("N", r'out is a ct.Out, or a tuple of them, not \'N\'; write out=ct.Out\("N"\)$'),
    (ct.Out, r"; give it a shape, such as ct.Out\(\"M N\"\)$"), (3, "not 3$"),
    ("y", r'write out=ct.Out\(\.\.\., name="y"\)$'), ({"y": ct.Out("N")}, "write the parameter into it"),
    (X, r"not an object of type numpy.ndarray; an array of yours is given to a call, f\(\.\.\., out=array\)$"),
    ([ct.Out("N")] * 3, "3 outputs are declared, but the kernel has 2 parameters that may be arrays. A kernel returns "
                        "nothing, and stores to its outputs, which are parameters$"),
    (ct.Out("N", name="n"), "`n` is annotated as a number"), (ct.Out("N", name="z"), "no parameter of the kernel")])
def test_what_is_no_output(out, message):
    with pytest.raises(TypeError, match=message):
        ct.jit(number(float), grid=(1,), out=out)


def test_lists_and_tuples_are_no_outputs():
    @ct.kernel
    def k(x: ct.Array["N"], y, more: Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation())],
          pair: tuple[int, int]):
        ct.store(y, 0, ct.load(x, 0, 4) + ct.load(more[0], 0, 4) + pair[0])

    assert outputs(k, ct.Out("N")) == ["y"]
    for name, kind in [("more", "list"), ("pair", "tuple")]:
        with pytest.raises(TypeError, match=f"`{name}` is annotated as a {kind}, and an output is one array"):
            outputs(k, ct.Out("N", name=name))


@ct.kernel
def behind(x: ct.Array["N"], y, factor):
    ct.store(y, 0, ct.load(x, 0, 4) * factor)


@ct.kernel
def two_behind(y, x: ct.Array["N"], z, factor, bias):
    t = ct.load(x, 0, 4) * factor + bias
    ct.store(y, 0, t)
    ct.store(z, 0, -t)


@shows("JIT-7.instead")
@pytest.mark.parametrize("kernel, outs, args, message", [
    (behind, 1, (X, 3.0),
     '`factor` was taken for the output, since outputs without a name are the last parameters that can be arrays; but '
     'the kernel stores to `y`: write @ct.jit(grid=(1,), out=ct.Out((4,), name="y"))'),
    (two_behind, 2, (X, 3.0, 1.0),
     '`factor`, `bias` were taken for the output, since outputs without a name are the last parameters that can be '
     'arrays; but the kernel stores to `y`, `z`: write @ct.jit(grid=(1,), out=(ct.Out((4,), name="y"), ct.Out((4,), '
     'name="z")))')])
def test_another_parameter_is_the_output(kernel, outs, args, message):
    f = ct.jit(kernel, grid=(1,), out=(ct.Out((4,)),) * outs)
    for _ in range(2):
        with pytest.raises(TypeError) as e:
            f(*args)
        assert str(e.value) == f"{kernel.__name__}(): {message}"


def test_other_errors_stay_as_they_are():
    @ct.kernel
    def k(x: ct.Array["N"], b, y):
        ct.store(y, 0, ct.load(x, 0, 4) + ct.load(b, 0, 8))

    with pytest.raises(ct.TileTypeError, match="shapes"):
        ct.jit(k, grid=(1,), out=ct.Out("N"))(X, X)


def test_arrays_given_for_outputs_are_not_a_question_of_their_order():
    """Both orders would do, so that another one mends nothing."""
    @ct.kernel
    def k(x: ct.Array["N"], y, z):
        ct.store(y, 0, ct.load(x, 0, 4))
        ct.store(z, 0, ct.load(x, 0, 4))

    f = ct.jit(k, grid=(1,), out=(ct.Out("N"), ct.Out("N")))
    for _ in range(2):
        for given in ((None, None), (None, X.copy()), ([1.0], X.copy())):
            with pytest.raises(TypeError, match=r"out= must give an array for `y`, got .*; without out= the call makes "
                                                "its outputs"):
                f(X, out=given)
        assert (f(X)[0] == X).all()


def test_outputs_in_another_order():
    @ct.kernel
    def k(x: ct.Array["M N"], y, total):
        t = ct.load(x, (ct.bid(0), 0), (1, 4))
        ct.store(y, (ct.bid(0), 0), t)
        ct.store(total, ct.bid(0), ct.sum(t, axis=1))

    x = np.ones((3, 4), np.float32)
    f = ct.jit(k, grid="M", out=(ct.Out("M"), ct.Out("M N")))
    with pytest.raises(TypeError, match=r'`y`, `total`, in the order of .* @ct.jit\(grid="M", out=\(ct.Out\("M", '
                                        r'name="total"\), ct.Out\("M N", name="y"\)\)\)$'):
        f(x)
    assert f._redeclared(out=(ct.Out("M", name="total"), ct.Out("M N", name="y")))(x)[1].shape == (3,)


@pytest.mark.parametrize("parameters, message", [
    ("*more", r"cannot take \*args or \*\*kwargs: `\*more`"), ("**more", r"`\*\*more`; name every parameter")])
def test_any_number_of_parameters(parameters, message):
    scope = {}
    exec(f"def k(x, y, {parameters}): pass", scope)
    with pytest.raises(TypeError, match=message):
        outputs(ct.kernel(scope["k"]), ct.Out("N"))


@pytest.mark.parametrize("name", ["_self", "_more", "_kernel", "_out_0", "_default_x", "__builtins__"])
def test_names_that_functions_use(name):
    scope = {}
    exec(f"def k({name}, x, y): pass", scope)
    with pytest.raises(TypeError, match=f"parameter `{name}` of the kernel has a name that its function uses itself"):
        outputs(ct.kernel(scope["k"]), ct.Out((4,)))


def test_one_output_is_not_declared():
    @ct.kernel
    def k(x: ct.Array["N"], y, z):
        ct.store(y, 0, ct.load(x, 0, 4))
        ct.store(z, 0, ct.load(x, 0, 4))

    with pytest.raises(TypeError, match=r"needs the argument `y`; `z` is its output, since outputs without a name"):
        ct.jit(k, grid=(1,), out=ct.Out("N"))(X)


def test_arrays_for_numbers():
    f = ct.jit(number(float), grid=(1,), out=ct.Out("N"))
    for wrong in (X, np.array(2.0)):
        with pytest.raises(TypeError, match=r"`n` is annotated as a number, got an array of shape .*; pass n.item\(\)"):
            f(X, wrong)


@pytest.mark.parametrize("given, written", [
    ({"grid": "cdiv(N, 4)", "out": ct.Out("N")}, '@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N", name="y"))'),
    ({"out": ct.Out(like="x", dtype=ct.float16, fill=0), "grid": (1, "N"), "hints": {"occupancy": 2}},
     '@ct.jit(out=ct.Out(dtype=ct.float16, fill=0, like="x", name="y"), grid=(1, "N"), hints={"occupancy": 2})'),
    ({"grid": lambda N: (N,), "out": (ct.Out(lambda N: (N,), "x"),), "name": "f"},
     '@ct.jit(grid=..., out=ct.Out(..., dtype="x", name="y"), name="f")')])
def test_the_whole_decorator_is_shown(given, written):
    @ct.kernel
    def k(x: ct.Array["N"], y, z):
        ct.store(y, 0, ct.load(x, 0, 4))

    f = ct.jit(k, **given)
    assert decorator(f, {"z": "y"}) == written
    if "..." not in written:  # what is written declares what it should
        g = eval(written[1:])(k)
        assert [o.name for o in g.outputs] == ["y"] and list(g.parameters) == ["x", "z"]


def test_a_kernel_with_self():
    with pytest.raises(TypeError, match="k: kernels in classes take no self: leave it out, and write @staticmethod"):
        class Layer:
            @ct.jit(grid="N", out=ct.Out("N"))
            @ct.kernel
            def k(self, x: ct.Array["N"], y):
                ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 1))
