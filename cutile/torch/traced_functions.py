"""Functions by `ct.jit` in graphs of torch.compile, where no operator was made of them.

Dynamo follows `_in_graph` in the place of a call, which puts an operator into the graph that is made when it is first
needed. Only this process knows it, so graphs that leave the process need operators that users name. As outside of
graphs, results have no gradient.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import Any

import torch

from cutile.errors import refusal
from cutile.functions.binding import MISSING, REQUIRED
from cutile.functions.entry import Tracer
from cutile.functions.tile_function import TileFunction, let_trace
from cutile.functions.tuned import Tuned
from cutile.torch.operators import without_name

_NAMESPACE = "cutile_functions"
_names: Counter[str] = Counter()


@functools.cache
def register() -> None:
    """Let Dynamo follow calls of functions. Once a process."""
    TileFunction._operator_in_graphs = torch._dynamo.assume_constant_result(_operator_in_graphs)
    let_trace(Tracer(torch.compiler.is_dynamo_compiling, _in_graph, _refused))
    Tuned._refuse_export = torch._dynamo.assume_constant_result(_refuse_export)
    Tuned.__call__ = _tuned_call


def _in_graph(function, given, out=None, stream=None):
    """What is traced in the place of a call. It is Python that Dynamo can follow."""
    arguments = {}
    for name, value in given.items():
        if value is not MISSING and value is not REQUIRED:
            arguments[name] = value
    if out is not None or stream is not None:
        torch._dynamo.graph_break("a function made by ct.jit takes out= and stream= only outside of graphs")
        if out is not None:
            arguments["out"] = out
        return function.plain(**arguments, stream=stream)
    operator, written, returned = function._operator_in_graphs()
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and name not in written:
            arguments[name] = value.detach()
    found = getattr(torch.ops.cutile_functions, operator)(**arguments)
    if not written:
        return found
    outputs = found if isinstance(found, tuple) else (found,)
    results = tuple([outputs[key] if isinstance(key, int) else arguments[key] for key in returned])
    return results[0] if len(results) == 1 else results


def _tuned_call(self, *args, **named):
    """A call of a tuned function: Dynamo follows it to the error of torch.export, or to what breaks the graph."""
    if torch.compiler.is_dynamo_compiling():
        self._refuse_export()
    return self._searching_call(*args, **named)


def _refuse_export(function: Any) -> None:
    """TypeError if a call is being exported. In a function that Dynamo does not follow, since some versions of it take
    `is_exporting` for true in all that they trace.
    """
    if (error := _refused(function)) is not None:
        raise error


def _refused(function: Any) -> Exception | None:
    if not torch.compiler.is_exporting():
        return None
    name = function.__name__
    if isinstance(function, Tuned):
        return refusal(TypeError(
            f"{name} is a tuned function: it searches by launching kernels, and torch.export has tensors without "
            f"memory. Search before, best = {name}.best(...), on tensors like those of the program; make an operator "
            f"of the function that is tuned, layer = cutile.torch.op(\"mine::{name}\", {name}.function), and call "
            f"layer(..., **best) in the program"))
    return refusal(TypeError(f"torch.export needs operators with names: make one of {name}, layer = cutile.torch.op("
                             f"\"mine::{name}\", {name}), and call that"))


def _operator_in_graphs(function: TileFunction) -> tuple[str, tuple[str, ...], tuple[int | str, ...]]:
    """The function's operator in the namespace, which is made now if there is none, the parameters that it writes, and
    what a call returns: places among the operator's results, and parameters.
    """
    _refuse_export(function)
    made: Any = vars(function).get("_in_graphs")
    if made is None or made[1].written != function._inout:
        name = re.sub(r"[\W_]+", "_", f"{function.__module__}_{function.__qualname__}").strip("_")
        _names[name] += 1
        name = name if _names[name] == 1 else f"{name}_{_names[name]}"
        function._in_graphs = made = name, without_name(f"{_NAMESPACE}::{name}", function)
    outputs = [o.name for o in function.outputs]
    returned = [n for n in function.kernel.names if n in function.returned]
    return (made[0], tuple(n for n in returned if n not in outputs),
            tuple(outputs.index(n) if n in outputs else n for n in returned))
