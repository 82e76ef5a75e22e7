"""Settings of all tests: a cache folder of their own for compiled code, no time limits for hypothesis, and when the
collector of garbage looks.
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow]))
settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collecting tests makes a million objects, which all stay: looking for garbage among them took two thirds of the
    time. Kernels have many objects, too: later the collector looks less often than Python's own threshold has it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(10_000, 10, 10)
        if enabled:
            gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory):
    before = os.environ.get("CUTILE_CACHE_DIR")
    os.environ["CUTILE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["CUTILE_CACHE_DIR"]
    else:
        os.environ["CUTILE_CACHE_DIR"] = before
