/* Calls of algorithms: reads their arguments by roles (compute/roles.py), and runs what their plans have ready
   (compute/plans.py). Whatever is out of the ordinary is left to Python. */

#include "_launcher.h"

static PyObject *prepared_type, *n_for_c, *n_used, *n_large_enough, *n_dtype, *n_shape, *n_strides, *host;

/* ---------------------------------------------------------------- arguments */

/* Of an array in GPU memory its part of a signature, and its address */
PyObject *array_on_gpu(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 2 || !PyDict_Check(a[0]))
        return PyErr_Format(PyExc_TypeError, "array_on_gpu() takes how arrays are read, and the array");
    Reading r;
    if (!read_on_gpu(&r, a[1], a[0]))
        return not_here();
    return Py_BuildValue("(NK)", signature_of(&r), (unsigned long long)r.values[0].bits);
}

static int taken_append(PyObject *list, PyObject *o)
{
    int ok = o != NULL && PyList_Append(list, o) == 0;
    Py_XDECREF(o);
    return ok;
}

/* Append what an array in GPU memory is to a key, and its address to roots: YES, NO if it is none, -1 for an error. */
static int role_of_array(PyObject *kinds, PyObject *o, PyObject *key, PyObject *roots)
{
    Reading r;
    if (read_on_gpu(&r, o, kinds))
        return taken_append(key, signature_of(&r))
                && taken_append(roots, PyLong_FromUnsignedLongLong(r.values[0].bits)) ? YES : -1;
    PyObject *elsewhere = not_here();
    Py_XDECREF(elsewhere);
    return elsewhere == NULL ? -1 : NO;
}

/* The address of an array in CPU memory, perhaps of a writable one only. NO, perhaps with an error, for others */
static int address_on_host(PyObject *o, int writable, int64_t *out)
{
    Py_buffer b;
    if (PyObject_GetBuffer(o, &b, PyBUF_STRIDED_RO) < 0)
        return NO;
    int ok = !writable || !b.readonly;
    *out = (int64_t)(intptr_t)b.buf;
    PyBuffer_Release(&b);
    return ok;
}

/* The same of a NumPy array with one axis, which is its root; a key gets "host", dtype, shape and strides. */
static int role_on_host(PyObject *o, int writable, PyObject *key, PyObject *roots)
{
    int64_t address;
    PyObject *shape = PyObject_GetAttr(o, n_shape), *dtype = NULL, *strides = NULL;
    int found = shape != NULL && PyTuple_Size(shape) == 1 && (!writable || address_on_host(o, YES, &address));
    if (found && (dtype = PyObject_GetAttr(o, n_dtype)) != NULL && (strides = PyObject_GetAttr(o, n_strides)) != NULL
        && (!taken_append(key, PyTuple_Pack(4, host, dtype, shape, strides)) || PyList_Append(roots, o) < 0))
        found = -1;
    Py_XDECREF(strides);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    if (found == -1)
        return -1;
    PyObject *elsewhere = not_here();
    Py_XDECREF(elsewhere);
    return elsewhere == NULL ? -1 : found && strides != NULL;
}

static int read_role(PyObject *kinds, char how, PyObject *reader, PyObject *o, PyObject *key, PyObject *roots)
{
    if ((how & MAY_BE_NONE && o == Py_None) || (how & MAY_BE_INT && PyLong_CheckExact(o)))
        return PyList_Append(key, o) == 0;
    int found = !(how & MAY_BE_ARRAY) ? NO : (PyObject *)Py_TYPE(o) == ndarray
        ? role_on_host(o, how & IS_WRITTEN, key, roots) : role_of_array(kinds, o, key, roots);
    if (found != NO)
        return found == YES;
    PyObject *none = PyObject_CallFunctionObjArgs(reader, o, key, roots, NULL);
    Py_XDECREF(none);
    return none != NULL;
}

