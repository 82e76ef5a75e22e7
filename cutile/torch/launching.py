"""`ct.launch` in graphs: the operator `cutile::launch`, and what Dynamo traces in the place of a launch [PT-2…4].

Dynamo traces `_in_graph` instead of `ct.launch`. That sorts the arguments by kind and puts a call of the operator into
the graph. What the graph must know of the kernel it asks a method of the kernel, which Dynamo runs once and takes for a
constant: the key under which the operator finds the kernel and the order of arguments, and which tensors are written.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

import cutile.runtime.launch as launch_module
from cutile.analysis.aliasing import written_params
from cutile.dtypes import INFO, from_foreign
from cutile.errors import TileError
from cutile.front.program import ArgType, Embedded
from cutile.runtime import autograd
from cutile.runtime.kernel import Kernel
from cutile.torch.dispatch import kernel_is_next
from cutile.torch.exporting import warn_of_main
from cutile.torch.no_gradient import stored

CURRENT = -1  # in the place of a stream's handle: the current stream when the operator runs
SCHEMA = ("launch(Tensor[] read, Tensor(a!)[] written, SymInt[] ints, float[] floats, SymInt[] grid, int stream, "
          "str key) -> ()")
_HERE = os.urandom(8).hex()  # in keys of kernels that other processes cannot find by name

_library = torch.library.Library("cutile", "FRAGMENT")
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # without the object that torch.cuda makes of it


@functools.cache
def register() -> None:
    """Define the operator and make Dynamo trace launches. Once a process."""
    _library.define(SCHEMA)
    _library.impl("launch", _launch, "CompositeExplicitAutograd")
    _library.impl("launch", _with_autograd, "Autograd", with_keyset=True)
    torch.library.register_fake("cutile::launch", lambda *_: None, lib=_library)
    torch.library.register_vmap("cutile::launch", _refuse_vmap, lib=_library)
    for method in (_annotated, _entered, _default_stream):  # Dynamo calls them by their own names
        setattr(Kernel, method.__name__, torch._dynamo.assume_constant_result(method))
    torch.compiler.substitute_in_graph(launch_module.launch, skip_signature_check=True)(_in_graph)
    launch_module.into_graph = _into_graph


_known: dict[str, _Launched] = {}  # by key


# ------------------------------------------------------------------ traced


def _in_graph(stream, grid, kernel, kernel_args=None, *, programmatic_dependent_launch=False):
    """What is traced in the place of `ct.launch`. It is Python that Dynamo can follow: loops over tuples and lists."""
    if not isinstance(kernel, Kernel):
        raise TypeError(launch_module.no_kernel(kernel, "third argument of launch()"))
    if type(kernel_args) is not tuple or type(grid) is not tuple:
        raise TypeError("launch() takes a stream, a tuple of at most three ints as grid, a kernel, and a tuple of "
                        "arguments")
    if stream is None or type(stream) is int and stream == 0:
        handle = kernel._default_stream()
        if handle == 0:
            torch._dynamo.graph_break("ct.launch() on the default stream, while another one is the current one; pass "
                                      "torch.cuda.current_stream()")
    elif isinstance(stream, int):
        handle = stream
    elif stream == torch.cuda.current_stream():
        handle = CURRENT
    else:
        torch._dynamo.graph_break("ct.launch() in compiled code takes the current stream, an int handle or None")
        handle = CURRENT
    tensors, ints, floats, kinds = [], [], [], []
    specs = kernel._annotated(kernel.identity)
    if len(kernel_args) != len(specs):
        raise TypeError(f"kernel {kernel.__name__} takes {len(specs)} arguments, got {len(kernel_args)}")
    for value, (constant, sized) in zip(kernel_args, specs):
        _sort(value, constant, sized, tensors, ints, floats, kinds)
    key, written = kernel._entered(kernel.identity, tuple(kinds), bool(programmatic_dependent_launch))
    torch.ops.cutile.launch([t for t, w in zip(tensors, written) if not w], [t for t, w in zip(tensors, written) if w],
                            ints, floats, list(grid), handle, key)


def _sort(value, constant, sized, tensors, ints, floats, kinds):
    """Append an argument to the list of its kind, and to `kinds` what its place in the arguments is."""
    if constant:
        kinds.append(("constant", _fixed(value)))
    elif isinstance(value, torch.Tensor):
        kinds.append(("tensor", value.dtype, _fixed(tuple(value.shape)) if sized else value.ndim))
        tensors.append(value)
    elif isinstance(value, bool):
        kinds.append(("bool",))
        ints.append(int(value))
    elif isinstance(value, (int, torch.SymInt)):
        kinds.append(("int",))
        ints.append(value)
    elif isinstance(value, float):
        kinds.append(("float",))
        floats.append(value)
    elif isinstance(value, (tuple, list)):
        inner = []
        for item in value:
            _sort(item, constant, sized, tensors, ints, floats, inner)
        kinds.append(("list" if isinstance(value, list) else "tuple", tuple(inner)))
    else:
        raise TypeError(f"ct.launch() in compiled code takes tensors, numbers, constants, tuples and lists, got "
                        f"{type(value)}")


def _fixed(value):
    """A constant with numbers in the place of symbols: for another number the graph is made anew."""
    if isinstance(value, tuple):
        return tuple([_fixed(v) for v in value])
    if isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool):
        return operator.index(value)
    return value.__float__() if isinstance(value, float) else value


def _into_graph(stream: Any, grid: Any, kernel: Kernel, arguments: Any, dependent: Any) -> bool:
    """Call the operator for a launch on tensors of a tracer that runs Python itself, as torch.export does."""
    if type(arguments) is not tuple or not _traced(arguments):
        return False
    try:
        _in_graph(stream, grid, kernel, arguments, programmatic_dependent_launch=dependent)
    except TypeError:  # what no graph takes is no argument of a launch either, which says why
        return False
    return True


def _traced(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_traced, value))
    return isinstance(value, FakeTensor | FunctionalTensor)


# ------------------------------------------------------------------ while tracing, in plain Python


def _default_stream(kernel: Kernel) -> int:
    """What a graph has for the default stream: the current stream, if that is the default one now.

    Then what is around the launch runs on the current stream too, in each run of the graph: a CUDA graph that is made
    of it is captured on another stream than the default one, and would miss the launch.
    """
    if torch.cuda.is_initialized() and torch.cuda.current_stream() != torch.cuda.default_stream():
        return 0
    return CURRENT


def _annotated(kernel: Kernel, identity: str) -> tuple[tuple[bool, bool], ...]:
    """For each parameter whether it is a constant, and whether sizes or strides of its array are constants."""
    return tuple((s.constant, s.array is not None and bool(s.array.static_shape_dims or s.array.static_stride_dims))
                 for s in kernel.specs)


def _entered(kernel: Kernel, identity: str, kinds: tuple, dependent: bool) -> tuple[str, tuple[bool, ...]]:
    """The key of a launch of a kernel on arguments of these kinds, and which tensors it may store to."""
    written = _written(kernel, kinds)
    flags = iter(written)
    order: list = [dependent, *(_placed(k, flags) for k in kinds)]
    warn_of_main("the kernel", kernel)
    name = _importable_name(kernel)
    try:
        text = json.dumps(order)
        if json.loads(text) != order:
            raise TypeError
    except (TypeError, ValueError):  # a constant that text cannot hold: only this process knows it
        name, text = None, f"{len(_known)}"
    key = f"{name}|{text}" if name else f"{kernel.__module__}:{kernel.__qualname__}|{_HERE}|{identity}|{text}"
    _known.setdefault(key, _Launched(kernel, order))
    return key, written


def _placed(kind: tuple, flags: Any) -> list:
    """A kind as the order of arguments has it: tensors by whether they are written."""
    if kind[0] == "tensor":
        return ["written" if next(flags) else "read"]
    if kind[0] in ("tuple", "list"):
        return [kind[0], [_placed(k, flags) for k in kind[1]]]
    return list(kind)


def _written(kernel: Kernel, kinds: tuple) -> tuple[bool, ...]:
    """For each tensor whether the kernel may store to it. All, if the kernel cannot be typed: its launch says why."""
    count = sum(_count(k) for k in kinds)
    try:
        arguments = kernel.classify(tuple(_sample(k) for k in kinds))
        typed = kernel.program(arguments).kernel
    except (TileError, TypeError, ValueError, OverflowError):
        return (True,) * count
    stored = written_params(typed)
    leaves = [(kind, t) for kind, a in zip(kinds, arguments) for kind, t in _leaves(kind, a.arg_type)]
    return tuple(p in stored for (kind, _), p in zip(leaves, typed.params, strict=True)
                 for _ in range(_count(kind)))


def _count(kind: tuple) -> int:
    """How many tensors an argument has."""
    return 1 if kind[0] == "tensor" else sum(map(_count, kind[1])) if kind[0] in ("tuple", "list") else 0


def _leaves(kind: tuple, arg_type: ArgType) -> list[tuple[tuple, ArgType]]:
    """The flat arguments of an argument: items of tuples, but not of lists; no constants."""
    if type(arg_type) is tuple:
        return [x for k, t in zip(kind[1], arg_type) for x in _leaves(k, t)]
    return [] if type(arg_type) is Embedded else [(kind, arg_type)]


def _sample(kind: tuple) -> Any:
    """An argument of a kind, for typing alone."""
    match kind:
        case ("tensor", dtype, shape):
            shape = shape if isinstance(shape, tuple) else (1,) * shape
            if (known := from_foreign(dtype)) is None:
                raise TypeError(f"an array of dtype {dtype} cannot be passed to a kernel")
            return np.broadcast_to(np.zeros((), INFO[known].storage), shape)
        case ("constant", value):
            return value
        case ("tuple", items):
            return tuple(map(_sample, items))
        case ("list", items):
            return list(map(_sample, items))
    return {"bool": True, "int": 1, "float": 1.0}[kind[0]]


def _importable_name(kernel: Kernel) -> str | None:
    """module:name of a kernel, if other processes find this kernel under it."""
    return next((f"{kernel.__module__}:{kernel.__qualname__}{end}" for end in ("", ".kernel", ".launched")
                 if _found(kernel.__module__, kernel.__qualname__ + end) is kernel), None)


def _found(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


# ------------------------------------------------------------------ the operator


class _Launched:
    """What the key of a launch stands for: a kernel, whether its launch may begin early, the order of arguments."""

    def __init__(self, kernel: Kernel, order: list):
        self.kernel, self.dependent, self.order = kernel, order[0], order[1:]
        place = dict.fromkeys(_LISTS, 0)
        self._taken = [_take(kind, place) for kind in self.order]

    def arguments(self, *lists: Sequence) -> tuple:
        """The arguments of the kernel, from the lists of those of each kind."""
        return tuple([take(lists) for take in self._taken])


_LISTS = ("read", "written", "int", "float")  # the kinds that a launch has lists of


def _take(kind: list, place: dict[str, int]) -> Callable[[Sequence], Any]:
    """What takes an argument of a kind from the lists; `place` counts what was taken of each."""
    if kind[0] == "constant":
        return lambda lists: kind[1]
    if kind[0] in ("tuple", "list"):
        made, items = {"tuple": tuple, "list": list}[kind[0]], [_take(k, place) for k in kind[1]]
        return lambda lists: made([take(lists) for take in items])
    name = "int" if kind[0] == "bool" else kind[0]
    which, i = _LISTS.index(name), place[name]
    place[name] += 1
    return (lambda lists: bool(lists[which][i])) if kind[0] == "bool" else (lambda lists: lists[which][i])


def _launch(read: Sequence[torch.Tensor], written: Sequence[torch.Tensor], ints: Sequence[int],
            floats: Sequence[float], grid: Sequence[int], stream: int, key: str) -> None:
    """Launch the kernel of a key, below autograd. Tensors decide where it runs, as in ct.launch."""
    known = _known.get(key) or _from_another_process(key)
    arguments = known.arguments(read, [t.detach() if t.requires_grad else t for t in written], ints, floats)
    gpu = next((t.get_device() for t in (*written, *read) if t.is_cuda), None)
    if gpu is None:
        stream = 0
    elif stream == CURRENT:
        stream = _current_stream(gpu)
    with nullcontext() if gpu is None or gpu == torch.cuda.current_device() else torch.cuda.device(gpu):
        launch_module.launch(stream or None, tuple(grid), known.kernel, arguments,
                             programmatic_dependent_launch=known.dependent)


def _refuse_vmap(*_: Any) -> None:
    raise TypeError("a launch inside vmap has no rule that says how it is mapped; launch outside of it, or make the "
                    "launch a torch.library.custom_op with a rule by register_vmap")


def _with_autograd(keyset: Any, read: Sequence[torch.Tensor], written: Sequence[torch.Tensor], *rest: Any) -> None:
    """What autograd sees of a launch, in graphs as outside of them [PT-7]."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in written):
        for name, t in zip(_names_of_written(rest[-1]), written):
            if t.requires_grad:
                autograd.refuse_leaf(name, t)
                stored(autograd.no_gradient(name), t)
    if kernel_is_next(keyset):
        return _launch(read, written, *rest)
    with torch._C._AutoDispatchBelowAutograd():
        torch.ops.cutile.launch.default.redispatch(keyset & torch._C._after_autograd_keyset, read, written, *rest)


