"""Short ways to state constraints of parameters, and to export kernels as bytecode or cubins."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from conformance.harness.api import ct, impl

c = ct.compilation
V1, V2 = c.CallingConvention.cutile_python_v1(), c.CallingConvention.cutile_python_v2()
TARGETS = tuple(f"sm_{n}" for n in (80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121))
VERSIONS = ("13.1", "13.2", "13.3", "13.4")


# ------------------------------------------------------------------ constraints


def array(dtype: Any = None, ndim: int = 1, **more: Any) -> Any:
    """An array about which only `more` is known; float32 without a dtype."""
    nothing = {"index_dtype": ct.int32, "stride_lower_bound_incl": None, "alias_groups": (),
               "may_alias_internally": False}
    return c.ArrayConstraint(ct.float32 if dtype is None else dtype, ndim, **{**nothing, **more})


def forward(dtype: Any = None, ndim: int = 1, **more: Any) -> Any:
    """An array without negative strides, which are an extension: every implementation can compile for it."""
    return array(dtype, ndim, **{"stride_lower_bound_incl": 0, **more})


def scalar(dtype: Any) -> Any:
    """A scalar parameter."""
    return c.ScalarConstraint(dtype)


def arrays(element: Any, groups: Sequence[str] = (), alias: bool = False) -> Any:
    """A list of arrays."""
    return c.ListConstraint(element, alias_groups=groups, elements_may_alias=alias)


def signature(*parameters: Any, convention: Any = V2, symbol: str | None = None) -> Any:
    """A signature with these parameters."""
    return c.KernelSignature(list(parameters), convention, symbol)


# ------------------------------------------------------------------ export


def bytecode(kernel: Any, *signatures: Any, target: str | None = "sm_90", version: str | None = "13.4") -> bytes:
    """Tile IR bytecode, which needs no assembler."""
    out = io.BytesIO()
    c.export_kernel(kernel, signatures, out, gpu_code=target, output_format="tileir_bytecode",
                    bytecode_version=version)
    impl.exported(out.getvalue())
    return out.getvalue()


def cubin(kernel: Any, *signatures: Any, target: str = "sm_90", version: str | None = None) -> bytes:
    """A cubin; it needs an assembler."""
    out = io.BytesIO()
    c.export_kernel(kernel, signatures, out, gpu_code=target, output_format="cubin", bytecode_version=version)
    return out.getvalue()
