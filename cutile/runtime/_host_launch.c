/* Launches on arrays in CPU memory: from what was read of the arguments to a call of the interpreter's code.

   interp/grid_launch.py makes the records: what the code takes, as numbers. Each launch makes views of the memory of
   its arrays, which keep the arrays alive as long as anything holds them. */

#include "_launcher.h"

PyObject *ndarray;        /* of NumPy */
static PyObject *n_dtype, *n_copy, *n_run;
static PyTypeObject *memory_type;

/* ---------------------------------------------------------------- memory */

typedef struct { /* the bytes of an array, from its lowest to its highest */
    PyObject_HEAD
    PyObject *owner;
    char *data;
    Py_ssize_t size;
    int read_only;
} Memory;

static int memory_buffer(PyObject *self, Py_buffer *view, int flags)
{
    Memory *m = (Memory *)self;
    if (m->read_only && (flags & PyBUF_WRITABLE)) {
        PyErr_SetNone(PyExc_BufferError); /* NumPy asks so first, and then for what is read only */
        view->obj = NULL; /* nothing to give back */
        return -1;
    }
    return PyBuffer_FillInfo(view, self, m->data, m->size, m->read_only, flags);
}

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Memory *)self)->owner);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *memory_of(PyObject *owner, uint64_t address, Py_ssize_t size, int read_only)
{
    Memory *m = PyObject_New(Memory, memory_type);
    if (m != NULL) {
        m->owner = Py_NewRef(owner);
        m->data = (char *)(uintptr_t)address;
        m->size = size;
        m->read_only = read_only;
    }
    return (PyObject *)m;
}

static PyType_Slot memory_slots[] = {
    {Py_tp_doc, "The bytes of an array, which it keeps alive."},
    {Py_tp_dealloc, memory_dealloc}, {Py_bf_getbuffer, memory_buffer}, {0, NULL}};

