"""What a typed program depends on outside itself, so that nothing stale is launched [DESIGN §7, CONST-4].

Names and attributes are compared by identity. What real Python code in a static construct may find is followed as far
as it reaches, and compared by its contents (object_state.py).
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import operator
import sys
import types
from collections.abc import Callable, Set
from typing import Any, NamedTuple

from cutile.errors import TileStaticEvalError
from cutile.front import object_state
from cutile.front.bytecode_names import FREE, IMPORT, Use, mentioned, uses
from cutile.front.object_state import Held
from cutile.front.scope import MISSING

LIMIT = 100_000  # objects that one program's static code may reach, all of which a launch compares
_MISSING = itertools.repeat(MISSING)
_SIMPLE = (dict, types.FunctionType, types.CellType)
# What a class has that does nothing until it is asked for by its name.
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)


class _Reached(NamedTuple):
    """An object that static code may reach, by an attribute (None: in another way), and what messages call it."""

    obj: Any
    attribute: str | None
    name: str


class Dependencies:
    """What a compilation read from outside the kernel, so that a launch can see whether any of it has changed.

    `home` is the kernel's module: its package counts as the user's code wherever it is installed.
    """

    def __init__(self, home: str = "") -> None:
        self._home = object_state.root_of(home)
        self._seen: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self._held: dict[tuple[int, Any], Held] = {}
        self._arranged: tuple[tuple, tuple, list] | None = None  # what `unchanged` made of it
        self._kept: dict[int, Any] = {}  # what static code may reach, by ids, which are its own while it is kept
        self._reached: set[tuple[int, str | None]] = set()  # and by which attributes
        self._pending: list[_Reached] = []  # what is to be followed
        self._names: set[str] = set()  # of attributes that static code reads or sets
        self._read: set[str] = set()  # those that it reads
        self._owners: dict[int, Any] = {}  # the classes and modules that it may ask for them
        self._unseen: list[tuple[str, str, str]] = []  # attributes with what cannot be compared, what it is, and where
        self._count = 0

    def add(self, container: Any, key: Any, obj: Any, again: bool = False) -> None:
        """`container` is a cell (key None), a dict, or an object whose attribute `key` was read; `again`, if what was
        read there before does not count any more.
        """
        if type(container) is types.ModuleType and key in vars(container):
            container = vars(container)  # the same, but looked up quickly
        if again:
            self._seen.pop((id(container), key), None)
        self._seen.setdefault((id(container), key), (container, key, obj))
        self._arranged = None

    # ------------------------------------------------------------------ what static code may find

    def follow(self, code: types.CodeType, find: Callable[[Use], Any]) -> None:
        """Python code will be run: `find` says what a name from outside denotes there; MISSING for nothing that counts.

        TileStaticEvalError if some of what the code may reach cannot be compared at launches.
        """
        for use in uses(code):
            if (obj := find(use)) is not MISSING:
                self._mention(code)
                self.reach(self._along(obj, use.attributes), use.name)

    def reach(self, obj: Any, name: str) -> None:
        """Python code may do anything with `obj`, which is called `name`: all that it holds counts, too."""
        self._pending.append(_Reached(obj, None, name))
        self._follow_pending()

    def _follow_pending(self) -> None:
        while self._pending:
            obj, attribute, name = reached = self._pending.pop()
            at = id(obj)
            if object_state.is_atom(obj) or (at, None) in self._reached or (at, attribute) in self._reached:
                continue
            if at not in self._kept:
                self._kept[at] = obj
                self._count += 1
            self._reached.add((at, attribute))
            self._one(reached)
            if self._count > LIMIT:
                raise TileStaticEvalError(
                    f"static code reads more than {LIMIT:,} objects through `{name}`; each launch compares all of them "
                    "with what they were",
                    help="compute before the kernel what it needs of them, and read that; an array of numbers counts "
                         "as one object")
        for attribute, what, name in self._unseen:
            if attribute in self._read:
                raise _not_seen(what, name)

    def accept(self) -> None:
        """Static code has run. What it changed itself, such as a counter or a table that it keeps results in, is no
        change: launches compare with what it left.
        """
        for at, (container, key, then) in list(self._seen.items()):
            now = _look(container, key)
            if now is not then:
                _leave(at, container, then, now)
                self.add(container, key, now, again=True)
                self._pending.append(_Reached(now, key, str(key)))
        for at, then in list(self._held.items()):
            if not then.same():
                name = type(then.obj).__name__
                try:
                    now = self._held[at] = object_state.held(then.obj, then.take)
                except Exception as e:
                    raise _not_seen(f"an object of type {name} that is not there any more ({e})", name) from e
                _leave(at, then.obj, then, now)
                self._pending += (_Reached(item, by, name) for item, by in now.items(None)
                                  if type(item) not in object_state.ATOMS)
        self._follow_pending()

    def _one(self, reached: _Reached) -> None:
        obj, attribute, name = reached
        cls = type(obj)
        if cls is types.FunctionType:
            return self._function(obj, name)
        if issubclass(cls, types.ModuleType | type):
            return self._owner(obj)
        if (what := object_state.unseen(obj)) is not None:
            if attribute is None:
                raise _not_seen(what, name)
            self._unseen.append((attribute, what, f"{name}.{attribute}"))
            return None
        try:
            parts = list(object_state.parts(obj))
        except Exception as e:
            raise _not_seen(f"an object of type {cls.__name__} that cannot be looked at ({e})", name) from e
        for part in parts:
            if (id(obj), part.take) not in self._held:
                self._held[id(obj), part.take] = part
                self._count += len(part)
            self._pending += (_Reached(item, by, name) for item, by in part.items(attribute)
                              if type(item) not in object_state.ATOMS)
        return self._owner(cls)

    def _mention(self, code: types.CodeType) -> None:
        read, written = mentioned(code)
        self._read |= read
        new = (read | written) - self._names
        if new:
            self._names |= new
            for owner in list(self._owners.values()):
                self._members(owner, new)

    def _owner(self, owner: Any) -> None:
        """A class or module of the user's, whose members by the names that code mentions count."""
        if id(owner) in self._owners:
            return
        if not isinstance(owner, type):
            if self._is_users(owner.__name__):
                self._owners[id(owner)] = owner
                self._members(owner, {*self._names, "__getattr__"})
            return
        for cls in owner.__mro__:
            if id(cls) not in self._owners and self._is_users(cls.__module__):
                self._owners[id(cls)] = cls
                self._class(cls)
                self._members(cls, self._names)

    def _class(self, cls: type) -> None:
        """What a class holds besides functions, and what Python calls of it without naming it."""
        for name, value in list(vars(cls).items()):
            special = name.startswith("__") and name.endswith("__")
            if special == isinstance(value, _FUNCTIONS) and type(value) is not types.MemberDescriptorType:
                self.add(cls, name, value)
                self._pending.append(_Reached(value, name, f"{cls.__name__}.{name}"))

    def _members(self, owner: Any, names: Set[str]) -> None:
        if isinstance(owner, types.ModuleType):
            for name in names:
                obj = vars(owner).get(name, MISSING)
                self.add(vars(owner), name, obj)
                self._pending.append(_Reached(obj, name, f"{owner.__name__}.{name}"))
            return
        for cls in owner.__mro__:
            if self._is_users(cls.__module__):
                for name in names & vars(cls).keys():
                    self.add(owner, name, _of_class(owner, name))
                    self._pending.append(_Reached(vars(cls)[name], name, f"{cls.__name__}.{name}"))

    def _function(self, fn: types.FunctionType, name: str) -> None:
        """What a function that Python runs reads: its code, its defaults, its closure, its globals.

        What the globals of a function of an installed library hold does not count.
        """
        users = self._is_users(fn.__globals__.get("__name__"))
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self.add(fn, part, getattr(fn, part))
        for held in (fn.__defaults__, fn.__kwdefaults__, fn.__dict__ or None):
            self._pending.append(_Reached(held, None, name))
        if users:
            self._mention(fn.__code__)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        for use in uses(fn.__code__):
            obj = self._find(fn, cells, use)
            if (users or use.how == FREE) and obj is not MISSING:
                self._pending.append(_Reached(self._along(obj, use.attributes), None, use.name))

    def _find(self, fn: types.FunctionType, cells: dict[str, types.CellType], use: Use) -> Any:
        """What a name denotes in a function."""
        if use.how == IMPORT:
            inner = f"{fn.__globals__.get('__package__')}.{use.name}".rstrip(".")
            name = use.name if use.name in sys.modules else inner
            obj = sys.modules.get(name, MISSING)
            self.add(sys.modules, name, obj)
            return obj
        if use.how == FREE:
            obj = _look(cells[use.name], None)
            self.add(cells[use.name], None, obj)
            return obj
        obj = fn.__globals__.get(use.name, MISSING)
        self.add(fn.__globals__, use.name, obj)  # also where a global may come to hide a builtin
        return obj if obj is not MISSING else getattr(builtins, use.name, MISSING)

    def _along(self, obj: Any, attributes: tuple[str, ...]) -> Any:
        """The object that `obj.a.b` is, as far as attributes are plain: from there on anything may happen."""
        for name in attributes:
            found = self._attribute(obj, name)
            if found is MISSING:
                return obj
            obj = found
        return obj

    def _attribute(self, obj: Any, name: str) -> Any:
        """The value of an attribute that is found without running code, and is what the next launch looks at; else
        MISSING.
        """
        if isinstance(obj, types.ModuleType):
            found = vars(obj).get(name, MISSING)
        elif (take := object_state.metadata(obj, name)) is not None:
            self._held[id(obj), take] = object_state.held(obj, take)
            return None  # nothing to follow
        elif isinstance(obj, type):
            found = _of_class(obj, name) if _is_plain(type(obj), name) else MISSING
            if hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType):
                return MISSING
        else:
            found = _own(obj, name) if _is_plain(type(obj), name) else MISSING
        if found is not MISSING:
            self.add(obj, name, found)
        return found

    def _is_users(self, module: Any) -> bool:
        root = object_state.root_of(module)
        return root == self._home or not object_state.is_installed(root)

    def settle(self) -> None:
        """Nothing more will be read: what only served to follow objects goes."""
        for helper in (self._kept, self._reached, self._owners, self._names, self._read, self._unseen):
            helper.clear()

    # ------------------------------------------------------------------ at launches

    def unchanged(self) -> bool:
        """Everything read still denotes the same object, and mutable objects hold what they held."""
        (dicts, names, objs), (owners, attributes, values), others = self._arranged or self._arrange()
        if not all(map(operator.is_, map(dict.get, dicts, names, _MISSING), objs)) \
                or not all(map(operator.is_, map(getattr, owners, attributes, _MISSING), values)) \
                or any(_look(container, key) is not obj for container, key, obj in others) \
                or self._held and not all(map(Held.same, self._held.values())):
            return self._left_so()
        return True

    def _left_so(self) -> bool:
        """Whether static code, of any program, has made all the changes since: then they count as none."""
        rows, helds = {}, {}
        for at, (container, key, then) in self._seen.items():
            now = _look(container, key)
            if now is not then:
                if _last(at, container, then) is not now:
                    return False
                rows[at] = container, key, now
        for at, then in self._held.items():
            if not then.same():
                last = _last(at, then.obj, then)
                if last is _NOTHING or not last.same():
                    return False
                helds[at] = last
        self._seen.update(rows)
        self._held.update(helds)
        self._arranged = None
        return True

    def _arrange(self) -> tuple[tuple, tuple, list]:
        """What `unchanged` compares: columns of dictionary entries (most of them globals), columns of plain attributes,
        and the rows that fit neither.
        """
        found, plain, others = [], [], []
        for row in self._seen.values():
            container, key, _ = row
            if type(container) is dict:
                found.append(row)
            else:
                (plain if _is_quick(*row) else others).append(row)
        self._arranged = _columns(found), _columns(plain), others
        return self._arranged

    def comparisons(self) -> tuple | Callable[[], bool]:
        """What `unchanged` compares, for the C launcher, which compares it without calling Python.

        One flat tuple of triples: a container, a key or attribute in it, and the object that must be found there; the
        container itself where nothing must be found. Dependencies that need more than that give `unchanged` itself.
        """
        found = [(c, "cell_contents" if k is None else k, c if type(c) is dict and obj is MISSING else obj)
                 for c, k, obj in self._seen.values()]
        simple = all((type(c) in _SIMPLE and type(k) is str or _is_quick(c, k, obj)) and obj is not MISSING
                     for c, k, obj in found) and not any(c is obj for c, _, obj in self._seen.values())
        return tuple(itertools.chain.from_iterable(found)) if simple and not self._held else self.unchanged

    def __len__(self) -> int:
        return len(self._seen)