/* The key and the roots of a call; NO with an error. */
static int read_call(PyObject *const *a, PyObject **key, PyObject **roots)
{
    char *how;
    Py_ssize_t count;
    *key = *roots = NULL;
    if (!PyDict_Check(a[0]) || !PyTuple_Check(a[2]) || !PyTuple_Check(a[4])) {
        PyErr_Format(PyExc_TypeError, "a call is read by kinds, how, readers, first, arguments");
        return NO;
    }
    if (PyBytes_AsStringAndSize(a[1], &how, &count) < 0)
        return NO;
    if (PyTuple_Size(a[2]) != count || PyTuple_Size(a[4]) != count) {
        PyErr_Format(PyExc_ValueError, "a call takes %zd arguments, and a reader for each", count);
        return NO;
    }
    PyObject *parts = PyList_New(0);
    *roots = PyList_New(0);
    int ok = parts != NULL && *roots != NULL && PyList_Append(parts, a[3]) == 0;
    for (Py_ssize_t i = 0; ok && i < count; i++)
        ok = read_role(a[0], how[i], PyTuple_GetItem(a[2], i), PyTuple_GetItem(a[4], i), parts, *roots);
    *key = ok ? PyList_AsTuple(parts) : NULL;
    Py_XDECREF(parts);
    if (*key == NULL)
        Py_CLEAR(*roots);
    return *key != NULL;
}

PyObject *read_roles(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    PyObject *key, *roots;
    if (n != 5)
        return PyErr_Format(PyExc_TypeError, "read_roles() takes kinds, how, readers, first, arguments");
    return read_call(a, &key, &roots) ? Py_BuildValue("(NN)", key, roots) : NULL;
}

/* ---------------------------------------------------------------- steps of plans */

/* of lines of memory, as compute/overlaps.py has it */
typedef struct { int64_t one, other, alike, moved, low, high, step, item, last; } Pair;

static int address_at(PyObject *roots, int64_t i, int64_t *out)
{
    PyObject *root = item_at(roots, (Py_ssize_t)i);
    int ok = root != NULL;
    if (ok && (PyObject *)Py_TYPE(root) == ndarray)
        ok = address_on_host(root, NO, out);
    else
        *out = ok ? PyLong_AsLongLong(root) : -1;
    Py_XDECREF(root);
    return ok && *out >= 0;
}

/* Whether no pair of lines shares memory. */
static int are_apart(PyObject *pairs, PyObject *roots)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(pairs, &bytes, &size) < 0)
        return NO;
    for (Py_ssize_t at = 0; at + (Py_ssize_t)sizeof(Pair) <= size; at += (Py_ssize_t)sizeof(Pair)) {
        Pair p;
        int64_t a, b;
        memcpy(&p, bytes + at, sizeof p);
        if (!address_at(roots, p.one, &a) || !address_at(roots, p.other, &b))
            return NO;
        int64_t between = b - a + p.moved;
        if (between <= p.low || between >= p.high || (p.alike && between == 0))
            continue;
        int64_t rest = p.step > 0 ? between % p.step : 0;
        if (rest < 0)
            rest += p.step;
        if (p.step <= 0 || rest < p.item || rest > p.last)
            return NO;
    }
    return YES;
}

PyObject *apart(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 2 || !PyBytes_CheckExact(a[0]) || !PyList_CheckExact(a[1]))
        return PyErr_Format(PyExc_TypeError, "apart() takes bytes and a list of roots");
    return are_apart(a[0], a[1]) ? Py_NewRef(Py_True) : not_kept();
}

