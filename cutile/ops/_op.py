"""What an op is, and the registry of all of them.

An op is one decorated Python function. Its signature is the user's API, its docstring carries its clauses, the
decorator names the typing rule and, as plain data, its Tile IR operation. Its body is the meaning in NumPy.

    @op(float_unary, freedom=ulp(2), tileir="cos")
    def cos(x, /):
        '''Cosine of each element, in radians.

        [UN-4.cos.zero]  cos(0) == 1
        '''
        return wide(np.cos, x)

Calling convention of a meaning (the only one there is):

* Operands come first, positionally, in the order of `operands`: one carrier array each (see dtypes: f16 and narrower
  floats are carried in float32), a tuple of carriers for `*name`, a carrier or None for `name?`.
  The dimensions of a tile are the *trailing* axes. Any number of leading axes, the batch shape, stands for blocks, and
  operands of one call broadcast over them (a value that is the same for all blocks may have none). So a meaning never
  reads the rank of a tile off the carrier: `sig` has it.
* Attributes come by keyword, under the names of the op's parameters.
* A meaning may ask for more by naming a keyword-only parameter, which is no part of the public signature:
  `sig` the types of operands and results (`Sig`); `ctx` the running blocks (see interp/exec/block_set: coordinates,
  printing, failing); `combine` the user's function of a reduce or scan, from tuples of carriers to tuples of carriers;
  `out` an array, or None, into which the meaning may put its result and which it then returns. The array has the
  carrier of the result and at least its shape. A back end gives one only where the carrier holds exactly the values of
  the result's dtype.
* An array operand is an array of `interp.memory` (tile/put/gather/scatter/update), a list is a sequence of them.
* A meaning returns one carrier, or a tuple if the op has several results, or None if it has none. The framework rounds
  a float result to its dtype, unless the op says `exact=True`: its meaning returns values of the dtype already.
"""

from __future__ import annotations

import inspect
import re
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cutile._support.structs import cached, structure
from cutile.ir.nodes import Op, Value
from cutile.ops._error_bounds import ErrorBound
from cutile.ops._freedom import Freedom
from cutile.types import LeafType, RoundingMode

GIVEN = ("sig", "ctx", "combine")  # what the framework always gives to a meaning that names it
OUT = "out"  # what it gives if it can

# What an op does besides computing [GEN-3]: passes ask for these, never for names of ops.
PURE, READ, WRITE, ATOMIC, HOST = "pure", "read", "write", "atomic", "host"

NOTHING: Mapping[str, Any] = types.MappingProxyType({})

# What the index of a memory access counts:
TILES = "tiles"  # tiles of the array
ROWS = "rows"  # positions along one axis of the array; along the others, the index is the first element
ELEMENTS = "elements"  # elements, at a tile of indices per axis
OFFSETS = "offsets"  # elements from the first one of the array, without bounds

# How an op combines many elements into one: along an axis; along an axis, with every partial result; in products of
# matrices.
REDUCTION, SCAN, PRODUCT = "reduction", "scan", "product"


@structure(frozen=True, slots=True)
class Sig:
    """The types of one application of an op. `operands` are flat."""

    operands: tuple[LeafType, ...]
    results: tuple[LeafType, ...]

    @property
    def x(self) -> LeafType:
        """The type of the first operand."""
        return self.operands[0]

    @property
    def result(self) -> LeafType:
        return self.results[0]


@structure(frozen=True, slots=True)
class Accesses:
    """How an op accesses its first operand, which is called array. Its `effect` says whether it reads or writes.

    Fields name operands, as `OpDef.named` does:

    unit     TILES, ROWS, ELEMENTS or OFFSETS: what an index counts
    index    operands that say where. TILES: one tuple, an index per axis, in steps of the attribute `steps` if there is
             one, else of the tile's shape; the axes of the tile are those of the array in the order of the attribute
             `order`. ROWS: the positions along the attribute `axis`, and the starts along the other axes. ELEMENTS: one
             tuple, a tile of indices per axis. OFFSETS: one tile
    values   operands that go to memory, of the tile's shape or scalars; none where memory is only read: the shape is
             then that of the result, or the attribute `shape`
    mask     operand that says which elements are accessed
    padding  operand with the elements that replace masked ones; without it the attribute `padding_mode` may say them

    The attributes `memory_order` and `memory_scope` are absent where an access is always weak, `check_bounds` where
    nothing may be promised.
    """

    unit: str
    index: tuple[str, ...]
    values: tuple[str, ...] = ()
    mask: str | None = None
    padding: str | None = None

    @classmethod
    def of(cls, unit: str, operands: Sequence[str]) -> Accesses:
        """By the names that operands of memory ops have."""
        names = [n.strip("*?") for n in operands[1:]]
        return cls(unit, tuple(n for n in names if n in ("index", "indices", "sparse", "starts", "offset")),
                   tuple(n for n in names if n in ("tile", "value", "update", "desired", "expected")),
                   "mask" if "mask" in names else None, "padding_value" if "padding_value" in names else None)


