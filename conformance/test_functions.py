# ruff: noqa: B009, C410, UP003, UP042 -- tile code under test, not code to tidy
"""What can be called from tile code, and from the host."""

import contextlib
import dataclasses
import enum
import functools
import inspect
import math
import operator

import numpy as np
import pytest

from conformance.harness.api import clause, ct, impl
from conformance.harness.tile_code import rejects, result, takes
from conformance.harness.type_probes import constant_is, static

REFUSED_CALL = ("UnsupportedCallError", "TileTypeError")
X = 7


@ct.function
def tile_only(x):
    return x * 3


@ct.function(host=True)
def both(x):
    return x * 5


@ct.function(host=True, tile=False)
def host_only(x):
    return x


def plain(x):
    return x + 100


@clause("FN-1.bare", "FN-1.both")
def test_decorated_functions_in_tile_code():
    assert result(lambda x: (tile_only(x), both(x)), 4) == [12, 20]


@clause("FN-1.bare")
def test_decorator_called_without_options():
    @ct.function()
    def f(x):
        return x - 1

    assert result(lambda x: f(x), 4) == 3
    with pytest.raises(RuntimeError):
        f(4)


@clause("FN-1.tile_only")
def test_a_tile_function_on_the_host():
    with pytest.raises(RuntimeError):
        tile_only(3)


@clause("FN-1.host")
def test_a_host_function_on_the_host():
    assert both(3) == 15 and both("ab") == "ababababab" and host_only([1]) == [1]


@clause("FN-1.no_tile")
def test_a_host_function_in_tile_code():
    rejects("UnsupportedCallError", lambda x: host_only(x), 1)


@clause("FN-1.keyword")
def test_options_of_function_are_keyword_only():
    with pytest.raises(TypeError):
        ct.function(plain, True)
    with pytest.raises(TypeError):
        ct.function(host=True, device=True)


@clause("FN-2.plain", "FN-6.function", "FN-6.lambda", "FN-6.closure")
def test_functions_lambdas_closures():
    def f(x):
        def inner(y):
            return x * 10 + y

        g = lambda z: z - 1
        return plain(x), g(x), inner(2)

    assert result(f, 4) == [104, 3, 42]


@clause("FN-2.source")
def test_a_function_without_source():
    space = {}
    exec("def f(x): return x", space)
    f = space["f"]
    with pytest.raises((OSError, ct.TileError)):
        takes(lambda x: f(x), 1)


@clause("FN-2.inline")
def test_each_call_is_compiled_for_its_arguments():
    def f(x):
        return x.dtype, x.shape

    assert static(lambda: f(ct.zeros((2,), ct.int8))) == (ct.int8, (2,))

    @ct.kernel
    def k():
        a, b = f(ct.zeros((2,), ct.int8)), f(ct.zeros((4, 8), ct.float16))
        ct.static_assert(a == (ct.int8, (2,)))
        ct.static_assert(b == (ct.float16, (4, 8)))

    impl.compile(k, ())


HOST_OPS = [
    lambda: ct.exp(1.0), lambda: ct.add(1, 2), lambda: ct.zeros((2,), ct.int32), lambda: ct.bid(0),
    lambda: ct.load(np.zeros(2), 0, 2), lambda: ct.store(np.zeros(2), 0, 1), lambda: ct.sum(1),
    lambda: ct.where(True, 1, 2), lambda: ct.arange(4, dtype=ct.int32), lambda: ct.printf("a"),
    lambda: ct.atomic_add(np.zeros(2), 0, 1), lambda: ct.astype(1, ct.int8), lambda: ct.mma(1, 2, 3),
    lambda: ct.maximum(1, 2), lambda: ct.reshape(1, (1,)), lambda: ct.static_eval(1), lambda: ct.static_assert(True)]


@clause("FN-3.ops")
@pytest.mark.parametrize("f", HOST_OPS)
def test_operations_on_the_host(f):
    with pytest.raises(RuntimeError):
        f()


@clause("FN-3.cdiv")
@pytest.mark.parametrize("x, y, want", [(7, 2, 4), (8, 2, 4), (-7, 2, -3), (7, -2, -3), (0, 5, 0), (1, 1 << 70, 1)])
def test_cdiv_on_the_host(x, y, want):
    assert ct.cdiv(x, y) == want


@clause("FN-3.cdiv.float")
def test_cdiv_of_floats_on_the_host():
    got = ct.cdiv(7.5, 2.0)
    assert got == 4.0 and isinstance(got, float)


