"""Tells PyTorch's autograd which tensors the kernel of a launch may store to.

Autograd saves tensors for gradients, and sees by their versions whether one was written to after it was saved.
Operations of PyTorch raise the version of the tensors that they write to, refuse to write to a leaf that requires grad,
and are noted in the history of any other tensor that does. Kernels bypass these operations, so a launch itself does all
this. It has no gradient: backward through a tensor that it wrote is an error.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cutile._support.structs import structure
from cutile.analysis.aliasing import written_params
from cutile.errors import refusal
from cutile.front.program import ArgType, Embedded
from cutile.ir.nodes import Kernel


@structure(frozen=True, slots=True)
class Written:
    """A tensor that a kernel may store to: its path in the arguments, and its name in messages."""

    path: tuple[int, ...]
    name: str


def written_tensors(kernel: Kernel, values: Sequence[Any], arg_types: Iterable[ArgType]) -> tuple[Written, ...]:
    """The tensors of PyTorch among the arguments, which have these types, that the kernel may store to."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None:
        return ()
    stored = written_params(kernel)
    leaves = zip(kernel.params, kernel.param_names, _leaves(values, arg_types, ()), strict=True)
    return tuple(w for p, name, (path, leaf) in leaves if p in stored for w in _tensors(path, name, leaf, tensor))


def _leaves(values: Sequence[Any], arg_types: Iterable[ArgType],
            outer: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Path and value of each flat argument: items of tuples are flat arguments, constants are not."""
    for i, (value, t) in enumerate(zip(values, arg_types, strict=True)):
        if type(t) is tuple:
            yield from _leaves(value, t, (*outer, i))
        elif type(t) is not Embedded:
            yield (*outer, i), value


def _tensors(path: tuple[int, ...], name: str, leaf: Any, tensor: type) -> Iterator[Written]:
    if type(leaf) is list:
        for i, item in enumerate(leaf):
            yield from _tensors((*path, i), name, item, tensor)
    elif issubclass(type(leaf), tensor):
        yield Written(path, name + "".join(f"[{i}]" for i in path[1:]))


def before_writing(written: Iterable[Written], values: Sequence[Any]) -> None:
    """Raise the versions of tensors that a launch is about to write to. Tensors made in inference mode have none.
    Backward through one that requires grad is an error from now on, while grad mode is on.

    RuntimeError naming the parameter for a leaf that requires grad, or a view of one, while grad mode is on; and for a
    tensor with a tangent of forward mode, which the launch would not change.
    """
    torch = sys.modules["torch"]
    grad, tensors = torch.is_grad_enabled(), []
    forward = _forward_mode(torch).get(_LEVEL, -1) >= 0
    for w in written:
        t: Any = values
        for i in w.path:
            t = t[i]
        if forward:
            _refuse_tangent(torch, w.name, t)
        if grad and (type(t) is not torch.Tensor or t.requires_grad):
            with torch._C.DisableTorchFunctionSubclass():  # so that no code of a subclass runs
                if _requires_grad(torch, t):
                    refuse_leaf(w.name, t)
                    _store_of_kernel(torch.autograd.Function).apply(t, no_gradient(w.name))
        tensors.append(t)
    try:
        torch._C._increment_version(tensors)
    except TypeError:  # before PyTorch 2.6 it takes a single tensor, and none made in inference mode
        for t in tensors:
            if not t.is_inference():
                torch._C._increment_version(t)


def for_c(written: Sequence[Written]) -> tuple | None:
    """The tensors in the form that runtime/_launcher.c takes. It runs no launch with tensors in tuples or lists."""
    if not written:
        return None
    torch = sys.modules["torch"]
    return torch._C._increment_version, torch.is_grad_enabled, _forward_mode(torch), *(w.path[0] for w in written)


_LEVEL = "_current_level"  # of forward mode; -1 while none is open
_CLOSED: dict[str, int] = {}


def _forward_mode(torch: Any) -> dict[str, Any]:
    """The variables of PyTorch's forward mode, with the level that is open."""
    module = getattr(torch.autograd, "forward_ad", None)
    return _CLOSED if module is None else vars(module)


def _refuse_tangent(torch: Any, name: str, t: Any) -> None:
    if torch.autograd.forward_ad.unpack_dual(t).tangent is not None:
        raise refusal(RuntimeError(
            f"the kernel stores to parameter `{name}`, but the tensor given for it has a tangent of forward mode, "
            f"which a launch does not change: it would be wrong. Pass torch.autograd.forward_ad.unpack_dual(x).primal, "
            f"or make the launch a torch.autograd.Function with a jvp"))


def _requires_grad(torch: Any, t: Any) -> bool:
    """Whether a tensor requires grad, whatever its class has under that name."""
    plain = getattr(torch.Tensor, "requires_grad", None)
    return plain.__get__(t) if type(t) is not torch.Tensor and hasattr(plain, "__get__") else t.requires_grad


def refuse_leaf(name: str, t: Any) -> None:
    """RuntimeError for a tensor that requires grad and is a leaf, or a view of one."""
    if t.is_leaf or t._is_view() and t._base is not None and t._base.is_leaf:
        raise refusal(RuntimeError(
            f"the kernel stores to parameter `{name}`, but the tensor given for it is a leaf that requires grad"
            f"{'' if t.is_leaf else ', seen through a view'}: its gradient would be wrong. Launch under "
            f"torch.no_grad(), pass x.detach(), or make the launch a torch.autograd.Function"))


def no_gradient(name: str) -> str:
    """Why backward through a tensor that a launch wrote fails."""
    return (f"a kernel stored to parameter `{name}`, whose tensor requires grad, and a launch has no gradient. Store "
            f"to a new tensor, launch under torch.no_grad(), or give the kernel a gradient: cutile.torch.op(..., "
            f"backward=...), or a torch.autograd.Function around the launch")


@functools.cache
def _store_of_kernel(function: type) -> Any:
    """A store as autograd sees it: a subclass of PyTorch's Function, in place, whose gradient is an error."""
    def forward(ctx: Any, t: Any, why: str) -> Any:
        ctx.why = why
        ctx.mark_dirty(t)
        return t

    def backward(ctx: Any, grad: Any) -> Any:
        raise refusal(RuntimeError(ctx.why))

    return type("StoreOfKernel", (function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