class Documented:
    """The `__doc__` of a class whose objects have docstrings of their own. They are put together when somebody asks for
    them, which saves time at import.
    """

    def __init__(self, of_class: str, make: Callable[[Any], str | None]):
        self.of_class, self.make = of_class, make

    def __get__(self, obj: Any, cls: type) -> str | None:
        if obj is None:
            return self.of_class
        doc = obj.__dict__["__doc__"] = self.make(obj)  # which is found first from now on
        return doc


def _doc(op: OpDef) -> str | None:
    """The docstring of an op: that of its meaning, with clauses, and in NumPy's form if users call the op."""
    doc = meaning_doc(op)
    if not (doc and (op.public or op.method)):
        return doc
    from cutile.ops._documentation import document  # only help needs it

    return document(op, doc)


def meaning_doc(op: OpDef) -> str | None:
    """The docstring of an op's meaning, with the clauses that its family shares."""
    doc, clauses = op.meaning.__doc__, op.clauses
    if not clauses:
        return doc
    text = clauses if isinstance(clauses, str) else clauses(op)
    return with_clauses(doc or "", text.format(name=op.name, short=op.short))


class OpDef:
    __doc__ = Documented("An op: the object behind `ct.exp2`, the key of every table about ops.", _doc)

    def __init__(self, meaning: Callable, rule: Callable, *, name: str | None = None, operands: str | None = None,
                 effect: str = PURE, exact: bool = False, loose: Callable | None = None, tileir: Any = None,
                 freedom: Freedom | tuple[Freedom, ...] = (), error_bound: ErrorBound | None = None,
                 public: bool = True, method: tuple[str, str] | None = None, host: Callable | None = None,
                 signature: Callable | None = None, target: Callable | None = None,
                 view: Callable | None = None, elementwise: bool = False, moves_data: bool = False,
                 selects: bool = False, absorbing: Callable | None = None,
                 accumulates: str | None = None, accesses: str | None = None,
                 scalar: bool = False, divides: bool = False, modes: tuple[RoundingMode, ...] = (),
                 clauses: str | Callable[[OpDef], str] | None = None, short: str | None = None,
                 language: bool = True, since: Mapping[str, tuple[int, int]] = NOTHING):
        self.meaning = meaning
        self.name = name or meaning.__name__
        self.__name__ = self.__qualname__ = self.name
        self.language, self.clauses, self.short = language, clauses if language else None, short or self.name
        self.__module__ = meaning.__module__
        self.__wrapped__ = meaning
        self.family = meaning.__module__.rpartition(".")[2]
        self.rule, self.effect, self.exact, self.loose = rule, effect, exact, loose
        self.tileir, self.error_bound, self.host = tileir, error_bound, host
        self.freedom: tuple[Freedom, ...] = freedom if isinstance(freedom, tuple) else (freedom,)
        self.public, self.method, self.target, self.view = public, method, target, view
        self.divides, self.modes, self.since = divides, modes, since
        self.elementwise, self.moves_data, self.accumulates = elementwise, moves_data, accumulates
        self.scalar, self.selects, self.absorbing = scalar, selects, absorbing
        self.given = tuple(p for p in _parameters(meaning) if p in GIVEN)
        self.takes_out = OUT in _parameters(meaning)
        self._signature = signature
        if operands is None:
            operands = " ".join(_parameters(signature or meaning, positional_only=True))
        self.operands: tuple[str, ...] = tuple(operands.split())
        self.variadic = any(n[0] == "*" or n[-1] == "?" for n in self.operands)
        self.accesses = None if accesses is None else Accesses.of(accesses, self.operands)

    @cached  # of the 150 ops, a process uses some
    def __signature__(self) -> inspect.Signature:
        if self._signature is not None:
            return inspect.signature(self._signature)
        full = inspect.signature(self.meaning)
        return full.replace(parameters=[p for n, p in full.parameters.items() if n not in (*GIVEN, OUT)])

    @property
    def spelling(self) -> str:
        """The name that users write: that of a method may differ from that of its op."""
        return self.method[1] if self.method and not self.public else self.name

    def flatten(self, operands: Sequence) -> tuple[tuple[Value, ...], tuple[int | None, ...] | None]:
        """Flat operands and their layout: per operand 1, the length of a `*name`, None for an absent `name?`."""
        assert len(operands) == len(self.operands), f"{self.name}: {len(operands)} operands for {self.operands}"
        if not self.variadic:
            return tuple(operands), None
        flat: list[Value] = []
        layout: list[int | None] = []
        for name, x in zip(self.operands, operands, strict=True):
            if x is None:
                assert name[-1] == "?", f"{self.name}: operand {name} is missing"
                layout.append(None)
            elif name[0] == "*":
                flat += x
                layout.append(len(x))
            else:
                flat.append(x)
                layout.append(1)
        return tuple(flat), tuple(layout)

    def group(self, flat: Sequence, layout: Sequence[int | None] | None) -> list:
        """The inverse of `flatten`, for operands or anything in their place (types, carriers)."""
        if layout is None:
            return list(flat)
        out, i = [], 0
        for name, n in zip(self.operands, layout, strict=True):
            if n is None:
                out.append(None)
            elif name[0] == "*":
                out.append(tuple(flat[i:i + n]))
                i += n
            else:
                out.append(flat[i])
                i += 1
        return out

    def flat_names(self, layout: Sequence[int | None] | None) -> list[str]:
        """For each flat operand the name of the operand that it is or belongs to, without marks."""
        lengths = layout or (1,) * len(self.operands)
        return [name.strip("*?") for name, n in zip(self.operands, lengths, strict=True) for _ in range(n or 0)]

    def named(self, flat: Sequence, layout: Sequence[int | None] | None) -> dict[str, Any]:
        """What `group` gives, by the names of the operands without their marks."""
        return {n.strip("*?"): x for n, x in zip(self.operands, self.group(flat, layout), strict=True)}

    def __call__(self, *args, **kwargs):
        if (apply := EAGER.apply) is not None:
            return apply(self, args, kwargs)
        if self.host is not None:
            return self.host(*args, **kwargs)
        raise RuntimeError(f"ct.{self.name}() works in tile code only: call it inside a @ct.kernel function "
                           f"that ct.launch runs")

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self):
        return (lookup, (self.name,))


