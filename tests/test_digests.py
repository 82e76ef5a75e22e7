"""tests/digests: what it records, what it tells apart, and that a part of what is recorded still holds."""

import importlib.util
import json

import numpy as np
import pytest

import cutile as ct
from tests.digests import store
from tests.digests.__main__ import compared, measured
from tests.digests.adapter import MESSAGES, OLDEST, POSITIONS, Recorder, name_of

CHEAP = ["test_grid.py", "test_select.py"]
TARGETS = (None, "sm_90")

SOURCE = """
import cutile as ct

@ct.kernel
def k(x, out):
    t = ct.load(x, 0, 4)
    {more}
    ct.store(out, 0, {value})
"""


@pytest.fixture
def kernel(tmp_path):
    """A kernel in a file of its own, each time another one."""
    made = iter(range(100))

    def make(value="t + 1", more="pass", above=""):
        path = tmp_path / str(next(made)) / "kernel.py"
        path.parent.mkdir()
        path.write_text(above + SOURCE.format(value=value, more=more))
        spec = importlib.util.spec_from_file_location("kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.k

    return make


def recorded(kernel, x=None, targets=TARGETS):
    """By column, what a launch is recorded with."""
    recorder = Recorder(targets)
    x = np.zeros(4, np.float32) if x is None else x
    assert recorder.launch("test", kernel, (x, np.zeros_like(x)))
    return {column: found for column, (found,) in recorder.found["test"].items()}


def test_neither_the_file_nor_the_lines_above_a_kernel_count(kernel):
    assert recorded(kernel()) == recorded(kernel(above="\n\n# a comment\n"))


def test_what_a_kernel_computes_counts_for_every_target(kernel):
    a, b = recorded(kernel()), recorded(kernel("t + 2"))
    assert {c for c in a if a[c] != b[c]} == {*map(name_of, TARGETS), OLDEST}


def test_lines_in_a_kernel_count_as_positions_alone(kernel):
    a, b = recorded(kernel()), recorded(kernel(more="pass\n"))
    assert {c for c in a if a[c] != b[c]} == {POSITIONS}


def test_what_is_known_of_the_arguments_counts(kernel):
    k = kernel()
    a, b = recorded(k, np.zeros(4, np.float32)), recorded(k, np.zeros(8, np.float32)[::2])
    assert a["sm_90"] != b["sm_90"]


def test_hints_count(kernel):
    k = kernel()
    a, b = recorded(k), recorded(k.replace_hints(occupancy=2))
    assert a["sm_90"] != b["sm_90"] and a[POSITIONS] == b[POSITIONS]


def test_what_a_target_lacks_is_recorded_by_its_error(kernel):
    found = recorded(kernel("ct.astype(ct.astype(t, ct.float8_e4m3fn), ct.float32)"), targets=("sm_80", "sm_90"))
    assert found["sm_80"] == "TileUnsupportedFeatureError" and len(found["sm_90"]) == 16


def test_a_launch_that_does_not_compile_is_recorded_as_none(kernel):
    recorder = Recorder(TARGETS)
    assert not recorder.launch("test", kernel("ct.nonsense(t)"), (np.zeros(4, np.float32),) * 2)
    assert not recorder.found


def test_kernels_whose_static_code_launches_are_recorded_once():
    """A kernel is typed once more for its record; what static code launches meanwhile is part of no other launch."""
    typed = []

    def above(k):
        @ct.kernel
        def one_more(x, out):
            ct.static_eval((typed.append(1), recorder.launch("test", k, given)) and 1)
            ct.store(out, 0, ct.load(x, 0, 4))

        return one_more

    @ct.kernel
    def k(x, out):
        ct.store(out, 0, ct.load(x, 0, 4))

    recorder, given = Recorder(TARGETS), (np.zeros(4, np.float32), np.zeros(4, np.float32))
    for _ in range(8):
        k = above(k)
    assert recorder.launch("test", k, given)
    assert len(typed) == 1 and len(recorder.found["test"]["sm_90"]) == 1


FOUND = {
    "test_a.py::test_one[1]": {"sm_90": ["a", "b"], POSITIONS: ["p", "p"]},
    "test_a.py::test_one[2]": {"sm_90": ["c"], MESSAGES: ["m"]},
    "test_b.py::test_two": {"sm_90": ["a"]},
}


@pytest.mark.parametrize("column, kind", [("sm_90", "bytecode"), (POSITIONS, POSITIONS), (MESSAGES, MESSAGES),
                                          ("exports", "bytecode")])
def test_a_test_that_differs_is_named(column, kind, capsys):
    changed = {**FOUND, "test_a.py::test_one[2]": {**FOUND["test_a.py::test_one[2]"], column: ["new"]}}
    old, new = store.summary(FOUND), store.summary(changed)
    assert store.tests_that_differ(old, new) == {**dict.fromkeys([*store.KINDS, "new", "gone"], []),
                                                 kind: ["test_a.py::test_one"]}
    assert list(store.columns_that_differ(old, new)) == [("test_a.py", column)]
    assert compared(old, new, list(store.KINDS)) == 1 and f"{kind:9} test_a.py::test_one\n" in capsys.readouterr().out
    assert compared(old, new, [k for k in store.KINDS if k != kind]) == 0


def test_a_test_that_is_gone_is_named_and_one_that_is_new():
    less = {name: v for name, v in FOUND.items() if not name.startswith("test_b")}
    assert store.tests_that_differ(store.summary(FOUND), store.summary(less))["gone"] == ["test_b.py::test_two"]
    assert store.tests_that_differ(store.summary(less), store.summary(FOUND))["new"] == ["test_b.py::test_two"]


def test_details_tell_which_launch_differs():
    changed = {**FOUND, "test_a.py::test_one[1]": {"sm_90": ["a", "x"], POSITIONS: ["p", "p"]}}
    assert list(store.details_that_differ(FOUND, changed)) == [
        "test_a.py::test_one[1]: sm_90: 1 of 2 (now 2) differ, first launch 1: b is now x"]


@pytest.mark.parametrize("file", CHEAP)
def test_bytecode_is_what_was_recorded(file):
    found = store.summary(measured([file], targets=",".join(map(name_of, TARGETS))))
    kept = json.loads(store.KEPT.read_text())[file]["columns"]
    for target in map(name_of, TARGETS):
        assert found[file]["columns"][target] == kept[target], (
            f"the kernels of {file} compile to other bytecode for {target} than recorded. Where that is meant, "
            f"`python -m tests.digests record` records it anew; `python -m tests.digests compare` names the tests")
