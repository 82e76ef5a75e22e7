"""Arguments of the wrong kind: what the errors of calls say."""

import linecache
import re

import numpy as np
import pytest

import cutile as ct
from cutile.functions.argument_kinds import other_rank

X = np.arange(8, dtype=np.float32)


@ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"))
@ct.kernel
def scaled(x: ct.Array["N"], y, factor: float, TILE: ct.Constant[int] = 4, EPS: ct.Constant[float] = 0.0,
           FLAG: ct.Constant[bool] = False, MODE: ct.Constant[str] = "a", ANY: ct.Constant = 0,
           MORE: ct.Constant[int | None] = None):
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), TILE) * factor + EPS)


def refused(message, *args, error=TypeError, **named):
    """A call is refused by this message, also after calls that the function runs the short way."""
    for _ in range(2):
        with pytest.raises(error, match="^" + re.escape(f"scaled(): {message}") + "$"):
            scaled(*args, **named)
        assert np.array_equal(scaled(X, 2.0), 2 * X)


# ------------------------------------------------------------------ constants

@pytest.mark.parametrize("name, value, said", [
    ("TILE", 4.0, "annotated as int, got 4.0; write 4"),
    ("TILE", np.float32(4), "annotated as int, got np.float32(4.0); write 4"),
    ("TILE", 4.5, "annotated as int, got 4.5"),
    ("TILE", float("inf"), "annotated as int, got inf"),
    ("TILE", "4", "annotated as int, got '4'; write 4"),
    ("TILE", (4,), "annotated as int, got (4,); write 4"),
    ("TILE", [4], "annotated as int, got [4]; write 4"),
    ("TILE", None, "annotated as int, got None"),
    ("TILE", ct.float32, "annotated as int, got the dtype float32"),
    ("TILE", np.array(4), "got an array without axes (numpy.ndarray); pass int(TILE)"),
    ("TILE", np.array([4.0]), "got an array of shape (1,) (numpy.ndarray); pass int(TILE)"),
    ("TILE", np.array([4, 4]), "got an array of shape (2,) (numpy.ndarray); a constant is one value, which is known "
                               "when the kernel is compiled"),
    ("EPS", "1e-6", "annotated as float, got '1e-6'; write 1e-06"),
    ("EPS", np.array(1e-6), "got an array without axes (numpy.ndarray); pass float(EPS)"),
    ("FLAG", "yes", "annotated as bool, got 'yes'"),
    ("MODE", 3, "annotated as str, got 3"),
    ("ANY", np.array(3), "got an array without axes (numpy.ndarray); pass int(ANY)"),
    ("MORE", "3", "annotated as int | None, got '3'")])
def test_constants_of_another_kind(name, value, said):
    refused(f"`{name}` is a constant of the kernel, {said}", X, 2.0, **{name: value})


@pytest.mark.parametrize("named", [
    {"TILE": np.int8(4)}, {"TILE": np.int64(8)}, {"EPS": 1}, {"EPS": np.float32(0.5)},
    {"FLAG": 1}, {"FLAG": np.bool_(True)}, {"ANY": "text"}, {"ANY": ct.float32}, {"MORE": None}, {"MORE": 3}])
def test_constants_of_a_kind_that_fits(named):
    for _ in range(2):
        assert np.array_equal(scaled(X, 2.0, **named), 2 * X + np.float32(named.get("EPS", 0)))


def test_a_constant_of_numpy_has_a_dtype():
    with pytest.raises(ct.TileTypeError, match=r"the launch gave np.float64\(0.5\), which has a dtype of its own; pass "
                                               r"float\(EPS\)"):
        scaled(X, 2.0, EPS=np.float64(0.5))


def test_a_number_of_numpy_in_a_rule_computes_as_one_of_python():
    x = np.arange(300, dtype=np.float32)  # -300 does not fit int8
    assert np.array_equal(scaled(x, 2.0, TILE=np.int8(4)), 2 * x)


@pytest.mark.parametrize("default, said", [
    (lambda N: N / 2, "its default gives 4.0; write // for division, or int(...)"),
    (lambda N: 2 ** np.log2(N), "its default gives np.float64(8.0); write // for division, or int(...)"),
    (lambda N: None, "its default gives None"), (4.0, "got 4.0; write 4")])
def test_defaults_of_another_kind(default, said):
    f = ct.jit(scaled.kernel, grid="N", out=ct.Out("N"), defaults={"TILE": default})
    with pytest.raises(TypeError, match=re.escape(f"`TILE` is a constant of the kernel, annotated as int, {said}")):
        f(X, 2.0)


