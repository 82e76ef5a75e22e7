/* Loops over arrays of any shape and layout: loop.h says what they do. */

#include "loop.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
typedef unsigned FloatMode;
#else
#include <fenv.h>
typedef fenv_t FloatMode;
#endif

enum { WITHOUT_GIL = 1 << 14 }; /* elements, which take longer than giving the lock away */

static PyObject *empty, *transpose, *broadcast_to; /* functions of NumPy */
static PyObject *dtypes[128];                      /* NumPy's, by format character */

/* ---------------------------------------------------------------- the mode of floating-point arithmetic */

/* Sets the usual mode: rounding to nearest, subnormal numbers, no traps. Returns the old one. */
static FloatMode set_usual_mode(void)
{
    FloatMode old;
#if defined(__SSE2__) || defined(_M_X64)
    old = _mm_getcsr();
    _mm_setcsr(0x1F80);
#else
    fegetenv(&old);
    fesetenv(FE_DFL_ENV);
#endif
    return old;
}

/* Sets an old mode again, with the flags it had: what was computed in between leaves none. */
static void set_mode(FloatMode old)
{
#if defined(__SSE2__) || defined(_M_X64)
    _mm_setcsr(old);
#else
    fesetenv(&old);
#endif
}

/* ---------------------------------------------------------------- operands */

/* The type of a buffer's elements, in the byte order of this machine; 0 if it has no name here. */
char element_type(const Py_buffer *b)
{
    const char *format = b->format == NULL ? "B" : b->format;
    if (*format == '@' || *format == '=' || *format == '^')
        format++;
    char type = *format;
    if (type == 'l' || type == 'L') /* NumPy's name for one of the widths */
        type = sizeof(long) == 8 ? (type == 'l' ? 'q' : 'Q') : (type == 'l' ? 'i' : 'I');
    return format[0] != 0 && format[1] == 0 ? type : 0;
}

int loop_borrow(Loop *l, PyObject *o, const char *types, int writable)
{
    Array *a = l->array + l->arrays;
    if (l->arrays == ARRAYS) {
        PyErr_SetString(PyExc_ValueError, "too many arrays");
        return 0;
    }
    if (PyObject_GetBuffer(o, &a->buffer, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) < 0)
        return 0;
    a->type = element_type(&a->buffer);
    if (a->type == 0 || strchr(types, a->type) == NULL || a->buffer.ndim > AXES) {
        PyErr_Format(PyExc_TypeError, "expected an array with elements of type '%s', got '%s'", types,
                     a->buffer.format == NULL ? "B" : a->buffer.format);
        PyBuffer_Release(&a->buffer);
        return 0;
    }
    a->data = a->buffer.buf;
    a->size = a->buffer.itemsize;
    l->arrays++;
    return 1;
}

void loop_release(Loop *l)
{
    for (int i = 0; i < l->arrays; i++)
        PyBuffer_Release(&l->array[i].buffer);
    l->arrays = 0;
}

/* Widens the shape of the loop, which has at least as many axes. */
static int widen(Loop *l, const Py_ssize_t *shape, int axes)
{
    for (int k = 0; k < axes; k++) {
        Py_ssize_t *length = l->shape + l->axes - axes + k;
        if (shape[k] != *length && shape[k] != 1 && *length != 1) {
            PyErr_SetString(PyExc_ValueError, "the operands do not broadcast together");
            return 0;
        }
        *length = *length == 1 ? shape[k] : *length;
    }
    return 1;
}

static int lengths_of(PyObject *shape, Py_ssize_t *lengths)
{
    Py_ssize_t axes = shape == NULL ? 0 : PyTuple_Size(shape);
    if (axes > AXES) {
        PyErr_SetString(PyExc_ValueError, "too many axes");
        return -1;
    }
    for (Py_ssize_t k = 0; k < axes; k++)
        lengths[k] = PyLong_AsSsize_t(PyTuple_GetItem(shape, k));
    return PyErr_Occurred() == NULL ? (int)axes : -1;
}

/* The strides of an array along the axes of the loop. */
static void set_strides(const Loop *l, Array *a)
{
    const Py_buffer *b = &a->buffer;
    int skipped = l->axes - b->ndim;
    for (int k = 0; k < l->axes; k++)
        a->strides[k] = k < skipped || b->shape[k - skipped] == 1 ? 0 : b->strides[k - skipped];
}

