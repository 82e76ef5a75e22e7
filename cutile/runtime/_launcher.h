/* What the C files of the launcher share: what is read of the arguments of a launch. */

#ifndef CUTILE_LAUNCHER_H
#define CUTILE_LAUNCHER_H

#ifndef Py_GIL_DISABLED /* setup.py defines it for free-threaded Pythons, which have no stable ABI */
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { PARTS = 512, VALUES = 128, MOST_ARGUMENTS = 256 }; /* of a launch */
enum { BOOL = 1, INT, FLOAT, TORCH, TORCH_SHIM, CUPY, CUPY_FIELDS, NUMPY }; /* kinds of arguments; most begin signatures */
enum { YES = 1, NO = 0 };                            /* NO also where a Python error is set */

typedef union { uint64_t bits; double number; } Value; /* a launch value: an address or a number */

typedef struct {
    uint64_t parts[PARTS];
    Value values[VALUES];
    PyObject *arguments[VALUES]; /* which the values are of; borrowed */
    int n_parts, n_values;
    PyObject *kept; /* a list of what the parts have addresses of, or NULL */
    PyObject *cls;  /* of the last argument that was no constant, and what `kinds` has for it */
    uint64_t kind;
} Reading;

/* What threads change and read at once has a lock where no GIL orders them. Whoever holds one calls nothing of Python
   that could wait or run code. Objects are immutable, or owned while they are used: what a dictionary or list lends,
   another thread could drop. */
#ifdef Py_GIL_DISABLED
typedef PyMutex Mutex;
#define LOCK(mutex) PyMutex_Lock(mutex)
#define UNLOCK(mutex) PyMutex_Unlock(mutex)
#define NEEDS_NO_GIL(module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)
#else
typedef char Mutex;
#define LOCK(mutex) ((void)(mutex))
#define UNLOCK(mutex) ((void)(mutex))
#define NEEDS_NO_GIL(module) 0
#endif

