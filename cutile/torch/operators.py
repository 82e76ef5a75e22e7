"""Operators of PyTorch made of functions by `ct.jit`: how they are made and called [PT-5]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.fx import Proxy

from cutile.errors import TileTypeError, refusal
from cutile.functions import options
from cutile.functions.argument_kinds import check_constant
from cutile.functions.factory import Factory
from cutile.functions.rules import nearest
from cutile.functions.tile_function import TileFunction
from cutile.functions.tuned import Tuned
from cutile.runtime.gradients import names_of
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch_cache import extension
from cutile.torch import gradients, results
from cutile.torch.exporting import warn_of_main
from cutile.torch.schema import is_tensor, schema
from cutile.tracebacks import warn

_TAGS: options.Kind = (lambda x: not isinstance(x, str) and all(isinstance(t, torch.Tag) for t in x)), (
    "a tuple of tags, such as (torch.Tag.pointwise,)")
_made: dict[str, _Operator] = {}  # by name: the operator that was made last


def op(name: str, function: TileFunction, *, backward: TileFunction | Callable | None = None,
       non_differentiable: Sequence[str] = (), vmap: Callable | None = None,
       tags: Sequence[torch.Tag] = ()) -> torch.library.CustomOpDef:
    """Make an operator of PyTorch of a function by `ct.jit`.

    Parameters
    ----------
    name : str
        "namespace::name". Programs that were exported find the operator by it.
    function : function
        Made by `ct.jit`. Its parameters are those of the operator. What `inout` names counts as written, and is not
        returned.
    backward : function, optional
        A function by `ct.jit`, an operator made of one, or a function of Python. Its parameters are named after those
        of `function`, after its outputs, and grad_<output>. The outputs of a function by `ct.jit` are named
        grad_<input>; a function of Python returns a dictionary of gradients by input.
    non_differentiable : sequence of str, default ()
        Outputs and inputs that have no gradient: an output that only `backward` needs, an input that is an index.
    vmap : function, optional
        A rule for torch.vmap, as torch.library.register_vmap takes it. Without one, the operator runs for each item.
    tags : sequence of torch.Tag, default ()
        Tags of the operator.

    Returns
    -------
    operator
        It is called like the function, with `out` and `stream` too. Its attributes `function` and `kernel` are what it
        is made of; it has the methods `compile`, `compile_all` and `profile` of the function.

    Raises
    ------
    TypeError
        The function is none by `ct.jit`, a parameter has no type that a schema knows, or `backward` asks for a name
        that is neither parameter, output nor gradient.
    ValueError
        The name has no namespace, `backward` is given for a function that writes to its arguments, or
        `non_differentiable` names what is neither input nor output.

    Warns
    -----
    UserWarning
        The name is that of an operator of another function, whose place this one takes.

    Notes
    -----
    [PT-5] The operator runs where its tensors are: in CPU memory in the interpreter. It may stand in torch.compile with
    fullgraph=True, torch.export, torch.func and under autograd. autocast does not convert its arguments.

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
    _check(name, function, backward)
    options.check("cutile.torch.op", {"vmap": vmap, "tags": tags}, {"vmap": options.FUNCTION, "tags": _TAGS})
    written = [n for n in function.parameters if n in function.returned]
    if written and backward is not None:
        raise ValueError(f"{function.__name__} writes to {', '.join(written)}: operators that write have no gradient; "
                         f"declare outputs instead")
    known = [*function.parameters, *(o.name for o in function.outputs)]
    names_of(non_differentiable, "non_differentiable", known, "neither input nor output", function)
    formula = None if backward is None else gradients.Formula(name, function, backward, non_differentiable)
    if formula is not None and formula.kernel is not None:
        operator = backward if isinstance(backward, _Operator) else _make(
            f"{name}_backward", formula.kernel, None, None, (),
            f"{name} has no second derivative, because its backward is a kernel without one: give backward= an "
            f"operator, made with a backward of its own, or a function of Python that calls operators")
        formula.call = operator
    return _make(name, function, formula, vmap, tags,
                 f"{name} has no gradient: {_how_to_have_one(function, written)}")


