"""Parameters as the driver reads them, bit for bit [CC-3…8]."""

import ctypes
import struct
import types

import pytest

import cutile as ct
from cutile.gpu.parameters import packing
from cutile.types import ArrayType, ListType, TileType


def packed(of, dims, values, sizes):
    """The bytes of each parameter."""
    buffer = packing(of, dims).buffer()
    pointers = (ctypes.c_void_p * len(sizes)).from_address(buffer.fill(values))
    return [ctypes.string_at(p, n) for p, n in zip(pointers, sizes)]


@pytest.mark.parametrize("dtype, value, want", [
    (ct.bool_, True, "<i", ), (ct.bool_, False, "<i"), (ct.int32, -7, "<i"), (ct.int32, 2**31 - 1, "<i"),
    (ct.int64, -2**40, "<q"), (ct.float32, 0.1, "<f"), (ct.float32, -0.0, "<f")])
def test_numbers(dtype, value, want):  # CC-4
    assert packed([TileType(dtype)], [None], [value], [struct.calcsize(want)]) == [struct.pack(want, value)]


def test_a_float_beyond_float32_is_infinite():  # ARG-6
    assert packed([TileType(ct.float32)], [None], [1e300], [4]) == [struct.pack("<f", float("inf"))]


@pytest.mark.parametrize("index, letter", [(ct.int32, "i"), (ct.uint32, "I"), (ct.int64, "q")])
def test_arrays(index, letter):  # CC-5
    t = ArrayType(ct.float16, 3, index)
    low = -5 if letter != "I" else 5
    got = packed([t], [((2, 3, 4), (12, low, 1))], [2**47 + 16], [8, *[struct.calcsize(letter)] * 6])
    assert got == [struct.pack("<Q", 2**47 + 16), *(struct.pack("<" + letter, v) for v in (2, 3, 4, 12, low, 1))]


def test_pointers_of_64_bits():
    assert packed([ArrayType(ct.int8, 0)], [((), ())], [2**64 - 8], [8]) == [struct.pack("<Q", 2**64 - 8)]


def test_static_dims_are_passed_too():  # CC-5
    t = ArrayType(ct.float32, 1, static_shape=(7,), static_strides=(2,))
    assert packed([t], [((7,), (2,))], [64], [8, 4, 4]) == [struct.pack("<Q", 64), b"\7\0\0\0", b"\2\0\0\0"]


def test_order():  # CC-3, CC-7: leaves of tuples stand in their place
    types = [TileType(ct.int32), ArrayType(ct.float32, 1), TileType(ct.float32), TileType(ct.bool_)]
    got = packed(types, [None, ((5,), (1,)), None, None], [3, 4096, 1.5, True], [4, 8, 4, 4, 4, 4])
    assert got == [struct.pack(f, v) for f, v in (("<i", 3), ("<Q", 4096), ("<i", 5), ("<i", 1), ("<f", 1.5),
                                                  ("<i", 1))]


def test_nothing_to_pass():  # CC-8
    assert packed([], [], [], []) == []


def test_lists():  # CC-6
    element = ArrayType(ct.float32, 2)
    p = packing([TileType(ct.int32), ListType(element)], [None, [((2, 3), (3, 1)), ((4, 5), (-5, 1))]])
    (table,) = p.tables
    assert table.slot == 1
    items = struct.unpack("<10q", bytes(table.filled([2**63 + 8, 256])))
    assert items == (8 - 2**63, 2, 3, 3, 1, 256, 4, 5, -5, 1)
    got = packed([TileType(ct.int32), ListType(element)], [None, [((2, 3), (3, 1)), ((4, 5), (-5, 1))]], [9, 512],
                 [4, 8, 4])
    assert got == [struct.pack("<i", 9), struct.pack("<Q", 512), struct.pack("<i", 2)]


C = types.SimpleNamespace(FIXED=0, BITS64=1, BITS32=2, FLOAT32=3, PARAMETERS=512)  # of runtime/_launcher.c


def test_an_image_for_c_code():
    """The first bytes are those of a buffer; launch values go where a buffer has them."""
    of = [TileType(ct.int32), ArrayType(ct.float32, 1), TileType(ct.int64), TileType(ct.float32), TileType(ct.bool_)]
    image, how = packing(of, [None, ((5,), (-1,)), None, None, None]).image(C)
    assert list(how) == [C.BITS32, C.BITS64, C.FIXED, C.FIXED, C.BITS64, C.FLOAT32, C.BITS32]
    assert image == b"".join(struct.pack("<q", v & 2**32 - 1) for v in (0, 0, 5, -1, 0, 0, 0))


def test_what_has_no_image():
    assert packing([ListType(ArrayType(ct.float32, 1))], [[((2,), (1,))]]).image(C) is None
    assert packing([TileType(ct.int32)] * 512, [None] * 512).image(C) is not None
    assert packing([TileType(ct.int32)] * 513, [None] * 513).image(C) is None


def test_a_buffer_is_filled_again_and_again():
    buffer = packing([ArrayType(ct.float32, 1)], [((5,), (1,))]).buffer()
    one = buffer.fill([64])
    assert buffer.fill([128]) == one
    assert ctypes.c_uint64.from_address((ctypes.c_void_p * 3).from_address(one)[0]).value == 128
