/* Elementwise forms on arrays of any shape and layout: broadcasting, results, and packing.

   Operands are objects with the buffer protocol. A result has the layout that NumPy would give it: its axes lie in
   memory in the order of the operands' axes. An axis along which no operand varies is computed once, and the result has
   stride 0 there. */

#include "forms.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
typedef unsigned FloatMode;
#else
#include <fenv.h>
typedef fenv_t FloatMode;
#endif

enum { AXES = 64, ARRAYS = OPERANDS + 1 };
enum { PIECE = 512, /* elements that are packed at once: four arrays of them stay in the first cache */
       LONG_ROW = 128, /* rows of so many elements are computed one by one */
       WITHOUT_GIL = 1 << 14 }; /* elements, which take longer than giving the lock away */

typedef struct {
    char *data;
    Py_ssize_t strides[AXES]; /* bytes; 0 where it does not vary */
    Py_ssize_t size;          /* of an element */
    int packed;               /* all elements lie one after another, in the order of the loop */
    int single;               /* it is one element */
    uint64_t piece[PIECE];    /* elements brought together */
} Array;

typedef struct {
    int axes, arrays; /* the result is the last array */
    Py_ssize_t shape[AXES], total;
    Array array[ARRAYS];
} Loop;

static PyObject *empty, *transpose, *broadcast_to; /* functions of NumPy */
static PyObject *dtypes[128];                       /* NumPy's, by format character */

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

static Py_ssize_t size_of(char type)
{
    return strchr("dqQ", type) ? 8 : strchr("fiI", type) ? 4 : strchr("hH", type) ? 2 : 1;
}

/* Whether a buffer's elements are of a type, in the byte order of this machine. */
static int is_of_type(const Py_buffer *b, char type)
{
    const char *format = b->format == NULL ? "B" : b->format;
    if (strchr("@=^", *format))
        format++;
    char found = *format;
    if (found == 'l' || found == 'L') /* NumPy's name for one of the widths */
        found = sizeof(long) == 8 ? (found == 'l' ? 'q' : 'Q') : (found == 'l' ? 'i' : 'I');
    return found == type && format[1] == 0 && b->itemsize == size_of(type);
}

static int borrow(PyObject *o, Py_buffer *b, char type, int writable)
{
    if (PyObject_GetBuffer(o, b, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) < 0)
        return 0;
    if (is_of_type(b, type) && b->ndim <= AXES)
        return 1;
    PyErr_Format(PyExc_TypeError, "expected an array with elements of type '%c', got '%s'", type, b->format);
    PyBuffer_Release(b);
    return 0;
}

/* Makes the shape of the loop that to which all operands broadcast. */
static int broadcast(Loop *l, const Py_buffer *b, int n)
{
    l->axes = 0;
    for (int i = 0; i < n; i++)
        l->axes = b[i].ndim > l->axes ? b[i].ndim : l->axes;
    for (int k = 0; k < l->axes; k++)
        l->shape[k] = 1;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < b[i].ndim; k++) {
            Py_ssize_t *length = l->shape + l->axes - b[i].ndim + k, own = b[i].shape[k];
            if (own != *length && own != 1 && *length != 1) {
                PyErr_SetString(PyExc_ValueError, "the operands do not broadcast together");
                return 0;
            }
            *length = *length == 1 ? own : *length;
        }
    return 1;
}