@clause("FN-3.static_iter", "FN-3.static_exception")
def test_static_constructs_on_the_host():
    items, e = [1, 2], ValueError("x")
    assert ct.static_iter(items) is items
    assert ct.static_exception(e) is e


@clause("FN-3.foreign_pointer_dtype")
def test_foreign_pointer_dtype_on_the_host():
    assert isinstance(ct.foreign_pointer_dtype(ct.float32), ct.DType)


@ct.kernel
def some_kernel(x):
    pass


@clause("FN-4.call")
def test_a_kernel_called_on_the_host():
    with pytest.raises(TypeError):
        some_kernel(1)


@clause("FN-4.nested")
def test_a_kernel_in_tile_code():
    rejects("TileTypeError", lambda x: some_kernel(x), 1)


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2 * f(*args, **kwargs)

    return wrapper


@doubled
def wrapped(a, b):
    return a - b


@functools.lru_cache
def cached(x):
    return x


class Callable_:
    def __call__(self, x):
        return x


partial, instance = functools.partial(plain, 1), Callable_()


@clause("FN-5.wraps")
def test_wrapped_functions():
    assert result(lambda x: (wrapped(x, 3), wrapped(b=1, a=x)), 10) == [14, 18]


@clause("FN-5.lru_cache")
def test_cached_functions():
    rejects(REFUSED_CALL, lambda x: cached(x), 1)


@clause("FN-5.partial")
def test_partial_objects():
    rejects(REFUSED_CALL, lambda x: partial(), 1)


@clause("FN-5.callable")
def test_callable_objects():
    rejects(REFUSED_CALL, lambda x: instance(x), 1)


@dataclasses.dataclass(frozen=True)
class Scale:
    factor: int

    def apply(self, x):
        return x * self.factor


three = Scale(3)


@clause("FN-5.method")
def test_bound_methods():
    method = three.apply

    def f(x):
        inner = Scale(x).apply
        return three.apply(x), inner(10)

    assert result(f, 4) == [12, 40]
    assert result(lambda x: method(x), 4) == 12


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


def call_dtype(x):
    return ct.float32(x), ct.int8(x)


@clause("FN-6.op", "FN-6.dtype")
def test_operations_and_dtypes_as_values():
    @ct.kernel
    def k(x):
        f, d = ct.maximum, ct.int16
        y, z = f(x, 3), d(x)
        yd, zd = y.dtype, z.dtype
        ct.static_assert(yd == ct.int32)
        ct.static_assert(zd == ct.int16)

    impl.compile(k, (1,))
    assert result(lambda x: (ct.maximum(x, 3), ct.int8(x)), 300) == [300, 44]


@clause("FN-6.enum", "FN-6.dataclass")
def test_classes_that_can_be_called():
    assert static(lambda: Color(1)) is Color.RED
    assert static(lambda: Color("b")) is Color.BLUE
    assert result(lambda x: Scale(x).factor + Scale(factor=2).factor, 5) == 7


@pytest.mark.parametrize("f, value, dtype", [
    pytest.param(lambda: int(2.75), 2, "int32", marks=clause("FN-6.int")),
    pytest.param(lambda: int(True), 1, "int32", marks=clause("FN-6.int")),
    pytest.param(lambda: float(3), 3.0, "float32", marks=clause("FN-6.float")),
    pytest.param(lambda: bool(5), True, "bool_", marks=clause("FN-6.bool")),
    pytest.param(lambda: bool(""), False, "bool_", marks=clause("FN-6.bool")),
    pytest.param(lambda: bool((1,)), True, "bool_", marks=clause("FN-6.bool")),
    pytest.param(lambda: len((1, 2, 3)), 3, "int32", marks=clause("FN-6.len")),
    pytest.param(lambda: abs(-4), 4, "int32", marks=clause("FN-6.abs")),
    pytest.param(lambda: abs(-0.5), 0.5, "float32", marks=clause("FN-6.abs")),
    pytest.param(lambda: min(4, 9), 4, "int32", marks=clause("FN-6.min")),
    pytest.param(lambda: max(4, 9), 9, "int32", marks=clause("FN-6.max")),
    pytest.param(lambda: divmod(-7, 2)[0], -4, "int32", marks=clause("FN-6.divmod")),
    pytest.param(lambda: divmod(-7, 2)[1], 1, "int32", marks=clause("FN-6.divmod"))])
def test_builtins_of_constants(f, value, dtype):
    constant_is(f, value, dtype)


