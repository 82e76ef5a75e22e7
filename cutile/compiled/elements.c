/* Elements of an array at indices: reading, writing, and atomic updates, in row-major order of the indices.

   An index along an axis is an array of integers, and all of them are broadcast. `bounds` has for each axis where a
   view begins and ends in the array: index i means element begin + i. What lies outside the view or the array, or where
   the mask is False, is never read or written. */

#include "loop.h"
#include "rounding.h"

enum { RANK = 8, NARROW = 1 << 30 }; /* axes of an array at most; the bound of a narrow access */

typedef struct {
    char *base;
    Py_ssize_t size; /* of an element */
    int rank, masked;
    int narrow; /* its indices and offsets need less than 31 bits */
    int64_t begin[RANK], low[RANK], stride[RANK]; /* low: the least index that names an element */
    uint64_t count[RANK];                         /* of indices from there on */
    char type[RANK];                              /* of the indices */
} Access;

static const char INDICES[] = "bBhHiIqQ", MASK[] = "?", ELEMENT[] = "?bBhHiIqQefd";

/* ---------------------------------------------------------------- where elements lie */

/* Where each element lies, from the first one of the array, and whether it exists; 0 where it does not. Returns
   whether all exist. The words are wide enough for the offsets and for indices that exist. */
#define POSITIONS(name, signed_word, word)                                                                            \
    FAST static int name(const Access *a, void *const *at, Py_ssize_t n, int64_t *offset, uint8_t *exists)\
    {                                                                                                                 \
        word sum[PIECE], there[PIECE], all = 1;                                                                       \
        for (Py_ssize_t j = 0; j < n; j++)                                                                            \
            sum[j] = 0;                                                                                               \
        for (Py_ssize_t j = 0; j < n; j++)                                                                            \
            there[j] = a->masked ? ((const uint8_t *)at[a->rank])[j] != 0 : 1;                                        \
        for (int k = 0; k < a->rank; k++) {                                                                           \
            const word low = (word)a->low[k], count = (word)a->count[k], begin = (word)a->begin[k];                   \
            const word stride = (word)a->stride[k];                                                                   \
            switch (a->type[k]) {                                                                                     \
                ADD_AXIS('b', int8_t, signed_word, word)                                                              \
                ADD_AXIS('B', uint8_t, word, word)                                                                    \
                ADD_AXIS('h', int16_t, signed_word, word)                                                             \
                ADD_AXIS('H', uint16_t, word, word)                                                                   \
                ADD_AXIS('i', int32_t, signed_word, word)                                                             \
                ADD_AXIS('I', uint32_t, word, word)                                                                   \
                ADD_WIDE_AXIS('q', int64_t, word)                                                                     \
                ADD_WIDE_AXIS('Q', uint64_t, word)                                                                    \
            }                                                                                                         \
        }                                                                                                             \
        for (Py_ssize_t j = 0; j < n; j++)                                                                            \
            all &= there[j];                                                                                          \
        for (Py_ssize_t j = 0; j < n; j++)                                                                            \
            offset[j] = (signed_word)(there[j] ? sum[j] : 0);                                                         \
        for (Py_ssize_t j = 0; j < n; j++)                                                                            \
            exists[j] = (uint8_t)there[j];                                                                            \
        return (int)all;                                                                                              \
    }
#define ADD_AXIS(character, integer, extended, word)                                                                  \
    case character:                                                                                                   \
        for (Py_ssize_t j = 0; j < n; j++) {                                                                          \
            word i = (word)(extended)((const integer *)at[k])[j];                                                     \
            there[j] &= (word)(i - low) < count;                                                                      \
            sum[j] += (i + begin) * stride;                                                                           \
        }                                                                                                             \
        break;
