/* One of two elements, by a truth value. NumPy branches at each element, which takes ten times as long where the truth
   values are in no order. */

#include "forms.h"

#define CHOICE(name, word)                                                                                            \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const uint8_t *chosen = at[0];                                                                                \
        const word *x = at[1], *y = at[2];                                                                            \
        word *out = at[3];                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            word mask = (word)-(word)(chosen[i] != 0);                                                                \
            out[i] = (word)((x[i] & mask) | (y[i] & (word)~mask));                                                    \
        }                                                                                                             \
        return 0;                                                                                                     \
    }

CHOICE(choice_8, uint8_t)
CHOICE(choice_16, uint16_t)
CHOICE(choice_32, uint32_t)
CHOICE(choice_64, uint64_t)

const Elementwise CHOICE_FORMS[] = {
    {"where bool", "????", choice_8},
    {"where int8", "?bbb", choice_8},     {"where uint8", "?BBB", choice_8},
    {"where int16", "?hhh", choice_16},   {"where uint16", "?HHH", choice_16},
    {"where int32", "?iii", choice_32},   {"where uint32", "?III", choice_32},
    {"where int64", "?qqq", choice_64},   {"where uint64", "?QQQ", choice_64},
    {"where float32", "?fff", choice_32}, {"where float64", "?ddd", choice_64},
    {NULL, NULL, NULL}};
