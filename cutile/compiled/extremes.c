/* The larger and the smaller of two floats. -0 is smaller than +0. Of a NaN and a number the number, or NaN. */

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

#define ROWS(name)                                                                                                    \
    {#name " float32", "fff", name##_32}, {#name " float64", "ddd", name##_64},                                       \
    {#name " or nan float32", "fff", name##_nan_32}, {#name " or nan float64", "ddd", name##_nan_64}

const Elementwise EXTREME_FORMS[] = {ROWS(maximum), ROWS(minimum), {NULL, NULL, NULL}};
