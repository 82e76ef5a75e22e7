"""Where `tileiras` is on this machine, and which release it is.

Packages are found by the names of their metadata folders. importlib.metadata would do the same, but importing it would
take a good part of the time of a first launch with a warm cache.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from cutile._support.structs import structure
from cutile.errors import refusal
from cutile.gpu.executables import EXE, on_path

PACKAGES = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")


@structure(frozen=True, slots=True)
class Tool:
    """An assembler found on this machine. `origin` says where it came from, `packaged` the versions of its packages."""

    path: Path
    origin: str
    packaged: str = ""

    @property
    def version(self) -> str:
        """Its release and build, as "13.5.37"; "unknown" if it does not say."""
        from cutile.gpu.process import version_of

        return version_of(self.path)

    @property
    def disassembler(self) -> Path:
        return self.path.with_name("tileirdisasm" + EXE)


def find_tool() -> Tool:
    """pip packages, then PATH, then toolkits: CUDA_HOME, CUDA_PATH, the usual folders. FileNotFoundError if nowhere.

    The current folder is never searched, even if sys.path, PATH or CUDA_HOME names it: working in a folder must not run
    programs that lie there.
    """
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    return _find(tuple(sys.path), here, tuple(os.environ.get(v) for v in ("PATH", "CUDA_HOME", "CUDA_PATH")))


@functools.lru_cache(maxsize=8)
def _find(folders: tuple[str, ...], here: str, environment: tuple[str | None, ...]) -> Tool:
    tool, problem = _of_packages([f for f in folders if os.path.isabs(f) and not _same(f, here)])
    if tool is None:
        tool = next(_elsewhere(*environment), None)
    if tool is None:
        raise refusal(FileNotFoundError(
            f"tileiras, which makes GPU code, was not found{': ' + problem if problem else ''}. "
            "Install it: pip install 'cutile[gpu]', or a CUDA toolkit 13.1 or newer"))
    if problem:
        warnings.warn(f"{problem}; using {tool.path} ({tool.origin})", RuntimeWarning, stacklevel=3)
    return tool


def _same(folder: str, here: str) -> bool:
    try:
        return os.path.samefile(folder, here)
    except OSError:
        return False


def _of_packages(folders: Sequence[str]) -> tuple[Tool | None, str]:
    """The tool of the pip packages, or what is wrong with them ("" if none is installed)."""
    found = _installed(folders)
    if PACKAGES[0] not in found:
        return None, ""
    missing = [name for name in PACKAGES if name not in found]
    if missing:
        return None, f"{PACKAGES[0]} is installed without {' and '.join(missing)}, which it needs"
    versions = [version for version, _ in found.values()]
    if len({".".join(v.split(".")[:2]) for v in versions}) > 1:
        listed = ", ".join(f"{name} {found[name][0]}" for name in PACKAGES)
        return None, f"the compiler packages are not of one release ({listed}); install equal versions"
    version, metadata = found[PACKAGES[0]]
    path = _recorded(metadata, "tileiras" + EXE)
    if path is None:
        return None, f"{PACKAGES[0]} is installed but holds no tileiras"
    packaged = "-".join(dict.fromkeys(found[name][0] for name in PACKAGES))
    return Tool(path, f"pip package {PACKAGES[0]} {version}", packaged), ""


def _installed(folders: Sequence[str]) -> dict[str, tuple[str, Path]]:
    """Version and metadata folder of each of PACKAGES that is installed; the first on the path is taken."""
    wanted = {name.replace("-", "_"): name for name in PACKAGES}
    found: dict[str, tuple[str, Path]] = {}
    for folder in folders:
        try:
            entries = os.listdir(folder)
        except OSError:  # an archive, or a folder that does not exist
            continue
        for entry in entries:
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            name = wanted.get(name.lower().replace(".", "_"))
            if name is not None and entry.endswith(".dist-info"):
                found.setdefault(name, (version, Path(folder, entry)))
    return found


def _recorded(metadata: Path, name: str) -> Path | None:
    """The file of this name among the files that a package installed."""
    try:
        lines = (metadata / "RECORD").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        file = metadata.parent / line.rsplit(",", 2)[0].strip('"')
        if file.name == name and file.is_file():
            return file
    return None


def _elsewhere(path: str | None, *homes: str | None) -> Iterator[Tool]:
    found = on_path("tileiras", path)
    if found:
        yield Tool(Path(found), "PATH")
    newest_first = sorted(Path("/usr/local").glob("cuda-1[3-9]*"), reverse=True) if os.name != "nt" else []
    for folder, origin in [*zip(homes, ("CUDA_HOME", "CUDA_PATH")), (Path("/usr/local/cuda"), "/usr/local/cuda"),
                           *((p, str(p)) for p in newest_first)]:
        home = os.path.expanduser(folder or "")
        file = Path(home, "bin", "tileiras" + EXE)
        if os.path.isabs(home) and file.is_file():
            yield Tool(file, origin)
