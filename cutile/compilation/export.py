"""export_kernel [EXP-1…9]: a kernel compiled ahead of time, as bytecode or as a cubin."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Sequence
from typing import IO, Any, Literal

from cutile import settings
from cutile._support import trace
from cutile._support.float_mode import in_usual_mode
from cutile.compilation.calling_convention import CallingConvention
from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.compilation.derive import of_function
from cutile.compilation.mangling import symbol_of
from cutile.compilation.signature import KernelSignature
from cutile.dtypes import INFO, DType, int_range
from cutile.errors import TileUnsupportedFeatureError, is_for_users, refusal
from cutile.front.program import ArgType, Embedded
from cutile.gpu.target import SUPPORTED, Target, parse_target
from cutile.runtime.annotations import ArrayAnnotation, ParameterSpec
from cutile.runtime.kernel import Kernel, typed
from cutile.runtime.launch import no_kernel
from cutile.tracebacks import for_users, hidden
from cutile.types import ArrayType, ListType, TileType

FORMATS = ("cubin", "tileir_bytecode")
VERSIONS = ("13.1", "13.2", "13.3", "13.4")

__tracebackhide__ = hidden


def export_kernel(kernel: Kernel, signatures: Sequence[KernelSignature], output_file: IO | str | bytes | os.PathLike, *,
                  gpu_code: str | None = None, output_format: Literal["cubin", "tileir_bytecode"],
                  bytecode_version: str | None = None) -> None:
    r"""Compile a kernel ahead of time, and write a cubin or a file of Tile IR bytecode. Needs no GPU.

    Parameters
    ----------
    kernel : kernel or function
        The kernel, or a function made of it by `ct.jit`.
    signatures : sequence
        What it is compiled for, one entry point each: a `KernelSignature`, or a tuple of sample arguments (arrays,
        `ct.ArraySpec`s, constants, and dtypes for numbers). For a function they are those of a call: outputs and
        constants with defaults are left out, and named sizes are compared.
    output_file : path or file
        A path, or a binary file with a method `write`. If compilation fails, nothing is written.
    gpu_code : str or None, default None
        The target, such as "sm_90". None: all targets, for bytecode of 13.3 and later.
    output_format : {"cubin", "tileir_bytecode"}
        What is written.
    bytecode_version : str or None, default None
        "13.1" to "13.4". None: the newest that the installed assembler reads; without an assembler, the oldest that
        has what the kernel needs.

    Raises
    ------
    TypeError, ValueError
        Arguments or signatures that do not fit the kernel.
    TileError
        The kernel does not compile.

    Notes
    -----
    [EXP-1…9] A cubin needs the assembler: the extra `gpu`. Bytecode does not.

    Examples
    --------
    >>> import io
    >>> @ct.kernel
    ... def double(x, y):
    ...     ct.store(y, ct.bid(0), 2 * ct.load(x, ct.bid(0), 128))
    >>> spec, file = ct.ArraySpec("N", ct.float32), io.BytesIO()
    >>> cutile.compilation.export_kernel(double, [(spec, spec)], file, gpu_code="sm_90", output_format="cubin")
    >>> file.getvalue()[:4]
    b'\x7fELF'
    """
    try:
        _write(output_file, _exported(kernel, signatures, output_file, gpu_code, output_format, bytecode_version))
    except Exception as e:
        if settings.get("DEBUG") or not is_for_users(e):
            raise
        raise for_users(e) from e.__cause__


def _write(output_file: Any, code: bytes) -> None:
    if hasattr(output_file, "write"):
        output_file.write(code)
    else:
        with open(output_file, "wb") as f:
            f.write(code)


@in_usual_mode
def _exported(kernel: Any, signatures: Any, output_file: Any, gpu_code: Any, output_format: Any,
              bytecode_version: Any) -> bytes:
    """What `export_kernel` writes."""
    try:
        kernel, signatures = of_function(kernel, signatures)
        target = _checked(kernel, output_file, gpu_code, output_format, bytecode_version)
        entries = by_symbol(kernel, signatures)
    except (TypeError, ValueError, OverflowError) as e:
        refusal(e)
        raise
    if output_format == "tileir_bytecode" and bytecode_version is None and not _has_assembler():
        code = _oldest_bytecode(kernel, entries, target)
    else:
        code = _bytecode(kernel, entries, target, bytecode_version)
    if trace.on(trace.TILE_IR):
        from cutile.gpu.tileir import tileiras  # loaded where it is needed, here and below

        trace.say(trace.TILE_IR, f"Tile IR of {kernel.__name__}\n{tileiras.disassemble(code)}")
    if target is not None and output_format == "cubin":
        from cutile.gpu.tileir import tileiras

        code = tileiras.assemble(code, target, opt_level=kernel.options.on(target.tool_name).opt_level,
                                 lineinfo=settings.lineinfo(), memcheck=settings.memcheck(), name=kernel.__name__)
    return code


def _checked(kernel: Any, output_file: Any, gpu_code: Any, output_format: Any, bytecode_version: Any) -> Target | None:
    """The target; TypeError or ValueError for wrong arguments."""
    if not isinstance(kernel, Kernel):
        raise TypeError(no_kernel(kernel, "first argument of export_kernel()"))
    if output_format not in FORMATS:
        raise ValueError(f"output_format must be one of {', '.join(FORMATS)}, not {output_format!r}")
    _check_file(output_file)
    if gpu_code is None and output_format == "cubin":
        raise ValueError(f"a cubin needs a gpu_code, for example 'sm_90'; {SUPPORTED}")
    if bytecode_version is not None and bytecode_version not in VERSIONS:
        raise ValueError(f"bytecode_version must be None or one of {', '.join(VERSIONS)}, not {bytecode_version!r}")
    return None if gpu_code is None else parse_target(gpu_code)


def _check_file(output_file: Any) -> None:
    """TypeError for what is neither a path nor a binary file, before anything is compiled."""
    if isinstance(output_file, str | bytes | os.PathLike):
        return
    if isinstance(output_file, type) or not callable(getattr(output_file, "write", None)):
        raise TypeError(f"output_file is a path, or a binary file with a method write, not {output_file!r:.100}")
    if isinstance(output_file, io.TextIOBase):
        raise TypeError(f"output_file is a text file, {output_file!r:.100}; what is written are bytes: open it with "
                        f'mode "wb", or use io.BytesIO')


def by_symbol(kernel: Kernel, signatures: Any) -> dict[str, KernelSignature]:
    """The signatures by the symbols of their entry points; a tuple of sample arguments stands for their signature.
    ValueError if two have the same symbol; TypeError if it is no list of signatures [EXP-2].
    """
    if isinstance(signatures, KernelSignature) or not isinstance(signatures, Iterable):
        raise TypeError(f"signatures is a list of tuples of sample arguments, or of KernelSignature, not "
                        f"{signatures!r:.200}")
    if isinstance(signatures, tuple) and signatures and all(map(_is_argument, signatures)):
        raise TypeError(f"signatures is a list, with a tuple of sample arguments for each entry point: write "
                        f"[{signatures!r:.200}]")
    found: dict[str, KernelSignature] = {}
    for s in signatures:
        if isinstance(s, tuple):
            s = _of_samples(kernel, s)
        if not isinstance(s, KernelSignature):
            raise TypeError(f"signatures is a list of tuples of sample arguments, or of KernelSignature, and holds "
                            f"{s!r:.200}")
        symbol = s.symbol if s.symbol is not None else s.with_mangled_symbol(symbol_of(kernel.__name__)).symbol
        if not re.fullmatch(r"[A-Za-z_$][\w$]*", symbol, re.ASCII):
            raise ValueError(f"{symbol!r} cannot be the symbol of a kernel: that takes ASCII letters, digits, _ and $")
        if symbol in found:
            raise ValueError(f"two signatures have the symbol {symbol!r}: "
                             f"{'they are equal' if s == found[symbol] else 'give one of them another'}")
        found[symbol] = s
    if not found:
        raise ValueError("signatures is empty: give a KernelSignature for each entry point")
    return found


def _is_argument(x: Any) -> bool:
    return not isinstance(x, tuple | list | KernelSignature)


def _of_samples(kernel: Kernel, arguments: tuple) -> KernelSignature:
    """The signature for arguments as those of a launch, by the oldest calling convention that has what they need."""
    for convention in (CallingConvention.cutile_python_v1(), CallingConvention.cutile_python_v2()):
        try:
            return KernelSignature.from_kernel_args(kernel, arguments, convention)
        except ValueError:
            if convention.version > 1:
                raise
    raise AssertionError


def _has_assembler() -> bool:
    from cutile.gpu.find_tileiras import find_tool

    try:
        find_tool()
    except FileNotFoundError:
        return False
    return True


def _oldest_bytecode(kernel: Kernel, signatures: dict[str, KernelSignature], target: Target | None) -> bytes:
    """Bytecode of the oldest version that has what the kernel needs: whatever assembler reads it later knows that."""
    for version in VERSIONS[:-1]:
        try:
            return _bytecode(kernel, signatures, target, version)
        except TileUnsupportedFeatureError:
            continue
    return _bytecode(kernel, signatures, target, VERSIONS[-1])


def _bytecode(kernel: Kernel, signatures: dict[str, KernelSignature], target: Target | None,
              version: str | None) -> bytes:
    from cutile.gpu import to_bytecode as bytecode  # the back end is loaded when it is needed
    from cutile.gpu.facts import of_parameters

    module = bytecode.Module(version)
    for symbol, s in signatures.items():
        program = typed(kernel, arg_types(kernel, s)).kernel
        facts = of_parameters(s.parameters)
        bytecode.module_of(program, facts, target, version, kernel.options, symbol=symbol, module=module)
    return module.to_bytes()


# ------------------------------------------------------------------ signature → types of arguments


def arg_types(kernel: Kernel, signature: KernelSignature) -> list[ArgType]:
    """The type of each parameter, by its constraint and its annotation [EXP-8]."""
    specs = kernel.parameters
    if len(specs) != len(signature.parameters):
        raise ValueError(f"kernel {kernel.__name__} has {len(specs)} parameter(s), the signature has "
                         f"{len(signature.parameters)}")
    return [_arg_type(n, p, spec) for (n, spec), p in zip(specs.items(), signature.parameters, strict=True)]


def _arg_type(name: str, p: ParameterConstraint, spec: ParameterSpec) -> ArgType:
    def need(holds: bool, what: str) -> None:
        if not holds:
            raise TypeError(f"parameter `{name}` is annotated as {what}, but its constraint is a {type(p).__name__}")

    if isinstance(p, TupleConstraint):
        need(not (spec.scalar or spec.array or spec.list), "no tuple")
        if spec.listed is not None and len(spec.listed) != len(p.items):
            raise TypeError(f"parameter `{name}` is annotated as a tuple of {len(spec.listed)} items, its constraint "
                            f"has {len(p.items)}")
        return tuple(_arg_type(f"{name}[{k}]", i, s)
                     for k, (i, s) in enumerate(zip(p.items, spec.items, strict=False)))
    need(not spec.is_tuple, "a tuple")
    need(not spec.constant or isinstance(p, ConstantConstraint), "a constant")
    match p:
        case ConstantConstraint():
            need(not (spec.array or spec.list), "an array or list")
            if spec.scalar:
                _check_fits(name, p.value, spec.scalar.dtype)
            return Embedded(p.value)
        case ScalarConstraint():
            need(not (spec.array or spec.list), "an array or list")
            if spec.scalar and p.dtype is not spec.scalar.dtype:
                raise TypeError(f"parameter `{name}` is annotated as {spec.scalar.dtype.name}, not {p.dtype.name}")
            return TileType(p.dtype)
        case ArrayConstraint():
            need(not (spec.scalar or spec.list), "no array")
            return _array_type(name, p, spec.array or ArrayAnnotation())
        case ListConstraint():
            need(not (spec.scalar or spec.array), "no list")
            return ListType(_array_type(name, p.element, spec.list.element if spec.list else ArrayAnnotation()))
    raise TypeError(f"no parameter for {p!r}")


def _check_fits(name: str, value: bool | int | float, dtype: DType) -> None:
    """Refuse a constant for a parameter that is annotated as an integer, as launches do."""
    if isinstance(value, bool | float):
        raise TypeError(f"parameter `{name}` is annotated as {dtype.name}, but its constant is {value!r}")
    low, high = int_range(dtype)
    if not low <= value <= high:
        raise OverflowError(f"parameter `{name}` is annotated as {dtype.name}, which the constant {value} does not fit")


def _array_type(name: str, p: ArrayConstraint, annotation: ArrayAnnotation) -> ArrayType:
    if INFO[p.dtype].kind == "p":
        raise TypeError(f"parameter `{name}`: no arrays of {p.dtype.name}")
    return ArrayType(p.dtype, p.ndim, p.index_dtype,
                     _static(name, "shape", p.shape_constant, annotation.static_shape_dims),
                     _static(name, "stride", p.stride_constant, annotation.static_stride_dims))


def _static(name: str, what: str, constants: tuple[int | None, ...], dims: tuple[int, ...]) -> tuple[int | None, ...]:
    """The constants of the dims that the annotation lists. Only these are constants in the kernel [ARR-3]."""
    n = len(constants)
    for d in dims:
        if not -n <= d < n:
            raise TypeError(f"parameter `{name}`: static dim {d} is out of range for rank {n}")
        if constants[d] is None:
            raise TypeError(f"parameter `{name}`: dim {d} is annotated as static, so its constraint needs a "
                            f"{what}_constant")
    listed = {d % n for d in dims} if n else set()
    if len(listed) < len(dims):
        raise TypeError(f"parameter `{name}`: static dims {dims} name a dim of rank {n} twice")
    return tuple(c if k in listed else None for k, c in enumerate(constants))
