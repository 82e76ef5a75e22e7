"""Settings of all tests: a cache folder of their own for compiled code, and no time limits for hypothesis."""

import tempfile

import pytest
from hypothesis import HealthCheck, settings

from conformance.harness.many_tests import pytest_collection, pytest_runtest_protocol

__all__ = ["pytest_collection", "pytest_runtest_protocol"]  # hooks

settings.register_profile("patient", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow]))
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """The cache. A fixture would be looked up by each test."""
    folder = tempfile.TemporaryDirectory(prefix="cutile-tests-")
    patch = pytest.MonkeyPatch()
    patch.setenv("CUTILE_CACHE_DIR", folder.name)
    config.add_cleanup(lambda: (patch.undo(), folder.cleanup()))