/* YES, NO where the step is left to Python, or -1 for the error of one that is called. */
static int run_step(PyObject *step, PyObject *roots, PyObject *stream)
{
    if (PyBytes_CheckExact(step))
        return are_apart(step, roots);
    if (PyTuple_CheckExact(step)) {
        PyObject *prepared = PyTuple_Size(step) == 2 ? PyTuple_GetItem(step, 0) : NULL;
        return prepared != NULL && (PyObject *)Py_TYPE(prepared) == prepared_type
            && prepared_on_device(prepared, stream, roots, PyTuple_GetItem(step, 1)) == 0;
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(step, roots, stream, NULL);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : answer == Py_NotImplemented ? NO : YES;
}

typedef int (*Allocate)(uint64_t *, size_t, void *);
typedef int (*Free)(uint64_t, void *);
typedef int (*Current)(void **);
typedef struct { uint64_t allocate, free, current, context, bytes; } Memory; /* how a plan gets temporary storage */

/* Temporary storage on a stream, of which roots get the address. NO, perhaps with an error, where there is none. */
static int allocate(const Memory *m, PyObject *roots, uint64_t stream, uint64_t *out)
{
    void *context;
    int code;
    if (((Current)(uintptr_t)m->current)(&context) != 0 || (uintptr_t)context != m->context)
        return NO;
    Py_BEGIN_ALLOW_THREADS /* the call waits while the queue is full */
    code = ((Allocate)(uintptr_t)m->allocate)(out, (size_t)m->bytes, (void *)(uintptr_t)stream);
    Py_END_ALLOW_THREADS
    if (code != 0)
        return NO;
    if (taken_append(roots, PyLong_FromUnsignedLongLong(*out)))
        return YES;
    ((Free)(uintptr_t)m->free)(*out, (void *)(uintptr_t)stream);
    return NO;
}

/* Runs steps with temporary storage on a stream, as `memory` says, whose address becomes the last root; empty: it is
   one. How many ran, or NOTHING, and then there is no storage; -1 with the error of a step that is called. Perhaps with
   an error that Python finds again, where it goes on. Storage is freed where all steps ran. */
enum { NOTHING = -2 };

static Py_ssize_t run_all(PyObject *steps, PyObject *roots, PyObject *stream, PyObject *memory, PyObject *streams)
{
    Memory m;
    uint64_t number = 0, address = 0;
    char *bytes;
    Py_ssize_t size, i = 0, count = PyTuple_Size(steps);
    if (PyBytes_AsStringAndSize(memory, &bytes, &size) < 0)
        return -1;
    if (size == (Py_ssize_t)sizeof m) {
        memcpy(&m, bytes, sizeof m);
        if (!read_stream(stream, streams, &number) || !allocate(&m, roots, number, &address))
            return NOTHING;
    }
    int ran = YES;
    while (i < count && (ran = run_step(PyTuple_GetItem(steps, i), roots, stream)) == YES)
        i++;
    int nothing = ran == NO && i == 0;
    if (address != 0 && (nothing || ran != NO)) {
        PyObject *type, *error, *traceback; /* the error stays, whatever runs */
        PyErr_Fetch(&type, &error, &traceback);
        ((Free)(uintptr_t)m.free)(address, (void *)(uintptr_t)number);
        PyErr_Restore(type, error, traceback);
    }
    if (address != 0 && nothing && PyList_SetSlice(roots, PyList_Size(roots) - 1, PyList_Size(roots), NULL) < 0)
        return -1;
    return ran == -1 ? -1 : nothing ? NOTHING : i;
}

/* Clears the error that Python will find again; NO for one that is raised. */
static int forgotten(void)
{
    PyObject *left = not_here();
    Py_XDECREF(left);
    return left != NULL;
}

PyObject *run_steps(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 5 || !PyTuple_CheckExact(a[0]) || !PyList_CheckExact(a[1]) || !PyDict_Check(a[4]))
        return PyErr_Format(PyExc_TypeError, "run_steps() takes steps, roots, a stream, bytes and what reads streams");
    Py_ssize_t ran = run_all(a[0], a[1], a[2], a[3], a[4]);
    return ran == -1 || !forgotten() ? NULL : PyLong_FromSsize_t(ran == NOTHING ? 0 : ran);
}