static PyType_Spec memory_spec = {"cutile.runtime._launcher.Memory", sizeof(Memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

/* ---------------------------------------------------------------- reading */

int read_numpy(Reading *r, PyObject *a)
{
    Py_buffer b;
    if (PyObject_GetBuffer(a, &b, PyBUF_STRIDED_RO) < 0)
        return NO;
    PyObject *dtype = PyObject_GetAttr(a, n_dtype);
    int ok = dtype != NULL && part(r, NUMPY) && identity(r, dtype) && part(r, (uint64_t)b.ndim)
        && part(r, (uint64_t)b.readonly << 4 | ((uintptr_t)b.buf & 15));
    for (int k = 0; ok && k < b.ndim; k++)
        ok = part(r, (uint64_t)b.shape[k]) && part(r, (uint64_t)b.strides[k]);
    ok = ok && value(r, (uintptr_t)b.buf);
    Py_XDECREF(dtype);
    PyBuffer_Release(&b);
    return ok;
}

/* ---------------------------------------------------------------- records */

enum { FOLLOWS, CONTEXT, FUNCTION, BLOCKS, ARRAYS, ARGUMENTS };   /* of a record */
enum { LOW, SIZE, ALIGNED, SHAPE, DTYPE, OFFSET, STRIDES };       /* of an array; the last four are of it as a whole */
enum { OF, VIEW_SHAPE, VIEW_DTYPE, VIEW_OFFSET, VIEW_STRIDES, CONVERT }; /* of an argument that is a view */
enum { MAKER = 1, MADE }; /* of another: OF, a function, and how many these are */

typedef struct { /* a launch that is being prepared */
    const Reading *reading;
    PyObject *arrays;           /* by launch value; None for a number */
    PyObject *memories[VALUES]; /* made so far */
} Preparation;

static Py_ssize_t number(PyObject *tuple, int i)
{
    return PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
}

static uint64_t lowest(const Preparation *p, Py_ssize_t i)
{
    return p->reading->values[i].bits + (uint64_t)number(PyTuple_GetItem(p->arrays, i), LOW);
}

static int is_stored(PyObject *array)
{
    return array != Py_None && number(array, ALIGNED) != 0;
}

/* Whether the arrays that are stored to are aligned, and none has a byte of another array. */
static int may_be_stored(const Preparation *p)
{
    Py_ssize_t n = PyTuple_Size(p->arrays);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PyTuple_GetItem(p->arrays, i);
        if (!is_stored(a))
            continue;
        if (p->reading->values[i].bits % (uint64_t)number(a, ALIGNED) != 0)
            return NO;
        uint64_t low = lowest(p, i), high = low + (uint64_t)number(a, SIZE);
        for (Py_ssize_t k = 0; k < n; k++) {
            PyObject *b = PyTuple_GetItem(p->arrays, k);
            if (k == i || b == Py_None)
                continue;
            uint64_t other = lowest(p, k);
            if (other < high && low < other + (uint64_t)number(b, SIZE))
                return NO;
        }
    }
    return YES;
}

/* A view of the memory of an array; at: its shape, dtype, offset and strides in a row */
static PyObject *view_of(Preparation *p, Py_ssize_t i, PyObject *row, int at)
{
    PyObject *array = PyTuple_GetItem(p->arrays, i), *view = NULL;
    if (p->memories[i] == NULL)
        p->memories[i] = memory_of(p->reading->arguments[i], lowest(p, i), number(array, SIZE), !is_stored(array));
    if (p->memories[i] == NULL)
        return NULL;
    PyObject *args = PyTuple_Pack(5, PyTuple_GetItem(row, at), PyTuple_GetItem(row, at + 1), p->memories[i],
                                  PyTuple_GetItem(row, at + 2), PyTuple_GetItem(row, at + 3));
    if (args != NULL)
        view = PyObject_Call(ndarray, args, NULL);
    Py_XDECREF(args);
    return view;
}

/* Takes the reference; NULL for NULL. */
static PyObject *converted(PyObject *function, PyObject *given)
{
    if (function == Py_None || given == NULL)
        return given;
    PyObject *out = PyObject_CallFunctionObjArgs(function, given, NULL);
    Py_DECREF(given);
    return out;
}

static PyObject *argument(Preparation *p, PyObject *row)
{
    if (row == Py_None)
        return Py_NewRef(Py_None);
    Py_ssize_t i = number(row, OF);
    if (PyTuple_Size(row) != MADE)
        return converted(PyTuple_GetItem(row, CONVERT), view_of(p, i, row, VIEW_SHAPE));
    PyObject *array = PyTuple_GetItem(p->arrays, i);
    return converted(PyTuple_GetItem(row, MAKER), array == Py_None ? Py_NewRef(p->reading->arguments[i])
                                                                   : view_of(p, i, array, SHAPE));
}

static int none_from(PyObject *function)
{
    PyObject *answer = PyObject_CallNoArgs(function);
    Py_XDECREF(answer);
    return answer == Py_None;
}

/* The function that runs, and its arguments; NULL, perhaps without an error, where the launch is not for here: a
   debugger follows, or an array that is stored to is not aligned or overlaps another. */
PyObject *host_arguments(PyObject *record, const Reading *r)
{
    Preparation p = {.reading = r, .arrays = PyTuple_GetItem(record, ARRAYS)};
    PyObject *rows = PyTuple_GetItem(record, ARGUMENTS), *blocks = PyTuple_GetItem(record, BLOCKS);
    if (PyTuple_Size(p.arrays) != r->n_values || !none_from(PyTuple_GetItem(record, FOLLOWS)) || !may_be_stored(&p))
        return NULL;
    Py_ssize_t n = PyTuple_Size(rows);
    PyObject *out = PyTuple_New(n + 2);
    if (out == NULL)
        return NULL;
    PyTuple_SetItem(out, 0, Py_NewRef(PyTuple_GetItem(record, FUNCTION)));
    PyObject *item = blocks == Py_None ? Py_NewRef(Py_None) : PyObject_CallNoArgs(blocks);
    for (Py_ssize_t k = 0; item != NULL; k++) {
        PyTuple_SetItem(out, k + 1, item);
        if (k == n)
            break;
        item = argument(&p, PyTuple_GetItem(rows, k));
    }
    for (int i = 0; i < r->n_values; i++)
        Py_XDECREF(p.memories[i]);
    if (item == NULL)
        Py_CLEAR(out);
    return out;
}

/* Runs a record's function in a copy of its context, with what `host_arguments` gave. */
PyObject *launch_on_host(PyObject *record, PyObject *arguments)
{
    PyObject *context = PyObject_CallMethodObjArgs(PyTuple_GetItem(record, CONTEXT), n_copy, NULL);
    PyObject *run = context == NULL ? NULL : PyObject_GetAttr(context, n_run);
    PyObject *result = run == NULL ? NULL : PyObject_Call(run, arguments, NULL);
    Py_XDECREF(run);
    Py_XDECREF(context);
    return result;
}

int start_host_launches(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    ndarray = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ndarray");
    Py_XDECREF(numpy);
    n_dtype = PyUnicode_InternFromString("dtype");
    n_copy = PyUnicode_InternFromString("copy");
    n_run = PyUnicode_InternFromString("run");
    memory_type = (PyTypeObject *)PyType_FromSpec(&memory_spec);
    return ndarray != NULL && n_dtype != NULL && n_copy != NULL && n_run != NULL && memory_type != NULL;
}
