"""A C header for an exported kernel: its symbol, its arguments in order, and what callers promise about them.

    from cutile.compilation.header import c_header

    export_kernel(kernel, [signature], "softmax.cubin", gpu_code="sm_90", output_format="cubin")
    Path("softmax.h").write_text(c_header(kernel, [signature]))

The header needs no other than stdint.h, and is C99 and C++11.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cutile.compilation.constraints import (
    ArrayConstraint,
    ConstantConstraint,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
)
from cutile.compilation.signature import KernelSignature
from cutile.dtypes import DType, float32, float64, info, int32, int64, tfloat32, uint32
from cutile.kernel import Kernel

_FLOATS = {float32: "float", tfloat32: "float", float64: "double"}
_INDEX = {int32: "int32_t", uint32: "uint32_t", int64: "int64_t"}
# What is no name of a parameter in C or C++.
_KEYWORDS = frozenset("""alignas alignof and asm auto bool break case catch char class compl concept const constexpr
continue decltype default delete do double else enum explicit export extern false float for friend goto if inline int
long mutable namespace new noexcept not nullptr operator or private protected public register requires restrict return
short signed sizeof static struct switch template this throw true try typedef typeid typename union unsigned using
virtual void volatile while xor""".split())


@dataclass
class _Entry:
    """What the header says about one entry point.

    members   declarations of the struct, each with a comment;  arguments: C expressions of what is passed, in order
    promises  conditions in C that must hold;  notes: lines about what C cannot check
    """

    name: str
    symbol: str
    call: str
    members: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    promises: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def c_header(kernel: Kernel, signatures: Sequence[KernelSignature]) -> str:
    """The text of the header: for each signature a struct of its arguments, and functions that check and pass them.

    ValueError where a signature has another number of parameters than the kernel.
    """
    entries = [_entry(kernel, s) for s in signatures]
    guard = f"CUTILE_{_identifier(kernel.__name__).upper()}_H"
    file = os.path.basename(kernel.function.__code__.co_filename)
    body = "\n".join(map(_text, entries))
    return (f"/* Kernel {kernel.__name__} of {file}, as exported by cutile. Generated: do not edit. */\n"
            f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n\n{body}\n#endif\n")


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{word}_" if word in _KEYWORDS else f"_{word}" if word[:1].isdigit() else word


# ------------------------------------------------------------------ signature → what the header says


def _entry(kernel: Kernel, signature: KernelSignature) -> _Entry:
    names = list(kernel.parameters)
    if len(names) != len(signature.parameters):
        raise ValueError(f"kernel {kernel.__name__} has {len(names)} parameter(s), the signature has "
                         f"{len(signature.parameters)}")
    symbol = signature.symbol or signature.with_mangled_symbol(kernel.__name__).symbol
    given = list(zip(names, signature.parameters, strict=True))
    call = ", ".join(f"{n}={p.value!r}" if isinstance(p, ConstantConstraint) else n for n, p in given)
    entry = _Entry(_identifier(symbol), symbol, f"{kernel.__name__}({call})")
    passed = list(_distinct(_passed(given)))
    for name, p in passed:
        _MEMBERS[type(p)](entry, name, p)
    entry.notes += _aliasing(passed)
    return entry


def _passed(given: Sequence[tuple[str, ParameterConstraint]]) -> Iterator[tuple[str, ParameterConstraint]]:
    """What is passed, under the names of the struct: items of a tuple t are t_0, t_1; constants are not passed."""
    for name, p in given:
        if isinstance(p, TupleConstraint):
            yield from _passed([(f"{name}_{k}", item) for k, item in enumerate(p.items)])
        elif not isinstance(p, ConstantConstraint):
            yield _identifier(name), p


def _distinct(passed: Iterator[tuple[str, ParameterConstraint]]) -> Iterator[tuple[str, ParameterConstraint]]:
    """With underscores where two would share a member: an array x and a number x_size."""
    taken: set[str] = set()
    for name, p in passed:
        while taken & (members := {name, *(f"{name}_{what}" for what in ("size", "stride", "length"))}):
            name += "_"
        taken |= members
        yield name, p


def _scalar(e: _Entry, name: str, p: ScalarConstraint) -> None:
    c_type, comment = _c_type(p.dtype)
    e.members.append((f"{c_type} {name};", comment))
    e.arguments.append(name)


def _c_type(dtype: DType) -> tuple[str, str]:
    """How a number is passed, and what it is."""
    i = info(dtype)
    if dtype in _FLOATS:
        return _FLOATS[dtype], dtype.name
    if i.floating:
        return f"uint{max(dtype.bitwidth, 8)}_t", f"the bits of a {dtype.name}"
    if dtype.name == "bool_":
        return "int32_t", "bool_: 0 or 1"
    return f"{dtype.name}_t", dtype.name


def _array(e: _Entry, name: str, p: ArrayConstraint) -> None:
    index, n = _INDEX[p.index_dtype], p.ndim
    e.members.append((f"uint64_t {name};", f"device address of an array of {p.dtype.name}, rank {n}"))
    e.arguments.append(name)
    if n:
        e.members += [(f"{index} {name}_size[{n}];", "elements along each dimension"),
                      (f"{index} {name}_stride[{n}];", "elements from one to the next along each dimension")]
        e.arguments += [f"{name}_{what}[{k}]" for what in ("size", "stride") for k in range(n)]
    e.promises += [condition.format(name) for condition in _conditions(p)]
    if not p.may_alias_internally:
        e.notes.append(f"no two elements of {name} share memory")


def _conditions(p: ArrayConstraint) -> Iterator[str]:
    """What holds of an array, in C; {} stands for its name."""
    if p.base_addr_divisible_by > 1:
        yield f"{{}} % {p.base_addr_divisible_by} == 0"
    for k in range(p.ndim):
        for what, constant, divisor in (("size", p.shape_constant[k], p.shape_divisible_by[k]),
                                        ("stride", p.stride_constant[k], p.stride_divisible_by[k])):
            if constant is not None:
                yield f"{{}}_{what}[{k}] == {constant}"
            if divisor > 1:
                yield f"{{}}_{what}[{k}] % {divisor} == 0"
        low = p.stride_lower_bound_incl[k]
        if low is not None and (low > 0 or p.index_dtype is not uint32):
            yield f"{{}}_stride[{k}] >= {low}"


def _list(e: _Entry, name: str, p: ListConstraint) -> None:
    n, element = p.element.ndim, p.element
    e.members += [(f"uint64_t {name};", f"device address of a table of arrays of {element.dtype.name}, rank {n}"),
                  (f"int32_t {name}_length;", "how many arrays it has")]
    e.arguments += [name, f"{name}_length"]
    e.notes.append(f"the table {name} has {1 + 2 * n} 64-bit words for each array: its device address, {n} size(s), "
                   f"{n} stride(s)")
    e.notes += [f"for each array a of {name}: {c.format('a')}" for c in _conditions(element)]
    if not p.elements_may_alias:
        e.notes.append(f"the arrays of {name} share no memory")


_MEMBERS = {ScalarConstraint: _scalar, ArrayConstraint: _array, ListConstraint: _list}


def _aliasing(passed: Sequence[tuple[str, ParameterConstraint]]) -> Iterator[str]:
    """Which arrays may share memory."""
    groups: dict[str, list[str]] = {}
    arrays = [(n, p) for n, p in passed if not isinstance(p, ScalarConstraint)]
    for name, p in arrays:
        for g in dict.fromkeys((*p.alias_groups, *(p.element.alias_groups if isinstance(p, ListConstraint) else ()))):
            groups.setdefault(g, []).append(name)
    for names in groups.values():
        yield f"{', '.join(dict.fromkeys(names))} may share memory"
    if len(arrays) > 1:
        yield "no other arrays share memory" if groups else "no two arrays share memory"


# ------------------------------------------------------------------ text


def _text(e: _Entry) -> str:
    n, upper = len(e.arguments), e.name.upper()
    width = max((len(d) for d, _ in e.members), default=0)
    members = [f"    {d:{width}}  /* {comment} */" for d, comment in e.members]
    broken = [f'    if (!(a->{p})) return "{p}";' for p in e.promises]
    filled = [f"    p[{k}] = &a->{x};" for k, x in enumerate(e.arguments)]
    notes = [f" * - {note}" for note in e.notes]
    return "\n".join([
        f"/* {_comment(e.call)}", " *",
        *([" * Its caller promises, besides what the function _broken checks:", *notes, " *"] if notes else []),
        " * A unit of the grid is one tile block; how many threads run it is in the code, so blocks have size 1:", " *",
        f" *     void *p[{upper}_ARGUMENTS + 1];",
        f" *     {e.name}_pointers(&arguments, p);",
        " *     cuLaunchKernel(function, grid_x, grid_y, grid_z, 1, 1, 1, 0, stream, p, NULL);", " */",
        f'#define {upper}_SYMBOL "{e.symbol}"',
        f"#define {upper}_ARGUMENTS {n}", "",
        "typedef struct {", *(members or ["    char none;  /* C has no empty structs */"]),
        f"}} {e.name}_arguments;", "",
        "/* The first promise that does not hold, or NULL. */",
        f"static inline const char *{e.name}_broken(const {e.name}_arguments *a) {{",
        *(broken or ["    (void)a;"]), "    return NULL;", "}", "",
        "/* The arguments in order, for the parameter kernelParams of cuLaunchKernel. */",
        f"static inline void {e.name}_pointers({e.name}_arguments *a, void **p) {{",
        *(filled or ["    (void)a; (void)p;"]), "}", ""])


def _comment(text: str) -> str:
    return text.replace("*/", "* /")
