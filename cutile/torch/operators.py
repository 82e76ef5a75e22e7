"""Operators of PyTorch made of functions by `ct.jit`: schema, fake tensors, gradients and vmap [PT-5].

The schema follows from the parameters' annotations, and which arguments are written from `inout`. Results on fake
tensors follow from the declared outputs, whose sizes may be symbolic.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from cutile.dtypes import DType, info
from cutile.front.sizes import axes_of
from cutile.functions.out import Output
from cutile.functions.rules import nearest, of_function
from cutile.functions.tile_function import TileFunction


def op(name: str, function: TileFunction, *, backward: TileFunction | Callable | None = None,
       vmap: Callable | None = None, tags: Sequence[torch.Tag] = ()) -> torch.library.CustomOpDef:
    """Make an operator of PyTorch of a function by `ct.jit`.

    Parameters
    ----------
    name : str
        "namespace::name". Programs that were exported find the operator by it.
    function : function
        Made by `ct.jit`. Its parameters are those of the operator. What `inout` names counts as written, and is not
        returned.
    backward : function, optional
        A function by `ct.jit`, or another one. Its parameters are named after those of `function`, after its outputs,
        and grad_<output>. The outputs of a function by `ct.jit` are named grad_<input>; another function returns a
        dictionary of gradients by input.
    vmap : function, optional
        A rule for torch.vmap, as torch.library.register_vmap takes it. Without one, the operator runs for each item.
    tags : sequence of torch.Tag, default ()
        Tags of the operator.

    Returns
    -------
    operator
        It is called like the function.

    Raises
    ------
    TypeError
        The function is none by `ct.jit`, a parameter has no type that a schema knows, or `backward` asks for a name
        that is neither parameter, output nor gradient.
    ValueError
        `backward` is given for a function that writes to its arguments.

    Notes
    -----
    [PT-5] The operator runs where its tensors are: in CPU memory in the interpreter. It may stand in torch.compile with
    fullgraph=True, torch.export, torch.vmap and under autograd. autocast does not convert its arguments.

    Examples
    --------
    >>> import torch, cutile.torch
    >>> @ct.jit(grid="cdiv(N, 128)", out=ct.Out("N"))
    ... @ct.kernel
    ... def double(x: ct.Array["N"], y):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), 128))
    >>> twice = cutile.torch.op("examples::double", double)
    >>> torch.compile(lambda x: twice(x) + 1, fullgraph=True, backend="eager")(torch.ones(3))
    tensor([3., 3., 3.])
    """
    if not isinstance(function, TileFunction):
        raise TypeError(f"op() makes an operator of a function made by ct.jit, not of {function!r:.100}")
    written = [n for n in function.parameters if n in function.returned]
    if written and backward is not None:
        raise ValueError(f"{function.__name__} writes to {', '.join(written)}: operators that write have no gradient; "
                         f"declare outputs instead")
    operator = torch.library.custom_op(name, _run(function), mutates_args=written, schema=schema(function),
                                       tags=list(tags))
    operator.__class__ = _Operator
    positional = all(p.kind is not p.KEYWORD_ONLY for p in function.parameters.values())
    operator.direct = function if positional and not (written or function.computed) else _run(function)
    operator.register_fake(_fake(function))
    if backward is not None:
        _register_backward(name, operator, function, backward)
    if not written:
        operator.register_vmap(vmap or _one_by_one(operator))
    function.wrap = _in_graphs(operator)
    function._write_entry()
    return operator


class _Operator(torch.library.CustomOpDef):
    """An operator whose calls go straight to the function where PyTorch's dispatcher would do nothing on the way.

    The way through the dispatcher and PyTorch's Python code takes several times as long as a launch.
    """

    direct: Callable | None  # the function; None where PyTorch was told of another one, or of a conversion

    def __call__(self, *args, **kwargs):
        if (torch.compiler.is_compiling() or self.direct is None or kwargs or _watched()
                or not all(map(_plain, args))):
            return super().__call__(*args, **kwargs)
        return self.direct(*args)

    def register_kernel(self, *args, **kwargs):
        self.direct = None
        return super().register_kernel(*args, **kwargs)

    def register_autocast(self, *args, **kwargs):
        self.direct = None
        return super().register_autocast(*args, **kwargs)

    def set_kernel_enabled(self, *args, **kwargs):
        self.direct = None
        return super().set_kernel_enabled(*args, **kwargs)


def _watched() -> bool:
    """Whether something in this thread sees or changes calls of operators: a transform, mode, tracer or profiler."""
    return (torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack() > 0
            or torch._C._len_torch_function_stack() > 0 or torch._C._get_tracing_state() is not None
            or torch.autograd.forward_ad._current_level >= 0 or torch.autograd._profiler_enabled())


def _plain(value: Any) -> bool:
    """Whether the dispatcher would pass an argument to the function as it is, and note nothing for gradients."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return isinstance(value, int | float | str | None)
    return ((value.is_cpu or value.is_cuda) and not value.is_neg()
            and not (value.requires_grad and torch.is_grad_enabled()))


