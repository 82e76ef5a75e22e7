"""What a typed program depends on outside its kernel: a launch compares it, and types the kernel again if it changed.

The objects that names and attributes denote are compared by identity [CONST-4]. Objects that the Python code of static
constructs can reach are found by following its references, and are compared by their contents (object_state.py).
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
import sys
import types
from collections.abc import Callable, Set
from typing import Any, NamedTuple

from cutile.errors import TileStaticEvalError
from cutile.front import computed_names, object_state
from cutile.front.attribute_lookup import class_attribute, is_plain_attribute, is_plain_lookup, look_up, own_attribute
from cutile.front.bytecode_names import FREE, IMPORT, Use, mentioned, uses
from cutile.front.object_state import Snapshot
from cutile.front.scope import MISSING

LIMIT = 100_000  # objects that the static code of one program may reach; each launch compares all of them
_MISSING = itertools.repeat(MISSING)
_SIMPLE = (dict, types.FunctionType, types.CellType)
# Functions in classes are dependencies only if code names them.
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property)


class _Reached(NamedTuple):
    """An object that static code may reach, the attribute that it was reached by (None: it is held by name, item or
    closure), and its name. `unnamed`: only a computed name leads to it, so that what it reaches need not be comparable.
    """

    obj: Any
    attribute: str | None
    name: str
    unnamed: bool = False


class Dependencies:
    """What a compilation read from outside the kernel.

    `home` is the kernel's module. Its package counts as the user's code even if it is installed.
    """

    def __init__(self, home: str = "") -> None:
        self._home = object_state.root_of(home)
        self._lookups: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self._snapshots: dict[tuple[int, Any], Snapshot] = {}
        self._by_kind: tuple[tuple, tuple, list] | None = None  # the lookups, as `unchanged` compares them
        # While static code is followed:
        self._kept: dict[int, Any] = {}  # objects that it may reach, by id; keeping them keeps their ids unique
        self._reached: set[tuple[int, str | None]] = set()  # their ids, with the attributes that lead to them
        self._pending: list[_Reached] = []  # objects that are still to be followed
        self._names: set[str] = set()  # attributes that static code reads
        self._read: set[str] = set()  # those that code reads which is reached by name
        self._computes = False  # whether it looks up names that it computes
        self._owners: dict[int, Any] = {}  # the user's classes and modules that it may read attributes in `_names` from
        self._unobservable: list[tuple[str, str, str]] = []  # what cannot be compared: attribute, description, name
        self._count = 0
        self._runs = 0  # how often static code has run since the last comparison

    def add(self, container: Any, key: Any, obj: Any, again: bool = False) -> None:
        """The program depends on finding `obj` in `container`: a cell (key None), a dict, or an object with attribute
        `key`. `again`: the new entry replaces the earlier one.
        """
        if type(container) is types.ModuleType and key in vars(container):
            container = vars(container)  # the same lookup, but faster
        at = (id(container), key)
        if again or at not in self._lookups:
            self._lookups[at] = container, key, obj
            self._by_kind = None

    def includes(self, cell: types.CellType) -> bool:
        """Whether the program depends on what a variable of a Python function holds."""
        return (id(cell), None) in self._lookups

    # ------------------------------------------------------------------ following static code

    def follow(self, code: types.CodeType, find: Callable[[Use], Any]) -> None:
        """The program depends on all that `code`, which will run as Python, may reach from its free names.

        `find` gives the object that a name denotes, or MISSING if the program does not depend on it.
        TileStaticEvalError if an object that the code may reach cannot be compared at launches.
        """
        for use in uses(code):
            if (obj := find(use)) is not MISSING:
                self._mention(code)
                found = self._follow_attributes(obj, use.attributes)
                if not computed_names.reads_constant_names(found, code, use):
                    self.reach(found, use.name)

    def reach(self, obj: Any, name: str) -> None:
        """The program depends on `obj` and all that it holds, since Python code may do anything with it."""
        self._pending.append(_Reached(obj, None, name))
        self._follow_pending()

    def _follow_pending(self) -> None:
        while self._pending:
            obj, attribute, name, _ = reached = self._pending.pop()
            at = id(obj)
            if computed_names.looks_up(obj):
                self._compute()
            if object_state.is_atom(obj) or (at, None) in self._reached or (at, attribute) in self._reached:
                continue
            if at not in self._kept:
                self._kept[at] = obj
                self._count += 1
            self._reached.add((at, attribute))
            self._follow(reached)
            if self._count > LIMIT:
                raise TileStaticEvalError(
                    f"static code reads more than {LIMIT:,} objects through `{name}`; each launch compares all of them "
                    "with what they were",
                    help="compute before the kernel what it needs of them, and read that; an array of numbers counts "
                         "as one object")
        for attribute, what, name in self._unobservable:
            if attribute in self._read:
                raise _cannot_be_compared(what, name)

    def accept_changes(self, last: bool = False) -> None:
        """Static code has run: take what it has changed itself (a counter, a table of results) as the state that
        launches compare with.

        All that was read is compared, so of a long program not after each run, but for every 16 things once; `last`:
        nothing more will run.
        """
        self._runs += not last
        if not self._runs or not last and 16 * self._runs < len(self._snapshots) + len(self._lookups):
            return
        self._runs = 0
        for at, (container, key, then) in () if self._finds_the_same() else list(self._lookups.items()):
            now = look_up(container, key)
            if now is not then:
                _record_change(at, container, then, now)
                self.add(container, key, now, again=True)
                self._pending.append(_Reached(now, key, str(key)))
        for at, then in list(self._snapshots.items()):
            if not then.same():
                name = type(then.obj).__name__
                try:
                    now = self._snapshots[at] = object_state.snapshot(then.obj, then.read)
                except Exception as e:
                    raise _cannot_be_compared(f"an object of type {name} that is not there any more ({e})", name) from e
                _record_change(at, then.obj, then, now)
                self._pending += (_Reached(item, by, name) for item, by in now.items(None)
                                  if type(item) not in object_state.ATOMS)
        self._follow_pending()

    def _follow(self, reached: _Reached) -> None:
        """Follow one object."""
        obj, attribute, name, unnamed = reached
        cls = type(obj)
        if cls is types.FunctionType:
            return self._function(obj, name, unnamed)
        if issubclass(cls, types.ModuleType | type):
            return self._add_members_of(obj)
        if (what := object_state.unobservable(obj)) is not None:
            if attribute is None:
                raise _cannot_be_compared(what, name)
            self._unobservable.append((attribute, what, f"{name}.{attribute}"))
            return None
        try:
            parts = list(object_state.parts(obj))
        except Exception as e:
            raise _cannot_be_compared(f"an object of type {cls.__name__} that cannot be looked at ({e})", name) from e
        for part in parts:
            if part.may_change and (id(obj), part.read) not in self._snapshots:
                self._snapshots[id(obj), part.read] = part
                self._count += len(part)
            self._pending += (_Reached(item, by, name, unnamed) for item, by in part.items(attribute)
                              if type(item) not in object_state.ATOMS)
        return self._add_members_of(cls)

    def _mention(self, code: types.CodeType, unnamed: bool = False) -> None:
        """From now on, members with names that `code` mentions are dependencies."""
        if not unnamed:
            self._read |= mentioned(code)
        new = mentioned(code) - self._names
        if new:
            self._names |= new
            for owner in list(self._owners.values()):
                self._members(owner, new)
        if not computed_names.ATTRIBUTES.isdisjoint(new):
            self._compute()

    def _compute(self) -> None:
        """From now on, all members of classes and modules are dependencies."""
        if not self._computes:
            self._computes = True
            for owner in list(self._owners.values()):
                self._all_members(owner)

    def _add_members_of(self, owner: Any) -> None:
        """Static code may reach a class or module. If it is the user's, members that code mentions are dependencies."""
        if id(owner) in self._owners:
            return
        if not isinstance(owner, type):
            if self._is_users(owner.__name__):
                self._owners[id(owner)] = owner
                self._members(owner, {*self._names, "__getattr__"})
                if self._computes:
                    self._all_members(owner)
            return
        for cls in (*owner.__mro__, *type(owner).__mro__):  # properties of a metaclass are attributes of the class
            if id(cls) not in self._owners and self._is_users(cls.__module__):
                self._owners[id(cls)] = cls
                self._class(cls)
                self._members(cls, self._names)
                if self._computes:
                    self._all_members(cls)

    def _class(self, cls: type) -> None:
        """Values and special methods of a class are dependencies even if no code names them."""
        for name, value in list(vars(cls).items()):
            special = computed_names.is_special(name)
            if special == isinstance(value, _FUNCTIONS) and type(value) is not types.MemberDescriptorType:
                self.add(cls, name, value)
                self._pending.append(_Reached(value, name, f"{cls.__name__}.{name}"))

    def _members(self, owner: Any, names: Set[str]) -> None:
        """The members of a class or module with these names are dependencies."""
        if isinstance(owner, types.ModuleType):
            for name in names:
                obj = vars(owner).get(name, MISSING)
                self.add(vars(owner), name, obj)
                self._pending.append(_Reached(obj, name, f"{owner.__name__}.{name}"))
            return
        for cls in owner.__mro__:
            if self._is_users(cls.__module__):
                for name in names & vars(cls).keys():
                    self.add(owner, name, class_attribute(owner, name))
                    self._pending.append(_Reached(vars(cls)[name], name, f"{cls.__name__}.{name}"))

    def _all_members(self, owner: Any) -> None:
        """All members of a class or module are dependencies. Methods that no code names are not followed."""
        if isinstance(owner, types.ModuleType):
            return self._globals(vars(owner), owner.__name__)
        for name in list(vars(owner)):
            self.add(owner, name, vars(owner)[name])
        return None

    def _globals(self, space: dict[str, Any], name: str) -> None:
        """All globals of a module are dependencies, those that it gets later too."""
        at = id(space), computed_names.names_in
        if at in self._snapshots:
            return
        self._snapshots[at] = object_state.snapshot(space, computed_names.names_in)
        for key in computed_names.names_in(space):
            self.add(space, key, space[key])
            self._pending.append(_Reached(space[key], key, f"{name}.{key}", unnamed=True))

    def _function(self, fn: types.FunctionType, name: str, unnamed: bool) -> None:
        """What a function may read is a dependency: its code, its defaults, its closure and its globals.

        The globals of functions of installed libraries are none.
        """
        users = self._is_users(fn.__globals__.get("__name__"))
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self.add(fn, part, getattr(fn, part))
        for held in (fn.__defaults__, fn.__kwdefaults__, fn.__dict__ or None):
            self._pending.append(_Reached(held, name if unnamed else None, name, unnamed))
        if users:
            self._mention(fn.__code__, unnamed)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        for use in uses(fn.__code__):
            obj = self._find(fn, cells, use)
            if (users or use.how == FREE) and obj is not MISSING:
                found = self._follow_attributes(obj, use.attributes)
                if not computed_names.reads_constant_names(found, fn.__code__, use):
                    self._pending.append(_Reached(found, use.name if unnamed else None, use.name, unnamed))
                if users and computed_names.looks_up_globals(obj):
                    self._globals(fn.__globals__, fn.__module__)

    def _find(self, fn: types.FunctionType, cells: dict[str, types.CellType], use: Use) -> Any:
        """The object that a free name of a function denotes."""
        if use.how == IMPORT:
            inner = f"{fn.__globals__.get('__package__')}.{use.name}".rstrip(".")
            name = use.name if use.name in sys.modules else inner
            obj = sys.modules.get(name, MISSING)
            self.add(sys.modules, name, obj)
            return obj
        if use.how == FREE:
            obj = look_up(cells[use.name], None)
            self.add(cells[use.name], None, obj)
            return obj
        obj = fn.__globals__.get(use.name, MISSING)
        self.add(fn.__globals__, use.name, obj)  # MISSING is a dependency too: a later global may hide a builtin
        return obj if obj is not MISSING else getattr(builtins, use.name, MISSING)

    def _follow_attributes(self, obj: Any, attributes: tuple[str, ...]) -> Any:
        """The object that `obj.a.b` denotes; if looking up an attribute would run code, the object before it."""
        for name in attributes:
            found = self._attribute(obj, name)
            if found is MISSING:
                return obj
            obj = found
        return obj

    def _attribute(self, obj: Any, name: str) -> Any:
        """The value of an attribute, which becomes a dependency; MISSING if looking it up may run code."""
        if isinstance(obj, types.ModuleType):
            found = vars(obj).get(name, MISSING)
        elif (read := object_state.metadata(obj, name)) is not None:
            self._snapshots[id(obj), read] = object_state.snapshot(obj, read)
            return None  # metadata holds nothing to follow
        elif isinstance(obj, type):
            found = class_attribute(obj, name) if is_plain_attribute(type(obj), name) else MISSING
            if hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType):
                return MISSING
        else:
            found = own_attribute(obj, name) if is_plain_attribute(type(obj), name) else MISSING
        if found is not MISSING:
            self.add(obj, name, found)
        return found

    def _is_users(self, module: Any) -> bool:
        """Whether a module is the user's code, not that of an installed library."""
        root = object_state.root_of(module)
        return root == self._home or not object_state.is_installed(root)

    def finish(self) -> None:
        """Nothing more will be read: note which names classes have, and drop what only served to follow objects."""
        names = None if self._computes else frozenset(self._names)
        for cls in self._owners.values():
            if isinstance(cls, type):
                read = computed_names.noticed_names(names, _FUNCTIONS)
                self._snapshots[id(cls), read] = Snapshot(cls, read)
        for helper in (self._kept, self._reached, self._owners, self._names, self._read, self._unobservable):
            helper.clear()

    # ------------------------------------------------------------------ at launches

    def unchanged(self) -> bool:
        """Whether all names still denote the same objects, and all mutable objects hold what they held."""
        if not self._finds_the_same() or self._snapshots and not all(map(Snapshot.same, self._snapshots.values())):
            return self._changed_by_static_code()
        return True

    def _finds_the_same(self) -> bool:
        """Whether all names still denote the same objects."""
        (dicts, names, objs), (owners, attributes, values), others = self._by_kind or self._sort_by_kind()
        return all(map(operator.is_, map(dict.get, dicts, names, _MISSING), objs)) \
            and all(map(operator.is_, map(getattr, owners, attributes, _MISSING), values)) \
            and not any(look_up(container, key) is not obj for container, key, obj in others)

    def _changed_by_static_code(self) -> bool:
        """If static code of this or another program made all changes, returns True and adopts the new state."""
        rows, snapshots = {}, {}
        for at, (container, key, then) in self._lookups.items():
            now = look_up(container, key)
            if now is not then:
                if _latest(at, container, then) is not now:
                    return False
                rows[at] = container, key, now
        for at, then in self._snapshots.items():
            if not then.same():
                last = _latest(at, then.obj, then)
                if last is _NOTHING or not last.same():
                    return False
                snapshots[at] = last
        self._lookups.update(rows)
        self._snapshots.update(snapshots)
        self._by_kind = None
        return True

    def _sort_by_kind(self) -> tuple[tuple, tuple, list]:
        """What `unchanged` compares: columns of dictionary entries (most of them globals), columns of plain attributes,
        and the rows that fit neither.
        """
        found, plain, others = [], [], []
        for row in self._lookups.values():
            container, key, _ = row
            if type(container) is dict:
                found.append(row)
            else:
                (plain if is_plain_lookup(*row) else others).append(row)
        self._by_kind = _columns(found), _columns(plain), others
        return self._by_kind

    def comparisons(self) -> tuple | Callable[[], bool]:
        """What `unchanged` compares, for the C launcher, which compares it without calling Python.

        One flat tuple of triples: a container, a key or attribute in it, and the object that must be found there. Where
        a global must not exist, the container stands for the object. Dependencies that need more than that give
        `unchanged` itself.
        """
        found = [(c, "cell_contents" if k is None else k, c if type(c) is dict and obj is MISSING else obj)
                 for c, k, obj in self._lookups.values()]
        simple = all((type(c) in _SIMPLE and type(k) is str or is_plain_lookup(c, k, obj)) and obj is not MISSING
                     for c, k, obj in found) and not any(c is obj for c, _, obj in self._lookups.values())
        return tuple(itertools.chain.from_iterable(found)) if simple and not self._snapshots else self.unchanged

    def __len__(self) -> int:
        return len(self._lookups)


