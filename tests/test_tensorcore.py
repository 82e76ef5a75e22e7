"""benchmarks/tensorcore.py: its cases are right, in the interpreter at small sizes, in every kind of configuration."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
          "float8_e4m3fn": ml_dtypes.float8_e4m3fn}


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(FOLDER.parent / "examples"))
    import tensorcore

    return tensorcore


@pytest.fixture
def cases(bench):
    import _tensorcore_cases

    return _tensorcore_cases


@pytest.fixture
def ours(bench, tmp_path):
    return next(bench.sides(tmp_path))


class Arrays:
    """As the benchmark's, in NumPy."""

    processors = 3

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, dtype, *shape):
        return self.rng.standard_normal(shape).astype(DTYPES[dtype])

    def ints(self, values):
        return np.array(values, np.int32)


def wide(case, *names):
    return [case.arrays[n].astype(np.float64) for n in names]


def products(case):
    a, b = wide(case, "a", "b")
    return {"c": a @ (b.T if case.kind == "matmul_by_rows" else b)}


def grouped_products(case):
    a, b = wide(case, "a", "b")
    return {"c": np.concatenate([x @ y for x, y in zip(np.split(a, case.arrays["ends"][:-1]), b, strict=True)])}


def softmax(q, k, case):
    s = q @ k.swapaxes(-1, -2) * case.numbers["scale"]
    if case.numbers.get("causal"):
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def attention(case):
    q, k, v = wide(case, "q", "k", "v")
    k, v = (x.repeat(q.shape[1] // k.shape[1], 1) for x in (k, v))
    return {"out": softmax(q, k, case) @ v}


def backward(case):
    q, k, v, dout = wide(case, "q", "k", "v", "dout")
    p = softmax(q, k, case)
    out = p @ v
    s = q @ k.swapaxes(-1, -2) * case.numbers["scale"]
    if case.numbers["causal"]:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    case.arrays["out"][:], case.arrays["lse"][:] = out, np.log2(np.exp(s).sum(-1))  # what the backward pass begins with
    ds = p * (dout @ v.swapaxes(-1, -2) - (out * dout).sum(-1, keepdims=True)) * case.numbers["scale"]
    return {"dq": ds @ k, "dk": ds.swapaxes(-1, -2) @ q, "dv": p.swapaxes(-1, -2) @ dout}


def decoded(case):
    q, k, v = wide(case, "q", "k", "v")
    n, heads, _, d = q.shape
    k, v = (x[case.arrays["table"]].swapaxes(1, 2).reshape(n, heads, -1, d) for x in (k, v))
    return {"out": softmax(q, k, case) @ v}


SMALL = {
    "float16": (lambda c, new: c.matmul(new, "float16", 160), products),
    "bfloat16": (lambda c, new: c.matmul(new, "bfloat16", 160), products),
    "float8": (lambda c, new: c.matmul(new, "float8_e4m3fn", 160, by_rows=True), products),
    "batched": (lambda c, new: c.batched(new, "float16", 2, 144), products),
    "skinny": (lambda c, new: c.skinny(new, "float16", 16, 512, 640), products),
    "grouped": (lambda c, new: c.grouped(new, "bfloat16", (40, 8, 200), 128, 96), grouped_products),
    "full": (lambda c, new: c.attention(new, 1, 2, 2, 160, 64, False), attention),
    "causal": (lambda c, new: c.attention(new, 1, 2, 2, 160, 64, True), attention),
    "causal, more queries than keys": (lambda c, new: c.attention(new, 1, 2, 2, 160, 64, True, space=[
        (kernel, 64, 16, None, None)
        for kernel in ("forward", "forward_ahead", "forward_pairs", "forward_halves")]), attention),
    "grouped queries": (lambda c, new: c.attention(new, 2, 4, 2, 144, 64, True), attention),
    "backward full": (lambda c, new: c.backward(new, 1, 2, 160, 64, False), backward),
    "backward causal": (lambda c, new: c.backward(new, 1, 2, 160, 64, True), backward),
    "decode": (lambda c, new: c.decode(new, 2, 2, 8, 256, 16, 64), decoded),
}
UNITS = {np.dtype(np.float16): 2**-11, np.dtype(ml_dtypes.bfloat16): 2**-8}


@pytest.mark.parametrize("name", SMALL)
def test_every_configuration_gives_the_right_result(cases, ours, name):
    make, reference = SMALL[name]
    case = make(cases, Arrays())
    want, seen = reference(case), set()
    for stage in case.stages:
        for config in stage.space:
            launches = stage.launches(config)
            program = str([(x.kernel, x.grid, [a for a in x.args if not isinstance(a, np.ndarray)]) for x in launches])
            if program not in seen:  # hints change nothing in the interpreter
                seen.add(program)
                for x in launches:
                    ours.launch(x, None)
                compare(case, want, [a for x in launches for a in x.args if isinstance(a, np.ndarray)])


def compare(case, want, given):
    """The outputs among the given arrays, which are made useless afterwards."""
    for name in case.outputs:
        out = case.arrays[name]
        if any(np.shares_memory(out, a) for a in given):
            error = np.abs(out.astype(np.float64) - want[name]).max() / np.abs(want[name]).max()
            assert error <= 8 * UNITS[out.dtype], name
            out[:] = np.nan


def test_rows_belong_to_a_group_that_has_a_mean(bench):
    assert {name.split("/")[0] for name in bench.cases()} == set(bench.BARS)


def test_spaces_state_each_configuration_once(cases):
    for space in (cases.SQUARE, cases.SMALL, cases.BATCHED, cases.GROUPED, cases.SKINNY, cases.FORWARD, cases.BACKWARD,
                  cases.DECODE):
        assert len(set(space)) == len(space) > 1


@pytest.mark.parametrize("name", SMALL)
def test_kernels_take_the_hints(cases, ours, name):
    case = SMALL[name][0](cases, Arrays())
    for stage in case.stages:
        for x in (x for config in stage.space for x in stage.launches(config)):
            options = ours.kernel(x).options
            assert {k: getattr(options, k) for k in x.hints} == x.hints


@pytest.mark.parametrize("make, reference", [
    (lambda c, new: c.matmul(new, "float16", 32, space=c.SQUARE[:2]), products),
    (lambda c, new: c.grouped(new, "bfloat16", (40, 8, 200), 128, 96, space=c.GROUPED[:2]), grouped_products)])
def test_a_side_is_tuned_and_called(cases, ours, make, reference):
    case = make(cases, Arrays())
    want = reference(case)
    ours.fill({"case": case}, None, None)
    config = ours.tuned(case.stages[0], None)
    assert config in case.stages[0].space
    case.arrays["c"][:] = np.nan
    ours.call(case, [config], None)()
    compare(case, want, [case.arrays["c"]])


def test_a_search_finds_the_results_of_the_launches_before(cases, ours, monkeypatch):
    case = cases.grouped(Arrays(), "bfloat16", (40, 8, 200), 128, 96, space=cases.GROUPED[:1])
    plan = case.stages[0].launches(cases.GROUPED[0])[1].args[3]
    assert not plan.any()
    ours.tuned(case.stages[0], None)
    assert plan[0].tolist() == [0, 0, 40] and plan[1].tolist() == [1, 40, 48] and plan[3].tolist() == [2, 176, 248]


def test_means_and_bars(bench):
    rows = [{"row": "matmul/a", "ratios": {"library": 0.5, "official": 1.0}},
            {"row": "matmul/b", "ratios": {"library": 2.0, "official": 0.9}},
            {"row": "forward/a", "ratios": {"library": 1.1}}]
    means = bench.means(rows)
    assert means["matmul"] == pytest.approx({"library": 1.0, "official": 0.9**0.5})
    assert means["forward"] == pytest.approx({"library": 1.1}) and set(means) == {"matmul", "forward"}
    assert [bench.below(r) for r in rows] == [False, True, False]


def test_the_first_configurations(cases):
    case = cases.backward(Arrays(), 1, 1, 64, 16, False)
    assert [len(s.space) for s in case.searching(3).stages] == [2, 3, 3]
    assert case.searching(3).stages[1].space == cases.BACKWARD[:3]
    assert case.searching(None).stages == case.stages
