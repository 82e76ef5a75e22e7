/* A launch like one before, from the arguments to the driver's call, with no Python in between.

   signature() says what of the arguments a launch depends on: it is cheaper and finer than the key of launch_key.py, which
   says what the parts mean. launch() looks a signature up among those that cutile/runtime/launch_cache.py remembered, sees that what
   the kernel read from outside is unchanged and that the GPU's context is current, writes addresses and numbers to
   their places, and calls the driver. Whatever is out of the ordinary it leaves to Python, before anything is done.
*/

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { PARTS = 512, WORDS = 128, BYTES = 4096, PARAMETERS = 512 };
enum { BOOL = 1, INT, FLOAT, TORCH, CUPY };              /* kinds of arguments, as in launch_cache.py */
enum { WIDE = 64, CONSTANT_INT, CONSTANT_FLOAT, CONSTANT };  /* more first parts of an argument's signature */
enum { WORD64, WORD32, WORD_FLOAT32 };                   /* how a word is written, as in launch_cache.py */
enum { YES = 1, NO = 0 };                                /* NO also where a Python error is set */

typedef union { uint64_t bits; double number; } Word;

typedef struct {
    uint64_t parts[PARTS];
    Word words[WORDS];
    int n_parts, n_words;
    PyObject *kept; /* a list of what the parts have addresses of, or NULL */
} Reading;

typedef struct { /* what launch_cache.py packs; offsets, slots and the first bytes of all parameters follow */
    uint64_t launch, current, function, context;
    uint32_t n_parameters, n_slots, n_bytes, unused;
} Head;

typedef struct { uint32_t offset, how; } Slot;

typedef struct { int32_t type, id; } Device; /* as DLPack defines them, version 1 */
typedef struct { uint8_t code, bits; uint16_t lanes; } DataType;
typedef struct {
    void *data;
    Device device;
    int32_t rank;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;
typedef int (*Borrow)(void *, Tensor *);
typedef struct {
    uint32_t major, minor;
    void *previous, *allocate, *export, *import;
    Borrow borrow;
} Exchange;
enum { DLPACK_MAJOR = 1, DLPACK_CUDA = 2 };

typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);
typedef int (*Current)(void **);

static PyObject *n_data, *n_ptr, *n_device_id, *n_dtype, *n_shape, *n_strides, *n_is_cuda, *n_data_ptr, *n_stride,
    *n_get_device, *n_is_neg, *n_requires_grad;

/* ---------------------------------------------------------------- reading arguments */

static int part(Reading *r, uint64_t value)
{
    if (r->n_parts == PARTS)
        return NO;
    r->parts[r->n_parts++] = value;
    return YES;
}

static int word(Reading *r, uint64_t bits)
{
    if (r->n_words == WORDS)
        return NO;
    r->words[r->n_words++].bits = bits;
    return YES;
}

/* An object by its address, which is its own as long as it is kept. */
static int identity(Reading *r, PyObject *o)
{
    return part(r, (uintptr_t)o) && (r->kept == NULL || PyList_Append(r->kept, o) == 0);
}

/* Takes the reference; NO for NULL. */
static int taken_int(PyObject *o, uint64_t *out)
{
    if (o == NULL)
        return NO;
    *out = PyLong_AsUnsignedLongLongMask(o);
    Py_DECREF(o);
    return *out != UINT64_MAX || PyErr_Occurred() == NULL;
}

static int taken_identity(Reading *r, PyObject *o)
{
    int ok = o != NULL && identity(r, o);
    Py_XDECREF(o);
    return ok;
}

static int taken_ints(Reading *r, PyObject *o)
{
    int ok = o != NULL && PyTuple_Check(o) && part(r, (uint64_t)PyTuple_Size(o));
    for (Py_ssize_t i = 0; ok && i < PyTuple_Size(o); i++) {
        PyObject *item = PyTuple_GetItem(o, i);
        uint64_t value = PyLong_Check(item) ? (uint64_t)PyLong_AsLongLong(item) : 0;
        ok = PyLong_Check(item) && PyErr_Occurred() == NULL && part(r, value);
    }
    Py_XDECREF(o);
    return ok;
}

static PyObject *call(PyObject *o, PyObject *name)
{
    return PyObject_CallMethodObjArgs(o, name, NULL);
}

static int read_torch(Reading *r, PyObject *t)
{
    uint64_t pointer, device;
    PyObject *there = PyObject_GetAttr(t, n_is_cuda);
    Py_XDECREF(there);
    if (there != Py_True)
        return NO;
    PyObject *negated = call(t, n_is_neg);
    Py_XDECREF(negated);
    return negated == Py_False && part(r, TORCH) && taken_identity(r, PyObject_GetAttr(t, n_dtype))
        && taken_ints(r, PyObject_GetAttr(t, n_shape)) && taken_ints(r, call(t, n_stride))
        && taken_int(call(t, n_get_device), &device) && part(r, device)
        && taken_int(call(t, n_data_ptr), &pointer) && part(r, pointer & 15) && word(r, pointer);
}

