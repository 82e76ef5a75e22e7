/* Rounding of float32 and float64 to the short formats, each carried in float32. */

#include "rounding.h"

#define ROUND(name, from, rounded)                                                                                    \
    FAST static int name(void *const *at, Py_ssize_t n)                                                              \
    {                                                                                                                 \
        const from *in = at[0];                                                                                       \
        float *out = at[1];                                                                                           \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            from x = in[i];                                                                                           \
            out[i] = rounded;                                                                                         \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
/* Formats of 8 and 4 bits. float32 has room for their last places, apart from E8M0, which has its exponents. */
#define SATURATE(name, format)                                                                                        \
    ROUND(name##_32, float, saturate32(nearest32(x, format), format))                                                 \
    ROUND(name##_64, double, saturate64(nearest64(x, format), format))

ROUND(f16_32, float, f16_of32(x))
ROUND(f16_64, double, f16_of64(x))
ROUND(bf16_32, float, bf16_of32(x))
ROUND(bf16_64, double, bf16_of64(x))
ROUND(tf32_32, float, tf32_of32(x))
ROUND(tf32_64, double, tf32_of64(x))
SATURATE(e4m3, E4M3)
SATURATE(e5m2, E5M2)
SATURATE(e5m3, E5M3)
SATURATE(e2m1, E2M1)
ROUND(e8m0_32, float, saturate64(nearest64(x, E8M0), E8M0))
ROUND(e8m0_64, double, saturate64(nearest64(x, E8M0), E8M0))

const Elementwise ROUNDING_FORMS[] = {
    {"round f to float16", "ff", f16_32},
    {"round d to float16", "df", f16_64},
    {"round f to bfloat16", "ff", bf16_32},
    {"round d to bfloat16", "df", bf16_64},
    {"round f to tfloat32", "ff", tf32_32},
    {"round d to tfloat32", "df", tf32_64},
    {"round f to float8_e4m3fn", "ff", e4m3_32},
    {"round d to float8_e4m3fn", "df", e4m3_64},
    {"round f to float8_e5m2", "ff", e5m2_32},
    {"round d to float8_e5m2", "df", e5m2_64},
    {"round f to float8_e5m3fnu", "ff", e5m3_32},
    {"round d to float8_e5m3fnu", "df", e5m3_64},
    {"round f to float8_e8m0fnu", "ff", e8m0_32},
    {"round d to float8_e8m0fnu", "df", e8m0_64},
    {"round f to float4_e2m1fn", "ff", e2m1_32},
    {"round d to float4_e2m1fn", "df", e2m1_64},
    {NULL, NULL, NULL}};
