"""Gradients that nobody knows: where one is needed that no kernel gives, `backward` is an error and not wrong.

A tensor that a kernel stored to, or the result of an operator without `backward`, is part of autograd's graph like the
result of any operation, but its gradient is an error [PT-7]. In a graph of torch.compile it is the operator
`cutile::no_gradient`, so that a program that asks for no gradient compiles and runs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad

from cutile.errors import refusal

_library = torch.library.Library("cutile", "FRAGMENT")


@functools.cache
def register() -> None:
    """Define the operator. Once a process."""
    _library.define("no_gradient(Tensor grad, SymInt[] shape, str why) -> Tensor")
    _library.impl("no_gradient", _raise, "CompositeExplicitAutograd")
    torch.library.register_fake("cutile::no_gradient", lambda grad, shape, why: grad.new_empty(shape), lib=_library)


def _raise(grad: torch.Tensor, shape: Sequence[int], why: str) -> torch.Tensor:
    raise refusal(RuntimeError(why))


def apply(function: type[torch.autograd.Function], *args: Any) -> Any:
    """What `function.apply` does, also where the dispatcher calls it for one level of torch.func's transforms."""
    if not torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    with enable_single_level_autograd_function():
        return super(torch.autograd.Function, function).apply(*args)


class NoGradient(torch.autograd.Function):
    """Makes a tensor, in place, the result of itself and of others, whose gradients are errors."""

    @staticmethod
    def forward(ctx: Any, why: str, t: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        ctx.why, ctx.shapes = why, [x.shape for x in (t, *others)]
        ctx.mark_dirty(t)
        return t

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return None, *(torch.ops.cutile.no_gradient(grad, shape, ctx.why) if need else None
                       for shape, need in zip(ctx.shapes, ctx.needs_input_grad[1:]))


def stored(why: str, t: torch.Tensor, read: Sequence[torch.Tensor] = ()) -> None:
    """Note that a kernel stored to a tensor what follows from others: gradients through it are errors."""
    apply(NoGradient, why, t, *(r for r in read if r is not t))


def refuse_tangents(name: str, arguments: Sequence[Any]) -> None:
    """RuntimeError for tensors that torch.func.jvp or forward mode follows, for which no kernel has a rule."""
    if forward_ad._current_level >= 0 and any(
            isinstance(t, torch.Tensor) and forward_ad.unpack_dual(t).tangent is not None for t in arguments):
        raise refusal(RuntimeError(f"{name} has no derivative in forward mode (torch.func.jvp, jacfwd, hessian); "
                                   f"torch.func.vjp and jacrev use its backward"))
