/* Calls of functions made by ct.jit: launches whose grid, stream and outputs follow from the arguments.

   A function keeps its calls in a dictionary, by the signature of what callers pass. In the place of an output that the
   call is to make stands None. A call makes these outputs with the function of their library, as its recipe says, reads
   them, and runs the launch that a call with such arguments ran before. Where an output is not as it was then, for
   example at an address with other alignment, it is given back and the call left to Python. */

#include "_launcher.h"

enum { MADE = 255, MOST_OUTPUTS = 16 }; /* first part of an output to make; how many a call may have */

/* Of a call: the signature of its launch, an entry of the LaunchCache; the grid; the position of the first array, or of
   an output where there is no array; where the current stream comes from; the first array's GPU; recipes of outputs;
   what the signature has addresses of. STREAM_OF is
   - a function, called with the first array,
   - the address of a DeviceStream, if GPU is a number,
   - the address of a ThreadStream, if GPU is None. */
enum { LAUNCHED, GRID, FIRST, STREAM_OF, GPU, RECIPES, CALL_KEPT, CALL_ITEMS };
enum { POSITION, SIGNATURE, FUNCTION, ARGUMENTS, NAMED, FILL, RECIPE_ITEMS }; /* of a recipe */

typedef intptr_t (*ThreadStream)(void); /* CuPy's current stream, of the current GPU */

static PyObject *n_fill;

typedef struct { /* where launch values of outputs belong */
    int count;
    int before[MOST_OUTPUTS]; /* launch values of other arguments before each */
} Holes;

/* Reads what a caller passes. */
static int read_passed(Reading *r, Holes *holes, PyObject *args, PyObject *constants, PyObject *kinds)
{
    char *flags;
    Py_ssize_t n;
    holes->count = 0;
    if (!PyTuple_CheckExact(args) || PyBytes_AsStringAndSize(constants, &flags, &n) < 0 || PyTuple_Size(args) != n)
        return NO;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        int ok;
        if (flags[i])
            ok = read_constant(r, o);
        else if (o != Py_None)
            ok = read_argument(r, o, kinds);
        else if ((ok = holes->count < MOST_OUTPUTS && part(r, MADE)))
            holes->before[holes->count++] = r->n_values;
        if (!ok)
            return NO;
    }
    return PyErr_Occurred() == NULL;
}

/* Reads an output. kept: NULL, or a list for what its signature has addresses of */
static int read_made(Reading *r, PyObject *output, PyObject *kinds, PyObject *kept)
{
    start_reading(r, kept);
    return read_argument(r, output, kinds) && r->n_values == 1;
}

static int insert_value(Reading *r, int at, Value v, PyObject *argument)
{
    if (r->n_values == VALUES)
        return NO;
    size_t behind = (size_t)(r->n_values - at);
    memmove(r->values + at + 1, r->values + at, behind * sizeof *r->values);
    memmove(r->arguments + at + 1, r->arguments + at, behind * sizeof *r->arguments);
    r->values[at] = v;
    r->arguments[at] = argument;
    r->n_values++;
    return YES;
}

static PyObject *made(PyObject *recipe, PyObject *first)
{
    PyObject *function = PyTuple_GetItem(recipe, FUNCTION), *arguments = PyTuple_GetItem(recipe, ARGUMENTS);
    PyObject *named = PyTuple_GetItem(recipe, NAMED), *fill = PyTuple_GetItem(recipe, FILL);
    PyObject *out = arguments == Py_None ? PyObject_CallFunctionObjArgs(function, first, NULL)
                                         : PyObject_Call(function, arguments, named == Py_None ? NULL : named);
    if (out != NULL && fill != Py_None) {
        PyObject *done = PyObject_CallMethodObjArgs(out, n_fill, fill, NULL);
        if (done == NULL)
            Py_CLEAR(out);
        Py_XDECREF(done);
    }
    return out;
}

/* Makes the outputs: all arguments of the launch, whose outputs also go into `outputs`. NULL, perhaps without an error,
   where one of them is not as in the call that was kept. */