static int numbers(Reading *r, const int64_t *n, int32_t count)
{
    int ok = n != NULL || count == 0;
    for (int32_t i = 0; ok && i < count; i++)
        ok = part(r, (uint64_t)n[i]);
    return ok;
}

/* A tensor of PyTorch as the library itself lends it to C code. */
static int read_borrowed(Reading *r, PyObject *t, Borrow borrow)
{
    Tensor d;
    PyObject *negated = call(t, n_is_neg);
    Py_XDECREF(negated);
    if (negated != Py_False || borrow(t, &d) != 0 || d.device.type != DLPACK_CUDA)
        return NO;
    uint64_t pointer = (uintptr_t)d.data + d.byte_offset;
    uint64_t dtype = d.dtype.code | (uint64_t)d.dtype.bits << 8 | (uint64_t)d.dtype.lanes << 16;
    return part(r, TORCH) && part(r, dtype) && part(r, (uint64_t)d.rank) && numbers(r, d.shape, d.rank)
        && numbers(r, d.strides, d.rank) && part(r, (uint64_t)d.device.id) && part(r, pointer & 15) && word(r, pointer);
}

static int read_cupy(Reading *r, PyObject *a)
{
    uint64_t pointer, device;
    PyObject *memory = PyObject_GetAttr(a, n_data);
    int ok = memory != NULL && taken_int(PyObject_GetAttr(memory, n_ptr), &pointer)
        && taken_int(PyObject_GetAttr(memory, n_device_id), &device);
    Py_XDECREF(memory);
    return ok && part(r, CUPY) && taken_identity(r, PyObject_GetAttr(a, n_dtype))
        && taken_ints(r, PyObject_GetAttr(a, n_shape)) && taken_ints(r, PyObject_GetAttr(a, n_strides))
        && part(r, device) && part(r, pointer & 15) && word(r, pointer);
}

static int read_float(Reading *r, PyObject *o, int constant)
{
    Word w = {.number = PyFloat_AsDouble(o)};
    return constant ? part(r, CONSTANT_FLOAT) && part(r, w.bits) : part(r, FLOAT) && word(r, w.bits);
}

static int read_int(Reading *r, PyObject *o, int constant)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
        return NO;
    if (constant)
        return part(r, CONSTANT_INT) && part(r, (uint64_t)value);
    return part(r, value == (int32_t)value ? INT : WIDE) && word(r, (uint64_t)value);
}

static int read_constant(Reading *r, PyObject *o)
{
    if (PyLong_CheckExact(o))
        return read_int(r, o, 1);
    if (PyFloat_CheckExact(o))
        return read_float(r, o, 1);
    return !PyTuple_CheckExact(o) && part(r, CONSTANT) && identity(r, o);
}

static int read_one(Reading *r, PyObject *o, PyObject *kinds)
{
    PyObject *found = PyDict_GetItemWithError(kinds, (PyObject *)Py_TYPE(o));
    uint64_t kind = found == NULL ? 0 : PyLong_AsUnsignedLongLong(found);
    if (kind > CUPY)
        return read_borrowed(r, o, (Borrow)(uintptr_t)kind);
    switch (kind) {
    case BOOL:
        return part(r, BOOL) && word(r, o == Py_True);
    case INT:
        return read_int(r, o, 0);
    case FLOAT:
        return read_float(r, o, 0);
    case TORCH:
        return read_torch(r, o);
    case CUPY:
        return read_cupy(r, o);
    }
    return NO;
}

/* constants: a byte for each parameter, 1 if it is annotated ct.Constant; kinds: of arguments, by their class: a number
   from above, or the address of a function that lends a tensor */
static int read_all(Reading *r, PyObject *args, PyObject *constants, PyObject *kinds)
{
    char *flags;
    Py_ssize_t n;
    if (!PyTuple_CheckExact(args) || PyBytes_AsStringAndSize(constants, &flags, &n) < 0 || PyTuple_Size(args) != n)
        return NO;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        if (!(flags[i] ? read_constant(r, o) : read_one(r, o, kinds)))
            return NO;
    }
    return PyErr_Occurred() == NULL;
}

static PyObject *signature_of(const Reading *r)
{
    return PyBytes_FromStringAndSize((const char *)r->parts, r->n_parts * (Py_ssize_t)sizeof(uint64_t));
}