@pytest.mark.parametrize("f, want", [
    pytest.param(lambda: str(12) + str("a"), "12a", marks=clause("FN-6.str")),
    pytest.param(lambda: repr("a"), "'a'", marks=clause("FN-6.repr")),
    pytest.param(lambda: repr(2), "2", marks=clause("FN-6.repr")),
    pytest.param(lambda: tuple((1, "x")), (1, "x"), marks=clause("FN-6.tuple")),
    pytest.param(lambda: tuple(), (), marks=clause("FN-6.tuple")),
    pytest.param(lambda: (1, 2, 3, 4)[slice(1, None, 2)], (2, 4), marks=clause("FN-6.slice")),
    pytest.param(lambda: getattr(math, "pi") > 3, True, marks=clause("FN-6.getattr")),
    pytest.param(lambda: getattr(ct.zeros((2,), ct.int8), "shape"), (2,), marks=clause("FN-6.getattr"))])
def test_builtins_of_other_values(f, want):
    assert static(f) == want


@clause("FN-6.abs", "FN-6.min", "FN-6.max", "FN-6.divmod", "FN-6.bool")
def test_builtins_at_run_time():
    def f(x, y):
        q, r = divmod(x, y)
        return abs(x), min(x, y), max(x, y), q, r, bool(x), bool(x + 7)

    assert result(f, -7, 3) == [7, -7, 3, -3, 2, 1, 0]


@clause("FN-6.range")
def test_range_at_run_time():
    def f(n):
        s = 0
        for i in range(n):
            s = s * 10 + i
        return s

    assert result(f, 4) == 123


@pytest.mark.parametrize("f", [
    pytest.param(lambda: slice(1), marks=clause("FN-6.slice.count")),
    pytest.param(lambda: slice(1, 2), marks=clause("FN-6.slice.count")),
    pytest.param(lambda: min(1), marks=clause("FN-6.min.count")),
    pytest.param(lambda: min(1, 2, 3), marks=clause("FN-6.min.count")),
    pytest.param(lambda: max(1), marks=clause("FN-6.max.count")),
    pytest.param(lambda: max(1, 2, 3), marks=clause("FN-6.max.count")),
    pytest.param(lambda: getattr(math, "pi", 3), marks=clause("FN-6.getattr.count")),
    pytest.param(lambda: getattr(math), marks=clause("FN-6.getattr.count"))])
def test_wrong_number_of_arguments_of_builtins(f):
    rejects("TileTypeError", f)


@clause("FN-6.print")
def test_print(capfd):
    result(lambda x: shout(x), 3)
    assert "number 3" in capfd.readouterr().out


def shout(x):
    print("number", x)
    return x


def op(name, f, *args, want):
    return pytest.param(f, args, want, marks=clause(f"FN-6.operator.{name}"), id=name)


@pytest.mark.parametrize("f, args, want", [
    op("add", lambda x, y: operator.add(x, y), 7, 3, want=10),
    op("sub", lambda x, y: operator.sub(x, y), 7, 3, want=4),
    op("mul", lambda x, y: operator.mul(x, y), 7, 3, want=21),
    op("truediv", lambda x, y: operator.truediv(x, y) * 2, 7, 2, want=7),
    op("floordiv", lambda x, y: operator.floordiv(x, y), -7, 3, want=-3),
    op("mod", lambda x, y: operator.mod(x, y), -7, 3, want=2),
    op("pow", lambda x, y: operator.pow(x, y), 2.0, 5, want=32),
    op("and_", lambda x, y: operator.and_(x, y), 6, 3, want=2),
    op("or_", lambda x, y: operator.or_(x, y), 6, 3, want=7),
    op("xor", lambda x, y: operator.xor(x, y), 6, 3, want=5),
    op("lshift", lambda x, y: operator.lshift(x, y), 5, 3, want=40),
    op("rshift", lambda x, y: operator.rshift(x, y), 41, 3, want=5),
    op("neg", lambda x: operator.neg(x), 5, want=-5),
    op("pos", lambda x: operator.pos(x), 5, want=5),
    op("invert", lambda x: operator.invert(x), 5, want=-6),
    op("not_", lambda x: (operator.not_(x), operator.not_(x - 5)), 5, want=[0, 1]),
    op("lt", lambda x, y: (operator.lt(x, y), operator.lt(y, x), operator.lt(x, x)), 1, 2, want=[1, 0, 0]),
    op("le", lambda x, y: (operator.le(x, y), operator.le(y, x), operator.le(x, x)), 1, 2, want=[1, 0, 1]),
    op("gt", lambda x, y: (operator.gt(x, y), operator.gt(y, x), operator.gt(x, x)), 1, 2, want=[0, 1, 0]),
    op("ge", lambda x, y: (operator.ge(x, y), operator.ge(y, x), operator.ge(x, x)), 1, 2, want=[0, 1, 1]),
    op("eq", lambda x, y: (operator.eq(x, y), operator.eq(x, x)), 1, 2, want=[0, 1]),
    op("ne", lambda x, y: (operator.ne(x, y), operator.ne(x, x)), 1, 2, want=[1, 0]),
    op("is_", lambda x: (operator.is_(x, None), operator.is_(None, None)), 1, want=[0, 1]),
    op("is_not", lambda x: (operator.is_not(x, None), operator.is_not(None, None)), 1, want=[1, 0]),
    op("getitem", lambda x: operator.getitem((5, x, 6), 1), 9, want=9)])
