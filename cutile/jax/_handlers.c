/* What XLA calls for a kernel in a compiled program: on a GPU, code that launches it through the CUDA driver, and on a
   CPU, code that hands the buffers to the interpreter.

   Attributes of the call carry all that a launch needs (cutile/jax/attributes.py makes them), so a program may be
   exported, and nothing in Python is asked on a GPU. XLA calls from several threads at once, without the GIL.
*/

#ifndef Py_GIL_DISABLED /* setup.py defines it for free-threaded Pythons, which have no stable ABI */
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla_ffi.h"

#ifndef CUDA_DRIVER /* tests give another library */
#ifdef _WIN32
#define CUDA_DRIVER "nvcuda.dll"
#else
#define CUDA_DRIVER "libcuda.so.1"
#endif
#endif

#ifdef _WIN32
#include <windows.h>
#define OPEN_DRIVER() ((void *)LoadLibraryA(CUDA_DRIVER))
#define SYMBOL(library, name) ((void *)GetProcAddress((HMODULE)(library), name))
#else
#include <dlfcn.h>
#define OPEN_DRIVER() dlopen(CUDA_DRIVER, RTLD_NOW)
#define SYMBOL(library, name) dlsym(library, name)
#endif

/* Pointers that one thread publishes under a lock and others read without one. */
#ifdef _MSC_VER /* where volatile accesses acquire and release */
#define READ(p) (*(void *volatile *)&(p))
#define PUBLISH(p, value) (*(void *volatile *)&(p) = (value))
#else
#define READ(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define PUBLISH(p, value) __atomic_store_n(&(p), value, __ATOMIC_RELEASE)
#endif

enum { PARAMETERS = 512, AXES = 16, TEXT = 600, KEY = 32, SLOTS = 1024, ALIGNMENT = 16 };

static PyThread_type_lock lock; /* of whoever opens the driver or loads a kernel */

/* ---------------------------------------------------------------- what both handlers need of a call */

static FfiError *refuse(const FfiCall *call, int code, const char *message)
{
    FfiErrorCreate made = {sizeof made, NULL, message, code};
    return call->api->error_create(&made);
}

/* Answers the question that registration asks; YES if the call is one. */
static int asks_for_metadata(const FfiCall *call)
{
    for (const FfiExtension *e = call->extensions; e != NULL; e = e->next)
        if (e->type == FFI_METADATA) {
            FfiMetadata *m = ((const FfiMetadataExtension *)e)->metadata;
            m->version.major = FFI_MAJOR;
            m->version.minor = FFI_MINOR;
            m->traits = FFI_COMMAND_BUFFER_COMPATIBLE;
            return 1;
        }
    return 0;
}

/* NULL, or the error for structs of an interface that is not the one known here. */
static FfiError *unknown_interface(const FfiCall *call)
{
    const FfiApi *api = call->api;
    char text[TEXT];
    if (api->size >= sizeof *api && api->version.major == FFI_MAJOR && call->size >= sizeof *call
        && call->arguments.size >= sizeof call->arguments && call->results.size >= sizeof call->results
        && call->attributes.size >= sizeof call->attributes)
        return NULL;
    snprintf(text, sizeof text, "jaxlib has version %d.%d of XLA's FFI, and cutile knows %d.%d and what extends it",
             api->version.major, api->version.minor, FFI_MAJOR, FFI_MINOR);
    return refuse(call, FFI_UNIMPLEMENTED, text);
}

/* The first buffers of a call are its arguments, then come its results. */
static const FfiBuffer *buffer(const FfiCall *call, int64_t i)
{
    int64_t n = call->arguments.count;
    return i < n ? call->arguments.items[i] : call->results.items[i - n];
}

typedef struct { const char *bytes; size_t length; } Bytes;