/* For "leave it to Python"; what is no Exception, such as KeyboardInterrupt, is raised. */
static PyObject *not_here(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    return Py_NewRef(Py_NotImplemented);
}

static PyObject *signature(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 3)
        return PyErr_Format(PyExc_TypeError, "signature() takes arguments, constants, kinds");
    Reading r = {.kept = PyList_New(0)};
    if (r.kept == NULL)
        return NULL;
    PyObject *out = read_all(&r, a[0], a[1], a[2])
        ? Py_BuildValue("(NOy#)", signature_of(&r), r.kept, (const char *)r.words,
                        r.n_words * (Py_ssize_t)sizeof(Word))
        : not_here();
    Py_DECREF(r.kept);
    return out;
}

static PyObject *lender(PyObject *self, PyObject *capsule)
{
    const Exchange *e = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (e == NULL)
        return NULL;
    if (e->major != DLPACK_MAJOR || e->borrow == NULL)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong((uintptr_t)e->borrow);
}

/* ---------------------------------------------------------------- launching */

static int read_grid(PyObject *grid, long limit, unsigned *out)
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
        PyObject *item = PyDict_GetItemWithError(container, key);
        return object == container ? item == NULL : item == object;
    }
    PyObject *found = PyObject_GetAttr(container, key);
    Py_XDECREF(found);
    return found == object;
}

/* seen: what was read, as Reads.seen() has it, or a function that says whether it is fresh */
static int fresh(PyObject *seen)
{
    if (!PyTuple_CheckExact(seen)) {
        PyObject *answer = PyObject_CallNoArgs(seen);
        Py_XDECREF(answer);
        return answer == Py_True;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(seen); i += 3)
        if (!is_there(PyTuple_GetItem(seen, i), PyTuple_GetItem(seen, i + 1), PyTuple_GetItem(seen, i + 2)))
            return NO;
    return YES;
}

/* The driver's answer, or -1 if the launch is not for here. */
static int queue(PyObject *record, const Reading *r, const unsigned *grid, uint64_t stream)
{
    char *bytes;
    Py_ssize_t size;
    Head h;
    uint64_t memory[BYTES / sizeof(uint64_t)];
    void *parameters[PARAMETERS], *context;
    if (PyBytes_AsStringAndSize(record, &bytes, &size) < 0)
        return -1;
    memcpy(&h, bytes, sizeof h);
    if ((int)h.n_slots != r->n_words || ((Current)(uintptr_t)h.current)(&context) != 0
        || (uintptr_t)context != h.context)
        return -1;
    const uint32_t *offsets = (const uint32_t *)(bytes + sizeof h);
    const Slot *slots = (const Slot *)(offsets + h.n_parameters);
    memcpy(memory, slots + h.n_slots, h.n_bytes);
    for (uint32_t i = 0; i < h.n_parameters; i++)
        parameters[i] = (char *)memory + offsets[i];
    for (uint32_t i = 0; i < h.n_slots; i++) {
        char *to = (char *)memory + slots[i].offset;
        float f;
        switch (slots[i].how) {
        case WORD64:
            memcpy(to, &r->words[i].bits, 8);
            break;
        case WORD32: {
            uint32_t low = (uint32_t)r->words[i].bits;
            memcpy(to, &low, 4);
            break;
        }
        case WORD_FLOAT32:
            f = (float)r->words[i].number;
            memcpy(to, &f, 4);
        }
    }
    int code;
    Py_BEGIN_ALLOW_THREADS /* the call waits while the queue is full */
    code = ((Launch)(uintptr_t)h.launch)((void *)(uintptr_t)h.function, grid[0], grid[1], grid[2], 1, 1, 1, 0,
                                         (void *)(uintptr_t)stream, parameters, NULL);
    Py_END_ALLOW_THREADS
    return code;
}

/* Whether nobody spoke of a setting that matters here. watch: as settings.watch makes it */
static int untouched(PyObject *watch)
{
    PyObject *overrides = PyObject_CallNoArgs(PyTuple_GetItem(watch, 0));
    Py_ssize_t n = overrides == NULL ? -1 : PyObject_Size(overrides);
    Py_XDECREF(overrides);
    PyObject *environ = PyDict_GetItemWithError(PyTuple_GetItem(watch, 1), PyTuple_GetItem(watch, 2));
    if (n != 0 || environ != PyTuple_GetItem(watch, 3))
        return NO;
    for (Py_ssize_t i = 5; i < PyTuple_Size(watch); i++)
        if (PyDict_GetItemWithError(PyTuple_GetItem(watch, 4), PyTuple_GetItem(watch, i)) != NULL)
            return NO;
    return PyErr_Occurred() == NULL;
}

