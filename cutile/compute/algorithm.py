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
   None. It checks the counts (`check_count`), takes temporary storage by `plan.values(size, type)` and
   `plan.array(size, dtype)`, and calls `plan.launch(blocks, kernel, *args)` with kernels from `kernels_for(key, make,
   …)`, states of operands (`it.state(n)`, `initial.state`), temporary arrays, ints and constants. A later call of that
   signature runs these launches with its own arrays, initial values and stream; `plan` does not see it. So `plan` must
   not look at addresses or at the numbers of initial values. A plan without launches is a call that does nothing.

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
from operator import index
from typing import Any, NamedTuple

import numpy as np

from cutile._support.lru import LruDict
from cutile.compute.arrays import DeviceArray, Held, line_of, parts_on_gpu
from cutile.compute.iterators import (
    INT64,
    ArrayIterator,
    Capturing,
    IteratorBase,
    as_input,
    as_output,
    bits_of,
    constant_reader,
    held,
    type_of_value,
)
from cutile.compute.operators import Operator, operator
from cutile.compute.plans import Line, Plan, for_user
from cutile.compute.proxies import ProxyValue, capabilities
from cutile.compute.readers import First
from cutile.compute.value_types import Number, Struct, StructValue, ValueType
from cutile.dtypes import DType
from cutile.runtime.launch_key import find_reader
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


class Role(NamedTuple):
    """What an argument of an algorithm may be.

    read  appends to a key what a plan depends on, and to a list the roots (plans.py), quickly. Any exception means that
          the argument is not what it should be
    wrap  the operand that an argument stands for, with the same roots in its slots. It raises the error that names the
          argument
    writes  the argument is written to
    """

    read: Callable[[Any, list, list], None]
    wrap: Callable[[Any, str], Any]
    writes: bool = False


def _read_array(value: Any, key: list, roots: list) -> None:
    cls = type(value)
    if cls is np.ndarray:
        key.append(("host", value.dtype, value.shape, value.strides))
        roots.append(value if value.ndim == 1 else line_of(value))
    elif isinstance(value, IteratorBase):
        seen, found = value.signature()
        key.append(seen)
        roots += found
    else:
        try:
            find_reader(cls)(value, key, roots)
        except Exception:
            if (parts := parts_on_gpu(value)) is None:
                raise
            find_reader(type(parts[1]))(parts[1], key, roots)
            key.append("complex")
            return
        if isinstance(roots[-1], np.ndarray):
            roots[-1] = line_of(roots[-1])
        elif type(roots[-1]) is not int or type(key[-1]) is not tuple:
            raise TypeError  # a number, or an array that NumPy cannot hold


def _read_output(value: Any, key: list, roots: list) -> None:
    _read_array(value, key, roots)
    if type(value) is np.ndarray and not value.flags.writeable:
        raise TypeError  # `as_output` says it


def _read_operator(value: Any, key: list, roots: list) -> None:
    arrays: dict[int, Any] = {}
    key.append(operator(value, arrays=arrays))
    for array in arrays.values():
        _read_array(array, key, roots)


def _operator(value: Any, name: str) -> Operator:
    arrays: dict[int, Any] = {}
    found = operator(value, name, arrays)
    return Capturing(found, arrays.values()) if arrays else found


def _read_count(value: Any, key: list, roots: list) -> None:
    key.append(value if type(value) is int else index(value))


def _count(value: Any, name: str) -> int:
    """TypeError for what is no int."""
    if value is None:
        raise TypeError(f"argument `{name}` is missing: it says how many items there are")
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"argument `{name}` must be an int, got {value!r:.100}") from None


def _read_number(value: Any, key: list, roots: list) -> None:
    cls = type(value)
    if cls is np.ndarray:
        kind = value.dtype
        value = value.item() if value.size == 1 and kind.names is None else value.reshape(-1)[0]
    elif value is None:
        key.append(None)
        return
    else:
        kind = value.dtype if isinstance(value, np.generic) else cls
    found = _CONVERSIONS.get(kind)
    if found is None:
        t = type_of_value(value)
        found = t, t.dtypes
        if isinstance(kind, np.dtype) or cls in (int, float, bool, complex) or isinstance(value, StructValue):
            _CONVERSIONS.keep(kind, found)
        else:
            kind = t
    t, dtypes = found
    key.append(kind)
    if isinstance(t, Number) and (value.__class__ is float or value.__class__ is int):
        roots.append(bits_of(value, dtypes[0]))
    else:
        roots += map(bits_of, t.numbers(value), dtypes)


def _read_number_or_array(value: Any, key: list, roots: list) -> None:
    (_read_array if _in_gpu_memory(value) else _read_number)(value, key, roots)


def _in_gpu_memory(value: Any) -> bool:
    return not (value is None or isinstance(value, np.ndarray | np.generic | int | float | tuple | StructValue)) \
        and hasattr(value, "__cuda_array_interface__")


def _read_value(value: Any, key: list, roots: list) -> None:
    key.append((type(value), value))


def initial_value(value: Any, name: str) -> Initial | None:
    if value is None:
        return None
    if isinstance(value, ProxyValue):
        return Initial(value.value_type, value.state)
    t = type_of_value(value)
    return Initial(t, held(t, t.numbers(value)))


def _initial_or_array(value: Any, name: str) -> Initial | FromMemory | None:
    return FromMemory(ArrayIterator(value)) if _in_gpu_memory(value) else initial_value(value, name)


_CONVERSIONS: LruDict[Any, tuple[ValueType, tuple[DType, ...]]] = LruDict(KEPT)  # by dtype or class of a host value

