"""Gradients of operators: what autograd does at a call [PT-5, PT-7].

An operator's kernel for autograd is ours and not that of torch.library, so that transforms of torch.func work, each
output may or may not be differentiable, and a gradient that nobody gives is an error that names the operator.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch._library.autograd import make_autograd_impl

from cutile.errors import refusal
from cutile.functions.tile_function import TileFunction
from cutile.runtime import autograd, gradients
from cutile.torch import results as results_of
from cutile.torch.dispatch import kernel_is_next
from cutile.torch.no_gradient import apply, refuse_tangents, stored


class Formula:
    """The gradient of an operator.

    call                what computes it from values by name
    asked               the names of these values
    non_differentiable  inputs and outputs that have no gradient
    """

    def __init__(self, name: str, function: TileFunction, backward: Callable, non_differentiable: Sequence[str]):
        self.name, self.function = name, function
        self.inputs, self.outputs = list(function.parameters), [o.name for o in function.outputs]
        self.non_differentiable = set(non_differentiable)
        self.call = backward
        self.backward = backward.function if isinstance(backward, torch.library.CustomOpDef) else backward
        self.kernel = self.backward if isinstance(self.backward, TileFunction) else None
        self.asked = gradients.asked(function, self.backward)
        self.computed = [n for n in self.asked if n in function.computed]

    def keep(self, ctx: Any, args: Sequence[Any], result: Any) -> None:
        """Keep what `backward` will need of a call."""
        results = result if isinstance(result, tuple) else (result,)
        outputs = dict(zip(self.outputs, results))
        given = dict(zip(self.inputs, args))
        if any(given.get(n) is None for n in self.computed):  # what the call computes, backward gets, too
            names = results_of.named(self.function, given)
            given |= {n: names[n] for n in self.computed if given.get(n) is None}
        values = {**given, **outputs}
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for n, t in outputs.items() if n in self.non_differentiable))
        ctx.names = [n for n in self.asked if isinstance(values.get(n), torch.Tensor)]
        ctx.save_for_backward(*(values[n] for n in ctx.names))
        ctx.numbers = {n: values[n] for n in self.asked if n in values and n not in ctx.names}
        ctx.made = [(t.shape, t.dtype, t.device) for t in results]
        arrays = _items(zip(self.inputs, args))
        ctx.arrays = {n: _Kind(v.shape, v.dtype) for n, v in arrays.items() if isinstance(v, torch.Tensor)}

    def gradients(self, ctx: Any, grads: Sequence[torch.Tensor | None], needed: Sequence[bool]) -> list[Any]:
        """The gradient of each input."""
        values = {**ctx.numbers, **dict(zip(ctx.names, ctx.saved_tensors))}
        for o, grad, (shape, dtype, device) in zip(self.outputs, grads, ctx.made):
            if f"grad_{o}" in self.asked:
                values[f"grad_{o}"] = torch.zeros(shape, dtype=dtype, device=device) if grad is None else grad
            elif grad is not None:
                raise gradients.lost(self.function, self.backward, o, o in self.asked, False, "cutile.torch.op")
        wanted = [n for n, need in zip(self.inputs, needed) if need and n not in self.non_differentiable]
        found = self.call(**{n: values[n] for n in self.asked})
        found = gradients.by_input(self.function, self.backward, found, wanted,
                                   "; or say by non_differentiable= of cutile.torch.op that it has none")
        for n, grad in found.items():
            if grad is not None and not isinstance(grad, torch.Tensor | list | tuple):
                raise refusal(TypeError(f"the backward function of {self.name} returned a gradient of `{n}` that is no "
                                        f"tensor, but of type {type(grad).__name__}; torch.as_tensor(...) makes one"))
        gradients.check(self.function, self.backward, _items(found.items()), ctx.arrays)
        return [found.get(n) for n in self.inputs]


class _Kind(NamedTuple):
    shape: Sequence[int]
    dtype: torch.dtype


def _items(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Values by name, where an item of a list has a name such as x[0]."""
    found: dict[str, Any] = {}
    for n, v in values:
        found |= {f"{n}[{i}]": item for i, item in enumerate(v)} if isinstance(v, list | tuple) else {n: v}
    return found


