/* x * y + z, rounded once.

   A NaN in the result is, as NumPy's product and sum would give it, the first NaN among x, y, x * y and z. The CPU's
   own operation chooses otherwise, so NaN results are replaced. */

#include "rounding.h"

/* ---------------------------------------------------------------- NaN */

INLINE float nan32(float x, float y, float z)
{
    const uint32_t quiet = 0x00400000;
    if (x != x)
        return float_of(bits32(x) | quiet);
    if (y != y)
        return float_of(bits32(y) | quiet);
    float product = x * y;
    return product != product ? product : z != z ? float_of(bits32(z) | quiet) : product + z;
}

INLINE double nan64(double x, double y, double z)
{
    const uint64_t quiet = (uint64_t)1 << 51;
    if (x != x)
        return double_of(bits64(x) | quiet);
    if (y != y)
        return double_of(bits64(y) | quiet);
    double product = x * y;
    return product != product ? product : z != z ? double_of(bits64(z) | quiet) : product + z;
}

/* ---------------------------------------------------------------- one rounding */

/* The exact product and sum of float32, rounded to odd in float64: of the two neighbours that enclose it, the one with
   the odd last bit. Rounding that to 51 bits or fewer is right. */
INLINE double to_odd(float x, float y, float z)
{
    double p = (double)x * y, s = p + z; /* p is exact: at most 48 bits */
    double t = s - p, error = (p - (s - t)) + (z - t);
    uint64_t u = bits64(s), one = ((error > 0) | (error < 0)) & ~u, inwards = -(uint64_t)((error > 0) != (s > 0));
    return double_of(u + ((one ^ inwards) - inwards));
}

/* ---------------------------------------------------------------- the forms */

/* A form of `type`: `once` rounds the exact value, `nan` gives what a NaN result is. */
#define FMA(name, type, once, nan)                                                                                    \
    FAST static int name(void *const *at, Py_ssize_t n)                                                              \
    {                                                                                                                 \
        const type *x = at[0], *y = at[1], *z = at[2];                                                                \
        type *r = at[3];                                                                                              \
        int nans = 0;                                                                                                 \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            type w = once(x[i], y[i], z[i]);                                                                          \
            nans |= w != w;                                                                                           \
            r[i] = w;                                                                                                 \
        }                                                                                                             \
        for (Py_ssize_t i = 0; nans && i < n; i++)                                                                    \
            if (r[i] != r[i])                                                                                         \
                r[i] = nan(x[i], y[i], z[i]);                                                                         \
        return 0;                                                                                                     \
    }
#define F16_ONCE(x, y, z) f16_of64(to_odd(x, y, z))
#define BF16_ONCE(x, y, z) bf16_of64(to_odd(x, y, z))

FMA(f16, float, F16_ONCE, nan32)
FMA(bf16, float, BF16_ONCE, nan32)
#if HAVE_FMA
FMA(f32, float, fmaf, nan32)
FMA(f64, double, fma, nan64)
#endif

const Elementwise FMA_FORMS[] = {
    {"fma float16", "ffff", f16},
    {"fma bfloat16", "ffff", bf16},
#if HAVE_FMA
    {"fma float32", "ffff", f32},
    {"fma float64", "dddd", f64},
#endif
    {NULL, NULL, NULL}};