/* An attribute as bytes: a text, or an array of numbers. NO if there is none of that name and kind. */
static int attribute(const FfiCall *call, const char *name, int dtype, Bytes *out)
{
    size_t n = strlen(name);
    for (int64_t i = 0; i < call->attributes.count; i++) {
        const FfiSpan *found = call->attributes.names[i];
        if (found->length != n || memcmp(found->text, name, n) != 0)
            continue;
        if (call->attributes.types[i] == FFI_STRING && dtype == 0) {
            const FfiSpan *text = call->attributes.items[i];
            *out = (Bytes){text->text, text->length};
            return 1;
        }
        const FfiArray *a = call->attributes.items[i];
        if (call->attributes.types[i] != FFI_ARRAY || a->dtype != dtype)
            return 0;
        *out = (Bytes){a->data, a->size * (dtype == FFI_S64 ? 8 : 4)};
        return 1;
    }
    return 0;
}

/* ---------------------------------------------------------------- the CUDA driver */

typedef int (*GetStreamContext)(void *, void **);
typedef int (*GetContext)(void **);
typedef int (*PushContext)(void *);
typedef int (*GetDevice)(int *);
typedef int (*GetAttribute)(int *, int, int);
typedef int (*ExchangeMode)(int *);
typedef int (*Load)(void **, const void *);
typedef int (*GetFunction)(void **, void *, const char *);
typedef int (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                      void **);
typedef int (*GetText)(int, const char **);

typedef struct {
    GetStreamContext stream_context;
    GetContext current_context;
    PushContext push_context;
    GetContext pop_context;
    GetDevice device;
    GetAttribute device_attribute;
    ExchangeMode exchange_mode;
    Load load;
    GetFunction function;
    Launch launch;
    GetText error_name, error_text;
} Driver;

enum { MAJOR_CAPABILITY = 75, MINOR_CAPABILITY = 76, RELAXED_CAPTURE = 2 };

static Driver driver_functions;
static void *driver; /* the address of that once it is filled */

static const Driver *opened(void)
{
    static const char *const names[] = {
        "cuStreamGetCtx", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuCtxGetDevice",
        "cuDeviceGetAttribute", "cuThreadExchangeStreamCaptureMode", "cuModuleLoadData", "cuModuleGetFunction",
        "cuLaunchKernel", "cuGetErrorName", "cuGetErrorString"};
    void *found = READ(driver);
    if (found != NULL)
        return found;
    PyThread_acquire_lock(lock, WAIT_LOCK);
    void *library = driver == NULL ? OPEN_DRIVER() : NULL;
    if (library != NULL) {
        void *functions[sizeof names / sizeof *names];
        int complete = 1;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            complete &= (functions[i] = SYMBOL(library, names[i])) != NULL;
        if (complete) {
            memcpy(&driver_functions, functions, sizeof functions);
            PUBLISH(driver, &driver_functions);
        }
    }
    PyThread_release_lock(lock);
    return READ(driver);
}

static FfiError *refused(const FfiCall *call, const Driver *d, const char *doing, Bytes symbol, int code)
{
    char text[TEXT];
    const char *name = NULL, *meaning = NULL;
    d->error_name(code, &name);
    d->error_text(code, &meaning);
    snprintf(text, sizeof text, "kernel %.*s %s: %s (%s)", (int)(symbol.length < 200 ? symbol.length : 200),
             symbol.bytes, doing, meaning != NULL ? meaning : "no reason given", name != NULL ? name : "unknown error");
    return refuse(call, FFI_INTERNAL, text);
}

/* ---------------------------------------------------------------- loaded kernels */

/* A kernel that was loaded into a context. It stays: a CUDA graph may hold it. */
typedef struct Kernel {
    void *context, *function, *next;
    char key[KEY];
} Kernel;

static void *kernels[SLOTS]; /* lists of kernels by their keys; read without a lock */

static void **slot(const char *key)
{
    uint32_t number;
    memcpy(&number, key, sizeof number);
    return &kernels[number % SLOTS];
}

static void *loaded(const void *context, const char *key)
{
    for (const Kernel *k = READ(*slot(key)); k != NULL; k = k->next)
        if (k->context == context && memcmp(k->key, key, KEY) == 0)
            return k->function;
    return NULL;
}

