"""Builds the package's C extensions. Without a C compiler they are left out, and launches take longer.

Everything else about the package is in pyproject.toml.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

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


setup(ext_modules=[extension("cutile.runtime._launcher", [*RUNTIME.glob("*.c")], [*RUNTIME.glob("*.h")]),
                   extension("cutile.jax._handlers", [JAX / "_handlers.c"], [JAX / "xla_ffi.h"]),
                   extension("cutile.compiled._forms", [*COMPILED.glob("*.c")], [*COMPILED.glob("*.h")], EXACT)],
      options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}})
