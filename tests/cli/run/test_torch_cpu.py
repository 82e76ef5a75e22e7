"""torch.cuda on a machine without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
if torch.cuda.is_available():
    pytest.skip("there is a GPU", allow_module_level=True)

import cutile as ct  # noqa: E402
from cutile.cli.run.torch_cpu import stood_in  # noqa: E402


@ct.kernel
def doubles(x, out):
    i = ct.bid(0)
    ct.store(out, i, ct.load(x, i, (4,)) * 2)


@pytest.fixture(autouse=True)
def _installed():
    with stood_in():
        yield


@pytest.mark.parametrize("make", [
    lambda: torch.arange(8.0, device="cuda"), lambda: torch.arange(8.0).cuda(), lambda: torch.arange(8.0).to("cuda:0"),
    lambda: torch.arange(8.0).cuda(0), lambda: torch.arange(8.0).to(torch.device("cuda")),
    lambda: torch.arange(8).to("cuda", torch.float32), lambda: torch.arange(8.0).to(device=torch.device("cuda", 0)),
    lambda: torch.nn.Parameter(torch.arange(8.0)).cuda().detach()])
def test_tensors_are_on_the_cpu(make):
    x = make()
    assert x.device.type == "cpu" and x.tolist() == list(range(8))
    out = torch.empty_like(x, device="cuda")
    ct.launch(torch.cuda.current_stream(), (2,), doubles, (x, out))
    assert out.tolist() == [2.0 * k for k in range(8)]


def test_modules_are_on_the_cpu():
    layer = torch.nn.Linear
    for module in (layer(2, 2).cuda(), layer(2, 2).to("cuda"), layer(2, 2, device="cuda")):
        assert all(p.device.type == "cpu" for p in module.parameters())


def test_streams_and_events():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        start.record()
        stream.wait_stream(torch.cuda.current_stream())
        end.record(stream)
    stream.record_event().synchronize()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and end.query() and stream.query()
    with pytest.raises(RuntimeError, match="recorded"):
        start.elapsed_time(torch.cuda.Event())


@pytest.mark.parametrize("call", [
    "get_device_name", "get_device_properties", "current_device", "get_device_capability"])
def test_other_calls_are_errors_that_name_them(call):
    with pytest.raises(RuntimeError, match=rf"torch\.cuda\.{call}\(\) needs a GPU, and PyTorch finds none"):
        getattr(torch.cuda, call)()


def test_questions_have_true_answers():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    torch.manual_seed(0)


def test_torch_is_as_before():
    inside = torch.cuda.Event
    with stood_in():
        assert torch.cuda.Event.__module__ == "cutile.cli.run.torch_cpu"
    assert torch.cuda.Event is inside


def test_torch_imported_by_the_script(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import torch
        x = torch.ones(4, device="cuda")
        torch.cuda.synchronize()
        print(x.device, x.sum().item())
    """))
    done = subprocess.run([sys.executable, "-m", "cutile", "run", "script.py"], capture_output=True, text=True,
                          cwd=tmp_path, env=dict(os.environ), timeout=300)
    assert done.stdout == "cpu 4.0\n", done.stderr