/* The code for the GPU of the current context: of those for its family, that for the newest architecture that it has.
   architectures: ints; ends: where the code of each ends. */
static FfiError *choose(const FfiCall *call, const Driver *d, Bytes code, Bytes architectures, Bytes ends,
                        const char **out)
{
    int device, major = 0, minor = 0, best = -1;
    char text[TEXT];
    if (d->device(&device) != 0 || d->device_attribute(&major, MAJOR_CAPABILITY, device) != 0
        || d->device_attribute(&minor, MINOR_CAPABILITY, device) != 0)
        return refuse(call, FFI_INTERNAL, "the GPU does not say what it can do");
    int n = (int)(architectures.length / 4), written = 0;
    int64_t begin = 0, end;
    text[0] = 0;
    for (int i = 0; i < n; i++) {
        int32_t number;
        memcpy(&number, architectures.bytes + 4 * i, 4);
        memcpy(&end, ends.bytes + 8 * i, 8);
        if (end < begin || (uint64_t)end > code.length)
            return refuse(call, FFI_INVALID_ARGUMENT, "the code of a kernel is damaged");
        if (number / 10 == major && number % 10 <= minor && number > best) {
            best = number;
            *out = code.bytes + begin;
        }
        if (written < TEXT - 200)
            written += snprintf(text + written, sizeof text - written, "%ssm_%d", i == 0 ? "" : ", ", (int)number);
        begin = end;
    }
    if (best >= 0)
        return NULL;
    snprintf(text + written, sizeof text - written, ": the kernel was compiled for these, and the GPU is sm_%d%d; name "
             "it in CUTILE_TARGET as well", major, minor);
    return refuse(call, FFI_FAILED_PRECONDITION, text);
}

static FfiError *load(const FfiCall *call, const Driver *d, void *context, Bytes key, Bytes symbol, void **function)
{
    Bytes code, architectures, ends;
    char name[4096];
    const char *image = NULL;
    if (!attribute(call, "code", 0, &code) || !attribute(call, "architectures", FFI_S32, &architectures)
        || !attribute(call, "ends", FFI_S64, &ends) || ends.length != 2 * architectures.length
        || symbol.length >= sizeof name)
        return refuse(call, FFI_INVALID_ARGUMENT, "a call of cutile_launch_v1 lacks code");
    memcpy(name, symbol.bytes, symbol.length);
    name[symbol.length] = 0;
    FfiError *error = choose(call, d, code, architectures, ends, &image);
    if (error != NULL)
        return error;
    PyThread_acquire_lock(lock, WAIT_LOCK);
    if ((*function = loaded(context, key.bytes)) == NULL) { /* another thread may have loaded it by now */
        void *module;
        int mode = RELAXED_CAPTURE; /* while a graph is captured, too */
        d->exchange_mode(&mode);
        int failed = d->load(&module, image);
        const char *doing = "cannot be loaded";
        if (!failed && (failed = d->function(function, module, name)) != 0)
            doing = "is not in its module";
        d->exchange_mode(&mode);
        Kernel *k = failed ? NULL : malloc(sizeof *k);
        if (k != NULL) {
            *k = (Kernel){context, *function, *slot(key.bytes), {0}};
            memcpy(k->key, key.bytes, KEY);
            PUBLISH(*slot(key.bytes), k);
        }
        if (failed)
            error = refused(call, d, doing, symbol, failed);
    }
    PyThread_release_lock(lock);
    return error;
}

/* ---------------------------------------------------------------- launches */

/* image      8 bytes for each parameter
   places     for each parameter the number of the buffer whose address it is, or -1 where the image has its value
   grid       the grid
   batch      sizes of axes over which the launch is repeated; steps: for each axis, bytes between items of each buffer
*/
typedef struct { Bytes image, places, grid, batch, steps, key, symbol; } Plan;

