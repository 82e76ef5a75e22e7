"""Settings of all tests: a cache folder of their own for compiled code, and no time limits for hypothesis."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", settings(deadline=None, suppress_health_check=[HealthCheck.too_slow]))
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory):
    before = os.environ.get("CUTILE_CACHE_DIR")
    os.environ["CUTILE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["CUTILE_CACHE_DIR"]
    else:
        os.environ["CUTILE_CACHE_DIR"] = before