/* A new reference; NULL, perhaps without an error, where there is nothing. */
static inline PyObject *item_of(PyObject *dict, PyObject *key)
{
#ifdef Py_GIL_DISABLED
    PyObject *item;
    return PyDict_GetItemRef(dict, key, &item) < 0 ? NULL : item;
#else
    return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

static inline PyObject *item_at(PyObject *list, Py_ssize_t i)
{
#ifdef Py_GIL_DISABLED
    return PyList_GetItemRef(list, i);
#else
    return Py_XNewRef(PyList_GetItem(list, i));
#endif
}

static inline void start_reading(Reading *r, PyObject *kept)
{
    r->n_parts = r->n_values = 0;
    r->kept = kept;
    r->cls = NULL;
}

static inline int part(Reading *r, uint64_t value)
{
    if (r->n_parts == PARTS)
        return NO;
    r->parts[r->n_parts++] = value;
    return YES;
}

static inline int value(Reading *r, uint64_t bits)
{
    if (r->n_values == VALUES)
        return NO;
    r->values[r->n_values++].bits = bits;
    return YES;
}

/* An object, by its address: no other has it as long as the object is kept. */
static inline int identity(Reading *r, PyObject *o)
{
    return part(r, (uintptr_t)o) && (r->kept == NULL || PyList_Append(r->kept, o) == 0);
}

/* what C code reads of an argument of an algorithm: an array, which may be written, an int, None */
enum { MAY_BE_ARRAY = 1, MAY_BE_INT = 2, MAY_BE_NONE = 4, IS_WRITTEN = 8 };

enum { DLPACK_CUDA = 2 };
typedef int (*DeviceStream)(int32_t, int32_t, void **); /* the current stream of a device, as DLPack declares it */

enum { RECORD, COMPARISONS, PREPARED, WRITTEN, CHOICES, STREAMS, KEPT, ITEMS }; /* of an entry of a LaunchCache */

typedef struct { /* what was found last for signatures that have this place in the table; all of it is owned */
    PyObject *table, *signature, *found, *entry; /* the last one for calls alone */
    const char *bytes; /* of the signature */
    Py_ssize_t size;
} Recent;
enum { RECENT = 32 };

typedef struct {
    PyObject_HEAD
    PyObject *entries;   /* by signature */
    PyObject *kinds;     /* of arguments, by class: one from above, or the address of a function that lends a tensor */
    PyObject *constants; /* bytes: 1 for each parameter that is annotated ct.Constant, else 0 */
    PyObject *watch;     /* settings, as settings.watch makes it */
    PyObject *host_watch; /* more settings, of launches on the host */
    long grid_limit;     /* blocks along an axis, at most */
    Py_ssize_t capacity; /* entries, at most */
    Recent recent[RECENT];
    uint64_t changes;    /* how often what is found may have changed */
    Mutex mutex;         /* of these two */
} LaunchCache;

/* What follows is of this extension alone, so calls of it go straight there. */
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

/* _arguments.c */

/* kinds: as in a LaunchCache */
int read_argument(Reading *r, PyObject *o, PyObject *kinds);
int read_constant(Reading *r, PyObject *o);
/* The items of a tuple of at most MOST_ARGUMENTS; their number, or -1, without an error, for another object. */
int items_of(PyObject *tuple, PyObject **out);
int read_all(Reading *r, PyObject *const *args, int n, PyObject *constants, PyObject *kinds);
/* Reads an array in GPU memory. NO, perhaps with an error, for anything else. kinds: as in read_roles */
int read_on_gpu(Reading *r, PyObject *o, PyObject *kinds);
PyObject *lender(PyObject *self, PyObject *capsule);
PyObject *torch_shims(PyObject *self, PyObject *args);
PyObject *streams_of(PyObject *self, PyObject *capsule);
PyObject *cupy_fields(PyObject *self, PyObject *args);
int start_arguments(void);

/* _signatures.c */

PyObject *signature_of(const Reading *r);
/* What a dictionary has for a signature, a new reference; NULL, perhaps without an error, for nothing. Whoever changes
   such a dictionary calls forget_recent afterwards. entry: NULL, or where the dictionary has calls: becomes the entry of
   the call's launch, without which nothing is found. */
PyObject *found_in(LaunchCache *c, PyObject *table, const Reading *r, PyObject **entry);
void forget_recent(LaunchCache *c);
int visit_recent(LaunchCache *c, visitproc visit, void *arg);

/* _device_launch.c */

enum { PARAMETERS = 512 }; /* of a launch, at most */
enum { FIXED, BITS64, BITS32, FLOAT32 }; /* how a parameter is written at a launch */

/* Whether it is known which function runs for a grid; `out` stays as it is where that is the record's. choices: None,
   or a list with a table of gpu/grid_functions.py. */
int choose(PyObject *choices, const unsigned *grid, uint64_t *out);
/* The driver's answer, or -1 if the launch is not for here. function: 0 for the record's */
int launch_on_device(PyObject *record, const Reading *r, const unsigned *grid, uint64_t function, uint64_t stream);
/* Whether this thread has the context current in which a record's code is. */
int has_context(PyObject *record);
/* Whether a context is the current one of this thread; the first argument is the address of cuCtxGetCurrent. */
PyObject *is_current(PyObject *self, PyObject *const *a, Py_ssize_t n);
/* The record of a launch: how the driver is called, and what is passed besides launch values. */
PyObject *device_record(PyObject *self, PyObject *args);

/* _prepared.c */

extern PyType_Spec prepared_spec;
/* A launch of a Prepared, with launch values of roots: the driver's answer, or -1, perhaps with an error, if it is not
   for here. */
int prepared_on_device(PyObject *prepared, PyObject *stream, PyObject *roots, PyObject *sources);

/* _algorithms.c */

PyObject *array_on_gpu(PyObject *self, PyObject *const *a, Py_ssize_t n);
PyObject *read_roles(PyObject *self, PyObject *const *a, Py_ssize_t n);
PyObject *apart(PyObject *self, PyObject *const *a, Py_ssize_t n);
PyObject *run_steps(PyObject *self, PyObject *const *a, Py_ssize_t n);
PyObject *call_algorithm(PyObject *self, PyObject *const *a, Py_ssize_t n);
int start_algorithms(PyObject *prepared);

/* _launcher.c */

int read_grid(PyObject *grid, long limit, unsigned *out);
int read_stream(PyObject *stream, PyObject *readers, uint64_t *out);
/* The answer "leave it to Python". An error that is no Exception, such as KeyboardInterrupt, is raised instead. */
PyObject *not_here(void);
/* The answer "these were not kept", False; errors as above. */
PyObject *not_kept(void);
/* Whether the settings that matter here are not set anywhere. watch: as settings.watch makes it */
int untouched(PyObject *watch);
/* Tells PyTorch which tensors are written to. NO, with nothing done, if one of them requires grad while grad mode is
   on, or if a level of forward mode is open: Python decides about that. `written` is None, or a function that raises the
   versions of tensors, a function that says whether grad mode is on, a dictionary with the level of forward mode, and
   the positions of the tensors among the arguments (autograd.for_c). passed: the arguments, with None in the place of
   those that nobody has seen yet, whose versions stay as they are */
int told(PyObject *written, PyObject *const *args, PyObject *const *passed);
int is_on_host(PyObject *entry);
/* Whether a launch in CPU memory, which needs no stream, may be given this one. Of streams that are objects, which are
   rare there, Python finds out whether they are ones. */
int is_host_stream(PyObject *stream);
/* Whether this thread has the context current in which the entry's code is. */
int may_launch(PyObject *entry);
/* None, NotImplemented, or what the driver refused. passed: as in `told` */
PyObject *launch_entry(LaunchCache *c, PyObject *entry, const Reading *r, uint64_t stream, const unsigned *grid,
                       PyObject *const *args, PyObject *const *passed);

/* _calls.c */

enum { LAUNCHED, GRID, FIRST, STREAM_OF, GPU, RECIPES, FILLERS, CALL_KEPT, CALL_ITEMS }; /* _calls.c says what */
enum { MOST_OUTPUTS = 16 }; /* that a call may make */

/* Makes a call that is in the dictionary `calls`: None if it did, NotImplemented if nothing was done, or the error of
   code in CPU memory. given: a stream, or None for the current one;  args: of the launch, with None for outputs to
   make, in the place of which it puts these;  made: they, too, as references that the caller takes, up to a NULL */
PyObject *run_call(LaunchCache *c, PyObject *given, PyObject *calls, PyObject **args, int n, PyObject **made);
PyObject *cache_keep_call(PyObject *self, PyObject *const *a, Py_ssize_t n);
int start_calls(void);

/* _functions.c */

/* Calls with the arguments in a row (PEP 590). The limited interface has names for it from Python 3.12 on; what they
   stand for is the same in 3.11. */
typedef PyObject *(*Vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);
enum { HAS_VECTORCALL = 1 << 11 };

extern PyObject *entry_type;
PyObject *entry_vectorcall(PyObject *self, PyObject *const *a, size_t flags, PyObject *names);
PyObject *entry_call(PyObject *self, PyObject *args, PyObject *named);
int add_entries(PyObject *module, PyObject *cache);

/* _callables.c */
int add_callables(PyObject *module);

/* _host_launch.c */
extern PyObject *ndarray; /* the class of NumPy */
int read_numpy(Reading *r, PyObject *a);
PyObject *host_arguments(PyObject *record, const Reading *r);
PyObject *launch_on_host(PyObject *record, PyObject *arguments);
int start_host_launches(void);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

#endif
