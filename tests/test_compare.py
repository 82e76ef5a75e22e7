"""benchmarks/compare.py: how two checkouts are judged, and that a worker measures the one that it is meant to."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import compare

    return compare


@pytest.mark.parametrize("found, status", [
    ({"a": [1.0, 1.02, 1.3], "b": [0.99]}, 0),  # medians 1.02 and 0.99
    ({"a": [1.05], "b": [1.0]}, 0),
    ({"a": [1.05], "b": [1.02]}, 1),  # the mean is 1.035
    ({"a": [1.11], "b": [0.5]}, 1),  # a row
    ({"a": [0.7, 1.11, 1.2, 1.2], "b": [0.5]}, 1),
])
def test_the_mean_and_each_row_have_a_bar(compare, found, status, capsys):
    assert compare.show(found) == status
    assert ("!" in capsys.readouterr().out) == bool(status)


def test_a_worker_answers_with_seconds(compare, tmp_path):
    worker = compare.Worker(ROOT, tmp_path)
    row = "repeated launch, NumPy, 3 arrays"
    assert row in worker.rows and 0 < worker.seconds(row) < 1
    worker.end()


def test_a_worker_refuses_another_package_than_that_of_the_checkout(tmp_path):
    done = subprocess.run([sys.executable, str(FOLDER / "_compare_rows.py"), str(tmp_path)],
                          env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 1 and f"not in {tmp_path}" in done.stderr
