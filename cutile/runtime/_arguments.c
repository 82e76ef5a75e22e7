/* Reads the arguments of a launch: each into parts of its signature, and launch values.

   Tensors of PyTorch are read through the C interface that the library has for compiled models, or as it lends them by
   DLPack; arrays of CuPy where their objects have it. runtime/c_readers.py finds out how, and tries it before it is
   used here; where it finds nothing, arrays are read by their attributes, as in Python. */

#include "_launcher.h"

enum { WIDE = 64, CONSTANT_INT, CONSTANT_FLOAT, CONSTANT, ON_HOST }; /* more first parts of an argument's signature */
enum { MOST_AXES = 64 };

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
    void *current_stream; /* a DeviceStream */
} Exchange;
enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1 };

/* Functions of PyTorch, which take the address of a tensor of C++. All but the first two return an error and write to
   the second argument; those of sizes and strides write the address of as many numbers as there are dimensions. Some
   versions print the error too, so only tensors of the plain class are asked, which has nothing to refuse. A tensor of
   C++ is a pointer to an object, whose first word tells its class. */
enum { NEGATED, CONJUGATED, RANK, SIZES, STEPS, TYPE, DEVICE_TYPE, DEVICE_INDEX, ADDRESS, SHIMS };
typedef _Bool (*Answer)(const char *);
typedef int32_t (*Shim)(const char *, void *);
static uintptr_t shims[SHIMS];
static Py_ssize_t place;    /* of the tensor of C++ in the Python object, in bytes */
static uintptr_t plain;     /* what tells the plain class */
static int on_cpu, on_gpu;  /* what DEVICE_TYPE says */

/* Where an array of CuPy has what is read of it, in bytes from the start of its object: two vectors of C++, which are
   pointers to the first number and behind the last, and two objects. The object of its memory has an address and the
   number of a GPU. */
enum { SHAPE, STRIDES, DTYPE, DATA, OF_MEMORY, POINTER = OF_MEMORY, GPU_OF_MEMORY, FIELDS };
static const Py_ssize_t widths[FIELDS] = {2 * sizeof(void *), 2 * sizeof(void *), sizeof(void *), sizeof(void *),
                                          sizeof(void *), sizeof(int)};
static Py_ssize_t fields[FIELDS];
static PyObject *memory_type; /* the class of the object of memory; NULL as long as the fields are not known */
static Mutex libraries;       /* of what torch_shims and cupy_fields write, before anything is read by it */

static PyObject *n_data, *n_ptr, *n_device_id, *n_dtype, *n_shape, *n_strides, *n_is_cuda, *n_data_ptr, *n_stride,
    *n_get_device, *n_is_neg;

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

static int taken_answer(PyObject *o, PyObject *wanted)
{
    Py_XDECREF(o);
    return o == wanted;
}

/* A tuple or list of ints. */
static int taken_ints(Reading *r, PyObject *o)
{
    int is_list = o != NULL && PyList_CheckExact(o), ok = is_list || (o != NULL && PyTuple_Check(o));
    Py_ssize_t n = !ok ? 0 : is_list ? PyList_Size(o) : PyTuple_Size(o);
    ok = ok && part(r, (uint64_t)n);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *item = is_list ? item_at(o, i) : Py_XNewRef(PyTuple_GetItem(o, i));
        uint64_t size = item != NULL && PyLong_Check(item) ? (uint64_t)PyLong_AsLongLong(item) : 0;
        ok = item != NULL && PyLong_Check(item) && PyErr_Occurred() == NULL && part(r, size);
        Py_XDECREF(item);
    }
    Py_XDECREF(o);
    return ok;
}

static PyObject *call(PyObject *o, PyObject *name)
{
    return PyObject_CallMethodObjArgs(o, name, NULL);
}

/* ---------------------------------------------------------------- PyTorch */

static int read_torch(Reading *r, PyObject *t)
{
    uint64_t pointer, device;
    return taken_answer(PyObject_GetAttr(t, n_is_cuda), Py_True) && taken_answer(call(t, n_is_neg), Py_False)
        && part(r, TORCH) && taken_identity(r, PyObject_GetAttr(t, n_dtype))
        && taken_ints(r, PyObject_GetAttr(t, n_shape)) && taken_ints(r, call(t, n_stride))
        && taken_int(call(t, n_get_device), &device) && part(r, device)
        && taken_int(call(t, n_data_ptr), &pointer) && part(r, pointer & 15) && value(r, pointer);
}

