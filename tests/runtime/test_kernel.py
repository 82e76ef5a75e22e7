"""@kernel, @function, and one program per key [KERN-*, FN-*, SPEC-*]."""

import copy
import functools
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.front.compiling import cell

kernels = sys.modules["cutile.runtime.kernel"]  # cutile.runtime.kernel itself is the decorator


@ct.kernel
def add_one(x):
    """Adds one."""
    ct.scatter(x, 0, ct.gather(x, 0) + 1)


@pytest.fixture
def typings(monkeypatch):
    """The kernels typed during a test."""
    seen = []
    typed = kernels.typed
    monkeypatch.setattr(kernels, "typed", lambda k, arg_types: seen.append(k) or typed(k, arg_types))
    return seen


def launch(k, *args):
    ct.launch(None, (1,), k, args)


def test_decorator():  # KERN-1
    assert add_one.__name__ == "add_one" and add_one.__doc__ == "Adds one."
    assert repr(add_one) == f"<kernel {__name__}.add_one>"
    for target in (3, len, functools.partial(print), [].append, int):
        with pytest.raises(TypeError, match="needs a Python function"):
            ct.kernel(target)
    x = np.zeros(1, np.int32)
    launch(ct.kernel(num_ctas=2)(lambda x: ct.scatter(x, 0, 5)), x)
    assert x[0] == 5


@ct.kernel
@ct.function
def add_two(x):
    ct.scatter(x, 0, ct.gather(x, 0) + 2)


def test_a_tile_function_as_kernel():  # KERN-1
    x = np.zeros(1, np.int32)
    launch(add_two, x)
    assert x[0] == 2 and add_two.__name__ == "add_two"


def test_copies_and_pickles():
    """As functions do: modules of models that hold a kernel are copied, and sent to other processes."""
    assert copy.copy(add_one) is copy.deepcopy([add_one])[0] is pickle.loads(pickle.dumps(add_one)) is add_one
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(add_one.replace_hints(num_ctas=2))


def test_called_like_a_function():  # FN-4
    with pytest.raises(
        TypeError,
        match=r"add_one cannot be called like a function; start it with ct.launch\(stream, grid, add_one, args\)",
    ):
        add_one(np.zeros(1))


def test_subscripted_by_a_grid():  # FN-4
    with pytest.raises(TypeError, match=r"start it with ct.launch\(stream, grid, add_one, args\)"):
        add_one[(1,)](np.zeros(1))


def test_replace_hints():  # KERN-5
    other = add_one.replace_hints(num_ctas=2)
    assert other is not add_one and other.options.num_ctas == 2 and add_one.options.num_ctas is None
    x = np.zeros(1, np.int32)
    launch(other, x)
    assert x[0] == 1
    with pytest.raises(TypeError, match="unknown kernel option 'nope'"):
        add_one.replace_hints(nope=1)


def test_hints_count_for_nothing_in_the_interpreter(typings):
    @ct.kernel
    def k(x):
        ct.scatter(x, 0, ct.gather(x, 0) + 1)

    x = np.zeros(1, np.int32)
    for n in range(1, 33):
        launch(k.replace_hints(occupancy=n).replace_hints(opt_level=n % 4), x)
    launch(k, x)
    assert x[0] == 33 and len(typings) == 1


def test_programs_are_not_kept_for_ever(typings, monkeypatch):
    monkeypatch.setattr(kernels, "LIMIT", 4)
    monkeypatch.setenv("CUTILE_LAUNCHER", "python")  # C code keeps launches of its own

    @ct.kernel
    def k(x, n: ct.Constant):
        ct.scatter(x, 0, n)

    x = np.zeros(1, np.int32)
    for n in range(20):
        for known in (0, n):
            launch(k, x, known)
            assert x[0] == known
        assert len(k._programs) <= 4 and len(k.plans) <= 4
    assert len(typings) == 20  # what is used stays
    launch(k, x, 1)
    assert x[0] == 1 and len(typings) == 21


def test_options_for_which_something_is_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(kernels, "OPTIONS_LIMIT", 3)
    k = ct.kernel(add_one.function)
    hinted = [k.replace_hints(occupancy=n) for n in range(1, 9)]
    x = np.zeros(1, np.int32)
    for kernel in (*hinted, k):
        launch(kernel, x)
    assert x[0] == 9 and len(k._by_options) == 3
    assert k.replace_hints(occupancy=8).plans is hinted[7].plans is not hinted[6].plans


