"""The text of a cache key: all that the machine code of a kernel depends on. The hash of this text is the cache key;
the text itself can be read and compared.

The typed IR says what the kernel does, wherever its source stands. Spans are part of the text only if the code carries
line information. They give the names of files relative to sys.path, so that a copy of a project in another folder has
the same text. The release of the assembler is not part of the text (cache.py).
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cutile import settings
from cutile.gpu.target import Target
from cutile.ir import nodes
from cutile.ir.text import to_text
from cutile.spans import lines_of

# The sources of this package that decide how typed IR becomes bytecode.
_SOURCES = ("dtypes.py", "types.py", "ir", "ops", "analysis", "passes", "gpu")


def key_text(program: nodes.Kernel, facts: Sequence[Any], target: Target, options: Any, symbol: str,
             lineinfo: bool) -> str:
    """The text for a call of `cubin.build` with these arguments. It has the options for this target, and a hash of
    cutile's sources.
    """
    head = [f"cutile {sources()}", f"target {target.tool_name}", f"symbol {symbol}", str(options.on(target.tool_name)),
            f"lineinfo {lineinfo}", f"hints {settings.get('HINTS')}", *["memcheck"] * settings.memcheck(),
            *(f"parameter {f!r}" for f in facts)]
    return "\n".join([*head, to_text(program, lineinfo, file=portable)])


def digest(text: str) -> str:
    """128 bits of SHA-256, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@functools.cache
def sources() -> str:
    """A hash of the sources that turn IR into bytecode: after an edit no older code is found."""
    return hash_of(_SOURCES)


def hash_of(parts: Iterable[str]) -> str:
    """A hash of the sources in these files and folders of the package."""
    root, h = os.path.dirname(os.path.dirname(__file__)), hashlib.sha256()
    for part in parts:
        for name, path in sorted(_files(os.path.join(root, part), part)):
            with open(path, "rb", buffering=0) as f:  # every process reads a hundred files: unbuffered is quickest
                h.update(b"%s\0%d\0" % (name.encode(), os.fstat(f.fileno()).st_size) + f.read())
    return h.hexdigest()[:16]


def _files(path: str, name: str) -> Iterator[tuple[str, str]]:
    """Name in the package and path of each Python file in a folder, or of the file itself."""
    if name.endswith(".py"):
        yield name, path
    elif "." not in name and not name.endswith("__pycache__"):
        for entry in os.listdir(path):
            yield from _files(f"{path}{os.sep}{entry}", f"{name}/{entry}")


def portable(file: str) -> str:
    """The name of a source file relative to `sys.path`. A notebook's cell, or another source without a file, is named
    by its content.
    """
    if not os.path.isfile(file):
        return f"<{digest(''.join(lines_of(file)))}>"
    folders = [os.path.join(os.path.abspath(p), "") for p in sys.path]
    inside = [f for f in folders if file.startswith(f)]
    return file[len(max(inside, key=len)):].replace(os.sep, "/") if inside else os.path.basename(file)
