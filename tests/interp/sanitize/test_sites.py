"""Arrays have the names that users gave them; calls are read for the parameters that they name."""

import numpy as np
import pytest

import cutile as ct
from cutile.interp.sanitize.sites import names_keyword
from cutile.spans import Span
from tests.front.compiling import cell
from tests.interp.sanitize.planted import SCHEDULES, findings


@ct.kernel
def stores(pair, arrays, x, which, k: ct.Constant[int]):
    (a, (b, c)), i = pair, ct.bid(0)
    if k == 0:
        ct.store(c, 9, 1)
    elif k == 1:
        ct.store(arrays[which + i], 9, 1)
    elif k == 2:
        ct.store(arrays[1].slice(0, 1, 3).slice(0, 0, 1), 9, 1)
    elif k == 3:
        y = x
        if which == 2:
            y = b
        ct.store(y, 9, 1)
    else:
        ct.store(ct.Array.from_foreign(a.foreign_pointer, (2,), (1,)), 9, 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("k, which, name, words", [
    (0, 0, "pair[1][1]", "`pair[1][1]`"), (1, 2, "arrays[2]", "`arrays[2]`"), (1, 0, "arrays[0]", "`arrays[0]`"),
    (2, 0, "arrays[1]", "a slice of `arrays[1]` along axis 0 and 0"), (3, 0, "x", "`x`"), (3, 2, "pair", "`pair`"),
    (4, 0, "pair", "`pair`"),
])
def test_names(k, which, name, words, schedule):
    a, b, c, d, e, f, g = (np.zeros(4, np.int32) for _ in range(7))
    (e,) = findings("bounds", stores, (1,), ((a, (b, c)), [d, e, f], g, which, k), schedule)
    assert e.array == name and f"of {words} lies wholly outside" in str(e)


CALLS = ["f(a, mask=m)", "f(a)", "f(\n    a,\n    mask=m)", "f(g(mask=1))", "f(a,  # mask=1\n  b)", "x.f(mask=y.g())"]


@pytest.mark.parametrize("text, expected", [*zip(CALLS, [True, False, True, False, False, True], strict=True)])
def test_what_a_call_names(text, expected):
    module = cell(f"def k():\n    é = {text.replace(chr(10), chr(10) + '    ')} + 1\n")
    lines = f"    é = {text.replace(chr(10), chr(10) + '    ')}".split("\n")
    span = Span(module["k"].__code__.co_filename, 2, 8, 1 + len(lines), len(lines[-1]), "k")
    assert names_keyword(span, "mask") is expected and not names_keyword(span, "other")
