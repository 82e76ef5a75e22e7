"""export_kernel [EXP-1…9]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any, Literal

from cutile.compilation.signature import KernelSignature
from cutile.errors import TileUnsupportedFeatureError

FORMATS = ("cubin", "tileir_bytecode")
VERSIONS = ("13.1", "13.2", "13.3", "13.4")


def export_kernel(kernel, signatures: Sequence[KernelSignature], output_file: IO | str | bytes | Any, *,
                  gpu_code: str | None = None, output_format: Literal["cubin", "tileir_bytecode"],
                  bytecode_version: str | None = None) -> None:
    """Compile a kernel for signatures and write a cubin or a Tile IR bytecode file.

    The arguments are checked; the compilation itself is not built yet and raises TileUnsupportedFeatureError.
    """
    if output_format not in FORMATS:
        raise ValueError(f"output_format must be one of {', '.join(FORMATS)}, not {output_format!r}")
    if gpu_code is None and output_format == "cubin":
        raise ValueError("a cubin needs a gpu_code, for example 'sm_90'")
    if bytecode_version is not None and bytecode_version not in VERSIONS:
        raise ValueError(f"bytecode_version must be None or one of {', '.join(VERSIONS)}, not {bytecode_version!r}")
    raise TileUnsupportedFeatureError(
        f"export of kernel {kernel.__name__} needs the GPU back end, which this version does not have yet",
        help="run the kernel on CPU arrays: ct.launch(None, grid, kernel, args)")
