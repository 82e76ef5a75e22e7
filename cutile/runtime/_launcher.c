/* Repeated launches, from the arguments to the driver's call, or to the interpreter's code, with no Python in between.

   A LaunchCache belongs to a kernel (runtime/launch_cache.py makes it) and has its launches by their signature. The
   signature says what of the arguments a launch depends on: it is cheaper and finer than the key of
   runtime/launch_key.py, which says what its parts mean. `launch` looks a launch up, checks that the dependencies of
   its program are unchanged, and goes on in _device_launch.c, or for arrays in CPU memory in _host_launch.c.
   _prepared.c has launches whose arguments were read beforehand, _functions.c and _calls.c have calls of functions.
   Whatever is out of the ordinary is left to Python, before anything is done.
*/

#include "_launcher.h"

static PyObject *n_requires_grad, *n_current_level;

PyObject *not_here(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    return Py_NewRef(Py_NotImplemented);
}

PyObject *not_kept(void)
{
    PyObject *answer = not_here();
    Py_XDECREF(answer);
    return answer == NULL ? NULL : Py_NewRef(Py_False);
}

/* ---------------------------------------------------------------- launching */

int read_grid(PyObject *grid, long limit, unsigned *out)
{
    if (!PyTuple_CheckExact(grid) || PyTuple_Size(grid) > 3)
        return NO;
    out[0] = out[1] = out[2] = 1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(grid); i++) {
        PyObject *o = PyTuple_GetItem(grid, i);
        int overflow;
        long long blocks = PyLong_CheckExact(o) ? PyLong_AsLongLongAndOverflow(o, &overflow) : 0;
        if (blocks < 1 || blocks > limit)
            return NO;
        out[i] = (unsigned)blocks;
    }
    return YES;
}

static int is_there(PyObject *container, PyObject *key, PyObject *object)
{
    if (PyDict_CheckExact(container)) {
        PyObject *item = PyDict_GetItemWithError(container, key); /* lent, but only compared */
        return object == container ? item == NULL && PyErr_Occurred() == NULL : item == object;
    }
    PyObject *found = PyObject_GetAttr(container, key);
    Py_XDECREF(found);
    return found == object;
}

/* comparisons: as Dependencies.comparisons() makes them (front/dependencies.py), or a function that says whether all
   dependencies are unchanged */
static int unchanged(PyObject *comparisons)
{
    if (!PyTuple_CheckExact(comparisons)) {
        PyObject *answer = PyObject_CallNoArgs(comparisons);
        Py_XDECREF(answer);
        return answer == Py_True;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(comparisons); i += 3)
        if (!is_there(PyTuple_GetItem(comparisons, i), PyTuple_GetItem(comparisons, i + 1),
                      PyTuple_GetItem(comparisons, i + 2)))
            return NO;
    return YES;
}

int untouched(PyObject *watch)
{
    if (PyByteArray_AsString(PyTuple_GetItem(watch, 0))[0]) { /* otherwise nothing has ever been overridden */
        PyObject *overrides = PyObject_CallNoArgs(PyTuple_GetItem(watch, 1));
        Py_ssize_t n = overrides == NULL ? -1 : PyObject_Size(overrides);
        Py_XDECREF(overrides);
        if (n != 0)
            return NO;
    }
    PyObject *environ = PyDict_GetItemWithError(PyTuple_GetItem(watch, 2), PyTuple_GetItem(watch, 3));
    if (environ != PyTuple_GetItem(watch, 4))
        return NO;
    for (Py_ssize_t i = 6; i < PyTuple_Size(watch); i++)
        if (PyDict_GetItemWithError(PyTuple_GetItem(watch, 5), PyTuple_GetItem(watch, i)) != NULL)
            return NO;
    return PyErr_Occurred() == NULL;
}