static PyObject *with_outputs(LaunchCache *c, Reading *r, const Holes *holes, PyObject *plan, PyObject *passed,
                              PyObject *outputs)
{
    Reading one;
    PyObject *recipes = PyTuple_GetItem(plan, RECIPES);
    PyObject *first = PyTuple_GetItem(passed, PyLong_AsSsize_t(PyTuple_GetItem(plan, FIRST)));
    Py_ssize_t n = PyTuple_Size(passed);
    PyObject *args = PyTuple_New(n);
    if (args == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SetItem(args, i, Py_NewRef(PyTuple_GetItem(passed, i)));
    for (int k = 0; k < holes->count; k++) {
        PyObject *recipe = PyTuple_GetItem(recipes, k), *out = made(recipe, first);
        char *bytes;
        Py_ssize_t size;
        if (out == NULL)
            break;
        PyTuple_SetItem(outputs, k, out);
        if (!read_made(&one, out, c->kinds, NULL)
            || PyBytes_AsStringAndSize(PyTuple_GetItem(recipe, SIGNATURE), &bytes, &size) < 0
            || size != one.n_parts * (Py_ssize_t)sizeof *one.parts || memcmp(bytes, one.parts, (size_t)size) != 0
            || !insert_value(r, holes->before[k] + k, one.values[0], out)
            || PyTuple_SetItem(args, PyLong_AsSsize_t(PyTuple_GetItem(recipe, POSITION)), Py_NewRef(out)) < 0)
            break;
        if (k == holes->count - 1)
            return args;
    }
    Py_DECREF(args);
    return NULL;
}

/* given: a stream, or None for the current one */
static int find_stream(PyObject *plan, PyObject *given, PyObject *args, PyObject *readers, uint64_t *out)
{
    PyObject *of = PyTuple_GetItem(plan, STREAM_OF), *gpu = PyTuple_GetItem(plan, GPU);
    if (given != Py_None)
        return read_stream(given, readers, out);
    if (PyLong_CheckExact(of)) {
        uintptr_t address = (uintptr_t)PyLong_AsUnsignedLongLong(of);
        void *stream = NULL;
        if (gpu == Py_None)
            *out = (uint64_t)((ThreadStream)address)();
        else if (((DeviceStream)address)(DLPACK_CUDA, (int32_t)PyLong_AsLong(gpu), &stream) == 0)
            *out = (uintptr_t)stream;
        else
            return NO;
        return PyErr_Occurred() == NULL;
    }
    PyObject *first = PyTuple_GetItem(args, PyLong_AsSsize_t(PyTuple_GetItem(plan, FIRST)));
    PyObject *stream = PyObject_CallFunctionObjArgs(of, first, NULL);
    int ok = stream != NULL && read_stream(stream, readers, out);
    Py_XDECREF(stream);
    return ok;
}

static PyObject *run_call(LaunchCache *c, Reading *r, const Holes *holes, PyObject *plan, PyObject *entry,
                          PyObject *given, PyObject *passed)
{
    unsigned grid[3];
    uint64_t stream = 0;
    if (!read_grid(PyTuple_GetItem(plan, GRID), c->grid_limit, grid) || !may_launch(entry))
        return not_here();
    PyObject *outputs = PyTuple_New(holes->count), *out = NULL;
    PyObject *args = outputs == NULL ? NULL : holes->count == 0 ? Py_NewRef(passed)
                                                                : with_outputs(c, r, holes, plan, passed, outputs);
    if (args != NULL && (is_on_host(entry) || find_stream(plan, given, args, PyTuple_GetItem(entry, STREAMS), &stream)))
        out = launch_entry(c, entry, r, stream, grid, args, passed);
    else
        out = not_here();
    Py_XDECREF(args);
    if (out == Py_None) {
        Py_DECREF(out);
        return outputs;
    }
    Py_XDECREF(outputs);
    if (out == NULL || out == Py_NotImplemented)
        return out;
    Py_DECREF(out); /* the driver refused it: Python launches again, and explains */
    return not_here();
}

PyObject *cache_call(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    LaunchCache *c = (LaunchCache *)self;
    if (n != 3 || !PyDict_Check(a[1]))
        return PyErr_Format(PyExc_TypeError, "call() takes stream, calls, arguments");
    Reading r;
    Holes holes;
    PyObject *plan = NULL, *entry = NULL;
    start_reading(&r, NULL);
    int known = untouched(c->watch) && read_passed(&r, &holes, a[2], c->constants, c->kinds)
        && (plan = found_in(c, a[1], &r)) != NULL
        && (entry = item_of(c->entries, PyTuple_GetItem(plan, LAUNCHED))) != NULL;
    PyObject *out = known ? run_call(c, &r, &holes, plan, entry, a[0], a[2]) : not_here();
    Py_XDECREF(plan);
    Py_XDECREF(entry);
    return out;
}

/* ---------------------------------------------------------------- keeping calls */

/* The recipes of outputs, completed by position and signature. NULL, perhaps without an error, where an output of the
   launch cannot be read. given: function, arguments, arguments by keyword and fill of each */
static PyObject *completed(LaunchCache *c, PyObject *given, PyObject *passed, PyObject *launched, PyObject *kept)
{
    Py_ssize_t k = 0, n = PyTuple_Size(given);
    PyObject *out = PyTuple_New(n);
    for (Py_ssize_t i = 0; out != NULL && i < PyTuple_Size(passed) && k < n; i++) {
        Reading one;
        if (PyTuple_GetItem(passed, i) != Py_None || PyBytes_AsString(c->constants)[i])
            continue;
        PyObject *g = PyTuple_GetItem(given, k), *bytes;
        if (!read_made(&one, PyTuple_GetItem(launched, i), c->kinds, kept) || (bytes = signature_of(&one)) == NULL)
            break;
        PyObject *recipe = Py_BuildValue("(nNOOOO)", i, bytes, PyTuple_GetItem(g, 0), PyTuple_GetItem(g, 1),
                                         PyTuple_GetItem(g, 2), PyTuple_GetItem(g, 3));
        if (recipe == NULL)
            break;
        PyTuple_SetItem(out, k++, recipe);
    }
    if (k < n)
        Py_CLEAR(out);
    return out;
}

PyObject *cache_keep_call(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    LaunchCache *c = (LaunchCache *)self;
    if (n != 8 || !PyDict_Check(a[0]) || !PyTuple_CheckExact(a[3]) || !PyLong_CheckExact(a[4])
        || !PyTuple_CheckExact(a[7]))
        return PyErr_Format(PyExc_TypeError, "keep_call() takes calls, arguments, those of the launch, grid, the "
                                             "position of the first array, what gives the stream, GPU, recipes");
    Reading call, launched;
    Holes holes;
    PyObject *key = NULL, *to = NULL, *plan = NULL, *recipes = NULL, *out = NULL;
    start_reading(&call, PyList_New(0));
    start_reading(&launched, NULL);
    if (call.kept == NULL)
        return NULL;
    if (!read_passed(&call, &holes, a[1], c->constants, c->kinds) || holes.count != PyTuple_Size(a[7])
        || !read_all(&launched, a[2], c->constants, c->kinds)
        || call.n_values + holes.count != launched.n_values /* an argument that calls leave out is a launch value */
        || (recipes = completed(c, a[7], a[1], a[2], call.kept)) == NULL)
        out = not_here() == NULL ? NULL : Py_NewRef(Py_False);
    else if ((key = signature_of(&call)) != NULL && (to = signature_of(&launched)) != NULL
             && (plan = PyTuple_Pack(CALL_ITEMS, to, a[3], a[4], a[5], a[6], recipes, call.kept)) != NULL) {
        if (PyDict_Size(a[0]) >= c->capacity)
            PyDict_Clear(a[0]);
        if (PyDict_SetItem(a[0], key, plan) == 0)
            out = Py_NewRef(Py_True);
        forget_recent(c);
    }
    Py_XDECREF(key);
    Py_XDECREF(to);
    Py_XDECREF(plan);
    Py_XDECREF(recipes);
    Py_DECREF(call.kept);
    return out;
}

int start_calls(void)
{
    n_fill = PyUnicode_InternFromString("fill");
    return n_fill != NULL;
}
