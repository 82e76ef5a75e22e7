"""Builds the package's one C extension. Without a C compiler it is left out, and launches take a little longer.

Everything else about the package is in pyproject.toml.
"""

import sysconfig

from setuptools import Extension, setup

if sysconfig.get_config_var("Py_GIL_DISABLED"):  # such a Python has no stable ABI yet
    setup()
else:
    setup(ext_modules=[Extension("cutile.gpu._launcher", ["cutile/gpu/_launcher.c"], optional=True,
                                 py_limited_api=True)],
          options={"bdist_wheel": {"py_limited_api": "cp311"}})
