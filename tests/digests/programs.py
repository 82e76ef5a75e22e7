"""The first generated programs of the referee, recorded like launches; nothing runs."""

import pytest

from conformance.generate import generate
from conformance.harness.api import impl
from conformance.referee.implementations import loaded
from tests.digests.adapter import running

COUNT = 300


@pytest.mark.parametrize("seed", range(COUNT))
def test_generated(seed):
    with loaded(generate(seed)) as modules:
        module = modules("cutile")
        assert impl.recorder.launch(running(), module.kernel, module.arguments())
