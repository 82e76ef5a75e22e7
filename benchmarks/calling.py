"""What ways of calling a compiled kernel from Python cost: python benchmarks/calling.py [--json FILE]

Each way takes three float32 arrays, a number and a stream, checks dtype and layout, and calls a C function with the
addresses, which does nothing: what remains is the way. Microseconds a call, seconds to build, and whether another
Python needs another build. Arrays are NumPy's, and PyTorch's in CPU memory where it is installed.

    DLPack          apache-tvm-ffi, which takes arrays through DLPack at each call
    ctypes          addresses and checks in Python, the C function by ctypes
    Cython          a module made by Cython, as a C++ compiler builds it
    C++ extension   a module made with pybind11; for PyTorch by torch.utils.cpp_extension
    cutile          `ct.launch` and a prepared launch, whose driver is the C function

A way whose tool is not installed is left out, with the reason.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

ROUNDS, CALLS, SIZE = 25, 2000, 1024
Way = Callable[..., Any]

ENTRY = """
#ifdef __cplusplus
extern "C"
#endif
int entry(void *x, void *y, void *z, long long n, void *stream) { return x == 0 && y == 0 && z == 0 && n < 0; }
"""
DRIVER = """
int launch(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h, void *stream,
           void **parameters, void **extra) { return parameters == 0; }
int current(void **context) { *context = (void *)1; return 0; }
"""
CYTHON = """
cdef extern int entry(void *x, void *y, void *z, long long n, void *stream)
def call(float[::1] x, float[::1] y, float[::1] z, long long n, size_t stream):
    if x.shape[0] != n or y.shape[0] != n or z.shape[0] != n:
        raise ValueError("sizes")
    return entry(&x[0], &y[0], &z[0], n, <void *>stream)
"""
PYBIND = """
#include <pybind11/numpy.h>
extern "C" int entry(void *, void *, void *, long long, void *);
using A = pybind11::array_t<float, pybind11::array::c_style>;
int call(A x, A y, A z, long long n, size_t stream) {
    if (x.size() != n || y.size() != n || z.size() != n) throw std::invalid_argument("sizes");
    return entry(x.mutable_data(), y.mutable_data(), z.mutable_data(), n, (void *)stream);
}
PYBIND11_MODULE(NAME, m) { m.def("call", &call); }
"""
TORCH = """
#include <torch/extension.h>
extern "C" int entry(void *, void *, void *, long long, void *);
int call(at::Tensor x, at::Tensor y, at::Tensor z, int64_t n, int64_t stream) {
    for (auto &t : {x, y, z})
        TORCH_CHECK(t.scalar_type() == at::kFloat && t.is_contiguous() && t.numel() == n, "a float32 tensor is needed");
    return entry(x.data_ptr(), y.data_ptr(), z.data_ptr(), n, (void *)stream);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("call", &call); }
