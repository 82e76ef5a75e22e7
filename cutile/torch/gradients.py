"""Gradients of operators: what autograd does at a call [PT-5, PT-7].

An operator's kernel for autograd is ours and not that of torch.library, so that transforms of torch.func work, each
output may or may not be differentiable, and a gradient that nobody gives is an error that names the operator.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._library.autograd import make_autograd_impl

from cutile.errors import refusal
from cutile.functions.rules import nearest
from cutile.functions.tile_function import TileFunction
from cutile.runtime import autograd
from cutile.torch.no_gradient import apply, refuse_tangents, stored


class Formula:
    """The gradient of an operator.

    call                what computes it from values by name: a dictionary of gradients by input
    asked               the names of these values
    non_differentiable  inputs and outputs that have no gradient
    """

    def __init__(self, name: str, function: TileFunction, backward: Callable, non_differentiable: Sequence[str]):
        self.name, self.inputs = name, list(function.parameters)
        self.outputs = [o.name for o in function.outputs]
        self.call, self.non_differentiable = backward, set(non_differentiable)
        self.kernel = kernel_of(backward)
        self.asked = self._asked(backward, function)

    def _asked(self, backward: Callable, function: TileFunction) -> list[str]:
        known = [*self.inputs, *self.outputs, *(f"grad_{o}" for o in self.outputs)]
        kernel = self.kernel
        asked = list(kernel.parameters if kernel is not None else inspect.signature(backward).parameters)
        if kernel is not None:
            asked = [n for n in asked if n in known or n not in kernel.computed]
            for o in kernel.outputs:
                if o.name.removeprefix("grad_") not in self.inputs or not o.name.startswith("grad_"):
                    raise TypeError(f"output {o.name} of {kernel.__name__} is no gradient; those of "
                                    f"{function.__name__} are named {', '.join(f'grad_{n}' for n in self.inputs)}")
        for n in asked:
            if n not in known:
                raise TypeError(f"{getattr(backward, '__name__', backward)} takes {n}, which is no parameter, output "
                                f"or gradient of {function.__name__}{nearest(n, known)}; there are {', '.join(known)}")
        return asked

    def keep(self, ctx: Any, args: Sequence[Any], result: Any) -> None:
        """Keep what `backward` will need of a call."""
        results = result if isinstance(result, tuple) else (result,)
        outputs = dict(zip(self.outputs, results))
        values = {**dict(zip(self.inputs, args)), **outputs}
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for n, t in outputs.items() if n in self.non_differentiable))
        ctx.names = [n for n in self.asked if isinstance(values.get(n), torch.Tensor)]
        ctx.save_for_backward(*(values[n] for n in ctx.names))
        ctx.numbers = {n: values[n] for n in self.asked if n in values and n not in ctx.names}
        ctx.made = [(t.shape, t.dtype, t.device) for t in results]
        ctx.dtypes = {n: v.dtype for n, v in zip(self.inputs, args) if isinstance(v, torch.Tensor)}

    def gradients(self, ctx: Any, grads: Sequence[torch.Tensor | None], needed: Sequence[bool]) -> list[Any]:
        """The gradient of each input."""
        values = {**ctx.numbers, **dict(zip(ctx.names, ctx.saved_tensors))}
        for o, grad, (shape, dtype, device) in zip(self.outputs, grads, ctx.made):
            if f"grad_{o}" in self.asked:
                values[f"grad_{o}"] = torch.zeros(shape, dtype=dtype, device=device) if grad is None else grad
            elif grad is not None:
                raise refusal(RuntimeError(f"a gradient comes to output `{o}` of {self.name}, but its backward takes "
                                           f"no grad_{o}: take it, or say by non_differentiable=(\"{o}\",) of "
                                           f"cutile.torch.op that this output has no gradient"))
        found = self.call(**{n: values[n] for n in self.asked})
        self._check(found, ctx.dtypes, [n for n, need in zip(self.inputs, needed) if need])
        return [found.get(n) for n in self.inputs]

    def _check(self, found: Any, dtypes: Mapping[str, torch.dtype], needed: Sequence[str]) -> None:
        """Refuse what would be taken for no gradient, or for one of another dtype."""
        if not isinstance(found, Mapping):
            raise refusal(TypeError(f"backward of {self.name} must return a dictionary of gradients by input, such as "
                                    f"{{\"{self.inputs[0]}\": ...}}, got {type(found).__name__}"))
        for n in found:
            if n not in self.inputs:
                raise refusal(TypeError(f"backward of {self.name} returns a gradient of {n!r}, which is no input"
                                        f"{nearest(str(n).removeprefix('grad_'), self.inputs)}; inputs are "
                                        f"{', '.join(self.inputs)}"))
        for n in needed:
            if n not in found and n not in self.non_differentiable:
                how = f"return {{\"{n}\": ...}} too" if self.kernel is None else (
                    f"give {self.kernel.__name__} the output ct.Out(..., name=\"grad_{n}\")")
                raise refusal(RuntimeError(f"backward of {self.name} gives no gradient of `{n}`, which requires grad: "
                                           f"{how}, or say by non_differentiable=(\"{n}\",) of cutile.torch.op that "
                                           f"this input has none"))
        for o in () if self.kernel is None else self.kernel.outputs:
            n = o.name.removeprefix("grad_")
            if o.dtype is None and o.dtype_like is None and dtypes.get(n, found[n].dtype) != found[n].dtype:
                raise refusal(TypeError(f"{o.name} of {self.kernel.__name__} has the dtype of its first array, "
                                        f"{found[n].dtype}, but `{n}` of {self.name} has {dtypes[n]}: give it one by "
                                        f"ct.Out(..., dtype=...), or the kernel the parameter `{n}`, whose dtype it "
                                        f"then has"))


def kernel_of(backward: Any) -> TileFunction | None:
    """The function by ct.jit that computes gradients, itself or in an operator; None for a function of Python."""
    backward = getattr(backward, "function", backward)
    return backward if isinstance(backward, TileFunction) else None


def by_input(operator: Callable, kernel: TileFunction) -> Callable:
    """An operator whose outputs are gradients, with a dictionary as its result."""
    names = [o.name.removeprefix("grad_") for o in kernel.outputs]

    def call(**given: Any) -> dict[str, torch.Tensor]:
        found = operator(**given)
        return dict(zip(names, found if isinstance(found, tuple | list) else (found,)))

    return call


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
        below = keyset & torch._C._after_autograd_keyset
        flat, counts = _flat(args) if lists else (args, None)
        refuse_tangents(name, flat)
        followed = torch.is_grad_enabled() and torch._C._any_requires_grad(*flat)
        if followed and differentiable is not None:
            return apply(differentiable, below, counts, *flat)
        if followed:
            for i in written:
                if args[i].requires_grad:
                    autograd.refuse_leaf(arguments[i].name, args[i])
        with torch._C._AutoDispatchBelowAutograd():
            result = overload.redispatch(below, *args)
        if followed:
            _without_gradient(why, [args[i] for i in written], result, flat)
        return result

    with warnings.catch_warnings():  # about the kernel of torch.library, whose place this takes
        warnings.simplefilter("ignore", UserWarning)
        operator._lib.impl(operator._name, kernel, "Autograd", with_keyset=True)


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
