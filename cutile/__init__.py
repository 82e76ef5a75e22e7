"""cutile: the cuTile tile-programming model. `import cutile as ct`."""

import importlib as _importlib
import sys as _sys

from cutile._support import forks as _forks
from cutile._version import __version__
from cutile.dtypes import (
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e5m3fnu,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    foreign_pointer_dtype,
    int8,
    int16,
    int32,
    int64,
    tfloat32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from cutile.errors import (
    StaticException,
    TileAssertionError,
    TileCompilerExecutionError,
    TileCompilerTimeoutError,
    TileDeadlockError,
    TileError,
    TileInternalError,
    TileRecursionError,
    TileSanitizerError,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileStepLimitError,
    TileSyntaxError,
    TileTypeError,
    TileUnsupportedFeatureError,
    TileValueError,
)
from cutile.front.proxies import Array, RawArrayMemory, Scalar, Tile, TiledView
from cutile.front.sizes import Sizes
from cutile.front.static_names import ensure_constant, static_assert, static_eval, static_exception, static_iter
from cutile.ops._op import registry as _registry
from cutile.runtime.annotations import (
    ArrayAnnotation,
    Constant,
    ConstantAnnotation,
    IndexedWithInt64,
    ListAnnotation,
    ScalarAnnotation,
    ScalarInt64,
)
from cutile.runtime.kernel import Kernel as kernel
from cutile.runtime.kernel import function
from cutile.runtime.launch import launch
from cutile.runtime.options import ByTarget
from cutile.settings import sanitize
from cutile.types import MemoryOrder, MemoryScope, PaddingMode, RoundingMode

__cutile_api__ = True  # for an unknown attribute of this module, errors in tile code say what to write instead

# Every public op is a name of this module: the op object itself.
_OPS = {name: op for name, op in _registry().items() if op.public}
globals().update(_OPS)

# Names that are imported when they are first used, and the module that has each; None for a module itself.
_LATER = {"ArraySpec": "compilation.array_spec", "CompiledFunction": "functions.compiled", "Out": "functions.out",
          "autotune": "functions.autotune",
          "compile_all": "functions.compile_all", "compiler_timeout": "gpu.tileir.tileiras", "compilation": None,
          "compute": None, "jax": None, "jit": "functions.declare", "lib": None,
          "prepare": "runtime.prepare", "schedule": "runtime.turn_schedule", "testing": None,
          "tune": None,
          "view": "pictures.view"}

# Importing a module of the package binds its name here, though it is not public. These names are deleted; __dir__ and
# tile code use __all__. `import cutile.ops; cutile.ops` works nevertheless, by __getattr__.
for _name in [n for n, v in globals().items() if isinstance(v, type(_importlib)) and not n.startswith("_")]:
    del globals()[_name]

__all__ = sorted([*(n for n in globals() if not n.startswith("_")), *_LATER])


def __getattr__(name: str):
    if name not in _LATER:
        if f"cutile.{name}" in _sys.modules:  # an import waits if another thread is still loading the module
            return _importlib.import_module(f"cutile.{name}")
        how = f" until you write: import cutile.{name}" if name in ("torch", "jax") else ""
        raise AttributeError(f"module 'cutile' has no attribute {name!r}{how}")
    module = _importlib.import_module(f"cutile.{_LATER[name] or name}")
    found = module if _LATER[name] is None else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*(n for n in globals() if n.startswith("__")), *__all__})
