"""Calls of functions that C code runs: it makes their outputs and takes the stream."""

import gc
import struct
import types
import weakref

import pytest

import cutile as ct
from tests.gpu import extension
from tests.gpu.extension import CuPyArray, LentTensor
from tests.runtime.launch_cache.launches import IN_C, LX, LY, X, Y, scaling


def empty(shape, pointer, fills=None):
    a = CuPyArray(pointer, shape, (2,))
    a.fill = lambda value: fills.append(value)
    return a


def entry_of(c, kernel, table, **given):
    """What calls of `scaling` go through, as a function of x, f and stream; Python code answers NotImplemented."""
    entry = c.Entry(**{"calls": table, "python": lambda *a, **named: NotImplemented, "failed": None,
                       "names": ("x", "f", "N"), "positional": 2, "defaults": (None, None, 1.0, 16),
                       "places": (0, 2, 3), "outputs": (1,), "returned": (1,), "arrays": (0,), **given})
    assert entry.use(kernel.plans.launch_cache) is True
    return entry


@pytest.fixture
def calls(c, gpu):
    """A function that keeps a call of `scaling` whose output `make` makes, and gives what calls such calls."""
    def kept(make, arguments=((50,), 8192), named=None, fill=None, stream_of=lambda x: 5, gpu_of=None, x=X, y=Y):
        k, table = scaling(), {}
        ct.launch(77, (3,), k, (x, y, 2.5, 16))
        cache = k.plans.launch_cache
        assert cache.keep_call(table, (x, None, 2.5, 16), (x, y, 2.5, 16), (3,), 0, stream_of, gpu_of,
                               ((make, arguments, named, fill),), ()) is True
        gpu.calls.clear()
        entry = entry_of(c, k, table)
        return lambda x=x, f=1.0, stream=None: entry(x, f, stream=stream)

    return kept


def last_values(fake):
    """The addresses of both arrays in the last launch, and the number."""
    parameters = fake.launches[-1]["parameters"]
    return struct.unpack("<Q", parameters[0])[0], struct.unpack("<Q", parameters[3])[0], struct.unpack(
        "<f", parameters[6])[0]


def test_a_call_makes_its_output(calls, gpu):
    fills, pointers = [], iter((16384, 32768))
    call = calls(lambda shape, fills: empty(shape, next(pointers), fills), ((50,),), {"fills": fills}, fill=3)
    for x, f, pointer in ((X, 1.0, 16384), (CuPyArray(65536, (48,), (1,)), 2.0, 32768)):
        out = call(x, f)
        assert out.data.ptr == pointer and last_values(gpu) == (x.data.ptr, pointer, f)
    assert gpu.names() == [IN_C] * 2 and fills == [3, 3] and gpu.launches[-1]["grid"] == (3, 1, 1)


def test_an_output_may_be_made_of_the_first_array(calls, gpu):
    seen = []
    call = calls(lambda first: seen.append(first) or empty((50,), 16384), None)
    assert call().data.ptr == 16384 and seen == [X]


@pytest.mark.parametrize("make", [lambda *a: CuPyArray(16388, (50,), (2,)), lambda *a: CuPyArray(16384, (49,), (2,)),
                                  lambda *a: CuPyArray(16384, (50,), (2,), device=1), lambda *a: None,
                                  lambda *a: CuPyArray(16384, (50,), (2,), "f8"), lambda *a: 1 / 0])
def test_an_output_that_is_not_as_before(calls, gpu, make):
    call = calls(make)
    assert call() is NotImplemented and gpu.names() == []


def test_nothing_is_made_for_a_launch_that_is_not_for_here(calls, gpu):
    made = []
    call = calls(lambda *a: made.append(a) or Y)
    assert call(CuPyArray(4096, (47,), (1,))) is NotImplemented  # a call that nobody has made
    gpu.contexts[:] = [0x1001]
    assert call() is NotImplemented and not made and IN_C not in gpu.names()
    gpu.contexts[:] = [0x1000]
    assert call() is Y and len(made) == 1


def test_a_call_that_the_driver_refuses(calls, gpu):
    call = calls(lambda *a: Y)
    gpu.fails[IN_C] = 700
    assert call() is NotImplemented


def test_an_interrupt_while_an_output_is_made(calls):
    def interrupted(*a):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calls(interrupted)()