#define ADD_WIDE_AXIS(character, integer, word)                                                                       \
    case character:                                                                                                   \
        for (Py_ssize_t j = 0; j < n; j++) {                                                                          \
            uint64_t i = (uint64_t)((const integer *)at[k])[j];                                                       \
            there[j] &= i - (uint64_t)a->low[k] < a->count[k];                                                        \
            sum[j] += ((word)i + begin) * stride;                                                                     \
        }                                                                                                             \
        break;
POSITIONS(narrow_positions, int32_t, uint32_t)
POSITIONS(wide_positions, int64_t, uint64_t)

static int positions(const Access *a, void *const *at, Py_ssize_t n, int64_t *offset, uint8_t *exists)
{
    return a->narrow ? narrow_positions(a, at, n, offset, exists) : wide_positions(a, at, n, offset, exists);
}

/* Borrows the indices and the mask, and fills in the access to an array. */
static int start_access(Access *a, Loop *l, const Py_buffer *array, PyObject *bounds, PyObject *indices, PyObject *mask)
{
    Py_ssize_t rank = PyTuple_Check(indices) ? PyTuple_Size(indices) : -1;
    if (rank != array->ndim || rank > RANK || !PyTuple_Check(bounds) || PyTuple_Size(bounds) != 2 * rank) {
        PyErr_SetString(PyExc_ValueError, "an access takes a tuple of two bounds, and of one index, for each axis");
        return 0;
    }
    a->base = array->buf;
    a->size = array->itemsize;
    a->rank = (int)rank;
    a->masked = mask != Py_None;
    a->narrow = 1;
    double reach = 0;
    for (Py_ssize_t k = 0; k < rank; k++) {
        int64_t begin = PyLong_AsLongLong(PyTuple_GetItem(bounds, 2 * k));
        int64_t end = PyLong_AsLongLong(PyTuple_GetItem(bounds, 2 * k + 1));
        if (PyErr_Occurred() || !loop_borrow(l, PyTuple_GetItem(indices, k), INDICES, 0))
            return 0;
        end = end < array->shape[k] ? end : array->shape[k];
        a->type[k] = l->array[k].type;
        a->begin[k] = begin;
        a->low[k] = begin < 0 ? -begin : 0;
        a->count[k] = end > begin + a->low[k] ? (uint64_t)(end - begin - a->low[k]) : 0;
        a->stride[k] = array->strides[k];
        reach += (double)array->shape[k] * fabs((double)array->strides[k]);
        a->narrow &= a->low[k] < NARROW && a->count[k] < NARROW && reach < NARROW;
    }
    return !a->masked || loop_borrow(l, mask, MASK, 0);
}

/* ---------------------------------------------------------------- reading and writing */

#define MOVE_EACH(type)                                                                                               \
    if (all)                                                                                                          \
        for (Py_ssize_t j = 0; j < m; j++)                                                                            \
            MOVE(type)                                                                                                \
    else                                                                                                              \
        for (Py_ssize_t j = 0; j < m; j++)                                                                            \
            MOVE_IF_THERE(type)
#define BY_SIZE                                                                                                       \
    switch (a->size) {                                                                                                \
    case 1:                                                                                                           \
        MOVE_EACH(uint8_t)                                                                                            \
        break;                                                                                                        \
    case 2:                                                                                                           \
        MOVE_EACH(uint16_t)                                                                                           \
        break;                                                                                                        \
    case 4:                                                                                                           \
        MOVE_EACH(uint32_t)                                                                                           \
        break;                                                                                                        \
    case 8:                                                                                                           \
        MOVE_EACH(uint64_t)                                                                                           \
        break;                                                                                                        \
    }
/* The loop over pieces of n elements: m of them from `done` on, with arrays `now`. */
#define PIECES                                                                                                        \
    int64_t offset[PIECE];                                                                                            \
    uint8_t exists[PIECE];                                                                                            \
    void *now[ARRAYS];                                                                                                \
    for (Py_ssize_t done = 0, m; done < n; done += m)
