/* Functions made by ct.jit as C code calls them: no frame of Python runs in a call that is known.

   An Entry knows the parameters of one function. It puts what callers pass into the order of the kernel's parameters,
   looks the call up (_calls.c), and gives back what the function returns. All other calls go to the function that
   functions/entry.py writes in Python, with the same arguments. */

#include "_launcher.h"
#include <stddef.h>
#include <structmember.h>

static const size_t MAY_WRITE_BEFORE = (size_t)1 << (8 * sizeof(size_t) - 1);

typedef struct {
    PyObject_HEAD
    Vectorcall vectorcall;
    PyObject *cache;     /* the kernel's LaunchCache; NULL before a call was kept */
    Mutex mutex;         /* of this one; the others never change */
    PyObject *calls;     /* a dictionary, as run_call takes it */
    PyObject *python;    /* what is called for calls that C code does not know */
    PyObject *failed;    /* takes the error of code that ran in CPU memory, and gives the one to raise */
    PyObject *names;     /* of the arguments that callers pass */
    PyObject *defaults;  /* a tuple, for each parameter of the kernel what stands in its place if nothing is passed */
    int positional;      /* how many of the names may be passed by position */
    int n_names, n_parameters, n_outputs, n_returned, n_arrays;
    int *places;         /* positions among the kernel's parameters: of the names, */
    int *outputs, *returned, *arrays; /* of outputs, of what is returned, and of other arguments that may be arrays */
} Entry;

typedef struct { /* what a caller passes, in the order of the kernel's parameters; all of it is borrowed */
    PyObject *arguments[MOST_ARGUMENTS];
    PyObject *out, *stream;
} Passed;

PyObject *entry_type;
static PyObject *cache_type, *n_out, *n_stream;

/* ---------------------------------------------------------------- from what callers pass to the kernel's parameters */

/* The index of a name that is passed; -1 for another one. Names in source text are interned, and so are these. */
static Py_ssize_t index_of(const Entry *e, PyObject *name)
{
    for (int i = 0; i < e->n_names; i++)
        if (PyTuple_GetItem(e->names, i) == name)
            return i;
    return -1;
}

static int take_named(const Entry *e, Passed *p, Py_ssize_t by_position, PyObject *name, PyObject *value)
{
    if (name == n_stream)
        p->stream = value;
    else if (name == n_out && e->n_outputs > 0)
        p->out = value;
    else {
        Py_ssize_t i = index_of(e, name);
        if (i < by_position) /* also of a name that is not known: Python says what is wrong */
            return NO;
        p->arguments[e->places[i]] = value;
    }
    return YES;
}

static void begin(const Entry *e, Passed *p)
{
    for (int i = 0; i < e->n_parameters; i++)
        p->arguments[i] = PyTuple_GetItem(e->defaults, i);
    p->out = p->stream = Py_None;
}

/* Puts the arrays that the caller gives for outputs into their places. NO where one of them is given twice, and for
   what is no tuple. */
static int take_outputs(const Entry *e, Passed *p)
{
    PyObject *out = p->out;
    if (out == Py_None)
        return YES;
    if (e->n_outputs > 1 && !(PyTuple_CheckExact(out) && PyTuple_Size(out) == e->n_outputs))
        return NO;
    for (int k = 0; k < e->n_outputs; k++) {
        PyObject *a = e->n_outputs == 1 ? out : PyTuple_GetItem(out, k);
        p->arguments[e->outputs[k]] = a;
        for (int i = 0; i < k; i++)
            if (p->arguments[e->outputs[i]] == a)
                return NO;
        for (int i = 0; i < e->n_arrays; i++)
            if (p->arguments[e->arrays[i]] == a)
                return NO;
    }
    return YES;
}

/* ---------------------------------------------------------------- a call */

static PyObject *result_of(const Entry *e, PyObject *const *arguments)
{
    if (e->n_returned == 0)
        return Py_NewRef(Py_None);
    if (e->n_returned == 1)
        return Py_NewRef(arguments[e->returned[0]]);
    PyObject *out = PyTuple_New(e->n_returned);
    for (int i = 0; out != NULL && i < e->n_returned; i++)
        PyTuple_SetItem(out, i, Py_NewRef(arguments[e->returned[i]]));
    return out;
}