def _check(name: Any, function: Any, backward: Any) -> None:
    """TypeError or ValueError for what no operator can be made of."""
    for n, f in (("op()", function), ("backward", backward)):
        if isinstance(f, Tuned):
            raise TypeError(f"{n} takes no tuned function: give it the function that is tuned, {f.__name__}.function, "
                            f"and calls of the operator what a search has found, **{f.__name__}.best(...); hints "
                            f"among it go to ct.jit(..., hints=...)")
    if isinstance(function, _Operator):
        raise TypeError(f"op() makes an operator of a function made by ct.jit, and {function._qualname} is an operator "
                        f"already; the function is its attribute `function`")
    if isinstance(function, str) and isinstance(name, TileFunction):
        raise TypeError(f"op() takes the name first: op({function!r:.100}, {name.__name__})")
    if not isinstance(function, TileFunction):
        raise TypeError(f"op() makes an operator of a function made by ct.jit, not of {function!r:.100}"
                        f"{_of_kernel(function)}")
    if isinstance(backward, Kernel | Factory):
        raise TypeError(f"backward is a function{_of_kernel(backward)}")
    if not isinstance(name, str):
        raise TypeError(f"the name of an operator is text such as \"mine::{function.__name__}\", not {name!r:.100}")
    parts = name.split("::")
    if len(parts) != 2 or not all(p.replace(".", "_").isidentifier() for p in parts):
        raise ValueError(f"the name of an operator is \"namespace::name\", such as \"mine::{function.__name__}\", not "
                         f"{name!r:.100}")
    if parts[0] in ("aten", "prim", "prims"):
        raise ValueError(f"the namespace {parts[0]} is PyTorch's own; take another one, such as \"mine::{parts[1]}\"")


def _of_kernel(given: Any) -> str:
    if isinstance(given, Factory):
        return f"; {given.__name__} is a factory: give what it returns, {given.__name__}(...)"
    if isinstance(given, Kernel):
        return f"; {given.__name__} is a kernel, of which ct.jit(kernel, grid=..., out=...) makes a function"
    return ""


def _how_to_have_one(function: TileFunction, written: Sequence[str]) -> str:
    if written:
        return (f"it writes to {', '.join(written)}. Call it under torch.no_grad(), or declare outputs, and make the "
                f"operator with backward=")
    return f"make it by cutile.torch.op(..., backward=...), or call {function.__name__} under torch.no_grad()"


def _make(name: str, function: TileFunction, formula: gradients.Formula | None, vmap: Callable | None,
          tags: Sequence[torch.Tag], why: str) -> _Operator:
    """An operator in the place of its function; `why` says what is wrong when it is asked for a gradient that it has
    not.
    """
    operator, old = _defined(name, function, formula, vmap, tags, why), _made.get(name)
    _replace(old, operator)
    _made[name] = operator
    if function.operator is None or function.operator is old:  # of several, the first is what the function itself is
        function.operator, function.wrap = operator, _calls_of
        function._write_entry()
    return operator


def without_name(name: str, function: TileFunction) -> _Operator:
    """An operator for graphs of this process alone; the function stays as it is."""
    return _defined(name, function, None, None, (), f"{function.__name__} has no gradient")


