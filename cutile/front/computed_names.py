"""What static code may look up without naming it: by names that it computes, and by names that a class gets later."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Set
from typing import Any

from cutile.front.bytecode_names import Use

# With these, code looks up names that it computes; with the others of globals, too.
_OF_GLOBALS = (builtins.globals, builtins.eval, builtins.exec)
_OF_OBJECTS = (builtins.getattr, builtins.hasattr, builtins.vars, builtins.dir, operator.attrgetter,
               operator.methodcaller, inspect.getattr_static, inspect.getmembers)
ATTRIBUTES = frozenset({"__dict__", "__getattribute__"})
_OF_MODULES = (builtins, operator, inspect)  # code that holds one of these may use any of these functions
_BY_ID = {id(f): f for f in (*_OF_GLOBALS, *_OF_OBJECTS, *_OF_MODULES)}
_LAZY = frozenset({"__annotations__", "__annotations_cache__", "__annotate__", "__annotate_func__", "__doc__",
                   "__signature__"})  # Python and tools make these when they are first read


def looks_up(obj: Any) -> bool:
    """Whether code with this function or module, or an object of this class, may look up names that it computes."""
    return id(obj) in _BY_ID or type(obj) in (operator.attrgetter, operator.methodcaller)


def reads_constant_names(obj: Any, code: types.CodeType, use: Use) -> bool:
    """Whether `code` only calls getattr or hasattr, which its name `use` denotes, with names that it holds."""
    return (obj is builtins.getattr or obj is builtins.hasattr) and not use.attributes and _constant(code, use.name)


@functools.lru_cache(maxsize=1024)
def _constant(code: types.CodeType, name: str) -> bool:
    """Whether code calls `name` with a string constant as second argument wherever it loads it."""
    instructions = list(dis.get_instructions(code))
    return all(_second_is_text(instructions[k + 1:]) for k, i in enumerate(instructions)
               if i.argval == name and i.opname.startswith("LOAD_") and i.opname != "LOAD_CONST") and all(
        _constant(c, name) for c in code.co_consts if isinstance(c, types.CodeType))


def _second_is_text(rest: Iterable[dis.Instruction]) -> bool:
    """Whether the function that was loaded before these instructions is called with a string constant as second
    argument. False too where the arguments hold jumps, or anything else that is not known.
    """
    depth, second = 0, None  # values on the stack above the function
    for i in rest:
        if i.opname in ("PRECALL", "CALL") and i.arg == depth:
            return depth in (2, 3) and second is not None and second.opname == "LOAD_CONST" \
                and type(second.argval) is str
        if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs or depth < 0:
            return False
        before, depth = depth, depth + dis.stack_effect(i.opcode, i.arg)
        if i.opname == "PUSH_NULL" and not before:  # belongs to the function
            depth = 0
        elif depth == 2:
            second = i if before == 1 else None
    return False


def looks_up_globals(obj: Any) -> bool:
    """Whether a function that names this one, or this module, may look up globals by names that it computes."""
    return any(obj is f for f in (*_OF_GLOBALS, builtins))


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def noticed_names(names: Set[str] | None, functions: tuple[type, ...]) -> Callable[[type], tuple[str, ...]]:
    """A reader of those names in a class that static code may notice: `names` (None: all names), names of special
    methods, and names of values, which are no `functions`. It looks at values only where the names have changed.
    """
    known: tuple[str, ...] = ()
    noticed: tuple[str, ...] = ()

    def read(cls: type) -> tuple[str, ...]:
        nonlocal known, noticed
        now = tuple(vars(cls))
        if now != known:
            noticed = tuple(n for n, v in list(vars(cls).items()) if n not in _LAZY and (
                names is None or n in names or is_special(n) or not isinstance(v, functions)))
            known = now
        return noticed

    return read


def names_in(space: dict[str, Any]) -> tuple[str, ...]:
    """The names in the globals of a module, apart from special ones, which the import system sets."""
    return tuple(n for n in list(space) if not is_special(n))