def test_functions_of_operator(f, args, want):
    assert result(f, *args) == want


@clause("FN-6.operator.matmul")
def test_operator_matmul():
    def f(x):
        a, b = ct.full((2, 4), x, ct.float32), ct.full((4, 2), 2.0, ct.float32)
        return ct.extract(operator.matmul(a, b), (1, 1), (1, 1)).item()

    assert result(f, 3.0) == 24


@clause("FN-6.operator.other")
@pytest.mark.parametrize("f", [
    lambda: operator.abs(1), lambda: operator.contains((1,), 1), lambda: operator.concat((1,), (2,)),
    lambda: operator.index(1), lambda: operator.truth(1), lambda: operator.iadd(1, 2)])
def test_other_functions_of_operator(f):
    rejects("UnsupportedCallError", f)


@clause("FN-6.replace")
def test_dataclasses_replace():
    assert result(lambda x: dataclasses.replace(Scale(3), factor=x).factor, 8) == 8


@contextlib.contextmanager
def managed(x):
    yield x + 1


@clause("FN-6.contextmanager")
def test_context_managers():
    def f(x):
        r = 0
        with managed(x) as y:
            r = y
        return r

    assert result(f, 3) == 4


@clause("FN-6.other")
@pytest.mark.parametrize("f", [
    lambda: enumerate((1,)), lambda: zip((1,), (2,)), lambda: map(plain, (1,)), lambda: list((1,)), lambda: dict(),
    lambda: set(), lambda: isinstance(1, int), lambda: hasattr(1, "a"), lambda: sum((1, 2)), lambda: pow(2, 3),
    lambda: round(1.5), lambda: id(1), lambda: hash(1), lambda: sorted((2, 1)), lambda: any((1,)),
    lambda: reversed((1, 2)), lambda: iter((1,)), lambda: chr(65), lambda: input(), lambda: open("a")])
def test_other_builtins(f):
    rejects("UnsupportedCallError", f)


@clause("FN-6.other")
def test_type_is_refused():
    rejects(REFUSED_CALL, lambda: type(1))


@clause("FN-6.library")
@pytest.mark.parametrize("f", [lambda: math.sin(1.0), lambda: math.sqrt(4), lambda: np.zeros(3), lambda: np.exp(1.0),
                               lambda: inspect.getsource(plain)])
def test_functions_of_libraries(f):
    rejects("UnsupportedCallError", f)


@clause("FN-6.library", "ERR-3")
@pytest.mark.parametrize("f", [
    lambda x: np.iterable(x), lambda x: np.isscalar(x), lambda x: np.issubdtype(x, x), lambda x: np.fromfunction(x, x),
    lambda x: np.mean(x), lambda x: np.linalg.norm(x), lambda x: np.broadcast_shapes(x), lambda x: np.vectorize(x),
    lambda x: functools.wraps(x), lambda x: functools.update_wrapper(x, x), lambda x: functools.lru_cache(x),
    lambda x: functools.reduce(x, x), lambda x: functools.partial(x), lambda x: dataclasses.fields(x),
    lambda x: dataclasses.is_dataclass(x), lambda x: dataclasses.dataclass(x), lambda x: dataclasses.astuple(x),
    lambda x: ct.launch(None, (1,), some_kernel, (x,)), lambda x: ct.kernel(x), lambda x: ct.function(x)])
def test_functions_of_libraries_for_the_host(f):
    """They are not looked into, whatever they are made of: the call itself is refused."""
    e = rejects("UnsupportedCallError", f, 1)
    assert e.loc.function == "<lambda>"


