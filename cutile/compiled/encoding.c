/* float32 to and from the bits of the formats of 16 bits, one element at a time, as ops/_encoding.py defines it. */

#include "forms.h"

#define MAP(name, from, to, mapped)                                                                                   \
    FAST static int name(void *const *at, Py_ssize_t n)                                                              \
    {                                                                                                                 \
        const from *in = at[0];                                                                                       \
        to *out = at[1];                                                                                              \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            from x = in[i];                                                                                           \
            out[i] = mapped;                                                                                          \
        }                                                                                                             \
        return 0;                                                                                                     \
    }

/* Exponent and fraction move to where float32 has them; the product corrects the bias, also of subnormals. */
INLINE float from_f16(uint16_t x)
{
    uint32_t w = (uint32_t)(x & 0x7FFF) << 13, sign = (uint32_t)(x & 0x8000) << 16;
    uint32_t special = (x & 0x7C00) == 0x7C00 ? 0x7F800000 : 0; /* infinite or NaN */
    return float_of(bits32(float_of(w) * 0x1p112f) | special | sign);
}

/* The product of a NaN is a quiet one, with its payload. */
INLINE uint16_t to_f16(float x)
{
    uint32_t u = bits32(x), scaled = bits32(float_of(u & 0x7FFFFFFF) * 0x1p-112f);
    return (uint16_t)((scaled >> 13 & 0x7FFF) | (u >> 16 & 0x8000));
}

MAP(decode_f16, uint16_t, float, from_f16(x))
MAP(encode_f16, float, uint16_t, to_f16(x))
MAP(decode_bf16, uint16_t, float, float_of((uint32_t)x << 16))
MAP(encode_bf16, float, uint16_t, (uint16_t)(bits32(x) >> 16))

const Elementwise ENCODING_FORMS[] = {
    {"decode float16", "Hf", decode_f16},
    {"encode float16", "fH", encode_f16},
    {"decode bfloat16", "Hf", decode_bf16},
    {"encode bfloat16", "fH", encode_bf16},
    {NULL, NULL, NULL}};