def test_streams_of_calls(c, calls, gpu):
    of_gpu = c.streams_of(extension.exchange())
    assert c.streams_of(extension.exchange(major=2)) is None
    for stream_of, ordinal, number in ((lambda x: x.data.ptr, None, 4096), (of_gpu, 1, 401),
                                       (lambda ordinal: types.SimpleNamespace(ptr=90 + ordinal), 1, 91)):
        call = calls(lambda *a: Y, stream_of=stream_of, gpu_of=ordinal)
        for given in (None, number):
            assert call(stream=given) is Y and gpu.launches[-1]["stream"] == number


def test_outputs_are_made_in_c_only_where_the_current_stream_is_that_of_the_launch(calls, gpu):
    """Their library queues on its current stream what makes and fills them."""
    made = []
    call = calls(lambda *a: made.append(a) or Y)
    assert call(stream=7) is NotImplemented and not made and gpu.names() == []
    assert call(stream=5) is Y and len(made) == 1


def test_streams_that_are_given_for_calls_that_make_nothing(c, gpu):
    k, table = scaling(), {}
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    fills = []
    assert k.plans.launch_cache.keep_call(table, (X, Y, 2.5, 16), (X, Y, 2.5, 16), (3,), 0, lambda x: 5, None, (), ())
    entry = entry_of(c, k, table)
    for given, number in ((None, 5), (7, 7), (5, 5)):
        assert entry(X, 1.0, out=Y, stream=given) is Y and gpu.launches[-1]["stream"] == number
    for wrong in ((2, fills.append, 3), (9, fills.append), (-1, fills.append), ("1", fills.append)):
        with pytest.raises(TypeError, match="fillers"):
            k.plans.launch_cache.keep_call({}, (X, Y, 2.5, 16), (X, Y, 2.5, 16), (3,), 0, lambda x: 5, None, (), wrong)


def test_outputs_of_the_caller_are_filled_on_the_stream_of_the_launch(c, gpu):
    k, table, filled = scaling(), {}, []
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    assert k.plans.launch_cache.keep_call(table, (X, Y, 2.5, 16), (X, Y, 2.5, 16), (3,), 0, lambda x: 5, None, (),
                                          (1, filled.append))
    entry = entry_of(c, k, table)
    gpu.calls.clear()
    assert entry(X, 1.0, out=Y, stream=7) is NotImplemented and not filled and gpu.names() == []
    assert entry(X, 1.0, out=Y) is entry(X, 1.0, out=Y, stream=5) is Y and filled == [Y, Y]
    gpu.contexts[:] = [0x1001]
    assert entry(X, 1.0, out=Y) is NotImplemented and len(filled) == 2


def test_what_callers_pass_in_which_form(c, gpu):
    """By position, by name, in a row or not; whatever is wrong goes to Python with the arguments as they are."""
    k, table, seen = scaling(), {}, []
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    for n in (16, 8):
        ct.launch(77, (3,), k, (X, Y, 2.5, n))
        assert k.plans.launch_cache.keep_call(table, (X, Y, 2.5, n), (X, Y, 2.5, n), (3,), 0, lambda x: 5, None, (), ())
    entry = entry_of(c, k, table, python=lambda *a, **named: seen.append((a, named)) or "Python")
    gpu.calls.clear()
    forms = [lambda **o: entry(X, 2.5, **o), lambda **o: entry(X, **o), lambda **o: entry(x=X, f=2.5, **o),
             lambda **o: entry(*(X, 2.5), **{"N": 16, **o}), lambda **o: entry(f=1.0, N=8, x=X, **o),
             lambda **o: entry(X, N=8, **o)]
    for form in forms:
        assert form(out=Y) is form(out=Y, stream=None) is Y
    assert [struct.unpack("<f", one["parameters"][6])[0] for one in gpu.launches[-12::2]] == [2.5, 1, 2.5, 2.5, 1, 1]
    assert not seen and gpu.names() == [IN_C] * 12
    for args, named in (((X, 2.5, 16), {"out": Y}), ((X, 2.5), {"out": Y, "x": X}), ((X,), {"out": Y, "z": 1}),
                        ((), {"out": Y}), ((X,), {"out": X}), ((X,), {"out": (Y,)}), ((X,), {}),
                        ((X,), {"out": Y, "stream": "none"})):
        assert entry(*args, **named) == "Python" and seen.pop() == (args, named)
    assert gpu.names() == [IN_C] * 12