#define START_PIECE(arrays)                                                                                           \
    m = n - done < PIECE ? n - done : PIECE;                                                                          \
    for (int k = 0; k < (arrays); k++)                                                                                \
        now[k] = (char *)at[k] + done * sizes[k];                                                                     \
    const int all = positions(a, now, m, offset, exists);

static void sizes_of(const Access *a, Py_ssize_t *sizes, int others)
{
    for (int k = 0; k < a->rank; k++)
        sizes[k] = strchr("qQ", a->type[k]) ? 8 : strchr("iI", a->type[k]) ? 4 : strchr("hH", a->type[k]) ? 2 : 1;
    sizes[a->rank] = 1; /* of the mask, if there is one */
    for (int k = a->rank + a->masked; k < a->rank + a->masked + others; k++)
        sizes[k] = a->size;
}

FAST static int read_elements(const void *state, void *const *at, Py_ssize_t n)
{
    const Access *a = state;
    const int at_fill = a->rank + a->masked;
    Py_ssize_t sizes[ARRAYS];
    sizes_of(a, sizes, 2);
    PIECES {
        START_PIECE(at_fill + 2)
        const char *fill = now[at_fill];
        char *out = now[at_fill + 1];
#define MOVE(type) memcpy(out + j * (Py_ssize_t)sizeof(type), a->base + offset[j], sizeof(type));
#define MOVE_IF_THERE(type)                                                                                           \
    memcpy(out + j * (Py_ssize_t)sizeof(type), exists[j] ? a->base + offset[j] : fill + j * (Py_ssize_t)sizeof(type), \
           sizeof(type));
        BY_SIZE
#undef MOVE
#undef MOVE_IF_THERE
    }
    return 0;
}

FAST static int write_elements(const void *state, void *const *at, Py_ssize_t n)
{
    const Access *a = state;
    const int at_value = a->rank + a->masked;
    Py_ssize_t sizes[ARRAYS];
    sizes_of(a, sizes, 1);
    PIECES {
        START_PIECE(at_value + 1)
        const char *value = now[at_value];
#define MOVE(type) memcpy(a->base + offset[j], value + j * (Py_ssize_t)sizeof(type), sizeof(type));
#define MOVE_IF_THERE(type)                                                                                           \
    {                                                                                                                 \
        if (exists[j])                                                                                                \
            MOVE(type)                                                                                                \
    }
        BY_SIZE
#undef MOVE
#undef MOVE_IF_THERE
    }
    return 0;
}

/* gather(array, bounds, indices, mask, fill, out=None) -> elements, `fill` where there is none */
static PyObject *gather(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 5 && given != 6)
        return PyErr_Format(PyExc_TypeError, "gather() takes array, bounds, indices, mask, fill and out");
    Loop l;
    Access a;
    Py_buffer array;
    PyObject *result = NULL;
    int told;
    l.arrays = 0;
    if (PyObject_GetBuffer(args[0], &array, PyBUF_RECORDS_RO) < 0)
        return NULL;
    char types[2] = {element_type(&array), 0};
    if (types[0] == 0 || strchr(ELEMENT, types[0]) == NULL)
        PyErr_SetString(PyExc_TypeError, "gather() takes an array of numbers");
    else if (start_access(&a, &l, &array, args[1], args[2], args[3]) && loop_borrow(&l, args[4], types, 0)
             && loop_broadcast(&l, NULL))
        result = loop_result(&l, given == 6 ? args[5] : Py_None, types[0], read_elements, &a, &told);
    loop_release(&l);
    PyBuffer_Release(&array);
    return loop_full(&l, result);
}