/* Raises, in the place of an error of code that ran, the one for users. */
static void explain(const Entry *e)
{
    PyObject *cls, *error, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&cls, &error, &traceback);
    PyErr_NormalizeException(&cls, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    PyObject *raised = PyObject_CallFunctionObjArgs(e->failed, error, NULL);
    if (raised != NULL) {
        PyException_SetCause(raised, PyException_GetCause(raised)); /* as `raise ... from` it does */
        PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
        Py_DECREF(raised);
    }
    Py_XDECREF(cls);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
}

/* NotImplemented, with nothing done, where it is no call that is known. */
static PyObject *known_call(Entry *e, Passed *p)
{
    PyObject *made[MOST_OUTPUTS + 1], *cache = e->cache;
    if (cache == NULL || !take_outputs(e, p))
        return Py_NewRef(Py_NotImplemented);
    PyObject *out = run_call((LaunchCache *)cache, p->stream, e->calls, p->arguments, e->n_parameters, made);
    if (out == Py_None) {
        Py_DECREF(out);
        out = result_of(e, p->arguments);
    } else if (out == NULL)
        explain(e);
    for (int k = 0; made[k] != NULL; k++)
        Py_DECREF(made[k]);
    return out;
}

/* Whether it can be called: what the collector of garbage has cleared cannot. */
static int is_whole(const Entry *e)
{
    if (e->python == NULL)
        PyErr_Format(PyExc_TypeError, "the function is being deleted");
    return e->python != NULL;
}

/* The same call in Python. names: a tuple, or NULL, of what stands behind the first n arguments */
static PyObject *call_python(Entry *e, PyObject *const *a, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t more = names == NULL ? 0 : PyTuple_Size(names);
    PyObject *args = PyTuple_New(n), *named = more == 0 ? NULL : PyDict_New(), *out = NULL;
    for (Py_ssize_t i = 0; args != NULL && i < n; i++)
        PyTuple_SetItem(args, i, Py_NewRef(a[i]));
    int ok = args != NULL && (more == 0 || named != NULL);
    for (Py_ssize_t i = 0; ok && i < more; i++)
        ok = PyDict_SetItem(named, PyTuple_GetItem(names, i), a[n + i]) == 0;
    if (ok)
        out = PyObject_Call(e->python, args, named);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return out;
}

PyObject *entry_vectorcall(PyObject *self, PyObject *const *a, size_t flags, PyObject *names)
{
    Entry *e = (Entry *)self;
    Py_ssize_t n = (Py_ssize_t)(flags & ~MAY_WRITE_BEFORE), more = names == NULL ? 0 : PyTuple_Size(names);
    if (!is_whole(e))
        return NULL;
    if (n <= e->positional) {
        Passed p;
        begin(e, &p);
        for (Py_ssize_t i = 0; i < n; i++)
            p.arguments[e->places[i]] = a[i];
        int ok = YES;
        for (Py_ssize_t i = 0; ok && i < more; i++)
            ok = take_named(e, &p, n, PyTuple_GetItem(names, i), a[n + i]);
        PyObject *out = ok ? known_call(e, &p) : Py_NewRef(Py_NotImplemented);
        if (out != Py_NotImplemented)
            return out;
        Py_DECREF(out);
    }
    return call_python(e, a, n, names);
}

PyObject *entry_call(PyObject *self, PyObject *args, PyObject *named)
{
    Entry *e = (Entry *)self;
    Py_ssize_t n = PyTuple_Size(args), at = 0;
    if (!is_whole(e))
        return NULL;
    if (n <= e->positional) {
        Passed p;
        PyObject *name, *value;
        begin(e, &p);
        for (Py_ssize_t i = 0; i < n; i++)
            p.arguments[e->places[i]] = PyTuple_GetItem(args, i);
        int ok = YES;
        while (ok && named != NULL && PyDict_Next(named, &at, &name, &value))
            ok = take_named(e, &p, n, name, value);
        PyObject *out = ok ? known_call(e, &p) : Py_NewRef(Py_NotImplemented);
        if (out != Py_NotImplemented)
            return out;
        Py_DECREF(out);
    }
    return PyObject_Call(e->python, args, named);
}

/* ---------------------------------------------------------------- Entry */

