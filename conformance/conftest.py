"""pytest conformance --impl NAME: selects the implementation, and reports clause by clause."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator

import pytest

from conformance.harness import absent, lambdas, report, watchdog
from conformance.harness.many_tests import pytest_collection, pytest_runtest_protocol

__all__ = ["pytest_collection", "pytest_runtest_protocol"]  # hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--impl", default=os.environ.get("CONFORMANCE_IMPL", "cutile:interp"),
                     help="cutile:interp (default), cutile:gpu, cuda.tile, or package.module:AdapterClass")
    parser.addoption("--report", default=None, metavar="FOLDER", help="write report.json and report.html there")
    parser.addoption("--limit", type=float, default=None, metavar="SECONDS",
                     help="with -n: end a process in which a kernel takes longer, and go on in another one")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    os.environ["CONFORMANCE_IMPL"] = config.getoption("--impl")
    Ending.replaced = hasattr(config, "workerinput")  # as xdist's processes have it
    config.addinivalue_line("markers", "clause(*ids): the clauses that a test shows")
    config.addinivalue_line("markers", "deep: too long for each change")
    config.pluginmanager.register(report.Recorder(config), "conformance-report")
    if getattr(config.option, "maxworkerrestart", "") is None:
        config.option.maxworkerrestart = "10000"  # each fault of a compiler or GPU may cost a process


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart() -> None:
    """Load the implementation, which every file of tests needs."""
    try:
        impl = importlib.import_module("conformance.harness.api").impl
    except SystemExit as e:
        raise pytest.UsageError(str(e)) from e
    if not impl.lambdas:
        lambdas.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test is not applicable if the hardware lacks something, and absent if the implementation does."""
    from conformance.harness.api import ABSENT, impl

    watchdog.start((item.config.getoption("--limit") or impl.limit) if Ending.replaced else None)
    try:
        with absent.running():
            if lacking := absent.mentioned([item.function, *_parameters(item)], ABSENT):
                raise absent.Lacks(", ".join(f"ct.{n}" for n in sorted(lacking)))
            return (yield)
    except absent.Lacks as e:
        item.user_properties.append(("absent", str(e)))
        raise pytest.fail.Exception(f"{impl.name} has no {e}", pytrace=False) from None
    except impl.not_applicable as e:
        pytest.skip(f"not applicable: {e}")
    finally:
        Ending.why = impl.lost()  # which waits for the GPU
        watchdog.stop()


def _parameters(item: pytest.Item) -> list:
    found = [item.callspec.params] if hasattr(item, "callspec") else []
    out = []
    while found:  # items of tuples and tables, too
        v = found.pop()
        if isinstance(v, dict | list | tuple):
            found += v.values() if isinstance(v, dict) else v
        else:
            out.append(v)
    return out


class Ending:
    """Why no further test can run in this process, and whether another process replaces it."""

    why: str | None = None
    replaced = False


def pytest_runtest_logfinish(nodeid: str) -> None:
    """End a process that can run no more tests, once the test's report is sent; another process goes on."""
    if Ending.why is None:
        return
    if Ending.replaced:
        os._exit(1)
    pytest.exit(f"after {nodeid} {Ending.why}. Run with `-n 1`: then a new process goes on with the next test", 3)