def _defined(name: str, function: TileFunction, formula: gradients.Formula | None, vmap: Callable | None,
             tags: Sequence[torch.Tag], why: str) -> _Operator:
    """What PyTorch's registry gets to know of an operator."""
    written = [n for n in function.parameters if n in function.returned]
    operator: Any = torch.library.custom_op(name, results.run(function), mutates_args=written, schema=schema(function),
                                            tags=list(tags))
    operator.__class__ = _Operator
    operator.function, operator.newer, operator.__name__ = function, None, function.__name__
    operator.written = frozenset(written)
    operator.tensors = [is_tensor(function, n) for n in function.parameters]
    operator.arrays = bytes(tensor or function.specs[n].list is not None
                            for n, tensor in zip(function.parameters, operator.tensors))
    positional = all(p.kind is not p.KEYWORD_ONLY for p in function.parameters.values())
    fast = (lambda *args: function.plain(*args)) if positional and not (written or function.computed) else (
        results.run(function))
    operator.direct = _first_call(operator, fast)
    operator.register_fake(_fake(operator))
    gradients.register(operator, formula, why, [list(function.parameters).index(n) for n in written])
    if not written:
        operator.register_vmap(vmap or _one_by_one(operator))
    return operator


def _first_call(operator: Any, fast: Callable) -> Callable:
    """The first call that goes past the dispatcher, after which calls are `fast` ones."""
    checked = results.run(operator.function)

    def first(*args: Any) -> Any:
        found = checked(*args)
        if operator.direct is first:
            operator.direct = fast
        return found

    return first


def _replace(old: _Operator | None, new: _Operator) -> None:
    """Let calls of an operator whose name is used again be calls of the new one, as PyTorch's dispatcher has it."""
    if old is None:
        return
    old.direct, old.newer = None, new
    before, after = (".".join(filter(None, (f.__module__, f.__qualname__))) for f in (old.function, new.function))
    if before != after:
        warn(f"the operator {new._qualname} was made of {before}, and is now made of {after}, also where the old one "
             f"is called; give one of them another name")
    if old.function is not new.function and old.function.operator is old:
        old.function.operator = old.function.wrap = None
        old.function._write_entry()


# ------------------------------------------------------------------ calls


class _Operator(torch.library.CustomOpDef):
    """An operator whose calls go straight to the function where PyTorch's dispatcher would do nothing on the way.

    The way through the dispatcher and PyTorch's Python code takes several times as long as a launch.
    """

    function: TileFunction
    direct: Callable | None  # the function; None where PyTorch was told of another one, or of a conversion
    newer: _Operator | None  # what was made under the same name later
    tensors: list[bool]  # which parameters are tensors
    arrays: bytes  # which are tensors or lists of tensors: 1 for each that is
    written: frozenset[str]  # the parameters that its schema says are written

    def __call__(self, *args, **kwargs):
        if torch.compiler.is_dynamo_compiling():  # what else traces graphs is among what `_watched` sees
            return _in_graph(self, args, kwargs)
        if self.direct is None or kwargs or _watched() or not _unfollowed(
                args, self.arrays, _TENSORS, _OTHERS, _grad_mode()):
            return self._dispatched(args, kwargs)
        try:
            return self.direct(*args)
        except TileTypeError as e:
            _note_autocast(e, args)
            raise
        except TypeError:
            if all(map(_plain, args, self.tensors)):
                raise
        return self._dispatched(args, kwargs)  # of tensors that the dispatcher converts, or that have no memory

    def _dispatched(self, args, kwargs):
        """A call that is checked, and goes through PyTorch's dispatcher where that has something to do."""
        if torch.compiler.is_compiling():
            return _in_graph(self, args, kwargs)
        if self.newer is not None:
            return self.newer(*args, **kwargs)
        if kwargs.get("out") is not None or kwargs.get("stream") is not None:
            _refuse_gradient(self, args, kwargs)
            return self.function.plain(*args, **kwargs)
        given = {**dict(zip(self.function.parameters, args)), **kwargs}
        for keyword in ("out", "stream"):
            kwargs.pop(keyword, None)
        known = list(self.function.parameters)
        for n in kwargs:
            if n not in known:
                raise refusal(TypeError(f"{self._qualname} has no argument {n}{nearest(n, known)}"))
        for n, tensor in zip(self.function.parameters, self.tensors):
            if tensor and n in given and not isinstance(given[n], torch.Tensor | Proxy) and not (
                    self.function.specs[n].list and isinstance(given[n], list | tuple)):
                raise refusal(TypeError(_no_tensor(self, n, given[n])))
            value = given.get(n)
            if self.function.specs[n].constant and value is not None and not isinstance(value, Proxy):
                check_constant(self.function, n, value)
        try:
            return super().__call__(*args, **kwargs)
        except TileTypeError as e:
            _note_autocast(e, given.values())
            raise

    def __getitem__(self, grid):
        raise TypeError(f"{self._qualname} is an operator, and takes no grid in brackets; call it as a function")

    @property
    def kernel(self):
        return self.function.kernel

    @property
    def compile(self):
        return self.function.compile

    @property
    def compile_all(self):
        return self.function.compile_all

    @property
    def profile(self):
        return self.function.profile

    @property
    def launched(self):
        return self.function.launched

    def _arguments_of_kernel(self, call):
        return self.function._arguments_of_kernel(call)

    def resolved(self, args, named):
        """The function, for what takes functions by ct.jit, as ct.testing.assert_matches does."""
        return self.function, None, {}

    @property
    def _instead_of_launch(self):
        return f"{self._qualname} is an operator; call it, or launch its kernel, {self.function.__name__}.kernel"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        """A pickle holds its name; the process that reads it has to make the operator before."""
        return _by_name, (self._qualname, self.function.__module__)

    def register_kernel(self, *args, **kwargs):
        self.direct = None
        return super().register_kernel(*args, **kwargs)

    def register_autocast(self, *args, **kwargs):
        self.direct = None
        return super().register_autocast(*args, **kwargs)

    def set_kernel_enabled(self, *args, **kwargs):
        self.direct = None
        return super().set_kernel_enabled(*args, **kwargs)


