"""What algorithms share: objects that check their calls, temporary storage, and kernels by what they depend on.

An algorithm is one file, as `transform.py` and `reduce.py` are. To add one:

1. A function that makes its kernel from operands, operators and types. A kernel takes the states of its operands, under
   `it.annotation(wide)`. `it.reader()` and `it.writer()` are called outside of it. The kernel reads tile number i by
   the reader's `tile(state, Place(i, size, n, whole))`, and stores by the writer's `put(state, place, value)`
   (`readers.py` has the whole protocol, `blocks.py` operators on tiles). The file has no `from __future__ import
   annotations`, since annotations of kernels are objects.
2. A subclass of `Algorithm`. `takes` gives each argument of a call a role: INPUT, OUTPUT, OPERATOR, COUNT, INITIAL (a
   number or struct of the host), INITIAL_OR_ARRAY, VALUE (an enum or another hashable object), `optional(role)`,
   `with_default(role, value)`. From the roles come what is checked (an argument of another kind than the object was
   made for is a TypeError), what plans depend on, and how a call finds its plan in a few microseconds.

   `plan(self, plan, *operands)` puts the launches into a plan, once for arguments of one signature: dtypes, sizes,
   counts, values, operators. Its operands are in the order of `takes`: iterators, an `Operator`, ints, an `Initial` or
   None. It checks the counts and where permutations lead (`check_items` of `places.py`), takes temporary storage by
   `plan.values(size, type)` and `plan.array(size, dtype)`, and calls `plan.launch(blocks, kernel, *args)` with kernels
   from `kernels_for(key, make, …)`, states of operands (`it.state(n)`, the `state` of an `Initial`), temporary arrays,
   ints and constants. A later call of that signature runs these launches with its own arrays, initial values and
   stream; `plan` does not see it. So `plan` must not look at addresses or at the numbers of initial values. A plan
   without launches is a call that does nothing.

   `__call__` has the documented signature and is one line: `return self.run(temp_storage, stream, *args in the order
   of takes)`, or `self.run_here(stream, …)` where a call has no temporary storage. `check(self, **made)` raises what
   an object should say when it is made.
3. `make_X`, which returns `X(options, d_in=d_in, …)`, and the one-shot function, which calls `X.once(options, stream,
   *args)`. `options` is a tuple of what else plans depend on. Both stand in the list of `__init__.py`.

The key of a kernel begins with the algorithm's name and has the kind of each operand, the key of each operator, and all
else that `make` depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cutile._support.lru import LruDict
from cutile.compute.arrays import KINDS
from cutile.compute.initial import FromMemory, Initial
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.values import INT64
from cutile.compute.operators import Operator
from cutile.compute.plans import Plan
from cutile.compute.proxies import capabilities, check_given
from cutile.compute.roles import COUNT, Role, read_roles
from cutile.compute.value_types import Number, Struct
from cutile.runtime import launch_cache
from cutile.runtime.scratch import capability

WIDE = 1 << 31  # from that many items on, positions are int64
MOST_BITS = 34  # of sample counts; LEAST: room for counts in arrays for them
LEAST = 2
KEPT = 1000  # kernels of all algorithms, plans of one

_kernels: LruDict[tuple, Any] = LruDict(KEPT)
_plans: list[LruDict[tuple, Plan]] = []  # of each algorithm


def kernels_for(key: tuple, make: Callable[..., Any], *args: Any) -> Any:
    """make(*args), called once for each key: the kernels of an algorithm. Equal keys mean equal kernels."""
    found = _kernels.get(key)
    if found is None:
        found = make(*args)
        _kernels.keep(key, found)
    return found


def clear_all_caches() -> None:
    """Forget all kernels and plans. Objects that are still there keep theirs.

    Examples
    --------
    >>> ct.compute.clear_all_caches()
    """
    _kernels.clear()
    for plans in _plans:
        plans.clear()


class Algorithm:
    """The base of the objects that `make_…` gives. An object is never changed, so threads may share it.

    Parameters
    ----------
    options : tuple
        What else its plans depend on.
    compute_capability : optional
        The GPUs that it may run on.
    **made
        The arguments of `make_…`; later ones must be of their kinds.

    Attributes
    ----------
    takes
        The role of each argument of a call, by name, in the order in which `run` and `once` get them.
    backend
        What runs it: "own", kernels of this package.
    options, capabilities
        As given; capabilities as pairs of numbers, or None.
    plans
        Those that calls of this class have made.
    kinds, made
        What arguments of its calls must be.
    serialize
        A method that gives what `ct.compute.deserialize` reads.
    blob, carried
        Of an object that was serialized, or came so.

    Examples
    --------
    >>> x = np.arange(3)
    >>> isinstance(ct.compute.make_reduce_into(x, x, ct.compute.OpKind.PLUS), ct.compute.Algorithm)
    True
    """

    backend = "own"
    serialize: Callable[[], bytes]  # of ahead.py, which knows all algorithms
    takes: dict[str, Role] = {}
    plans: LruDict[tuple, Plan]
    made: tuple | None = None
    blob: bytes | None = None
    carried: Any = None

    def __init_subclass__(cls) -> None:
        cls.plans = LruDict(KEPT)
        _plans.append(cls.plans)
        cls._readers = tuple(role.read for role in cls.takes.values())
        cls._in_c = bytes(role.in_c for role in cls.takes.values())

    def __init__(self, options: tuple = (), compute_capability: Any = None, **made: Any):
        """`made`: the arguments of `make_…`. Later ones must be of their kinds."""
        self.options, self.capabilities = options, capabilities(compute_capability)
        self.kinds: dict[str, Any] = {}
        self._found: LruDict[tuple, Plan] = LruDict(KEPT)  # those for arguments that were checked
        operands = {name: self._kind_checked(name, self.takes[name].wrap(value, name)) for name, value in made.items()}
        if made:
            self.check(**operands)
        self.in_host_memory = any(a.host is not None for x in operands.values() if isinstance(x, IteratorBase)
                                  for a in x.arrays())
        self._operands = {name: on_some_gpu(x, 1) for name, x in operands.items()}

    def own(self) -> Algorithm:
        """An equal object whose calls run kernels of this language alone."""
        return self

    def delegated_part(self, capabilities: tuple[tuple[int, int], ...]) -> tuple[str, bytes] | None:
        """Of an object that runs through another package, the version of the package and its bytes of the object."""
        return None

    def with_delegated_part(self, made_by: str, blob: bytes) -> Algorithm:
        """The object with such bytes; one that runs kernels of this language where this package cannot take them."""
        return self

    # -------------------------------------------------------------- for algorithms

    def check(self, **made: Any) -> None:
        """Raise errors of what an object is made for: operands, by name."""

    def plan(self, plan: Plan, *operands: Any) -> None:
        """Put launches into a plan. `operands`: what `takes` says, wrapped. Nothing here may depend on addresses, nor
        on numbers that operands hold, apart from counts and values.
        """
        raise NotImplementedError

    def samples(self) -> Iterator[list]:
        """Operands of calls on GPUs that together launch each kernel that a call of the object may launch. What a
        kernel depends on of a count changes near powers of two: what tiles divide, and how many there are.
        """
        for sizes in self.sample_sizes():
            made = {name: on_some_gpu(x, max(sizes[name], LEAST)) for name, x in self._operands.items()}
            yield [made[name] if name in made else sizes[name] if role is COUNT else role.wrap(None, name)
                   for name, role in self.takes.items()]

    def sample_sizes(self) -> Iterator[dict[str, int]]:
        """For these operands, counts and sizes of arrays by argument."""
        return (dict.fromkeys(self.takes, (1 << k) + more) for k in range(MOST_BITS) for more in (-1, 0, 1))

    def run(self, temp_storage: Any, stream: Any, *args: Any) -> int:
        """A call of the object: run the plan for its arguments, and give the bytes of temporary storage. With
        `temp_storage=None` only that.
        """
        if temp_storage is None:
            key, roots = self._read(self.options, args)
            plan = self._found.get(key) or self._plan(key, args, roots)[0]
            plan.used = True
            plan.check_stream(stream)
            return plan.nbytes
        plan, key, roots = self._run_in_c(self.options, self._found, temp_storage, stream, args)
        if roots is not None:
            if plan is None:
                plan, roots = self._plan(key, args, roots)
            plan.used = True
            plan.run(args, roots, temp_storage, stream)
        return plan.nbytes

    def run_here(self, stream: Any, *args: Any) -> None:
        """A call without temporary storage from outside."""
        plan, key, roots = self._run_in_c(self.options, self._found, None, stream, args)
        if roots is not None:
            if plan is None:
                plan, roots = self._plan(key, args, roots)
            plan.used = True
            plan.run_once(args, roots, stream)

    @classmethod
    def once(cls, options: tuple, stream: Any, *args: Any) -> None:
        """A one-shot call: as that of an object made for its arguments."""
        plan, key, roots = cls._run_in_c(options, cls.plans, None, stream, args)
        if roots is not None:
            if plan is None:
                plan, roots = cls(options)._plan(key, args, roots)
            plan.used = True
            plan.run_once(args, roots, stream)

    @classmethod
    def _run_in_c(cls, options: tuple, plans: LruDict[tuple, Plan], storage: Any, stream: Any, args: tuple) -> tuple:
        """The plan, None, None if the call ran; else the plan, or None if there is none, key and roots."""
        found, c = None, launch_cache.extension()
        if c is not None:
            found = c.call_algorithm(KINDS, cls._in_c, cls._readers, options, args, plans, storage, stream)
            if type(found) is Plan:
                return found, None, None
        if found is None:
            key, roots = cls._read(options, args)
        else:
            key, roots, done, plan = found
            if done:
                plan.go_on(done, roots, stream, storage is None)
                return plan, None, None
            key = cls._finished(key, roots)
        return plans.get(key), key, roots

    # -------------------------------------------------------------- plans

    @classmethod
    def _read(cls, options: tuple, args: tuple) -> tuple[tuple | None, list]:
        try:
            key, roots = read_roles(cls._in_c, cls._readers, options, args)
        except Exception:  # `_plan` says what is wrong
            return None, []
        return cls._finished(key, roots), roots

    @classmethod
    def _finished(cls, key: tuple, roots: list) -> tuple:
        """A key with what else plans depend on, for arrays like those among the roots."""
        return key

    def _plan(self, key: tuple | None, args: tuple, roots: list) -> tuple[Plan, list]:
        """The plan for arguments that this object has not met, and their roots."""
        operands = [self._kind_checked(name, role.wrap(value, name))
                    for (name, role), value in zip(self.takes.items(), args, strict=True)]
        for name, operand in zip(self.takes, operands, strict=True):
            check_given(name, operand)
            if isinstance(operand, IteratorBase) and (k := operand.outside()):
                raise ValueError(f"argument `{name}` begins {k} items outside of an array: an iterator may be advanced "
                                 f"by a negative number only as far as it was advanced before")
        plan = self.plans.get(key)
        if plan is None:
            plan = Plan(operands)
            roots = plan.roots()
            self.plan(plan, *operands)
            plan.finish([name for name, role in self.takes.items() if role.writes], list(self.takes), args)
            if key is not None:
                self.plans.keep(key, plan)
        if self.capabilities is not None and plan.device is not None:
            self._check_capability(plan.device)
        if key is not None:
            self._found.keep(key, plan)
        return plan, roots

    def _check_capability(self, device: int) -> None:
        if (found := capability(device)) not in self.capabilities:
            built = ", ".join(f"{major}.{minor}" for major, minor in self.capabilities)
            raise RuntimeError(f"GPU {device} has compute capability {found[0]}.{found[1]}, and this object was made "
                               f"for {built or 'arrays in host memory'}")

    def _kind_checked(self, name: str, operand: Any) -> Any:
        """An operand, which must be of the kind that the object was made for, if it was made for any."""
        if isinstance(operand, Operator):
            kind, what = operand.key, lambda k: "another operator; make a new one"
        elif isinstance(operand, IteratorBase):
            kind, what = operand.kind, text
        elif isinstance(operand, Initial | FromMemory) or operand is None:
            kind, what = None if operand is None else operand.type, str
        else:
            return operand
        made = self.kinds.setdefault(name, kind)
        if made is not kind and made != kind:
            raise TypeError(f"argument `{name}`: this object was made for "
                            + (what(made) if isinstance(operand, Operator) else
                               f"{_in_words(made)}, got {_in_words(kind)}"))
        return operand


def _in_words(kind: Any) -> str:
    return text(kind) if isinstance(kind, tuple) else str(kind)


def on_some_gpu(x: Any, n: int) -> Any:
    """An operand like x, with arrays of n items that are nowhere."""
    return x.on_some_gpu(n) if hasattr(x, "on_some_gpu") else x


def position(wide: bool) -> Any:
    """The annotation of a parameter that counts items."""
    return INT64 if wide else int


def text(kind: tuple) -> str:
    """The kind of an iterator in words: array of float32, zip of (…)."""
    name, *rest = kind
    inner = [text(k) if isinstance(k, tuple) and k and isinstance(k[0], str) else str(k) for k in rest
             if isinstance(k, Number | Struct) or isinstance(k, tuple) and k and isinstance(k[0], str)]
    return f"{name} of {', '.join(inner)}"


# ------------------------------------------------------------------ sizes


def check_count(name: str, n: int, **operands: IteratorBase) -> int:
    """The number of items. ValueError if it is negative, or more than an array has."""
    n = int(n)
    if n < 0:
        raise ValueError(f"argument `{name}` is negative: {n}")
    if n >= 1 << 63:
        raise ValueError(f"argument `{name}` is {n}, and positions have 64 bits")
    for argument, it in operands.items():
        size = it.size()
        if size is not None and n > size:
            raise ValueError(f"argument `{name}` is {n}, but `{argument}` has {size} items")
    return n


def is_wide(n: int, *operands: IteratorBase) -> bool:
    """Whether positions need int64."""
    return n >= WIDE or any(a.size * a.stride // max(1, a.itemsize) >= WIDE for it in operands for a in it.arrays())


def power_below(n: int, most: int) -> int:
    """The largest power of two that is at most n and `most`; n is 1 or more."""
    return min(most, 1 << (n.bit_length() - 1))
