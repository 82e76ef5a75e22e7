"""Builds the package's C extensions. Without a C compiler they are left out, and launches take longer.

Everything else about the package is in pyproject.toml.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

RUNTIME, COMPILED = Path("cutile", "runtime"), Path("cutile", "compiled")
# No product and sum may become one operation, because that would change bits.
EXACT = (["/O2", "/fp:precise"] if sys.platform == "win32"
         else ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"])

if sysconfig.get_config_var("Py_GIL_DISABLED"):  # such a Python has no stable ABI yet
    setup()
else:
    setup(ext_modules=[
              Extension("cutile.runtime._launcher", sorted(map(str, RUNTIME.glob("*.c"))),
                        depends=sorted(map(str, RUNTIME.glob("*.h"))), optional=True, py_limited_api=True),
              Extension("cutile.jax._handlers", ["cutile/jax/_handlers.c"], depends=["cutile/jax/xla_ffi.h"],
                        optional=True, py_limited_api=True),
              Extension("cutile.compiled._forms", sorted(map(str, COMPILED.glob("*.c"))),
                        depends=sorted(map(str, COMPILED.glob("*.h"))), extra_compile_args=EXACT, optional=True,
                        py_limited_api=True)],
          options={"bdist_wheel": {"py_limited_api": "cp311"}})
