"""Loops of element functions, whose variables take wider dtypes as the body needs them [ELT-7]."""

import dataclasses
import re
import textwrap

import numpy as np
import pytest

import cutile as ct
from tests.elements import applied
from tests.front.compiling import A1, I32, cell, refused


@dataclasses.dataclass(frozen=True)
class Two:
    p: object
    q: object


LEAVING = {
    "break": "z = Two(x, y)\nfor k in range(y):\n    if k * x > 3:\n        z = Two(k, x)\n        break\n",
    "continue": "z = Two(x, y)\nfor k in range(y):\n    if k * x > 3:\n        z = Two(k, x)\n        continue\n"
                "    z = Two(z.q, k)\n",
    "end": "z = Two(x, x)\nfor k in range(y):\n    z = Two(k, z.p)\n",
    "begin": "z = Two(y, 1)\nfor k in range(y):\n    z = Two(x, z.p)\n",
    "while": "z = Two(x, y)\nwhile z.p < 3:\n    z = Two(4, z.p)\n",
    "without end": "z = Two(x, y)\nwhile True:\n    if z.p > 3:\n        z = Two(y, x)\n        break\n"
                   "    z = Two(z.p + 2, z.q)\n    if z.p > 1:\n        z = Two(7, 7)\n",
    "only breaks": "while True:\n    if x > 2:\n        z = Two(y, x)\n        break\n    z = Two(x, 3)\n    break\n",
    "else": "z = Two(x, y)\nfor k in range(y):\n    if k * x > 3:\n        z = Two(k, x)\n        break\n"
            "else:\n    z = Two(y, 2)\n",
    "nested": "z = Two(x, y)\nfor k in range(3):\n    for m in range(y):\n        z = Two(m, z.p)\n"
              "        if m == 2:\n            break\n    if z.q > k:\n        continue\n    z = Two(k, k)\n",
}


@pytest.mark.parametrize("body", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("kind", ["fields", "items", "numbers"])
def test_values_of_several_dtypes_meet_in_loops_of_elements(body, kind):  # ELT-7.dtype
    """However control leaves an iteration or the loop, in a variable, in parts of a tuple or of a record."""
    if kind == "items":
        body = body.replace("Two(", "(").replace("z.p", "z[0]").replace("z.q", "z[1]")
    if kind == "numbers":
        body = re.sub(r"Two\((.*?), (.*?)\)", r"\1, \2", body.replace("z =", "p, q ="))
        body = body.replace("z.p", "p").replace("z.q", "q")
    whole = {"fields": "z.p * 100 + z.q", "items": "z[0] * 100 + z[1]", "numbers": "p * 100 + q"}[kind]
    f = cell("def f(x, y):\n" + textwrap.indent(f"{body}return {whole}\n", "    "), Two=Two)["f"]
    x, y = np.linspace(-3, 5, 16).astype(np.float32), np.arange(16, dtype=np.int32) % 7 - 1
    x = (x * 2).round().astype(np.float32) / 2
    assert applied(f, x, y).tolist() == [f(float(p), int(q)) for p, q in zip(x, y, strict=True)]


def test_tiles_keep_their_types_in_loops_of_elements():  # LOOP-5
    """What is no number of one element does not meet."""
    def f(x):
        z = x
        for k in range(3):
            z = (x, k)
        return z

    def k(a):
        ct.store(a, 0, ct.elementwise(f)(ct.load(a, 0, 4)))
    assert "a variable that a loop carries" in refused(k, A1).message


@pytest.mark.parametrize("wrong, kind, message", [
    ("later", ct.TileSyntaxError, "Undefined variable `later` used: it is assigned only later"),
    ("nowhere", ct.TileSyntaxError, "Undefined variable `nowhere`"),
    ("either", ct.TileTypeError, "Use of potentially undefined variable `either`"),
    ("generated(1)", ct.TileSyntaxError, "tile code does not support yield")])
def test_errors_of_a_loop_that_is_typed_again_stay(wrong, kind, message):  # ELT-7
    """With wider variables; what an error was about has poison, or is skipped, the second time."""
    k = cell(f"""
        def generated(n):
            yield n

        def k(a, c):
            if c > 0:
                either = 1
            def f(x):
                z = 0
                for k in range(3):
                    w = {wrong}
                    z += x * 0.5
                return z
            ct.store(a, 0, ct.elementwise(f)(ct.load(a, 0, 4)))
            later = 2
    """)["k"]
    assert message in refused(k, A1, I32, cls=kind).message