static int numbers(Reading *r, const int64_t *n, int32_t count)
{
    int ok = n != NULL || count == 0;
    for (int32_t i = 0; ok && i < count; i++)
        ok = part(r, (uint64_t)n[i]);
    return ok;
}

static int asked(int which, const char *tensor, void *out)
{
    return ((Shim)shims[which])(tensor, out) == 0;
}

/* A tensor as the C interface of PyTorch describes it. */
static int read_shim(Reading *r, PyObject *t)
{
    const char *tensor = (const char *)t + place;
    const uintptr_t *object = *(const uintptr_t *const *)tensor;
    int64_t rank, *sizes, *steps;
    int32_t dtype, type, device;
    void *pointer;
    if (object == NULL || *object != plain || ((Answer)shims[NEGATED])(tensor)
        || !asked(DEVICE_TYPE, tensor, &type) || (type != on_cpu && type != on_gpu)
        || !asked(ADDRESS, tensor, &pointer) || (type == on_cpu && pointer == NULL) /* its memory was given back */
        || !asked(RANK, tensor, &rank) || !asked(SIZES, tensor, &sizes) || !asked(STEPS, tensor, &steps)
        || !asked(TYPE, tensor, &dtype) || !asked(DEVICE_INDEX, tensor, &device))
        return NO;
    if (rank > MOST_AXES || device < -1 || device > 254)
        return NO;
    uint64_t kind = type == on_cpu ? ON_HOST : TORCH;
    return part(r, kind | ((uintptr_t)pointer & 15) << 8 | (uint64_t)rank << 16 | (uint64_t)(device + 1) << 24
                   | (uint64_t)(uint32_t)dtype << 32)
        && numbers(r, sizes, (int32_t)rank) && numbers(r, steps, (int32_t)rank) && value(r, (uintptr_t)pointer);
}

PyObject *torch_shims(PyObject *self, PyObject *args)
{
    PyObject *addresses;
    uintptr_t found[SHIMS];
    unsigned long long word;
    Py_ssize_t at;
    int cpu, gpu;
    if (!PyArg_ParseTuple(args, "O!nKii", &PyTuple_Type, &addresses, &at, &word, &cpu, &gpu))
        return NULL;
    if (PyTuple_Size(addresses) != SHIMS)
        return PyErr_Format(PyExc_ValueError, "torch_shims() takes the addresses of %d functions", SHIMS);
    for (Py_ssize_t i = 0; i < SHIMS; i++)
        found[i] = (uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(addresses, i));
    if (PyErr_Occurred())
        return NULL;
    LOCK(&libraries);
    if (memcmp(shims, found, sizeof shims) != 0 || place != at || plain != word || on_cpu != cpu || on_gpu != gpu) {
        memcpy(shims, found, sizeof shims);
        place = at, plain = (uintptr_t)word, on_cpu = cpu, on_gpu = gpu;
    }
    UNLOCK(&libraries);
    Py_RETURN_NONE;
}

/* A tensor of PyTorch as the library itself lends it to C code. */
static int read_borrowed(Reading *r, PyObject *t, Borrow borrow)
{
    Tensor d;
    if (!taken_answer(call(t, n_is_neg), Py_False) || borrow(t, &d) != 0
        || (d.device.type != DLPACK_CUDA && d.device.type != DLPACK_CPU))
        return NO;
    uint64_t pointer = (uintptr_t)d.data + d.byte_offset;
    uint64_t dtype = d.dtype.code | (uint64_t)d.dtype.bits << 8 | (uint64_t)d.dtype.lanes << 16;
    if (d.device.type == DLPACK_CPU && pointer == 0) /* its memory was given back */
        return NO;
    int ok = part(r, d.device.type == DLPACK_CUDA ? TORCH : ON_HOST) && part(r, dtype) && part(r, (uint64_t)d.rank)
        && numbers(r, d.shape, d.rank) && numbers(r, d.strides, d.rank) && part(r, (uint64_t)d.device.id);
    return ok && part(r, pointer & 15) && value(r, pointer);
}

static const Exchange *exchange_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
}

PyObject *lender(PyObject *self, PyObject *capsule)
{
    const Exchange *e = exchange_of(capsule);
    if (e == NULL)
        return NULL;
    if (e->major != DLPACK_MAJOR || e->borrow == NULL)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong((uintptr_t)e->borrow);
}

PyObject *streams_of(PyObject *self, PyObject *capsule)
{
    const Exchange *e = exchange_of(capsule);
    if (e == NULL)
        return NULL;
    if (e->major != DLPACK_MAJOR || e->borrow == NULL || e->current_stream == NULL)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong((uintptr_t)e->current_stream);
}

