/* Calls of functions made by ct.jit: launches whose grid, stream and outputs follow from the arguments.

   A function keeps its calls in a dictionary, by the signature of what callers pass. In the place of an output that the
   call is to make stands None. A call makes these outputs with the function of their library, as its recipe says, reads
   them, and runs the launch that a call with such arguments ran before. Where an output is not as it was then, for
   example at an address with other alignment, it is given back and the call left to Python. */

#include "_launcher.h"

enum { MADE = 255 }; /* first part of an output to make */

/* Of a call: the signature of its launch, an entry of the LaunchCache; the grid; the position of the first array, or of
   an output where there is no array; where the current stream comes from; the first array's GPU; recipes of outputs;
   what fills outputs that callers give: position and function of each; what the signature has addresses of. STREAM_OF
   is
   - a function, called with the first array, if GPU is None,
   - a function of CuPy, called with GPU, which gives an object whose attribute `ptr` is the stream,
   - the address of a DeviceStream of GPU. */
enum { POSITION, SIGNATURE, FUNCTION, ARGUMENTS, NAMED, FILL, RECIPE_ITEMS }; /* of a recipe */

static PyObject *n_fill, *n_ptr;

typedef struct { /* where outputs belong */
    int count;
    int before[MOST_OUTPUTS]; /* launch values of other arguments before each */
} Holes;