def _by_name(name: str, module: str) -> _Operator:
    """The operator of a pickle. RuntimeError if there is none of that name."""
    if name not in _made:
        raise RuntimeError(f"there is no operator {name} here: import {module}, or the module that makes it, before "
                           f"you load what holds it")
    return _made[name]


def _in_graph(operator: _Operator, args: tuple, kwargs: dict) -> Any:
    """A call that is traced."""
    while operator.newer is not None:
        operator = operator.newer
    if kwargs.get("out") is not None or kwargs.get("stream") is not None:
        raise TypeError(f"{operator._qualname} takes out= and stream= only outside of graphs")
    return operator._opoverload(*args, **{n: v for n, v in kwargs.items() if n != "out" and n != "stream"})


def _calls_of(function: TileFunction) -> Callable:
    """The calls of a function that has an operator: calls of the operator where a graph or autograd follows them, or
    a mode or transform is on. Arrays of other libraries go to the function, and so do `out` and `stream`.
    """
    operator = function.operator

    def __call__(self, *args, **kwargs):
        if torch.compiler.is_compiling():
            return _in_graph(operator, args, kwargs)
        if _watched() and any(isinstance(v, torch.Tensor) for v in (*args, *kwargs.values())) or not (
                all(map(_untracked, args)) and (not kwargs or all(map(_untracked, kwargs.values())))):
            return operator(*args, **kwargs)
        return self.plain(*args, **kwargs)

    return __call__


def _untracked(value: Any) -> bool:
    """Whether the function may take an argument itself: it is no tensor, or one that autograd does not follow."""
    if type(value) is torch.Tensor or type(value) is torch.nn.Parameter:
        return not (value.is_meta or value.requires_grad and _grad_mode())
    return not isinstance(value, torch.Tensor)


def _watched() -> bool:
    """Whether something in this thread sees or changes calls of operators: a transform, mode, tracer or profiler."""
    return (_transform() is not None or _modes() > 0 or _function_modes() > 0 or _tracer() is not None
            or forward_ad._current_level >= 0 or _profiled())


_transform = torch._C._functorch.peek_interpreter_stack  # short names, because every call asks them
_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_tracer, _profiled = torch._C._get_tracing_state, torch.autograd._profiler_enabled
_grad_mode = torch.is_grad_enabled