def test_typed_once_per_key(typings):  # SPEC-1, SPEC-4
    @ct.kernel
    def k(x, n, c: ct.Constant):
        ct.scatter(x, 0, n + c)

    x, f = np.zeros(3, np.int32), np.zeros(3, np.float32)
    for args in ((x, 1, 2), (x, 5, 2), (x[:2], 5, 2), (x[::-1], 7, 2)):
        launch(k, *args)
    assert len(typings) == 1
    launch(k, f, 1, 2)
    launch(k, f, 1.0, 2)
    launch(k, f, 1, 2.0)
    launch(k, f, 1, True)
    assert len(typings) == 5
    launch(k, f, 1.5, 2)
    assert len(typings) == 5


def test_constant_floats_that_compare_equal(typings):  # SPEC-1
    seen = []

    @ct.kernel
    def k(c: ct.Constant):
        ct.static_eval(seen.append(c))

    for v in (0.0, -0.0, 0, False, float("nan"), float("nan")):
        launch(k, v)
    # `seen` changes while the kernel is typed, so every launch types it anew: what counts is what was seen.
    assert [repr(v) for v in seen][:4] == ["0.0", "-0.0", "0", "False"]


def test_failed_typing_is_tried_again():
    space = cell("@ct.kernel\ndef k(x): ct.scatter(x, 0, N)")
    x = np.zeros(1, np.int32)
    with pytest.raises(ct.TileSyntaxError):
        launch(space["k"], x)
    space["N"] = 4
    launch(space["k"], x)
    assert x[0] == 4


def test_many_threads_type_once(typings):
    @ct.kernel
    def k(x, i):
        ct.scatter(x, i, i * 2)

    x = np.zeros(8, np.int32)
    barrier = threading.Barrier(8)

    def run(i):
        barrier.wait()
        launch(k, x, i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(typings) == 1 and x.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_recursion_limit_is_restored():
    before = sys.getrecursionlimit()
    launch(add_one, np.zeros(1, np.int32))
    with pytest.raises(ct.TileError):
        launch(ct.kernel(lambda x: x.nope), np.zeros(1, np.int32))
    assert sys.getrecursionlimit() == before


def test_kernels_are_checked_under_the_setting(monkeypatch):
    from cutile.ir.check import check

    seen = []
    monkeypatch.setattr(kernels, "check", lambda program: seen.append(program) or check(program))
    with settings.override(CHECK=False):
        launch(ct.kernel(lambda x: ct.scatter(x, 0, 1)), np.zeros(1, np.int32))
    assert not seen
    with settings.override(CHECK=True):
        launch(ct.kernel(lambda x: ct.scatter(x, 0, 1)), np.zeros(1, np.int32))
    assert len(seen) == 1  # `fma` has nothing to fuse in it, and gives the kernel that was checked
    with settings.override(CHECK=True):
        launch(ct.kernel(lambda x: ct.scatter(x, 0, ct.gather(x, 0) * 2 + 1)), np.zeros(1, np.float32))
    assert len(seen) == 3 and seen[1] is not seen[2]


def test_functions_on_the_host():  # FN-1, FN-3
    @ct.function
    def tile_only(a):
        return a

    @ct.function(host=True)
    def both(a, *, b=1):
        return a + b

    with pytest.raises(RuntimeError, match=r"tile_only\(\) is a tile function"):
        tile_only(1)
    with pytest.raises(RuntimeError, match=r"write @ct.function\(host=True, tile=False\)"):
        ct.function(tile=False)(lambda a: a)(1)
    assert both(1, b=4) == 5 and both.__name__ == "both"
    with pytest.raises(TypeError):
        ct.function(both, True)
    with pytest.raises(RuntimeError, match=r"ct.exp\(\) works in tile code only"):
        ct.exp(1.0)
    assert ct.cdiv(7, 2) == 4 and ct.cdiv(7.5, 2) == 4.0 and ct.cdiv(-7, 2) == -3


def test_import_and_decoration_load_no_back_end():
    code = (
        "import sys, cutile as ct\nk = ct.kernel(lambda x: None)\n"
        "back_ends = ('cutile.interp', 'cutile.gpu', 'torch', 'cuda')\n"
        "assert not [m for m in sys.modules if m.startswith(back_ends)], sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
