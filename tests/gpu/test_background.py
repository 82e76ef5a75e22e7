"""Work in the background: it is done, in order, and keeps no process from ending or forking."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from cutile import settings
from cutile.gpu import background
from tests.gpu.tileir.test_tileiras import posix, script
from tests.patience import PATIENCE


def test_jobs_are_done_in_order_by_one_thread_which_ends():
    done = []
    for k in range(50):
        assert background.submit(lambda k=k: done.append((k, threading.get_ident())))
    background.wait()
    assert [k for k, _ in done] == list(range(50)) and threading.get_ident() not in {t for _, t in done}
    assert not any(t.name == "cutile" and t is background._thread for t in threading.enumerate())


def test_a_job_sees_the_settings_of_who_submits_it():
    seen = []
    with settings.override(LINEINFO=True):
        background.submit(lambda: seen.append(settings.get("LINEINFO")))
    background.wait()
    assert seen == [True]


def test_there_is_no_thread_before_the_first_job():
    code = ("import threading, cutile, cutile.gpu.variants, cutile.gpu.background\n"
            "assert threading.active_count() == 1\n")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_where_no_thread_can_be_had(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert not background.submit(lambda: None)
    background.wait()
    monkeypatch.undo()
    done = []
    assert background.submit(lambda: done.append(1))
    background.wait()
    assert done == [1]


def ended(code: str) -> tuple[float, subprocess.CompletedProcess]:
    """How long a process takes that runs this, from when it says that it has reached its end; and what it printed."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as child:
        assert child.stdout.readline() == "at the end\n"
        begin = time.monotonic()
        out, err = child.communicate(timeout=PATIENCE)
        return time.monotonic() - begin, subprocess.CompletedProcess([], child.returncode, out, err)


@posix
@pytest.mark.parametrize("last", ["", "sys.exit(3)", "raise ValueError('mine')"])
def test_the_end_of_a_process_waits_for_no_job_and_leaves_no_tool(tmp_path, last):
    tool, pid = script(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep {10 * PATIENCE}"), tmp_path / "pid"
    took, child = ended(f"""
import os, sys, time
from cutile.gpu import background, process
background.submit(lambda: process.run([{str(tool)!r}], None))
background.submit(lambda: print("a second job"))
while not os.path.exists({str(pid)!r}) or not open({str(pid)!r}).read().strip(): time.sleep(0.01)
print("at the end", flush=True)
{last}
""")
    assert took < PATIENCE / 2 and child.stdout == ""
    assert child.returncode == {"": 0, "sys.exit(3)": 3}.get(last, 1)
    assert ("mine" in child.stderr) == ("mine" in last) and "Ended" not in child.stderr and "Thread" not in child.stderr
    number = int(pid.read_text())
    for _ in range(int(PATIENCE / 0.01)):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    else:
        os.kill(number, signal.SIGKILL)
        pytest.fail("the tool still runs")


def test_the_end_of_a_process_while_a_job_computes():
    _, child = ended("""
import time
from cutile.gpu import background
background.submit(lambda: [time.sleep(0.001) for _ in range(10**9)])
print("at the end", flush=True)
""")
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_begins_without_jobs():
    go, done = threading.Event(), []
    background.submit(go.wait)
    background.submit(lambda: done.append("parent"))
    child = os.fork()
    if not child:
        background.submit(lambda: done.append("child"))
        background.wait()
        os._exit(7 if done == ["child"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert done == []
    go.set()
    background.wait()
    assert done == ["parent"]
