/* What the C files of this folder share.

   A compiled form computes what an operation's NumPy form computes, bit for bit, in one pass. `loop.c` brings operands
   of any shape and layout to packed arrays; the functions that compute see nothing else. */

#ifndef CUTILE_FORMS_H
#define CUTILE_FORMS_H

#ifndef Py_GIL_DISABLED /* setup.py defines it for free-threaded Pythons, which have no stable ABI */
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0 || defined(__FAST_MATH__)
#error "float and double must be rounded after each operation"
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline)) /* so that it becomes code for the CPU of its caller */
#define LINES __attribute__((aligned(64))) /* of an array: vectors lie within lines of a cache */
#else
#define INLINE static inline
#define LINES
#endif
#if defined(__GNUC__) && defined(__x86_64__) /* which stands for CPUs since 2003: most are newer */
#if defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__) /* the loader chooses, by the CPU's vectors */
#define FAST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FAST __attribute__((target("avx2,fma")))
#endif
#define CPU_IS_FAST (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define HAVE_FMA 1
#else
#define FAST
#define CPU_IS_FAST 1
#if defined(FP_FAST_FMA) && defined(FP_FAST_FMAF)
#define HAVE_FMA 1
#else
#define HAVE_FMA 0 /* or not known */
#endif
#endif

/* Computes `n` elements. at: the packed operands, then the result, which may be an operand. Returns whether some
   results are DOUBTFUL. */
typedef int Compute(void *const *at, Py_ssize_t n);

enum { DOUBTFUL = 0x7FA00D0B }; /* the bits of a signalling NaN, which no operation results in */
enum { OPERANDS = 3 }; /* of an elementwise form, at most */
enum { ROOM = 4096 }; /* bytes of an array between the steps of a chain, at most */

typedef struct {
    const char *name;  /* by which Python finds it */
    const char *types; /* a format character of the struct module for each operand, then for the result */
    Compute *compute;
} Elementwise;

/* Each ends with a NULL name. */
extern const Elementwise FMA_FORMS[], ROUNDING_FORMS[], ENCODING_FORMS[], FUNCTION_FORMS[], EXTREME_FORMS[],
    CHOICE_FORMS[], STEP_FORMS[];

int add_form(PyObject *forms, const char *name, PyMethodDef *method, const void *data);
int add_elementwise(PyObject *forms, const Elementwise *table);
int add_elements(PyObject *forms);
int add_along(PyObject *forms);
int add_chains(PyObject *module, int usable);

INLINE uint32_t bits32(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
INLINE uint64_t bits64(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
INLINE float float_of(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
INLINE double double_of(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

#endif
