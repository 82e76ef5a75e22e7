/* Prints for each function of cutile/compiled/functions.c its largest relative error, as a power of two, over float32
   numbers in the domain where errors can grow: every STEP-th, the program's argument. Smaller operands only shorten the
   series. The reference is long double, which must be wider than double. */

#include "functions.c"

#include <stdio.h>
#include <stdlib.h>

#if LDBL_MANT_DIG < 64
#error "long double is no wider than double"
#endif

#define CASE(name, least, most, signs) {#name, name##_double, name##l, least, most, signs}
#define DOUBLE(name) FAST static double name##_double(double x) { return name##_of(x); }
DOUBLE(exp)
DOUBLE(exp2)
DOUBLE(log)
DOUBLE(log2)
DOUBLE(sin)
DOUBLE(cos)
DOUBLE(tan)
DOUBLE(sinh)
DOUBLE(cosh)
DOUBLE(tanh)

static const struct {
    const char *name;
    double (*tested)(double);
    long double (*reference)(long double);
    float least, most;
    int signs;
} cases[] = {CASE(exp, 0x1p-31f, 110, 2), CASE(exp2, 0x1p-31f, 152, 2), CASE(log, 0x1p-149f, FLT_MAX, 1),
             CASE(log2, 0x1p-149f, FLT_MAX, 1), CASE(sin, 0x1p-31f, 0x1p20f, 1), CASE(cos, 0x1p-31f, 0x1p20f, 1),
             CASE(tan, 0x1p-31f, 0x1p20f, 1), CASE(sinh, 0x1p-31f, 91, 1), CASE(cosh, 0x1p-31f, 91, 1),
             CASE(tanh, 0x1p-31f, 20, 1)};

int main(int count, char **arguments)
{
    uint32_t step = (uint32_t)atoi(arguments[count - 1]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        long double worst = 0;
        for (int sign = 0; sign < cases[i].signs; sign++)
            for (uint32_t u = bits32(cases[i].least); u < bits32(cases[i].most); u += step) {
                double x = float_of(u | (uint32_t)sign << 31);
                long double exact = cases[i].reference(x), error = fabsl((long double)cases[i].tested(x) - exact);
                error = exact == 0 ? error : error / fabsl(exact);
                worst = error <= worst ? worst : error;
            }
        printf("%s %.2Lf\n", cases[i].name, log2l(worst));
    }
    return 0;
}