int loop_broadcast(Loop *l, PyObject *shape)
{
    Py_ssize_t lengths[AXES];
    int axes = lengths_of(shape, lengths);
    if (axes < 0)
        return 0;
    l->axes = axes;
    for (int i = 0; i < l->arrays; i++)
        l->axes = l->array[i].buffer.ndim > l->axes ? l->array[i].buffer.ndim : l->axes;
    for (int k = 0; k < l->axes; k++)
        l->shape[k] = 1;
    if (!widen(l, lengths, axes))
        return 0;
    for (int i = 0; i < l->arrays; i++)
        if (!widen(l, l->array[i].buffer.shape, l->array[i].buffer.ndim))
            return 0;
    for (int i = 0; i < l->arrays; i++)
        set_strides(l, l->array + i);
    return 1;
}

/* ---------------------------------------------------------------- the order of axes */

static int steps_further(const Loop *l, int n, int left, int right)
{
    int further = 0;
    for (int i = 0; i < n; i++) {
        Py_ssize_t a = l->array[i].strides[left], b = l->array[i].strides[right];
        a = a < 0 ? -a : a;
        b = b < 0 ? -b : b;
        if (a == 0 || b == 0)
            continue;
        if (a > b)
            return 1;
        further = -1;
    }
    return further;
}

/* The axes in the order in which the first `n` arrays lie in memory, as NumPy's iterators find it: by falling strides,
   and an axis keeps its place where strides do not tell. Returns whether that is not the order of the axes. */
static int sort_axes(const Loop *l, int n, int *order)
{
    int moved = 0;
    for (int k = 0; k < l->axes; k++) {
        int place = k;
        for (int before = k - 1; before >= 0; before--) {
            int told = steps_further(l, n, order[before], k);
            if (told > 0)
                break;
            if (told < 0)
                place = before;
        }
        for (int j = k; j > place; j--)
            order[j] = order[j - 1];
        order[place] = k;
        moved |= place != k;
    }
    return moved;
}

/* Puts the axes into this order, leaves out those of length 1, and joins those that all arrays step through alike. */
static void join_axes(Loop *l, const int *order)
{
    Py_ssize_t shape[AXES], old[ARRAYS][AXES];
    int axes = l->axes;
    memcpy(shape, l->shape, (size_t)axes * sizeof *shape);
    for (int i = 0; i < l->arrays; i++)
        memcpy(old[i], l->array[i].strides, (size_t)axes * sizeof **old);
    l->axes = 0;
    l->total = 1;
    for (int j = 0; j < axes; j++) {
        int k = order[j], joins = l->axes > 0;
        Py_ssize_t length = shape[k];
        l->total *= length;
        if (length == 1)
            continue;
        for (int i = 0; joins && i < l->arrays; i++)
            joins = l->array[i].strides[l->axes - 1] == old[i][k] * length;
        if (!joins)
            l->shape[l->axes++] = 1;
        l->shape[l->axes - 1] *= length;
        for (int i = 0; i < l->arrays; i++)
            l->array[i].strides[l->axes - 1] = old[i][k];
    }
    for (int i = 0; i < l->arrays; i++) {
        Array *a = l->array + i;
        int aligned = ((uintptr_t)a->data & (uintptr_t)(a->size - 1)) == 0;
        a->packed = aligned && (l->axes == 0 || (l->axes == 1 && a->strides[0] == a->size));
        Py_ssize_t expected = a->size;
        if (aligned && l->axes > 1) {
            a->packed = 1;
            for (int k = l->axes - 1; k >= 0; k--) {
                a->packed &= a->strides[k] == expected;
                expected *= l->shape[k];
            }
        }
        a->single = 1;
        for (int k = 0; k < l->axes; k++)
            a->single &= a->strides[k] == 0;
    }
}

/* ---------------------------------------------------------------- packing */

/* Moves `n` elements of `size` bytes between a packed piece and memory with a stride. Where it is constant, compilers
   read whole vectors. */
#define MOVE(type, stride)                                                                                            \
    do {                                                                                                              \
        if (in)                                                                                                       \
            for (Py_ssize_t i = 0; i < n; i++)                                                                        \
                memcpy(piece + i * (Py_ssize_t)sizeof(type), memory + i * (stride), sizeof(type));                    \
        else                                                                                                          \
            for (Py_ssize_t i = 0; i < n; i++)                                                                        \
                memcpy(memory + i * (stride), piece + i * (Py_ssize_t)sizeof(type), sizeof(type));                    \
    } while (0)

