/* The module cutile.compiled._forms: a dict of the forms that this CPU can compute, and what makes chains of them. */

#include "loop.h"

#ifdef Py_GIL_DISABLED
#define NEEDS_NO_GIL(module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)
#else
#define NEEDS_NO_GIL(module) 0
#endif

/* Adds a function to a dict, which gets the data in a capsule. */
int add_form(PyObject *forms, const char *name, PyMethodDef *method, const void *data)
{
    PyObject *capsule = data == NULL ? NULL : PyCapsule_New((void *)(uintptr_t)data, NULL, NULL);
    PyObject *function = data != NULL && capsule == NULL ? NULL : PyCFunction_New(method, capsule);
    int ok = function != NULL && PyDict_SetItemString(forms, name, function) == 0;
    Py_XDECREF(capsule);
    Py_XDECREF(function);
    return ok;
}

static int fill(PyObject *forms)
{
    if (!start_loops())
        return 0;
    return !CPU_IS_FAST || (add_elementwise(forms, FMA_FORMS) && add_elementwise(forms, ROUNDING_FORMS)
        && add_elementwise(forms, ENCODING_FORMS) && add_elementwise(forms, FUNCTION_FORMS)
        && add_elementwise(forms, EXTREME_FORMS) && add_elementwise(forms, CHOICE_FORMS) && add_elements(forms)
        && add_along(forms));
}

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_forms", .m_size = -1};

PyMODINIT_FUNC PyInit__forms(void)
{
    PyObject *m = PyModule_Create(&module), *forms = PyDict_New();
    if (m == NULL || NEEDS_NO_GIL(m) < 0 || forms == NULL || !fill(forms)
        || PyModule_AddObjectRef(m, "FORMS", forms) < 0 || !add_chains(m, CPU_IS_FAST))
        Py_CLEAR(m);
    Py_XDECREF(forms);
    return m;
}