/* Whether the user's temporary storage is like the one that was checked last; its address becomes the last root. */
static int take_storage(PyObject *kinds, PyObject *storage, PyObject *plan, PyObject *largest, PyObject *roots)
{
    Reading r;
    char *bytes;
    Py_ssize_t size;
    PyObject *known = PyObject_GetAttr(plan, n_large_enough);
    uint64_t item = PyLong_AsUnsignedLongLong(largest);
    int ok = known != NULL && PyBytes_CheckExact(known) && read_on_gpu(&r, storage, kinds)
        && PyBytes_AsStringAndSize(known, &bytes, &size) == 0 && size == r.n_parts * (Py_ssize_t)sizeof *r.parts
        && memcmp(bytes, r.parts, (size_t)size) == 0 && item != 0 && r.values[0].bits % item == 0
        && r.values[0].bits % 16 == 0 && taken_append(roots, PyLong_FromUnsignedLongLong(r.values[0].bits));
    Py_XDECREF(known);
    return ok;
}

enum { STEPS, MEMORY, STREAM_READERS, LARGEST, TOLD, READY_ITEMS }; /* of what a plan has for C code */

/* As run_all, for a call whose plan has all steps for C code. `storage`: the user's, or None. */
static Py_ssize_t run_plan(PyObject *ready, PyObject *plan, PyObject *const *a, PyObject *roots)
{
    PyObject *storage = a[6], *items[MOST_ARGUMENTS], *none = PyTuple_GetItem(ready, MEMORY), *empty = NULL;
    if (items_of(a[4], items) < 0)
        return NOTHING;
    if (storage != Py_None) {
        if (!take_storage(a[0], storage, plan, PyTuple_GetItem(ready, LARGEST), roots))
            return NOTHING;
        none = empty = PyBytes_FromStringAndSize(NULL, 0);
    } else if (PyBytes_Size(none) == 0 && !taken_append(roots, PyLong_FromLong(0)))
        return NOTHING;
    Py_ssize_t ran = none != NULL && told(PyTuple_GetItem(ready, TOLD), items, items)
        ? run_all(PyTuple_GetItem(ready, STEPS), roots, a[7], none, PyTuple_GetItem(ready, STREAM_READERS)) : NOTHING;
    Py_XDECREF(empty);
    return ran;
}

PyObject *call_algorithm(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    PyObject *key, *roots, *out = NULL;
    if (n != 8 || !PyDict_Check(a[5]))
        return PyErr_Format(PyExc_TypeError, "call_algorithm() takes what read_roles() does, plans, storage, a stream");
    if (!read_call(a, &key, &roots))
        return forgotten() ? Py_NewRef(Py_None) : NULL;
    Py_ssize_t before = PyList_Size(roots), ran = NOTHING;
    PyObject *plan = item_of(a[5], key), *ready = plan == NULL ? NULL : PyObject_GetAttr(plan, n_for_c);
    if (ready != NULL && PyTuple_CheckExact(ready) && PyTuple_Size(ready) == READY_ITEMS)
        ran = run_plan(ready, plan, a, roots);
    if (ran != -1 && forgotten()) {
        if (ran > 0 && ran == PyTuple_Size(PyTuple_GetItem(ready, STEPS)))
            out = PyObject_SetAttr(plan, n_used, Py_True) == 0 ? Py_NewRef(plan) : NULL;
        else if (ran > 0)
            out = Py_BuildValue("(OOnO)", key, roots, ran, plan);
        else if (PyList_SetSlice(roots, before, PyList_Size(roots), NULL) == 0)
            out = Py_BuildValue("(OOis)", key, roots, 0, NULL);
    }
    Py_XDECREF(ready);
    Py_XDECREF(plan);
    Py_DECREF(key);
    Py_DECREF(roots);
    return out;
}

int start_algorithms(PyObject *prepared)
{
    prepared_type = Py_XNewRef(prepared);
    return (n_for_c = PyUnicode_InternFromString("for_c")) != NULL
        && (n_dtype = PyUnicode_InternFromString("dtype")) != NULL
        && (n_shape = PyUnicode_InternFromString("shape")) != NULL
        && (n_strides = PyUnicode_InternFromString("strides")) != NULL
        && (host = PyUnicode_InternFromString("host")) != NULL
        && (n_used = PyUnicode_InternFromString("used")) != NULL
        && (n_large_enough = PyUnicode_InternFromString("large_enough")) != NULL;
}
