/* The module cutile.compiled._forms: a dict of the forms that this CPU can compute. */

#include "loop.h"

static int fill(PyObject *forms)
{
    if (!start_loops())
        return 0;
    return !CPU_IS_FAST || (add_elementwise(forms, FMA_FORMS) && add_elementwise(forms, ROUNDING_FORMS)
        && add_elementwise(forms, ENCODING_FORMS) && add_elementwise(forms, FUNCTION_FORMS)
        && add_elements(forms));
}

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_forms", .m_size = -1};

PyMODINIT_FUNC PyInit__forms(void)
{
    PyObject *m = PyModule_Create(&module), *forms = PyDict_New();
    if (m == NULL || forms == NULL || !fill(forms) || PyModule_AddObjectRef(m, "FORMS", forms) < 0)
        Py_CLEAR(m);
    Py_XDECREF(forms);
    return m;
}
