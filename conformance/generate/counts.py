"""How often each op, each op x dtype and each kind of statement occurs in many programs, against what is demanded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from statistics import median

from conformance.generate import elementwise, stores
from conformance.generate.core import ALL
from conformance.generate.dtypes import ARITHMETIC, FLOATS, INTS
from conformance.generate.structural import MMA
from conformance.generate.tree import Do, For, If, Program, While, exprs

# The dtypes of each op: what its counts are kept by. An op that is not here is counted without a dtype.
ALLOWED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "minimum", "maximum", "floordiv", "mod", "cdiv"), (*INTS, *FLOATS)),
    "divmod": INTS, **dict.fromkeys(("negative", "abs", "positive"), ("b1", *INTS, *FLOATS)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"), ("b1", *INTS)),
    **dict.fromkeys(("bitwise_lshift", "bitwise_rshift"), INTS),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), ("b1", *INTS, *FLOATS)),
    **dict.fromkeys(("floor", "ceil", "isnan", "atan2"), FLOATS), "pow": FLOATS,
    **dict.fromkeys(elementwise.FUNCTIONS, FLOATS), "truediv": FLOATS,
    **dict.fromkeys(("where", "astype", "astype from", "reshape", "broadcast_to", "permute", "transpose",
                     "expand_dims", "cat",
                     "extract", "insert"), ALL),
    **dict.fromkeys(("sum", "prod", "max", "min", "argmax", "argmin", "cumsum", "cumprod"), ("b1", *INTS, *FLOATS)),
    **dict.fromkeys(("reduce", "scan"), (*INTS, *FLOATS)), "mma": tuple(MMA), "matmul": tuple(MMA),
    "bitcast": (*INTS, *FLOATS, "e4m3", "e5m2"),
    **dict.fromkeys(("pack_to_bytes", "unpack_from_bytes"), (*INTS, *FLOATS)),
    **dict.fromkeys(("load", "gather", "view_load", "store", "view_store"), (*ARITHMETIC, "e4m3", "e5m2")),
    "atomic_add": (*stores.SHARED, *FLOATS),
    **dict.fromkeys(("atomic_xchg", "atomic_cas"), (*stores.SHARED, "f32", "f64")),
    **dict.fromkeys(("atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor"), stores.SHARED),
    "arange": (*INTS, *FLOATS), "full": ALL,
}
EACH, EACH_DTYPE, EACH_KIND = 500, 20, 500  # of 100,000 programs
KINDS = ("assign", "augmented", "unpack", "call", "if", "elif", "for", "while", "while True", "static_iter", "break",
         "continue", "return", "pass", "helper", "closure", "store", "scatter", "atomic", "assert_", "dependency")


@dataclass
class Counts:
    programs: int = 0
    ops: Counter = field(default_factory=Counter)  # by (op, dtype)
    kinds: Counter = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    nested: list[int] = field(default_factory=list)
    soft: int = 0  # programs in which something that rounding leaves open reaches a store
    shapes: set = field(default_factory=set)

    def add(self, p: Program) -> None:
        ops, kinds = p.ops(), p.kinds()
        self.programs += 1
        self.ops += ops
        self.kinds += kinds
        self.sizes.append(ops.total())
        statements = list(p.statements())
        self.nested.append(sum(isinstance(s, If | For | While) for s in statements))
        self.soft += any(e.soft == 2 for s in statements if isinstance(s, Do) for e in exprs(s))
        self.shapes.add(blake2b("\n".join(line for s in p.body for line in s.lines("")).encode(),
                                digest_size=8).digest())

    def by_op(self) -> Counter:
        out: Counter = Counter()
        for (op, _), n in self.ops.items():
            out[op] += n
        return out

    def lacking(self) -> list[str]:
        """What falls short, scaled to the number of programs."""
        scale, by_op = self.programs / 100_000, self.by_op()
        out = [f"{op}: {n}" for op, n in sorted(by_op.items()) if n < EACH * scale]
        out += [f"{op} {d}: {self.ops[op, d]}" for op, ds in ALLOWED.items() for d in ds
                if self.ops[op, d] < EACH_DTYPE * scale]
        out += [f"statement {k}: {self.kinds[k]}" for k in KINDS if self.kinds[k] < EACH_KIND * scale]
        return out

    def __str__(self) -> str:
        least = sorted(self.by_op().items(), key=lambda x: x[1])[:8]
        return "\n".join([
            f"programs {self.programs}, distinct {len(self.shapes) / self.programs:.2%}",
            f"ops a program: median {median(self.sizes)}; branches and loops: median {median(self.nested)}",
            f"rounding that is free reaches a store in {self.soft / self.programs:.1%}",
            f"ops {len(self.by_op())}, the rarest: {', '.join(f'{o} {n}' for o, n in least)}",
            f"statements: {', '.join(f'{k} {n}' for k, n in self.kinds.most_common())}",
            f"short of what is demanded: {', '.join(self.lacking()) or 'nothing'}"])