int read_stream(PyObject *stream, PyObject *readers, uint64_t *out)
{
    PyObject *reader = item_of(readers, (PyObject *)Py_TYPE(stream)), *number;
    if (reader == NULL)
        return NO;
    number = PyLong_CheckExact(stream) ? Py_NewRef(stream) : PyObject_CallFunctionObjArgs(reader, stream, NULL);
    *out = number == NULL ? 0 : PyLong_AsUnsignedLongLong(number);
    Py_DECREF(reader);
    Py_XDECREF(number);
    return PyErr_Occurred() == NULL;
}

int told(PyObject *written, PyObject *const *args, PyObject *const *passed)
{
    if (written == Py_None)
        return YES;
    PyObject *level = item_of(PyTuple_GetItem(written, 2), n_current_level);
    int open = level != NULL && PyLong_AsLong(level) >= 0;
    Py_XDECREF(level);
    if (open)
        return NO; /* Python looks for tangents */
    PyObject *tensors = PyList_New(0);
    int ok = tensors != NULL;
    for (Py_ssize_t i = 3; ok && i < PyTuple_Size(written); i++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(written, i));
        if (passed[at] == Py_None)
            continue;
        PyObject *t = args[at], *needs = PyObject_GetAttr(t, n_requires_grad);
        Py_XDECREF(needs);
        if (needs == Py_True) {
            needs = PyObject_CallNoArgs(PyTuple_GetItem(written, 1));
            Py_XDECREF(needs);
        }
        ok = needs == Py_False && PyList_Append(tensors, t) == 0;
    }
    if (ok && PyList_Size(tensors) > 0) {
        PyObject *done = PyObject_CallFunctionObjArgs(PyTuple_GetItem(written, 0), tensors, NULL);
        ok = done != NULL;
        Py_XDECREF(done);
    }
    Py_XDECREF(tensors);
    return ok;
}

static PyObject *unfollowed(PyObject *Py_UNUSED(self), PyObject *const *a, Py_ssize_t n)
{
    if (n != 5 || !PyTuple_CheckExact(a[0]) || !PyBytes_CheckExact(a[1]))
        return PyErr_Format(PyExc_TypeError, "unfollowed() takes arguments, bytes, two sets and a number");
    const char *arrays = PyBytes_AsString(a[1]);
    Py_ssize_t count = PyTuple_Size(a[0]), known = PyBytes_Size(a[1]);
    int ok = 1;
    for (Py_ssize_t i = 0; ok == 1 && i < count && i < known; i++) {
        PyObject *value = PyTuple_GetItem(a[0], i);
        ok = PySet_Contains(a[arrays[i] ? 2 : 3], (PyObject *)Py_TYPE(value));
        if (ok == 1 && arrays[i] && a[4] == Py_True) {
            PyObject *needs = PyObject_GetAttr(value, n_requires_grad);
            ok = needs == NULL ? -1 : needs == Py_False;
            Py_XDECREF(needs);
        }
    }
    return ok < 0 ? NULL : PyBool_FromLong(ok);
}

/* ---------------------------------------------------------------- LaunchCache */

static PyObject *cache_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"constants", "watch", "host_watch", "grid_limit", "capacity", NULL};
    PyObject *constants, *watch, *host_watch;
    long grid_limit;
    Py_ssize_t capacity;
    if (!PyArg_ParseTupleAndKeywords(args, names, "SO!O!ln", keywords, &constants, &PyTuple_Type, &watch,
                                     &PyTuple_Type, &host_watch, &grid_limit, &capacity))
        return NULL;
    LaunchCache *c = (LaunchCache *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (c == NULL)
        return NULL;
    c->constants = Py_NewRef(constants);
    c->watch = Py_NewRef(watch);
    c->host_watch = Py_NewRef(host_watch);
    c->grid_limit = grid_limit;
    c->capacity = capacity;
    c->entries = PyDict_New();
    c->kinds = PyDict_New();
    if (c->entries == NULL || c->kinds == NULL)
        Py_CLEAR(c);
    return (PyObject *)c;
}

static int cache_traverse(PyObject *self, visitproc visit, void *arg)
{
    LaunchCache *c = (LaunchCache *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c->entries);
    Py_VISIT(c->kinds);
    Py_VISIT(c->constants);
    Py_VISIT(c->watch);
    Py_VISIT(c->host_watch);
    return visit_recent(c, visit, arg);
}

