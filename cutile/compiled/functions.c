/* Functions of float32 and shorter floats that NumPy approximates, rounded to the operand's format.

   Their NumPy forms compute in float64 and round once. Here, too, a value is computed in float64, by other formulas.
   Its relative error is less than 2**-51 for every float32 (tests/compiled/accuracy.c measures it), that of NumPy's
   functions is less than 2**-49. If every value within a relative 2**-46 of y, the one found, rounds to the same
   number, the results are the same. Elsewhere, about once in four million times, the result is DOUBTFUL and the caller
   takes NumPy's, also for sines of large numbers and of infinity. Of NaN, and as the logarithm of a negative number,
   NaN is sure; which one it is may differ.

   Series have as many terms as the last bit of float64 needs; their coefficients are those of Taylor's series. */

#include "rounding.h"

#if HAVE_FMA

static const double LN2 = 0x1.62e42fefa39efp-1, LN2_LOW = 0x1.abc9e3b39803fp-56, LOG2E = 0x1.71547652b82fep+0,
    HALF_PI = 0x1.921fb54442d18p+0, HALF_PI_LOW = 0x1.1a62633145c07p-54, TWO_OVER_PI = 0x1.45f306dc9c883p-1;
static const double TO_INTEGER = 0x1.8p52; /* added to a small number, it leaves the nearest integer in the last bits */

INLINE double clamped(double x, double limit)
{
    x = x < -limit ? -limit : x;
    return x > limit ? limit : x;
}

/* x * 2**k, where u is the bits of TO_INTEGER + k and the result is a normal number. */
INLINE double scaled(double x, uint64_t u)
{
    return double_of(bits64(x) + (u << 52));
}

/* ---------------------------------------------------------------- exponentials */

/* (exp(r) - 1) / r for |r| up to ln(2) / 2 */
INLINE double expm1_over(double r)
{
    double p = 1.0 / 6227020800.0;
    p = fma(p, r, 1.0 / 479001600.0);
    p = fma(p, r, 1.0 / 39916800.0);
    p = fma(p, r, 1.0 / 3628800.0);
    p = fma(p, r, 1.0 / 362880.0);
    p = fma(p, r, 1.0 / 40320.0);
    p = fma(p, r, 1.0 / 5040.0);
    p = fma(p, r, 1.0 / 720.0);
    p = fma(p, r, 1.0 / 120.0);
    p = fma(p, r, 1.0 / 24.0);
    p = fma(p, r, 1.0 / 6.0);
    p = fma(p, r, 0.5);
    return fma(p, r, 1.0);
}

/* x - k * ln(2) for the nearest k; *u: the bits of TO_INTEGER + k */
INLINE double without_powers(double x, uint64_t *u)
{
    double k = fma(x, LOG2E, TO_INTEGER);
    *u = bits64(k);
    k -= TO_INTEGER;
    return fma(-k, LN2_LOW, fma(-k, LN2, x)); /* the inner one is exact */
}

INLINE double exp_of(double x)
{
    uint64_t u;
    double r = without_powers(clamped(x, 200), &u);
    return scaled(fma(expm1_over(r), r, 1.0), u);
}

INLINE double exp2_of(double x)
{
    x = clamped(x, 400);
    double k = x + TO_INTEGER, r = (x - (k - TO_INTEGER)) * LN2;
    return scaled(fma(expm1_over(r), r, 1.0), bits64(k));
}

/* exp(a) - 1 for a in 0 ... 200 */
INLINE double expm1_of(double a)
{
    uint64_t u;
    double r = without_powers(a, &u), power = scaled(1.0, u);
    return fma(expm1_over(r) * r, power, power - 1.0);
}

INLINE double sinh_of(double x)
{
    double a = clamped(fabs(x), 200), e = expm1_of(a);
    double y = copysign(0.5 * (e + e / (e + 1.0)), x);
    return x == x ? y : x;
}

INLINE double cosh_of(double x)
{
    double e = exp_of(fabs(x));
    return 0.5 * (e + 1.0 / e);
}

INLINE double tanh_of(double x)
{
    double e = expm1_of(clamped(2.0 * fabs(x), 100));
    double y = copysign(e / (e + 2.0), x);
    return x == x ? y : x;
}

