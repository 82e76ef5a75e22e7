"""Run-time loops: range, carried variables, how control leaves [LOOP-*, ST-10…14]."""

import numpy as np
import pytest

import cutile as ct
from tests.front.compiling import A1, AI, ARRAYS, I32, C, cell, refused, result, text, typed


def test_for_range_forms():  # LOOP-1, LOOP-2
    def f(start, stop, step):
        a = b = c = 0
        for i in range(stop):
            a += i
        for i in range(start, stop):
            b += i
        for i in range(start, stop, step):
            c += i
        return a * 10000 + b * 100 + c

    def g(stop):
        total = 0
        for i in range(10, stop, 3):
            total += i
        return total

    assert result(f, 2, 9, 3) == 36 * 10000 + 35 * 100 + 15
    assert result(f, 5, 3, 1) == 3 * 10000
    assert result(g, 20) == sum(range(10, 20, 3))
    assert result(g, -20) == 0


def test_range_object_is_reused():  # LOOP-1
    def f(n):
        r = range(n)
        total = 0
        for i in r:
            for j in r:
                total += i * j
        return total

    assert result(f, 4) == 36


@pytest.mark.parametrize(
    "dtype,induction", [("int8", "int32"), ("int16", "int32"), ("int32", "int32"), ("int64", "int64")]
)
def test_induction_dtype(dtype, induction):  # LOOP-3, IDX-4
    k = cell(f"""
        def k(n):
            for i in range(ct.{dtype}(3)):
                d = i.dtype
                ct.static_assert(d == ct.{induction})
            for i in range(n.astype(ct.{dtype})):
                d = i.dtype
                ct.static_assert(d == ct.{induction})
    """)["k"]
    typed(k, I32)


@pytest.mark.parametrize(
    "bound", ["1.0", "True", "ct.uint32(3)", "ct.zeros((2,), ct.int32)", "None", "x", "(1,)", "n > 1"]
)
def test_what_range_refuses(bound):  # LOOP-1
    refused(cell(f"def k(x, n):\n    range({bound})")["k"], A1, I32, says='argument "stop" of range()')


def test_range_steps_and_counts():  # LOOP-1, LOOP-2
    for args in ("0, 3, 0", "0, 3, -1"):
        refused(cell(f"def k():\n    range({args})")["k"], says="positive step", help="i = n - 1 - k")
    for args in ("", "1, 2, 3, 4"):
        refused(cell(f"def k():\n    range({args})")["k"], says="range() takes 1 or 2 or 3 arguments")


def test_bounds_are_evaluated_once():  # LOOP-3
    def f(n):
        total = 0
        for i in range(n):
            n = 100
            i = i * 2
            total += i
        return total

    assert result(f, 4) == 12


def test_induction_variable_is_never_constant():  # LOOP-4
    def k():
        for i in range(1):
            ct.zeros((i,), ct.float32)

    refused(k, says="not constant")


@pytest.mark.parametrize(
    "source,says",
    [
        ("x", "a float32 array of rank 1"),
        ("(1, 2)", "a tuple"),
        ("x.shape", "a tuple"),
        ("n", "an int32 scalar"),
        ("'ab'", "a string 'ab'"),
    ],
)
def test_what_a_loop_does_not_run_over(source, says):  # ST-13
    k = cell(f"def k(x, n):\n    for i in {source}:\n        i + 1")["k"]
    refused(k, A1, I32, at=source, says=f"not over {says}", help="static_iter" if says == "a tuple" else "range")


def test_a_loop_over_a_list_of_arrays_says_how():  # ST-13, LIST-1
    k = cell("def k(xs):\n    for x in xs:\n        x.shape")["k"]
    refused(k, ARRAYS, at="xs", says="not over a list", help="for i in range(len(arrays)), and arrays[i]")


def test_pattern_as_induction_variable():  # ST-11
    def k(n):
        for i, j in range(n):
            pass

    refused(k, I32, at="i, j", says="cannot unpack an int32 scalar")


# ------------------------------------------------------------------ carried variables


def test_carried_type_is_fixed():  # LOOP-5
    def changes(n):
        y = 0
        for i in range(n):
            y = y + 1.0

    def widens(n):
        y = ct.int8(0)
        for i in range(n):
            y = y + i

    def fine(n):
        y = 0.0
        for i in range(n):
            y = y + 1
        d = y.dtype
        ct.static_assert(d == ct.float32)

    e = refused(
        changes, I32, at="y = y + 1.0", says="Type of `y` depends on path taken: int32 scalar vs. float32 scalar"
    )
    assert "a variable that a loop carries" in e.message
    assert len(e.notes) == 2
    refused(widens, I32, says="int8 scalar vs. int32 scalar")
    typed(fine, I32)


