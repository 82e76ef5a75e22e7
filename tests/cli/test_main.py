"""python -m cutile, and the script `cutile`: what all verbs share."""

import json
import os
import subprocess
import sys

import pytest

import cutile

VERBS = ("run", "debug", "show", "diff", "explore", "view", "profile", "ops", "settings", "doctor", "cache")


@pytest.mark.parametrize("words", [["cache"], ["cache", "clear"], ["doctor"], ["settings"]], ids=" ".join)
def test_wrong_settings_are_a_line(words):
    done = subprocess.run([sys.executable, "-m", "cutile", *words], capture_output=True, text=True,
                          env={**os.environ, "CUTILE_CACHE": "maybe", "CUTILE_CACHE_SIZE": "much", "COLUMNS": "300"})
    assert "Traceback" not in done.stderr and "CUTILE_CACHE" in done.stdout + done.stderr or words == ["doctor"]
    assert (done.returncode == 0) == (words in (["doctor"], ["settings"])), done.stderr


def test_verbs():
    done = subprocess.run([sys.executable, "-m", "cutile", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(verb in done.stdout for verb in VERBS)


HELP = """
import contextlib, io, json, runpy, sys
found = {}
for verb in sys.argv[1:]:
    sys.argv[1:] = [*verb.split(), "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        runpy.run_module("cutile", run_name="__main__", alter_sys=True)
    found[verb] = said.getvalue()
print(json.dumps(found))
"""


def test_help_has_an_example():
    """As `python -m cutile` runs it for each verb, in one process."""
    verbs = [*VERBS, "cache show", "cache tuned", "cache clear"]
    done = subprocess.run([sys.executable, "-c", HELP, *verbs], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for verb, text in json.loads(done.stdout).items():
        assert f"python -m cutile {verb}" in text.replace("Usage: python -m cutile", ""), verb
        assert "--help" in text


def test_version():
    done = subprocess.run([sys.executable, "-m", "cutile", "--version"], capture_output=True, text=True)
    assert done.stdout == f"cutile {cutile.__version__}\n"


def test_completion_of_shells():
    """The script that a shell reads, and what it then asks for."""
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'cutile'; from cutile.cli.main import main; main()"]
    env = {**os.environ, "_CUTILE_COMPLETE": "source_bash"}
    assert "complete " in subprocess.run(command, env=env, capture_output=True, text=True).stdout
    env |= {"_CUTILE_COMPLETE": "complete_bash", "COMP_WORDS": "cutile do", "COMP_CWORD": "1"}
    assert subprocess.run(command, env=env, capture_output=True, text=True).stdout.split() == ["doctor"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["cache"], ["cache", "--json"], ["doctor", "--json"], ["ops", "sum"], ["settings"]])
def test_output_that_cannot_be_written(words, unbuffered, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "cutile", *words], stdout=full, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "CUTILE_CACHE_DIR": str(tmp_path)},
                              timeout=120)
    assert (done.returncode, done.stderr) == (1, "the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("ends", ["sys.stdout.close()", "sys.stdout = None"])
def test_a_script_may_leave_no_output(ends, tmp_path):
    (tmp_path / "x.py").write_text(f"import sys\nprint('text')\n{ends}\n")
    done = subprocess.run([sys.executable, "-m", "cutile", "run", str(tmp_path / "x.py")],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout in ("text\n", "")