static FfiError *read_plan(const FfiCall *call, Plan *p)
{
    int complete = attribute(call, "image", 0, &p->image) && attribute(call, "places", FFI_S32, &p->places)
        && attribute(call, "grid", FFI_S64, &p->grid) && attribute(call, "batch", FFI_S64, &p->batch)
        && attribute(call, "steps", FFI_S64, &p->steps) && attribute(call, "key", 0, &p->key)
        && attribute(call, "symbol", 0, &p->symbol);
    int64_t buffers = call->arguments.count + call->results.count;
    if (complete && p->grid.length == 3 * 8 && p->key.length == KEY && p->image.length == 2 * p->places.length
        && p->image.length <= 8 * PARAMETERS && p->batch.length <= 8 * AXES
        && p->steps.length == p->batch.length * (size_t)buffers)
        return NULL;
    return refuse(call, FFI_INVALID_ARGUMENT, "the attributes of a call of cutile_launch_v1 do not fit each other");
}

static int64_t number(Bytes array, int64_t i)
{
    int64_t out;
    memcpy(&out, array.bytes + 8 * i, 8);
    return out;
}

/* Launches for every item of the batch; the first error ends it. */
static FfiError *launch_all(const FfiCall *call, const Driver *d, const Plan *p, void *function, void *stream)
{
    uint64_t memory[PARAMETERS];
    void *parameters[PARAMETERS];
    int64_t index[AXES] = {0}, buffers = call->arguments.count + call->results.count;
    int n = (int)(p->image.length / 8), axes = (int)(p->batch.length / 8);
    unsigned grid[3];
    char text[TEXT];
    for (int i = 0; i < 3; i++) {
        if (number(p->grid, i) <= 0)
            return NULL; /* no block runs */
        grid[i] = (unsigned)number(p->grid, i);
    }
    for (int k = 0; k < axes; k++)
        if (number(p->batch, k) <= 0)
            return NULL;
    memcpy(memory, p->image.bytes, p->image.length);
    for (int i = 0; i < n; i++)
        parameters[i] = memory + i;
    for (;;) {
        for (int i = 0; i < n; i++) {
            int32_t place;
            memcpy(&place, p->places.bytes + 4 * i, 4);
            if (place < 0)
                continue;
            if (place >= buffers)
                return refuse(call, FFI_INVALID_ARGUMENT, "a parameter is a buffer that the call does not have");
            uint64_t address = (uintptr_t)buffer(call, place)->data;
            if (address % ALIGNMENT != 0) { /* the code relies on it */
                snprintf(text, sizeof text, "buffer %d of a kernel is at address %#llx, which %d does not divide",
                         (int)place, (unsigned long long)address, ALIGNMENT);
                return refuse(call, FFI_INTERNAL, text);
            }
            for (int k = 0; k < axes; k++)
                address += (uint64_t)(index[k] * number(p->steps, k * buffers + place));
            memory[i] = address;
        }
        int failed = d->launch(function, grid[0], grid[1], grid[2], 1, 1, 1, 0, stream, parameters, NULL);
        if (failed)
            return refused(call, d, "cannot be launched", p->symbol, failed);
        int k = axes - 1;
        while (k >= 0 && ++index[k] == number(p->batch, k))
            index[k--] = 0;
        if (k < 0)
            return NULL;
    }
}

static FfiError *with_context(const FfiCall *call, const Driver *d, const Plan *p, void *context, void *stream)
{
    void *function = loaded(context, p->key.bytes);
    if (function == NULL) {
        FfiError *error = load(call, d, context, p->key, p->symbol, &function);
        if (error != NULL)
            return error;
    }
    return call->stage == FFI_EXECUTE ? launch_all(call, d, p, function, stream) : NULL;
}

