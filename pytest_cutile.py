"""A plugin of pytest: `pytest --cutile-sanitize=all` runs every launch of the tests with the checks of CUTILE_SANITIZE.

It is a module of its own, so that pytest need not import cutile.
"""

import os


def pytest_addoption(parser):
    parser.getgroup("cutile").addoption(
        "--cutile-sanitize", metavar="CHECKS", default=None,
        help="run cutile's kernels with these checks: all, or names with commas between")


def pytest_configure(config):
    if (checks := config.getoption("--cutile-sanitize", None)) is not None:
        os.environ["CUTILE_SANITIZE"] = checks
