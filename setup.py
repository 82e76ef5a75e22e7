"""Builds the package's C extensions. Without a C compiler they are left out, and launches take longer.

Everything else about the package is in pyproject.toml.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

RUNTIME, COMPILED, JAX = (Path("cutile", room) for room in ("runtime", "compiled", "jax"))
# No product and sum may become one operation, because that would change bits.
EXACT = (("/O2", "/fp:precise") if sys.platform == "win32"
         else ("-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"))

# One build serves all versions of Python by the stable ABI, which free-threaded ones do not have.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def extension(name: str, sources: list[Path], headers: list[Path], options: tuple[str, ...] = ()) -> Extension:
    return Extension(name, sorted(map(str, sources)), depends=sorted(map(str, headers)), optional=True,
                     extra_compile_args=list(options), py_limited_api=not FREE_THREADED,
                     define_macros=[("Py_GIL_DISABLED", "1")] if FREE_THREADED else [])


class Build(build_ext):
    """Compiles the extensions at once. An installation of the checkout itself (`pip install -e`) takes those that stand
    there, if they are newer than what they are made of: the next environment need not compile them again.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        there = Path(self.get_ext_filename(ext.name))
        made_of = [__file__, *ext.sources, *ext.depends]
        if self.editable_mode and there.is_file() and all(
                Path(p).stat().st_mtime < there.stat().st_mtime for p in made_of):
            made = self.get_ext_fullpath(ext.name)
            self.mkpath(str(Path(made).parent))
            self.copy_file(str(there), made)
        else:
            super().build_extension(ext)


setup(cmdclass={"build_ext": Build},
      ext_modules=[extension("cutile.runtime._launcher", [*RUNTIME.glob("*.c")], [*RUNTIME.glob("*.h")]),
                   extension("cutile.jax._handlers", [JAX / "_handlers.c"], [JAX / "xla_ffi.h"]),
                   extension("cutile.compiled._forms", [*COMPILED.glob("*.c")], [*COMPILED.glob("*.h")], EXACT)],
      options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}})