/* Whether a tensor that was read may have complex numbers that are conjugated lazily: where DLPack lends it nothing
   tells. Complex ones are known by their dtype, in the numbering of PyTorch or in that of DLPack. */
static int may_be_conjugated(const Reading *r, PyObject *t, uint64_t kind)
{
    uint64_t dtype = r->parts[0] >> 32;
    if (kind != TORCH_SHIM)
        return (r->parts[1] & 255) == 5;
    return dtype >= 8 && dtype <= 10 && ((Answer)shims[CONJUGATED])((const char *)t + place);
}

/* ---------------------------------------------------------------- CuPy */

static int read_cupy(Reading *r, PyObject *a)
{
    uint64_t pointer, device;
    PyObject *memory = PyObject_GetAttr(a, n_data);
    int ok = memory != NULL && taken_int(PyObject_GetAttr(memory, n_ptr), &pointer)
        && taken_int(PyObject_GetAttr(memory, n_device_id), &device);
    Py_XDECREF(memory);
    return ok && part(r, CUPY) && taken_identity(r, PyObject_GetAttr(a, n_dtype))
        && taken_ints(r, PyObject_GetAttr(a, n_shape)) && taken_ints(r, PyObject_GetAttr(a, n_strides))
        && part(r, device) && part(r, pointer & 15) && value(r, pointer);
}

static const void *field(PyObject *o, int which)
{
    return *(const void *const *)((const char *)o + fields[which]);
}

/* The length of a vector; -1 where it has more numbers than an array has axes. */
static int64_t length(PyObject *a, int which, const int64_t **first)
{
    const char *at = (const char *)a + fields[which];
    const int64_t *end;
    memcpy(first, at, sizeof *first);
    memcpy(&end, at + sizeof end, sizeof end);
    return end - *first < 0 || end - *first > MOST_AXES ? -1 : end - *first;
}

static int read_fields(Reading *r, PyObject *a)
{
    PyObject *memory = (PyObject *)field(a, DATA), *dtype = (PyObject *)field(a, DTYPE);
    if (memory == NULL || dtype == NULL || (PyObject *)Py_TYPE(memory) != memory_type)
        return read_cupy(r, a);
    const int64_t *sizes, *steps;
    int64_t rank = length(a, SHAPE, &sizes);
    int gpu;
    memcpy(&gpu, (const char *)memory + fields[GPU_OF_MEMORY], sizeof gpu);
    uint64_t pointer = (uintptr_t)field(memory, POINTER);
    return rank >= 0 && length(a, STRIDES, &steps) == rank
        && part(r, CUPY_FIELDS | (pointer & 15) << 8 | (uint64_t)rank << 16 | (uint64_t)(uint32_t)gpu << 32)
        && identity(r, dtype) && numbers(r, sizes, (int32_t)rank) && numbers(r, steps, (int32_t)rank)
        && value(r, pointer);
}

/* Whether all of a field lies inside the objects of a class, behind what every object begins with. */
static int lies_inside(PyObject *type, int which, Py_ssize_t at)
{
    PyObject *size = PyObject_GetAttrString(type, "__basicsize__");
    Py_ssize_t n = size == NULL ? -1 : PyLong_AsSsize_t(size);
    Py_XDECREF(size);
    return at >= (Py_ssize_t)sizeof(PyObject) && at % (Py_ssize_t)sizeof(int) == 0 && at <= n - widths[which];
}

