"""Functions compiled without running them: specs, views, resources, files."""

import numpy as np
import pytest

import cutile as ct
from cutile.gpu.tileir import tileiras
from tests.functions.kernels import scaled, softmax, softmax_kernel
from tests.functions.shows import shows
from tests.gpu.tileir.tool import needs_nvdisasm, needs_tool

pytestmark = needs_tool
X = np.zeros((4, 64), np.float32)
OPEN = ct.ArraySpec("M N", ct.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTILE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def assembled(monkeypatch):
    """Counts what is assembled."""
    seen = []
    original = tileiras.assemble
    monkeypatch.setattr(tileiras, "assemble", lambda *a, **k: seen.append(k.get("name")) or original(*a, **k))
    return seen


def compiled(**given):
    return softmax.compile(OPEN, **{"TILE": 64, "target": "sm_90", **given})


@shows("CPL-1.specs", "CPL-1.gpu")
def test_specs():
    assert softmax.compile(X, target="sm_90").cubin[:4] == b"\x7fELF"
    assert scaled.compile(ct.ArraySpec("n", ct.float32), ct.float32, target="sm_90").cubin
    assert scaled.compile(ct.ArraySpec("n", ct.float32), 2.0, TILE=8, target="sm_90").cubin
    with pytest.raises(TypeError, match="numbers are passed as bool_, int32, int64, float32, not float16"):
        scaled.compile(ct.ArraySpec("n", ct.float32), ct.float16, target="sm_90")
    with pytest.raises(TypeError, match=r"scaled\(\) needs the argument `factor`$"):
        scaled.compile(ct.ArraySpec("n", ct.float32), target="sm_90")


@shows("CPL-1.target")
def test_targets():
    f = ct.jit(softmax_kernel, grid="M", out=ct.Out("M N"), target="sm_100")
    assert f.compile(OPEN, 64).target == "sm_100" and f.compile(OPEN, 64, target="sm_90").target == "sm_90"
    with pytest.raises(ValueError, match="sm_90"):
        compiled(target="hopper")


def test_no_target_and_no_gpu(monkeypatch):
    from cutile.gpu import driver

    def none():
        raise RuntimeError("no driver")

    monkeypatch.setattr(driver, "driver", none)
    with pytest.raises(ValueError, match='needs a target, such as target="sm_90", where there is no GPU$'):
        compiled(target=None)


@shows("CPL-1.open")
def test_open_sizes():
    with pytest.raises(TypeError, match="the constant `TILE` follows from N, which the spec of `x` leaves open"):
        softmax.compile(OPEN, target="sm_90")
    assert softmax.compile(ct.ArraySpec("M 64", ct.float32), target="sm_90").cubin

    @ct.kernel
    def k(x: ct.Array["M =N"], y, M: ct.Constant[int]):
        ct.store(y, 0, ct.load(x, (0, 0), (1, 1)).reshape((1,)))

    f = ct.jit(k, grid=(1,), out=ct.Out("1"))
    with pytest.raises(TypeError, match="the size N of `x` is a constant of the kernel"):
        f.compile(ct.ArraySpec("3 N", ct.float32), target="sm_90")
    with pytest.raises(TypeError, match="the constant `M` follows from M"):
        f.compile(ct.ArraySpec("M 3", ct.float32), target="sm_90")


@pytest.mark.parametrize("x, w, message", [
    ("M 1000", "N", "axis 0 is left open, but N is 1000, the size of `x` along axis 1; let both specs give it one"),
    ("M N", "K", "axis 0 is left open, but N is left open, the size of `x` along axis 1; let both"),
    ("M N", "1000", "axis 0 is 1000, but N is left open, the size of `x` along axis 1; let both"),
    ("M 8", "9", "axis 0 is 9, but N is 8, the size of `x` along axis 1$")])
def test_sizes_of_specs_that_differ(x, w, message):
    @ct.kernel
    def k(x: ct.Array["M N"], w: ct.Array["N"], y):
        ct.store(y, 0, ct.load(w, 0, 4))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    with pytest.raises(ValueError, match=message):
        f.compile(ct.ArraySpec(x, ct.float32), ct.ArraySpec(w, ct.float32), target="sm_90")


@pytest.mark.parametrize("out, got", [("N", "got an open size, N, left open, is the size of `x`"),
                                      ("8", "got 8, N, left open, is the size of `x`")])
def test_expressions_of_open_sizes(out, got):
    @ct.kernel
    def k(x: ct.Array["N"], w: ct.Array["2*N"], y):
        ct.store(y, 0, ct.load(w, 0, 4))

    f = ct.jit(k, grid=(1,), out=ct.Out("N"))
    with pytest.raises(ValueError, match=rf"the size of `w` along axis 0 must be 2\*N, {got}"):
        f.compile(ct.ArraySpec("N", ct.float32), ct.ArraySpec(out, ct.float32), target="sm_90")


@shows("CPL-1.same")
@pytest.mark.parametrize("spec, n", [(ct.ArraySpec("M N", ct.float32), 63), (ct.ArraySpec("M 64", ct.float32), 64),
                                     (ct.ArraySpec("M N", ct.float32, divisible={"N": 16}), 128),
                                     (ct.ArraySpec("M N", ct.float32, divisible={"N": 8}), 8),
                                     (ct.ArraySpec("M N", ct.float32, divisible=16), 16)])
def test_promises_are_those_of_a_launch(spec, n):
    m = 16 if spec.divisible == 16 else 5
    of_spec = softmax.compile(spec, TILE=64, target="sm_90")
    assert of_spec.symbol == softmax.compile(np.zeros((m, n), np.float32), TILE=64, target="sm_90").symbol
    assert of_spec.symbol != softmax.compile(np.zeros((m, n), np.float16), TILE=64, target="sm_90").symbol


@shows("CPL-1.call")
def test_calls():
    c = compiled(TILE=64)
    assert np.array_equal(c(X, 64), softmax(X, 64)) and np.array_equal(c(X, TILE=64), softmax(X, 64))
    for args, message in (((X, 32), "another `TILE`"), ((X.astype(np.float64), 64), "another `x`: for float32")):
        with pytest.raises(TypeError, match=message):
            c(*args)
    strict = softmax.compile(ct.ArraySpec("M N", ct.float32, divisible={"N": 16}), TILE=64, target="sm_90")
    strict(X, 64)
    with pytest.raises(TypeError, match="another `x`: its size along axis 1 must be divisible by 16, got"):
        strict(np.zeros((4, 63), np.float32), 64)


@shows("CPL-2.text")
@pytest.mark.parametrize("view", ["source", "ir", "fma", "passes", "tileir", "resources", "host", "remarks"])
def test_views(view, capsys):
    c = compiled()
    assert c.text(view).strip()
    c.show(view)
    assert sorted(capsys.readouterr().out.split()) == sorted(c.text(view).split())  # remarks come in any order


@needs_nvdisasm
def test_machine_code_as_text():
    assert "softmax" in compiled().text("sass")


@shows("CPL-2.ptx")
def test_views_that_there_are_not():
    with pytest.raises(ct.TileUnsupportedFeatureError, match="no PTX"):
        compiled().text("ptx")
    with pytest.raises(ValueError, match="no view 'asm'; there are source, ir,"):
        compiled().text("asm")


@shows("CPL-2.save", "CPL-2.load")
def test_files(tmp_path):
    c = compiled()
    for suffix in (".cubin", ".tileir", ".ir", ".py", ".txt"):
        c.save(tmp_path / f"k{suffix}")
    assert (tmp_path / "k.cubin").read_bytes() == c.cubin and "softmax" in (tmp_path / "k.ir").read_text()
    with pytest.raises(ValueError, match="files end with"):
        c.save(tmp_path / "k.o")
    c.save(str(tmp_path / "k.cutile"))
    d = ct.CompiledFunction.load(tmp_path / "k.cutile")
    assert (d.cubin, d.symbol, d.target, d.name, d.resources) == (c.cubin, c.symbol, c.target, c.name, c.resources)
    assert all(d.text(v) == c.text(v) for v in ("source", "ir", "fma", "host", "resources"))
    assert d.signature == c.signature and d.blocks_held == c.blocks_held > 0
    d.save(tmp_path / "again.cutile")
    assert ct.CompiledFunction.load(tmp_path / "again.cutile").text("ir") == c.text("ir")


@shows("CPL-2.damaged")
@pytest.mark.parametrize("content", [b"", b"PK", b"x" * 100])
def test_files_that_are_none(tmp_path, content):
    (tmp_path / "k.cutile").write_bytes(content)
    with pytest.raises(ValueError, match="no file that save"):
        ct.CompiledFunction.load(tmp_path / "k.cutile")


@shows("CPL-3.resources", "CPL-4.seconds")
def test_resources(assembled):
    c, again = compiled(), compiled()
    assert c.resources == again.resources and c.resources.threads == 128 and 0 < c.resources.registers < 256
    assert c.seconds > 0 and again.seconds is None and len(assembled) == 1
    assert c.key == again.key and len(c.key) == 32


@shows("CPL-4.hints")
def test_hints():
    c, d = compiled(), compiled(hints={"num_ctas": 2})
    assert d.hints.num_ctas == 2 and c.hints.num_ctas is None and c.key != d.key and d.resources.ctas == 2
    with pytest.raises(TypeError):
        compiled(hints={"ctas": 2})


@shows("JIT-20.share")
def test_equal_kernels_are_assembled_once(assembled):
    @ct.jit(grid="cdiv(N,16)", out=ct.Out("N"))
    def make(n, unused=0):
        @ct.kernel
        def k(x: ct.Array["N"], y):
            ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16) + n)

        return k

    spec = ct.ArraySpec("N", ct.float32)
    a, b, c = make(1), make(1, unused=3), make(2)
    assert a is not b
    keys = [f.compile(spec, target="sm_90").key for f in (a, b, c)]
    assert keys[0] == keys[1] != keys[2] and len(assembled) == 2


def test_errors_of_the_kernel():
    with pytest.raises(ct.TileTypeError, match="power of two"):
        compiled(TILE=3)
