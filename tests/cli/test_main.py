"""python -m cutile, and the script `cutile`: what all verbs share."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("words", [["cache"], ["cache", "clear"], ["doctor"], ["settings"]], ids=" ".join)
def test_wrong_settings_are_a_line(words):
    done = subprocess.run([sys.executable, "-m", "cutile", *words], capture_output=True, text=True,
                          env={**os.environ, "CUTILE_CACHE": "maybe", "CUTILE_CACHE_SIZE": "much", "COLUMNS": "300"})
    assert "Traceback" not in done.stderr and "CUTILE_CACHE" in done.stdout + done.stderr or words == ["doctor"]
    assert (done.returncode == 0) == (words in (["doctor"], ["settings"])), done.stderr


def test_verbs():
    done = subprocess.run([sys.executable, "-m", "cutile", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(verb in done.stdout for verb in ("show", "settings", "doctor", "diff", "cache"))
