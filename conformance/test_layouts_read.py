"""Later launches look at what static code read of the layout of arrays and tensors, and not at their elements."""

import numpy as np
import pytest

from conformance.harness.api import clause
from conformance.harness.read_module import KERNEL, stored
from conformance.harness.tile_code import Counter, module

NUMBERS = np.lib.stride_tricks.as_strided
# What is read, an array, what is read of it, and a change of the array: of that alone, as far as this is possible.
LAYOUTS = {
    "shape": (lambda: NUMBERS(np.zeros(4, np.int8), (1, 4), (1, 1)), lambda a: a.shape[0], {"shape": (4, 1)}),
    "strides": (lambda: np.zeros((2, 2), np.int8), lambda a: a.strides[0], {"strides": (1, 2)}),
    "dtype": (lambda: np.zeros(4, np.int8), lambda a: "bu".index(a.dtype.char.lower()), {"dtype": np.bool_}),
    "ndim": (lambda: np.zeros(4, np.int8), lambda a: a.ndim, {"shape": (2, 2)}),
    "size": (lambda: np.zeros(4, np.int8), lambda a: a.size, {"dtype": np.int16}),
    "itemsize": (lambda: np.zeros(4, np.int8), lambda a: a.itemsize, {"dtype": np.int16}),
}


@clause("CONST-4.contents", "SPEC-1.same")
@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("what", LAYOUTS)
def test_what_is_read_of_arrays(what):
    """The layout alone: the elements may change, and what is read of the layout counts."""
    counter = Counter()
    make, _, change = LAYOUTS[what]
    space = module(f"""
        kinds = "?bBhHiI"

        def read(a):
            value = a.{what}
            return value[0] if isinstance(value, tuple) else kinds.index(value.char) if value is a.dtype else value

        @ct.kernel
        def kern(out):
            n = ct.static_eval(hit())
            value = ct.static_eval(held.{what})
            ct.store(out, 0, ct.static_eval(value[0] if isinstance(value, tuple) else
                                            value if isinstance(value, int) else np.dtype(value).itemsize * 10
                                            + (np.dtype(value).kind == "b")))
    """, hit=counter.hit, held=make())
    held, read = space["held"], lambda a: getattr(a, what)

    def want():
        value = read(held)
        return value[0] if isinstance(value, tuple) else value if isinstance(value, int) else (
            value.itemsize * 10 + (value.kind == "b"))

    first = want()
    assert stored(space["kern"]) == first and counter.count == 1
    held[...] = 1
    assert [stored(space["kern"]) for _ in range(2)] == [first] * 2 and counter.count == 1
    for name, value in change.items():
        setattr(held, name, value)
    assert want() != first
    assert [stored(space["kern"]) for _ in range(2)] == [want()] * 2 and counter.count == 2


TENSORS = {
    "shape[0]": lambda t, torch: t.resize_(2, 8), "size(0)": lambda t, torch: t.resize_(2, 8),
    "dim()": lambda t, torch: t.resize_(2, 4, 2), "ndim": lambda t, torch: t.resize_(2, 4, 2),
    "stride()[0]": lambda t, torch: t.t_(), "stride(0)": lambda t, torch: t.t_(),
    "numel()": lambda t, torch: t.resize_(4, 2), "itemsize": lambda t, torch: setattr(t, "data", t.double()),
    "element_size()": lambda t, torch: setattr(t, "data", t.double()),
    "dtype.itemsize": lambda t, torch: setattr(t, "data", t.double()),
    "is_floating_point() + 0": lambda t, torch: setattr(t, "data", t.int()),
    "requires_grad + 0": lambda t, torch: t.requires_grad_(),
    "storage_offset()": lambda t, torch: setattr(t, "data", torch.zeros(20)[2:18].view(4, 4)),
    "is_contiguous() + 0": lambda t, torch: setattr(t, "data", torch.zeros(4, 8)[:, ::2]),
}


@clause("CONST-4.contents", "SPEC-1.same")
@pytest.mark.parametrize("what", TENSORS)
def test_what_is_read_of_tensors(what):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    counter = Counter()
    held = torch.zeros(4, 4)
    space = module(KERNEL.format(f"held.{what}"), hit=counter.hit, held=held)
    first = int(eval(f"held.{what}", {"held": held}))
    assert stored(space["kern"]) == first and counter.count == 1
    held += 1
    assert stored(space["kern"]) == first and counter.count in (1, 2)
    count = counter.count
    TENSORS[what](held, torch)
    now = int(eval(f"held.{what}", {"held": held}))
    assert now != first and [stored(space["kern"]) for _ in range(2)] == [now] * 2 and counter.count == count + 1