def test_none_is_a_constant_where_it_is_the_default():
    @ct.kernel
    def k(x: ct.Array["N"], y, n: ct.Constant[int] = None):
        ct.store(y, 0, ct.load(x, 0, 8) if ct.static_eval(n is None) else ct.load(x, 0, n))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    assert np.array_equal(f(X), X) and np.array_equal(f(X, None), X)


def test_annotations_that_are_text():
    space = {"ct": ct}
    lines = 'def k(x: "ct.Array[\'N\']", y, T: "ct.Constant[int]"):\n    ct.store(y, 0, ct.load(x, 0, T))\n'
    linecache.cache["text_kernel.py"] = (len(lines), None, lines.splitlines(True), "text_kernel.py")
    exec(compile(lines, "text_kernel.py", "exec"), space)
    f = ct.jit(ct.kernel(space["k"]), grid=(1,), out=ct.Out("N"))
    with pytest.raises(TypeError, match="`T` is a constant of the kernel, annotated as int, got 8.0; write 8"):
        f(X, 8.0)


# ------------------------------------------------------------------ numbers and arrays


@pytest.mark.parametrize("value, said", [
    (np.array(2.0), "`factor` is annotated as a number, got an array of shape (); pass factor.item() of one element, "
                    "or annotate an array as ct.Array"),
    (X, "`factor` is annotated as a number, got an array of shape (8,); pass factor.item() of one element, or annotate "
        "an array as ct.Array")])
def test_arrays_in_the_place_of_numbers(value, said):
    refused(said, X, value)


@pytest.mark.parametrize("value", [np.float32(2), "2", None, 2j])
def test_what_is_no_number_is_named_by_the_function(value):
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^scaled\(\): `factor`: an object of type .* cannot be passed to a ker"):
            scaled(X, value)


def test_a_number_that_does_not_fit():
    for _ in range(2):
        with pytest.raises(OverflowError, match=r"^scaled\(\): `factor`: 1099511627776 does not fit int32"):
            scaled(X, 1 << 40)


@pytest.mark.parametrize("sizes, value, said", [
    ("N", 3.0, "the number 3.0; np.asarray([x], dtype) makes one of one element, or annotate the parameter as a "
               "number, x: float"),
    ("", 3, "the number 3; np.asarray(x, dtype) makes one without axes, or annotate the parameter as a number, x: int"),
    ("", np.float32(3), "the number 3.0; np.asarray(x, dtype) makes one without axes, or annotate the parameter as a "
                        "number, x: float"),
    ("N", [1.0], "an object of type list; np.asarray(...) makes an array of it"),
    ("N", range(3), "an object of type range; np.asarray(...) makes an array of it"),
    ("N", "text", "an object of type str"),
    ("N", ct.ArraySpec("N", ct.float32), "an object of type cutile.compilation.array_spec.ArraySpec, which has no "
                                         "elements: compile() takes a ct.ArraySpec in the place of an array")])
def test_what_is_no_array(sizes, value, said):
    @ct.kernel
    def k(x: ct.Array[sizes], y):
        ct.store(y, 0, 1)

    with pytest.raises(TypeError, match="^" + re.escape(f"k(): `x` must be an array, got {said}") + "$"):
        ct.jit(k, grid=(1,), out=ct.Out("1", ct.float32))(value)


@pytest.mark.parametrize("shape, wanted", [
    ((3,), 2), ((3,), 3), ((2, 3), 3), ((), 1), ((), 2), ((3, 1), 1), ((1, 3), 1), ((2, 3), 1), ((2, 3, 4), 2),
    ((2, 1, 4), 2), ((2, 3, 4, 5), 3), ((2, 3), 0), ((1,), 0)])
def test_another_rank(shape, wanted):
    """What the error says to write gives an array of the rank that is wanted, or says which annotation fits."""
    x = np.zeros(shape)  # noqa: F841 - evaluated below
    said = other_rank("x", shape, wanted)
    ways = re.findall(r"x(?:\.squeeze\(\)|\.reshape\([^;]*?\)(?= )|\[[^\]]*\])", said)
    assert ways
    for way in ways:
        assert np.ndim(eval(way)) == wanted, way
    rank = len(shape)
    assert (f"annotate {rank} ax{'i' if rank == 1 else 'e'}s and load tiles of rank {rank}" in said) == bool(rank)


def test_an_array_of_another_library_shows_how_to_make_one():
    torch = pytest.importorskip("torch")

    @ct.kernel
    def k(x: ct.Array["N"], f: ct.Array[""], y):
        ct.store(y, 0, ct.load(x, 0, 4) * ct.load(f, (), ()))

    with pytest.raises(TypeError, match=re.escape("got the number 2.0; torch.tensor(f, dtype=...) makes one")):
        ct.jit(k, grid=(1,), out=ct.Out("N"))(torch.ones(4), 2.0)
