/* The driver's call of a launch: its parameters, of launch values, and which function runs for a grid. */

#include "_launcher.h"

typedef struct { /* the start of a record; first bytes of the parameters, 8 each, and how each is written follow */
    uint64_t launch, current, function, context;
    uint64_t n_parameters;
} Head;

typedef struct { uint32_t grid[3], unused; uint64_t function; } Choice; /* which function runs for a grid */

typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);
typedef int (*Current)(void **);

static int choose_from(PyObject *table, const unsigned *grid, uint64_t *out)
{
    Choice c;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(table, &bytes, &size) < 0)
        return NO;
    uint32_t slots = (uint32_t)((size_t)size / sizeof c);
    uint32_t hash = grid[0] * 0x9E3779B1u + grid[1] * 0x85EBCA77u + grid[2] * 0xC2B2AE3Du;
    hash ^= hash >> 15;
    for (uint32_t i = 0; i < slots; i++) {
        memcpy(&c, bytes + (size_t)((hash + i) & (slots - 1)) * sizeof c, sizeof c);
        if (c.function == 0)
            return NO;
        if (memcmp(c.grid, grid, sizeof c.grid) == 0) {
            *out = c.function;
            return YES;
        }
    }
    return NO;
}

int choose(PyObject *choices, const unsigned *grid, uint64_t *out)
{
    if (choices == Py_None)
        return YES;
    PyObject *table = item_at(choices, 0);
    int known = table != NULL && choose_from(table, grid, out);
    Py_XDECREF(table);
    return known;
}

int launch_on_device(PyObject *record, const Reading *r, const unsigned *grid, uint64_t function, uint64_t stream)
{
    char *bytes;
    Py_ssize_t size;
    Head h;
    uint64_t memory[PARAMETERS];
    void *parameters[PARAMETERS], *context;
    int n = 0, code;
    if (PyBytes_AsStringAndSize(record, &bytes, &size) < 0)
        return -1;
    memcpy(&h, bytes, sizeof h);
    if (function != 0)
        h.function = function;
    if (((Current)(uintptr_t)h.current)(&context) != 0 || (uintptr_t)context != h.context)
        return -1;
    memcpy(memory, bytes + sizeof h, h.n_parameters * sizeof *memory);
    const char *how = bytes + sizeof h + h.n_parameters * sizeof *memory;
    for (uint64_t i = 0; i < h.n_parameters; i++) {
        parameters[i] = memory + i;
        if (how[i] == FIXED)
            continue;
        if (n == r->n_values)
            return -1;
        Value v = r->values[n++];
        uint32_t low = (uint32_t)v.bits;
        float number = (float)v.number;
        if (how[i] == BITS64)
            memory[i] = v.bits;
        else
            memcpy(memory + i, how[i] == BITS32 ? (void *)&low : (void *)&number, 4);
    }
    if (n != r->n_values)
        return -1;
    Py_BEGIN_ALLOW_THREADS /* the call waits while the queue is full */
    code = ((Launch)(uintptr_t)h.launch)((void *)(uintptr_t)h.function, grid[0], grid[1], grid[2], 1, 1, 1, 0,
                                         (void *)(uintptr_t)stream, parameters, NULL);
    Py_END_ALLOW_THREADS
    return code;
}

int has_context(PyObject *record)
{
    Head h;
    char *bytes;
    Py_ssize_t size;
    void *context;
    if (PyBytes_AsStringAndSize(record, &bytes, &size) < 0)
        return NO;
    memcpy(&h, bytes, sizeof h);
    return ((Current)(uintptr_t)h.current)(&context) == 0 && (uintptr_t)context == h.context;
}

PyObject *is_current(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 2)
        return PyErr_Format(PyExc_TypeError, "is_current() takes an address and a context");
    unsigned long long current = PyLong_AsUnsignedLongLong(a[0]), context = PyLong_AsUnsignedLongLong(a[1]);
    void *found;
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(((Current)(uintptr_t)current)(&found) == 0 && (uintptr_t)found == context);
}

PyObject *device_record(PyObject *self, PyObject *args)
{
    unsigned long long launch, current, function, context;
    const char *image, *how;
    Py_ssize_t n_image, n;
    if (!PyArg_ParseTuple(args, "KKKKy#y#", &launch, &current, &function, &context, &image, &n_image, &how, &n))
        return NULL;
    if (n > PARAMETERS || n_image != 8 * n)
        return PyErr_Format(PyExc_ValueError, "record() takes at most %d parameters, 8 bytes each", PARAMETERS);
    Head h = {launch, current, function, context, (uint64_t)n};
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof h + 9 * n);
    if (out != NULL) {
        char *to = PyBytes_AsString(out);
        memcpy(to, &h, sizeof h);
        memcpy(to + sizeof h, image, n_image);
        memcpy(to + sizeof h + n_image, how, n);
    }
    return out;
}