INPUT = Role(_read_array, as_input)
OUTPUT = Role(_read_output, as_output, True)
OPERATOR = Role(_read_operator, _operator)
COUNT = Role(_read_count, _count)
INITIAL = Role(_read_number, initial_value)  # a number or struct of the host, or None
INITIAL_OR_ARRAY = Role(_read_number_or_array, _initial_or_array)  # or an array of one item in GPU memory
VALUE = Role(_read_value, lambda value, name: value)  # hashable; a plan is for one value


def optional(role: Role) -> Role:
    """A role whose argument may be None."""

    def read(value: Any, key: list, roots: list) -> None:
        if value is None:
            key.append(None)
        else:
            role.read(value, key, roots)

    return Role(read, lambda value, name: None if value is None else role.wrap(value, name), role.writes)


def with_default(role: Role, default: Any) -> Role:
    """A role whose argument may be None, which means the default."""

    def read(value: Any, key: list, roots: list) -> None:
        role.read(default if value is None else value, key, roots)

    return Role(read, lambda value, name: role.wrap(default if value is None else value, name))


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
        key, roots = self._read(args)
        plan = None if key is None else self._found.get(key)
        if plan is None:
            plan, roots = self._plan(key, args, roots)
        plan.used = True
        if temp_storage is not None:
            for_user(plan.run, args, roots, temp_storage, stream)
        return plan.nbytes

    def run_here(self, stream: Any, *args: Any) -> None:
        """A call without temporary storage from outside."""
        key, roots = self._read(args)
        plan = None if key is None else self._found.get(key)
        if plan is None:
            plan, roots = self._plan(key, args, roots)
        plan.used = True
        for_user(plan.run_once, args, roots, stream)

    @classmethod
    def once(cls, options: tuple, stream: Any, *args: Any) -> None:
        """A one-shot call: as that of an object made for its arguments."""
        key, roots = cls._read(args)
        plan = None if key is None else cls.plans.get((options, key))
        if plan is None:
            plan, roots = cls(options)._plan(key, args, roots)
        plan.used = True
        for_user(plan.run_once, args, roots, stream)

    # -------------------------------------------------------------- plans

    @classmethod
    def _read(cls, args: tuple) -> tuple[tuple | None, list]:
        key: list = []
        roots: list = []
        try:
            for read, value in zip(cls._readers, args, strict=True):
                read(value, key, roots)
            hash(found := tuple(key))
        except Exception:  # `_plan` says what is wrong
            return None, []
        return found, roots

    def _plan(self, key: tuple | None, args: tuple, roots: list) -> tuple[Plan, list]:
        """The plan for arguments that this object has not met, and their roots."""
        operands = [self._kind_checked(name, role.wrap(value, name))
                    for (name, role), value in zip(self.takes.items(), args, strict=True)]
        plan = None if key is None else self.plans.get((self.options, key))
        if plan is None:
            plan = Plan(operands)
            roots = plan.roots()
            self.plan(plan, *operands)
            plan.finish([name for name, role in self.takes.items() if role.writes], list(self.takes), args)
            if key is not None:
                self.plans.keep((self.options, key), plan)
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


class Initial(NamedTuple):
    """An initial value: its type, and the numbers in which it travels."""

    type: ValueType
    state: tuple[Held, ...]

    @property
    def kind(self) -> tuple:
        return "constant", self.type

    def slots(self) -> tuple[Held, ...]:
        return self.state

    def reader(self) -> Any:
        return constant_reader(self.type)

    def annotation(self, wide: bool) -> Any:
        return ints(self.type, True)

    def on_some_gpu(self, n: int) -> Initial:
        return Initial(self.type, held(self.type, (0,) * len(self.type.dtypes)))


class FromMemory:
    """An initial value that an array in GPU memory holds when kernels run."""

    def __init__(self, array: IteratorBase):
        self.type, self.kind, self.state = array.value_type, array.kind, array.state(1)
        self._array = array

    def slots(self) -> Any:
        return self._array.slots()

    def reader(self) -> Any:
        return First(self._array.reader(), self.type)

    def annotation(self, wide: bool) -> Any:
        return self._array.annotation(wide)

    def on_some_gpu(self, n: int) -> FromMemory:
        return FromMemory(self._array.on_some_gpu(1))


def on_some_gpu(x: Any, n: int) -> Any:
    """An operand like x, with arrays of n items that are nowhere."""
    return x.on_some_gpu(n) if hasattr(x, "on_some_gpu") else x


def ints(t: ValueType, there: bool) -> Any:
    """The annotation of a parameter that takes an initial value's state; `()` where there is none."""
    return tuple[(INT64,) * len(t.dtypes)] if there else tuple[()]


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


def check_apart(plan: Plan, written: dict[str, IteratorBase], read: dict[str, IteratorBase], n: int) -> None:
    """Each call of a plan begins with a check that the first n items of operands that are written share no memory with
    another operand's.
    """
    lines = [[Line(name, *found) for name, it in group.items() for found in _lines(it, n)] for group in (written, read)]
    plan.apart([*lines[0], *lines[1]], len(lines[0]))


def _lines(it: IteratorBase, n: int | None) -> Iterator[tuple[DeviceArray, int, int]]:
    """Where the first n items lie, or all that there are: arrays, from which byte on, and how many items."""
    if isinstance(it, ArrayIterator):
        yield it.array, it.start * it.array.stride, it.size() if n is None else min(n, it.size())
    for c in it.children:
        yield from _lines(c, n if it.in_order else None)
