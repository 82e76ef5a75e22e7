"""Whatever a signature says, a kernel for it comes to a cubin or to an error of ours; the assembler refuses nothing."""

import io
import runpy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cutile as ct
from cutile.compilation import export_kernel
from tests.compilation.signatures import signatures, source
from tests.gpu.tileir.tool import needs_tool

OURS = (ct.TileTypeError, ct.TileValueError, ct.TileUnsupportedFeatureError, ValueError, TypeError)
TARGETS = ["sm_80", "sm_90", "sm_100", "sm_120"]


def exported(signature, target: str, folder) -> str:
    """How it ended: "ok", or the name of an error of ours. Another is raised."""
    file = folder / "kernel.py"
    file.write_text(source(signature))
    kernel = runpy.run_path(str(file))["k"]
    try:
        export_kernel(kernel, [signature], io.BytesIO(), gpu_code=target, output_format="cubin")
    except OURS as e:
        assert not isinstance(e, ct.TileInternalError)
        return type(e).__name__
    return "ok"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@needs_tool
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(signatures, st.sampled_from(TARGETS))
def test_some(folder, signature, target):
    exported(signature, target, folder)


@needs_tool
@pytest.mark.deep
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(signature=signatures)
def test_many(folder, signature, target):
    exported(signature, target, folder)