def test_carried_none_and_structure():  # LOOP-5, JOIN-2
    def none(n):
        y = None
        for i in range(n):
            y = i

    def longer(n):
        t = ()
        for i in range(n):
            t = (*t, i)

    refused(none, I32, says="None vs. int32 scalar")
    refused(longer, I32, says="tuple () vs. tuple (int32 scalar,)")


def test_inside_a_carried_variable_is_not_constant():  # LOOP-6
    def k(n):
        size = 4
        for i in range(n):
            ct.zeros((size,), ct.float32)
            size = 4

    refused(k, I32, says="not constant")


def test_after_the_loop_it_is_constant_again():  # LOOP-6
    def f(n):
        size, t = 4, (8, 0)
        for i in range(n):
            size, t = 4, (8, i)
            if i == 3:
                break
        ct.static_assert(size == 4 and t[0] == 8)
        return t[1]

    assert [int(result(f, n)) for n in (3, 9)] == [2, 3]


@pytest.mark.parametrize("leaves", ["break", "continue"])
def test_a_path_with_the_carried_value_gives_no_constant(leaves):  # LOOP-6
    k = cell(f"""
        def k(n):
            size = 4
            for i in range(n):
                if i == 3:
                    {leaves}
                size = 4
            ct.zeros((size,), ct.float32)
    """)["k"]
    refused(k, I32, says="not constant")


def test_constant_again_only_if_all_paths_agree():  # LOOP-6
    def k(n):
        size = 4
        while n > 0:
            n -= 1
            if n == 2:
                size = 8
                continue
            size = 4
        ct.zeros((size,), ct.float32)

    refused(k, I32, says="not constant")


def test_untouched_variables_stay_constant_inside():
    def k(n):
        size = 4
        for i in range(n):
            ct.zeros((size,), ct.float32)

    typed(k, I32)


def test_carried_tuples_records_and_ranges():  # JOIN-5, JOIN-6
    space = cell("""
        import dataclasses
        @dataclasses.dataclass(frozen=True)
        class P:
            x: int
            y: tuple
        def f(n):
            p, r, t = P(0, (1, 2)), range(1), ("a", 0)
            for i in range(n):
                for j in r:
                    p = P(p.x + j, (p.y[1], p.y[0]))
                r, t = range(i + 2), ("a", t[1] + 1)
            ct.static_assert(t[0] == "a")
            return p.x * 1000 + p.y[0] * 100 + t[1]
    """)

    def reference(n):
        x, y, m, k = 0, (1, 2), 1, 0
        for i in range(n):
            for j in range(m):
                x, y = x + j, (y[1], y[0])
            m, k = i + 2, k + 1
        return x * 1000 + y[0] * 100 + k

    assert [int(result(space["f"], n)) for n in range(5)] == [reference(n) for n in range(5)]


def test_carried_arrays_and_views():  # JOIN-6, ARR-7
    def f(x, n):
        a, v = x, x.tiled_view(2)
        for i in range(n):
            v = x.tiled_view(2)
            x.slice(0, 0, 2)
        return ct.gather(a, 3) + v.load(1).extract(0, ()).item()

    def other(x, n):
        v = x.tiled_view(2)
        for i in range(n):
            v = x.tiled_view(4)

    assert result(f, np.arange(8, dtype=np.int32), 2) == 5
    refused(other, A1, I32, says="tile shape (2,) vs. tiled view")


def test_closures_carried_by_a_loop():  # JOIN-6
    def make(v):
        w = v * 2
        return lambda: w

    def f(n):
        g = make(0)
        for i in range(n):
            g = make(g() + i)
        return g()

    assert result(f, 4) == 22


def test_defaults_of_joined_lambdas():  # JOIN-6
    def make(v):
        return lambda a=v: a

    def f(n):
        g = make(n)
        if n > 2:
            g = make(n * 10)
        return g()

    assert [int(result(f, n)) for n in (1, 3)] == [1, 30]


# ------------------------------------------------------------------ variables after the loop


def test_first_assigned_inside_is_undefined_after():  # LOOP-7
    def k(x, n):
        for i in range(4):
            z = i
        ct.scatter(x, z, 0)

    def induction(x, n):
        for i in range(4):
            pass
        ct.scatter(x, i, 0)

    def loop(x, n):
        while n > 0:
            n -= 1
            z = n
        ct.scatter(x, z, 0)

    why = "Use of potentially undefined variable `z`: it is assigned only inside the loop"
    refused(k, AI, I32, at="z", says=why)
    refused(induction, AI, I32, at="i", says="variable `i`")
    refused(loop, AI, I32, at="z", says=why)