# ------------------------------------------------------------------ what static code has changed itself

STATES, OBJECTS = 64, 1000  # of an object that are remembered, and objects
_NOTHING = object()
_left: dict[tuple[int, Any], tuple[Any, list]] = {}  # an object, and what static code made of it, the latest last


def _leave(at: tuple[int, Any], obj: Any, before: Any, now: Any) -> None:
    """Static code has changed what was `before`."""
    owner, states = _left.get(at, (None, []))
    if owner is not obj or states[-1] is not before:
        states = [before]
    if len(_left) >= OBJECTS:
        _left.clear()
    _left[at] = obj, [*states[1 - STATES:], now]


def _last(at: tuple[int, Any], obj: Any, before: Any) -> Any:
    """What static code alone has made of what was `before`; _NOTHING if others may have changed it, too."""
    owner, states = _left.get(at, (None, []))
    return states[-1] if owner is obj and any(s is before for s in states) else _NOTHING


def _not_seen(what: str, name: str) -> TileStaticEvalError:
    return TileStaticEvalError(
        f"static code reads {what} through `{name}`: a launch could not see whether it has changed",
        help="read it before the kernel, and let static code read the result; or pass it as a kernel argument")


def _columns(rows: list[tuple]) -> tuple:
    return tuple(zip(*rows, strict=True)) or ((), (), ())