/* For the stages initialize, which loads the kernel, and execute, which launches it. */
static FfiError *launch_on_gpu(FfiCall *call)
{
    if (asks_for_metadata(call))
        return NULL;
    FfiError *error = unknown_interface(call);
    if (error != NULL || (call->stage != FFI_INITIALIZE && call->stage != FFI_EXECUTE))
        return error;
    FfiStreamGet got = {sizeof got, NULL, call->context, NULL};
    if ((error = call->api->stream_get(&got)) != NULL) {
        if (call->stage == FFI_EXECUTE)
            return error;
        FfiErrorDestroy done = {sizeof done, NULL, error}; /* then the first launch loads */
        call->api->error_destroy(&done);
        return NULL;
    }
    Plan p;
    if ((error = read_plan(call, &p)) != NULL)
        return error;
    const Driver *d = opened();
    if (d == NULL)
        return refuse(call, FFI_FAILED_PRECONDITION, "launching on a GPU needs NVIDIA's driver, which this machine does"
                                                     " not have or which is too old");
    void *context, *current = NULL;
    int failed = d->stream_context(got.stream, &context);
    if (failed)
        return refused(call, d, "has no GPU", p.symbol, failed);
    int entered = d->current_context(&current) != 0 || current != context;
    if (entered && (failed = d->push_context(context)) != 0)
        return refused(call, d, "cannot use its GPU", p.symbol, failed);
    error = with_context(call, d, &p, context, got.stream);
    if (entered)
        d->pop_context(&current);
    return error;
}

/* ---------------------------------------------------------------- the interpreter */

static PyObject *interpreter; /* run(attributes, buffers) of cutile/jax/host.py; `gate` is its lock, too */

/* A thread that asks for the GIL while Python ends never comes back, and XLA waits for its threads before the process
   ends. So calls are counted, and refused once Python is about to end (ending.py), except those of the thread that ends
   it: it asks for the GIL before. */
static PyThread_type_lock gate; /* of these; whoever holds it does not wait for the GIL */
static long inside;
static int closed;
static unsigned long ending; /* the thread */

static int enter(void)
{
    PyThread_acquire_lock(gate, WAIT_LOCK);
    int open = !closed || PyThread_get_thread_ident() == ending;
    inside += open;
    PyThread_release_lock(gate);
    return open;
}

static void leave(void)
{
    PyThread_acquire_lock(gate, WAIT_LOCK);
    inside--;
    PyThread_release_lock(gate);
}

static PyObject *close_gate(PyObject *self, PyObject *unused)
{
    PyThread_acquire_lock(gate, WAIT_LOCK);
    closed = 1;
    ending = PyThread_get_thread_ident();
    long running = inside;
    PyThread_release_lock(gate);
    return PyLong_FromLong(running);
}