def test_induction_variable_defined_before():  # LOOP-7
    def f(n):
        i = -1
        for i in range(n):
            pass
        return i

    def conflict(n):
        i = 0.0
        for i in range(n):
            pass

    assert [int(result(f, n)) for n in (0, 5)] == [-1, 4]
    refused(conflict, I32, says="float32 scalar vs. int32 scalar")


def test_while_true_defines_what_its_breaks_have_seen():  # LOOP-7
    def f(n):
        i = 0
        while True:
            i += 1
            y = i * i
            if y > n:
                z = 1
                break
            if i == 9:
                z = 2
                break
        return y * 10 + z

    def early(n):
        while True:
            if n > 2:
                break
            y = 1
            n += 1
        ct.assert_(y > 0)

    assert [int(result(f, n)) for n in (10, 99)] == [161, 812]
    refused(early, I32, at="y")


def test_while_true_with_a_constant_that_is_true():  # COND-1
    for cond in ("1", "'a'", "(0,)", "ct"):
        typed(cell(f"def k(x):\n    while {cond}:\n        y = 1\n        break\n    ct.scatter(x, 0, y)")["k"], AI)


def test_while_false_is_not_compiled():  # COND-2
    for cond in ("False", "0", "None", "''", "()"):
        assert "while" not in text(cell(f"def k():\n    while {cond}:\n        nothing")["k"])


def test_flag_that_starts_true_is_a_real_condition():  # LOOP-6
    def f(n):
        going = True
        i = 0
        while going:
            i += 1
            going = i < n
        return i

    assert [int(result(f, n)) for n in (0, 5)] == [1, 5]


def test_infinite_loop_compiles():  # LOOP-10
    def k(n):
        while True:
            pass

    def nested(n):
        if n > 1:
            while True:
                n += 1
        return

    assert "while true" in text(k, I32)
    typed(nested, I32)


def test_loop_left_by_return_only():  # LOOP-10, ST-15
    def f(n):
        while True:
            n = n * 2
            if n > 100:
                return n

    def g(n):
        m = f(n)
        while m > 3:
            m -= 2
            if m % 5 == 0:
                return m
        return -m

    assert result(f, 3) == 192
    assert result(g, 3) == 190


def test_use_before_assignment_in_later_iterations():  # LOOP-8
    def k(n):
        for i in range(n):
            if i > 0:
                ct.assert_(prev >= 0)
            prev = i

    refused(k, I32, at="prev", says="in the first iteration it has not been assigned yet")


def test_maybe_undefined_before_a_loop():
    def f(n):
        if n > 2:
            y = 1
        while True:
            y = n + 5
            break
        return y

    assert result(f, 1) == 6


def test_break_and_continue_in_nested_ifs():  # LOOP-9, ST-14
    def f(n):
        total = 0
        for i in range(n):
            if i > 2:
                if i % 2 == 0:
                    continue
                else:
                    if i > 7:
                        break
            j = 0
            while j < i:
                j += 1
                if j == 3:
                    break
                total += j
            total += i * 100
        return total

    def reference(n):
        total = 0
        for i in range(n):
            if i > 2 and i % 2 == 0:
                continue
            if i > 7:
                break
            total += sum(range(1, min(i, 2) + 1)) + i * 100
        return total

    assert [int(result(f, n)) for n in (0, 3, 9, 20)] == [reference(n) for n in (0, 3, 9, 20)]


def test_break_holds_the_values_at_the_break():  # LOOP-9
    def f(n):
        y = 0
        for i in range(10):
            y = i * 10
            if i == n:
                break
        return y

    assert [int(result(f, n)) for n in (0, 4, 77)] == [0, 40, 90]


def test_other_type_at_a_break_is_a_conflict_only_if_used():  # JOIN-2, LOOP-5
    def k(n):
        y = 1
        while n > 3:
            y = 2.0
            break

    def used(n):
        y = 1
        while n > 3:
            y = 2.0
            break
        ct.assert_(y > 0)

    typed(k, I32)
    refused(used, I32, at="y", says="int32 scalar vs. float32 scalar")


def test_all_errors_of_a_loop_once():
    def k(n):
        for i in range(nothing):
            j = i + other
            n = j

    e = refused(k, I32, cls=ct.TileSyntaxError, at="nothing", alone=False)
    assert [x.message.split("`")[1] for x in e.errors] == ["nothing", "other"]


def test_constant_parameters_stay_constant_in_loops():
    def k(size, n):
        for i in range(n):
            ct.zeros((size,), ct.float32)

    typed(k, C(4), I32)
