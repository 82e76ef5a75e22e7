"""What the front end types during a test."""

import importlib

import pytest

kernels = importlib.import_module("cutile.runtime.kernel")  # cutile.runtime.kernel itself is the decorator


@pytest.fixture
def typings(monkeypatch):
    """The kernels that are typed during a test."""
    seen = []
    typed = kernels.typed
    monkeypatch.setattr(kernels, "typed", lambda k, arg_types: seen.append(k) or typed(k, arg_types))
    return seen
