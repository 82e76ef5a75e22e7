"""How often each op, each op x dtype and each kind of statement occurs in many programs, and how often they must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from textwrap import fill
from typing import Any

from conformance.generate.language import ALLOWED, KINDS, LEFT_OUT, OPS
from conformance.generate.tree import Do, For, If, Program, While, exprs

EACH, EACH_DTYPE, EACH_KIND = 500, 20, 500  # of 100,000 programs
_RAREST = 6  # shown of each kind
LEAST_OPS, LEAST_NESTED, LEAST_SOFT, LEAST_DISTINCT = 12, 1, 0.4, 0.95


@dataclass
class Counts:
    """Sums over programs: two of them add up with `+`, and go through JSON with `json` and `Counts.of`."""

    programs: int = 0
    soft: int = 0  # programs that store a value with free rounding
    ops: Counter = field(default_factory=Counter)  # by (op, dtype)
    kinds: Counter = field(default_factory=Counter)
    sizes: Counter = field(default_factory=Counter)  # programs by the number of their ops
    nested: Counter = field(default_factory=Counter)  # programs by the number of their branches and loops
    shapes: set = field(default_factory=set)  # hashes of 64 bits of the programs without their numbers

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
        """The sums as JSON values; the hashes are one string of hexadecimal digits."""
        out: dict[str, Any] = {f.name: dict(v) if isinstance(v := getattr(self, f.name), Counter) else v
                               for f in fields(self)}
        return out | {"ops": {f"{o}|{d}": n for (o, d), n in sorted(self.ops.items())},
                      "shapes": "".join(f"{h:016x}" for h in sorted(self.shapes))}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Counts:
        """The inverse of `json`."""
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
        return [line for lines in self.short().values() for line in lines]

    def short(self) -> dict[str, list[str]]:
        """The same by kind: ops, ops x dtypes, statements, and what is said of the programs as a whole."""
        scale, by_op = self.programs / 100_000, self.by_op()
        shares = {"ops, median": (median(self.sizes), LEAST_OPS), "branches and loops, median":
                  (median(self.nested), LEAST_NESTED), "with free rounding": (self.soft / self.programs, LEAST_SOFT),
                  "distinct": (len(self.shapes) / self.programs, LEAST_DISTINCT)}
        return {
            "ops": [f"{op}: {by_op[op]}" for op in OPS if by_op[op] < max(1, EACH * scale)],
            "ops x dtypes": [f"{op} {d}: {self.ops[op, d]}" for op, ds in ALLOWED.items() for d in ds
                             if self.ops[op, d] < max(1, EACH_DTYPE * scale)],
            "statements": [f"statement {k}: {n}" for k in KINDS if (n := self.kinds[k]) < max(1, EACH_KIND * scale)],
            "programs": [f"{name}: {has:.3g}" for name, (has, least) in shares.items() if has < least]}

    def __str__(self) -> str:
        by_op, short = self.by_op(), self.short()
        rarest = {"ops": sorted((by_op[o], o) for o in OPS),
                  "ops x dtypes": sorted((self.ops[op, d], f"{op} {d}") for op, ds in ALLOWED.items() for d in ds),
                  "statements": sorted((self.kinds[k], k) for k in KINDS)}
        distinct = len(self.shapes) / self.programs
        lines = [("programs", f"{self.programs}, distinct but for their numbers {distinct:.2%}"),
                 ("of each", f"ops: median {median(self.sizes)}; branches and loops: median {median(self.nested)}"),
                 ("free rounding", f"reaches a store in {self.soft / self.programs:.1%}")]
        for kind, counted in rarest.items():
            lines.append((kind, f"{len(counted)}, of which {len(short[kind])} are too rare; the rarest: "
                                f"{', '.join(f'{name} {n}' for n, name in counted[:_RAREST])}"))
        lines += [("too low", line) for line in short["programs"]]
        return "\n".join(f"{name:20}{text}" for name, text in lines)

    def details(self) -> str:
        """The summary, what is left out on purpose, and everything that is too rare, in paragraphs."""
        out = [str(self), "left out:\n" + "\n".join(f"    {o}: {why}" for o, why in LEFT_OUT.items())]
        for kind, lines in self.short().items():
            if lines:
                whole = ", ".join(line.replace(" ", "\0") for line in lines)  # no line ends inside an entry
                filled = fill(whole, 110, initial_indent="    ", subsequent_indent="    ").replace("\0", " ")
                out.append(f"{kind}, too rare:\n{filled}")
        return "\n\n".join(out) + "\n"


def median(histogram: Counter) -> int:
    """The lower median; `sizes` counts how often each number occurs."""
    rest = (histogram.total() + 1) // 2
    for size, n in sorted(histogram.items()):
        rest -= n
        if rest <= 0:
            return size
    return 0