def _in_graphs(operator: Callable) -> Callable:
    """What makes calls of the function calls of the operator where they are traced."""
    def wrap(entry):
        def __call__(self, *args, **kwargs):
            if torch.compiler.is_compiling():
                return operator(*args, **kwargs)
            return entry(self, *args, **kwargs)
        return __call__
    return wrap


# ------------------------------------------------------------------ the schema

_TYPES = {int: "SymInt", float: "float", bool: "bool", str: "str"}


def schema(function: TileFunction) -> str:
    """The schema of an operator, as PyTorch writes it: parameters in order, tensors for arrays."""
    hints = _annotations(function)
    parameters = [_parameter(function, n, hints.get(n)) for n in function.parameters]
    results = ["Tensor"] * len(function.outputs)
    return f"({', '.join(parameters)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def _annotations(function: TileFunction) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function.kernel.function, include_extras=True)
    except Exception:  # text that is no Python type
        return {}


def _parameter(function: TileFunction, name: str, hint: Any) -> str:
    spec, default = function.specs[name], function.parameters[name].default
    if name in function.computed:
        return f"{_number_type(function, name, hint, 0).replace('SymInt', 'int')}? {name}=None"
    if spec.list is not None:
        return f"Tensor[] {name}"
    plain = spec.array is None and (hint in _TYPES or default is not inspect.Parameter.empty)
    if not (spec.constant or spec.scalar is not None or plain):
        return f"Tensor{'(a!)' if name in function.returned else ''} {name}"
    kind = _number_type(function, name, hint, default)
    kind = "int" if spec.constant and kind == "SymInt" else kind
    return f"{kind} {name}" + ("" if default is inspect.Parameter.empty else f"={_text(default)}")


def _number_type(function: TileFunction, name: str, hint: Any, default: Any) -> str:
    scalar = function.specs[name].scalar
    if scalar is not None and scalar.dtype is not None:
        return "float" if info(scalar.dtype).floating else "SymInt"
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
    found = _TYPES.get(inner) or _TYPES.get(type(default))
    if found is None:
        raise TypeError(f"{function.__name__}: the type of parameter `{name}` is open; annotate it, as "
                        f"ct.Constant[int] or ct.Array")
    return found


def _text(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)


# ------------------------------------------------------------------ on real and on fake tensors


def _run(function: TileFunction) -> Callable:
    """The function, with its declared outputs alone as results."""
    names = [n for n in function.kernel.names if n in function.returned]
    outputs = {o.name for o in function.outputs}

    def run(*args, **kwargs):
        given = {**dict(zip(function.parameters, args)), **kwargs}
        found = function(**{n: v for n, v in given.items() if v is not None or n not in function.computed})
        found = dict(zip(names, found if len(names) > 1 else [found]))
        results = [v for n, v in found.items() if n in outputs]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    return run


def _fake(function: TileFunction) -> Callable:
    """Results without memory, of the sizes and dtypes that the outputs declare."""
    def fake(*args, **kwargs):
        given = {**dict(zip(function.parameters, args)), **kwargs}
        names = _names(function, given)
        first = next(v for v in given.values() if isinstance(v, torch.Tensor))
        results = [first.new_empty(_shape(function, o, names, given), dtype=_dtype(o, names, given, first))
                   for o in function.outputs]
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    return fake


