/* Operations that NumPy computes in one pass as well: the steps of chains, which compute several in one pass.

   Integers wrap. A NaN among the operands of floats comes first: the result is the first one, quiet. The arrays of a
   step have ROOM bytes at most, and its result shares no memory with an operand. */

#include "forms.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wtype-limits" /* macros for signed and unsigned types alike compare with 0 */
#endif

#define UNARY(name, from, to, result)                                                                                 \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const from *in = at[0];                                                                                       \
        to *out = at[1];                                                                                              \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            from x = in[i];                                                                                           \
            out[i] = (to)(result);                                                                                    \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
#define BINARY(name, from, to, result)                                                                                \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const from *in = at[0], *also = at[1];                                                                        \
        to *out = at[2];                                                                                              \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            from x = in[i], y = also[i];                                                                              \
            out[i] = (to)(result);                                                                                    \
        }                                                                                                             \
        return 0;                                                                                                     \
    }

/* ---------------------------------------------------------------- integers, by their bits */

#define OF_BITS(width, word, wide) /* `wide`: in which products do not overflow a signed type */                      \
    BINARY(add_##width, word, word, x + y)                                                                            \
    BINARY(sub_##width, word, word, x - y)                                                                            \
    BINARY(mul_##width, word, word, (wide)x * (wide)y)                                                                \
    BINARY(and_##width, word, word, x & y)                                                                            \
    BINARY(or_##width, word, word, x | y)                                                                             \
    BINARY(xor_##width, word, word, x ^ y)                                                                            \
    BINARY(equal_##width, word, uint8_t, x == y)                                                                      \
    BINARY(not_equal_##width, word, uint8_t, x != y)                                                                  \
    UNARY(not_##width, word, word, ~x)                                                                                \
    UNARY(negative_##width, word, word, 0 - x)                                                                        \
    UNARY(copy_##width, word, word, x)

OF_BITS(8, uint8_t, unsigned)
OF_BITS(16, uint16_t, unsigned)
OF_BITS(32, uint32_t, uint32_t)
OF_BITS(64, uint64_t, uint64_t)

/* ---------------------------------------------------------------- integers, by their values */

/* Amounts are unsigned, of 64 bits their low half; `beyond` is the result where they are the width or more. Most often
   all are the same: then `all_shifted` is quicker. */
INLINE int are_same(const void *of, Py_ssize_t size, Py_ssize_t n)
{
    return memcmp(of, (const char *)of + size, (size_t)((n - 1) * size)) == 0;
}

#define SHIFT(name, type, amount, shifted, beyond, all_shifted)                                                       \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *in = at[0];                                                                                       \
        const amount *by = at[1];                                                                                     \
        type *out = at[2];                                                                                            \
        const uint32_t width = 8 * sizeof(type);                                                                      \
        if ((uint32_t)by[0] < width && are_same(by, sizeof *by, n)) {                                                 \
            const uint32_t k = (uint32_t)by[0];                                                                       \
            all_shifted                                                                                               \
            return 0;                                                                                                 \
        }                                                                                                             \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            type x = in[i];                                                                                           \
            uint32_t given = (uint32_t)by[i], k = given < width ? given : width - 1;                                  \
            out[i] = (type)(given < width ? (type)(shifted) : (type)(beyond));                                        \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
#define ONE_BY_ONE(type, shifted)                                                                                     \
    for (Py_ssize_t i = 0; i < n; i++) {                                                                              \
        type x = in[i];                                                                                               \
        out[i] = (type)(shifted);                                                                                     \
    }

/* Short integers as parts of words: of what a shift moves from one into the next, `kept` leaves nothing. CPUs have no
   such shifts of bytes. */
INLINE void shift_words(const void *in, void *out, Py_ssize_t bytes, uint32_t k, int left, uint64_t kept)
{
    Py_ssize_t whole = bytes / 8;
    const char *from = in;
    char *to = out;
    for (Py_ssize_t i = 0; i < whole; i++) {
        uint64_t w;
        memcpy(&w, from + 8 * i, 8);
        w = (left ? w << k : w >> k) & kept;
        memcpy(to + 8 * i, &w, 8);
    }
    if (bytes % 8) {
        uint64_t w = 0;
        memcpy(&w, from + 8 * whole, (size_t)(bytes % 8));
        w = (left ? w << k : w >> k) & kept;
        memcpy(to + 8 * whole, &w, (size_t)(bytes % 8));
    }
}

#define IN_EACH(word) ((uint64_t)-1 / (word)-1) /* 1 in each part of a word */
#define BYTES(word) (n * (Py_ssize_t)sizeof(word))
#define LEFT_WORDS(word) shift_words(in, out, BYTES(word), k, 1, (word)((word)-1 << k) * IN_EACH(word));
#define RIGHT_WORDS(word) shift_words(in, out, BYTES(word), k, 0, ((word)-1 >> k) * IN_EACH(word));
/* Then the highest bit that is left becomes the sign. */
#define SIGNED_WORDS(word)                                                                                            \
    RIGHT_WORDS(word)                                                                                                 \
    const word sign = (word)((word)1 << (8 * sizeof(word) - 1)) >> k, *shifted = (const word *)out;                   \
    for (Py_ssize_t i = 0; i < n; i++)                                                                                \
        out[i] = (word)((word)(shifted[i] ^ sign) - sign);
#define OF_VALUES(name, type)                                                                                         \
    BINARY(less_##name, type, uint8_t, x < y)                                                                         \
    BINARY(less_equal_##name, type, uint8_t, x <= y)
#define OF_SHORT(width, type, word)                                                                                   \
    OF_VALUES(i##width, type)                                                                                         \
    OF_VALUES(u##width, word)                                                                                         \
    SHIFT(left_##width, word, word, x << k, 0, LEFT_WORDS(word))                                                      \
    SHIFT(right_u##width, word, word, x >> k, 0, RIGHT_WORDS(word))                                                   \
    SHIFT(right_i##width, type, word, x >> k, x < 0 ? -1 : 0, SIGNED_WORDS(word))
#define OF_LONG(width, type, word)                                                                                    \
    OF_VALUES(i##width, type)                                                                                         \
    OF_VALUES(u##width, word)                                                                                         \
    SHIFT(left_##width, word, word, x << k, 0, ONE_BY_ONE(word, x << k))                                              \
    SHIFT(right_u##width, word, word, x >> k, 0, ONE_BY_ONE(word, x >> k))                                            \
    SHIFT(right_i##width, type, word, x >> k, x < 0 ? -1 : 0, ONE_BY_ONE(type, x >> k))

OF_SHORT(8, int8_t, uint8_t)
OF_SHORT(16, int16_t, uint16_t)
OF_LONG(32, int32_t, uint32_t)
OF_LONG(64, int64_t, uint64_t)

#define BETWEEN(name, type)                                                                                           \
    FAST static int between_##name(void *const *at, Py_ssize_t n)                                                     \
    {                                                                                                                 \
        const type *x = at[0], *low = at[1], *high = at[2];                                                           \
        type *out = at[3];                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            type y = x[i] > low[i] ? x[i] : low[i];                                                                   \
            out[i] = y < high[i] ? y : high[i];                                                                       \
        }                                                                                                             \
        return 0;                                                                                                     \
    }

BETWEEN(i8, int8_t)
BETWEEN(u8, uint8_t)
BETWEEN(i16, int16_t)
BETWEEN(u16, uint16_t)
BETWEEN(i32, int32_t)
BETWEEN(u32, uint32_t)
BETWEEN(i64, int64_t)
BETWEEN(u64, uint64_t)

#define MAGNITUDE(name, type, word) UNARY(abs_##name, type, word, x < 0 ? (word)(0 - (word)x) : (word)x)

MAGNITUDE(i8, int8_t, uint8_t)
MAGNITUDE(i16, int16_t, uint16_t)
MAGNITUDE(i32, int32_t, uint32_t)
MAGNITUDE(i64, int64_t, uint64_t)

/* Quotients rounded down, and remainders with the sign of the divisor. Of zero: -1, of a negative number -2, and the
   remainder -1. A float that has all integers of one bit more than these is never rounded up to an integer when it is
   their quotient: its floor is that of the exact one. The only quotient that is too large, by -1, becomes the number
   itself. */
#define DIVIDE(name, type, real, floor_of, most)                                                                      \
    INLINE type quotient_##name(type x, type y)                                                                       \
    {                                                                                                                 \
        real q = floor_of((real)x / (real)(y == 0 ? 1 : y));                                                          \
        int32_t r = (int32_t)(q > most ? -most - 1 : q);                                                              \
        return (type)(y != 0 ? r : -1 - ((type)-1 < 0 && x < 0));                                                     \
    }                                                                                                                 \
    INLINE type remainder_##name(type x, type y)                                                                      \
    {                                                                                                                 \
        return (type)(y != 0 ? (uint32_t)x - (uint32_t)quotient_##name(x, y) * (uint32_t)y : (uint32_t)-1);           \
    }
#define DIVISIONS(name, type)                                                                                         \
    DIVISION(floordiv_##name, type, divide_all_##name(in, out, n, by[0], 0), quotient_##name(in[i], by[i]))           \
    DIVISION(mod_##name, type, divide_all_##name(in, out, n, by[0], 1), remainder_##name(in[i], by[i]))

DIVIDE(i8, int8_t, float, floorf, 65535.0f)
DIVIDE(u8, uint8_t, float, floorf, 65535.0f)
DIVIDE(i16, int16_t, float, floorf, 65535.0f)
DIVIDE(u16, uint16_t, float, floorf, 65535.0f)
DIVIDE(i32, int32_t, double, floor, 2147483647.0)

/* Most often all divisors are the same. */
#define DIVISION(name, type, all, each)                                                                               \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *in = at[0], *by = at[1];                                                                          \
        type *out = at[2];                                                                                            \
        if (by[0] != 0 && by[0] != 1 && by[0] != (type)-1 && are_same(by, sizeof *by, n))                             \
            all;                                                                                                      \
        else                                                                                                          \
            for (Py_ssize_t i = 0; i < n; i++)                                                                        \
                out[i] = each;                                                                                        \
        return 0;                                                                                                     \
    }

/* Quotients by one divisor as products with its reciprocal, in fixed point (Granlund and Montgomery 1994). Negative
   ones are complements: floor(-u / d) is ~((u - 1) / d). CPUs multiply no bytes, so two of them are taken out of a
   word. Compilers shift words of 16 bits as such only by numbers that they know. */
#define SHIFT_BY(k)                                                                                                   \
    case k:                                                                                                           \
        for (Py_ssize_t i = 0; i < n; i++)                                                                            \
            t[i] = (uint16_t)(t[i] >> k);                                                                             \
        break;

INLINE void shift_all(uint16_t *t, Py_ssize_t n, uint32_t k)
{
    switch (k) {
        SHIFT_BY(1) SHIFT_BY(2) SHIFT_BY(3) SHIFT_BY(4) SHIFT_BY(5) SHIFT_BY(6) SHIFT_BY(7) SHIFT_BY(8)
        SHIFT_BY(9) SHIFT_BY(10) SHIFT_BY(11) SHIFT_BY(12) SHIFT_BY(13) SHIFT_BY(14) SHIFT_BY(15)
    }
}

#define DIVIDE_8(name, type)                                                                                          \
    INLINE void divide_all_##name(const type *in, type *out, Py_ssize_t n, type by, int remainder)                    \
    {                                                                                                                 \
        const int negative = by < 0, d = negative ? -by : by;                                                         \
        const uint16_t factor = (uint16_t)(65536 / d + 1);                                                            \
        uint16_t words[ROOM / 2 + 1] = {0};                                                                           \
        uint8_t *u = (uint8_t *)words;                                                                                \
        for (Py_ssize_t i = 0; i < n; i++)                                                                            \
            u[i] = (uint8_t)(negative ? in[i] > 0 ? in[i] - 1 : -in[i] : in[i] < 0 ? ~in[i] : in[i]);                 \
        for (Py_ssize_t i = 0; i < (n + 1) / 2; i++) {                                                                \
            uint16_t low = (uint16_t)((uint32_t)(words[i] & 0xFF) * factor >> 16);                                    \
            uint16_t high = (uint16_t)((uint32_t)(words[i] >> 8) * factor >> 16);                                     \
            words[i] = (uint16_t)(low | high << 8);                                                                   \
        }                                                                                                             \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            uint8_t q = u[i] ^ (uint8_t)((negative ? in[i] > 0 : in[i] < 0) ? -1 : 0);                                \
            out[i] = (type)(remainder ? (uint8_t)((uint8_t)in[i] - (uint8_t)(q * (uint8_t)by)) : q);                  \
        }                                                                                                             \
    }                                                                                                                 \
    DIVISIONS(name, type)
#define DIVIDE_16(name, type, shifted)                                                                                \
    INLINE void divide_all_##name(const type *in, type *out, Py_ssize_t n, type by, int remainder)                    \
    {                                                                                                                 \
        const int negative = by < 0;                                                                                  \
        const uint32_t d = (uint32_t)(negative ? -(int32_t)by : (int32_t)by);                                         \
        uint32_t k = 0;                                                                                               \
        while ((1u << k) < d)                                                                                         \
            k++;                                                                                                      \
        if (d == 1u << k) {                                                                                           \
            if (remainder || negative)                                                                                \
                for (Py_ssize_t i = 0; i < n; i++)                                                                    \
                    out[i] = remainder ? remainder_##name(in[i], by) : quotient_##name(in[i], by);                    \
            else {                                                                                                    \
                shifted                                                                                               \
            }                                                                                                         \
            return;                                                                                                   \
        }                                                                                                             \
        const uint16_t factor = (uint16_t)((((1u << k) - d) << 16) / d + 1);                                          \
        uint16_t *t = (uint16_t *)out;                                                                                \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            uint16_t u = (uint16_t)(negative ? in[i] > 0 ? in[i] - 1 : -in[i] : in[i] < 0 ? ~in[i] : in[i]);          \
            uint16_t high = (uint16_t)((uint32_t)u * factor >> 16);                                                   \
            t[i] = (uint16_t)(high + (uint16_t)((uint16_t)(u - high) >> 1));                                          \
        }                                                                                                             \
        shift_all(t, n, k - 1);                                                                                       \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            uint16_t q = t[i] ^ (uint16_t)((negative ? in[i] > 0 : in[i] < 0) ? -1 : 0);                              \
            out[i] = (type)(remainder ? (uint16_t)((uint16_t)in[i] - (uint16_t)((uint32_t)q * (uint16_t)by)) : q);    \
        }                                                                                                             \
    }                                                                                                                 \
    DIVISIONS(name, type)

DIVIDE_8(i8, int8_t)
DIVIDE_8(u8, uint8_t)
DIVIDE_16(i16, int16_t, SIGNED_WORDS(uint16_t))
DIVIDE_16(u16, uint16_t, RIGHT_WORDS(uint16_t))

/* No product of a number and a half with a reciprocal is rounded up to an integer either. */
INLINE void divide_all_i32(const int32_t *in, int32_t *out, Py_ssize_t n, int32_t by, int remainder)
{
    const double sign = by < 0 ? -1 : 1, reciprocal = 1 / fabs((double)by);
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t q = (uint32_t)(int32_t)floor(((double)in[i] * sign + 0.5) * reciprocal);
        out[i] = (int32_t)(remainder ? (uint32_t)in[i] - q * (uint32_t)by : q);
    }
}

DIVISIONS(i32, int32_t)

/* ---------------------------------------------------------------- floats */

INLINE float first_nan32(float x, float y, float r)
{
    return x != x ? float_of(bits32(x) | 0x00400000) : y != y ? float_of(bits32(y) | 0x00400000) : r;
}

INLINE double first_nan64(double x, double y, double r)
{
    const uint64_t quiet = (uint64_t)1 << 51;
    return x != x ? double_of(bits64(x) | quiet) : y != y ? double_of(bits64(y) | quiet) : r;
}

/* A compiler may exchange the operands of sums and products, which decides between two NaNs. */
#define ARITHMETIC(name, type, operator, first_nan)                                                                   \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *x = at[0], *y = at[1];                                                                            \
        type *out = at[2];                                                                                            \
        int nans = 0;                                                                                                 \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            type r = x[i] operator y[i];                                                                              \
            nans |= r != r;                                                                                           \
            out[i] = r;                                                                                               \
        }                                                                                                             \
        for (Py_ssize_t i = 0; nans && i < n; i++)                                                                    \
            out[i] = first_nan(x[i], y[i], out[i]);                                                                   \
        return 0;                                                                                                     \
    }
#define OF_FLOATS(name, type, word, bits, of_bits, sign, first_nan, root, down, up)                                   \
    ARITHMETIC(add_##name, type, +, first_nan)                                                                        \
    ARITHMETIC(sub_##name, type, -, first_nan)                                                                        \
    ARITHMETIC(mul_##name, type, *, first_nan)                                                                        \
    ARITHMETIC(div_##name, type, /, first_nan)                                                                        \
    BINARY(less_##name, type, uint8_t, x < y)                                                                         \
    BINARY(less_equal_##name, type, uint8_t, x <= y)                                                                  \
    BINARY(equal_##name, type, uint8_t, x == y)                                                                       \
    BINARY(not_equal_##name, type, uint8_t, x != y)                                                                   \
    UNARY(isnan_##name, type, uint8_t, x != x)                                                                        \
    UNARY(negative_##name, word, word, x ^ (word)(sign))                                                              \
    UNARY(abs_##name, word, word, x & (word)~(word)(sign))                                                            \
    UNARY(sqrt_##name, type, type, root(x))                                                                           \
    UNARY(floor_##name, type, type, down(x))                                                                          \
    UNARY(ceil_##name, type, type, up(x))

OF_FLOATS(f32, float, uint32_t, bits32, float_of, 0x80000000u, first_nan32, sqrtf, floorf, ceilf)
OF_FLOATS(f64, double, uint64_t, bits64, double_of, (uint64_t)1 << 63, first_nan64, sqrt, floor, ceil)

/* ---------------------------------------------------------------- casts */

#define CASTS_FROM(name, type)                                                                                        \
    UNARY(name##_to_bool, type, uint8_t, x != 0)                                                                      \
    UNARY(name##_is_zero, type, uint8_t, x == 0)                                                                      \
    UNARY(name##_to_f32, type, float, (float)x)                                                                       \
    UNARY(name##_to_f64, type, double, (double)x)
#define CASTS_OF_INTEGERS(name, type)                                                                                 \
    CASTS_FROM(name, type)                                                                                            \
    UNARY(name##_to_8, type, uint8_t, (uint8_t)x)                                                                     \
    UNARY(name##_to_16, type, uint16_t, (uint16_t)x)                                                                  \
    UNARY(name##_to_32, type, uint32_t, (uint32_t)x)                                                                  \
    UNARY(name##_to_64, type, uint64_t, (uint64_t)x)

CASTS_OF_INTEGERS(i8, int8_t)
CASTS_OF_INTEGERS(u8, uint8_t)
CASTS_OF_INTEGERS(i16, int16_t)
CASTS_OF_INTEGERS(u16, uint16_t)
CASTS_OF_INTEGERS(i32, int32_t)
CASTS_OF_INTEGERS(u32, uint32_t)
CASTS_OF_INTEGERS(i64, int64_t)
CASTS_OF_INTEGERS(u64, uint64_t)
CASTS_FROM(f32, float)
CASTS_FROM(f64, double)

/* Truncated to the nearest end of a range, which is that of 16 bits also for 8; `nan` is the result of NaN. */
#define TRUNCATE(name, type, from, low, high, nan)                                                                    \
    INLINE int32_t truncated_##name(from x)                                                                           \
    {                                                                                                                 \
        from y = x > low ? x : low;                                                                                   \
        int32_t r = (int32_t)(y < high ? y : high);                                                                   \
        return x == x ? r : nan;                                                                                      \
    }                                                                                                                 \
    UNARY(name, from, type, truncated_##name(x))

TRUNCATE(f32_to_i8, uint8_t, float, -32768.0f, 32767.0f, 0)
TRUNCATE(f32_to_u8, uint8_t, float, 0.0f, 65535.0f, 0)
TRUNCATE(f32_to_i16, uint16_t, float, -32768.0f, 32767.0f, 0)
TRUNCATE(f32_to_u16, uint16_t, float, 0.0f, 65535.0f, 0)
TRUNCATE(f64_to_i8, uint8_t, double, -32768.0, 32767.0, -32768)
TRUNCATE(f64_to_u8, uint8_t, double, 0.0, 65535.0, 32768)
TRUNCATE(f64_to_i16, uint16_t, double, -32768.0, 32767.0, -32768)
TRUNCATE(f64_to_u16, uint16_t, double, 0.0, 65535.0, 32768)
TRUNCATE(f64_to_i32, uint32_t, double, -2147483648.0, 2147483647.0, INT32_MIN)

/* float32 has no largest int32. */
INLINE int32_t int32_of32(float x)
{
    float y = x > -0x1p31f ? x : -0x1p31f;
    int32_t r = (int32_t)(y < 0x1p31f ? y : 0.0f);
    r = x < 0x1p31f ? r : INT32_MAX;
    return x == x ? r : 0;
}

UNARY(f32_to_i32, float, uint32_t, int32_of32(x))

/* ---------------------------------------------------------------- the table */

#define WORD_ROWS(dtype, c, width)                                                                                    \
    {"add " dtype, c c c, add_##width}, {"sub " dtype, c c c, sub_##width}, {"mul " dtype, c c c, mul_##width},       \
    {"bitwise_and " dtype, c c c, and_##width}, {"bitwise_or " dtype, c c c, or_##width},                             \
    {"bitwise_xor " dtype, c c c, xor_##width}, {"bitwise_not " dtype, c c, not_##width},                             \
    {"equal " dtype, c c "?", equal_##width}, {"not_equal " dtype, c c "?", not_equal_##width},                       \
    {"negative " dtype, c c, negative_##width}, {"copy " dtype, c c, copy_##width}
#define CAST_ROWS(dtype, c, name)                                                                                     \
    {dtype " to bool", c "?", name##_to_bool}, {dtype " is zero", c "?", name##_is_zero},                             \
    {dtype " to float32", c "f", name##_to_f32}, {dtype " to float64", c "d", name##_to_f64}
#define INTEGER_ROWS(dtype, c, name, width)                                                                           \
    WORD_ROWS(dtype, c, width), CAST_ROWS(dtype, c, name),                                                            \
    {"bitwise_lshift " dtype, c c c, left_##width}, {"bitwise_rshift " dtype, c c c, right_##name},                    \
    {"less " dtype, c c "?", less_##name}, {"less_equal " dtype, c c "?", less_equal_##name},                         \
    {"maximum, minimum " dtype, c c c c, between_##name},                                                             \
    {dtype " to int8", c "b", name##_to_8}, {dtype " to uint8", c "B", name##_to_8},                                  \
    {dtype " to int16", c "h", name##_to_16}, {dtype " to uint16", c "H", name##_to_16},                              \
    {dtype " to int32", c "i", name##_to_32}, {dtype " to uint32", c "I", name##_to_32},                              \
    {dtype " to int64", c "q", name##_to_64}, {dtype " to uint64", c "Q", name##_to_64}
#define DIVIDE_ROWS(dtype, c, name)                                                                                   \
    {"floordiv " dtype, c c c, floordiv_##name}, {"mod " dtype, c c c, mod_##name}
#define FLOAT_ROWS(dtype, c, name, width)                                                                             \
    {"add " dtype, c c c, add_##name}, {"sub " dtype, c c c, sub_##name}, {"mul " dtype, c c c, mul_##name},          \
    {"truediv " dtype, c c c, div_##name}, {"less " dtype, c c "?", less_##name},                                     \
    {"less_equal " dtype, c c "?", less_equal_##name}, {"equal " dtype, c c "?", equal_##name},                       \
    {"not_equal " dtype, c c "?", not_equal_##name}, {"isnan " dtype, c "?", isnan_##name},                           \
    {"negative " dtype, c c, negative_##name}, {"abs " dtype, c c, abs_##name}, {"sqrt " dtype, c c, sqrt_##name},    \
    {"floor " dtype, c c, floor_##name}, {"ceil " dtype, c c, ceil_##name}, CAST_ROWS(dtype, c, name),                \
    {"copy " dtype, c c, copy_##width}

UNARY(logical_not, uint8_t, uint8_t, x == 0)

const Elementwise STEP_FORMS[] = {
    {"logical_not bool", "??", logical_not},
    {"bitwise_not bool", "??", logical_not},
    {"bitwise_and bool", "???", and_8},
    {"bitwise_or bool", "???", or_8},
    {"bitwise_xor bool", "???", xor_8},
    {"equal bool", "???", equal_8},
    {"not_equal bool", "???", not_equal_8},
    {"less bool", "???", less_u8},
    {"less_equal bool", "???", less_equal_u8},
    {"copy bool", "??", copy_8},
    {"bool to int8", "?b", copy_8},
    {"bool to uint8", "?B", copy_8},
    {"bool to int16", "?h", u8_to_16},
    {"bool to uint16", "?H", u8_to_16},
    {"bool to int32", "?i", u8_to_32},
    {"bool to uint32", "?I", u8_to_32},
    {"bool to int64", "?q", u8_to_64},
    {"bool to uint64", "?Q", u8_to_64},
    {"bool to float32", "?f", u8_to_f32},
    {"bool to float64", "?d", u8_to_f64},
    INTEGER_ROWS("int8", "b", i8, 8),
    INTEGER_ROWS("uint8", "B", u8, 8),
    INTEGER_ROWS("int16", "h", i16, 16),
    INTEGER_ROWS("uint16", "H", u16, 16),
    INTEGER_ROWS("int32", "i", i32, 32),
    INTEGER_ROWS("uint32", "I", u32, 32),
    INTEGER_ROWS("int64", "q", i64, 64),
    INTEGER_ROWS("uint64", "Q", u64, 64),
    {"abs int8", "bb", abs_i8},
    {"abs int16", "hh", abs_i16},
    {"abs int32", "ii", abs_i32},
    {"abs int64", "qq", abs_i64},
    DIVIDE_ROWS("int8", "b", i8),
    DIVIDE_ROWS("uint8", "B", u8),
    DIVIDE_ROWS("int16", "h", i16),
    DIVIDE_ROWS("uint16", "H", u16),
    DIVIDE_ROWS("int32", "i", i32),
    FLOAT_ROWS("float32", "f", f32, 32),
    FLOAT_ROWS("float64", "d", f64, 64),
    {"float32 to int8", "fb", f32_to_i8},
    {"float32 to uint8", "fB", f32_to_u8},
    {"float32 to int16", "fh", f32_to_i16},
    {"float32 to uint16", "fH", f32_to_u16},
    {"float32 to int32", "fi", f32_to_i32},
    {"float64 to int8", "db", f64_to_i8},
    {"float64 to uint8", "dB", f64_to_u8},
    {"float64 to int16", "dh", f64_to_i16},
    {"float64 to uint16", "dH", f64_to_u16},
    {"float64 to int32", "di", f64_to_i32},
    {NULL, NULL, NULL}};
