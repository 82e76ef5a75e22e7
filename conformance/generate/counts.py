"""How often each op, each op x dtype and each kind of statement occurs in many programs, against what is demanded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

from conformance.generate.language import ALLOWED, KINDS, LEFT_OUT, OPS
from conformance.generate.tree import Do, For, If, Program, While, exprs

EACH, EACH_DTYPE, EACH_KIND = 500, 20, 500  # of 100,000 programs
LEAST_OPS, LEAST_NESTED, LEAST_SOFT, LEAST_DISTINCT = 12, 1, 0.4, 0.95


@dataclass
class Counts:
    """Sums over programs: two of them add up with `+`, and go through JSON with `json` and `Counts.of`."""

    programs: int = 0
    soft: int = 0  # programs in which something that rounding leaves open reaches a store
    ops: Counter = field(default_factory=Counter)  # by (op, dtype)
    kinds: Counter = field(default_factory=Counter)
    sizes: Counter = field(default_factory=Counter)  # programs by the number of their ops
    nested: Counter = field(default_factory=Counter)  # programs by the number of their branches and loops
    shapes: set = field(default_factory=set)  # what programs are but for their numbers, as a hash of 64 bits

    def add(self, p: Program) -> None:
        statements = list(p.statements())
        ops, soft, shape = Counter(), False, []
        for s in statements:
            shape.append(s.kind)
            for e in exprs(s):
                soft |= e.soft == 2 and isinstance(s, Do)
                for x in e.walk():
                    ops.update(x.ops)
                    shape.append((x.ops, x.t))
        self.programs += 1
        self.soft += soft
        self.ops += ops
        self.kinds.update(s.kind for s in statements)
        self.sizes[ops.total()] += 1
        self.nested[sum(isinstance(s, If | For | While) for s in statements)] += 1
        self.shapes.add(int.from_bytes(blake2b(repr(shape).encode(), digest_size=8).digest()))

    def __add__(self, other: Counts) -> Counts:
        a, b = vars(self), vars(other)
        return Counts(**{n: a[n] | b[n] if isinstance(a[n], set) else a[n] + b[n] for n in a})

    def json(self) -> dict[str, Any]:
        """The sums as what JSON has, the hashes in hexadecimal one after another."""
        out: dict[str, Any] = {f.name: dict(v) if isinstance(v := getattr(self, f.name), Counter) else v
                               for f in fields(self)}
        return out | {"ops": {f"{o}|{d}": n for (o, d), n in sorted(self.ops.items())},
                      "shapes": "".join(f"{h:016x}" for h in sorted(self.shapes))}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Counts:
        """What `json` gave."""
        number: Callable = lambda n: Counter({int(k): v for k, v in data[n].items()})
        hashes = data["shapes"]
        return cls(data["programs"], data["soft"], Counter({tuple(k.split("|")): n for k, n in data["ops"].items()}),
                   Counter(data["kinds"]), number("sizes"), number("nested"),
                   {int(hashes[i:i + 16], 16) for i in range(0, len(hashes), 16)})

    def by_op(self) -> Counter:
        out: Counter = Counter()
        for (op, _), n in self.ops.items():
            out[op] += n
        return out

    def lacking(self) -> list[str]:
        """What falls short, scaled to the number of programs. At least one of everything is demanded."""
        scale, by_op = self.programs / 100_000, self.by_op()
        out = [f"{op}: {by_op[op]}" for op in OPS if by_op[op] < max(1, EACH * scale)]
        out += [f"{op} {d}: {self.ops[op, d]}" for op, ds in ALLOWED.items() for d in ds
                if self.ops[op, d] < max(1, EACH_DTYPE * scale)]
        out += [f"statement {k}: {self.kinds[k]}" for k in KINDS if self.kinds[k] < max(1, EACH_KIND * scale)]
        shares = {"ops, median": (median(self.sizes), LEAST_OPS), "branches and loops, median":
                  (median(self.nested), LEAST_NESTED), "with free rounding": (self.soft / self.programs, LEAST_SOFT),
                  "distinct": (len(self.shapes) / self.programs, LEAST_DISTINCT)}
        return out + [f"{name}: {has:.3g}" for name, (has, least) in shares.items() if has < least]

    def __str__(self) -> str:
        by_op = self.by_op()
        least = sorted((by_op[o], o) for o in OPS)[:8]
        cells = [(self.ops[op, d], f"{op} {d}") for op, ds in ALLOWED.items() for d in ds]
        kinds = sorted((self.kinds[k], k) for k in KINDS)
        return "\n".join([
            f"programs {self.programs}, distinct but for their numbers {len(self.shapes) / self.programs:.2%}",
            f"ops a program: median {median(self.sizes)}; branches and loops: median {median(self.nested)}",
            f"rounding that is free reaches a store in {self.soft / self.programs:.1%}",
            f"ops {len(OPS)}, the rarest: {_listed(least)}",
            f"ops x dtypes {len(cells)}, the rarest: {_listed(sorted(cells)[:8])}",
            f"statements {len(kinds)}, the rarest: {_listed(kinds[:8])}",
            f"left out: {', '.join(f'{o} ({why})' for o, why in LEFT_OUT.items())}",
            f"short of what is demanded: {', '.join(self.lacking()) or 'nothing'}"])


def median(histogram: Counter) -> int:
    """The lower median of numbers that are counted by their size."""
    rest = (histogram.total() + 1) // 2
    for size, n in sorted(histogram.items()):
        rest -= n
        if rest <= 0:
            return size
    return 0


def _listed(rarest: list[tuple[int, str]]) -> str:
    return ", ".join(f"{name} {n}" for n, name in rarest)
