"""A back end with a planted fault."""

from __future__ import annotations

import pytest

from cutile import interp, settings
from cutile.cli.diff import backends
from cutile.ops._op import lookup


@pytest.fixture
def wrong(monkeypatch):
    """wrong(op, change) makes the back end "gpu" the interpreter with an op whose results go through `change`."""

    def install(op: str, change) -> None:
        def run(program, grid, leaves):
            o, right = lookup(op), lookup(op).meaning

            def other(*args, **options):
                return change(right(*args, **options))

            other.__kwdefaults__ = right.__kwdefaults__
            o.meaning = other
            try:
                with settings.override(SCHEDULE="block"):
                    interp.launch(program, grid, leaves)
            finally:
                o.meaning = right

        monkeypatch.setitem(backends.BACKENDS, "gpu", run)

    return install
