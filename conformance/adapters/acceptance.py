"""Adapters that ask only whether kernels compile: nothing runs, and each kernel's verdict is recorded.

`python -m conformance.acceptance` runs the suite with them and compares implementations program by program.
"""

from __future__ import annotations

import inspect
import io
import linecache
import typing
from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.adapter import Adapter

EVERYTHING = frozenset({"cpu arrays", "float4 arrays", "measured", "safe memory", "negative strides", "overlap",
                        "assertion errors"})


class Acceptance(Adapter):
    """Records a verdict for each kernel that a test launches, compiles or expects to be refused, and goes on."""

    features = EVERYTHING

    def __init__(self) -> None:
        super().__init__()
        self.verdicts: list[dict[str, Any]] = []
        self.launch_for_real = self.ct.launch
        self.ct.launch = lambda _, grid, kernel, args, /, **options: self.compile(kernel, args)  # tests call it too

    def launch(self, grid: Any, kernel: Any, args: Sequence[Any]) -> None:
        self.judge(kernel, args)

    def compile(self, kernel: Any, args: Sequence[Any]) -> None:
        if (e := self.judge(kernel, args)) is not None:
            raise e

    def error(self, name: str) -> type[BaseException]:
        return Exception

    def judge(self, kernel: Any, args: Sequence[Any]) -> Exception | None:
        """Record the verdict on a kernel. Gives the error if the implementation refuses it."""
        record: dict[str, Any] = {"arguments": [kind(a) for a in args], "verdict": "accepted"}
        self.verdicts.append(record)
        try:
            self.check(kernel, tuple(args))
        except Exception as e:
            record.update(verdict="refused", error=self._public(e), where=_place(e),
                          message=str(getattr(e, "message", e)).split("\n")[0])
            return e
        return None

    def check(self, kernel: Any, args: tuple) -> None:
        """Compile the kernel. Gives the implementation's own error if it refuses."""
        raise NotImplementedError

    def _public(self, e: Exception) -> str:
        """The public name of an error's class: the class may have another `__name__`."""
        names = [n for n, v in vars(self.ct).items() if v is type(e)]
        return names[0] if names else type(e).__name__


class Cutile(Acceptance):
    """cutile, which types kernels without running them."""

    name = "cutile:acceptance"
    module = "cutile"

    def check(self, kernel: Any, args: tuple) -> None:
        self.launch_for_real(None, (0,), kernel, args)


class CudaTile(Acceptance):
    """The official implementation type-checks when it exports bytecode, which needs neither a GPU nor an assembler."""

    name = "cuda.tile:acceptance"
    module = "cuda.tile"

    def check(self, kernel: Any, args: tuple) -> None:
        compilation = self.ct.compilation
        annotations = typing.get_type_hints(kernel._pyfunc, include_extras=True)
        code = kernel._pyfunc.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        if len(names) != len(args) and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            raise TypeError(f"{len(names)} arguments are needed, {len(args)} are given")
        v2 = compilation.CallingConvention.cutile_python_v2()
        parameters = [self._constraint(a, annotations.get(n)) for n, a in zip(names, args)]
        signature = compilation.KernelSignature(parameters, v2, symbol="kernel")
        compilation.export_kernel(kernel, [signature], io.BytesIO(), output_format="tileir_bytecode",
                                  bytecode_version="13.4")

    def _constraint(self, value: Any, annotation: Any) -> Any:
        """What a parameter with this annotation promises of an argument."""
        compilation = self.ct.compilation
        if isinstance(value, np.ndarray):
            return self._array(value, _array_annotation(annotation))
        if type(value) is list and value and all(isinstance(v, np.ndarray) for v in value):
            elements = {self._key(v): v for v in value}
            if len(elements) > 1:
                raise TypeError("the arrays of a list differ")
            return compilation.ListConstraint(self._array(value[0], _array_annotation(annotation)), alias_groups=(),
                                              elements_may_alias=True)
        if type(value) is tuple:
            return compilation.TupleConstraint([self._constraint(v, _item(annotation, k))
                                                for k, v in enumerate(value)])
        return self._number(value, annotation)

    def _key(self, a: np.ndarray) -> tuple:
        return a.dtype, a.ndim

    def _array(self, a: np.ndarray, annotation: Any) -> Any:
        dtype = getattr(self.ct, "bool_" if a.dtype.kind == "b" else a.dtype.name)
        strides = [s // a.itemsize for s in a.strides]
        return self.ct.compilation.ArrayConstraint(
            dtype, a.ndim, index_dtype=getattr(annotation, "index_dtype", self.ct.int32), stride_lower_bound_incl=0,
            alias_groups=(), may_alias_internally=True,
            shape_constant=_listed(a.shape, getattr(annotation, "static_shape_dims", ())),
            stride_constant=_listed(strides, getattr(annotation, "static_stride_dims", ())))

    def _number(self, value: Any, annotation: Any) -> Any:
        metadata = getattr(annotation, "__metadata__", ())
        if any(isinstance(m, self.ct.ConstantAnnotation) for m in metadata):
            return self.ct.compilation.ConstantConstraint(value)
        if not isinstance(value, bool | int | float):
            raise TypeError(f"objects of type {type(value).__name__} are no arguments")
        wide = next((m.dtype for m in metadata if hasattr(m, "dtype")), self.ct.int32)
        dtype = self.ct.bool_ if isinstance(value, bool) else wide if isinstance(value, int) else self.ct.float32
        if dtype is wide and not -(1 << wide.bitwidth - 1) <= value < 1 << wide.bitwidth - 1:
            raise OverflowError(f"{value} does not fit {wide.name}")
        return self.ct.compilation.ScalarConstraint(dtype)


def _listed(values: Sequence[int], dims: tuple[int, ...]) -> list[int | None]:
    listed = {d % len(values) for d in dims if -len(values) <= d < len(values)}
    return [v if k in listed else None for k, v in enumerate(values)]


def _array_annotation(annotation: Any) -> Any:
    """The annotation of an array, or of the elements of a list: the metadata that has an index dtype."""
    for m in getattr(annotation, "__metadata__", ()):
        m = getattr(m, "element", m)
        if hasattr(m, "index_dtype"):
            return m
    return None


def _item(annotation: Any, k: int) -> Any:
    """The annotation of item k of a tuple; a Constant tuple makes each item constant."""
    if hasattr(annotation, "__metadata__"):
        inner = _item(annotation.__origin__, k)
        return typing.Annotated[inner if inner is not None else object, *annotation.__metadata__]
    items = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else ()
    if len(items) == 2 and items[1] is Ellipsis:
        return items[0]
    return items[k] if k < len(items) else None


def kind(value: Any) -> str:
    """An argument as the comparison shows it."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{value.ndim}]"
    if type(value) in (list, tuple):
        inside = ", ".join(map(kind, value))
        return f"[{inside}]" if type(value) is list else f"({inside})"
    return type(value).__name__


def _place(e: Exception) -> str | None:
    """The source line of an error."""
    loc = getattr(e, "loc", None)
    if loc is None or not getattr(loc, "filename", None):
        return None
    return linecache.getline(loc.filename, loc.line).strip()
