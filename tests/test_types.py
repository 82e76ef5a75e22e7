from cutile.dtypes import bool_, float32, int64
from cutile.types import ArrayType, ListType, PaddingMode, RoundingMode, TileType, TokenType, is_power_of_two


def test_tiles():
    t = TileType(float32, (2, 4))
    assert (t.ndim, t.size, str(t), t.describe()) == (2, 8, "f32[2,4]", "float32 tile of shape (2, 4)")
    assert t.with_dtype(bool_) == TileType(bool_, (2, 4))
    assert (str(TileType(bool_)), TileType(bool_).describe(), TileType(bool_).size) == ("b1[]", "bool_ scalar", 1)


def test_arrays():
    a = ArrayType(float32, 2)
    assert a.static_shape == a.static_strides == (None, None)
    assert str(a) == "array<f32[?,?]>" and a.describe() == "float32 array of rank 2"
    static = ArrayType(float32, 2, int64, (None, 4), (8, 1))
    assert static.describe() == "float32 array of rank 2, static sizes (?, 4), static strides (8, 1), int64 indices"
    assert str(ArrayType(float32, 2, int64, (4, None), (None, 1))) == "array<f32[4,?:?,1;i64]>"
    assert a != ArrayType(float32, 2, static_shape=(4, None))  # ARR-7
    assert str(ArrayType(float32, 0)) == "array<f32[]>"


def test_lists_and_tokens():
    assert str(ListType(ArrayType(float32, 1))) == "list<array<f32[?]>>"
    assert ListType(ArrayType(float32, 1)).describe() == "list of float32 arrays of rank 1"
    assert str(TokenType()) == TokenType().describe() == "token"


def test_powers_of_two():  # TILE-1
    assert [n for n in range(-4, 20) if is_power_of_two(n)] == [1, 2, 4, 8, 16]


def test_enumerations():
    assert [m.name for m in RoundingMode] == ["RN", "RZ", "RM", "RP", "RA", "FULL", "APPROX", "RZI"]
    assert PaddingMode("neg_inf") is PaddingMode.NEG_INF