def _is_quick(container: Any, key: Any, obj: Any) -> bool:
    """Whether `getattr` finds what was found, without running code."""
    cls = type(container)
    if type(key) is not str or issubclass(cls, types.ModuleType):
        return False
    if cls is type and type(obj) is types.FunctionType:
        return True
    if issubclass(cls, type):
        return _is_plain(cls, key) and (type(obj) is types.FunctionType or not hasattr(type(obj), "__get__"))
    return cls is types.FunctionType or _is_plain(cls, key) and _own(container, key) is not MISSING


def _is_plain(cls: type, name: str) -> bool:
    """Whether an attribute of instances is looked up as `object` does, and not made by a descriptor of the class."""
    if cls.__getattribute__ not in _LOOKUPS or name.startswith("__"):
        return False
    raw = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), MISSING)
    return type(raw) is types.MemberDescriptorType or not hasattr(type(raw), "__get__")


_LOOKUPS = (object.__getattribute__, types.FunctionType.__getattribute__, type.__getattribute__)


def _own(obj: Any, name: str) -> Any:
    """A plain attribute; MISSING where only a method __getattr__ might find one."""
    for c in type(obj).__mro__:
        if name in vars(c):
            return getattr(obj, name, MISSING)
    space = getattr(obj, "__dict__", None)
    return space.get(name, MISSING) if type(space) is dict else MISSING


def _of_class(cls: type, name: str) -> Any:
    """As `inspect.getattr_static`, which takes ten times as long where there is one."""
    for c in cls.__mro__:
        if name in c.__dict__:
            return c.__dict__[name]
    return inspect.getattr_static(cls, name, MISSING)


def _look(container: Any, key: Any) -> Any:
    try:
        if key is None:
            return container.cell_contents
        if type(container) is dict:
            return container.get(key, MISSING)
        if isinstance(container, type):
            return _of_class(container, key)
        return getattr(container, key, MISSING)
    except ValueError:  # an empty cell
        return MISSING
