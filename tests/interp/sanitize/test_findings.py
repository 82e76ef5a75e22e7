"""All findings of a launch make one error."""

import pickle

import numpy as np
import pytest

import cutile as ct
from cutile import settings
from tests.front.compiling import cell
from tests.interp.sanitize.planted import SCHEDULES, findings

LINES = "\n".join(f"    ct.store(x, ct.bid(0) + {k}, ct.bid(0))" for k in range(1, 15))


@pytest.fixture(scope="module")
def fourteen():
    return cell(f"import cutile as ct\n@ct.kernel\ndef k(x):\n{LINES}\n")["k"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_ten_are_shown_and_the_rest_is_counted(fourteen, schedule):
    x = np.zeros(1, np.int32)
    found = findings("bounds", fourteen, (2,), (x,), schedule)
    assert [e.loc.line for e in found] == list(range(4, 14)) and {e.times for e in found} == {2}
    assert "and 9 more findings of this launch:" in str(found[0])
    assert "note: 4 more findings of this launch are not shown" in str(found[0])


def test_eleven(fourteen):
    found = findings("bounds", fourteen, (1,), (np.zeros(5, np.int32),))
    assert len(found) == 10 and "more findings of this launch are not" not in str(found[0])
    found = findings("bounds", fourteen, (1,), (np.zeros(4, np.int32),))
    assert len(found) == 10 and "note: 1 more finding of this launch is not shown" in str(found[0])


def test_memory_is_as_without_checks(fourteen):
    x, y = np.zeros(9, np.int32), np.zeros(9, np.int32)
    assert findings("all", fourteen, (3,), (x,))
    with settings.override(SANITIZE="off"):
        ct.launch(None, (3,), fourteen, (y,))
    assert x.tolist() == y.tolist()


@ct.kernel
def fails(x):
    ct.store(x, 4, 1)
    ct.assert_(ct.bid(0) < 2, "as it should")
    ct.store(x, 5, 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_another_error_is_the_cause(schedule):
    (first, *_) = findings("bounds", fails, (3,), (np.zeros(4, np.int32),), schedule)
    assert isinstance(first.__cause__, ct.TileAssertionError) and first.loc.line == fails_line()
    with settings.override(SANITIZE="bounds", SCHEDULE=schedule), pytest.raises(ct.TileAssertionError):
        ct.launch(None, (3,), fails, (np.zeros(6, np.int32),))


def fails_line() -> int:
    return test_memory_is_as_without_checks.__code__.co_firstlineno + 10


def test_an_error_can_be_pickled(fourteen):
    (first, *_) = findings("bounds", fourteen, (2,), (np.zeros(1, np.int32),))
    again = pickle.loads(pickle.dumps(first))
    assert str(again) == str(first) and (again.block, again.element, again.array) == ((0, 0, 0), (1,), "x")


def test_repeated_launches_without_checks_run_no_checks(fourteen):
    x = np.zeros(20, np.int32)
    assert findings("bounds", fourteen, (1,), (x,)) == ()
    for _ in range(3):
        ct.launch(None, (9,), fourteen, (x,))
    with ct.sanitize("bounds"), pytest.raises(ct.TileSanitizerError):
        ct.launch(None, (9,), fourteen, (x,))
    ct.launch(None, (9,), fourteen, (x,))