/* ---------------------------------------------------------------- logarithms */

/* ln(m), where x = m * 2**k and m is near 1, through artanh of (m - 1) / (m + 1) */
INLINE double log_near_1(double x, double *k)
{
    const uint64_t half_root = 0x3FE6A09E667F3BCDull; /* the bits of sqrt(1/2) */
    uint64_t u = bits64(x) - half_root, power = u >> 52 << 52;
    *k = (double)((int32_t)(int64_t)(u >> 52) - (u >> 63 ? 4096 : 0));
    double m = double_of(bits64(x) - power), s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 23;
    p = fma(p, z, 1.0 / 21);
    p = fma(p, z, 1.0 / 19);
    p = fma(p, z, 1.0 / 17);
    p = fma(p, z, 1.0 / 15);
    p = fma(p, z, 1.0 / 13);
    p = fma(p, z, 1.0 / 11);
    p = fma(p, z, 1.0 / 9);
    p = fma(p, z, 1.0 / 7);
    p = fma(p, z, 1.0 / 5);
    p = fma(p, z, 1.0 / 3);
    return 2.0 * fma(p * z, s, s);
}

/* y, or what a logarithm is of zero, infinity, NaN and negative numbers */
INLINE double log_result(double x, double y)
{
    y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
    return x == INFINITY ? x : y;
}

INLINE double log_of(double x)
{
    double k, y = log_near_1(x, &k);
    return log_result(x, fma(k, LN2, fma(k, LN2_LOW, y)));
}

INLINE double log2_of(double x)
{
    double k, y = log_near_1(x, &k);
    return log_result(x, fma(y, LOG2E, k));
}

/* ---------------------------------------------------------------- waves */

/* x - k * pi/2 for the nearest k, of which *quarter has the last bits; NaN for large x */
INLINE double without_quarters(double x, uint64_t *quarter)
{
    double k = fma(x, TWO_OVER_PI, TO_INTEGER);
    *quarter = bits64(k);
    k -= TO_INTEGER;
    double r = fma(-k, HALF_PI_LOW, fma(-k, HALF_PI, x)); /* the inner one is exact */
    return fabs(x) < 0x1p20 ? r : NAN;
}

/* For |r| up to pi/4 */
INLINE double sine(double r)
{
    double z = r * r, p = 1.0 / 355687428096000.0;
    p = fma(p, z, -1.0 / 1307674368000.0);
    p = fma(p, z, 1.0 / 6227020800.0);
    p = fma(p, z, -1.0 / 39916800.0);
    p = fma(p, z, 1.0 / 362880.0);
    p = fma(p, z, -1.0 / 5040.0);
    p = fma(p, z, 1.0 / 120.0);
    p = fma(p, z, -1.0 / 6.0);
    return fma(p * z, r, r);
}

INLINE double cosine(double r)
{
    double z = r * r, p = -1.0 / 6402373705728000.0;
    p = fma(p, z, 1.0 / 20922789888000.0);
    p = fma(p, z, -1.0 / 87178291200.0);
    p = fma(p, z, 1.0 / 479001600.0);
    p = fma(p, z, -1.0 / 3628800.0);
    p = fma(p, z, 1.0 / 40320.0);
    p = fma(p, z, -1.0 / 720.0);
    p = fma(p, z, 1.0 / 24.0);
    p = fma(p, z, -0.5);
    return fma(p, z, 1.0);
}

INLINE double sin_of(double x)
{
    uint64_t quarter;
    double r = without_quarters(x, &quarter), s = sine(r), c = cosine(r), y = quarter & 1 ? c : s;
    y = quarter & 2 ? -y : y;
    return x == 0 ? x : y;
}

INLINE double cos_of(double x)
{
    uint64_t quarter;
    double r = without_quarters(x, &quarter), s = sine(r), c = cosine(r), y = quarter & 1 ? s : c;
    return (quarter + 1) & 2 ? -y : y;
}

