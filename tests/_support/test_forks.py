"""Forks while another thread imports a module of cutile: the child can import it too."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")

SCRIPT = """
import importlib.abc, importlib.machinery, os, signal, sys, threading, time
import cutile
from cutile._support import forks

begun = threading.Event()

class Slow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.endswith("slow") else None

    def exec_module(self, module):
        begun.set()
        time.sleep(0.5)
        module.whole = True

sys.meta_path.insert(0, Slow())
forks.PATIENCE = {patience}
thread = threading.Thread(target=__import__, args=("{name}",))
thread.start()
begun.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(5)
    os._exit(0 if __import__("{name}", fromlist=["whole"]).whole else 1)
status = os.waitpid(pid, 0)[1]
thread.join()
assert sys.modules["{name}"].whole
print("status", status)
"""


def status(name, patience=10.0):
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c",
                           SCRIPT.format(name=name, patience=patience)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.removeprefix("status "))


def test_a_module_that_another_thread_imports():
    assert status("cutile.slow") == 0


def test_others_modules_are_not_waited_for():
    """The child waits for ever, as in any Python program."""
    assert os.WIFSIGNALED(status("some_slow"))


def test_a_fork_does_not_wait_for_ever():
    """Then the child begins the import anew."""
    assert status("cutile.slow", patience=0.1) == 0


def test_a_module_that_forks_while_it_is_imported(tmp_path):
    """A fork does not wait for the import of its own thread."""
    script = SCRIPT.replace('''        begun.set()
        time.sleep(0.5)
''', '''        begun.set()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
''').replace("status = ", "assert time.monotonic() - began < 5\nstatus = ").replace(
        "thread = ", "began = time.monotonic()\nthread = ", 1)
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c",
                           script.format(name="cutile.slow", patience=10.0)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "status 0\n", done.stderr
