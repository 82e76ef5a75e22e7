"""A search whose configurations a local cluster of Dask measures [TUN-10]. Runs where Dask is installed."""

import numpy as np
import pytest

distributed = pytest.importorskip("distributed")

from tests.functions.tuning import X, tuned  # noqa: E402

# Warnings of Dask's own shutdown are no fault of ours
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("own_cache")]


def test_a_cluster_measures():
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
          distributed.Client(cluster) as client):
        f = tuned(executor=client.get_executor())
        assert np.array_equal(f(X, 2.0), X * 2)
        assert len(f.last.times) == 3 and not f.last.failures
