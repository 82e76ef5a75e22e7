/* Prepared: a launch whose arguments were read beforehand (runtime/prepare.py, runtime/repeated.py). */

#include "_launcher.h"

typedef struct {
    PyObject_HEAD
    PyObject *record;    /* as record() makes it */
    PyObject *streams;   /* as LaunchCache.insert takes it */
    PyObject *written;   /* as in `told` */
    PyObject *choices;   /* as in `choose` */
    PyObject *watch;     /* as in a LaunchCache */
    PyObject *arguments; /* a tuple, for `written` */
    unsigned grid[3];
    Value values[VALUES]; /* launch values */
    int n_values;
    Mutex mutex; /* of these and the arguments */
} Prepared;

static PyObject *prepared_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"record", "streams", "written", "choices", "watch", "grid", NULL};
    PyObject *record, *streams, *written, *choices, *watch;
    unsigned x, y, z;
    if (!PyArg_ParseTupleAndKeywords(args, names, "SO!OOO!(III)", keywords, &record, &PyDict_Type, &streams, &written,
                                     &choices, &PyTuple_Type, &watch, &x, &y, &z))
        return NULL;
    Prepared *p = (Prepared *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (p == NULL)
        return NULL;
    p->record = Py_NewRef(record);
    p->streams = Py_NewRef(streams);
    p->written = Py_NewRef(written);
    p->choices = Py_NewRef(choices);
    p->watch = Py_NewRef(watch);
    p->grid[0] = x, p->grid[1] = y, p->grid[2] = z;
    if ((p->arguments = PyTuple_New(0)) == NULL)
        Py_CLEAR(p);
    return (PyObject *)p;
}

static int prepared_traverse(PyObject *self, visitproc visit, void *arg)
{
    Prepared *p = (Prepared *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->streams);
    Py_VISIT(p->written);
    Py_VISIT(p->choices);
    Py_VISIT(p->watch);
    Py_VISIT(p->arguments);
    return 0;
}

static int prepared_clear(PyObject *self)
{
    Prepared *p = (Prepared *)self;
    Py_CLEAR(p->record);
    Py_CLEAR(p->streams);
    Py_CLEAR(p->written);
    Py_CLEAR(p->choices);
    Py_CLEAR(p->watch);
    Py_CLEAR(p->arguments);
    return 0;
}

static void prepared_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    prepared_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *prepared_set(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    Prepared *p = (Prepared *)self;
    if (n != 2 || !PyTuple_CheckExact(a[0]) || !PyTuple_CheckExact(a[1]) || PyTuple_Size(a[1]) > VALUES)
        return PyErr_Format(PyExc_TypeError, "set() takes a tuple of arguments and one of at most %d launch values",
                            VALUES);
    Value values[VALUES];
    Py_ssize_t count = PyTuple_Size(a[1]);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *v = PyTuple_GetItem(a[1], i);
        if (PyFloat_CheckExact(v))
            values[i].number = PyFloat_AsDouble(v);
        else
            values[i].bits = PyLong_AsUnsignedLongLongMask(v);
    }
    if (PyErr_Occurred())
        return NULL;
    LOCK(&p->mutex);
    PyObject *before = p->arguments;
    p->arguments = Py_NewRef(a[0]);
    memcpy(p->values, values, count * sizeof *values);
    p->n_values = (int)count;
    UNLOCK(&p->mutex);
    Py_DECREF(before);
    Py_RETURN_NONE;
}

static PyObject *prepared_launch(PyObject *self, PyObject *stream)
{
    Prepared *p = (Prepared *)self;
    Reading r;
    uint64_t number, function = 0;
    PyObject *args[MOST_ARGUMENTS];
    start_reading(&r, NULL);
    LOCK(&p->mutex);
    PyObject *arguments = Py_NewRef(p->arguments);
    memcpy(r.values, p->values, (size_t)p->n_values * sizeof *r.values);
    r.n_values = p->n_values;
    UNLOCK(&p->mutex);
    int code = untouched(p->watch) && read_stream(stream, p->streams, &number)
            && choose(p->choices, p->grid, &function)
            && (p->written == Py_None || (items_of(arguments, args) >= 0 && told(p->written, args, args)))
        ? launch_on_device(p->record, &r, p->grid, function, number) : -1;
    Py_DECREF(arguments);
    return code == -1 ? not_here() : code == 0 ? Py_NewRef(Py_None) : PyLong_FromLong(code);
}

typedef struct { int64_t root; uint64_t number; } Source; /* of a launch value: a root plus a number, or, where there
                                                            is no root (-1), the number */

int prepared_on_device(PyObject *self, PyObject *stream, PyObject *roots, PyObject *sources)
{
    Prepared *p = (Prepared *)self;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(sources, &bytes, &size) < 0 || size > VALUES * (Py_ssize_t)sizeof(Source))
        return -1;
    Reading r;
    uint64_t number, function = 0;
    start_reading(&r, NULL);
    r.n_values = (int)(size / (Py_ssize_t)sizeof(Source));
    for (int i = 0; i < r.n_values; i++) {
        Source s;
        memcpy(&s, bytes + i * (Py_ssize_t)sizeof s, sizeof s);
        PyObject *root = s.root < 0 ? NULL : item_at(roots, (Py_ssize_t)s.root);
        r.values[i].bits = s.number + (root == NULL ? 0 : PyLong_AsUnsignedLongLongMask(root));
        Py_XDECREF(root);
    }
    if (PyErr_Occurred() || !untouched(p->watch) || !read_stream(stream, p->streams, &number)
        || !choose(p->choices, p->grid, &function))
        return -1;
    return launch_on_device(p->record, &r, p->grid, function, number);
}

/* A launch with values of its own, so that threads may share the object. It stores to no tensor that is to be told. */
static PyObject *prepared_run(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 3 || !PyList_CheckExact(a[1]) || !PyBytes_CheckExact(a[2])
        || PyBytes_Size(a[2]) > VALUES * (Py_ssize_t)sizeof(Source))
        return PyErr_Format(PyExc_TypeError, "run() takes a stream, a list of roots, and sources of at most %d launch "
                                             "values", VALUES);
    int code = prepared_on_device(self, a[0], a[1], a[2]);
    return code == -1 ? not_here() : code == 0 ? Py_NewRef(Py_None) : PyLong_FromLong(code);
}

static PyMethodDef prepared_methods[] = {
    {"run", (PyCFunction)(void (*)(void))prepared_run, METH_FASTCALL,
     "run(stream, roots, sources) -> as launch. sources: bytes, for each launch value the number of a root, a list of\n"
     "ints, and what is added to it, as 64-bit ints; root -1 is none. A float counts by the bits of a float64"},
    {"launch", prepared_launch, METH_O,
     "launch(stream) -> None where the launch was queued, the driver's error where it refused it, or NotImplemented"},
    {"set", (PyCFunction)(void (*)(void))prepared_set, METH_FASTCALL,
     "set(arguments, launch values): tuples, of which it keeps the first"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot prepared_slots[] = {
    {Py_tp_doc, "Prepared(record, streams, written, choices, watch, grid): a launch whose arguments were read before"},
    {Py_tp_new, prepared_new}, {Py_tp_traverse, prepared_traverse}, {Py_tp_clear, prepared_clear},
    {Py_tp_dealloc, prepared_dealloc}, {Py_tp_methods, prepared_methods}, {0, NULL}};

PyType_Spec prepared_spec = {"cutile.runtime._launcher.Prepared", sizeof(Prepared), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, prepared_slots};
