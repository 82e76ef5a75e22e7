/* Rounding to the short formats, one element at a time, as ops/_rounding.py defines it.

   Adding and subtracting 1.5 * 2**(e + p - m), with p the fraction bits of the wider format and m those of the narrow
   one, leaves exactly the wanted last place, so the addition itself rounds to nearest even, subnormals included. */

#ifndef CUTILE_ROUNDING_H
#define CUTILE_ROUNDING_H

#include "forms.h"

typedef struct {
    int mantissa, emin, top; /* fraction bits; exponent of the smallest normal number; 1 + that of the largest */
    double low, high;        /* the range, of formats that saturate */
    int is_signed, has_zero, has_nan;
} Format;

static const Format F16 = {10, -14, 16, 0, 0, 1, 1, 1}, BF16 = {7, -126, 128, 0, 0, 1, 1, 1},
    TF32 = {10, -126, 128, 0, 0, 1, 1, 1}, E4M3 = {3, -6, 9, -448, 448, 1, 1, 1},
    E5M2 = {2, -14, 16, -57344, 57344, 1, 1, 1}, E5M3 = {3, -14, 17, 0, 114688, 0, 1, 1},
    E8M0 = {0, -127, 128, 0x1p-127, 0x1p127, 0, 0, 1}, E2M1 = {1, 0, 3, -6, 6, 1, 1, 0};

/* x rounded to the last place of the format. Values that are too large stay too large. The result has the sign of x,
   also where it is zero. */
INLINE double nearest64(double x, Format f)
{
    const uint64_t exponent = (uint64_t)0x7FF << 52, sign = (uint64_t)1 << 63;
    int64_t c = (int64_t)(bits64(x) & exponent);
    const int64_t low = (int64_t)(f.emin + 1023) << 52, high = (int64_t)(f.top + 1023) << 52;
    c = c < low ? low : c;
    c = c > high ? high : c;
    double add = double_of((uint64_t)c + ((uint64_t)(52 - f.mantissa) << 52 | (uint64_t)1 << 51));
    double r = x + add;
    return double_of(bits64(r - add) | (bits64(x) & sign));
}

INLINE float nearest32(float x, Format f)
{
    const uint32_t exponent = 0x7F800000, sign = 0x80000000;
    int32_t c = (int32_t)(bits32(x) & exponent);
    const int32_t low = (int32_t)(f.emin + 127) << 23, high = (int32_t)(f.top + 127) << 23;
    c = c < low ? low : c;
    c = c > high ? high : c;
    float add = float_of((uint32_t)c + ((uint32_t)(23 - f.mantissa) << 23 | (uint32_t)1 << 22));
    float r = x + add;
    return float_of(bits32(r - add) | (bits32(x) & sign));
}

/* Magnitudes of 65536 and more become infinite: scaled by 2**112 they overflow. */
INLINE float overflow16(float x)
{
    return x * 0x1p112f * 0x1p-112f;
}

INLINE float f16_of64(double x) { return overflow16((float)nearest64(x, F16)); }
INLINE float bf16_of64(double x) { return (float)nearest64(x, BF16); }
INLINE float tf32_of64(double x) { return (float)nearest64(x, TF32); }
INLINE float f16_of32(float x) { return overflow16(nearest32(x, F16)); }

/* Rounds float32 to nearest even with `drop` fraction bits less. A NaN keeps what fits of its payload; if that is
   nothing, it becomes quiet. */
INLINE float drop_bits(float x, int drop)
{
    const uint32_t mask = 0xFFFFFFFF << drop;
    uint32_t u = bits32(x), cut = u & mask;
    uint32_t rounded = (u + ((u >> drop) & 1) + ((1u << (drop - 1)) - 1)) & mask;
    uint32_t nan = cut & 0x007FFFFF ? cut : cut | 0x00400000;
    return float_of((u & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
}

/* What was rounded, in the range of a format. Unsigned formats have no sign, not even of NaN; without a zero, negative
   numbers are NaN; in a format without NaN, NaN becomes the largest number. */
INLINE float saturate64(double y, Format f)
{
    double c = y < f.low ? f.low : y;
    float r = (float)(c > f.high ? f.high : c);
    if (!f.is_signed)
        r = float_of(bits32(r) & 0x7FFFFFFF);
    if (!f.has_zero)
        r = y < 0 ? float_of(0x7FC00000) : r;
    return f.has_nan || y == y ? r : (float)f.high;
}

/* The same for float32, for formats with a zero: E8M0 uses saturate64 only. */
INLINE float saturate32(float y, Format f)
{
    float c = y < (float)f.low ? (float)f.low : y, r = c > (float)f.high ? (float)f.high : c;
    if (!f.is_signed)
        r = float_of(bits32(r) & 0x7FFFFFFF);
    return f.has_nan || y == y ? r : (float)f.high;
}

INLINE float bf16_of32(float x) { return drop_bits(x, 16); }
INLINE float tf32_of32(float x) { return drop_bits(x, 13); }

/* ---------------------------------------------------------------- the words in memory, as ops/_encoding.py has them */

INLINE float bf16_decoded(uint16_t word) { return float_of((uint32_t)word << 16); }
INLINE uint16_t bf16_encoded(float x) { return (uint16_t)(bits32(x) >> 16); }

INLINE float f16_decoded(uint16_t word)
{
    uint32_t sign = (uint32_t)(word & 0x8000) << 16, rest = (uint32_t)(word & 0x7FFF) << 13;
    if (rest >= 0x0F800000) /* infinities and NaN */
        return float_of(sign | rest | 0x7F800000);
    return float_of(bits32(float_of(rest) * 0x1p112f) | sign);
}

INLINE uint16_t f16_encoded(float x)
{
    uint32_t rest = bits32(float_of(bits32(x) & 0x7FFFFFFF) * 0x1p-112f) >> 13 & 0x7FFF;
    return (uint16_t)(rest | (bits32(x) >> 16 & 0x8000));
}

#endif