"""
TVM = """
#include <tvm/ffi/tvm_ffi.h>
extern "C" int entry(void *, void *, void *, long long, void *);
int64_t call(tvm::ffi::TensorView x, tvm::ffi::TensorView y, tvm::ffi::TensorView z, int64_t n, int64_t stream) {
    for (auto *t : {&x, &y, &z})
        if (t->ndim() != 1 || t->size(0) != n || t->dtype().code != kDLFloat || t->dtype().bits != 32)
            TVM_FFI_THROW(TypeError) << "a float32 array is needed";
    return entry(x.data_ptr(), y.data_ptr(), z.data_ptr(), n, (void *)stream);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(call, call);
"""


# ------------------------------------------------------------------ the ways


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    """A shared library of C or C++ source text; it has `entry`."""
    file = folder / f"{name}.cpp"
    file.write_text(ENTRY + source)
    out = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", *options]
    subprocess.run([*command, file, "-o", out], check=True, capture_output=True, text=True)
    return out


def module(file: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def by_ctypes(folder: Path, torch: Any) -> Way:
    entry = ctypes.CDLL(str(compiled(folder, "plain", ""))).entry
    entry.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_longlong, ctypes.c_void_p]

    def call_numpy(x, y, z, n, stream):
        for a in (x, y, z):
            if a.dtype != np.float32 or not a.flags.c_contiguous or a.size != n:
                raise ValueError("a float32 array is needed")
        return entry(x.ctypes.data, y.ctypes.data, z.ctypes.data, n, stream)

    def call_torch(x, y, z, n, stream):
        for a in (x, y, z):
            if a.dtype != torch.float32 or not a.is_contiguous() or a.numel() != n:
                raise ValueError("a float32 tensor is needed")
        return entry(x.data_ptr(), y.data_ptr(), z.data_ptr(), n, stream)

    return call_numpy if torch is None else call_torch


def by_cython(folder: Path, torch: Any) -> Way:
    if torch is not None:
        raise ImportError("PyTorch's tensors have no buffer; they are called with addresses, as by ctypes")
    if importlib.util.find_spec("Cython") is None:
        raise ImportError("No module named 'Cython'")
    (folder / "by_cython.pyx").write_text(CYTHON)
    subprocess.run([sys.executable, "-m", "cython", "-3", "by_cython.pyx"], cwd=folder, check=True, capture_output=True)
    source = (folder / "by_cython.c").read_text()
    return module(compiled(folder, "by_cython", source, "-fpermissive", "-w"), "by_cython").call


def by_extension(folder: Path, torch: Any) -> Way:
    if torch is not None:
        from torch.utils import cpp_extension

        return cpp_extension.load_inline("by_torch", ENTRY + TORCH, build_directory=str(folder)).call
    import pybind11

    source = PYBIND.replace("NAME", "by_pybind")
    return module(compiled(folder, "by_pybind", source, f"-I{pybind11.get_include()}"), "by_pybind").call


def by_dlpack(folder: Path, torch: Any) -> Way:
    import tvm_ffi
    from tvm_ffi import libinfo

    options = [f"-I{path}" for path in (libinfo.find_include_path(), libinfo.find_dlpack_include_path())]
    return tvm_ffi.load_module(str(compiled(folder, "by_dlpack", TVM, *options))).call


def by_launch(folder: Path, torch: Any) -> Way:
    cache, record, c = _cache(folder, torch)
    x = _arrays(torch)
    if not cache.insert((*x, SIZE), record, (), object(), None, None, _streams()):
        raise ImportError("the extension of cutile cannot read these arrays")

    def call(x, y, z, n, stream):
        return cache.launch(stream, (8, 1, 1), (x, y, z, n))

    return call


def by_prepared(folder: Path, torch: Any) -> Way:
    _, record, c = _cache(folder, torch)
    prepared = c.Prepared(record, _streams(), None, None, _settings("BACKEND", "DEBUG", "SANITIZE"), (8, 1, 1))
    prepared.set((), (64, 128, 192, SIZE))
    return lambda x, y, z, n, stream: prepared.launch(stream)


def _settings(*names: str) -> Any:
    from cutile import settings

    return settings.watch(*names)


def _streams() -> dict[type, Any]:
    from cutile.gpu.streams import by_type

    return by_type


def _cache(folder: Path, torch: Any) -> tuple[Any, bytes, Any]:
    """An empty LaunchCache, a launch whose driver does nothing, and the module that has both."""
    from cutile.runtime import launch_cache

    c = launch_cache.extension()
    if c is None:
        raise ImportError("cutile was built without its extension")
    lib = ctypes.CDLL(str(compiled(folder, "driver", 'extern "C" {' + DRIVER + "}")))
    LOADED.append(lib)
    launch, current = (ctypes.cast(f, ctypes.c_void_p).value for f in (lib.launch, lib.current))
    record = c.record(launch, current, 1, 1, bytes(32), bytes([c.BITS64] * 3 + [c.BITS32]))
    cache = c.LaunchCache(constants=bytes(4), watch=_settings("BACKEND", "DEBUG", "SANITIZE"),
                          host_watch=_settings("BACKEND"), grid_limit=1 << 24, capacity=10)
    cache.kinds.update({int: c.INT, np.ndarray: c.NUMPY})
    if torch is not None:
        cache.kinds[torch.Tensor] = c.lender(torch.Tensor.__dlpack_c_exchange_api__)
    return cache, record, c


LOADED: list[Any] = []  # libraries whose functions are called by address
# A way; whether it is built for the user's kernel; whether another Python needs another build
WAYS = (("DLPack (tvm-ffi)", by_dlpack, True, False), ("ctypes", by_ctypes, True, False),
        ("Cython", by_cython, True, True), ("C++ extension", by_extension, True, True),
        ("ct.launch", by_launch, False, False), ("ct.prepare", by_prepared, False, False))


# ------------------------------------------------------------------ measuring


def _arrays(torch: Any) -> tuple:
    return tuple(np.ones(SIZE, np.float32) if torch is None else torch.ones(SIZE) for _ in range(3))


def microseconds(call: Way, arrays: tuple) -> float:
    """The least of the rounds: other processes only add."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call(*arrays, SIZE, 0)
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return min(times)


def rows(torch: Any) -> Iterator[dict[str, Any]]:
    arrays = _arrays(torch)
    for name, make, built, per_python in WAYS:
        row: dict[str, Any] = {"way": name, "arrays": "NumPy" if torch is None else "PyTorch"}
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            try:
                call = make(Path(folder), torch)
                row["build_s"] = time.perf_counter() - start if built else 0.0
                row["us"], row["per_python"] = microseconds(call, arrays), per_python
            except (ImportError, subprocess.CalledProcessError, RuntimeError, AttributeError) as e:
                error = getattr(e, "stderr", None) or str(e)
                row["missing"] = f"{type(e).__name__}: {str(error).strip().splitlines()[-1] if error else ''}"
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if shutil.which("g++") is None:
        parser.error("needs g++")
    kinds: list[Any] = [None]
    if importlib.util.find_spec("torch") is not None:
        import torch

        kinds.append(torch)
    print(f"Python {platform.python_version()}, microseconds a call, seconds to build")
    found = []
    for kind in kinds:
        for row in rows(kind):
            found.append(row)
            shown = row.get("missing") or (f"{row['us']:8.2f} {row['build_s']:8.1f}  "
                                           f"{'each Python its own' if row['per_python'] else 'one for all'}")
            print(f"{row['arrays']:8} {row['way']:18} {shown}", flush=True)
    if given.json:
        given.json.write_text(json.dumps({"python": platform.python_version(), "rows": found}, indent=1))


if __name__ == "__main__":
    main()