static void move(char *piece, char *memory, Py_ssize_t stride, Py_ssize_t size, Py_ssize_t n, int in)
{
    if (stride == size)
        memcpy(in ? piece : memory, in ? memory : piece, (size_t)(n * size));
    else if (size == 8)
        MOVE(uint64_t, stride);
    else if (size == 4 && stride == 8)
        MOVE(uint32_t, 8);
    else if (size == 4)
        MOVE(uint32_t, stride);
    else if (size == 2)
        MOVE(uint16_t, stride);
    else
        MOVE(uint8_t, stride);
}
#undef MOVE

/* Moves the elements start … start+n-1, in the order of the loop, to the array's piece, or from there to memory. */
static void move_piece(const Loop *l, Array *a, Py_ssize_t start, Py_ssize_t n, int in)
{
    Py_ssize_t at[AXES], rest = start, done = 0;
    char *memory = a->data;
    int last = l->axes - 1;
    for (int k = last; k >= 0; k--) {
        at[k] = rest % l->shape[k];
        rest /= l->shape[k];
        memory += at[k] * a->strides[k];
    }
    while (done < n) {
        Py_ssize_t row = l->shape[last] - at[last], left = n - done;
        row = row < left ? row : left;
        move((char *)a->piece + done * a->size, memory, a->strides[last], a->size, row, in);
        done += row;
        at[last] += row;
        memory += row * a->strides[last];
        for (int k = last; k > 0 && at[k] == l->shape[k]; k--) {
            memory += a->strides[k - 1] - at[k] * a->strides[k];
            at[k] = 0;
            at[k - 1]++;
        }
    }
}

static int run_pieces(Loop *l, int results, Body *body, const void *state)
{
    void *at[ARRAYS];
    int told = 0, operands = l->arrays - results;
    Py_ssize_t piece = l->total;
    for (int i = 0; i < l->arrays; i++) {
        Py_ssize_t room = (Py_ssize_t)sizeof l->array[i].piece / l->array[i].size;
        if (!l->array[i].packed && room < piece)
            piece = room;
    }
    for (int i = 0; i < operands; i++) {
        Array *a = l->array + i;
        if (a->single)
            move((char *)a->piece, a->data, 0, a->size, piece, 1);
    }
    for (Py_ssize_t start = 0; start < l->total; start += piece) {
        Py_ssize_t n = l->total - start < piece ? l->total - start : piece;
        for (int i = 0; i < l->arrays; i++) {
            Array *a = l->array + i;
            at[i] = a->packed ? a->data + start * a->size : (char *)a->piece;
            if (!a->packed && !a->single && i < operands)
                move_piece(l, a, start, n, 1);
        }
        told |= body(state, at, n);
        for (int i = operands; i < l->arrays; i++)
            if (!l->array[i].packed)
                move_piece(l, l->array + i, start, n, 0);
    }
    return told;
}

static int run_in_usual_mode(Loop *l, Run *run, const void *state)
{
    FloatMode mode = set_usual_mode();
    int told = run(l, state);
    set_mode(mode);
    return told;
}

int loop_run(Loop *l, Py_ssize_t elements, Run *run, const void *state)
{
    int told;
    if (elements < WITHOUT_GIL)
        return elements > 0 && run_in_usual_mode(l, run, state);
    Py_BEGIN_ALLOW_THREADS
    told = run_in_usual_mode(l, run, state);
    Py_END_ALLOW_THREADS
    return told;
}

typedef struct {
    Body *body;
    const void *state;
    int results;
} Pieces;

static int run_body(Loop *l, const void *state)
{
    const Pieces *p = state;
    return run_pieces(l, p->results, p->body, p->state);
}

static int run_all(Loop *l, int results, Body *body, const void *state)
{
    Pieces p = {body, state, results};
    return loop_run(l, l->total, run_body, &p);
}

/* ---------------------------------------------------------------- results */

