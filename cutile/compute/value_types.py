"""The types of items: numbers, and structs of items. Their methods are tile code, except those for the host.

A value of a struct is an instance of its class, a frozen dataclass; in tile code the fields may be tiles. `flat` gives
the numbers in a value, `nest` makes the value of numbers, and `cast` converts what an operator returned: a tuple, or
another struct of as many fields, field by field.
"""

from __future__ import annotations

import contextlib
import dataclasses
import keyword
import sys
from typing import Any

import numpy as np

import cutile as ct
from cutile.dtypes import DType, from_foreign, info, of_storage


@dataclasses.dataclass(frozen=True)
class Number:
    """Numbers of a dtype."""

    dtype: DType

    def cast(self, v):
        return ct.astype(v, self.dtype)

    def flat(self, v):
        return (v,)

    def nest(self, numbers):
        return numbers[0]

    def select(self, mask, x, y):
        return ct.where(mask, x, y)

    def item(self, v):
        """The only item of tiles of one item."""
        return v.item()

    def filled(self, v, shape):
        """Tiles of a shape that hold one value."""
        return ct.full(shape, v, self.dtype)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes of the numbers in a value, in order. For the host."""
        return (self.dtype,)

    def numbers(self, value: Any) -> tuple:
        """The numbers in a value of the host, as Python's: of an array the first one. For the host. TypeError for what
        is no number, ValueError for an array without items.
        """
        if type(value) in (int, float, bool):
            return (value,)
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return (value.item(),)
        found = np.asarray(value)
        if found.size == 0:
            raise ValueError("an array without items holds no value")
        if found.size > 1 and not isinstance(value, np.ndarray):
            raise TypeError(f"one value is needed, and {value!r:.100} holds {found.size}")
        if found.dtype.kind in "OUSMmc" or found.dtype.names:
            raise TypeError(f"{value!r:.100} is no number that converts to {self}")
        return (found.reshape(-1)[0].item(),)

    def __str__(self) -> str:
        return self.dtype.name


@dataclasses.dataclass(frozen=True)
class Struct:
    """Instances of a class that `gpu_struct` made. `starts`: where the numbers of each field begin, and the count."""

    cls: type
    parts: tuple
    starts: tuple

    def cast(self, v):
        if ct.static_eval(_is_dataclass(v)):
            return self.cast(tuple(getattr(v, name) for name in ct.static_iter(_field_names(v))))
        return self.cls(*tuple(self.parts[k].cast(v[k]) for k in ct.static_iter(range(len(self.parts)))))

    def flat(self, v):
        found = ()
        for k in ct.static_iter(range(len(self.parts))):
            found = found + self.parts[k].flat(v[k])
        return found

    def nest(self, numbers):
        return self.cls(*tuple(self.parts[k].nest(numbers[self.starts[k]:self.starts[k + 1]])
                               for k in ct.static_iter(range(len(self.parts)))))

    def select(self, mask, x, y):
        return self.cls(*tuple(self.parts[k].select(mask, x[k], y[k]) for k in ct.static_iter(range(len(self.parts)))))

    def item(self, v):
        return self.cls(*tuple(self.parts[k].item(v[k]) for k in ct.static_iter(range(len(self.parts)))))

    def filled(self, v, shape):
        return self.cls(*tuple(self.parts[k].filled(v[k], shape) for k in ct.static_iter(range(len(self.parts)))))

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return tuple(d for part in self.parts for d in part.dtypes)

    def numbers(self, value: Any) -> tuple:
        if isinstance(value, np.ndarray):
            value = value.reshape(-1)[0]
        names = self.cls.__dataclass_fields__
        items = value if isinstance(value, tuple) else [
            value[n] if isinstance(value, np.void) else getattr(value, n) for n in names]
        return tuple(x for part, item in zip(self.parts, items, strict=True) for x in part.numbers(item))

    def __str__(self) -> str:
        if self.cls.__name__ == _ZIPPED:
            return f"({', '.join(map(str, self.parts))})"
        fields = zip(dataclasses.fields(self.cls), self.parts, strict=True)
        return f"{self.cls.__name__}({', '.join(f'{f.name}: {part}' for f, part in fields)})"


ValueType = Number | Struct
_ZIPPED = "Zipped"  # the name of structs that nobody declared
COMPLEX: dict[np.dtype, Struct] = {}  # the types of complex numbers, which complex_numbers.py declares


def value_type(t: Any) -> ValueType:
    """The type of items that a dtype of NumPy or cutile, a class of `gpu_struct`, or a dataclass stands for. TypeError
    for others.
    """
    if isinstance(t, Number | Struct):
        return t
    if isinstance(t, type) and isinstance(getattr(t, "value_type", None), Struct):
        return t.value_type
    if isinstance(t, type) and dataclasses.is_dataclass(t):
        return gpu_struct(t).value_type
    if (d := from_foreign(t)) is not None:
        return Number(d)
    try:
        dtype = np.dtype(t)
    except TypeError:
        dtype = None
    if dtype is not None:
        if dtype.names:
            return gpu_struct(dtype).value_type
        if dtype in COMPLEX:
            return COMPLEX[dtype]
        if (d := of_storage(dtype)) is not None:
            return Number(d)
    raise TypeError(f"{t!r} is no type of items: pass a dtype, or a class that gpu_struct made")


# ------------------------------------------------------------------ structs


def _is_dataclass(v: Any) -> bool:
    """Whether a value is one of a dataclass of the user."""
    return dataclasses.is_dataclass(v) and not isinstance(v, StructValue)


def _field_names(v: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(v))


def annotations_of(obj: Any) -> dict[str, Any]:
    """The annotations of a function or class; those that are text and mean nothing where it is defined stay text."""
    found = dict(getattr(obj, "__annotations__", {}))
    captured = dict(zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True)) if hasattr(
        obj, "__code__") else {}
    space = {**getattr(sys.modules.get(obj.__module__), "__dict__", {}), **getattr(obj, "__globals__", {})}
    for name, cell in captured.items():
        with contextlib.suppress(ValueError):  # an empty cell
            space[name] = cell.cell_contents
    for name, text in found.items():
        if isinstance(text, str):
            with contextlib.suppress(Exception):
                found[name] = eval(text, space)
    return found


class StructClass(type):
    """The class of structs' classes: they may be called with one dict of their fields, too."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], dict):
            args, kwargs = (), args[0]
        return super().__call__(*args, **kwargs)