static int cache_clear(PyObject *self)
{
    LaunchCache *c = (LaunchCache *)self;
    forget_recent(c);
    Py_CLEAR(c->entries);
    Py_CLEAR(c->kinds);
    Py_CLEAR(c->constants);
    Py_CLEAR(c->watch);
    Py_CLEAR(c->host_watch);
    return 0;
}

static void cache_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    cache_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static Py_ssize_t cache_length(PyObject *self)
{
    return PyDict_Size(((LaunchCache *)self)->entries);
}

/* Reads a tuple of arguments, to `out`; `entry` becomes that of their signature, NULL where there is none. */
static int find(LaunchCache *c, Reading *r, PyObject *args, PyObject **out, PyObject **entry)
{
    start_reading(r, NULL);
    if (!read_all(r, out, items_of(args, out), c->constants, c->kinds))
        return NO;
    *entry = found_in(c, c->entries, r, NULL);
    return *entry != NULL || PyErr_Occurred() == NULL;
}

static PyObject *cache_lookup(PyObject *self, PyObject *args)
{
    Reading r;
    PyObject *entry, *all[MOST_ARGUMENTS];
    if (!find((LaunchCache *)self, &r, args, all, &entry))
        return not_here();
    PyObject *out = Py_NewRef(entry == NULL ? Py_None : PyTuple_GetItem(entry, PREPARED));
    Py_XDECREF(entry);
    return out;
}

static PyObject *cache_signature(PyObject *self, PyObject *args)
{
    LaunchCache *c = (LaunchCache *)self;
    Reading r;
    PyObject *all[MOST_ARGUMENTS];
    start_reading(&r, NULL);
    if (!read_all(&r, all, items_of(args, all), c->constants, c->kinds))
        return not_here();
    return Py_BuildValue("(Ny#)", signature_of(&r), (const char *)r.values, r.n_values * (Py_ssize_t)sizeof(Value));
}

static PyObject *cache_insert(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    LaunchCache *c = (LaunchCache *)self;
    if (n != 7 || !(a[6] == Py_None ? PyDict_CheckExact(a[1]) : PyBytes_CheckExact(a[1]))
        || (a[4] != Py_None && !PyTuple_CheckExact(a[4]))
        || (a[5] != Py_None && !PyList_CheckExact(a[5])))
        return PyErr_Format(PyExc_TypeError, "insert() takes arguments, record, comparisons, prepared launch, written, "
                                             "choices, streams");
    Reading r;
    PyObject *key = NULL, *entry = NULL, *out = NULL, *all[MOST_ARGUMENTS];
    start_reading(&r, PyList_New(0));
    if (r.kept == NULL)
        return NULL;
    if (!read_all(&r, all, items_of(a[0], all), c->constants, c->kinds))
        out = not_kept();
    else if ((key = signature_of(&r)) != NULL
             && (entry = PyTuple_Pack(ITEMS, a[1], a[2], a[3], a[4], a[5], a[6], r.kept)) != NULL) {
        if (PyDict_Size(c->entries) >= c->capacity)
            PyDict_Clear(c->entries);
        if (PyDict_SetItem(c->entries, key, entry) == 0)
            out = Py_NewRef(Py_True);
        forget_recent(c);
    }
    Py_XDECREF(key);
    Py_XDECREF(entry);
    Py_DECREF(r.kept);
    return out;
}

/* Whether this thread rounds to nearest and keeps subnormals; _support/float_mode.py has the reasons. */
static int in_usual_mode(void)
{
    volatile double tiny = 5e-324, more = 0.75, less = 0.25;
    return tiny * more != 0 && tiny * less == 0;
}