static int read_stream(PyObject *stream, PyObject *readers, uint64_t *out)
{
    PyObject *reader = PyDict_GetItemWithError(readers, (PyObject *)Py_TYPE(stream)), *number;
    if (reader == NULL)
        return NO;
    number = PyLong_CheckExact(stream) ? Py_NewRef(stream) : PyObject_CallFunctionObjArgs(reader, stream, NULL);
    *out = number == NULL ? 0 : PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    return PyErr_Occurred() == NULL;
}

/* Whether PyTorch knows which tensors are written to. written: None, or what raises the versions of tensors, what says
   whether grad mode is on, and where the tensors stand among the arguments. Of those that require grad while it is on
   Python decides. */
static int told(PyObject *written, PyObject *args)
{
    if (written == Py_None)
        return YES;
    Py_ssize_t n = PyTuple_Size(written) - 2;
    PyObject *tensors = PyTuple_New(n);
    int ok = tensors != NULL;
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *t = PyTuple_GetItem(args, PyLong_AsSsize_t(PyTuple_GetItem(written, i + 2)));
        PyObject *needs = PyObject_GetAttr(t, n_requires_grad);
        Py_XDECREF(needs);
        if (needs == Py_True) {
            needs = PyObject_CallNoArgs(PyTuple_GetItem(written, 1));
            Py_XDECREF(needs);
        }
        ok = needs == Py_False && PyTuple_SetItem(tensors, i, Py_NewRef(t)) == 0;
    }
    PyObject *done = ok ? PyObject_CallFunctionObjArgs(PyTuple_GetItem(written, 0), tensors, NULL) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(tensors);
    return done != NULL;
}

/* memo: (entries, constants, kinds, limit of the grid, what reads streams by their class, watch of settings);
   an entry: (record, seen, kept, prepared launch, written tensors) */
static PyObject *launch(PyObject *self, PyObject *const *a, Py_ssize_t n)
{
    if (n != 4 || !PyTuple_CheckExact(a[0]) || PyTuple_Size(a[0]) != 6)
        return PyErr_Format(PyExc_TypeError, "launch() takes memo, stream, grid, arguments");
    Reading r;
    r.n_parts = r.n_words = 0;
    r.kept = NULL;
    unsigned grid[3];
    PyObject *memo = a[0];
    uint64_t stream;
    if (!untouched(PyTuple_GetItem(memo, 5)) || !read_stream(a[1], PyTuple_GetItem(memo, 4), &stream)
        || !read_grid(a[2], PyLong_AsLong(PyTuple_GetItem(memo, 3)), grid)
        || !read_all(&r, a[3], PyTuple_GetItem(memo, 1), PyTuple_GetItem(memo, 2)))
        return not_here();
    PyObject *key = signature_of(&r);
    if (key == NULL)
        return NULL;
    PyObject *entry = PyDict_GetItemWithError(PyTuple_GetItem(memo, 0), key), *out;
    Py_DECREF(key);
    if (entry == NULL)
        return not_here();
    Py_INCREF(entry);
    int code = fresh(PyTuple_GetItem(entry, 1)) && told(PyTuple_GetItem(entry, 4), a[3])
        ? queue(PyTuple_GetItem(entry, 0), &r, grid, stream) : -1;
    if (code == 0)
        out = Py_NewRef(Py_None);
    else
        out = code == -1 ? not_here() : Py_BuildValue("(iO)", code, PyTuple_GetItem(entry, 3));
    Py_DECREF(entry);
    return out;
}

/* ---------------------------------------------------------------- the module */

static PyMethodDef methods[] = {
    {"signature", (PyCFunction)(void (*)(void))signature, METH_FASTCALL,
     "signature(arguments, constants, kinds) -> (signature, objects it has addresses of, words), or NotImplemented"},
    {"lender", lender, METH_O,
     "lender(capsule) -> the address of a function that lends tensors, from a class's __dlpack_c_exchange_api__, or None"},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL,
     "launch(memo, stream, grid, arguments) -> None, (the driver's error, prepared launch), or NotImplemented"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_launcher", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__launcher(void)
{
    struct { PyObject **at; const char *name; } names[] = {
        {&n_data, "data"}, {&n_ptr, "ptr"}, {&n_device_id, "device_id"}, {&n_dtype, "dtype"}, {&n_shape, "shape"},
        {&n_strides, "strides"}, {&n_is_cuda, "is_cuda"}, {&n_data_ptr, "data_ptr"}, {&n_stride, "stride"},
        {&n_get_device, "get_device"}, {&n_is_neg, "is_neg"},
        {&n_requires_grad, "requires_grad"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].at = PyUnicode_InternFromString(names[i].name)) == NULL)
            return NULL;
    return PyModule_Create(&module);
}