# ------------------------------------------------------------------ the kernel for autograd


def register(operator: torch.library.CustomOpDef, formula: Formula | None, why: str, written: Sequence[int]) -> None:
    """Make autograd see an operator.

    formula  its gradient;  why: where there is none, what `backward` says
    written  the positions of arguments that it writes to
    """
    overload, name = operator._opoverload, operator._qualname
    arguments = overload._schema.arguments
    defaults = [a.default_value if a.has_default_value() else None for a in arguments]
    lists = any(str(a.type) == "List[Tensor]" for a in arguments)
    differentiable = None if formula is None else _differentiable(name, overload, formula)
    of_pytorch = make_autograd_impl(overload, operator)

    def kernel(keyset: Any, *args: Any) -> Any:
        if operator._backward_fn is not None:  # given by register_autograd of the operator
            return of_pytorch(keyset, *args)
        args = (*args, *defaults[len(args):])
        flat, counts = _flat(args) if lists else (args, None)
        refuse_tangents(name, flat)
        followed = torch.is_grad_enabled() and torch._C._any_requires_grad(*flat)
        if not followed and operator.direct is not None and kernel_is_next(keyset):
            return operator.direct(*args)
        below = keyset & torch._C._after_autograd_keyset
        if followed and differentiable is not None:
            return apply(differentiable, below, counts, *flat)
        memory = [(arguments[i].name, t) for i in written for t in _flat([args[i]])[0]] if followed else []
        for n, t in memory:
            if t.requires_grad:
                autograd.refuse_leaf(n, t)
        with torch._C._AutoDispatchBelowAutograd():
            result = overload.redispatch(below, *args)
        if followed:
            _without_gradient(why, [t for _, t in memory], result, flat)
        return result

    with warnings.catch_warnings():  # about the kernel of torch.library, whose place this takes
        warnings.simplefilter("ignore", UserWarning)
        operator._lib.impl(operator._name, kernel, "Autograd", with_keyset=True, allow_override=True)


def _differentiable(name: str, overload: Any, formula: Formula) -> type[torch.autograd.Function]:
    """The operator as a function of autograd, under a name that grad_fn shows."""

    def forward(ctx: Any, below: Any, counts: Any, *flat: Any) -> Any:
        ctx.counts = counts
        args = _by_parameter(flat, counts)
        with torch._C._AutoDispatchBelowAutograd():
            result = overload.redispatch(below, *args)
        formula.keep(ctx, args, result)
        return result

    def backward(ctx: Any, *grads: Any) -> tuple:
        needed = _by_parameter(ctx.needs_input_grad[2:], ctx.counts)
        found = formula.gradients(ctx, grads, [any(n) if isinstance(n, list) else n for n in needed])
        if ctx.counts is not None:
            found = [[None] * count if grads is None and count is not None else grads
                     for grads, count in zip(found, ctx.counts)]
            found, _ = _flat(found)
        return None, None, *found

    return type(name.replace("::", "_"), (torch.autograd.Function,),
                {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def _flat(args: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """Arguments with the items of lists in the place of lists, and how many items each list has."""
    flat: list[Any] = []
    for a in args:
        flat += a if isinstance(a, list | tuple) else [a]
    return flat, [len(a) if isinstance(a, list | tuple) else None for a in args]


def _by_parameter(flat: Sequence[Any], counts: Sequence[int | None] | None) -> Sequence[Any]:
    """The reverse of `_flat`."""
    if counts is None:
        return flat
    items = iter(flat)
    return [next(items) if count is None else [next(items) for _ in range(count)] for count in counts]


def _without_gradient(why: str, written: Sequence[torch.Tensor], result: Any, given: Sequence[Any]) -> None:
    """Let results, and what was written to, follow from what was given, with an error as their gradient."""
    read = [t for t in given if isinstance(t, torch.Tensor) and t.requires_grad]
    results = result if isinstance(result, tuple | list) else () if result is None else (result,)
    for t in (*written, *results):
        if t.is_floating_point() or t.is_complex():
            stored(why, t, read)
