"""Options of functions of another kind: each error names the option, and says what it is."""

import re

import numpy as np
import pytest

import cutile as ct
from cutile.functions import options
from cutile.functions.compiled import Fresh

X = np.ones(8, np.float32)
SPEC = ct.ArraySpec("N", ct.float32)


@ct.jit(grid="cdiv(N, TILE)", out=ct.Out("N"))
@ct.kernel
def doubled(x: ct.Array["N"], y, TILE: ct.Constant[int] = 4):
    ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), TILE))


@ct.jit(grid="cdiv(N, 4)", out=ct.Out("N"))
def factory(f):
    @ct.kernel
    def kernel(x: ct.Array["N"], y):
        ct.store(y, ct.bid(0), f * ct.load(x, ct.bid(0), 4))
    return kernel


KERNEL = doubled.kernel
CONFIGS = [{"TILE": 4}, {"TILE": 8}]


def reference(x, TILE=4):
    return 2 * x


def tune(**given):
    return ct.autotune(CONFIGS, **{"quiet": True, "timeout_s": None, **given})(doubled)


def matches(*args, **given):
    return ct.testing.assert_matches(doubled, *args, **given)


def bench(**given):
    return ct.testing.do_bench(lambda: None, **{"repeats": 1, "warmup": 0, **given})