# ------------------------------------------------------------------ changes that static code makes

STATES = 64  # that are remembered of an object
OBJECTS = 1000  # of which states are remembered
_NOTHING = object()
_changes: dict[tuple[int, Any], tuple[Any, list]] = {}  # an object, and its states, oldest first


def _record_change(at: tuple[int, Any], obj: Any, before: Any, now: Any) -> None:
    """Static code has changed the state `before` of an object into `now`."""
    owner, states = _changes.get(at, (None, []))
    if owner is not obj or states[-1] is not before:
        states = [before]
    if len(_changes) >= OBJECTS:
        _changes.clear()
    _changes[at] = obj, [*states[1 - STATES:], now]


def _latest(at: tuple[int, Any], obj: Any, before: Any) -> Any:
    """The latest state that static code made of the state `before`; _NOTHING if none was recorded, or other code
    may have changed it too.
    """
    owner, states = _changes.get(at, (None, []))
    return states[-1] if owner is obj and any(s is before for s in states) else _NOTHING


def _cannot_be_compared(what: str, name: str) -> TileStaticEvalError:
    return TileStaticEvalError(
        f"static code reads {what} through `{name}`: a launch could not see whether it has changed",
        help="read it before the kernel, and let static code read the result; or pass it as a kernel argument")


def _columns(rows: list[tuple]) -> tuple:
    """Rows of three as three columns."""
    return tuple(zip(*rows, strict=True)) or ((), (), ())
