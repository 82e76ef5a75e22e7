"""A lock that a forked child can use."""

import os
import threading

import pytest

from cutile._support.locks import Lock


def test_one_lock_for_all_threads():
    lock, found = Lock(), []
    with lock.here():
        t = threading.Thread(target=lambda: found.append(lock.here().acquire(blocking=False)))
        t.start()
        t.join()
    assert found == [False] and not lock.here().locked()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_has_its_own():
    lock = Lock()
    with lock.here():
        pid = os.fork()
        if pid == 0:
            free = not lock.here().locked()
            with lock.here():
                os._exit(0 if free and lock.here().locked() else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert lock.here().locked()