INLINE double tan_of(double x)
{
    uint64_t quarter;
    double r = without_quarters(x, &quarter), s = sine(r), c = cosine(r);
    double y = (quarter & 1 ? -c : s) / (quarter & 1 ? s : c);
    return x == 0 ? x : y;
}

/* ---------------------------------------------------------------- results that round like NumPy's */

#define F32_OF64(y) ((float)(y))
#define NO_NUMBER(x) ((x) != (x))
#define NO_LOGARITHM(x) (!((x) >= 0))
#define ROUNDED(name, function, round, nan)                                                                           \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const float *x = at[0];                                                                                       \
        float *out = at[1];                                                                                           \
        int doubts = 0;                                                                                               \
        for (Py_ssize_t i = 0; i < n; i++) {                                                                          \
            double y = function(x[i]);                                                                                \
            float low = round(y * (1 - 0x1p-46)), high = round(y * (1 + 0x1p-46));                                    \
            int sure = low == high || nan(x[i]);                                                                      \
            doubts |= !sure;                                                                                          \
            out[i] = sure ? high : float_of(DOUBTFUL);                                                                \
        }                                                                                                             \
        return doubts;                                                                                                \
    }
#define FUNCTION(name, nan)                                                                                           \
    ROUNDED(name##_f32, name##_of, F32_OF64, nan)                                                                     \
    ROUNDED(name##_f16, name##_of, f16_of64, nan)                                                                     \
    ROUNDED(name##_bf16, name##_of, bf16_of64, nan)
#define ROWS(name)                                                                                                    \
    {#name " float32", "ff", name##_f32}, {#name " float16", "ff", name##_f16}, {#name " bfloat16", "ff", name##_bf16}

/* ---------------------------------------------------------------- reciprocal root: the steps of the NumPy forms */

#define EACH(name, type, function)                                                                                    \
    FAST static int name(void *const *at, Py_ssize_t n)                                                               \
    {                                                                                                                 \
        const type *x = at[0];                                                                                        \
        type *out = at[1];                                                                                            \
        for (Py_ssize_t i = 0; i < n; i++)                                                                            \
            out[i] = function;                                                                                        \
        return 0;                                                                                                     \
    }

/* The error of the product p of a and b, by Dekker: at the ends of the range it differs from fma(a, b, -p). */
INLINE double product_error(double a, double b, double p)
{
    const double split = 134217729.0;
    double ca = a * split, cb = b * split, ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

INLINE double rsqrt_of(double given)
{
    int tiny = given < 0x1p-900;
    double x = tiny ? given * 0x1p200 : given, s = sqrt(x), y = 1.0 / s;
    double p = s * s, e = product_error(s, s, p), q = y * s, f = product_error(y, s, q);
    double root_missed = ((x - p) - e) / (2.0 * s), correction = y * (((1.0 - q) - f) - root_missed * y);
    y = fabs(correction) < INFINITY ? y + correction : y;
    return tiny ? y * 0x1p100 : y;
}

EACH(rsqrt_f64, double, rsqrt_of(x[i]))
EACH(rsqrt_f32, float, (float)(1.0 / sqrt((double)x[i])))
EACH(rsqrt_f16, float, f16_of64(1.0 / sqrt((double)x[i])))
EACH(rsqrt_bf16, float, bf16_of64(1.0 / sqrt((double)x[i])))

/* ---------------------------------------------------------------- hyperbolic functions of float64 */

typedef struct {
    double high, low;
} Pair;

INLINE Pair fast_sum(double a, double b) /* |a| is not less than |b| */
{
    Pair p = {a + b, 0};
    p.low = b - (p.high - a);
    return p;
}

INLINE Pair sum_of(double a, double b)
{
    double s = a + b, t = s - a;
    Pair p = {s, (a - (s - t)) + (b - t)};
    return p;
}

/* The steps of ops/_hyperbolic.py. exp(r) - 1 for a = r + k * ln(2); *u: the bits of TO_INTEGER + k */
INLINE Pair expm1_pair(double a, uint64_t *u)
{
    const double ln2 = 0x1.62e42fep-1, rest_of_ln2 = 0x1.f473de6af278fp-30;
    double k = a * LOG2E + TO_INTEGER;
    *u = bits64(k);
    k -= TO_INTEGER;
    Pair r = fast_sum(a - k * ln2, -(k * rest_of_ln2));
    double x = r.high, t = 1.0 / 1307674368000.0;
    t = t * x + 1.0 / 87178291200.0;
    t = t * x + 1.0 / 6227020800.0;
    t = t * x + 1.0 / 479001600.0;
    t = t * x + 1.0 / 39916800.0;
    t = t * x + 1.0 / 3628800.0;
    t = t * x + 1.0 / 362880.0;
    t = t * x + 1.0 / 40320.0;
    t = t * x + 1.0 / 5040.0;
    t = t * x + 1.0 / 720.0;
    t = t * x + 1.0 / 120.0;
    t = t * x + 1.0 / 24.0;
    t = t * x + 1.0 / 6.0;
    double square = x * x, missing = fma(x, x, -square);
    Pair s = fast_sum(x, square * 0.5);
    return fast_sum(s.high, s.low + ((r.low + (missing * 0.5 + x * r.low)) + t * x * square));
}

INLINE Pair unscaled(Pair y, double scale)
{
    Pair s = sum_of(y.high * scale, scale - 1.0);
    return fast_sum(s.high, s.low + y.low * scale);
}

/* e / (e + c) */
INLINE Pair fraction_of(Pair e, double c)
{
    Pair whole = sum_of(e.high, c);
    double inverse = 1.0 / whole.high, q = e.high * inverse, p = q * whole.high, missed = fma(q, whole.high, -p);
    Pair y = {q, (((e.high - p) - missed) + (e.low - q * (whole.low + e.low))) * inverse};
    return y;
}

INLINE double with_sign(double x, double y)
{
    return fabs(x) >= 0x1p-28 ? copysign(y, x) : x;
}

INLINE double tanh_pair(double x)
{
    uint64_t u;
    double a = fabs(x) < 30.0 ? fabs(x) : 30.0;
    Pair y = expm1_pair(2.0 * a, &u), q = fraction_of(unscaled(y, scaled(1.0, u)), 2.0);
    return with_sign(x, q.high + q.low);
}

INLINE double sinh_pair(double x)
{
    uint64_t u;
    double a = fabs(x) < 711.0 ? fabs(x) : 711.0;
    int large = a > 100.0;
    Pair y = expm1_pair(a, &u), e = unscaled(y, scaled(1.0, large ? bits64(TO_INTEGER) : u)), q = fraction_of(e, 1.0);
    Pair s = sum_of(e.high, q.high);
    double half = (s.high + (s.low + (e.low + q.low))) * 0.5;
    Pair whole = fast_sum(1.0, y.high);
    double power = scaled(whole.high + (whole.low + y.low), u - 2) * 2.0; /* which may overflow */
    return with_sign(x, large ? power : half);
}

EACH(sinh_f64, double, sinh_pair(x[i]))
EACH(tanh_f64, double, tanh_pair(x[i]))

/* ---------------------------------------------------------------- the forms */

FUNCTION(exp, NO_NUMBER)
FUNCTION(exp2, NO_NUMBER)
FUNCTION(log, NO_LOGARITHM)
FUNCTION(log2, NO_LOGARITHM)
FUNCTION(sin, NO_NUMBER)
FUNCTION(cos, NO_NUMBER)
FUNCTION(tan, NO_NUMBER)
FUNCTION(sinh, NO_NUMBER)
FUNCTION(cosh, NO_NUMBER)
FUNCTION(tanh, NO_NUMBER)

const Elementwise FUNCTION_FORMS[] = {ROWS(exp), ROWS(exp2), ROWS(log), ROWS(log2), ROWS(sin), ROWS(cos), ROWS(tan),
                                      ROWS(sinh), ROWS(cosh), ROWS(tanh), ROWS(rsqrt),
                                      {"rsqrt float64", "dd", rsqrt_f64}, {"sinh float64", "dd", sinh_f64},
                                      {"tanh float64", "dd", tanh_f64}, {NULL, NULL, NULL}};
#else
const Elementwise FUNCTION_FORMS[] = {{NULL, NULL, NULL}};
#endif
