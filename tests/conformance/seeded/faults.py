"""Twenty wrong changes that the referee must find. Each replaces a piece of text in one file of the tree.

`against` says which comparison must find it. A fault of the front end or of an op changes the interpreter and the GPU
code alike, so the comparison is with the generator's reference. A fault of a pass or a lowering changes only the
bytecode, so the comparison is with the evaluator of bytecode.
"""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE, BYTECODE = "reference", "tests.tileir_eval.adapter:TileIR"


@dataclass(frozen=True)
class Fault:
    name: str
    part: str  # "front end and ops", "passes", "lowering"
    file: str
    old: str
    new: str
    against: str


def _of(part: str, against: str, *rows: tuple[str, str, str, str]) -> list[Fault]:
    return [Fault(name, part, file, old, new, against) for name, file, old, new in rows]


FAULTS = [
    *_of(
        "front end and ops", REFERENCE,
        ("an early continue forgets what its round assigned", "cutile/front/loops.py",
         "pairs = zip(leaves(expected), leaves(var.term), strict=True)",
         "pairs = zip(leaves(expected), leaves(var.term if jump is self.state.continues[-1] else "
         "self.at_start[n].term), strict=True)"),
        ("`and` that stops gives True", "cutile/front/conditions.py", "return loose(stop_at)\n\n    term = choose",
         "return loose(True)\n\n    term = choose"),
        ("an integer beside float16 gives float32", "cutile/dtypes.py", "return a if ia.floating else b\n",
         "return float32 if float16 in (a, b) else a if ia.floating else b\n"),
        ("floor division of integers truncates", "cutile/ops/_numeric.py", "q = np.floor_divide(x, y)\n",
         "q = np.floor_divide(x, y)\n"
         "    q = (q + ((np.remainder(x, y) != 0) & ((np.asarray(x) < 0) != (np.asarray(y) < 0)))).astype(q.dtype)\n"),
        ("argmax gives the last of equal elements", "cutile/ops/reduce.py", "dtype, axis, np.argmax, -np.inf",
         "dtype, axis, lambda v, axis: v.shape[axis] - 1 - np.argmax(np.flip(v, axis), axis), -np.inf"),
        ("a reverse scan gives its results backwards", "cutile/ops/scan.py",
         "    if reverse:\n        done.reverse()\n", ""),
        ("permute takes the inverse permutation", "cutile/ops/shape.py",
         "return np.transpose(x, (*range(n), *(n + a for a in axes)))",
         "return np.transpose(x, (*range(n), *(n + a for a in np.argsort(axes))))"),
    ),
    *_of(
        "passes", REFERENCE,
        ("z - x*y becomes x*y - z", "cutile/passes/fma.py", "            x = negative(x)\n",
         "            z = negative(z)\n"),
    ),
    *_of(
        "passes", BYTECODE,
        ("equal operands are enough to merge ops", "cutile/passes/cse.py", "return n.op, n.operands, n.layout, attrs,",
         "return n.op, n.operands, n.layout, () if n.operands else attrs,"),
        ("atomics whose result is unused are dead", "cutile/analysis/live.py",
         "(n.op.effect == PURE or n.op.effect == READ", "(n.op.effect == PURE or n.op.effect in (READ, 'atomic')"),
        ("a split loop ends its first half one too early", "cutile/passes/loop_split.py",
         "compare.less_equal: (True, True),\n    compare.greater_equal",
         "compare.less_equal: (True, False),\n    compare.greater_equal"),
        ("a return in a loop only ends the loop", "cutile/passes/structured_exits.py",
         "yes = _constant(before, FLAG, True, n.span)", "yes = _constant(before, FLAG, False, n.span)"),
        ("the else of an early return is lost", "cutile/passes/flatten_frames.py", "after = out\n",
         "after = out[:1]\n"),
    ),
    *_of(
        "lowering", BYTECODE,
        ("floor division rounds to zero", "cutile/gpu/tileir/rules/arithmetic.py",
         '"negative_inf" if sign == "signed" else "zero"', '"zero"'),
        ("a remainder of zero gets the divisor's sign", "cutile/gpu/tileir/rules/arithmetic.py",
         'l.op("andi", [l.op("xori", signs), compare(l, "not_equal", r, zero, floating=floating)])',
         'l.op("xori", signs)'),
        ("True becomes -1", "cutile/gpu/tileir/rules/convert.py", "x = resized(l, x, ty.i32, signed=False)",
         "x = resized(l, x, ty.i32, signed=True)"),
        ("of equal elements the last wins", "cutile/gpu/tileir/rules/reduce.py",
         'compare(l, "less_than", i, j, floating',
         'compare(l, "greater_than", i, j, floating'),
        ("a scan hands its function the newer element first", "cutile/gpu/tileir/rules/reduce.py", "for k in (0, 1)]",
         "for k in (1, 0)]"),
        ("unsigned numbers are compared as signed", "cutile/gpu/tileir/rules/compare.py",
         "floating=is_float(x), sign=signedness(x))", 'floating=is_float(x), sign="signed")'),
        ("atomic max and min of unsigned numbers as signed", "cutile/gpu/tileir/rules/atomics.py",
         'return f"u{kind}" if kind in ("max", "min") and info(dtype).kind == "u" else kind', "return kind"),
    ),
]
