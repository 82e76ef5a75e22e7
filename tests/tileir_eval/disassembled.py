"""Bytecode as NVIDIA's disassembler reads it, compared with what our own reader says of it.

Our reader and our writer share their tables of facts, and so their mistakes. The disassembler has its own tables. Both
readers must agree on each operation: its name, the words of its attributes, the types of its results.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from cutile.gpu import find_tileiras
from cutile.gpu.tileir.module import Block, Operation, TileModule
from cutile.gpu.tileir.operations import ENUMS, OPS, Attr
from tests.tileir_eval.bytecode_reader import decode

PRINTED = {"pow": "fpowf", "unsignedCmp": "unsigned"}  # the disassembler's own names
NAMES = frozenset(PRINTED.get(n, n) for n in OPS)
UNSAID = {"yield", "continue"}  # where they hand on nothing
LINE = re.compile(r"\s*(?:%[^=]* = )?([a-z_0-9]+)\b(.*)")
WORDS = frozenset(w for words in ENUMS.values() for w in words) | {
    PRINTED.get(a.name, a.name) for spec in OPS.values() for a in spec.attrs if a.kind == "unit"}


def disassembler() -> Path:
    """Its path: TILEIRDISASM of the environment, or beside the assembler. FileNotFoundError if there is none."""
    given = os.environ.get("TILEIRDISASM")
    return Path(given) if given else find_tileiras.find_tool().disassembler


@functools.lru_cache(maxsize=4096)
def check(bytecode: bytes) -> None:
    """AssertionError where the readers differ, or where the disassembler refuses."""
    done = subprocess.run([disassembler(), "/dev/stdin"], input=bytecode, capture_output=True, timeout=60)
    assert done.returncode == 0, f"the disassembler refuses: {done.stderr.decode()}"
    lines = [m for line in done.stdout.decode().splitlines() if (m := LINE.fullmatch(line)) and m[1] in NAMES
             and (m[1] not in UNSAID or m[2])]
    ours = [o for o in _operations(decode(bytecode)) if o.spec.name not in UNSAID or o.uses()]
    read, meant = [m[1] for m in lines], [_printed(o.spec.name) for o in ours]
    assert meant == read, f"{meant} is read as {read}"
    for m, o in zip(lines, ours):
        _compare(m[2], o)


def _printed(name: str) -> str:
    return PRINTED.get(name, name)


def _operations(program: TileModule) -> Iterator[Operation]:
    """All operations in the order in which they are printed."""
    def inside(block: Block) -> Iterator[Operation]:
        for o in block.ops:
            yield o
            for r in o.regions:
                yield from inside(r)

    for e in program.entries:
        yield from inside(e.block)


def _compare(text: str, o: Operation) -> None:
    """One line of the disassembler against the operation that we read there."""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    says = {w for w in re.findall(r"[a-z_]+", text.split(" : ")[0]) if w in WORDS}
    means = {w for a in o.spec.attrs for w in [_word(a, o.attrs.get(a.name))] if w}
    assert means == says, f"{o.spec.name} {means} is read as {says}: {text}"
    text = re.sub(r"tile=\(([\dx]+)\)", lambda m: f"tile=({m[1].replace('x', ',')})", text).replace(" ", "")
    for v in o.results:
        wanted = str(v.type).replace(" ", "")
        assert wanted in text or wanted == "token", f"{o.spec.name} with {wanted} is read as: {text}"


def _word(attr: Attr, value: object) -> str | None:
    """The word that stands for an attribute: none where it has its default, but for how an access is ordered."""
    if attr.kind == "unit":
        return _printed(attr.name) if value else None
    return value if attr.kind in ENUMS and (value != attr.default or attr.kind == "MemoryOrdering") else None
