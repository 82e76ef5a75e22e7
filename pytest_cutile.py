"""A plugin of pytest: `pytest --cutile-sanitize=all` runs every launch of the tests with the checks of CUTILE_SANITIZE.

`@pytest.mark.gpu("sm_90")` skips a test where there is no such GPU, `gpu(min="sm_80")` where there is no newer one, and
`gpu` where there is none. `@pytest.mark.both_schedules` runs a test under both schedules of the interpreter.
It is a module of its own, so that pytest need not import cutile.
"""

import os

import pytest


def pytest_addoption(parser):
    parser.getgroup("cutile").addoption(
        "--cutile-sanitize", metavar="CHECKS", default=None,
        help="run cutile's kernels with these checks: all, or names with commas between")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu(target, *, min): needs a GPU; of cutile")
    config.addinivalue_line("markers", "both_schedules: runs under both schedules of the interpreter; of cutile")
    if (checks := config.getoption("--cutile-sanitize", None)) is not None:
        os.environ["CUTILE_SANITIZE"] = checks


# ------------------------------------------------------------------ marks


def pytest_runtest_setup(item):
    for mark in item.iter_markers("gpu"):
        if (why := _lacks(*mark.args, **mark.kwargs)) is not None:
            pytest.skip(why)


def _lacks(target=None, *, min=None):
    """Why this machine cannot run a test for a GPU; None if it can. `target`: exactly this one; `min`: at least it."""
    from cutile.gpu.driver import driver
    from cutile.gpu.target import parse_target

    wanted = [parse_target(t).number for t in (target, min) if t is not None]
    try:
        there = driver().device(0).target.number
    except Exception as e:
        return f"needs a GPU: {e}"
    if target is not None and there != wanted[0]:
        return f"needs a GPU of {target}; this one is sm_{there}"
    if min is not None and there < wanted[-1]:
        return f"needs a GPU of {min} or newer; this one is sm_{there}"
    return None


SCHEDULE = "_cutile_schedule"  # the parameter of tests that are run under both schedules


def pytest_generate_tests(metafunc):
    if metafunc.definition.get_closest_marker("both_schedules"):
        metafunc.fixturenames.append(SCHEDULE)
        metafunc.parametrize(SCHEDULE, ["batch", "block"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    schedule = getattr(item, "callspec", None) and item.callspec.params.get(SCHEDULE)
    if schedule is None:
        return (yield)
    before = os.environ.get("CUTILE_SCHEDULE")
    os.environ["CUTILE_SCHEDULE"] = schedule
    try:
        return (yield)
    finally:
        del os.environ["CUTILE_SCHEDULE"]
        if before is not None:
            os.environ["CUTILE_SCHEDULE"] = before
