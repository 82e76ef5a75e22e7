"""Arrays of a case on the GPU, the expected results, and the same work by PyTorch's libraries."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from _gpu_cases import Case

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
# The largest error allowed, relative to the largest result: a few units in the last place of the output's dtype, more
# for sums of products.
ALLOWED = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
EPS = 1e-5


def _norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, EPS)


# name: PyTorch's computation from the inputs, with `out=` where its library can write in place
LIBRARY = {
    "copy": lambda x, out: out.copy_(x),
    "add": lambda x, y, out: torch.add(x, y, out=out),
    "transpose": lambda x, out: out.copy_(x.T),
    "sum_rows": lambda x, out: torch.sum(x, 1, out=out),
    "sum_columns": lambda x, out: torch.sum(x, 0, out=out),
    "softmax": lambda x, out: torch.softmax(x, -1),
    "layer_norm": lambda x, w, b, out: _norm(x, w, b),
    "matmul": lambda x, y, out: torch.mm(x, y, out=out),
    "attention": lambda q, k, v, out: F.scaled_dot_product_attention(q, k, v),
    "attention_causal": lambda q, k, v, out: F.scaled_dot_product_attention(q, k, v, is_causal=True),
}


class Problem:
    """The arrays of a case: random inputs, outputs full of NaN."""

    def __init__(self, case: Case):
        torch.manual_seed(0)
        self.case = case
        self.arrays = [torch.randn(s, device="cuda").to(DTYPES[d]) for d, s in case.arrays[:case.outputs]]
        self.arrays += [torch.empty(s, device="cuda", dtype=DTYPES[d]) for d, s in case.arrays[case.outputs:]]
        self.stream = torch.cuda.current_stream().cuda_stream
        self._spare = torch.empty_like(self.output)
        self._want = self._expected()

    @property
    def output(self) -> torch.Tensor:
        return self.arrays[self.case.outputs]

    def arguments(self) -> list[tuple[str, int]]:
        """The kernel's arguments: pointer, sizes, strides of each array."""
        out: list[tuple[str, int]] = []
        for a in self.arrays:
            out += [("pointer", a.data_ptr()), *(("int", n) for n in (*a.shape, *a.stride()))]
        return out

    def library(self) -> None:
        LIBRARY[self.case.check](*self.arrays[:self.case.outputs], self._spare)

    def _expected(self) -> torch.Tensor:
        """The result in float32, from rounded inputs; matrix products by the library, which accumulates in float32."""
        inputs = self.arrays[:self.case.outputs]
        if self.case.check in ("softmax", "layer_norm"):
            inputs = [x.float() for x in inputs]
        return LIBRARY[self.case.check](*inputs, torch.empty_like(self.output))

    def wrong(self, call) -> str | None:
        """Launch once. Gives None, or how far the result is off."""
        self.output.fill_(float("nan"))
        call()
        torch.cuda.synchronize()
        want = self._want.flatten()
        got = self.output.flatten()
        step = 1 << 26  # in parts: a float32 copy of everything may not fit beside the arrays
        size = max(want[i:i + step].abs().max().item() for i in range(0, len(want), step))
        errors = [(got[i:i + step].float() - want[i:i + step].float()).abs().max().item()
                  for i in range(0, len(want), step)]
        error = max(errors) / size if all(e == e for e in errors) else float("nan")
        return None if error <= ALLOWED[self.output.dtype] else f"largest error {error:.1e} of the largest result"
