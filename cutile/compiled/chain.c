/* Chains: several forms one after another, over pieces that stay in the first cache.

   A chain is made of the names of its steps. NumPy would write the result of each step to memory and read it again. */

#include "loop.h"

enum { STEPS = 64, BETWEEN = 8 }; /* most steps, and arrays between them */
enum { REGISTERS = ARRAYS + BETWEEN };

typedef struct {
    Compute *compute;
    int arrays, array[OPERANDS + 1]; /* numbers of registers: the operands of the step, then its result */
} Step;

typedef struct {
    int operands, steps; /* registers: the operands, the result, then what stands between steps */
    char types[REGISTERS];
    Py_ssize_t sizes[ARRAYS], piece;
    Step step[STEPS];
} Chain;

static const Elementwise *const TABLES[] = {STEP_FORMS, FMA_FORMS, ROUNDING_FORMS, ENCODING_FORMS, EXTREME_FORMS,
                                            CHOICE_FORMS};

static const Elementwise *find(const char *name)
{
    for (size_t k = 0; k < sizeof TABLES / sizeof *TABLES; k++)
        for (const Elementwise *form = TABLES[k]; form->name != NULL; form++)
            if (strcmp(form->name, name) == 0)
                return form;
    return NULL;
}

static Py_ssize_t size_of(char type)
{
    return strchr("?bB", type) ? 1 : strchr("hH", type) ? 2 : strchr("iIf", type) ? 4 : 8;
}

static int run_chain(const void *state, void *const *at, Py_ssize_t n)
{
    const Chain *chain = state;
    LINES uint64_t between[BETWEEN][ROOM / sizeof(uint64_t)];
    void *registers[REGISTERS], *given[OPERANDS + 1];
    for (int k = 0; k < BETWEEN; k++)
        registers[chain->operands + 1 + k] = between[k];
    for (Py_ssize_t start = 0; start < n; start += chain->piece) {
        Py_ssize_t here = n - start < chain->piece ? n - start : chain->piece;
        for (int k = 0; k <= chain->operands; k++)
            registers[k] = (char *)at[k] + start * chain->sizes[k];
        for (int j = 0; j < chain->steps; j++) {
            const Step *s = chain->step + j;
            for (int k = 0; k < s->arrays; k++)
                given[k] = registers[s->array[k]];
            s->compute(given, here);
        }
    }
    return 0;
}

/* chain(operand, …, out=None) -> the result */
static PyObject *call_chain(PyObject *self, PyObject *const *args, Py_ssize_t given)
{
    const Chain *chain = PyCapsule_GetPointer(self, NULL);
    return chain == NULL ? NULL : elementwise_result("chain", chain->types, chain->operands, run_chain, chain, args,
                                                     given);
}

static PyMethodDef call = {"chain", (PyCFunction)(void (*)(void))call_chain, METH_FASTCALL,
                           "chain(operand, ..., out=None) -> the result, as of a form"};

/* Reads a step, (name, register, …). What stands between steps takes the type of the form that writes it. */
static int add_step(Chain *chain, PyObject *step)
{
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(step, 0), NULL);
    const Elementwise *form = name == NULL ? NULL : find(name);
    if (form == NULL || chain->steps == STEPS) {
        PyErr_Format(PyExc_ValueError, "no step %s", name == NULL ? "" : name);
        return 0;
    }
    Step *s = chain->step + chain->steps++;
    s->compute = form->compute;
    s->arrays = (int)strlen(form->types);
    if (PyTuple_Size(step) != s->arrays + 1) {
        PyErr_Format(PyExc_ValueError, "%s takes %d arrays", name, s->arrays);
        return 0;
    }
    for (int k = 0; k < s->arrays; k++) {
        long number = PyLong_AsLong(PyTuple_GetItem(step, k + 1));
        int last = k == s->arrays - 1, inner = number > chain->operands;
        if (number < 0 || number >= chain->operands + 1 + BETWEEN || (last && number < chain->operands)) {
            PyErr_Format(PyExc_ValueError, "%s has no array %ld", name, number);
            return 0;
        }
        if (last && inner)
            chain->types[number] = form->types[k];
        if (chain->types[number] != form->types[k]) {
            PyErr_Format(PyExc_ValueError, "array %ld of %s has another type", number, name);
            return 0;
        }
        s->array[k] = (int)number;
        Py_ssize_t most = ROOM / size_of(form->types[k]);
        chain->piece = most < chain->piece ? most : chain->piece;
    }
    return 1;
}

static void forget(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, NULL));
}

/* chain_of(types, steps) -> a function. types: of the operands and of the result; steps: a tuple of steps */
static PyObject *chain_of(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t given)
{
    Py_ssize_t arrays = 0;
    const char *types = given == 2 ? PyUnicode_AsUTF8AndSize(args[0], &arrays) : NULL;
    if (types == NULL || arrays < 2 || arrays > ARRAYS || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "chain_of() takes the types of arrays, and steps");
    Chain *chain = PyMem_Calloc(1, sizeof *chain);
    if (chain == NULL)
        return PyErr_NoMemory();
    chain->operands = (int)arrays - 1;
    chain->piece = ROOM;
    memcpy(chain->types, types, (size_t)arrays);
    for (int k = 0; k < arrays; k++)
        chain->sizes[k] = size_of(types[k]);
    PyObject *capsule = PyCapsule_New(chain, NULL, forget), *function = NULL;
    int ok = capsule != NULL;
    for (Py_ssize_t j = 0; ok && j < PyTuple_Size(args[1]); j++)
        ok = add_step(chain, PyTuple_GetItem(args[1], j));
    if (ok)
        function = PyCFunction_New(&call, capsule);
    if (capsule == NULL)
        PyMem_Free(chain);
    Py_XDECREF(capsule);
    return function;
}

static PyMethodDef make = {"chain_of", (PyCFunction)(void (*)(void))chain_of, METH_FASTCALL,
                           "chain_of(types, steps) -> a function that computes steps one after another"};

/* Adds `chain_of` and STEPS, the types of each step by its name, to the module. */
int add_chains(PyObject *module, int usable)
{
    PyObject *steps = PyDict_New(), *function = PyCFunction_New(&make, NULL);
    int ok = steps != NULL && function != NULL;
    for (size_t k = 0; usable && k < sizeof TABLES / sizeof *TABLES; k++)
        for (const Elementwise *form = TABLES[k]; ok && form->name != NULL; form++) {
            PyObject *types = PyUnicode_FromString(form->types);
            ok = types != NULL && PyDict_SetItemString(steps, form->name, types) == 0;
            Py_XDECREF(types);
        }
    ok = ok && PyModule_AddObjectRef(module, "STEPS", steps) == 0
        && PyModule_AddObjectRef(module, "chain_of", function) == 0;
    Py_XDECREF(steps);
    Py_XDECREF(function);
    return ok;
}
