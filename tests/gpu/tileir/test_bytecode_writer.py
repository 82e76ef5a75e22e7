"""Bytecode, byte for byte: sections, tables of types and positions."""

import pytest

from cutile.errors import TileInternalError
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Module
from cutile.gpu.tileir.bytecode_writer import TablesWriter, section


def test_a_section_begins_where_it_is_aligned():
    made = section("func", b"abc", 8, 13)
    assert made == b"\x82\x03\x08" + made[3:-3] + b"abc" and (13 + len(made) - 3) % 8 == 0
    assert set(made[3:-3]) <= {0xCB}
    assert section("global", b"abc", 1, 13) == b"\x06\x03abc"


def test_an_empty_module():
    assert Module("13.1").to_bytes() == (
        b"\x7fTileIR\0" + b"\x0d\x01\0\0"
        + b"\x82\x08\x08\xcb" + b"\0" + b"\xcb" * 7  # no functions
        + b"\x85\x04\x04\xcb" + b"\0" + b"\xcb" * 3  # no types
        + b"\x81\x04\x04\xcb" + b"\0" + b"\xcb" * 3  # no strings
        + b"\0")


VIEW = ty.TensorView(ty.f32, (None, 8), (8, 1))


@pytest.mark.parametrize("version, data", [
    ((13, 1), b"\x0f" + b"\1\4\0\0\0" + b"\1" + b"\1\1\0\0\0" + b"\1\2"),
    ((13, 3), b"\x0f" + b"\1" + b"\1\4\0\0\0" + b"\1" + b"\1\1\0\0\0" + b"\2"),
])
def test_padding_of_a_view_is_flagged_behind_and_from_13_3_on_ahead(version, data):
    tables = TablesWriter(version)
    tables.type(ty.PartitionView((4,), VIEW, (1,), "nan"))
    assert tables.type_table().endswith(data)


def test_a_type_is_written_once_and_after_its_parts():
    tables = TablesWriter((13, 1))
    numbers = [tables.type(ty.tile(ty.ptr(ty.f32), (8,))), tables.type(ty.tile(ty.ptr(ty.f32), (8,))),
               tables.type(ty.f32), tables.type(ty.ptr(ty.f32))]
    assert numbers == [2, 2, 0, 1]


def test_a_block_needs_a_terminator():
    module = Module("13.4")
    module.entry("k", [])
    with pytest.raises(TileInternalError, match="without a terminator"):
        module.to_bytes()


def test_equal_programs_are_equal_bytes():
    def make():
        m = Module("13.4")
        b = m.entry("k", [ty.tile(ty.i32)], hints={"sm_90": {"occupancy": 1}}).body
        b.op("print_tko", [[b.constant(ty.tile(ty.f32, (4,)), 1.5)]], str="%f")
        b.op("return")
        return m.to_bytes()

    assert make() == make()