static PyObject *attributes_of(const FfiCall *call)
{
    PyObject *out = PyDict_New();
    for (int64_t i = 0; out != NULL && i < call->attributes.count; i++) {
        const FfiSpan *name = call->attributes.names[i], *text = call->attributes.items[i];
        const FfiArray *a = call->attributes.items[i];
        int type = call->attributes.types[i];
        if (type != FFI_STRING && type != FFI_ARRAY)
            continue;
        PyObject *key = PyUnicode_FromStringAndSize(name->text, (Py_ssize_t)name->length);
        PyObject *value = type == FFI_STRING
            ? PyBytes_FromStringAndSize(text->text, (Py_ssize_t)text->length)
            : PyBytes_FromStringAndSize(a->data, (Py_ssize_t)a->size * (a->dtype == FFI_S64 ? 8 : 4));
        if (key == NULL || value == NULL || PyDict_SetItem(out, key, value) < 0)
            Py_CLEAR(out);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return out;
}

/* A list with the address and the sizes of each buffer. */
static PyObject *buffers_of(const FfiCall *call)
{
    int64_t n = call->arguments.count + call->results.count;
    PyObject *out = PyList_New(0);
    for (int64_t i = 0; out != NULL && i < n; i++) {
        const FfiBuffer *b = buffer(call, i);
        PyObject *dims = PyTuple_New((Py_ssize_t)b->rank);
        for (int64_t k = 0; dims != NULL && k < b->rank; k++) {
            PyObject *size = PyLong_FromLongLong(b->dims[k]);
            if (size == NULL || PyTuple_SetItem(dims, (Py_ssize_t)k, size) < 0)
                Py_CLEAR(dims);
        }
        PyObject *item = dims == NULL ? NULL : Py_BuildValue("(KN)", (unsigned long long)(uintptr_t)b->data, dims);
        if (item == NULL || PyList_Append(out, item) < 0)
            Py_CLEAR(out);
        Py_XDECREF(item);
    }
    return out;
}

/* The error that Python has set, as XLA's. An interrupt is raised again, in Python. */
static FfiError *python_error(const FfiCall *call)
{
    PyObject *type, *value, *trace;
    int interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value == NULL ? NULL : PyObject_Str(value);
    const char *message = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
    FfiError *error = refuse(call, interrupted ? FFI_CANCELLED : FFI_INTERNAL,
                             interrupted ? "interrupted" : message != NULL ? message : "an error without text");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    if (interrupted)
        PyErr_SetInterrupt();
    return error;
}

static FfiError *run_on_cpu(FfiCall *call)
{
    if (asks_for_metadata(call))
        return NULL;
    FfiError *error = unknown_interface(call);
    if (error != NULL || call->stage != FFI_EXECUTE)
        return error;
    if (!enter())
        return refuse(call, FFI_FAILED_PRECONDITION, "kernels on a CPU run in Python, which ends: register functions "
                                                     "for atexit that call kernels after importing cutile.jax");
    PyGILState_STATE state = PyGILState_Ensure();
    PyThread_acquire_lock(gate, WAIT_LOCK);
    PyObject *run = Py_NewRef(interpreter);
    PyThread_release_lock(gate);
    PyObject *attributes = attributes_of(call), *buffers = attributes == NULL ? NULL : buffers_of(call);
    PyObject *answer = buffers == NULL ? NULL : PyObject_CallFunctionObjArgs(run, attributes, buffers, NULL);
    Py_DECREF(run);
    Py_XDECREF(attributes);
    Py_XDECREF(buffers);
    if (answer == NULL)
        error = python_error(call);
    Py_XDECREF(answer);
    PyGILState_Release(state);
    leave();
    return error;
}

/* ---------------------------------------------------------------- the module */

static PyObject *set_interpreter(PyObject *self, PyObject *function)
{
    PyThread_acquire_lock(gate, WAIT_LOCK);
    PyObject *before = interpreter;
    interpreter = Py_NewRef(function);
    PyThread_release_lock(gate);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_interpreter", set_interpreter, METH_O,
     "set_interpreter(run): run(attributes, buffers) is called for a kernel on a CPU, with attributes as bytes by\n"
     "name, and the address and the sizes of each buffer"},
    {"close", close_gate, METH_NOARGS,
     "close() -> int: refuse calls on a CPU from now on; how many still run"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_handlers", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__handlers(void)
{
    if ((lock == NULL && (lock = PyThread_allocate_lock()) == NULL)
        || (gate == NULL && (gate = PyThread_allocate_lock()) == NULL))
        return PyErr_NoMemory();
    PyObject *m = PyModule_Create(&module);
    PyObject *gpu = PyCapsule_New((void *)launch_on_gpu, NULL, NULL);
    PyObject *cpu = PyCapsule_New((void *)run_on_cpu, NULL, NULL);
#ifdef Py_GIL_DISABLED
    if (m != NULL && PyUnstable_Module_SetGIL(m, Py_MOD_GIL_NOT_USED) < 0)
        Py_CLEAR(m);
#endif
    int ok = m != NULL && gpu != NULL && cpu != NULL && PyModule_AddObjectRef(m, "launch_on_gpu", gpu) == 0
        && PyModule_AddObjectRef(m, "run_on_cpu", cpu) == 0
        && PyModule_AddIntConstant(m, "PARAMETERS", PARAMETERS) == 0 && PyModule_AddIntConstant(m, "AXES", AXES) == 0;
    Py_XDECREF(gpu);
    Py_XDECREF(cpu);
    if (!ok)
        Py_CLEAR(m);
    return m;
}
