"""Which parameters a kernel may store to, by every way on which an array reaches a store."""

from __future__ import annotations

import pytest

import cutile as ct
from cutile.analysis.aliasing import (
    all_writes,
    first_writes,
    is_written,
    memory_classes,
    only_updates,
    read_params,
    written_params,
)
from cutile.types import ListType
from tests.front.compiling import A1, I32, typed


def by_slice(a, b, arrays, n):
    ct.store(a.slice(0, 1, n), 0, 1.0)


def by_pointer(a, b, arrays, n):
    ct.store(ct.Array.from_foreign(a.foreign_pointer, (n,), (1,)), 0, 1.0)


def by_raw_memory(a, b, arrays, n):
    a.get_raw_memory().atomic_add_offset(n, 1.0)


def by_scatter(a, b, arrays, n):
    ct.scatter(a, ct.arange(8, dtype=ct.int32), 1.0)


def by_view(a, b, arrays, n):
    a.tiled_view(8).store(0, 1.0)


def by_call(a, b, arrays, n):
    def put(x):
        ct.store(x, 0, 1.0)

    put(a)


def by_branch(a, b, arrays, n):
    x = a if n > 0 else b
    ct.store(x, 0, 1.0)


def by_loop(a, b, arrays, n):
    x = b
    for _ in range(n):
        ct.store(x, 0, 1.0)
        x = a


def by_item(a, b, arrays, n):
    ct.store(arrays[n], 0, 1.0)


def by_none(a, b, arrays, n):
    ct.load(a, 0, 8)
    ct.gather(b, ct.arange(8, dtype=ct.int32))
    print(ct.load(arrays[n], 0, ()))


def by_store_of_load(a, b, arrays, n):
    x = b if n > 0 else arrays[0]
    ct.store(a, 0, ct.load(x.slice(0, 0, n), 0, 8))


WRITTEN = {by_branch: "ab", by_loop: "ab", by_item: "arrays", by_none: ""}


@pytest.mark.parametrize("fn", [by_slice, by_pointer, by_raw_memory, by_scatter, by_view, by_call, *WRITTEN],
                         ids=lambda f: f.__name__)
def test_written_parameters(fn):
    kernel = typed(fn, A1, A1, ListType(A1), I32)
    want = WRITTEN.get(fn, "a")
    found = {name for p, name in zip(kernel.params, kernel.param_names) if p in written_params(kernel)}
    assert found == ({want} if want == "arrays" else set(want))
    assert not is_written(kernel)(kernel.params[3])  # a number


READ = {by_none: {"a", "b", "arrays"}, by_raw_memory: {"a"}}


@pytest.mark.parametrize("fn", [by_store_of_load, by_slice, by_scatter, by_view, by_item, *READ],
                         ids=lambda f: f.__name__)
def test_read_parameters(fn):
    kernel = typed(fn, A1, A1, ListType(A1), I32)
    found = {name for p, name in zip(kernel.params, kernel.param_names) if p in read_params(kernel)}
    assert found == READ.get(fn, {"b", "arrays"} if fn is by_store_of_load else set())


def test_the_first_write_of_a_parameter():
    def fn(a, b, arrays, n):
        ct.store(b, 0, ct.load(a, 0, 8))
        ct.atomic_add(a, 0, 1.0)
        ct.store(a, 0, 1.0)

    kernel = typed(fn, A1, A1, ListType(A1), I32)
    a, b, *_ = kernel.params
    assert {p: n.span.source_line().strip()[:9] for p, n in first_writes(kernel).items()} == {
        a: "ct.atomic", b: "ct.store("}


def test_classes_of_memory():
    kernel = typed(by_branch, A1, A1, ListType(A1), I32)
    a, b, arrays, _ = kernel.params
    of = memory_classes(kernel)
    assert of(a) is of(b) is not of(arrays)
    of = memory_classes(kernel, [(b, arrays)])
    assert of(a) is of(arrays)


def added(a):
    ct.atomic_add(a, 0, 1.0)
    ct.atomic_cas(a, 1, 1.0, 2.0)


def compared(a):
    ct.atomic_cas(a, 0, 1.0, 2.0)


def exchanged(a):
    ct.atomic_add(a, 0, 1.0)
    ct.atomic_xchg(a, 0, 1.0)


def exchanged_at(a):
    a.get_raw_memory().atomic_xchg_offset(0, 1.0)


def added_at(a):
    a.get_raw_memory().atomic_add_offset(0, 1.0)


def stored(a):
    ct.atomic_add(a, 0, 1.0)
    ct.store(a, 0, 1.0)


def only_stored(a):
    ct.store(a, 0, 1.0)


@pytest.mark.parametrize("fn, first", [
    (added, "atomic_add"), (compared, "atomic_cas"), (exchanged, None), (exchanged_at, None),
    (added_at, "atomic_add_offset"), (stored, None), (only_stored, None)], ids=lambda x: getattr(x, "__name__", ""))
def test_arrays_that_are_only_updated(fn, first):
    """By atomics that read what they change: the first of them."""
    kernel = typed(fn, A1)
    op = only_updates(all_writes(kernel)[kernel.params[0]])
    assert (op and op.op.name) == first
    assert only_updates(()) is None