def test_an_entry_says_what_it_takes(c, gpu):
    k = scaling()
    ct.launch(77, (3,), k, (X, Y, 2.5, 16))
    for wrong in ({"places": (0, 2)}, {"outputs": (4,)}, {"returned": (-1,)}, {"arrays": (4,)}, {"positional": 4},
                  {"defaults": (None,) * 257}):
        with pytest.raises(ValueError):
            entry_of(c, k, {}, **wrong)
    for wrong in ({"places": ("0", 2, 3)}, {"calls": None}):
        with pytest.raises(TypeError):
            entry_of(c, k, {}, **wrong)
    entry = entry_of(c, k, {})
    assert entry.use(object()) is False and entry.use(scaling()) is False


def echoing(c):
    """An object whose calls go through an Entry, and are answered by Python code."""
    class Function(c.Callable):
        def python(self, *args):
            return args

    f = Function()
    with pytest.raises(TypeError, match="nothing was said"):
        f(1)
    c.enter(f, c.Entry(calls={}, python=f.python, failed=None, names=("x",), positional=1, defaults=(None,),
                       places=(0,), outputs=(), returned=(), arrays=(0,)), shown)
    return f


def shown(*args):
    return "shown"


def test_calls_go_past_the_function_that_a_class_shows(c):
    f, other = echoing(c), echoing(c)
    for _ in range(2):
        assert type(f).__call__ is vars(type(f))["__call__"] is shown and f.__call__(1) == "shown"
        assert f(3) == (3,) and f(*[4]) == (4,) and f() == ()
        c.enter(f, c.Entry(calls={}, python=f.python, failed=None, names=("x",), positional=1, defaults=(None,),
                           places=(0,), outputs=(), returned=(), arrays=(0,)), shown)
    type(f).__call__ = lambda self, x: x + 1
    assert f(3) == 4 and other(3) == (3,)
    del type(f).__call__
    assert f(3) == (3,)


def test_an_entry_that_is_gone_takes_its_function_with_it(c):
    f = echoing(c)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_several_outputs_between_other_arguments(c, gpu):
    @ct.kernel
    def k(a, x, b, y):
        ct.store(a, 0, ct.load(x, 0, 4) + ct.load(y, 0, 4))
        ct.store(b, 0, ct.load(x, 0, 4))

    arrays = [CuPyArray(n * 4096, (8,), (1,)) for n in range(1, 9)]
    a, x, b, y, *others = arrays
    ct.launch(0, (1,), k, (a, x, b, y))
    cache, table = k.plans.launch_cache, {}
    recipes = [(lambda o=o: o, (), None, None) for o in others[:2]]
    assert cache.keep_call(table, (None, x, None, y), (a, x, b, y), (1,), 1, lambda x: 0, None, tuple(recipes), ())
    for too_few in ((), tuple(recipes[:1])):
        assert cache.keep_call({}, (None, x, None, y), (a, x, b, y), (1,), 1, lambda x: 0, None, too_few, ()) is False
    assert cache.keep_call(table, (a, x, b, y), (a, x, b, y), (1,), 1, lambda x: 0, None, (), ())
    entry = entry_of(c, k, table, names=("x", "y"), defaults=(None,) * 4, places=(1, 3), outputs=(0, 2),
                     returned=(0, 1, 2), arrays=(1, 3))
    assert entry(others[2], others[3]) == (others[0], others[2], others[1])
    addresses = [struct.unpack("<Q", p)[0] for p in gpu.launches[-1]["parameters"] if len(p) == 8]
    assert [n for n in addresses if n >= 4096] == [o.data.ptr for o in (others[0], others[2], others[1], others[3])]
    assert entry(x, y, out=(a, b)) == (a, x, b)
    for out in (a, [a, b], (a,), (a, b, b), (a, a), (a, x), [y, b], (None, b), iter((a, b))):
        assert entry(x, y, out=out) is NotImplemented


def test_versions_of_outputs_stay(calls, gpu):
    """Nobody has seen a tensor before the call returns it."""
    made = LentTensor(16384, (50,), (2,))
    call = calls(lambda *a: made, x=LX, y=LY)
    assert call(LX) is made and (LX.version, made.version) == (0, 0)