/* Reads what a caller passes. */
static int read_passed(Reading *r, Holes *holes, PyObject *const *args, int n, PyObject *constants, PyObject *kinds)
{
    char *flags;
    Py_ssize_t size;
    holes->count = 0;
    if (PyBytes_AsStringAndSize(constants, &flags, &size) < 0 || size != n)
        return NO;
    for (int i = 0; i < n; i++) {
        int ok;
        if (flags[i])
            ok = read_constant(r, args[i]);
        else if (args[i] != Py_None)
            ok = read_argument(r, args[i], kinds);
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

static PyObject *output_of(PyObject *recipe, PyObject *first)
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

/* Makes the outputs; NO, perhaps without an error, where one of them is not as in the call that was kept. */
static int make_outputs(LaunchCache *c, Reading *r, const Holes *holes, PyObject *plan, PyObject **args, int n,
                        PyObject **made)
{
    Reading one;
    PyObject *recipes = PyTuple_GetItem(plan, RECIPES), *first = args[PyLong_AsSsize_t(PyTuple_GetItem(plan, FIRST))];
    for (int k = 0; k < holes->count; k++) {
        PyObject *recipe = PyTuple_GetItem(recipes, k);
        Py_ssize_t size, at = PyLong_AsSsize_t(PyTuple_GetItem(recipe, POSITION));
        char *bytes;
        if (at < 0 || at >= n || (made[k] = output_of(recipe, first)) == NULL)
            return NO;
        made[k + 1] = NULL;
        args[at] = made[k];
        if (!read_made(&one, made[k], c->kinds, NULL)
            || PyBytes_AsStringAndSize(PyTuple_GetItem(recipe, SIGNATURE), &bytes, &size) < 0
            || size != one.n_parts * (Py_ssize_t)sizeof *one.parts || memcmp(bytes, one.parts, (size_t)size) != 0
            || !insert_value(r, holes->before[k] + k, one.values[0], made[k]))
            return NO;
    }
    return YES;
}

/* Fills outputs of the caller. Where the launch is left to Python after all, that fills them again. */
static int fill_given(PyObject *fillers, PyObject *const *args)
{
    for (Py_ssize_t i = 0; i + 1 < PyTuple_Size(fillers); i += 2) {
        PyObject *a = args[PyLong_AsSsize_t(PyTuple_GetItem(fillers, i))];
        PyObject *done = PyObject_CallFunctionObjArgs(PyTuple_GetItem(fillers, i + 1), a, NULL);
        Py_XDECREF(done);
        if (done == NULL)
            return NO;
    }
    return YES;
}

static int current_stream(PyObject *plan, PyObject *const *args, PyObject *readers, uint64_t *out)
{
    PyObject *of = PyTuple_GetItem(plan, STREAM_OF), *gpu = PyTuple_GetItem(plan, GPU), *stream, *number = NULL;
    if (PyLong_CheckExact(of)) {
        void *found = NULL;
        DeviceStream function = (DeviceStream)(uintptr_t)PyLong_AsUnsignedLongLong(of);
        if (function(DLPACK_CUDA, (int32_t)PyLong_AsLong(gpu), &found) != 0)
            return NO;
        *out = (uintptr_t)found;
        return PyErr_Occurred() == NULL;
    }
    if (gpu == Py_None) {
        stream = PyObject_CallFunctionObjArgs(of, args[PyLong_AsSsize_t(PyTuple_GetItem(plan, FIRST))], NULL);
        int ok = stream != NULL && read_stream(stream, readers, out);
        Py_XDECREF(stream);
        return ok;
    }
    if ((stream = PyObject_CallFunctionObjArgs(of, gpu, NULL)) != NULL)
        number = PyObject_GetAttr(stream, n_ptr);
    *out = number == NULL ? 0 : PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    Py_XDECREF(stream);
    return PyErr_Occurred() == NULL;
}

/* The stream of a launch. given: a stream, or None for the current one of the library, on which that also makes and
   fills outputs: where these are to be made or filled on another one, the call is not for here. */
static int find_stream(PyObject *plan, PyObject *given, int outputs, PyObject *const *args, PyObject *readers,
                       uint64_t *out)
{
    uint64_t current;
    if (given == Py_None)
        return current_stream(plan, args, readers, out);
    return read_stream(given, readers, out)
        && (!outputs || (current_stream(plan, args, readers, &current) && current == *out));
}

static PyObject *run_found(LaunchCache *c, Reading *r, const Holes *holes, PyObject *plan, PyObject *entry,
                           PyObject *given, PyObject **args, int n, PyObject **made)
{
    PyObject *fillers = PyTuple_GetItem(plan, FILLERS), *passed[MOST_ARGUMENTS];
    int outputs = holes->count > 0 || PyTuple_Size(fillers) > 0;
    unsigned grid[3];
    uint64_t stream = 0;
    if (!read_grid(PyTuple_GetItem(plan, GRID), c->grid_limit, grid) || (outputs && !may_launch(entry))
        || !(is_on_host(entry) ? is_host_stream(given)
                               : find_stream(plan, given, outputs, args, PyTuple_GetItem(entry, STREAMS), &stream)))
        return not_here();
    memcpy(passed, args, (size_t)n * sizeof *passed);
    if (outputs && !(make_outputs(c, r, holes, plan, args, n, made) && fill_given(fillers, args)))
        return not_here();
    PyObject *out = launch_entry(c, entry, r, stream, grid, args, passed);
    if (out == NULL || out == Py_None || out == Py_NotImplemented)
        return out;
    Py_DECREF(out); /* the driver refused it: Python launches again, and explains */
    return not_here();
}

PyObject *run_call(LaunchCache *c, PyObject *given, PyObject *calls, PyObject **args, int n, PyObject **made)
{
    Reading r;
    Holes holes;
    PyObject *plan = NULL, *entry = NULL;
    made[0] = NULL;
    start_reading(&r, NULL);
    int known = untouched(c->watch) && read_passed(&r, &holes, args, n, c->constants, c->kinds)
        && (plan = found_in(c, calls, &r, &entry)) != NULL;
    PyObject *out = known ? run_found(c, &r, &holes, plan, entry, given, args, n, made) : not_here();
    Py_XDECREF(plan);
    Py_XDECREF(entry);
    return out;
}

/* ---------------------------------------------------------------- keeping calls */

/* The recipes of outputs, completed by position and signature. NULL, perhaps without an error, where an output of the
   launch cannot be read. given: function, arguments, arguments by keyword and fill of each */
static PyObject *completed(LaunchCache *c, PyObject *given, PyObject *const *passed, int n_passed,
                           PyObject *const *launched, PyObject *kept)
{
    Py_ssize_t k = 0, n = PyTuple_Size(given);
    PyObject *out = PyTuple_New(n);
    for (int i = 0; out != NULL && i < n_passed && k < n; i++) {
        Reading one;
        if (passed[i] != Py_None || PyBytes_AsString(c->constants)[i])
            continue;
        PyObject *g = PyTuple_GetItem(given, k), *bytes;
        if (!read_made(&one, launched[i], c->kinds, kept) || (bytes = signature_of(&one)) == NULL)
            break;
        PyObject *recipe = Py_BuildValue("(iNOOOO)", i, bytes, PyTuple_GetItem(g, 0), PyTuple_GetItem(g, 1),
                                         PyTuple_GetItem(g, 2), PyTuple_GetItem(g, 3));
        if (recipe == NULL)
            break;
        PyTuple_SetItem(out, k++, recipe);
    }
    if (k < n)
        Py_CLEAR(out);
    return out;
}

/* Whether they stand behind positions of arguments. */
static int are_fillers(PyObject *fillers, int count)
{
    Py_ssize_t n = PyTuple_Size(fillers);
    for (Py_ssize_t i = 0; i < n; i += 2)
        if (i + 1 == n || !PyLong_CheckExact(PyTuple_GetItem(fillers, i))
            || (size_t)PyLong_AsSsize_t(PyTuple_GetItem(fillers, i)) >= (size_t)count)
            return NO;
    return YES;
}

PyObject *cache_keep_call(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    LaunchCache *c = (LaunchCache *)self;
    PyObject *passed[MOST_ARGUMENTS], *all[MOST_ARGUMENTS];
    int count = n == 9 ? items_of(a[1], passed) : -1;
    if (count < 0 || items_of(a[2], all) != count || !PyDict_Check(a[0]) || !PyTuple_CheckExact(a[3])
        || !PyLong_CheckExact(a[4]) || (size_t)PyLong_AsSsize_t(a[4]) >= (size_t)count
        || !PyTuple_CheckExact(a[7]) || !PyTuple_CheckExact(a[8]) || !are_fillers(a[8], count))
        return PyErr_Format(PyExc_TypeError, "keep_call() takes calls, arguments, those of the launch, grid, the "
                                             "position of the first array, what gives the stream, GPU, recipes, "
                                             "fillers");
    Reading call, launched;
    Holes holes;
    PyObject *key = NULL, *to = NULL, *plan = NULL, *recipes = NULL, *out = NULL;
    start_reading(&call, PyList_New(0));
    start_reading(&launched, NULL);
    if (call.kept == NULL)
        return NULL;
    if (!read_passed(&call, &holes, passed, count, c->constants, c->kinds) || holes.count != PyTuple_Size(a[7])
        || !read_all(&launched, all, count, c->constants, c->kinds)
        || call.n_values + holes.count != launched.n_values /* an argument that calls leave out is a launch value */
        || (recipes = completed(c, a[7], passed, count, all, call.kept)) == NULL)
        out = not_kept();
    else if ((key = signature_of(&call)) != NULL && (to = signature_of(&launched)) != NULL
             && (plan = PyTuple_Pack(CALL_ITEMS, to, a[3], a[4], a[5], a[6], recipes, a[8],
                                                 call.kept)) != NULL) {
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
    n_ptr = PyUnicode_InternFromString("ptr");
    return n_fill != NULL && n_ptr != NULL;
}
