"""Export a kernel as a cubin, with a C header that says how to call it. Needs no GPU.

    python examples/aot/export.py [FOLDER] [sm_90]
"""

import sys
from pathlib import Path

import cutile as ct
from cutile.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint, export_kernel
from cutile.compilation.header import c_header

COLS = 1024  # no row is longer


@ct.kernel
def softmax(x, y, sharpness, COLS: ct.Constant[int]):
    """A block makes one row of y: softmax of the row of x times sharpness. Elements beyond the row read as -inf."""
    i = ct.bid(0)
    t = ct.load(x, index=(i, 0), shape=(1, COLS), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp((t - ct.max(t, axis=1, keepdims=True)) * sharpness)
    ct.store(y, index=(i, 0), tile=e / ct.sum(e, axis=1, keepdims=True))


def signature() -> KernelSignature:
    """Rows of float32 next to each other, each beginning at a multiple of 16 bytes."""
    rows = ArrayConstraint(ct.float32, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
                           may_alias_internally=False, stride_constant=(None, 1), stride_divisible_by=(4, 1),
                           base_addr_divisible_by=16)
    return KernelSignature([rows, rows, ScalarConstraint(ct.float32), COLS], CallingConvention.cutile_python_v1(),
                           symbol="softmax")


def main(folder: str = ".", target: str = "sm_90") -> None:
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    export_kernel(softmax, [signature()], to / "softmax.cubin", gpu_code=target, output_format="cubin")
    (to / "softmax.h").write_text(c_header(softmax, [signature()]))
    print(f"{to / 'softmax.cubin'} for {target}, {to / 'softmax.h'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