def is_plain(n: Op) -> bool:
    """Whether an op of the IR rounds to nearest, if it rounds at all, and keeps subnormals."""
    return n.attrs.get("rounding_mode") is None and not n.attrs.get("flush_to_zero")


def with_clauses(doc: str, lines: str) -> str:
    """A docstring with clauses in front of its own, except those whose id the docstring has itself."""
    first = re.search(r"^( *)\[[A-Z]", doc, re.M)
    indent = first[1] if first else doc[len(doc.rstrip(" ")):]
    new = [f"{indent}{line}\n" for line in lines.splitlines() if line and line[:line.index("]") + 1] not in doc]
    if first:
        return "".join((doc[:first.start()], *new, doc[first.start():]))
    return "".join((doc.rstrip(), "\n\n", *new, indent))


class _Eager(threading.local):
    """While a static construct runs in a thread, calling an op builds IR: `apply` does it, which the front end sets.

    No ContextVar, which torch.compile cannot look into: it traces host code that calls `ct.cdiv`.
    """

    apply: Callable[[OpDef, tuple, dict], Any] | None = None


EAGER = _Eager()

_REGISTRY: dict[str, OpDef] = {}
_METHODS: dict[tuple[str, str], OpDef] = {}


def typing_rule(**properties: Any) -> Callable[[Callable], Callable]:
    """Decorate a typing rule with what holds for every op that has it: properties of `op`, which an op may override."""

    def define(rule: Callable) -> Callable:
        rule.properties = properties
        return rule

    return define