def _unfollowed_one_by_one(args: tuple, arrays: bytes, tensors: frozenset, others: frozenset, grad: bool) -> bool:
    """Whether arguments are of known classes, and tensors that autograd does not follow where they are arrays."""
    return all(
        type(v) in tensors and not (grad and v.requires_grad) if array else type(v) in others
        for v, array in zip(args, arrays))


_unfollowed = _unfollowed_one_by_one if extension() is None else extension().unfollowed
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
_OTHERS = frozenset((int, float, bool, str, type(None), *_TENSORS))  # a tensor that is no number the function refuses


def _plain(value: Any, tensor: bool = True) -> bool:
    """Whether the dispatcher would pass an argument to the function as it is, and note nothing for gradients.

    tensor   whether the schema has a tensor there
    """
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        return not tensor and isinstance(value, int | float | str | None)
    return ((value.is_cpu or value.is_cuda) and not value.is_neg()
            and not (value.requires_grad and _grad_mode()))


def _refuse_gradient(operator: _Operator, args: tuple, kwargs: dict[str, Any]) -> None:
    """RuntimeError for a call with out= or stream= that would lose gradients, as PyTorch's functions have it."""
    out = kwargs.get("out")
    if not _grad_mode() or type(out) is torch.Tensor and len(kwargs) == 1 and not out.requires_grad and _unfollowed(
            args, operator.arrays, _TENSORS, _OTHERS, True):
        return
    for n, v in (*zip(operator.function.parameters, args), *kwargs.items()):
        if any(t.requires_grad for t in (v if isinstance(v, list | tuple) else (v,)) if isinstance(t, torch.Tensor)):
            keyword = "stream" if out is None else "out"
            raise RuntimeError(f"{operator._qualname} has no gradient in a call with {keyword}=, but `{n}` requires "
                               f"grad: call it under torch.no_grad(), or without {keyword}=")


def _no_tensor(operator: _Operator, name: str, value: Any) -> str:
    function = operator.function
    if value is None:
        return f"{operator._qualname}: `{name}` must be a tensor, got None"
    if isinstance(value, bool | int | float | str) and function.specs[name].array is None:
        return (f"{operator._qualname} takes `{name}` for a tensor, because the parameter has no annotation, and got "
                f"{value!r:.100}: annotate it in the kernel, {name}: {type(value).__name__}")
    return (f"{operator._qualname} takes tensors of PyTorch, and `{name}` is of type {type(value).__name__}; "
            f"torch.as_tensor(...) makes one. {function.__name__} itself takes arrays of other libraries")


def _note_autocast(error: TileTypeError, values: Iterable[Any]) -> None:
    """Add a word on autocast to an error of types, where that is on."""
    for device in sorted({v.device.type for v in values if isinstance(v, torch.Tensor)}):
        if torch.is_autocast_enabled(device) and not getattr(error, "__notes__", ()):
            error.add_note(f"torch.autocast is on, so layers before this call give {torch.get_autocast_dtype(device)}. "
                           f"Convert in the kernel by .astype(...), or let autocast convert the arguments: "
                           f"operator.register_autocast(\"{device}\", torch.float32)")


# ------------------------------------------------------------------ fake tensors and batches


def _fake(operator: _Operator) -> Callable:
    made = results.fake(operator.function)

    def fake(*args, **kwargs):
        warn_of_main(f"the operator {operator._qualname} of", operator.function)
        return made(*args, **kwargs)

    return fake


def _one_by_one(operator: Callable) -> Callable:
    """A rule for vmap that runs the operator for each item of a batch."""
    def rule(info, in_dims, *args):
        items = [operator(*(a if d is None else a.select(d, i) for a, d in zip(args, in_dims)))
                 for i in range(info.batch_size)]
        if isinstance(items[0], tuple | list):
            return tuple(map(torch.stack, zip(*items))), (0,) * len(items[0])
        return torch.stack(items), 0

    return rule