static PyObject *tuple_of(const Py_ssize_t *numbers, int n)
{
    PyObject *out = PyTuple_New(n);
    for (int k = 0; out != NULL && k < n; k++) {
        PyObject *number = PyLong_FromSsize_t(numbers[k]);
        if (number == NULL || PyTuple_SetItem(out, k, number) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *called(PyObject *function, PyObject *first, PyObject *second)
{
    PyObject *out = first == NULL || second == NULL ? NULL
        : PyObject_CallFunctionObjArgs(function, first, second, NULL);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return out;
}

/* A new array of the loop's shape, with its axes in this order in memory; NULL for the order of the axes. */
static PyObject *new_array(const Loop *l, const int *order, char type)
{
    Py_ssize_t shape[AXES], back[AXES];
    for (int j = 0; j < l->axes; j++) {
        int k = order == NULL ? j : order[j];
        shape[j] = l->shape[k];
        back[k] = j;
    }
    PyObject *a = called(empty, tuple_of(shape, l->axes), Py_NewRef(dtypes[(int)type]));
    return order != NULL && a != NULL ? called(transpose, a, tuple_of(back, l->axes)) : a;
}

/* Adds the array for the result, `out` where it has the loop's shape, else a new one; the caller gets a reference. */
static PyObject *add_result(Loop *l, PyObject *out, const int *order, char type)
{
    const char types[2] = {type, 0};
    if (out != Py_None) {
        if (!loop_borrow(l, out, types, 1))
            return NULL;
        const Py_buffer *b = &l->array[l->arrays - 1].buffer;
        if (b->ndim == l->axes && memcmp(b->shape, l->shape, (size_t)l->axes * sizeof *l->shape) == 0)
            return Py_NewRef(out);
        PyBuffer_Release(&l->array[--l->arrays].buffer);
    }
    PyObject *result = new_array(l, order, type);
    if (result != NULL && !loop_borrow(l, result, types, 1))
        Py_CLEAR(result);
    return result;
}

/* Gives axes along which no array varies the length 1. */
static void compute_once(Loop *l)
{
    l->once = 0;
    l->full_axes = l->axes;
    memcpy(l->full, l->shape, (size_t)l->axes * sizeof *l->shape);
    for (int k = 0; k < l->axes; k++) {
        int varies = l->shape[k] < 2;
        for (int i = 0; i < l->arrays; i++)
            varies |= l->array[i].strides[k] != 0;
        if (!varies)
            l->shape[k] = l->once = 1;
    }
}

PyObject *loop_result(Loop *l, PyObject *out, char type, Body *body, const void *state, int *told)
{
    int order[AXES];
    compute_once(l);
    int moved = sort_axes(l, l->arrays, order);
    PyObject *result = add_result(l, out, moved ? order : NULL, type);
    if (result == NULL)
        return NULL;
    set_strides(l, l->array + l->arrays - 1);
    join_axes(l, order);
    *told = run_all(l, 1, body, state);
    return result;
}

PyObject *loop_rows(Loop *l, int axis, int scans, char type, Py_ssize_t *steps)
{
    int order[AXES], moved = sort_axes(l, 1, order);
    steps[0] = l->array[0].strides[axis];
    l->shape[axis] = scans ? l->shape[axis] : 1;
    PyObject *result = add_result(l, Py_None, moved ? order : NULL, type);
    if (result == NULL)
        return NULL;
    set_strides(l, l->array + 1);
    steps[1] = l->array[1].strides[axis];
    l->shape[axis] = 1;
    join_axes(l, order);
    return result;
}

PyObject *loop_full(const Loop *l, PyObject *result)
{
    return l->once && result != NULL ? called(broadcast_to, result, tuple_of(l->full, l->full_axes)) : result;
}

PyObject *loop_add_new(Loop *l, char type)
{
    PyObject *a = add_result(l, Py_None, NULL, type);
    if (a != NULL)
        set_strides(l, l->array + l->arrays - 1);
    return a;
}

void loop_in_order(Loop *l, int results, Body *body, const void *state)
{
    int order[AXES];
    for (int k = 0; k < l->axes; k++)
        order[k] = k;
    join_axes(l, order);
    run_all(l, results, body, state);
}

int start_loops(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL)
        return 0;
    empty = PyObject_GetAttrString(numpy, "empty");
    transpose = PyObject_GetAttrString(numpy, "transpose");
    broadcast_to = PyObject_GetAttrString(numpy, "broadcast_to");
    PyObject *dtype = PyObject_GetAttrString(numpy, "dtype");
    for (const char *type = "?bBhHiIqQefd"; dtype != NULL && *type; type++)
        if ((dtypes[(int)*type] = PyObject_CallFunction(dtype, "C", *type)) == NULL)
            return 0;
    Py_XDECREF(dtype);
    Py_DECREF(numpy);
    return empty != NULL && transpose != NULL && broadcast_to != NULL;
}
