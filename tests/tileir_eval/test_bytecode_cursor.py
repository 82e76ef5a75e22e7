"""Taking bytecode apart: numbers, tables and sections, and bytes that are none."""

import pytest

from cutile.gpu.tileir.bytecode_writer import MAGIC
from tests.tileir_eval.bytecode_cursor import Cursor, MalformedBytecode, sections, table


@pytest.mark.parametrize("data, n", [(b"\x00", 0), (b"\x7f", 127), (b"\x80\x01", 128), (b"\xac\x02", 300),
                                     (b"\xff" * 9 + b"\x01", 2**64 - 1)])
def test_numbers_of_seven_bits_a_byte(data, n):
    cursor = Cursor(data)
    assert cursor.varint() == n and cursor.done


def test_signed_numbers_alternate():
    cursor = Cursor(bytes(range(5)))
    assert [cursor.signed() for _ in range(5)] == [0, -1, 1, -2, 2]


def test_lists_of_ints():
    assert Cursor(b"\x02\x01\x00\xff\xff").ints(2) == (1, -1)


def test_alignment_counts_from_the_first_byte():
    cursor = Cursor(bytes(10), 3)
    cursor.align(4)
    assert cursor.at == 4
    cursor.align(4)
    assert cursor.at == 4
    with pytest.raises(MalformedBytecode):
        cursor.align(0)


@pytest.mark.parametrize("read", [lambda c: c.take(3), lambda c: (c.take(2), c.byte()), Cursor.varint])
def test_what_ends_too_early(read):
    with pytest.raises(MalformedBytecode, match="wanted"):
        read(Cursor(b"\xff\xff"))


def test_a_number_that_is_too_long():
    with pytest.raises(MalformedBytecode, match="64 bits"):
        Cursor(b"\xff" * 11).varint()


def test_a_table_is_cut_at_its_offsets():
    assert table(Cursor(b"\x03\x00" + b"\x00\x00\x02\x00\x02\x00" + b"abcde"), 2) == [b"ab", b"", b"cde"]
    with pytest.raises(MalformedBytecode, match="order"):
        table(Cursor(b"\x02\x00" + b"\x04\x00\x02\x00" + b"abcde"), 2)


HEAD = MAGIC + b"\x0d\x03\x00\x00"  # version 13.3


def test_sections_by_name():
    version, found = sections(HEAD + b"\x01\x02ab" + b"\x00")
    assert version == (13, 3) and list(found.values()) == [b"ab"]


@pytest.mark.parametrize("data, why", [
    (b"ELF" + HEAD, "no Tile IR"), (MAGIC + b"\x0c\x09\x00\x00\x00", "12.9 is not known"),
    (HEAD + b"\x01\x00\x01\x00\x00", "unexpected section 1"), (HEAD + b"\x7f\x00\x00", "unexpected section 127"),
    (HEAD + b"\x00\x00", "after the end"), (HEAD + b"\x01\x05ab", "wanted"), (HEAD, "wanted"),
])
def test_what_is_no_bytecode(data, why):
    with pytest.raises(MalformedBytecode, match=why):
        sections(data)
