/* Loops over arrays of any shape and layout, in packed pieces.

   A loop borrows arrays, broadcasts them, and hands their elements to a body: an array of its own for each, `n`
   elements at a time. */

#ifndef CUTILE_LOOP_H
#define CUTILE_LOOP_H

#include "forms.h"

enum { AXES = 64, ARRAYS = 14 };
enum { PIECE = 512 }; /* elements that are packed at once: few arrays of them stay in the first cache */

typedef struct {
    char *data;
    Py_ssize_t strides[AXES]; /* bytes; 0 where it does not vary */
    Py_ssize_t size;          /* of an element */
    char type;                /* a format character of the struct module; 'l' and 'L' are written as others */
    int packed;               /* all elements lie one after another, in the order of the loop */
    int single;               /* it is one element */
    Py_buffer buffer;
    uint64_t piece[PIECE];    /* elements brought together */
} Array;

typedef struct {
    int axes, arrays;
    Py_ssize_t shape[AXES], total;
    int full_axes, once; /* whether the full shape is longer, along axes that are computed once */
    Py_ssize_t full[AXES];
    Array array[ARRAYS];
} Loop;

/* Computes `n` elements of packed arrays, `at`; those that are results are written. Returns whether the caller has to
   do something about them. */
typedef int Body(const void *state, void *const *at, Py_ssize_t n);

char element_type(const Py_buffer *b); /* as in Array; 0 where it has no such name */

/* Adds an array whose elements have one of these types. 0 with a Python error if it has another. */
int loop_borrow(Loop *l, PyObject *o, const char *types, int writable);
void loop_release(Loop *l);

/* Makes the shape of the loop that to which its arrays and a tuple of lengths, or NULL, broadcast. */
int loop_broadcast(Loop *l, PyObject *shape);

/* Computes one result, whose layout is that which NumPy would give it: its axes lie in memory in the order of the
   operands' axes. It is `out` where that has the shape. An axis along which no operand varies has length 1 in it, until
   `loop_full` gives it the length of the loop, with stride 0. *told: what the body returned, of all pieces together */
PyObject *loop_result(Loop *l, PyObject *out, char type, Body *body, const void *state, int *told);
PyObject *loop_full(const Loop *l, PyObject *result); /* takes the reference; NULL for NULL */

/* Makes the loop one over the rows of its only array, which lie along an axis. Adds a new array for the results, one for
   each row or, in scans, for each element; it lies in memory as the first array does. steps: the bytes between elements
   of a row in both. */
PyObject *loop_rows(Loop *l, int axis, int scans, char type, Py_ssize_t *steps);

/* Calls `run` in the usual mode of floating-point arithmetic, without the GIL if there are many elements. */
typedef int Run(Loop *l, const void *state);
int loop_run(Loop *l, Py_ssize_t elements, Run *run, const void *state);

/* Runs the body in row-major order of the elements; the last `results` arrays are written. */
void loop_in_order(Loop *l, int results, Body *body, const void *state);
PyObject *loop_add_new(Loop *l, char type); /* a new array of the loop's shape */

/* The result of an elementwise function on `n` arrays, in args[n] where that is given and has its shape. types: of the
   arrays, then of the result */
PyObject *elementwise_result(const char *name, const char *types, int n, Body *body, const void *state,
                             PyObject *const *args, Py_ssize_t given);

int start_loops(void);

#endif