/* A launch on arrays in CPU memory. The error is that of the code that ran. */
static PyObject *run_on_host(LaunchCache *c, PyObject *entry, const Reading *r, const unsigned *grid,
                             PyObject *const *args, PyObject *const *passed)
{
    PyObject *key = Py_BuildValue("(III)", grid[0], grid[1], grid[2]), *result = NULL;
    PyObject *record = key == NULL ? NULL : item_of(PyTuple_GetItem(entry, RECORD), key), *arguments = NULL;
    Py_XDECREF(key);
    if (record != NULL && in_usual_mode() && untouched(c->host_watch) && unchanged(PyTuple_GetItem(entry, COMPARISONS)))
        arguments = host_arguments(record, r);
    int ready = arguments != NULL && told(PyTuple_GetItem(entry, WRITTEN), args, passed);
    if (ready)
        result = launch_on_host(record, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(record);
    if (!ready)
        return not_here();
    Py_XDECREF(result);
    return result == NULL ? NULL : Py_NewRef(Py_None);
}

int is_on_host(PyObject *entry)
{
    return PyTuple_GetItem(entry, STREAMS) == Py_None;
}

int is_host_stream(PyObject *stream)
{
    return stream == Py_None || (PyLong_CheckExact(stream) && (PyLong_AsUnsignedLongLong(stream), !PyErr_Occurred()));
}

int may_launch(PyObject *entry)
{
    return is_on_host(entry) || has_context(PyTuple_GetItem(entry, RECORD));
}

PyObject *launch_entry(LaunchCache *c, PyObject *entry, const Reading *r, uint64_t stream, const unsigned *grid,
                       PyObject *const *args, PyObject *const *passed)
{
    if (is_on_host(entry))
        return run_on_host(c, entry, r, grid, args, passed);
    uint64_t function = 0;
    int code = unchanged(PyTuple_GetItem(entry, COMPARISONS))
            && choose(PyTuple_GetItem(entry, CHOICES), grid, &function)
            && told(PyTuple_GetItem(entry, WRITTEN), args, passed)
        ? launch_on_device(PyTuple_GetItem(entry, RECORD), r, grid, function, stream) : -1;
    if (code == 0)
        return Py_NewRef(Py_None);
    return code == -1 ? not_here() : Py_BuildValue("(iO)", code, PyTuple_GetItem(entry, PREPARED));
}

static PyObject *cache_launch(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    LaunchCache *c = (LaunchCache *)self;
    if (n != 3)
        return PyErr_Format(PyExc_TypeError, "launch() takes stream, grid, arguments");
    Reading r;
    unsigned grid[3];
    uint64_t stream = 0;
    PyObject *entry, *args[MOST_ARGUMENTS];
    if (!untouched(c->watch) || !read_grid(a[1], c->grid_limit, grid) || !find(c, &r, a[2], args, &entry)
        || entry == NULL)
        return not_here();
    PyObject *out = (is_on_host(entry) ? is_host_stream(a[0])
                                       : read_stream(a[0], PyTuple_GetItem(entry, STREAMS), &stream))
        ? launch_entry(c, entry, &r, stream, grid, args, args) : not_here();
    Py_DECREF(entry);
    return out;
}

static PyObject *cache_kinds(PyObject *self, void *unused)
{
    return Py_NewRef(((LaunchCache *)self)->kinds);
}

static PyMethodDef cache_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))cache_launch, METH_FASTCALL,
     "launch(stream, grid, arguments) -> None where the launch was found and queued, (the driver's error, prepared\n"
     "launch) where the driver refused it, or NotImplemented, with nothing done"},
    {"keep_call", (PyCFunction)(void (*)(void))cache_keep_call, METH_FASTCALL,
     "keep_call(calls, arguments, launched, grid, first, stream_of, gpu, recipes, fillers) -> whether calls with\n"
     "arguments like these were put into a dictionary. arguments: None for outputs to make;  launched: those of\n"
     "their launch, which differ also where a constant was left out;  first, stream_of, gpu, fillers: as in\n"
     "_calls.c;  recipes: for each output to make a function, its arguments (None: it takes the first array), those\n"
     "by keyword or None, and what to fill it with or None"},
    {"lookup", cache_lookup, METH_O,
     "lookup(arguments) -> the prepared launch for arguments like these or None; NotImplemented for unusual ones"},
    {"insert", (PyCFunction)(void (*)(void))cache_insert, METH_FASTCALL,
     "insert(arguments, record, comparisons, prepared launch, written, choices, streams) -> whether arguments like\n"
     "these can be found. record: of the prepared launch, bytes for a GPU, a dict by grid on the host;  comparisons:\n"
     "Dependencies.comparisons();  written: autograd.for_c();  choices: of the prepared launch;  streams: what reads\n"
     "a stream, by class (gpu/streams.py), None on the host"},
    {"signature", cache_signature, METH_O,
     "signature(arguments) -> (signature, launch values), each as bytes, or NotImplemented for unusual ones"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef cache_attributes[] = {
    {"kinds", cache_kinds, NULL, "How arguments are read, by class: a kind, or what `lender` gave.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot cache_slots[] = {
    {Py_tp_doc, "LaunchCache(constants, watch, host_watch, grid_limit, capacity): launches of a kernel, by signature"},
    {Py_tp_new, cache_new}, {Py_tp_traverse, cache_traverse}, {Py_tp_clear, cache_clear},
    {Py_tp_dealloc, cache_dealloc}, {Py_mp_length, cache_length}, {Py_tp_methods, cache_methods},
    {Py_tp_getset, cache_attributes}, {0, NULL}};

static PyType_Spec cache_spec = {"cutile.runtime._launcher.LaunchCache", sizeof(LaunchCache), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, cache_slots};

/* ---------------------------------------------------------------- the module */

static PyMethodDef methods[] = {
    {"lender", lender, METH_O,
     "lender(capsule) -> the address of a function that lends tensors, from a class's __dlpack_c_exchange_api__,\n"
     "or None"},
    {"torch_shims", torch_shims, METH_VARARGS,
     "torch_shims(addresses, place, plain, cpu, gpu): the functions by which TORCH_SHIM is read (c_readers.py names\n"
     "them), where in a Python object the tensor of C++ is, in bytes, the first word of the object that it points to\n"
     "if its class is the plain one, and what they say of devices"},
    {"cupy_fields", cupy_fields, METH_VARARGS,
     "cupy_fields(array, memory, places): where objects of these classes have what CUPY_FIELDS reads, in bytes: the\n"
     "vectors of sizes and strides, dtype, memory; in that the address, and the number of the GPU"},
    {"streams_of", streams_of, METH_O,
     "streams_of(capsule) -> the address of a function that gives the current stream of a GPU, from the same, or None"},
    {"array_on_gpu", (PyCFunction)(void (*)(void))array_on_gpu, METH_FASTCALL,
     "array_on_gpu(kinds, array) -> bytes that tell its dtype, sizes, strides, GPU and alignment, and its address;\n"
     "NotImplemented for one that is not in GPU memory, or that is unusual. kinds: as in read_roles"},
    {"read_roles", (PyCFunction)(void (*)(void))read_roles, METH_FASTCALL,
     "read_roles(kinds, how, readers, first, arguments) -> (key, roots) of a call of an algorithm (compute/roles.py).\n"
     "kinds: how arrays are read, by class: TORCH_SHIM, CUPY_FIELDS, or what `lender` gave; and numbers of dtypes\n"
     "of CuPy;  how: for each argument what is read here, of MAY_BE_ARRAY (an array in GPU memory, or a NumPy array\n"
     "with one axis), IS_WRITTEN (a writable one), MAY_BE_INT and MAY_BE_NONE;  readers: what reads all else, given\n"
     "argument, key and roots;  first: the first item of the key. What a reader raises is raised"},
    {"apart", (PyCFunction)(void (*)(void))apart, METH_FASTCALL,
     "apart(pairs, roots) -> whether no pair of lines of memory shares any (compute/overlaps.py)"},
    {"run_steps", (PyCFunction)(void (*)(void))run_steps, METH_FASTCALL,
     "run_steps(steps, roots, stream, memory, streams) -> how many of the first steps of a plan ran\n"
     "(compute/plans.py); the next one is left to Python. steps: each bytes, pairs of lines of memory that are to be\n"
     "apart, or a Prepared and its sources, or a function of roots and stream, whose error is raised;  memory: empty,\n"
     "or what temporary storage is allocated with, whose address roots get, and which is freed where all steps ran;\n"
     "streams: what reads a stream, by class"},
    {"call_algorithm", (PyCFunction)(void (*)(void))call_algorithm, METH_FASTCALL,
     "call_algorithm(kinds, how, readers, first, arguments, plans, storage, stream) -> the plan of a call, if all of\n"
     "it ran; else (key, roots, steps that ran, plan or None), with storage among the roots if steps ran; None for a\n"
     "call that cannot be read. plans: by key, each with an attribute `for_c`: None, or steps, memory and streams as\n"
     "run_steps takes them, what divides addresses of storage, and `written` as insert() takes it; and with\n"
     "`large_enough`: what array_on_gpu says of storage that may be used;  storage: the user's, or None"},
    {"unfollowed", (PyCFunction)(void (*)(void))unfollowed, METH_FASTCALL,
     "unfollowed(arguments, arrays, tensors, others, grad) -> whether all are of known classes, and autograd follows\n"
     "none. arrays: a byte for each parameter, 1 for an array;  tensors: the classes of arrays;  others: of all else;\n"
     "grad: whether grad mode is on"},
    {"is_current", (PyCFunction)(void (*)(void))is_current, METH_FASTCALL,
     "is_current(current, context) -> whether a context is current in this thread: the address of cuCtxGetCurrent,\n"
     "and the context's handle"},
    {"record", device_record, METH_VARARGS,
     "record(launch, current, function, context, image, how) -> a launch as insert() takes it: addresses of\n"
     "cuLaunchKernel and cuCtxGetCurrent, handles, the first 8 bytes of each parameter, and for each a byte that says\n"
     "how it is written: FIXED, or from a launch value as BITS64, BITS32 or FLOAT32"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_launcher", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__launcher(void)
{
    static const struct { const char *name; int value; } numbers[] = {
        {"BOOL", BOOL}, {"INT", INT}, {"FLOAT", FLOAT}, {"TORCH", TORCH}, {"TORCH_SHIM", TORCH_SHIM},
        {"CUPY", CUPY}, {"CUPY_FIELDS", CUPY_FIELDS}, {"NUMPY", NUMPY}, {"FIXED", FIXED},
        {"BITS64", BITS64}, {"BITS32", BITS32}, {"FLOAT32", FLOAT32}, {"PARAMETERS", PARAMETERS},
        {"CHOICES", CHOICES}, {"MAY_BE_ARRAY", MAY_BE_ARRAY}, {"MAY_BE_INT", MAY_BE_INT},
        {"MAY_BE_NONE", MAY_BE_NONE}, {"IS_WRITTEN", IS_WRITTEN}};
    if ((n_requires_grad = PyUnicode_InternFromString("requires_grad")) == NULL
        || (n_current_level = PyUnicode_InternFromString("_current_level")) == NULL || !start_arguments())
        return NULL;
    PyObject *m = PyModule_Create(&module), *cache = PyType_FromSpec(&cache_spec);
    PyObject *prepared = PyType_FromSpec(&prepared_spec);
    int ok = m != NULL && NEEDS_NO_GIL(m) == 0 && start_host_launches() && start_calls() && cache != NULL
        && start_algorithms(prepared)
        && PyModule_AddObjectRef(m, "LaunchCache", cache) == 0 && prepared != NULL
        && PyModule_AddObjectRef(m, "Prepared", prepared) == 0 && add_entries(m, cache)
        && add_callables(m);
    for (size_t i = 0; ok && i < sizeof numbers / sizeof *numbers; i++)
        ok = PyModule_AddIntConstant(m, numbers[i].name, numbers[i].value) == 0;
    Py_XDECREF(cache);
    Py_XDECREF(prepared);
    if (!ok)
        Py_CLEAR(m);
    return m;
}
