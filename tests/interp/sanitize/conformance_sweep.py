"""The conformance suite under the sanitizer: `--impl tests.interp.sanitize.conformance_sweep:Sanitized`.

Launches run with all checks, but go on as without them: what the checks find is recorded by test. As a plugin of
pytest, this module writes it at the end of the process into the folder of $SANITIZED_PARTS. Launches in processes that
a test starts are checked as users' are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from conformance.adapters.cutile_interp import Interp
from cutile.errors import TileSanitizerError
from cutile.interp.sanitize.findings import CheckedLaunch
from tests.digests.adapter import running

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "conformance"


class Sanitized(Interp):
    """`found` has the first message of each check, by the test that ran."""

    name = "cutile:interp, sanitized"

    def __init__(self) -> None:
        os.environ["CUTILE_SANITIZE"] = "all"
        super().__init__()
        self.found: dict[str, dict[str, str]] = {}
        error = CheckedLaunch.error

        def recorded(launch: CheckedLaunch) -> TileSanitizerError | None:
            for e in getattr(error(launch), "errors", ()):
                self.found.setdefault(running(), {}).setdefault(e.check, str(e))
            return None

        CheckedLaunch.error = recorded


def pytest_sessionfinish(session: Any) -> None:
    from conformance.harness.api import impl  # loaded by the suite

    parts = Path(os.environ["SANITIZED_PARTS"])
    (parts / f"{os.getpid()}.json").write_text(json.dumps(impl.found))


def swept(file: str) -> dict[str, dict[str, str]]:
    """Run a file of the suite in a process of its own; of each test the first message of each check.

    AssertionError if a test fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUTILE_", "PYTEST_"))}
        env |= {"CONFORMANCE_IMPL": f"{__name__}:{Sanitized.__name__}", "SANITIZED_PARTS": folder,
                "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", __name__, "-p", "no:cacheprovider", "--tb=short",
                   str(SUITE / file)]
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        assert not done.returncode, done.stdout
        return {test: of for part in Path(folder).glob("*.json") for test, of in json.loads(part.read_text()).items()}
