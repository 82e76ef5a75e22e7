"""The errors that users meet first, word for word: what is wrong, where, and what to write instead."""

import numpy as np
import pytest

import cutile as ct
from cutile.front.program import type_kernel
from tests.front.compiling import A1, A2, AI, F32, I32, cell

HALF = A1.__class__(ct.float16, 1)
HOST = np.zeros((3, 4), np.float32)

GOLDEN = {
    "index rank": (
        "ct.load(x, (0,), (4, 4))",
        (A2,),
        """\
Invalid argument "index" of load(): 1 index for an array of rank 2
    ct.load(x, (0,), (4, 4))
               ^^^^
  help: write index=(i, j), one tile index per axis of the array""",
    ),
    "tile rank": (
        "ct.load(x, (0, 0), (4,))",
        (A2,),
        """\
Invalid argument "shape" of load(): tile shape (4,) has rank 1, but the array has rank 2
    ct.load(x, (0, 0), (4,))
                       ^^^^
  help: give one size per axis, for example shape=(1, 4), and drop axes of size 1 from the tile with ct.reshape(tile, (4,))""",
    ),
    "array as a tile": (
        "y = ct.exp(x) * 2",
        (A2,),
        """\
Invalid argument "x" of exp(): expected a tile or scalar, got float32 array of rank 2
    y = ct.exp(x) * 2
               ^
  help: an array is memory, not a value: load a tile from it first, for example ct.load(array, index=(0, 0), shape=...)""",
    ),
    "array in an expression": (
        "y = 2 * x",
        (A1,),
        """\
unsupported operands for *: constant 2 and float32 array of rank 1
    y = 2 * x
        ^^^^^
  help: an array is memory, not a value: load a tile from it first, for example ct.load(array, index=(0,), shape=...)""",
    ),
    "no power of two": (
        "t = ct.zeros((100, 4), ct.float32)",
        (),
        """\
Invalid argument "shape" of zeros(): every dimension of a tile must be a positive power of two, got 100 in (100, 4)
    t = ct.zeros((100, 4), ct.float32)
                 ^^^^^^^^
  help: use 128 (or 64): beyond an array's end stores write nothing, and loads read what padding_mode says, such as \
ct.PaddingMode.ZERO for sums and NEG_INF for max() and softmax""",
    ),
    "dtype at a store": (
        "ct.store(x, 0, ct.zeros((4,), ct.float32))",
        (HALF,),
        """\
a float32 tile of shape (4,) cannot be converted implicitly to float16 to store into a float16 array
    ct.store(x, 0, ct.zeros((4,), ct.float32))
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^
  help: convert explicitly: value.astype(ct.float16)""",
    ),
    "masks multiplied": (
        "m = (ct.arange(4, dtype=ct.int32) > 1) * (ct.arange(4, dtype=ct.int32) < 3)",
        (),
        """\
mul() is not defined for two bool_ operands
    m = (ct.arange(4, dtype=ct.int32) > 1) * (ct.arange(4, dtype=ct.int32) < 3)
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help: a & b joins two masks; to keep x where a mask holds, ct.where(mask, x, 0); to multiply numbers, a.astype(ct.int32) * b""",
    ),
    "a list": (
        "parts = [1, 2]",
        (),
        """\
tile code does not support a list
    parts = [1, 2]
            ^^^^^^
  help: tile code has no containers but tuples; write a tuple, or a loop over ct.static_iter(...) for an unrolled one""",
    ),
    "try": (
        "try: pass\n    except ValueError: pass",
        (),
        """\
tile code does not support try
    try: pass
    ^^^^^^^^^
  help: tile code has no exceptions""",
    ),
    "sigmoid": (
        "y = ct.sigmoid(x)",
        (F32,),
        """\
module `cutile` has no attribute `sigmoid`
    y = ct.sigmoid(x)
        ^^^^^^^^^^
  help: write ct.lib.sigmoid(x)""",
    ),
    "mean": (
        "y = ct.mean(x)",
        (F32,),
        """\
module `cutile` has no attribute `mean`
    y = ct.mean(x)
        ^^^^^^^
  help: write ct.lib.mean(x, axis) (padding counts; where=mask leaves it out)""",
    ),
    "var": (
        "y = ct.var(x)",
        (F32,),
        """\
module `cutile` has no attribute `var`
    y = ct.var(x)
        ^^^^^^
  help: write ct.lib.var(x, axis) (ddof=1 gives the unbiased estimate that PyTorch means; padding counts, where=mask \
leaves it out)""",
    ),
    "zeros_like": (
        "y = ct.zeros_like(x)",
        (F32,),
        """\
module `cutile` has no attribute `zeros_like`
    y = ct.zeros_like(x)
        ^^^^^^^^^^^^^
  help: write ct.zeros(x.shape, x.dtype)""",
    ),
    "misspelt": (
        "y = ct.maxium(x, 0)",
        (F32,),
        """\
module `cutile` has no attribute `maxium`
    y = ct.maxium(x, 0)
        ^^^^^^^^^
  help: did you mean `maximum`?""",
    ),
    "maybe undefined": (
        "if n > 1: y = 1\n    ct.scatter(x, 0, y)",
        (AI, I32),
        """\
Use of potentially undefined variable `y`: it is not assigned on every path that leads here
    ct.scatter(x, 0, y)
                     ^
  help: assign `y` before the branch or loop""",
    ),
    "two types": (
        "if n > 1: y = 1.5\n    else: y = 1\n    ct.scatter(x, 0, y)",
        (AI, I32),
        """\
Type of `y` depends on path taken: float32 scalar vs. int32 scalar
    ct.scatter(x, 0, y)
                     ^
  note: here `y` is a float32 scalar
    if n > 1: y = 1.5
              ^^^^^^^
  note: here `y` is an int32 scalar
    else: y = 1
          ^^^^^
  help: give it one type on every path; for example convert with ct.float32(…) or .astype(ct.float32), or write literals \
alike (1.0 instead of 1)""",
    ),
    "host array": (
        "t = HOST + 1",
        (),
        """\
`HOST` is a host array (numpy.ndarray of shape (3, 4)), which cannot be used in tile code
    t = HOST + 1
        ^^^^
  help: arrays reach a kernel as arguments only: add a parameter for `HOST` and pass it to ct.launch""",
    ),
    "kernel in a kernel": (
        "other()",
        (),
        """\
`other` is a kernel, which cannot be called or used inside tile code
    other()
    ^^^^^
  help: a kernel is only started by ct.launch; move what is shared into a plain function without @ct.kernel""",
    ),
    "run-time shape": (
        "t = ct.zeros((n, 4), ct.int32)",
        (AI, I32),
        """\
Invalid argument "shape" of zeros(): expected an integer constant, but the given value is not constant (int32 scalar)
    t = ct.zeros((n, 4), ct.int32)
                 ^^^^^^
  help: constants are literals, captured globals, tile shapes, kernel parameters annotated ct.Constant[int], and the \
variable of `for k in ct.static_iter(range(…))`""",
    ),
    "tile as a condition": (
        "if ct.zeros((4,), ct.int32) > n: pass",
        (AI, I32),
        """\
a bool_ tile of shape (4,) cannot be used as a condition
    if ct.zeros((4,), ct.int32) > n: pass
       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help: a condition is one scalar: reduce the tile first (ct.max(mask.astype(ct.int32)) > 0 for any), or choose element by \
element with ct.where(mask, x, y); & joins masks""",
    ),
    "carried type": (
        "y = 0\n    for i in range(n): y = y + 0.5",
        (AI, I32),
        """\
Type of `y` depends on path taken: int32 scalar vs. float32 scalar (a variable that a loop carries keeps the type it had \
before the loop)
    for i in range(n): y = y + 0.5
                       ^^^^^^^^^^^
  note: here `y` is an int32 scalar
    y = 0
    ^^^^^
  note: here `y` is a float32 scalar
    for i in range(n): y = y + 0.5
                       ^^^^^^^^^^^
  help: give it one type on every path; for example convert with ct.float32(…) or .astype(ct.float32), or write literals alike \
(1.0 instead of 1)""",
    ),
    "undefined": (
        "y = undefind",
        (AI, I32),
        """\
Undefined variable `undefind` used
    y = undefind
        ^^^^^^^^
  help: did you mean `undefined`?""",
    ),
}


