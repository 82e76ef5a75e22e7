"""What the cases of benchmarks/tensorcore.py are compared with: the same work by the libraries of PyTorch, on a GPU."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from _tensorcore_cases import Case
from torch.nn.attention import SDPBackend, sdpa_kernel

# The largest error allowed, relative to the largest result: a few units in the last place of the output's dtype.
ALLOWED = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
ATTENTION = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention": SDPBackend.FLASH_ATTENTION}

Call = Callable[[], Any]


class Arrays:
    """Makes the arrays of a case: random numbers of a normal distribution."""

    def __init__(self):
        torch.manual_seed(0)
        self.processors = torch.cuda.get_device_properties(0).multi_processor_count

    def __call__(self, dtype: str, *shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda").to(getattr(torch, dtype))

    def ints(self, values: list) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device="cuda")


def libraries(case: Case) -> dict[str, Call]:
    """The libraries' calls for a case, by name; those that refuse the case are missing. Each returns the outputs."""
    works = {}
    for name, call in KINDS[case.kind](case).items():
        with contextlib.suppress(RuntimeError):
            call()
            works[name] = call
    torch.cuda.synchronize()
    return works


def wrong(case: Case, call: Call, want: dict[str, torch.Tensor]) -> str | None:
    """Run a call that writes the outputs of a case. Gives None, or how far they are off."""
    for name in case.outputs:
        case.arrays[name].fill_(math.nan)
    call()
    torch.cuda.synchronize()
    for name in case.outputs:
        got = case.arrays[name].float()
        error = ((got - want[name]).abs().max() / want[name].abs().max()).item()
        if not error <= ALLOWED[case.arrays[name].dtype]:
            return f"{name} differs by {error:.1e} of the largest element"
    return None


def reference(case: Case) -> dict[str, torch.Tensor]:
    """The outputs in float32, by the first of the libraries, which accumulate in float32."""
    found = next(iter(libraries(case).values()))()
    if not isinstance(found, tuple):
        found = found,
    return {name: x.reshape(case.arrays[name].shape).float() for name, x in zip(case.outputs, found, strict=True)}


# ------------------------------------------------------------------ by kind


def _matmul(case: Case) -> dict[str, Call]:
    a, b = case.arrays["a"], case.arrays["b"]
    out = torch.empty_like(case.arrays["c"])
    return {"cuBLAS": lambda: torch.matmul(a, b, out=out)}


def _matmul_by_rows(case: Case) -> dict[str, Call]:
    a, b = case.arrays["a"], case.arrays["b"]
    one, dtype = torch.ones((), device="cuda"), case.arrays["c"].dtype
    return {"cuBLAS": lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=dtype, use_fast_accum=True)}


def _grouped(case: Case) -> dict[str, Call]:
    a, b, ends = (case.arrays[name] for name in ("a", "b", "ends"))
    return {"_grouped_mm": lambda: torch._grouped_mm(a, b, offs=ends)}


def _attention(case: Case) -> dict[str, Call]:
    q, k, v = (case.arrays[name] for name in "qkv")
    return _scaled_dot_product(q, k, v, case.numbers["causal"], case.numbers["scale"])


def _decode(case: Case) -> dict[str, Call]:
    """With the queries of a head of keys as if they were of one sequence, which is how they are read once only."""
    q, table = case.arrays["q"], case.arrays["table"]
    n, heads, _, d = q.shape
    k, v = (case.arrays[name][table.long()].transpose(1, 2).reshape(n, heads, -1, d) for name in "kv")
    return _scaled_dot_product(q, k, v, False, case.numbers["scale"])


def _scaled_dot_product(q, k, v, causal: bool, scale: float) -> dict[str, Call]:
    def by(backend) -> Call:
        def call():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale,
                                                      enable_gqa=q.shape[1] != k.shape[1])
        return call

    return {name: by(backend) for name, backend in ATTENTION.items()}


def _backward(case: Case) -> dict[str, Call]:
    """The forward pass, whose results the backward passes begin with, runs here, once; lse is put into its array."""
    q, k, v, out, dout = (case.arrays[name] for name in ("q", "k", "v", "out", "dout"))
    causal, scale = case.numbers["causal"], case.numbers["scale"]
    forward = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, scale=scale)
    out.copy_(forward[0])
    case.arrays["lse"].copy_(forward[1] * math.log2(math.e))  # ours is in units of log 2

    def by(backend) -> Call:
        def call():
            return torch.autograd.grad(result, inputs, dout, retain_graph=True)

        inputs = tuple(x.detach().clone().requires_grad_() for x in (q, k, v))
        with sdpa_kernel(backend):
            result = F.scaled_dot_product_attention(*inputs, is_causal=causal, scale=scale)
        return call

    return {name: by(backend) for name, backend in ATTENTION.items()}


KINDS: dict[str, Callable[[Case], dict[str, Call]]] = {
    "matmul": _matmul, "matmul_by_rows": _matmul_by_rows, "grouped": _grouped, "attention": _attention,
    "decode": _decode, "backward": _backward,
}
