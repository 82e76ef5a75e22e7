"""Compile the cases of benchmarks/gpu.py with one implementation: `python _gpu_export.py FOLDER MODULE TARGET FORMAT`.

MODULE is cutile or cuda.tile. The source is that of the repository with the import replaced, so that both compile the
same. Kernels get the signature of a launch with contiguous, aligned arrays.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path

from _gpu_cases import BYTES, CASES, Case

ROOT = Path(__file__).resolve().parent.parent
SUFFIX = {"cubin": ".cubin", "tileir_bytecode": ".tileirbc"}


def load(source: str, module: str, folder: Path) -> types.ModuleType:
    """A file of kernels, with `module` for cutile."""
    for helper in ("_report", "ml_dtypes"):  # names that examples import besides their kernels
        try:
            importlib.import_module(helper)
        except ImportError:
            sys.modules[helper] = types.SimpleNamespace(check=None, show=None, timed=None)
    name = Path(source).stem
    copy = folder / f"{name}_{module.replace('.', '_')}.py"
    text = (ROOT / source).read_text().replace("import cutile as ct", f"import {module} as ct")
    if not copy.exists() or copy.read_text() != text:  # other processes may be reading it
        copy.write_text(text)
    spec = importlib.util.spec_from_file_location(f"{name}_of_{module.replace('.', '_')}", copy)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def signature(ct, case: Case):
    c = ct.compilation
    dtypes = {"f32": ct.float32, "f16": ct.float16, "bf16": ct.bfloat16}
    arrays = []
    for d, shape in case.arrays:
        outer = len(shape) - 1
        arrays.append(c.ArrayConstraint(
            dtypes[d], len(shape), index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
            may_alias_internally=False, stride_constant=(None,) * outer + (1,), base_addr_divisible_by=16,
            stride_divisible_by=(16 // BYTES[d],) * outer + (1,),
            shape_divisible_by=tuple(16 if n % 16 == 0 else 1 for n in shape)))
    return c.KernelSignature([*arrays, *case.constants], c.CallingConvention.cutile_python_v2(), symbol=case.file)


def main(folder: str, module: str, target: str, form: str) -> None:
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    ct = importlib.import_module(module)
    importlib.import_module(f"{module}.compilation")
    sys.path.insert(0, str(ROOT / "examples"))
    sources: dict[str, types.ModuleType] = {}
    for case in CASES:
        if case.source not in sources:
            sources[case.source] = load(case.source, module, out)
        kernel = getattr(sources[case.source], case.kernel)
        if case.hints:
            kernel = kernel.replace_hints(**case.hints)
        path = out / (case.file + SUFFIX[form])
        ct.compilation.export_kernel(kernel, [signature(ct, case)], path, gpu_code=target, output_format=form)


if __name__ == "__main__":
    main(*sys.argv[1:])
