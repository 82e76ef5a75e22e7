/* The larger and the smaller of two numbers. -0 is smaller than +0. Of a NaN and a number the number, or NaN. */

#include "forms.h"

/* of_equals: of two equal numbers, which differ only in the sign of zero, the bits. */
#define EXTREME(name, type, word, bits, better, of_equals)                                                            \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *x = at[0], *y = at[1];                                                                            \
        type *out = at[2];                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            type a = x[i], b = y[i];                                                                                  \
            word p = bits(a), q = bits(b), r = a better b ? p : q;                                                    \
            r = a == b ? p of_equals q : r;                                                                           \
            r = b != b ? p : r;                                                                                       \
            memcpy(out + i, &r, sizeof r);                                                                            \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
#define EXTREME_OR_NAN(name, type, word, bits, better, of_equals, nan)                                                \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *x = at[0], *y = at[1];                                                                            \
        type *out = at[2];                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            type a = x[i], b = y[i];                                                                                  \
            word p = bits(a), q = bits(b), r = a better b ? p : q;                                                    \
            r = a == b ? p of_equals q : r;                                                                           \
            r = a != a || b != b ? nan : r;                                                                           \
            memcpy(out + i, &r, sizeof r);                                                                            \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
#define BOTH(name, better, of_equals)                                                                                 \
    EXTREME(name##_32, float, uint32_t, bits32, better, of_equals)                                                    \
    EXTREME(name##_64, double, uint64_t, bits64, better, of_equals)                                                   \
    EXTREME_OR_NAN(name##_nan_32, float, uint32_t, bits32, better, of_equals, 0x7FC00000u)                            \
    EXTREME_OR_NAN(name##_nan_64, double, uint64_t, bits64, better, of_equals, 0x7FF8000000000000u)

BOTH(maximum, >, &)
BOTH(minimum, <, |)

#define OF_INTEGERS(name, type, better)                                                                                \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *x = at[0], *y = at[1];                                                                            \
        type *out = at[2];                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++)                                                                            \
            out[i] = x[i] better y[i] ? x[i] : y[i];                                                                  \
        return 0;                                                                                                     \
    }
#define OF_ALL_INTEGERS(name, better)                                                                                 \
    OF_INTEGERS(name##_i8, int8_t, better) OF_INTEGERS(name##_u8, uint8_t, better)                                    \
    OF_INTEGERS(name##_i16, int16_t, better) OF_INTEGERS(name##_u16, uint16_t, better)                                \
    OF_INTEGERS(name##_i32, int32_t, better) OF_INTEGERS(name##_u32, uint32_t, better)                                \
    OF_INTEGERS(name##_i64, int64_t, better) OF_INTEGERS(name##_u64, uint64_t, better)

OF_ALL_INTEGERS(maximum, >)
OF_ALL_INTEGERS(minimum, <)

#define ROWS(name)                                                                                                    \
    {#name " float32", "fff", name##_32}, {#name " float64", "ddd", name##_64},                                       \
    {#name " or nan float32", "fff", name##_nan_32}, {#name " or nan float64", "ddd", name##_nan_64},  \
    {#name " int8", "bbb", name##_i8}, {#name " uint8", "BBB", name##_u8},                                            \
    {#name " int16", "hhh", name##_i16}, {#name " uint16", "HHH", name##_u16},                                        \
    {#name " int32", "iii", name##_i32}, {#name " uint32", "III", name##_u32},                                        \
    {#name " int64", "qqq", name##_i64}, {#name " uint64", "QQQ", name##_u64}

const Elementwise EXTREME_FORMS[] = {ROWS(maximum), ROWS(minimum), {NULL, NULL, NULL}};
