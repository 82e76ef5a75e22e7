"""Tiles too large for the machine end in an error at the user's line, whoever finds out."""

from __future__ import annotations

import numpy as np
import pytest

import cutile as ct
from cutile import settings


@ct.kernel
def beyond_numpy(x):
    ct.store(x, 0, ct.sum(ct.zeros((1 << 40, 1 << 40), ct.int64)))


@ct.kernel
def beyond_memory(x):
    ct.store(x, 0, ct.sum(ct.load(x, ct.bid(0), shape=1 << 50)))


@ct.kernel
def constant_beyond_memory(x):
    ct.store(x, 0, ct.max(ct.arange(1 << 50, dtype=ct.int64)))


@pytest.mark.parametrize("schedule", ["batch", "block", "interleave"])
@pytest.mark.parametrize("kernel, says, under", [
    (beyond_numpy, "more than any memory holds", "ct.zeros("),
    (beyond_memory, "Unable to allocate", "ct.load("),
    (constant_beyond_memory, "Unable to allocate", "ct.arange("),
], ids=["numpy", "memory", "constant"])
def test_too_large(schedule, kernel, says, under):
    with settings.override(SCHEDULE=schedule), pytest.raises(ct.TileUnsupportedFeatureError, match=says) as e:
        ct.launch(None, (2,), kernel, (np.zeros(4, np.int64),))
    loc = e.value.loc
    assert loc.source_line()[loc.col:].startswith(under) and e.value.help
