"""The worked examples of docs/errors.md: wrong kernels by subject. Each is run for the text of its error.

An example is the body of a kernel, or a whole module that defines `k`. VALUES are the parameters it may have.
"""

from __future__ import annotations

import dataclasses
import linecache
import re
import textwrap

import numpy as np

import cutile as ct

VALUES = {
    "x": ("a float32 array of 64 elements", lambda: np.zeros(64, np.float32)),
    "a": ("a float32 array of shape (8, 8)", lambda: np.zeros((8, 8), np.float32)),
    "i": ("an int32 array of 64 elements", lambda: np.zeros(64, np.int32)),
    "h": ("a float16 array of 64 elements", lambda: np.zeros(64, np.float16)),
    "n": ("the int 4", lambda: 4),
    "s": ("the float 1.5", lambda: 1.5),
}

EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "Tiles and their shapes": [
        ("A tile size is no power of two", "t = ct.load(a, (0, 0), (3, 4))"),
        ("A size is known only at run time", "t = ct.load(x, 0, n)"),
        ("The tile has not the rank of the array", "t = ct.load(a, (0, 0), 4)"),
        ("Shapes do not broadcast", "t = ct.zeros((4, 8), ct.float32) + ct.zeros((2, 8), ct.float32)"),
        ("A stored tile has another rank", "ct.store(a, (0, 0), ct.zeros((4,), ct.float32))"),
        ("A reshape changes the number of elements", "t = ct.load(x, 0, 16).reshape((4, 8))"),
        ("An axis does not exist", "t = ct.sum(ct.load(x, 0, 16), axis=1)"),
        ("Operands of a matrix product do not fit", "t = ct.load(a, (0, 0), (4, 8)) @ ct.load(a, (0, 0), (4, 8))"),
    ],
    "Arrays and indices": [
        ("An array stands where a tile belongs", "t = ct.exp(x)"),
        ("An array is subscripted", "t = x[0]"),
        ("One index is missing", "t = ct.load(a, (0,), (4, 4))"),
        ("An index is no integer", "t = ct.load(x, s, 4)"),
        ("A tile is subscripted by a number", "t = ct.load(x, 0, 4)[0]"),
        ("A tile stands where an array belongs", "t = ct.load(ct.load(x, 0, 8), 0, 4)"),
        ("An int array is padded with NaN", "t = ct.load(i, 0, 8, padding_mode=ct.PaddingMode.NAN)"),
    ],
    "Dtypes and constants": [
        ("A store would lose precision", "ct.store(h, 0, ct.load(x, 0, 4))"),
        ("Signed and unsigned meet", "t = ct.load(i, 0, 4) + ct.load(i, 0, 4).astype(ct.uint32)"),
        ("float16 and bfloat16 meet", "t = ct.load(h, 0, 4) * ct.load(h, 0, 4).astype(ct.bfloat16)"),
        ("A literal does not fit", "t = ct.load(i, 0, 4).astype(ct.int8) + 1000"),
        ("Bits of a float", "t = ct.load(x, 0, 4) & 1"),
        ("Masks are joined with and", "t = ct.load(x, 0, 4)\nif t > 0 and t < 1:\n    ct.store(x, 0, t)"),
        ("Masks are multiplied", "t = ct.load(x, 0, 4)\nm = (t > 0) * (t < 1)"),
        ("A constant has no value", "t = ct.sqrt(-1.0)"),
        ("A float8 tile is added", "t = ct.load(x, 0, 4).astype(ct.float8_e4m3fn) + 1.0"),
    ],
    "Variables and control flow": [
        ("A tile decides a branch", "t = ct.load(x, 0, 4)\nif t > 0:\n    ct.store(x, 0, t)"),
        ("A variable has two types", "if n > 2:\n    v = 1\nelse:\n    v = 1.5\nct.store(x, 0, v)"),
        ("A loop changes a type", "total = 0\nfor k0 in range(n):\n    total = total + ct.load(x, k0, ())"),
        ("A variable is assigned on one path only", "if n > 2:\n    v = 1\nct.store(i, 0, v)"),
        ("A name is misspelt", "block = ct.bid(0)\nct.store(i, 0, blok)"),
        ("A step is not positive", "for k0 in range(8, 0, -1):\n    ct.store(i, k0, k0)"),
        ("Recursion depends on run time",
         "def f(m):\n    return f(m - 1) if m > 0 else 0\n\n\n@ct.kernel\ndef k(n, i):\n    ct.store(i, 0, f(n))"),
        ("A kernel returns a value", "return ct.load(x, 0, 4)"),
    ],
    "Python that tile code does not have": [
        ("A list", "parts = [1, 2]"),
        ("An assert statement", "assert n > 0"),
        ("try", "try:\n    t = ct.load(x, 0, 4)\nexcept ValueError:\n    pass"),
        ("A NumPy function", "t = np.exp(ct.load(x, 0, 4))"),
        ("An op that does not exist", "t = ct.mean(ct.load(x, 0, 4))"),
        ("A builtin", "t = sorted((3, 1, 2))"),
        ("An attribute is assigned", "t = ct.load(x, 0, 4)\nt.dtype = ct.float16"),
        ("A plain class", "class Config:\n    size = 4\n\n\n@ct.kernel\ndef k(x):\n    c = Config()"),
    ],
    "Compile time": [
        ("A static assertion does not hold", "ct.static_assert(ct.float16.bitwidth == 32, 'float32 is needed')"),
        ("A run-time value in a static construct", "ct.static_assert(x.shape[0] > 4 and n > 2)"),
        ("Python raises inside static_eval", "size = ct.static_eval({'small': 4}['large'])"),
        ("Tile code inside static_eval", "t = ct.static_eval(ct.exp(s))"),
        ("Too many items to unroll", "for k0 in ct.static_iter(range(5000)):\n    ct.store(i, k0, k0)"),
    ],
    "While a kernel runs": [
        ("An assertion fails", "t = ct.load(x, ct.bid(0), 4)\nct.assert_(t > 0, 'only positive numbers')"),
        ("Blocks wait for ever", "while ct.atomic_cas(i, 0, 1, 2) != 1:\n    pass"),
    ],
    "Launching": [
        ("A grid that is no tuple", "launch: ct.launch(None, 4, k, (x,))"),
        ("An argument is missing", "launch: ct.launch(None, (1,), k, ())"),
        ("A string as an argument", "launch: ct.launch(None, (1,), k, ('fast',))"),
        ("An int that needs 64 bits", "launch: ct.launch(None, (1,), k, (1 << 40,))"),
        ("A list of numbers", "launch: ct.launch(None, (1,), k, ([1, 2, 3],))"),
        ("A kernel is called", "launch: k(x)"),
    ],
}

