"""The primitive `cutile_call`: how JAX traces, batches and lowers a call."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from cutile import settings
from cutile.errors import TileError
from cutile.jax import attributes, callback
from cutile.jax.description import Call, InputOutput, OutputPlaceholder
from cutile.jax.targets import TARGET, handlers
from cutile.tracebacks import for_users

LIMIT = 1000  # calls outside of jax.jit whose programs are kept

_primitive = Primitive("cutile_call")
_primitive.multiple_results = True

# They may be arguments and results of functions that JAX traces.
jax.tree_util.register_dataclass(InputOutput, data_fields=["array"], meta_fields=[])
jax.tree_util.register_dataclass(OutputPlaceholder, data_fields=[], meta_fields=["shape", "dtype"])


def bind(call: Call, inputs: Sequence[Any]) -> list[Any]:
    """Make the call where JAX traces, and run it where it does not."""
    return _primitive.bind(*all_varying(inputs), call=call)


@_primitive.def_impl
def _run(*inputs: Any, call: Call) -> list[Any]:
    with jax.disable_jit(False):  # else the program would be run operation by operation, and come here again
        return _compiled(call)(*inputs)


@functools.lru_cache(LIMIT)
def _compiled(call: Call) -> Any:
    return jax.jit(functools.partial(_primitive.bind, call=call))


# ------------------------------------------------------------------ types of the outputs


@_primitive.def_abstract_eval
def _outputs(*inputs: Any, call: Call) -> list[Any]:
    return [_like(inputs[0] if inputs else None, (*call.batch, *shape), dtype) for shape, dtype in call.outputs]


def _like(first: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The type of an output, which under shard_map varies as the inputs do."""
    if first is None:
        return jax.core.ShapedArray(shape, dtype)
    sharding = NamedSharding(first.sharding.mesh, PartitionSpec(*[None] * len(shape)))
    return first.update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)


def _axes(x: Any) -> frozenset:
    """The axes of a mesh along which a value varies, inside shard_map."""
    kind = jax.typeof(x)
    found = getattr(kind, "vma", None)  # JAX before 0.10
    return found if found is not None else getattr(getattr(kind, "mat", None), "varying", frozenset())


def all_varying(inputs: Sequence[Any]) -> list[Any]:
    """The inputs, each varying along all axes along which one of them does."""
    every = frozenset().union(*map(_axes, inputs))
    return [_varying(x, tuple(sorted(every - _axes(x), key=str))) for x in inputs]


def _varying(x: Any, axes: tuple) -> Any:
    if not axes:
        return x
    return jax.lax.pcast(x, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(x, axes)


# ------------------------------------------------------------------ batches and derivatives


def _batch(inputs: Sequence[Any], axes: Sequence[int | None], *, call: Call) -> tuple[list[Any], list[int]]:
    """The same kernel with one more axis of the batch, before the others. An input that is an output gets that axis."""
    n = next(x.shape[k] for x, k in zip(inputs, axes, strict=True) if k is not None)
    written = {i for i, _ in call.aliases}
    moved = []
    for i, (x, k) in enumerate(zip(inputs, axes, strict=True)):
        if k is not None:
            x = jax.numpy.moveaxis(x, k, 0)
        elif i in written:
            x = jax.numpy.broadcast_to(x, (n, *x.shape))
        moved.append(x)
    batched = tuple((k is not None or i in written, *has) for i, (k, has) in enumerate(zip(axes, call.batched)))
    results = bind(replace(call, batch=(n, *call.batch), batched=batched), moved)
    return results, [0] * len(results)


batching.primitive_batchers[_primitive] = _batch


def _no_derivative(*_: Any, call: Call) -> Any:
    raise ValueError(f"kernel {call.kernel.__name__} has no derivative of its own; cutile.jax.custom_vjp() gives a "
                     f"function by ct.jit one, and jax.custom_vjp any other")


ad.primitive_jvps[_primitive] = _no_derivative
ad.primitive_transposes[_primitive] = _no_derivative


# ------------------------------------------------------------------ lowering


def _lower(make: Any, ctx: Any, *operands: Any, call: Call) -> Any:
    where = ctx.module_context.axis_context
    if isinstance(where, mlir.ShardingContext) and (where.num_devices or 1) > 1:
        warnings.warn(f"kernel {call.kernel.__name__} is called in a program of {where.num_devices} devices outside of "
                      f"jax.shard_map: each device gathers whole arrays and runs the whole call", stacklevel=2)
    if handlers() is None or (make is attributes.for_gpu and settings.on_host()):
        return mlir.lower_fun(lambda *inputs: callback.run(call, inputs), multiple_results=True)(ctx, *operands)
    try:
        given = make(call)
    except TileError as e:
        raise for_users(e) from e.__cause__
    lowering = jax.ffi.ffi_lowering(TARGET, operand_output_aliases=dict(call.aliases))
    return lowering(ctx, *operands, **given)


mlir.register_lowering(_primitive, functools.partial(_lower, attributes.for_cpu), platform="cpu")
mlir.register_lowering(_primitive, functools.partial(_lower, attributes.for_gpu), platform="cuda")