@pytest.mark.parametrize("call, error, message", [
    # ct.jit
    (lambda: ct.jit(KERNEL, grid="N", target=90), TypeError, 'target of ct.jit is a name such as "sm_90", not 90'),
    (lambda: ct.jit(KERNEL, grid="N", name=3), TypeError, "name of ct.jit is text, not 3"),
    (lambda: ct.jit(KERNEL, grid="N", checks="no"), TypeError, "checks of ct.jit is True or False, not 'no'"),
    (lambda: ct.jit(KERNEL, grid="N", hints="occupancy=2"), TypeError,
     "hints of ct.jit is a dictionary by name, not 'occupancy=2'"),
    (lambda: ct.jit(KERNEL, grid="N", defaults=[1]), TypeError, "defaults of ct.jit is a dictionary by name, not [1]"),
    # ct.autotune
    (lambda: ct.autotune(doubled), TypeError,
     'ct.autotune takes configurations: @ct.autotune([{"TILE": 64}, {"TILE": 128}]) over doubled'),
    (lambda: tune(key="N"), TypeError, """key of ct.autotune is a tuple of names, such as ("N",), not 'N'"""),
    (lambda: tune(key=3), TypeError, 'key of ct.autotune is a tuple of names, such as ("N",), not 3'),
    (lambda: tune(reference=X), TypeError,
     "reference of ct.autotune is a function, not an object of type numpy.ndarray"),
    (lambda: tune(check="close"), TypeError, "check of ct.autotune is a function, not 'close'"),
    (lambda: tune(budget_s="1"), TypeError, "budget_s of ct.autotune is a positive number of seconds, not '1'"),
    (lambda: tune(budget_s=-1), TypeError, "budget_s of ct.autotune is a positive number of seconds, not -1"),
    (lambda: tune(timeout_s=True), TypeError, "timeout_s of ct.autotune is a positive number of seconds, not True"),
    (lambda: tune(executor=dict), TypeError, "executor of ct.autotune is an executor, such as "
                                             "concurrent.futures.ProcessPoolExecutor(), not <class 'dict'>"),
    (lambda: tune(save=3), TypeError, "save of ct.autotune is a path, not 3"),
    (lambda: tune(inputs=X[:2]), TypeError,
     'inputs is "zeros", "normal", "integers" or a function, not array([1., 1.], dtype=float32)'),
    (lambda: ct.autotune(CONFIGS)(tune()), TypeError,
     "doubled is tuned already; put all configurations into one ct.autotune"),
    (lambda: tune().load(3), TypeError, "doubled.load takes a path, not 3"),
    (lambda: tune().export(None), TypeError, "doubled.export takes a path, not None"),
    (lambda: tune().compile_all((SPEC,)), TypeError, "configurations are a list of dictionaries, such as "
     '[{"TILE": 64}, {"TILE": 128}], not (ArraySpec(\'N\', float32),)'),
    (lambda: tune()(X, 4), TypeError,
     "doubled() takes 1 argument by position (`x`), got 2; what is tuned is given by name"),
    (lambda: tune()(), TypeError, "doubled() needs the argument `x`"),
    (lambda: tune()(np.float32(3)), TypeError, "doubled(): `x` must be an array, got the number 3.0; np.asarray([x], "
     "dtype) makes one of one element, or annotate the parameter as a number, x: float"),
    (lambda: ct.autotune(lambda N: 1 // 0, quiet=True)(doubled)(X), ValueError,
     "the configurations of doubled cannot be computed: ZeroDivisionError: integer division or modulo by zero"),
    # compile
    (lambda: doubled.compile(SPEC, target="sm_90", hints=[2]), TypeError,
     "hints of doubled.compile is a dictionary by name, not [2]"),
    (lambda: doubled.compile(SPEC, targets="sm_90"), TypeError, "doubled() has no argument targets"),
    (lambda: doubled.compile_all({"TILE": 4}, (SPEC,)), TypeError, "configurations of doubled.compile_all are a list "
     "of dictionaries, or of tuples of further arguments, not {'TILE': 4}"),
    (lambda: doubled.compile_all([4], (SPEC,)), TypeError, "configurations of doubled.compile_all are a list of "
     "dictionaries, or of tuples of further arguments, not [4]"),
    (lambda: doubled.compile_all(CONFIGS, SPEC), TypeError, "specs of doubled.compile_all is a tuple of the arguments, "
     "such as (x,), not an object of type cutile.compilation.array_spec.ArraySpec"),
    (lambda: doubled.compile_all(CONFIGS, (SPEC,), targets="sm_90"), TypeError,
     """targets of doubled.compile_all is a list, such as ["sm_90"], not 'sm_90'"""),
    (lambda: ct.compile_all([], threads=0), TypeError, "threads of ct.compile_all is a positive int, not 0"),
    (lambda: ct.compile_all("ab"), TypeError, "ct.compile_all takes a list of jobs (function, specs), not 'ab'"),
    (lambda: ct.CompiledFunction(), TypeError, "compiled functions are made by f.compile(...), of a function by "
     "ct.jit, and by CompiledFunction.load(path)"),
    (lambda: ct.CompiledFunction.load(3), TypeError, "CompiledFunction.load takes a path, not 3"),
    (lambda: object.__new__(Fresh).save(3), TypeError, "save() takes a path, not 3"),
    # ct.testing
    (lambda: matches(X, (X,)), TypeError,
     "reference of assert_matches is a function, not an object of type numpy.ndarray"),
    (lambda: matches(reference, X), TypeError,
     "args of assert_matches is a tuple of the arguments, such as (x,), not an object of type numpy.ndarray"),
    (lambda: matches(reference, (X,), named=[4]), TypeError,
     "named of assert_matches is a dictionary by name, not [4]"),
    (lambda: matches(reference, ()), TypeError, "doubled() needs the argument `x`"),
    (lambda: matches(reference, (X,), bounds="1e-3"), TypeError,
     "bounds= of `y` is a number or an array of numbers, not '1e-3'"),
    (lambda: matches(reference, (X,), bounds=-1), ValueError,
     "bounds= of `y` says how far elements may be away, so it is not negative"),
    (lambda: matches(reference, (X,), bounds=np.ones(3)), ValueError,
     "bounds= of `y` has the shape (3,), and `y` (8,); give a number, or an array of that shape"),
    (lambda: ct.testing.assert_matches(KERNEL, reference, (X,)), TypeError,
     f"a function made by ct.jit is needed, not {KERNEL!r}; doubled is a kernel, of which ct.jit(kernel, grid=..., "
     f"out=...) makes a function"),
    (lambda: ct.testing.assert_matches(factory, reference, (X,)), TypeError,
     f"a function made by ct.jit is needed, not {factory!r:.100}; factory is a factory: give what it returns, "
     f"factory(...)"),
    (lambda: ct.testing.assert_matches(ct.jit(KERNEL, grid="N"), lambda *args: 0, (X, X.copy())), ValueError,
     "doubled returns nothing that could be compared: declare outputs by ct.jit(..., out=...), or say by inout() which "
     "arguments it changes"),
    (lambda: ct.testing.assert_repeatable(doubled, X), TypeError,
     "args of assert_repeatable is a tuple of the arguments, such as (x,), not an object of type numpy.ndarray"),
    (lambda: ct.testing.assert_repeatable(3, (X,)), TypeError, "f of assert_repeatable is a function, not 3"),
    (lambda: ct.testing.assert_repeatable(doubled, (X,), repeats="x"), TypeError,
     "repeats of assert_repeatable is an int, 0 or more, not 'x'"),
    (lambda: ct.testing.assert_repeatable(ct.jit(KERNEL, grid="1"), (X, X.copy())), ValueError,
     "doubled returns nothing that could be compared"),
    (lambda: ct.testing.do_bench(X), TypeError,
     "fn of do_bench is a function without arguments, such as lambda: f(x), not an object of type numpy.ndarray"),
    (lambda: bench(quantiles=[50]), TypeError,
     "quantiles of do_bench is a tuple of numbers from 0 to 1, such as (0.2, 0.5, 0.8), not [50]"),
    (lambda: bench(quantiles=0.5), TypeError,
     "quantiles of do_bench is a tuple of numbers from 0 to 1, such as (0.2, 0.5, 0.8), not 0.5"),
    (lambda: bench(rep_ms="100"), TypeError, "rep_ms of do_bench is a number of milliseconds, 0 or more, not '100'"),
    (lambda: bench(rep_ms=-1), TypeError, "rep_ms of do_bench is a number of milliseconds, 0 or more, not -1"),
    (lambda: doubled.profile(), TypeError, "doubled() needs the argument `x`"),
    (lambda: doubled.profile(X, 4, 5), TypeError, "doubled() takes 2 arguments (`x`, `TILE`), got 3; `y` is an output, "
     "which the call makes and returns; out= takes an array of yours instead. `y` was taken for the output, since "
     "outputs without a name are the last parameters that can be arrays: name another by ct.Out(..., name=\"y\"), or "
     "add one, since a kernel returns nothing, and stores to its outputs, which are parameters"),
    (lambda: ct.testing.profile(doubled, X), TypeError,
     "args of profile is a tuple of the arguments, such as (x,), not an object of type numpy.ndarray"),
    # habits of other libraries, and methods
    (lambda: doubled[(1,)](X), TypeError,
     "doubled takes no grid in brackets, since ct.jit was given one; call it as doubled(...)"),
    (lambda: tune()[(1,)](X), TypeError,
     "doubled takes no grid in brackets, since ct.jit was given one; call it as doubled(...)"),
    (lambda: factory[(1,)](2), TypeError,
     "factory takes no grid in brackets, since ct.jit was given one; call it as factory(...)(...)"),
    (lambda: factory.compile(SPEC), AttributeError,
     "factory is a factory: call it, and what it returns has compile, as in factory(...).compile"),
    (lambda: factory.nothing, AttributeError, "'Factory' object has no attribute 'nothing'"),
    (lambda: tune().inout("x"), AttributeError,
     "doubled is a tuned function, which has no inout; the function that is tuned has one, doubled.function.inout"),
    (lambda: tune().nothing, AttributeError, "'Tuned' object has no attribute 'nothing'"),
    (lambda: doubled.inout(0), TypeError, 'doubled.inout takes names of parameters, such as inout("x"), not 0'),
    (lambda: doubled.inout(["x"]), TypeError,
     """doubled.inout takes names of parameters, such as inout("x"), not ['x']"""),
    (lambda: doubled.inout("y"), TypeError, "doubled: `y` is an output, which calls return anyway"),
    (lambda: doubled.inout("TILE"), TypeError, "doubled: TILE is no array that callers pass"),
    (lambda: doubled.inout("xx"), TypeError, "doubled: xx is no array that callers pass; did you mean x?")])
def test_what_users_get_wrong(call, error, message, tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path))
    with pytest.raises(error, match="^" + re.escape(message) + "$") as e:
        call()
    assert type(e.value) is error


def test_none_stands_for_what_is_not_given():
    options.check("f", {"n": None}, {"n": options.COUNT})
    for right in (0, 3, np.int64(3)):
        options.check("f", {"n": right}, {"n": options.COUNT})
    for wrong in (-1, 2.0, True, np.array(3), "3"):
        with pytest.raises(TypeError, match="^n of f is an int, 0 or more, not "):
            options.check("f", {"n": wrong}, {"n": options.COUNT})
