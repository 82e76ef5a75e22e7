"""Exported programs give the right results, on a driver that evaluates bytecode."""

from __future__ import annotations

import json
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import cutile as ct
from conformance.adapters.cutile_interp import Interp
from conformance.generate import Options, generate
from conformance.referee import compare, export
from conformance.referee.compare import DIFFER, NOT_APPLICABLE, SAME, WITHIN
from conformance.referee.gpu import Gpu, GpuError, NoArray
from conformance.referee.implementations import ByAdapter, known_as
from conformance.referee.packing import pack
from conformance.referee.replay import Exported
from conformance.referee.sharding import Done, each
from tests.gpu.evaluating import EvaluatingDriver

INTERP = ByAdapter(Interp())
# Without lists: the evaluator's addresses are not those in a list's table. test_parameters covers tables.
SEEDS = [s for s in range(40, 60) if "xs" not in generate(s).source()][:6]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A few programs, exported as bytecode, which needs no assembler."""
    path = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "export", bytecode)
        settings = export.Settings(path, ("cutile",), "sm_90", Options(), True)
        write(path, settings)
    return path


def bytecode(api, kernel, signature, target, out):
    api.compilation.export_kernel(kernel, [signature], out, output_format="tileir_bytecode", gpu_code=target,
                                  bytecode_version="13.4")


def test_a_program_that_cannot_be_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "signature_of", lambda *_: 1 / 0)
    found = write(tmp_path, export.Settings(tmp_path, ("cutile",), "sm_90", Options(), True))
    assert found["verdicts"] == {"cutile": {"refused": len(SEEDS)}}
    replayed = Exported("cutile", tmp_path, Gpu(EvaluatingDriver()))
    assert "NotExported: ZeroDivisionError" in compare(generate(SEEDS[0], Options()), INTERP, replayed).detail


def write(path, settings):
    found = export.exported(settings, SEEDS, SimpleNamespace(jobs=1, chunk=10, limit=60, seconds=None))
    (path / export.INDEX).write_text(json.dumps(found))
    return found


def test_replayed_programs_agree(folder):
    driver = EvaluatingDriver()
    replayed = Exported("cutile", folder, Gpu(driver))
    kinds = {compare(generate(seed, Options()), INTERP, replayed).kind for seed in SEEDS}
    assert kinds <= {SAME, WITHIN, NOT_APPLICABLE} and SAME in kinds
    assert not driver.memory and not driver.modules and not replayed.spoiled


def test_a_wrong_program_is_refused(folder):
    replayed = Exported("cutile", folder, Gpu(EvaluatingDriver()))
    other = generate(SEEDS[0], Options(statements=6))
    with pytest.raises(SystemExit, match="export it again"):
        compare(other, INTERP, replayed)
    assert compare(generate(7, Options()), INTERP, replayed).kind == NOT_APPLICABLE  # the export had ended
    with pytest.raises(SystemExit, match="none of cuda.tile"):
        Exported("cuda.tile", folder, Gpu(EvaluatingDriver()))


def test_a_kernel_that_fails_spoils_the_process(folder):
    driver = EvaluatingDriver()
    replayed = Exported("cutile", folder, Gpu(driver))
    driver.fails["cuCtxSynchronize"] = 700
    seed = next(s for s in SEEDS if export.path_of(folder, s, "cutile").exists())
    v = compare(generate(seed, Options()), INTERP, replayed)
    assert v.kind == DIFFER and "CUDA_ERROR_ILLEGAL_ADDRESS" in v.detail and replayed.spoiled


def test_what_does_not_compile_is_counted(tmp_path, monkeypatch):
    def refusing(api, kernel, signature, target, out):
        raise api.TileUnsupportedFeatureError("no such thing") if len(target) > 5 else ValueError("no\nreason")

    monkeypatch.setattr(export, "export", refusing)
    for target, kind in (("sm_90", export.REFUSED), ("sm_100", export.APPLICABLE)):
        found = write(tmp_path, export.Settings(tmp_path, ("cutile",), target, Options(), True))
        assert found["verdicts"] == {"cutile": {kind: len(SEEDS)}}
        assert found["failures"]["cutile"][str(SEEDS[0])][1].startswith(("ValueError: no reason", "TileUnsupported"))
        v = compare(generate(SEEDS[0], Options()), INTERP, Exported("cutile", tmp_path, Gpu(EvaluatingDriver())))
        assert v.kind == (DIFFER if kind == export.REFUSED else NOT_APPLICABLE)


@ct.kernel
def everything(x, n, flag, xs, pair, c: ct.Constant[int]):
    ct.store(x, 0, ct.full(2, n, ct.float32))


def test_parameters():
    """Compared with the calling convention as the specification lists it."""
    x = np.zeros((4, 6), np.float32)[:, ::2]
    xs = [np.zeros(3, np.int16), np.zeros(5, np.int16)]
    args = (x, 1.5, True, xs, (2, xs[0]), 7)
    s = ct.compilation.KernelSignature.from_kernel_args(
        everything, args, ct.compilation.CallingConvention.cutile_python_v2(), symbol="k")
    places, tables = {id(x): 100, id(xs[0]): 200, id(xs[1]): 300}, []

    def table(data):
        tables.append(np.frombuffer(data, np.int64).tolist())
        return 900

    i32 = lambda *ns: [np.int32(n).tobytes() for n in ns]
    ptr = lambda n: [np.uint64(n).tobytes()]
    assert pack(s, args, lambda a: places[id(a)], table) == [
        *ptr(100), *i32(4, 3, 6, 2), np.float32(1.5).tobytes(), *i32(1), *ptr(900), *i32(2), *i32(2), *ptr(200),
        *i32(3, 1)]
    assert tables == [[200, 3, 1, 300, 5, 1]]


def test_arrays_that_a_gpu_cannot_have():
    with pytest.raises(NoArray):
        Gpu(EvaluatingDriver()).run(b"", "k", (1,), [np.zeros(4, ml_dtypes.float4_e2m1fn)], lambda *_: [])


def test_addresses_keep_their_low_bits():
    whole = np.zeros(64, np.uint8)
    arrays, seen = [whole[5:9], whole[::-1][2:], whole[:0]], []
    driver = EvaluatingDriver()
    with pytest.raises(ZeroDivisionError):
        Gpu(driver).run(b"", "k", (1,), arrays, lambda address, _: seen.extend(map(address, arrays)) or 1 / 0)
    assert [n % 256 for n in seen[:2]] == [a.ctypes.data % 256 for a in arrays[:2]]
    assert not driver.memory and not driver.modules


def test_errors_have_their_names():
    driver = EvaluatingDriver()
    driver.fails["cuMemAlloc"] = 999
    gpu = Gpu(driver)
    with pytest.raises(GpuError, match="CUDA_ERROR_UNKNOWN"):
        gpu.run(b"", "k", (1,), [np.zeros(4)], lambda *_: [])
    assert not gpu.lost


def test_no_gpu():
    driver = EvaluatingDriver()
    driver.fails["cuInit"] = 100
    with pytest.raises(SystemExit, match="needs a GPU, its driver and cuda-python: CUDA_ERROR_NO_DEVICE"):
        Gpu(driver)


def test_names():
    assert known_as("exported:cutile:somewhere") == "cutile:gpu"
    assert known_as("exported:cuda.tile:a:b") == "cuda.tile" and known_as("reference") == "reference"


def test_the_exporter_is_work():
    settings = export.Settings(export.Path("."), (), "sm_90", Options(), False)
    done = [d for d in each(lambda: export.Exporter(settings), [1]) if isinstance(d, Done)]
    assert len(done) == 1 and len(done[0].value[0]) == 16 and done[0].value[1] == {}
