/* Objects whose calls go through an Entry (_functions.c), although their classes show a function in Python for it.

   Where `__call__` is set to a function of Python, as attributes of classes are set, that is called instead. */

#include "_launcher.h"
#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    Vectorcall vectorcall;
    PyObject *entry;
    Mutex mutex; /* of the entry */
} Callable;

static PyObject *callable_type, *n_call;

/* A reference, since other threads, or the call itself, may give it another one; NULL, with an error, for none. */
static PyObject *entry_of(PyObject *self)
{
    Callable *c = (Callable *)self;
    LOCK(&c->mutex);
    PyObject *entry = Py_XNewRef(c->entry);
    UNLOCK(&c->mutex);
    return entry == NULL ? PyErr_Format(PyExc_TypeError, "nothing was said of what a call does") : entry;
}

static PyObject *callable_vectorcall(PyObject *self, PyObject *const *a, size_t flags, PyObject *names)
{
    PyObject *entry = entry_of(self), *out = entry == NULL ? NULL : entry_vectorcall(entry, a, flags, names);
    Py_XDECREF(entry);
    return out;
}

static PyObject *callable_call(PyObject *self, PyObject *args, PyObject *named)
{
    PyObject *entry = entry_of(self), *out = entry == NULL ? NULL : entry_call(entry, args, named);
    Py_XDECREF(entry);
    return out;
}

static PyMemberDef callable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, vectorcall), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};

static int callable_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Callable *)self)->entry);
    return 0;
}

static int callable_clear(PyObject *self)
{
    Callable *c = (Callable *)self;
    c->vectorcall = NULL; /* from now on callable_call answers */
    Py_CLEAR(c->entry);
    return 0;
}

static void callable_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    callable_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot callable_slots[] = {
    {Py_tp_doc, "What has an Entry is called through it."},
    {Py_tp_call, callable_call}, {Py_tp_traverse, callable_traverse}, {Py_tp_clear, callable_clear},
    {Py_tp_dealloc, callable_dealloc}, {Py_tp_members, callable_members}, {0, NULL}};

static PyType_Spec callable_spec = {"cutile.runtime._launcher.Callable", sizeof(Callable), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | HAS_VECTORCALL,
                                    callable_slots};

/* Puts a function into the dictionary of a class as its `__call__`, for those who look there; calls do not become calls
   of it. A class finds its dictionary as any object does, and its slots change only where the attribute is set as that
   of a class. Whatever changes them later, calls are right: they then go to the function. */
static int show(PyObject *cls, PyObject *function)
{
    if (PyObject_GenericSetAttr(cls, n_call, function) < 0)
        return -1;
    PyType_Modified((PyTypeObject *)cls);
    return 0;
}

static PyObject *enter(PyObject *self, PyObject *args)
{
    PyObject *callable, *entry, *function;
    if (!PyArg_ParseTuple(args, "O!O!O", callable_type, &callable, entry_type, &entry, &function))
        return NULL;
    if (show((PyObject *)Py_TYPE(callable), function) < 0)
        return NULL;
    Callable *c = (Callable *)callable;
    LOCK(&c->mutex);
    PyObject *before = c->entry;
    c->entry = Py_NewRef(entry);
    c->vectorcall = callable_vectorcall;
    UNLOCK(&c->mutex);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"enter", enter, METH_VARARGS,
     "enter(callable, entry, function): let calls of a Callable go through an Entry, and who looks for `__call__` of\n"
     "its class find a function"},
    {NULL, NULL, 0, NULL}};

int add_callables(PyObject *module)
{
    n_call = PyUnicode_InternFromString("__call__");
    callable_type = PyType_FromSpec(&callable_spec);
    return n_call != NULL && callable_type != NULL && PyModule_AddObjectRef(module, "Callable", callable_type) == 0
        && PyModule_AddFunctions(module, functions) == 0;
}