class StructValue(metaclass=StructClass):
    """The base of structs' classes: fields by position, and equality by fields."""

    _cutile_struct = True

    def __len__(self) -> int:
        return len(type(self).value_type.parts)

    def __iter__(self):
        return (getattr(self, f.name) for f in dataclasses.fields(self))

    def __getitem__(self, key: Any) -> Any:
        """A field, as in operators, or several of a slice: for the host, and for static constructs of tile code."""
        return tuple(self)[key]


def gpu_struct(fields: Any, name: str = "AnonymousStruct") -> Any:
    """The class of a struct [TYP-2].

    Parameters
    ----------
    fields : dict, np.dtype or class
        Names and types of the fields: a dict, a structured dtype, or an annotated class, also as a decorator. Types are
        dtypes, classes of structs, and dicts.
    name : str, default "AnonymousStruct"
        The name of the class, where no class gives it.

    Returns
    -------
    class
        Values are made from positions or keywords, or from one dict. `dtype` is the structured NumPy dtype, with C's
        alignment.

    Raises
    ------
    TypeError
        If there are no fields, or a type is none.
    ValueError
        If a name is no identifier.

    Examples
    --------
    >>> Point = ct.compute.gpu_struct({"x": np.float32, "n": np.int32})
    >>> points, out = np.array([(1, 2), (3, 4)], Point.dtype), np.zeros(2, Point.dtype)
    >>> ct.compute.unary_transform(points, out, lambda p: Point(p.x * 2, p.n + 1), 2)
    >>> out.tolist()
    [(2.0, 3), (6.0, 5)]
    """
    if isinstance(fields, type) and not issubclass(fields, np.generic):
        name, fields = fields.__name__, annotations_of(fields)
    elif isinstance(fields, np.dtype):
        fields = {n: fields.fields[n][0] for n in fields.names}
    if not isinstance(fields, dict) or not fields:
        raise TypeError(f"gpu_struct() takes a dict of fields, a structured dtype or an annotated class, got "
                        f"{fields!r}")
    for n in fields:
        if not isinstance(n, str) or not n.isidentifier() or keyword.iskeyword(n):
            raise ValueError(f"the field name {n!r} of struct {name} is no identifier")
    types = {n: gpu_struct(t, n).value_type if isinstance(t, dict) else value_type(t) for n, t in fields.items()}
    return _struct_class(name, tuple(types.items()))


_CLASSES: dict[tuple, type] = {}  # one class for structs of equal names and fields, as many as a program has


def _struct_class(name: str, types: tuple[tuple[str, ValueType], ...]) -> type:
    found = _CLASSES.get((name, types))
    if found is None:
        cls = dataclasses.make_dataclass(name, [(n, Any) for n, _ in types], frozen=True, bases=(StructValue,))
        parts = tuple(t for _, t in types)
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + len(part.dtypes))
        cls.value_type = Struct(cls, parts, tuple(starts))
        cls.dtype = np.dtype([(n, storage(t)) for n, t in types], align=True)
        found = _CLASSES.setdefault((name, types), cls)
    return found


def storage(t: ValueType) -> np.dtype:
    """The NumPy dtype of items in memory."""
    return info(t.dtype).storage if isinstance(t, Number) else t.cls.dtype


def tuple_of(types: tuple[ValueType, ...]) -> type:
    """The struct that zipped items are: its fields are field_0, field_1, … [ITR-5]."""
    return _struct_class(_ZIPPED, tuple((f"field_{k}", t) for k, t in enumerate(types)))
