"""A pytest plugin that writes the verdicts of each test's kernels, one JSON line a test.

The suite is loaded with two changes: its `assert` statements may be false, because no kernel runs, and its lambdas
are functions (lambdas.py), for both implementations.
"""

from __future__ import annotations

import json
import os

import pytest

from conformance.harness import lambdas


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the suite with the two changes."""
    lambdas.install(asserts=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Write the verdicts of a test's kernels, and the error that ended the test, if any."""
    from conformance.harness.api import impl

    impl.verdicts.clear()
    end = None
    try:
        yield
    except BaseException as e:  # a test that could not go on has recorded its verdicts
        end = f"{type(e).__name__}: {e}".split("\n")[0]
    with open(os.environ["CONFORMANCE_VERDICTS"], "a") as f:
        f.write(json.dumps({"test": item.nodeid, "verdicts": impl.verdicts, "end": end}) + "\n")
