/* Extrema and their places, sums, products and prefixes along one axis, whose length is a power of two, and short.

   Many rows are computed beside each other, so that the order within a row costs nothing. The order is that of the
   NumPy forms (ops/reduce.py, ops/scan.py). If a sum, product or prefix has a NaN, the result is None and the caller
   takes the NumPy form: which of two NaNs their sum is depends on the order of operands that a compiler chooses. */

#include "loop.h"
#include "rounding.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

enum { LANES = 32 };    /* rows beside each other */
enum { LONGEST = 128 }; /* elements of a row, so that the rows fit into the first cache */

/* Computes LANES rows of `n` elements. Elements of a row are `step` apart in x, and `out_step` in `out`, which may be
   the memory of x.
   Returns whether a result is NaN. */
typedef int Rows(const void *x, Py_ssize_t step, void *out, Py_ssize_t out_step, Py_ssize_t n);

typedef struct {
    const char *name;
    char type, result; /* format characters of the struct module: of elements and results */
    int scans;         /* whether there is a result for each element */
    Rows *rows;
} Along;

#define EACH for (int j = 0; j < LANES; j++)
#define ROWS(name, number, found, ...) /* and what computes them */                                                   \
    FAST static int name(const void *given, Py_ssize_t step, void *result, Py_ssize_t out_step, Py_ssize_t n)         \
    {                                                                                                                 \
        const number *x = given;                                                                                      \
        found *out = result;                                                                                          \
        int nans = 0;                                                                                                 \
        __VA_ARGS__                                                                                                   \
        (void)out_step;                                                                                               \
        return nans;                                                                                                  \
    }

/* ---------------------------------------------------------------- extrema */

#define LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SMALLER(x, y) ((x) < (y) ? (x) : (y))

/* `key` makes numbers of elements that are ordered as they are, `value` is its inverse. */
#define EXTREMUM(name, element, ordered, key, value, better)                                                          \
    ROWS(name, element, element, ordered best[LANES];                                                                 \
         EACH best[j] = key(x[j]);                                                                                    \
         for (Py_ssize_t k = 1; k < n; k++)                                                                           \
             EACH {                                                                                                   \
                 ordered next = key(x[k * step + j]);                                                                 \
                 best[j] = better(best[j], next);                                                                     \
             }                                                                                                        \
         EACH out[j] = value(best[j]);)

/* The place of the first of those that are best. Masks, since a choice would become a jump. */
#define PLACE(name, element, ordered, key, better)                                                                    \
    ROWS(name, element, int32_t, ordered best[LANES], place[LANES], next[LANES];                                      \
         EACH best[j] = key(x[j]);                                                                                    \
         EACH place[j] = 0;                                                                                           \
         for (Py_ssize_t k = 1; k < n; k++) {                                                                         \
             EACH next[j] = key(x[k * step + j]);                                                                     \
             EACH {                                                                                                   \
                 ordered mask = (ordered)-(next[j] better best[j]);                                                   \
                 best[j] ^= (best[j] ^ next[j]) & mask;                                                               \
                 place[j] ^= (place[j] ^ (ordered)k) & mask;                                                          \
             }                                                                                                        \
         }                                                                                                            \
         EACH out[j] = (int32_t)place[j];)

/* Floats of one sign are ordered as their bits are, negative ones the other way round; -0 is less than +0. A NaN
   becomes the end of the range: its own keys are the outermost. */
INLINE int32_t key32(float x, int32_t nan)
{
    int32_t u = (int32_t)bits32(x), k = u ^ (u >> 31 & INT32_MAX);
    return (u & INT32_MAX) > 0x7F800000 ? nan : k;
}

INLINE int64_t key64(double x, int64_t nan)
{
    const int64_t infinity = (int64_t)0x7FF << 52;
    int64_t u = (int64_t)bits64(x), k = u ^ (u >> 63 & INT64_MAX);
    return (u & INT64_MAX) > infinity ? nan : k;
}

INLINE float value32(int32_t k)
{
    float x = float_of((uint32_t)(k ^ (k >> 31 & INT32_MAX)));
    return x == x ? x : float_of(0x7FC00000);
}

INLINE double value64(int64_t k)
{
    double x = double_of((uint64_t)(k ^ (k >> 63 & INT64_MAX)));
    return x == x ? x : double_of((uint64_t)0x7FF8 << 48);
}

