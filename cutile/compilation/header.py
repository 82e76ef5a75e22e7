"""A C header for an exported kernel: its symbol, its arguments in order, and what callers promise about them.

    from cutile.compilation.header import c_header

    export_kernel(kernel, [signature], "softmax.cubin", gpu_code="sm_90", output_format="cubin")
    Path("softmax.h").write_text(c_header(kernel, [signature]))

The header includes stddef.h and stdint.h only, and is C99 and C++11.
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
from cutile.compilation.derive import of_function
from cutile.compilation.export import by_symbol
from cutile.compilation.signature import KernelSignature
from cutile.dtypes import DType, float32, float64, info, int32, int64, int_range, tfloat32, uint32
from cutile.runtime.kernel import Kernel
from cutile.runtime.launch import no_kernel

_FLOATS = {float32: "float", tfloat32: "float", float64: "double"}
_INDEX = {int32: "int32_t", uint32: "uint32_t", int64: "int64_t"}
# Names a member cannot have: keywords of C and C++ up to C23 and C++23, types that the struct itself uses, and the
# lower-case macros of compilers, of the standard headers and of POSIX, whichever of them are included before.
_TAKEN = frozenset("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
volatile wchar_t while xor xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t B0 I L_ctermid
L_cuserid L_tmpnam P_tmpdir arm complex d_fileno errno far fortran h_addr h_errno hpux hyper i386 imaginary interface
linux math_errhandling mips near noreturn pascal pixel s6_addr s6_addr16 s6_addr32 sched_priority
sigev_notify_attributes sigev_notify_function small sparc st_atime st_ctime st_mtime stderr stdin stdout sun unix vax
vector""".split())
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]{2,}(l|f(\d+x?)?)?|(PRI|SCN|[AP]F_)\w+")  # NULL, M_PIf: macros by custom
_OF_SIGNALS = re.compile(r"(si|sa)_\w+")  # members of siginfo_t and sigaction, many of them macros
_RESERVED = re.compile(r"_[A-Z_]\w*")  # _Bool, __FILE__: of the compiler


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

    `kernel` may be a function made by `ct.jit`, too, as for `export_kernel`.
    ValueError where there is none, where a signature has another number of parameters than the kernel, and where two
    have one symbol.
    """
    kernel, signatures = of_function(kernel, signatures)
    if not isinstance(kernel, Kernel):
        raise TypeError(no_kernel(kernel, "first argument of c_header()"))
    entries = [_entry(kernel, symbol, s) for symbol, s in by_symbol(kernel, signatures).items()]
    _set_apart(entries)
    guard = f"CUTILE_{_identifier(kernel.__name__).upper()}_H"
    file = os.path.basename(kernel.function.__code__.co_filename)
    body = "\n".join(map(_text, entries))
    return (f"/* Kernel {kernel.__name__} of {_comment(file)}, as exported by cutile. Generated: do not edit. */\n"
            f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n\n{body}\n#endif\n")


def _identifier(name: str) -> str:
    """A C identifier made from a name, or from the beginning of one."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{word}" if word[:1].isdigit() else word


def _member(name: str) -> str:
    """A name of a parameter as a member of a struct, which no keyword, no macro and no compiler claims."""
    word = _identifier(name)
    if _RESERVED.fullmatch(word):
        return f"a{word}"
    claimed = word in _TAKEN or _CAPITALS.fullmatch(word) or _OF_SIGNALS.fullmatch(word)
    return f"{word}_" if claimed else word


def _set_apart(entries: Sequence[_Entry]) -> None:
    """Make the entries' names differ in C, where symbols may differ only in capitals or in a $."""
    taken: set[str] = set()
    for e in entries:
        while e.name.upper() in taken:
            e.name += "_"
        taken.add(e.name.upper())


# ------------------------------------------------------------------ signature → what the header says


def _entry(kernel: Kernel, symbol: str, signature: KernelSignature) -> _Entry:
    names = list(kernel.parameters)
    if len(names) != len(signature.parameters):
        raise ValueError(f"kernel {kernel.__name__} has {len(names)} parameter(s), the signature has "
                         f"{len(signature.parameters)}")
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
            yield _member(name), p


def _distinct(passed: Iterator[tuple[str, ParameterConstraint]]) -> Iterator[tuple[str, ParameterConstraint]]:
    """Append underscores where two would share a member, as an array x and a number x_size."""
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
        if low is not None and low > int_range(p.index_dtype)[0]:  # compilers warn of conditions that are always true
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
    """Text for a comment: without what ends or begins a comment, and without what UTF-8 cannot encode."""
    return text.replace("*/", "* /").replace("/*", "/ *").encode(errors="backslashreplace").decode()
