"""Sessions of pdb, driven through its standard input."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.interp.debugging.interpreters import run

KERNELS = Path(__file__).with_name("user_kernels.py")


def line_of(text: str, path: Path = KERNELS) -> int:
    """The number of the one line that contains a text."""
    found = [i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


@dataclass
class Answer:
    """What pdb answered to one command."""

    command: str
    text: str

    @property
    def stop(self) -> tuple[str, int, str] | None:
        """(file, line, function) where the program stopped."""
        found = re.findall(r"^> (.*?)\((\d+)\)(.*?)\(\)", self.text, re.MULTILINE)
        return (Path(found[-1][0]).name, int(found[-1][1]), found[-1][2]) if found else None

    @property
    def line(self) -> int | None:
        return self.stop[1] if self.stop else None

    @property
    def source(self) -> str:
        """The source line that pdb shows where it stopped."""
        found = re.findall(r"^-> (.*)$", self.text, re.MULTILINE)
        return found[-1] if found else ""


def pdb(python: str, commands: Iterable[str], *program: str | Path, module: bool = True, **env: str) -> list[Answer]:
    """Run a program under `python -m pdb` (or plainly, where it enters pdb itself); the answer to each command."""
    commands = list(commands)
    args = ["-m", "pdb", *program] if module else program
    done = run(python, *args, stdin="\n".join([*commands, "q", ""]), ok=False, **env)
    first, *answers = done.stdout.split("(Pdb) ")
    texts = [first, *answers][:len(commands) + 1]
    assert len(texts) == len(commands) + 1, done.stdout + done.stderr
    return [Answer(c, t) for c, t in zip(["", *commands], texts, strict=True)][1 if module else 0:]
