"""How values reach the functions of regions that nest deeply: by an environment, besides by arguments.

A function of emitted code is given the values that it captures. Where functions nest deeply, most of what the outer
ones would be given they would only hand on: n closures that wrap each other and capture a value each would pass n² / 2
arguments. So a function that would hand on many values is *linked*: its caller gives it what the function reads itself,
and an environment, a dictionary that the functions further in share. Whoever first has a value that only they read puts
it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from cutile._support.structs import replace, structure
from cutile.ir.nodes import Node, Region, Value, inner_of, regions_of
from cutile.ir.walk import depths

ENVIRONMENT = ".env"  # the parameter of a linked function
DEEP = 16  # levels up to which no function is linked: then the cost of what is handed on is bounded anyway
MANY = 16  # values that a function hands on without being linked


@structure(frozen=True)
class Link:
    """What a linked function gets from where."""

    args: tuple[Value, ...]  # from its caller
    handed: tuple[Value, ...]  # what the caller has and functions further in take from the environment
    stores: tuple[Value, ...]  # of these, what the caller puts there
    fetched: tuple[Value, ...]  # from the environment


@structure(frozen=True)
class Functions:
    """How an emitter makes functions of regions.

    separate  whether the regions of a node become functions of their own, not part of the one around them
    linkable  whether these may be linked
    at_call   the values that the caller of such a function reads besides
    """

    separate: Callable[[Node], bool]
    linkable: Callable[[Node], bool]
    at_call: Callable[[Node], Iterable[Value]] = lambda n: ()


class Links:
    """The linked functions of a kernel, by their regions, and the key of each value in an environment."""

    def __init__(self, root: Region, functions: Functions | None, reads: Callable[[Node], Iterable[Value]],
                 results: Callable[[Node], Iterable[Value]]):
        self._of: dict[Region, Link] = {}
        self._keys: dict[Value, int] = {}
        if functions is not None and max(depths(root).values()) > DEEP:
            found = _Finder(root, functions, reads, results)
            found.find()
            self._of = found.links

    def __getitem__(self, region: Region) -> Link | None:
        return self._of.get(region)

    def key(self, v: Value) -> int:
        return self._keys.setdefault(v, len(self._keys))


class _Finder:
    """Finds the linked functions. A function is known by its region; other regions belong to the one around them."""

    def __init__(self, root: Region, functions: Functions, reads: Callable[[Node], Iterable[Value]],
                 results: Callable[[Node], Iterable[Value]]):
        self.root, self.how, self.reads, self.results = root, functions, reads, results
        self.links: dict[Region, Link] = {}
        self.parts: dict[Region, list[Region]] = {root: [root]}  # function → its regions
        self.callers: dict[Region, Node] = {}
        self.inner: dict[Region, list[Region]] = {root: []}  # function → functions directly in it
        self.many: set[Region] = set()  # functions that would hand on many values
        self.direct: dict[Region, dict[Value, None]] = {}  # function → what it has of what it captures
        self.free: dict[Region, dict[Value, None]] = {}  # function → what it captures
        home = {root: root}
        pending = [root]
        for region in pending:
            for n in region.nodes:
                for nested in regions_of(n):
                    outer = home[region]
                    home[nested] = f = nested if functions.separate(n) else outer
                    self.parts.setdefault(f, []).append(nested)
                    if f is nested:
                        self.callers[f] = n
                        self.inner[f] = []
                        self.inner[outer].append(f)
                    pending.append(nested)

    def find(self) -> None:
        for f in reversed(self.parts):
            self._function(f)
        self._stores()

    def _function(self, f: Region) -> None:
        """Find what a function captures, and how the functions in it get theirs."""
        reads: dict[Value, None] = {}
        defined: dict[Value, None] = dict.fromkeys(f.params)
        for region in self.parts[f]:
            for n in region.nodes:
                reads.update(dict.fromkeys(self.reads(n)))
                defined.update(dict.fromkeys(chain(self.results(n), inner_of(n))))
        own = sum(v not in defined for v in reads)
        linked = [g for g in self.inner[f] if g in self.many]
        for g in linked:
            reads.update(dict.fromkeys(self.how.at_call(self.callers[g])))
        for g in self.inner[f]:
            if g not in self.many:
                reads.update(self.free.pop(g))
        whole = max((self.free[g] for g in linked), key=len, default={})  # the largest becomes the union
        more = dict.fromkeys(v for part in (reads, *(self.free[g] for g in linked)) if part is not whole
                             for v in part if v not in whole)
        size = len(whole) + len(more) - sum(v in whole or v in more for v in defined)
        caller = self.callers.get(f)
        if caller is not None and self.how.linkable(caller) and size - own > MANY:
            self.many.add(f)
            direct = {v: None for v in reads if v not in defined}
        else:
            direct = {v: None for v in chain(whole, more) if v not in defined}
        for g in linked:
            self._link(g, direct, defined)
            del self.free[g]
        whole.update(more)
        for v in defined:
            whole.pop(v, None)
        self.direct[f], self.free[f] = direct, whole

    def _link(self, g: Region, *known: dict[Value, None]) -> None:
        """Link a function; `known` is what the function around it has."""
        free, direct = self.free[g], self.direct.pop(g)
        args = tuple([v for v in direct if any(v in k for k in known)])
        if len(free) <= sum(map(len, known)):
            handed = [v for v in free if v not in direct and any(v in k for k in known)]
        else:
            handed = [v for v in chain(*known) if v in free and v not in direct]
        given = {*args}
        self.links[g] = Link(args, tuple(handed), (), tuple([v for v in direct if v not in given]))

    def _stores(self) -> None:
        """Let callers store what they have, unless one further out has stored it: functions between these two may run
        for fewer blocks, and others of those further out read it too.
        """
        pending: list[tuple[Region | None, set[Value], Sequence[Value]]] = [(self.root, set(), ())]
        while pending:
            f, stored, ended = pending.pop()
            if f is None:
                stored.difference_update(ended)
                continue
            if (link := self.links.get(f)) is None:
                stored = set()  # the function makes an environment
            else:
                new = tuple([v for v in link.handed if v not in stored])
                self.links[f] = replace(link, stores=new)
                stored.update(new)
                pending.append((None, stored, new))
            pending += [(g, stored, ()) for g in reversed(self.inner[f])]