/* An array of the loop's shape. */
static void set_array(Loop *l, int i, const Py_buffer *b)
{
    Array *a = l->array + i;
    int skipped = l->axes - b->ndim;
    a->data = b->buf;
    a->size = b->itemsize;
    for (int k = 0; k < l->axes; k++)
        a->strides[k] = k < skipped || b->shape[k - skipped] == 1 ? 0 : b->strides[k - skipped];
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

/* Moves `n` elements of `size` bytes between a packed piece and memory with a stride. */
static void move(char *piece, char *memory, Py_ssize_t stride, Py_ssize_t size, Py_ssize_t n, int in)
{
#define MOVE(type)                                                                                                    \
    for (Py_ssize_t i = 0; i < n; i++)                                                                                \
        memcpy(in ? piece + i * (Py_ssize_t)sizeof(type) : memory + i * stride,                                       \
               in ? memory + i * stride : piece + i * (Py_ssize_t)sizeof(type), sizeof(type))
    if (stride == size)
        memcpy(in ? piece : memory, in ? memory : piece, (size_t)(n * size));
    else if (size == 8)
        MOVE(uint64_t);
    else if (size == 4)
        MOVE(uint32_t);
    else if (size == 2)
        MOVE(uint16_t);
    else
        MOVE(uint8_t);
#undef MOVE
}

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

static int compute_pieces(Loop *l, Compute *compute)
{
    void *at[ARRAYS];
    int all_packed = 1, doubts = 0;
    for (int i = 0; i < l->arrays; i++) {
        Array *a = l->array + i;
        all_packed &= a->packed;
        if (a->single && i < l->arrays - 1)
            move((char *)a->piece, a->data, 0, a->size, l->total < PIECE ? l->total : PIECE, 1);
    }
    Py_ssize_t piece = all_packed ? l->total : PIECE;
    for (Py_ssize_t start = 0; start < l->total; start += piece) {
        Py_ssize_t n = l->total - start < piece ? l->total - start : piece;
        for (int i = 0; i < l->arrays; i++) {
            Array *a = l->array + i;
            at[i] = a->packed ? a->data + start * a->size : (char *)a->piece;
            if (!a->packed && !a->single && i < l->arrays - 1)
                move_piece(l, a, start, n, 1);
        }
        doubts |= compute(at, n);
        Array *result = l->array + l->arrays - 1;
        if (!result->packed)
            move_piece(l, result, start, n, 0);
    }
    return doubts;
}

static int compute_in_usual_mode(Loop *l, Compute *compute)
{
    FloatMode mode = set_usual_mode();
    int doubts = compute_pieces(l, compute);
    set_mode(mode);
    return doubts;
}

/* Returns whether some results are DOUBTFUL. */
static int compute_all(Loop *l, Compute *compute)
{
    int doubts;
    if (l->total < WITHOUT_GIL)
        return l->total > 0 && compute_in_usual_mode(l, compute);
    Py_BEGIN_ALLOW_THREADS
    doubts = compute_in_usual_mode(l, compute);
    Py_END_ALLOW_THREADS
    return doubts;
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

/* A new array of the loop's shape, with its axes in this order in memory. */
static PyObject *new_array(const Loop *l, const int *order, int moved, char type)
{
    Py_ssize_t shape[AXES], back[AXES];
    for (int j = 0; j < l->axes; j++) {
        shape[j] = l->shape[order[j]];
        back[order[j]] = j;
    }
    PyObject *a = called(empty, tuple_of(shape, l->axes), Py_NewRef(dtypes[(int)type]));
    return moved && a != NULL ? called(transpose, a, tuple_of(back, l->axes)) : a;
}

static int has_shape(const Py_buffer *b, const Loop *l)
{
    return b->ndim == l->axes && memcmp(b->shape, l->shape, (size_t)l->axes * sizeof *l->shape) == 0;
}

/* The result of the operands that `l` has: `out` where it has the shape, else a new array; and a buffer of it. */
static PyObject *result_for(Loop *l, PyObject *out, const int *order, int moved, char type, Py_buffer *b)
{
    if (out != Py_None) {
        if (!borrow(out, b, type, 1))
            return NULL;
        if (has_shape(b, l))
            return Py_NewRef(out);
        PyBuffer_Release(b);
    }
    PyObject *result = new_array(l, order, moved, type);
    if (result != NULL && !borrow(result, b, type, 1))
        Py_CLEAR(result);
    return result;
}

/* Gives axes along which no operand varies the length 1. Returns whether there are any. */
static int compute_once(Loop *l, int n)
{
    int any = 0;
    for (int k = 0; k < l->axes; k++) {
        int varies = l->shape[k] < 2;
        for (int i = 0; i < n; i++)
            varies |= l->array[i].strides[k] != 0;
        if (!varies)
            l->shape[k] = any = 1;
    }
    return any;
}

/* mend(operand, …, result), for results of which some are DOUBTFUL. Takes the result, and returns it. */
static PyObject *mended(PyObject *mend, PyObject *const *operands, int n, PyObject *result)
{
    PyObject *args = PyTuple_New(n + 1), *done = NULL;
    for (int i = 0; args != NULL && i <= n; i++)
        PyTuple_SetItem(args, i, Py_NewRef(i < n ? operands[i] : result));
    if (args != NULL)
        done = PyObject_CallObject(mend, args);
    Py_XDECREF(args);
    if (done == NULL)
        Py_CLEAR(result);
    Py_XDECREF(done);
    return result;
}

/* form(operand, …, out=None, mend=None) -> result */
static PyObject *call_form(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    const Elementwise *form = PyCapsule_GetPointer(self, NULL);
    if (form == NULL)
        return NULL;
    int n = (int)strlen(form->types) - 1, borrowed = 0, order[AXES];
    if (given < n || given > n + 2)
        return PyErr_Format(PyExc_TypeError, "%s() takes %d arrays, an array for the result, and a function that"
                            " mends it", form->name, n);
    Py_buffer b[ARRAYS];
    PyObject *result = NULL;
    Loop loop, *l = &loop;
    while (borrowed < n && borrow(args[borrowed], b + borrowed, form->types[borrowed], 0))
        borrowed++;
    if (borrowed == n && broadcast(l, b, n)) {
        Py_ssize_t full[AXES];
        memcpy(full, l->shape, sizeof full);
        for (int i = 0; i < n; i++)
            set_array(l, i, b + i);
        int once = compute_once(l, n), axes = l->axes, moved = sort_axes(l, n, order);
        result = result_for(l, given > n ? args[n] : Py_None, order, moved, form->types[n], b + n);
        if (result != NULL) {
            set_array(l, n, b + n);
            l->arrays = n + 1;
            join_axes(l, order);
            int doubts = compute_all(l, form->compute);
            PyBuffer_Release(b + n);
            if (doubts && given == n + 2)
                result = mended(args[n + 1], args, n, result);
            if (once && result != NULL)
                result = called(broadcast_to, result, tuple_of(full, axes));
        }
    }
    for (int i = 0; i < borrowed; i++)
        PyBuffer_Release(b + i);
    return result;
}

/* ---------------------------------------------------------------- the forms as Python finds them */

static PyMethodDef call = {"form", (PyCFunction)(void (*)(void))call_form, METH_FASTCALL,
                           "form(operand, ..., out=None, mend=None) -> the result, in `out` where that has its shape;\n"
                           "`out` is an operand or shares no memory with one. mend(operand, ..., result) is called\n"
                           "where some results are DOUBTFUL; the result has length 1 where no operand varies"};

/* Adds the forms of a table to a dict, by name. */
int add_elementwise(PyObject *forms, const Elementwise *table)
{
    for (; table->name != NULL; table++) {
        PyObject *capsule = PyCapsule_New((void *)(uintptr_t)table, NULL, NULL), *function = NULL;
        int ok = capsule != NULL && (function = PyCFunction_New(&call, capsule)) != NULL
            && PyDict_SetItemString(forms, table->name, function) == 0;
        Py_XDECREF(capsule);
        Py_XDECREF(function);
        if (!ok)
            return 0;
    }
    return 1;
}

int start_elementwise(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL)
        return 0;
    empty = PyObject_GetAttrString(numpy, "empty");
    transpose = PyObject_GetAttrString(numpy, "transpose");
    broadcast_to = PyObject_GetAttrString(numpy, "broadcast_to");
    PyObject *dtype = PyObject_GetAttrString(numpy, "dtype");
    for (const char *type = "?bBhHiIqQfd"; dtype != NULL && *type; type++)
        if ((dtypes[(int)*type] = PyObject_CallFunction(dtype, "C", *type)) == NULL)
            return 0;
    Py_XDECREF(dtype);
    Py_DECREF(numpy);
    return empty != NULL && transpose != NULL && broadcast_to != NULL;
}