def made_elsewhere(b: Any, op: OpDef, **terms: Any) -> Any:
    """Rule of ops that no kernel calls: other rules and passes build their nodes."""
    raise AssertionError(f"{op.name} is made by other rules or by a pass")


def op(rule: Callable, **properties: Any) -> Callable[[Callable], OpDef]:
    """Define an op. `rule(b, op, **args)` types one application. The properties:

    operands  names of the IR operands, "array *indices mask?": `*` a tuple of values, `?` may be absent.
              Default: the positional-only parameters. The other parameters are attributes.
    effect    PURE, READ, WRITE, ATOMIC or HOST
    exact     results need no rounding: the meaning returns values of their dtype. (The op may still have a freedom.)
    loose     Python function that folds loose constants [LOOSE-4]; strict ones fold through the meaning. Needed where
              the rule folds. A ZeroDivisionError, OverflowError or ValueError of it is the user's TileValueError
    tileir    of an elementwise op without a lowering rule: the operation of Tile IR that it is, or a pair, that of
              integers and that of floats. Of others, what their lowering rule reads: the predicate of a comparison,
              the kind of an atomic update ("xchg", "add"), the kind of a reduction or scan ("add", "max")
    since     features of the op that came later than the op itself, with the bytecode version that has them
    freedom   what an implementation is free to do, one or several of those in _freedom
    error_bound  how errors of operands pass through an elementwise op, see _error_bounds
    public    True: users call it as ct.<name>. False: a method only, or made by rules and passes
    method    ("tile", "astype"): also a method of tiles, arrays ("array"), tiled views ("view") or raw memory ("raw")
    host      what calling it on the host does instead of raising RuntimeError
    target    of an op that writes a tile: target(args) returns the array in which the tile will be stored, so that the
              op before it can write its result there (`out`); None if there is no such array. args: all operands but
              the tile. The code of the batch schedule calls it
    view      of an op that reads a tile: view(args) returns the tile as a view of the array's memory, or None
    elementwise  each element of a result depends only on the operands' elements at its position; a scalar is at every
              position
    scalar       the result of an op without operands is a scalar
    selects      of an elementwise op: the first operand, a bool, says which of the other two the result is
    absorbing    of an elementwise op on two operands: absorbing(dtype) is the value that decides the result wherever
                 one operand has it, whatever the other one is; None if there is none
    moves_data   the elements of the result are elements of the operands, rearranged or repeated
    accumulates  REDUCTION, SCAN or PRODUCT, of an op that combines many elements into one
    divides      the second operand is a divisor: a constant zero there is refused when constants fold
    modes        the rounding modes that the op has, apart from None
    accesses     TILES, ROWS, ELEMENTS or OFFSETS, of an op that reads or writes an array; see Accesses
    clauses      what holds for every op of a family, a clause a line: a template, or a function of the op that gives
                 one; `{name}` and `{short}` stand for the op's name and short name. The op's own docstring comes after
                 them; a clause there replaces that of the same id
    language     False: an op of your own. It does not have the clauses of its family, and the spec does not list its
                 own
    short        the op's name in ids of clauses, if it differs from its name
    signature    a function with the user's signature, if that of the meaning differs (operands that users give by
                 keyword, attributes that only rules make): `signature=lambda x, /, *, mask=None: None`
    """

    def define(meaning: Callable) -> OpDef:
        o = OpDef(meaning, rule, **{**getattr(rule, "properties", {}), **properties})
        assert o.name not in _REGISTRY, f"op {o.name} is defined twice"
        _REGISTRY[o.name] = o
        if o.method is not None:
            assert o.method not in _METHODS, f"method {o.method} is defined twice"
            _METHODS[o.method] = o
        return o

    return define


def _parameters(fn: types.FunctionType, positional_only: bool = False) -> tuple[str, ...]:
    """The names of a function's parameters, apart from * and **; inspect.signature takes longer."""
    code = fn.__code__
    return code.co_varnames[:code.co_posonlyargcount if positional_only
                            else code.co_argcount + code.co_kwonlyargcount]


def lookup(name: str) -> OpDef:
    return _REGISTRY[name]


def methods() -> Mapping[tuple[str, str], OpDef]:
    """Methods by kind of receiver and name."""
    return _METHODS


def registry() -> Mapping[str, OpDef]:
    """All ops by name. Import cutile.ops first."""
    return _REGISTRY
