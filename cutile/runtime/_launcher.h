/* What the C files of the launcher share: what is read of the arguments of a launch. */

#ifndef CUTILE_LAUNCHER_H
#define CUTILE_LAUNCHER_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { PARTS = 512, VALUES = 128 };                  /* of a launch, at most */
enum { BOOL = 1, INT, FLOAT, TORCH, CUPY, NUMPY };   /* kinds of arguments, and first parts of their signature */
enum { YES = 1, NO = 0 };                            /* NO also where a Python error is set */

typedef union { uint64_t bits; double number; } Value; /* a launch value: an address or a number */

typedef struct {
    uint64_t parts[PARTS];
    Value values[VALUES];
    PyObject *arguments[VALUES]; /* which the values are of; borrowed */
    int n_parts, n_values;
    PyObject *kept; /* a list of what the parts have addresses of, or NULL */
} Reading;

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

/* _host_launch.c */
int read_numpy(Reading *r, PyObject *a);
PyObject *host_arguments(PyObject *record, const Reading *r);
PyObject *launch_on_host(PyObject *record, PyObject *arguments);
int start_host_launches(void);

#endif