/* Positions below a limit, from a tuple; NULL, with an error, for anything else. */
static int *positions(PyObject *tuple, Py_ssize_t limit, int *count)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    int *out = PyMem_Malloc((size_t)(n + 1) * sizeof *out);
    if (out == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
        if (at < 0 || at >= limit) {
            PyMem_Free(out);
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "no parameter has the position %zd", at);
            return NULL;
        }
        out[i] = (int)at;
    }
    *count = (int)n;
    return out;
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *more)
{
    static char *keywords[] = {"calls", "python", "failed", "names", "positional", "defaults", "places", "outputs",
                               "returned", "arrays", NULL};
    PyObject *calls, *python, *failed, *names, *defaults, *places, *outputs, *returned, *arrays;
    int positional;
    if (!PyArg_ParseTupleAndKeywords(args, more, "O!OOO!iO!O!O!O!O!", keywords, &PyDict_Type, &calls, &python, &failed,
                                     &PyTuple_Type, &names, &positional, &PyTuple_Type, &defaults, &PyTuple_Type,
                                     &places, &PyTuple_Type, &outputs, &PyTuple_Type, &returned, &PyTuple_Type,
                                     &arrays))
        return NULL;
    Py_ssize_t n = PyTuple_Size(defaults);
    if (n > MOST_ARGUMENTS || PyTuple_Size(names) != PyTuple_Size(places) || positional > PyTuple_Size(names))
        return PyErr_Format(PyExc_ValueError, "Entry() takes at most %d parameters, and a place for each name",
                            MOST_ARGUMENTS);
    Entry *e = (Entry *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (e == NULL)
        return NULL;
    e->vectorcall = entry_vectorcall;
    e->calls = Py_NewRef(calls);
    e->python = Py_NewRef(python);
    e->failed = Py_NewRef(failed);
    e->names = Py_NewRef(names);
    e->defaults = Py_NewRef(defaults);
    e->positional = positional;
    e->n_parameters = (int)n;
    if ((e->places = positions(places, n, &e->n_names)) == NULL
        || (e->outputs = positions(outputs, n, &e->n_outputs)) == NULL
        || (e->returned = positions(returned, n, &e->n_returned)) == NULL
        || (e->arrays = positions(arrays, n, &e->n_arrays)) == NULL)
        Py_CLEAR(e);
    return (PyObject *)e;
}

static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    Entry *e = (Entry *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(e->cache);
    Py_VISIT(e->calls);
    Py_VISIT(e->python);
    Py_VISIT(e->failed);
    Py_VISIT(e->defaults);
    return 0;
}

static int entry_clear(PyObject *self)
{
    Entry *e = (Entry *)self;
    Py_CLEAR(e->cache);
    Py_CLEAR(e->calls);
    Py_CLEAR(e->python);
    Py_CLEAR(e->failed);
    Py_CLEAR(e->names);
    Py_CLEAR(e->defaults);
    return 0;
}

static void entry_dealloc(PyObject *self)
{
    Entry *e = (Entry *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    PyMem_Free(e->places);
    PyMem_Free(e->outputs);
    PyMem_Free(e->returned);
    PyMem_Free(e->arrays);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Whether calls that the cache keeps run here from now on. */
static PyObject *entry_use(PyObject *self, PyObject *cache)
{
    Entry *e = (Entry *)self;
    if (!PyObject_TypeCheck(cache, (PyTypeObject *)cache_type))
        Py_RETURN_FALSE;
    LOCK(&e->mutex);
    if (e->cache == NULL)
        e->cache = Py_NewRef(cache);
    int same = e->cache == cache;
    UNLOCK(&e->mutex);
    return PyBool_FromLong(same);
}

static PyMethodDef entry_methods[] = {
    {"use", entry_use, METH_O, "use(cache): find launches in this LaunchCache from now on -> whether it does"},
    {NULL, NULL, 0, NULL}};

static PyMemberDef entry_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, vectorcall), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};

static PyType_Slot entry_slots[] = {
    {Py_tp_doc, "Entry(calls, python, failed, names, positional, defaults, places, outputs, returned, arrays): what\n"
                "calls of a function go through; what it takes is said in _functions.c"},
    {Py_tp_new, entry_new}, {Py_tp_call, entry_call}, {Py_tp_traverse, entry_traverse}, {Py_tp_clear, entry_clear},
    {Py_tp_dealloc, entry_dealloc}, {Py_tp_methods, entry_methods}, {Py_tp_members, entry_members}, {0, NULL}};

static PyType_Spec entry_spec = {"cutile.runtime._launcher.Entry", sizeof(Entry), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL, entry_slots};

int add_entries(PyObject *module, PyObject *cache)
{
    cache_type = Py_NewRef(cache);
    n_out = PyUnicode_InternFromString("out");
    n_stream = PyUnicode_InternFromString("stream");
    entry_type = PyType_FromSpec(&entry_spec);
    return n_out != NULL && n_stream != NULL && entry_type != NULL
        && PyModule_AddObjectRef(module, "Entry", entry_type) == 0;
}
