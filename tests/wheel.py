"""Whether an installed wheel works: a kernel runs, and the compiled parts are there. `python tests/wheel.py`

It runs outside the checkout, in an environment in which the wheel was installed, and needs nothing but that.
"""

import os
import sys
import sysconfig
import tempfile

with tempfile.TemporaryDirectory() as elsewhere:
    os.chdir(elsewhere)  # so that the package cannot be that of the checkout
    import numpy as np

    import cutile as ct

    assert "site-packages" in ct.__file__, f"not the installed package: {ct.__file__}"

    from cutile.compiled import _forms  # noqa: F401 - whether it loads
    from cutile.runtime import _launcher  # noqa: F401

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "an extension has switched the GIL on"

    # The source of a kernel must be in a file.
    with open("vector_add.py", "w") as f:
        f.write("import cutile as ct\n\n@ct.kernel\ndef add(x, y, out, T: ct.Constant[int]):\n    i = ct.bid(0)\n"
                "    ct.store(out, i, ct.load(x, i, T) + ct.load(y, i, T))\n")
    sys.path.insert(0, elsewhere)
    from vector_add import add

    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    out = np.zeros_like(x)
    ct.launch(None, (ct.cdiv(1000, 64),), add, (x, y, out, 64))
    assert np.array_equal(out, x + 1)
    assert ct.load.__doc__ and "Parameters" in ct.load.__doc__
    os.chdir(os.path.dirname(elsewhere))
print(f"Python {sys.version.split()[0]}: cutile {ct.__version__} works, with its compiled parts")
