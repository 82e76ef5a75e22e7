"""Results of operators on fake tensors [PT-5]: defaults that PyTorch leaves out, and devices."""

from typing import Annotated

import pytest

torch = pytest.importorskip("torch")

import cutile as ct  # noqa: E402
import cutile.torch  # noqa: E402

X = torch.arange(10.0)


@ct.kernel
def sums(x: ct.Array["N"], s, R: ct.Constant[int] = 4):  # noqa: F821
    ct.store(s, ct.bid(0), ct.sum(ct.load(x, ct.bid(0), R, padding_mode=ct.PaddingMode.ZERO)).astype(s.dtype))


@ct.kernel
def tiled(x: ct.Array["N"], s, T: ct.Constant[int], R: ct.Constant[int] = 4):  # noqa: F821
    ct.store(s, ct.bid(0), ct.load(x, ct.bid(0), T))


@ct.kernel
def plain(x: ct.Array["N"], s, R: ct.Constant[int]):  # noqa: F821
    ct.store(s, ct.bid(0), ct.sum(ct.load(x, ct.bid(0), R, padding_mode=ct.PaddingMode.ZERO)))


@ct.kernel
def times(x: ct.Array["N"], w: ct.Array["N"], y):  # noqa: F821
    ct.store(y, ct.bid(0), ct.load(x, ct.bid(0), 16) * ct.load(w, ct.bid(0), 16))


DEFAULTS = {
    "of the kernel": ct.jit(sums, grid="cdiv(N, R)", out=ct.Out("cdiv(N, R)", name="s")),
    "of ct.jit": ct.jit(plain, grid="cdiv(N, R)", out=ct.Out("cdiv(N, R)", name="s"), defaults={"R": 4}),
    "in a function of shapes": ct.jit(sums, grid="cdiv(N, R)", out=ct.Out(lambda N, R: (-(-N // R),), name="s")),
    "in a function of dtypes": ct.jit(sums, grid="cdiv(N, R)", out=ct.Out(
        "cdiv(N, R)", lambda R: ct.float64 if R > 2 else ct.float32, name="s")),
    "in a default": ct.jit(tiled, grid="cdiv(N, T)", out=ct.Out("T", name="s"), defaults={"T": lambda N, R: R * 2}),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_that_pytorch_leaves_out(name):
    function = DEFAULTS[name]
    operator = cutile.torch.op(f"cutile_tests::{name.replace(' ', '_').replace('.', '_')}", function)
    for given in ({}, {"R": 4}, {"R": 2}):
        wanted = function.plain(X, **given)
        torch._dynamo.reset()
        for call in (operator, torch.compile(lambda x, given=given: operator(x, **given), fullgraph=True,
                                             backend="aot_eager")):
            got = call(X, **(given if call is operator else {}))
            assert torch.equal(got, wanted) and got.dtype == wanted.dtype
        meta = operator(X.to("meta"), **given)
        assert meta.shape == wanted.shape and meta.dtype == wanted.dtype
    torch.library.opcheck(operator, (X,))


@pytest.mark.parametrize("devices, kind, says", [
    (("cpu", "meta"), TypeError, "one device, but `x` is in CPU memory and `w` is in no memory"),
    (("meta", "cpu"), TypeError, "one device, but `x` is in no memory .* and `w` is in CPU memory"),
    (("cpu", "cuda"), TypeError, "one device, but `x` is in CPU memory and `w` is in the memory of GPU 0"),
    (("cuda:0", "cuda:1"), ValueError, "one device, but `x` is in the memory of GPU 0 and `w` .* of GPU 1"),
])
@pytest.mark.parametrize("fake", [False, True])
def test_one_device(devices, kind, says, fake):
    operator = cutile.torch.op("cutile_tests::times_r", ct.jit(times, grid="1", out=ct.Out("N")))
    if fake:
        with torch._subclasses.FakeTensorMode(), pytest.raises(kind, match=says):
            operator(*(torch.empty(3, device=d) for d in devices))
    elif "meta" in devices:
        for requires_grad in (False, True):
            with pytest.raises(kind, match=says):
                operator(*(torch.ones(3, device=d, requires_grad=requires_grad) for d in devices))


def test_one_device_in_lists():
    @ct.jit(grid="1", out=ct.Out("4", ct.float32, name="y"))
    @ct.kernel
    def first(xs: Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation())], y):
        ct.store(y, 0, ct.load(xs[0], 0, 4))

    operator = cutile.torch.op("cutile_tests::first", first)
    with pytest.raises(TypeError, match="one device"):
        operator([torch.ones(4), torch.ones(4, device="meta")])