PyObject *cupy_fields(PyObject *self, PyObject *args)
{
    PyObject *array, *memory;
    Py_ssize_t at[FIELDS];
    if (!PyArg_ParseTuple(args, "O!O!(nnnnnn)", &PyType_Type, &array, &PyType_Type, &memory, at, at + 1, at + 2, at + 3,
                          at + 4, at + 5))
        return NULL;
    for (int i = 0; i < FIELDS; i++)
        if (!lies_inside(i < OF_MEMORY ? array : memory, i, at[i]))
            return PyErr_Occurred() ? NULL
                                    : PyErr_Format(PyExc_ValueError, "field %d is not inside of its object", i);
    PyObject *before = NULL;
    LOCK(&libraries);
    if (memory_type != memory || memcmp(fields, at, sizeof fields) != 0) {
        memcpy(fields, at, sizeof fields);
        before = memory_type;
        memory_type = Py_NewRef(memory);
    }
    UNLOCK(&libraries);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* An array of CuPy, by the number of its dtype. One whose dtype has no number is left to Python. */
static int read_numbered(Reading *r, PyObject *a, PyObject *kinds)
{
    if (!read_fields(r, a) || (uint8_t)r->parts[0] != CUPY_FIELDS)
        return NO;
    PyObject *number = item_of(kinds, (PyObject *)field(a, DTYPE));
    return taken_int(number, r->parts + 1);
}

int read_on_gpu(Reading *r, PyObject *o, PyObject *kinds)
{
    PyObject *found = item_of(kinds, (PyObject *)Py_TYPE(o));
    uint64_t kind;
    start_reading(r, NULL);
    if (!taken_int(found, &kind))
        return NO;
    if (kind == CUPY_FIELDS)
        return read_numbered(r, o, kinds);
    int ok = kind == TORCH_SHIM ? read_shim(r, o) : kind > NUMPY && read_borrowed(r, o, (Borrow)(uintptr_t)kind);
    return ok && !PyErr_Occurred() && (uint8_t)r->parts[0] == TORCH && !may_be_conjugated(r, o, kind);
}

/* ---------------------------------------------------------------- arguments of any kind */

static int read_float(Reading *r, PyObject *o, int constant)
{
    Value v = {.number = PyFloat_AsDouble(o)};
    return constant ? part(r, CONSTANT_FLOAT) && part(r, v.bits) : part(r, FLOAT) && value(r, v.bits);
}

static int read_int(Reading *r, PyObject *o, int constant)
{
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
        return NO;
    if (constant)
        return part(r, CONSTANT_INT) && part(r, (uint64_t)n);
    return part(r, n == (int32_t)n ? INT : WIDE) && value(r, (uint64_t)n);
}

int read_constant(Reading *r, PyObject *o)
{
    if (PyLong_CheckExact(o))
        return read_int(r, o, 1);
    if (PyFloat_CheckExact(o))
        return read_float(r, o, 1);
    return !PyTuple_CheckExact(o) && part(r, CONSTANT) && identity(r, o);
}

int read_argument(Reading *r, PyObject *o, PyObject *kinds)
{
    PyObject *cls = (PyObject *)Py_TYPE(o);
    if (cls != r->cls) { /* often all arrays of a launch have the same class */
        PyObject *found = item_of(kinds, cls);
        r->kind = found == NULL ? 0 : PyLong_AsUnsignedLongLong(found);
        r->cls = cls;
        Py_XDECREF(found);
    }
    r->arguments[r->n_values < VALUES ? r->n_values : 0] = o;
    switch (r->kind) {
    case 0:
        return NO;
    case BOOL:
        return part(r, BOOL) && value(r, o == Py_True);
    case INT:
        return read_int(r, o, 0);
    case FLOAT:
        return read_float(r, o, 0);
    case TORCH:
        return read_torch(r, o);
    case TORCH_SHIM:
        return read_shim(r, o);
    case CUPY:
        return read_cupy(r, o);
    case CUPY_FIELDS:
        return read_fields(r, o);
    case NUMPY:
        return read_numpy(r, o);
    }
    return read_borrowed(r, o, (Borrow)(uintptr_t)r->kind);
}

int items_of(PyObject *tuple, PyObject **out)
{
    Py_ssize_t n = PyTuple_CheckExact(tuple) ? PyTuple_Size(tuple) : -1;
    if (n > MOST_ARGUMENTS)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = PyTuple_GetItem(tuple, i);
    return (int)n;
}

/* constants: a byte for each parameter, 1 if it is annotated ct.Constant; kinds: as in a LaunchCache */
int read_all(Reading *r, PyObject *const *args, int n, PyObject *constants, PyObject *kinds)
{
    char *flags;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(constants, &flags, &size) < 0 || size != n)
        return NO;
    for (int i = 0; i < n; i++)
        if (!(flags[i] ? read_constant(r, args[i]) : read_argument(r, args[i], kinds)))
            return NO;
    return PyErr_Occurred() == NULL;
}

int start_arguments(void)
{
    static const struct { PyObject **at; const char *name; } names[] = {
        {&n_data, "data"}, {&n_ptr, "ptr"}, {&n_device_id, "device_id"}, {&n_dtype, "dtype"}, {&n_shape, "shape"},
        {&n_strides, "strides"}, {&n_is_cuda, "is_cuda"}, {&n_data_ptr, "data_ptr"}, {&n_stride, "stride"},
        {&n_get_device, "get_device"}, {&n_is_neg, "is_neg"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].at = PyUnicode_InternFromString(names[i].name)) == NULL)
            return NO;
    return YES;
}