FRAME = "@ct.kernel\ndef k({names}):\n{body}"


def page() -> str:
    """All examples with the text that each prints."""
    values = ", ".join(f"`{n}` is {what}" for n, (what, _) in VALUES.items())
    out = [f"In these examples {values}. Line 1 of `kernel.py` is `@ct.kernel`, line 2 is `def k(…):`; the code shown "
           "begins on line 3."]
    for group, examples in EXAMPLES.items():
        out.append(f"\n### {group}")
        for when, code in examples:
            shown, text = run(code)
            out.append(f"\n**{when}**\n\n```python\n{shown}\n```\n```text\n{text}\n```")
    return "\n".join(out) + "\n"


def run(code: str) -> tuple[str, str]:
    """An example's source as shown, and what it prints."""
    if code.startswith("launch: "):
        return code.removeprefix("launch: "), _printed(lambda: _launch_by_hand(code.removeprefix("launch: ")))
    source = code
    if "@ct.kernel" not in code:
        names = [n for n in VALUES if re.search(rf"\b{n}\b", code)]
        source = FRAME.format(names=", ".join(names), body=textwrap.indent(code, "    "))
    linecache.cache["kernel.py"] = (len(source), None, (source + "\n").splitlines(True), "kernel.py")
    space = {"__name__": "kernel", "ct": ct, "np": np, "dataclasses": dataclasses}
    exec(compile(source, "kernel.py", "exec"), space)
    kernel = space["k"]
    args = tuple(VALUES[n][1]() for n in kernel.parameters)
    return code, _printed(lambda: ct.launch(None, (1,), kernel, args))


def _launch_by_hand(call: str) -> None:
    @ct.kernel
    def k(x):
        pass

    eval(call, {"ct": ct, "k": k, "x": VALUES["x"][1]()})


def _printed(launch) -> str:
    try:
        launch()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError("an example of an error runs without one")
