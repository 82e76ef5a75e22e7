/* Elementwise forms as functions of Python. */

#include "loop.h"

static int compute(const void *state, void *const *at, Py_ssize_t n)
{
    return ((const Elementwise *)state)->compute(at, n);
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

/* Borrows the operands, computes their result, and tells what the body returned. A new reference. */
static PyObject *result_of(const char *types, int n, Body *body, const void *state, PyObject *const *args,
                           PyObject *out, Loop *l, int *told)
{
    PyObject *result = NULL;
    l->arrays = 0;
    for (char type[2] = {0, 0}; l->arrays < n; ) {
        type[0] = types[l->arrays];
        if (!loop_borrow(l, args[l->arrays], type, 0))
            break;
    }
    if (l->arrays == n && loop_broadcast(l, NULL))
        result = loop_result(l, out, types[n], body, state, told);
    loop_release(l);
    return result;
}

PyObject *elementwise_result(const char *name, const char *types, int n, Body *body, const void *state,
                             PyObject *const *args, Py_ssize_t given)
{
    Loop l;
    int told = 0;
    if (given < n || given > n + 1)
        return PyErr_Format(PyExc_TypeError, "%s() takes %d arrays, and an array for the result", name, n);
    PyObject *result = result_of(types, n, body, state, args, given > n ? args[n] : Py_None, &l, &told);
    return loop_full(&l, result);
}

/* form(operand, …, out=None, mend=None) -> result */
static PyObject *call_form(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    const Elementwise *form = PyCapsule_GetPointer(self, NULL);
    if (form == NULL)
        return NULL;
    int n = (int)strlen(form->types) - 1, doubts = 0;
    if (given < n || given > n + 2)
        return PyErr_Format(PyExc_TypeError, "%s() takes %d arrays, an array for the result, and a function that"
                            " mends it", form->name, n);
    Loop l;
    PyObject *result = result_of(form->types, n, compute, form, args, given > n ? args[n] : Py_None, &l, &doubts);
    if (doubts && given == n + 2)
        result = mended(args[n + 1], args, n, result);
    return loop_full(&l, result);
}

/* ---------------------------------------------------------------- the forms as Python finds them */

static PyMethodDef call = {"form", (PyCFunction)(void (*)(void))call_form, METH_FASTCALL,
                           "form(operand, ..., out=None, mend=None) -> the result, in `out` where that has its shape;\n"
                           "`out` is an operand or shares no memory with one. mend(operand, ..., result) is called\n"
                           "where some results are DOUBTFUL; the result has length 1 where no operand varies"};

/* Adds the forms of a table to a dict, by name. */
int add_elementwise(PyObject *forms, const Elementwise *table)
{
    int ok = 1;
    for (; ok && table->name != NULL; table++)
        ok = add_form(forms, table->name, &call, table);
    return ok;
}