@clause("FN-6.library")
def test_functions_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for f in (lambda x: torch.is_tensor(x), lambda x: torch.broadcast_shapes(x), lambda x: torch.add(x, x)):
        assert rejects("UnsupportedCallError", f, 1).loc.function == "<lambda>"


@clause("EX-5.read", "FN-7.constant")
def test_modules_of_the_api():
    """Those that belong to it can be named in tile code."""
    def f(n):
        same = ct.compilation
        return n + (1 if same.CallingConvention is not None else 2)

    assert result(f, 3) == 4
    rejects("TileTypeError", lambda n: ct.compilation.nothing, 1)
    rejects("TileTypeError", lambda n: ct.nothing, 1)


@clause("FN-6.bool", "FN-6.int", "FN-6.float", "FN-6.str", "FN-6.tuple")
def test_builtins_without_arguments():
    assert static(lambda: (bool(), int(), float(), str(), tuple())) == (False, 0, 0.0, "", ())


@clause("FN-6.operator.invert")
def test_two_names_of_one_function_of_operator():
    assert result(lambda n: (operator.inv(n), operator.invert(n)), 5) == [-6, -6]


@clause("FN-6.operator.is_", "FN-6.operator.is_not")
def test_operator_is_compares_with_none_alone():
    none = None
    assert result(lambda n: (operator.is_(None, none), operator.is_(n, None), operator.is_not(None, n),
                             operator.is_not(none, None)), 1) == [1, 0, 1, 0]
    for f in (lambda n: operator.is_(n, n), lambda n: operator.is_(1, 1), lambda n: operator.is_not("a", "a"),
              lambda n: operator.is_(None), lambda n: operator.is_not(None, None, None), lambda n: operator.is_()):
        rejects(REFUSED_CALL, f, 1)


@clause("EX-5.unknown", "DC-2.constant_of_class", "DC-2.unknown")
def test_names_that_classes_lack():
    class Plain:
        number = 3

    @dataclasses.dataclass(frozen=True)
    class Point:
        x: object
        number = 4

    assert result(lambda n: (Plain.number, Point.number, Point(n).number), 1) == [3, 4, 4]
    for f in (lambda n: Plain.nothing, lambda n: Point.nothing, lambda n: Point(n).nothing, lambda n: int.nothing,
              lambda n: int.bit_length, lambda n: str.upper, lambda n: float.fromhex("0x1")):
        assert not isinstance(rejects(REFUSED_CALL, f, 1), ct.TileInternalError)


@clause("FN-6.library")
@pytest.mark.parametrize("f", [lambda: ct.launch(None, (1,), plain, ()), lambda: ct.kernel(plain),
                               lambda: ct.function(plain), lambda: dataclasses.fields(plain),
                               lambda: functools.reduce(plain, (1, 2)), lambda: np.stack((1, 2))])
def test_functions_for_the_host(f):
    e = rejects("UnsupportedCallError", f)
    assert e.loc.function == "<lambda>" and e.loc.filename == __file__


@clause("OBJ-5.enum", "OBJ-1.enum", "CV-3.eq")
def test_enums_of_texts():
    """Members that are strings too: as values of tile code they are members."""
    class Word(str, enum.Enum):
        A = "a"
        B = "b"

    word, words = Word.A, (Word.A, Word.B, "a")

    def f(n):
        return (word.value == "a", word == Word.A, word != Word.B, words[1].name == "B", words[2] == "a",
                Word("b").name == "B", ct.static_eval(isinstance(word, Word)), ct.static_eval(type(words[2]) is str))

    assert result(f, 1) == [1] * 8
    rejects("TileTypeError", lambda n: words[2].value, 1)


@clause("FN-6.class")
def test_plain_classes():
    rejects("UnsupportedCallError", lambda: Callable_())


@clause("FN-6.reached")
def test_calls_that_are_not_reached():
    def f(x):
        if False:
            sorted(x)
        return x

    assert result(f, 2) == 2


@clause("FN-7.constant")
def test_constants_of_modules():
    constant_is(lambda: math.inf, math.inf, "float32")
    constant_is(lambda: -math.inf, -math.inf, "float32")
    assert result(lambda x: x * math.pi, 1e6) == 3141592
    assert static(lambda: ct.zeros((2,), ct.int8)[np.newaxis, :].shape) == (1, 2)
    constant_is(lambda: X, 7, "int32")


@clause("FN-7.missing")
@pytest.mark.parametrize("f", [lambda: math.tau_, lambda: ct.nothing, lambda: np.nothing_at_all])
def test_names_that_a_module_lacks(f):
    rejects("TileTypeError", f)