#define SAME(x) (x)
#define LOW32(x) key32(x, INT32_MIN)
#define HIGH32(x) key32(x, INT32_MAX)
#define LOW64(x) key64(x, INT64_MIN)
#define HIGH64(x) key64(x, INT64_MAX)
#define EXTREMA(name, type)                                                                                           \
    EXTREMUM(max_##name, type, type, SAME, SAME, LARGER)                                                              \
    EXTREMUM(min_##name, type, type, SAME, SAME, SMALLER)                                                             \
    PLACE(argmax_##name, type, type, SAME, >)                                                                         \
    PLACE(argmin_##name, type, type, SAME, <)
#define EXTREMA_OF_FLOATS(name, type, ordered, low, high, value)                                                      \
    EXTREMUM(max_##name, type, ordered, low, value, LARGER)                                                           \
    EXTREMUM(min_##name, type, ordered, high, value, SMALLER)                                                         \
    EXTREMUM(max_or_nan_##name, type, ordered, high, value, LARGER)                                                   \
    EXTREMUM(min_or_nan_##name, type, ordered, low, value, SMALLER)                                                   \
    PLACE(argmax_##name, type, ordered, low##_PLACE, >)                                                               \
    PLACE(argmin_##name, type, ordered, high##_PLACE, <)                                                              \
    PLACE(argmax_or_nan_##name, type, ordered, high##_PLACE, >)                                                       \
    PLACE(argmin_or_nan_##name, type, ordered, low##_PLACE, <)
#define LOW32_PLACE(x) LOW32((x) + 0.0f) /* there, zeros of both signs are equal */
#define HIGH32_PLACE(x) HIGH32((x) + 0.0f)
#define LOW64_PLACE(x) LOW64((x) + 0.0)
#define HIGH64_PLACE(x) HIGH64((x) + 0.0)

EXTREMA(i8, int8_t)
EXTREMA(i16, int16_t)
EXTREMA(i32, int32_t)
EXTREMA(i64, int64_t)
EXTREMA(u8, uint8_t)
EXTREMA(u16, uint16_t)
EXTREMA(u32, uint32_t)
EXTREMA(u64, uint64_t)
EXTREMA_OF_FLOATS(f32, float, int32_t, LOW32, HIGH32, value32)
EXTREMA_OF_FLOATS(f64, double, int64_t, LOW64, HIGH64, value64)

/* ---------------------------------------------------------------- sums and products */

/* The order of numpy.add.reduce for up to 128 elements: eight running sums, joined in pairs. */
#define SUM(name, type)                                                                                               \
    ROWS(name, type, type, type sum[8][LANES];                                                                        \
         int many = n < 8 ? 1 : 8;                                                                                    \
         for (int i = 0; i < many; i++)                                                                               \
             EACH sum[i][j] = x[i * step + j];                                                                        \
         for (Py_ssize_t k = many; k < n; k += many)                                                                  \
             for (int i = 0; i < many; i++)                                                                           \
                 EACH sum[i][j] += x[(k + i) * step + j];                                                             \
         for (int apart = 1; apart < many; apart *= 2)                                                                \
             for (int i = 0; i < many; i += 2 * apart)                                                                \
                 EACH sum[i][j] += sum[i + apart][j];                                                                 \
         EACH {                                                                                                       \
             out[j] = sum[0][j];                                                                                      \
             nans |= out[j] != out[j];                                                                                \
         })

#define PLUS(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))
#define WRAPPED_TIMES(x, y) ((x) * 1u * (y)) /* unsigned, also where short integers are widened */

/* x[i] with x[i + n/2], again and again, rounded each time. */
#define HALVES(name, type, round, combine)                                                                            \
    ROWS(name, type, type, type half[LONGEST / 2][LANES];                                                             \
         if (n == 1)                                                                                                  \
             EACH half[0][j] = x[j];                                                                                  \
         for (Py_ssize_t k = 0; k < n / 2; k++)                                                                       \
             EACH half[k][j] = round(combine(x[k * step + j], x[(k + n / 2) * step + j]));                            \
         for (Py_ssize_t m = n / 4; m > 0; m /= 2)                                                                    \
             for (Py_ssize_t k = 0; k < m; k++)                                                                       \
                 EACH half[k][j] = round(combine(half[k][j], half[k + m][j]));                                        \
         EACH {                                                                                                       \
             out[j] = half[0][j];                                                                                     \
             nans |= out[j] != out[j];                                                                                \
         })

/* One element after the other. */
#define PREFIXES(name, type, round, combine)                                                                          \
    ROWS(name, type, type, type last[LANES];                                                                          \
         EACH last[j] = x[j];                                                                                         \
         EACH out[j] = last[j];                                                                                       \
         for (Py_ssize_t k = 1; k < n; k++) {                                                                         \
             EACH last[j] = round(combine(last[j], x[k * step + j]));                                                 \
             EACH out[k * out_step + j] = last[j];                                                                    \
         }                                                                                                            \
         EACH nans |= last[j] != last[j];)

#define BOTH(name, type, round)                                                                                       \
    HALVES(add_halves_##name, type, round, PLUS)                                                                      \
    HALVES(mul_halves_##name, type, round, TIMES)                                                                     \
    PREFIXES(add_prefixes_##name, type, round, PLUS)                                                                  \
    PREFIXES(mul_prefixes_##name, type, round, TIMES)
#define INTEGERS(name, type)                                                                                          \
    HALVES(add_halves_##name, type, (type), PLUS)                                                                     \
    HALVES(mul_halves_##name, type, (type), WRAPPED_TIMES)                                                            \
    PREFIXES(add_prefixes_##name, type, (type), PLUS)                                                                 \
    PREFIXES(mul_prefixes_##name, type, (type), WRAPPED_TIMES)

SUM(sum_f32, float)
SUM(sum_f64, double)
BOTH(f16, float, f16_of32)
BOTH(bf16, float, bf16_of32)
BOTH(f32, float, SAME)
BOTH(f64, double, SAME)
INTEGERS(u8, uint8_t)
INTEGERS(u16, uint16_t)
INTEGERS(u32, uint32_t)
INTEGERS(u64, uint64_t)

/* ---------------------------------------------------------------- rows of an array */

typedef struct {
    const Along *form;
    Py_ssize_t n, steps[2]; /* elements of a row; bytes between them, in memory and in the result */
} State;

#if defined(__SSE2__) || defined(_M_X64)
/* Moves packed rows of elements of 4 bytes, four by four; returns how many of the `m` rows. */
static int move_fours(uint32_t *piece, char *memory, const Py_ssize_t *at, Py_ssize_t n, int m, int in)
{
    if (n % 4 != 0)
        return 0;
    for (int j = 0; j + 4 <= m; j += 4)
        for (Py_ssize_t k = 0; k < n; k += 4) {
            __m128i *from[4], *to[4], row[4], pair[4];
            for (int i = 0; i < 4; i++) {
                from[i] = (__m128i *)(memory + at[j + i] + 4 * k);
                to[i] = (__m128i *)(piece + (k + i) * LANES + j);
            }
            for (int i = 0; i < 4; i++)
                row[i] = _mm_loadu_si128(in ? from[i] : to[i]);
            pair[0] = _mm_unpacklo_epi32(row[0], row[1]);
            pair[1] = _mm_unpacklo_epi32(row[2], row[3]);
            pair[2] = _mm_unpackhi_epi32(row[0], row[1]);
            pair[3] = _mm_unpackhi_epi32(row[2], row[3]);
            row[0] = _mm_unpacklo_epi64(pair[0], pair[1]);
            row[1] = _mm_unpackhi_epi64(pair[0], pair[1]);
            row[2] = _mm_unpacklo_epi64(pair[2], pair[3]);
            row[3] = _mm_unpackhi_epi64(pair[2], pair[3]);
            for (int i = 0; i < 4; i++)
                _mm_storeu_si128(in ? to[i] : from[i], row[i]);
        }
    return m & ~3;
}

/* The same for 8 bytes, two by two. */
static int move_pairs(uint64_t *piece, char *memory, const Py_ssize_t *at, Py_ssize_t n, int m, int in)
{
    if (n % 2 != 0)
        return 0;
    for (int j = 0; j + 2 <= m; j += 2)
        for (Py_ssize_t k = 0; k < n; k += 2) {
            __m128i *from[2], *to[2];
            for (int i = 0; i < 2; i++) {
                from[i] = (__m128i *)(memory + at[j + i] + 8 * k);
                to[i] = (__m128i *)(piece + (k + i) * LANES + j);
            }
            __m128i x = _mm_loadu_si128(in ? from[0] : to[0]), y = _mm_loadu_si128(in ? from[1] : to[1]);
            _mm_storeu_si128(in ? to[0] : from[0], _mm_unpacklo_epi64(x, y));
            _mm_storeu_si128(in ? to[1] : from[1], _mm_unpackhi_epi64(x, y));
        }
    return m & ~1;
}
#else
#define move_fours(piece, memory, at, n, m, in) 0
#define move_pairs(piece, memory, at, n, m, in) 0
#endif

/* Moves elements between the piece, where rows lie beside each other, and memory, where they begin at `at`. */
#define MOVE(type, to, from)                                                                                          \
    for (Py_ssize_t k = 0; k < n; k++)                                                                                \
        for (int j = moved; j < m; j++)                                                                               \
            memcpy(to, from, sizeof(type));
#define PIECE_AT(type) ((type *)piece + k * LANES + j)
#define MEMORY_AT (memory + at[j] + k * step)
#define MOVES(type)                                                                                                   \
    if (in) {                                                                                                         \
        MOVE(type, PIECE_AT(type), MEMORY_AT)                                                                         \
    } else {                                                                                                          \
        MOVE(type, MEMORY_AT, PIECE_AT(type))                                                                         \
    }

static void move(void *piece, char *memory, const Py_ssize_t *at, Py_ssize_t step, Py_ssize_t size, Py_ssize_t n,
                 int m, int in)
{
    int moved = step != size ? 0 : size == 4 ? move_fours(piece, memory, at, n, m, in)
        : size == 8 ? move_pairs(piece, memory, at, n, m, in) : 0;
    if (size == 8) {
        MOVES(uint64_t)
    } else if (size == 4) {
        MOVES(uint32_t)
    } else if (size == 2) {
        MOVES(uint16_t)
    } else {
        MOVES(uint8_t)
    }
}

/* A row, by its place along each axis, and by where it begins in both arrays. */
typedef struct {
    Py_ssize_t place[AXES], at[2];
} Row;

static void go_on(const Loop *l, Row *r, Py_ssize_t rows)
{
    for (int k = l->axes - 1; k >= 0; k--) {
        for (int i = 0; i < 2; i++)
            r->at[i] += rows * l->array[i].strides[k];
        r->place[k] += rows;
        if (r->place[k] < l->shape[k])
            return;
        for (int i = 0; i < 2; i++)
            r->at[i] -= r->place[k] * l->array[i].strides[k];
        r->place[k] = 0;
        rows = 1;
    }
}

/* Whether rows lie beside each other in memory along the last axis, all elements at multiples of their size. */
static int lie_beside(const Loop *l, const Array *a, Py_ssize_t step)
{
    Py_ssize_t odd = (Py_ssize_t)(uintptr_t)a->data | step;
    for (int k = 0; k < l->axes; k++)
        odd |= a->strides[k];
    return l->axes > 0 && a->strides[l->axes - 1] == a->size && (odd & (a->size - 1)) == 0;
}

static int run_rows(Loop *l, const void *state)
{
    const State *s = state;
    char *x = l->array[0].data, *out = l->array[1].data;
    const Py_ssize_t size = l->array[0].size, result = l->array[1].size, *steps = s->steps, last = l->axes - 1;
    const int beside = lie_beside(l, l->array, steps[0]) && lie_beside(l, l->array + 1, steps[1]);
    uint64_t piece[LONGEST * LANES];
    Py_ssize_t begins[2][LANES];
    Row r = {{0}, {0}};
    int nans = 0;
    for (Py_ssize_t done = 0, m; done < l->total; done += m) {
        m = l->total - done < LANES ? l->total - done : LANES;
        if (beside && l->shape[last] - r.place[last] >= LANES) {
            nans |= s->form->rows(x + r.at[0], steps[0] / size, out + r.at[1], steps[1] / result, s->n);
            go_on(l, &r, m);
            continue;
        }
        for (Py_ssize_t j = 0, run; j < m; j += run, go_on(l, &r, run)) {
            run = l->axes == 0 || l->shape[last] - r.place[last] > m - j ? m - j : l->shape[last] - r.place[last];
            for (int i = 0; i < 2; i++)
                for (Py_ssize_t k = 0; k < run; k++)
                    begins[i][j + k] = r.at[i] + (l->axes == 0 ? 0 : k * l->array[i].strides[last]);
        }
        if (m < LANES)
            memset(piece, 0, (size_t)(s->n * LANES * size));
        move(piece, x, begins[0], steps[0], size, s->n, (int)m, 1);
        nans |= s->form->rows(piece, LANES, piece, LANES, s->n);
        move(piece, out, begins[1], steps[1], result, s->form->scans ? s->n : 1, (int)m, 0);
    }
    return nans;
}

/* Begins at the last element of each row. */
static void turn_round(Loop *l, State *s)
{
    for (int i = 0; i < 2; i++) {
        l->array[i].data += (s->n - 1) * s->steps[i];
        s->steps[i] = -s->steps[i];
    }
}

/* form(x, axis, backwards=False) -> the result, with length 1 along the axis unless it scans; or None */
static PyObject *call_along(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    State s = {PyCapsule_GetPointer(self, NULL), 0, {0, 0}};
    if (s.form == NULL || given < 2 || given > 3)
        return PyErr_Format(PyExc_TypeError, "expected an array, an axis, and whether to begin at the last element");
    Loop l;
    const char type[2] = {s.form->type, 0};
    PyObject *result = NULL;
    Py_ssize_t axis = PyLong_AsSsize_t(args[1]);
    l.arrays = 0;
    if (PyErr_Occurred() || !loop_borrow(&l, args[0], type, 0) || !loop_broadcast(&l, NULL))
        goto out;
    axis += axis < 0 ? l.axes : 0;
    s.n = axis < 0 || axis >= l.axes ? 0 : l.shape[axis];
    if (s.n < 1 || s.n > LONGEST || (s.n & (s.n - 1)) != 0) {
        PyErr_SetString(PyExc_ValueError, "there is no such axis, or its length is not suitable");
        goto out;
    }
    if ((result = loop_rows(&l, (int)axis, s.form->scans, s.form->result, s.steps)) == NULL)
        goto out;
    if (given == 3 && PyObject_IsTrue(args[2]))
        turn_round(&l, &s);
    if (loop_run(&l, l.total * s.n, run_rows, &s)) {
        Py_DECREF(result);
        result = Py_NewRef(Py_None);
    }
out:
    loop_release(&l);
    return result;
}

/* ---------------------------------------------------------------- the forms */

#define OF_INTEGERS(name, type, suffix)                                                                               \
    {"max " #name, type, type, 0, max_##suffix}, {"min " #name, type, type, 0, min_##suffix},                         \
    {"argmax " #name, type, 'i', 0, argmax_##suffix}, {"argmin " #name, type, 'i', 0, argmin_##suffix}
#define OF_FLOATS(name, type, suffix)                                                                                 \
    OF_INTEGERS(name, type, suffix), {"sum " #name, type, type, 0, sum_##suffix},                                     \
    {"max or nan " #name, type, type, 0, max_or_nan_##suffix},                                                        \
    {"min or nan " #name, type, type, 0, min_or_nan_##suffix},                                                        \
    {"argmax or nan " #name, type, 'i', 0, argmax_or_nan_##suffix},                                                   \
    {"argmin or nan " #name, type, 'i', 0, argmin_or_nan_##suffix}
#define IN_ORDER(name, type, suffix)                                                                                  \
    {"add halves " #name, type, type, 0, add_halves_##suffix},                                                        \
    {"mul halves " #name, type, type, 0, mul_halves_##suffix},                                                        \
    {"add prefixes " #name, type, type, 1, add_prefixes_##suffix},                                                    \
    {"mul prefixes " #name, type, type, 1, mul_prefixes_##suffix}

static const Along FORMS[] = {
    OF_FLOATS(float32, 'f', f32), OF_FLOATS(float64, 'd', f64),
    OF_INTEGERS(int8, 'b', i8), OF_INTEGERS(int16, 'h', i16), OF_INTEGERS(int32, 'i', i32),
    OF_INTEGERS(int64, 'q', i64), OF_INTEGERS(uint8, 'B', u8), OF_INTEGERS(uint16, 'H', u16),
    OF_INTEGERS(uint32, 'I', u32), OF_INTEGERS(uint64, 'Q', u64),
    IN_ORDER(float16, 'f', f16), IN_ORDER(bfloat16, 'f', bf16), IN_ORDER(float32, 'f', f32),
    IN_ORDER(float64, 'd', f64), IN_ORDER(int8, 'b', u8), IN_ORDER(int16, 'h', u16), IN_ORDER(int32, 'i', u32),
    IN_ORDER(int64, 'q', u64), IN_ORDER(uint8, 'B', u8), IN_ORDER(uint16, 'H', u16), IN_ORDER(uint32, 'I', u32),
    IN_ORDER(uint64, 'Q', u64), {NULL, 0, 0, 0, NULL}};

static PyMethodDef call = {"along", (PyCFunction)(void (*)(void))call_along, METH_FASTCALL,
                           "form(x, axis, backwards=False) -> the result; None if a sum, product or prefix is NaN"};

int add_along(PyObject *forms)
{
    int ok = 1;
    for (const Along *form = FORMS; ok && form->name != NULL; form++)
        ok = add_form(forms, form->name, &call, form);
    return ok;
}
