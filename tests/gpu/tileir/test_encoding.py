"""Numbers, lists and tables as bytecode: what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutile.gpu.tileir.encoding import Interned, int_list, signed_varint, table, varint
from tests.tileir_eval.bytecode_cursor import Cursor
from tests.tileir_eval.bytecode_cursor import table as read_table


@given(st.integers(0, 2**64 - 1))
def test_numbers(n):
    cursor = Cursor(varint(n))
    assert cursor.varint() == n and cursor.done
    assert len(varint(n)) == max(1, -(-n.bit_length() // 7))


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers(n):
    cursor = Cursor(signed_varint(n))
    assert cursor.signed() == n and cursor.done
    assert signed_varint(n % 2**64) == signed_varint(n)


def test_numbers_byte_for_byte():
    assert varint(0) == b"\0" and varint(127) == b"\x7f" and varint(300) == b"\xac\x02"
    assert signed_varint(0) == b"\0" and signed_varint(-1) == b"\x01" and signed_varint(1) == b"\x02"
    assert signed_varint(2**64 - 1) == signed_varint(-1)
    assert int_list((1, -1), 4) == b"\x02\1\0\0\0\xff\xff\xff\xff"


def test_negative_numbers_need_a_sign():
    with pytest.raises(ValueError, match="negative"):
        varint(-1)


@given(st.sampled_from((1, 4, 8)).flatmap(lambda width: st.tuples(st.just(width), st.lists(
    st.integers(-(2**(8 * width - 1)), 2**(8 * width - 1) - 1)))))
def test_lists(case):
    width, values = case
    cursor = Cursor(int_list(values, width))
    assert cursor.ints(width) == tuple(values) and cursor.done


@given(st.lists(st.binary(max_size=20), max_size=8), st.sampled_from((1, 4, 8)), st.integers(0, 9))
def test_tables(entries, width, before):
    written = table(entries, width, before)
    cursor = Cursor(bytes(before) + written, before)
    assert read_table(cursor, width) == entries and cursor.done


def test_things_are_numbered_as_they_come():
    numbers = Interned()
    assert [numbers[x] for x in "abcab"] == [0, 1, 2, 0, 1] and list(numbers) == ["a", "b", "c"]
