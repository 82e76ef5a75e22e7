"""ct.schedule: orders of blocks that can be repeated."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import cutile as ct
from cutile.runtime.turn_schedule import read_steps, write_steps


@ct.kernel
def order_of_stores(x):
    ct.store(x, 0, ct.load(x, 0, (1,)) * 4 + ct.bid(0))


def result() -> int:
    x = np.zeros(1, np.int32)
    ct.launch(None, (4,), order_of_stores, (x,))
    return int(x[0])


def test_a_seed_repeats_itself():
    def under(seed: int) -> int:
        with ct.schedule(seed=seed):
            return result()

    assert [under(s) for s in range(20)] == [under(s) for s in range(20)]
    assert len({under(s) for s in range(20)}) > 5


def test_a_file_is_replayed(tmp_path):
    path = tmp_path / "steps.json"
    write_steps(path, "order_of_stores", [(3, 0, 0), (0, 0, 0), (3, 0, 0), (3, 0, 0), (3, 0, 0)])
    assert read_steps(path)[:2] == [(3, 0, 0), (0, 0, 0)]
    with ct.schedule(replay=path):
        assert result() == 3 * 64 + 0 * 16 + 1 * 4 + 2


def test_settings_and_other_threads_are_as_before():
    usual, inside = result(), []
    with ct.schedule(seed=5):
        thread = threading.Thread(target=lambda: inside.append(result()))
        thread.start()
        thread.join()
    assert inside == [usual] == [result()]


@pytest.mark.parametrize("options, error, says", [
    ({}, TypeError, "takes a seed, or replay="), ({"seed": 1, "replay": "x"}, TypeError, "takes a seed, or replay="),
    ({"seed": -1}, ValueError, "CUTILE_SEED is -1"), ({"replay": "nowhere.json"}, FileNotFoundError, "nowhere"),
])
def test_wrong_arguments(options, error, says):
    with pytest.raises(error, match=says), ct.schedule(**options):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"cutile replay": 2, "steps": []}',
                                     '{"cutile replay": 1, "steps": [[1, 2]]}', '{"cutile replay": 1, "steps": 5}'])
def test_files_that_are_no_replay(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="x.json is no replay file of this version of cutile"):
        read_steps(path)


def test_the_form_of_the_file(tmp_path):
    write_steps(tmp_path / "x.json", "k", [(1, 2, 3)])
    assert json.loads((tmp_path / "x.json").read_text()) == {"cutile replay": 1, "kernel": "k", "steps": [[1, 2, 3]]}