def _names(function: TileFunction, given: Mapping[str, Any]) -> dict[str, Any]:
    """Named sizes and arguments. Sizes may be symbolic."""
    names = {n: v for n, v in given.items() if v is not None}
    for n, spec in function.specs.items():
        if spec.sizes is None or not isinstance(given.get(n), torch.Tensor):
            continue
        shape, axes, k = tuple(given[n].shape), spec.sizes.axes, 0
        for axis in axes:
            length = len(shape) - len(axes) + 1 if axis.rest else 1
            if axis.name is not None:
                names.setdefault(axis.name, shape[k:k + length] if axis.rest else shape[k])
            k += length
    for n in function.computed - names.keys():
        names[n] = function.defaults[n].value(names)
    return names


def _shape(function: TileFunction, o: Output, names: Mapping[str, Any], given: Mapping[str, Any]) -> list[Any]:
    if o.out.shape is None:
        return list(given[o.out.like].shape)
    if callable(o.out.shape):
        return list(of_function(f"the shape of output `{o.name}`", o.out.shape, list(names)).value(names))
    items = [o.out.shape] if isinstance(o.out.shape, str) else o.out.shape
    found: list[Any] = []
    for axis in (a for item in items for a in ([item] if isinstance(item, int) else axes_of(item))):
        if isinstance(axis, int):
            found.append(axis)
        elif axis.rest:
            found += names[axis.name]
        else:
            found.append(names[axis.name] if axis.name else axis.size(names))
    return found


def _dtype(o: Output, names: Mapping[str, Any], given: Mapping[str, Any], first: torch.Tensor) -> torch.dtype:
    if o.dtype_like is not None:
        return given[o.dtype_like].dtype
    if o.dtype is None:
        return first.dtype
    found = o.dtype.value(names)
    return getattr(torch, found.name.rstrip("_")) if isinstance(found, DType) else found


# ------------------------------------------------------------------ gradients and batches


def _register_backward(name: str, operator: torch.library.CustomOpDef, function: TileFunction,
                       backward: TileFunction | Callable) -> None:
    inputs, outputs = list(function.parameters), [o.name for o in function.outputs]
    asked = list(backward.parameters if isinstance(backward, TileFunction) else inspect.signature(backward).parameters)
    known = [*inputs, *outputs, *(f"grad_{o}" for o in outputs)]
    if isinstance(backward, TileFunction):
        asked = [n for n in asked if n in known or n not in backward.computed]
        for o in backward.outputs:
            if o.name.removeprefix("grad_") not in inputs or not o.name.startswith("grad_"):
                raise TypeError(f"output {o.name} of {backward.__name__} is no gradient; those of {function.__name__} "
                                f"are named {', '.join(f'grad_{n}' for n in inputs)}")
    for n in asked:
        if n not in known:
            raise TypeError(f"{getattr(backward, '__name__', backward)} takes {n}, which is no parameter, output or "
                            f"gradient of {function.__name__}{nearest(n, known)}; there are {', '.join(known)}")
    call = _gradients_of(op(f"{name}_backward", backward), backward) if isinstance(backward, TileFunction) else backward

    def setup_context(ctx, inputs, output):
        values = {**dict(zip(function.parameters, inputs)),
                  **dict(zip(outputs, output if isinstance(output, tuple) else (output,)))}
        tensors = [n for n in asked if isinstance(values.get(n), torch.Tensor)]
        ctx.save_for_backward(*(values[n] for n in tensors))
        ctx.names = tensors
        ctx.numbers = {n: values[n] for n in asked if n in values and n not in tensors}

    def gradients(ctx, *grads):
        values = {**ctx.numbers, **dict(zip(ctx.names, ctx.saved_tensors)),
                  **{f"grad_{o}": g for o, g in zip(outputs, grads)}}
        found = call(**{n: values[n] for n in asked})
        return tuple(found.get(n) for n in inputs)

    operator.register_autograd(gradients, setup_context=setup_context)


def _gradients_of(operator: Callable, backward: TileFunction) -> Callable:
    """The operator of a backward function, with a dictionary as its result."""
    names = [o.name.removeprefix("grad_") for o in backward.outputs]

    def call(**given):
        found = operator(**given)
        return dict(zip(names, found if isinstance(found, tuple | list) else (found,)))

    return call


def _one_by_one(operator: Callable) -> Callable:
    """A rule for vmap that runs the operator for each item of a batch."""
    def rule(info, in_dims, *args):
        items = [operator(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims)))
                 for i in range(info.batch_size)]
        if isinstance(items[0], tuple | list):
            return tuple(map(torch.stack, zip(*items))), (0,) * len(items[0])
        return torch.stack(items), 0

    return rule