def shown(e: ct.TileError) -> str:
    """The text of an error without its positions, which the other tests of errors check."""
    return "\n".join(line for line in str(e).splitlines() if not line.startswith('  "<cell'))


@pytest.mark.parametrize("name", GOLDEN)
def test_text(name):
    body, kinds, want = GOLDEN[name]
    k = cell(
        f"def k({', '.join('xn'[: len(kinds)])}):\n    {body}\n", HOST=HOST, other=ct.kernel(lambda: None), undefined=1
    )["k"]
    with pytest.raises(ct.TileError) as e:
        type_kernel(k, kinds)
    assert shown(e.value) == want


def test_kernel_called_like_a_function():
    k = ct.kernel(lambda x: None)
    with pytest.raises(TypeError, match="cannot be called like a function; start it with ct.launch"):
        k(HOST)


def test_all_errors_together():
    def k(x, n):
        t = ct.load(x, (0,), (4, 4))
        ct.store(x, (0, 0), t)
        u = ct.sigmoid(n)
        ct.zeros((u, 3), ct.float32)
        ct.zeros((3,), ct.float32)

    with pytest.raises(ct.TileTypeError) as e:
        type_kernel(k, (A2, I32))
    text = str(e.value)
    assert text.startswith(e.value.render() + "\n\nand 2 more errors in this kernel:\n\n")
    assert [line[:13] for line in text.splitlines() if line.startswith("Tile")] == ["TileTypeError"] * 2
    lines = [x.loc.line for x in e.value.errors]
    assert lines == [lines[0], lines[0] + 2, lines[0] + 4]