/* scatter(array, bounds, indices, mask, value): of several values for one element, the last one stays */
static PyObject *scatter(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    if (given != 5)
        return PyErr_Format(PyExc_TypeError, "scatter() takes array, bounds, indices, mask and value");
    Loop l;
    Access a;
    Py_buffer array;
    l.arrays = 0;
    if (PyObject_GetBuffer(args[0], &array, PyBUF_RECORDS) < 0)
        return NULL;
    char types[2] = {element_type(&array), 0};
    int ok = types[0] != 0 && start_access(&a, &l, &array, args[1], args[2], args[3])
        && loop_borrow(&l, args[4], types, 0) && loop_broadcast(&l, NULL);
    if (ok)
        loop_in_order(&l, 0, write_elements, &a);
    else if (types[0] == 0)
        PyErr_SetString(PyExc_TypeError, "scatter() takes an array of numbers");
    loop_release(&l);
    PyBuffer_Release(&array);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* ---------------------------------------------------------------- atomic updates */

/* The type of a NumPy array `memory`, of the operands and results `number`, and what an update makes of the value `now`
   and the operands x and y, in numbers of which memory holds `stored`. */
#define UPDATE(name, memory, number, from_memory, to_memory, updated)                                                 \
    static int name(const void *state, void *const *at, Py_ssize_t n)                                                 \
    {                                                                                                                 \
        const Access *a = state;                                                                                      \
        const int first = a->rank + a->masked;                                                                        \
        Py_ssize_t sizes[ARRAYS];                                                                                     \
        sizes_of(a, sizes, 0);                                                                                        \
        const number *xs = at[first], *ys = at[first + 1];                                                            \
        number *old = at[first + 2];                                                                                  \
        uint8_t *took_place = at[first + 3];                                                                          \
        PIECES {                                                                                                      \
            START_PIECE(first)                                                                                        \
            for (Py_ssize_t j = 0; j < m; j++) {                                                                      \
                took_place[done + j] = exists[j];                                                                     \
                old[done + j] = 0;                                                                                    \
                if (!all && !exists[j])                                                                               \
                    continue;                                                                                         \
                memory word;                                                                                          \
                memcpy(&word, a->base + offset[j], sizeof word);                                                      \
                number now_there = from_memory(word), x = xs[done + j], y = ys[done + j];                             \
                old[done + j] = now_there;                                                                            \
                (void)x;                                                                                              \
                (void)y;                                                                                              \
                word = to_memory(updated);                                                                            \
                memcpy(a->base + offset[j], &word, sizeof word);                                                      \
            }                                                                                                         \
        }                                                                                                             \
        return 0;                                                                                                     \
    }
#define SAME(x) (x)
#define INTEGER(kind, updated)                                                                                        \
    UPDATE(kind##_32, uint32_t, uint32_t, SAME, SAME, updated)                                                        \
    UPDATE(kind##_64, uint64_t, uint64_t, SAME, SAME, updated)
#define ORDERED(kind, updated)                                                                                        \
    INTEGER(kind##_u, updated)                                                                                        \
    UPDATE(kind##_i_32, int32_t, int32_t, SAME, SAME, updated)                                                        \
    UPDATE(kind##_i_64, int64_t, int64_t, SAME, SAME, updated)

INTEGER(add, now_there + x)
INTEGER(and, now_there & x)
INTEGER(or, now_there | x)
INTEGER(xor, now_there ^ x)
INTEGER(xchg, x)
INTEGER(cas, now_there == x ? y : now_there)
ORDERED(max, now_there > x ? now_there : x)
ORDERED(min, now_there < x ? now_there : x)
UPDATE(add_f32, float, float, SAME, SAME, now_there + x)
UPDATE(add_f64, double, double, SAME, SAME, now_there + x)
UPDATE(add_f16, uint16_t, float, f16_decoded, f16_encoded, f16_of32(now_there + x))
UPDATE(add_bf16, uint16_t, float, bf16_decoded, bf16_encoded, bf16_of32(now_there + x))

typedef struct {
    const char *name;
    char memory, number; /* format characters of the array, and of operands and results */
    Body *body;
} Update;

#define INTEGER_ROWS(kind)                                                                                            \
    {"atomic " #kind " int32", 'i', 'i', kind##_32}, {"atomic " #kind " uint32", 'I', 'I', kind##_32},                \
    {"atomic " #kind " int64", 'q', 'q', kind##_64}, {"atomic " #kind " uint64", 'Q', 'Q', kind##_64}
#define ORDERED_ROWS(kind)                                                                                            \
    {"atomic " #kind " int32", 'i', 'i', kind##_i_32}, {"atomic " #kind " uint32", 'I', 'I', kind##_u_32},            \
    {"atomic " #kind " int64", 'q', 'q', kind##_i_64}, {"atomic " #kind " uint64", 'Q', 'Q', kind##_u_64}
#define FLOAT_ROWS(kind) /* of those that look at bits */                                                             \
    {"atomic " #kind " float32", 'f', 'f', kind##_32}, {"atomic " #kind " float64", 'd', 'd', kind##_64}

static const Update UPDATES[] = {
    INTEGER_ROWS(add), INTEGER_ROWS(and), INTEGER_ROWS(or), INTEGER_ROWS(xor), INTEGER_ROWS(xchg), INTEGER_ROWS(cas),
    ORDERED_ROWS(max), ORDERED_ROWS(min), FLOAT_ROWS(xchg), FLOAT_ROWS(cas),
    {"atomic add float32", 'f', 'f', add_f32}, {"atomic add float64", 'd', 'd', add_f64},
    {"atomic add float16", 'H', 'f', add_f16}, {"atomic add bfloat16", 'H', 'f', add_bf16},
    {NULL, 0, 0, NULL}};

/* update(array, bounds, indices, mask, x, y, shape) -> (which updates took place, the value that each found) */
static PyObject *update(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    const Update *u = PyCapsule_GetPointer(self, NULL);
    if (u == NULL || given != 7 || !PyTuple_Check(args[6]))
        return PyErr_Format(PyExc_TypeError, "an update takes array, bounds, indices, mask, x, y and shape");
    Loop l;
    Access a;
    Py_buffer array;
    PyObject *old = NULL, *took_place = NULL, *results = NULL;
    const char number[2] = {u->number, 0};
    l.arrays = 0;
    if (PyObject_GetBuffer(args[0], &array, PyBUF_RECORDS) < 0)
        return NULL;
    if (element_type(&array) != u->memory)
        PyErr_Format(PyExc_TypeError, "%s takes an array of type '%c'", u->name, u->memory);
    else if (start_access(&a, &l, &array, args[1], args[2], args[3]) && loop_borrow(&l, args[4], number, 0)
             && loop_borrow(&l, args[5], number, 0) && loop_broadcast(&l, args[6])
             && (old = loop_add_new(&l, u->number)) != NULL && (took_place = loop_add_new(&l, '?')) != NULL) {
        loop_in_order(&l, 2, u->body, &a);
        results = PyTuple_Pack(2, took_place, old);
    }
    loop_release(&l);
    PyBuffer_Release(&array);
    Py_XDECREF(old);
    Py_XDECREF(took_place);
    return results;
}

/* ---------------------------------------------------------------- the forms */

static PyMethodDef gathers = {"gather", (PyCFunction)(void (*)(void))gather, METH_FASTCALL,
                              "gather(array, bounds, indices, mask, fill, out=None) -> elements, or fill"};
static PyMethodDef scatters = {"scatter", (PyCFunction)(void (*)(void))scatter, METH_FASTCALL,
                               "scatter(array, bounds, indices, mask, value)"};
static PyMethodDef updates = {"update", (PyCFunction)(void (*)(void))update, METH_FASTCALL,
                              "update(array, bounds, indices, mask, x, y, shape) -> (which took place, old values)"};

int add_elements(PyObject *forms)
{
    int ok = add_form(forms, "gather", &gathers, NULL) && add_form(forms, "scatter", &scatters, NULL);
    for (const Update *u = UPDATES; ok && u->name != NULL; u++)
        ok = add_form(forms, u->name, &updates, u);
    return ok;
}