def _names_of_written(key: str) -> list[str]:
    """The parameter of each written tensor of a launch."""
    known = _known.get(key) or _from_another_process(key)
    return [name for name, kind in zip(known.kernel.names, known.order) for k in _kinds(kind) if k == "written"]


def _kinds(kind: list) -> list[str]:
    return [x for k in kind[1] for x in _kinds(k)] if kind[0] in ("tuple", "list") else [kind[0]]


def _current_stream(gpu: int) -> int:
    return _raw_stream(gpu) if _raw_stream else torch.cuda.current_stream(gpu).cuda_stream


def _from_another_process(key: str) -> _Launched:
    """The kernel of a graph that another process made. RuntimeError if it is not found by its name."""
    path, _, text = key.partition("|")
    module, _, name = path.partition(":")
    if not text.startswith("["):
        raise RuntimeError(f"the graph launches the kernel {name} of module {module}, which only the process that made "
                           f"the graph can find: define it at the top level of a module, and give it as constants only "
                           f"numbers, texts and None")
    kernel = _found(module, name)
    if not isinstance(kernel, Kernel):
        how = f"import {module} before you run the graph" if module != "__main__" else (
            "that was the script that made the graph: move the kernel to a module that both import")
        raise RuntimeError(f"the graph launches the kernel {name} of module {module}, which is not there; {how}")
    found = _known[key] = _Launched(kernel, json.loads(text))
    return found
