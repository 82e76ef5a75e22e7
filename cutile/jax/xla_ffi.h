/* What cutile uses of XLA's foreign function interface: its structs and numbers, as its C interface 0.1 has them and
   later ones extend them. tests/jax/test_handlers.py compares them with the header that jaxlib brings.

   Every struct begins with its size. A newer XLA appends fields, so a size may be larger than ours.
*/

#ifndef CUTILE_XLA_FFI_H
#define CUTILE_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { FFI_MAJOR = 0, FFI_MINOR = 1 }; /* the oldest version with all that is used here */
enum { FFI_METADATA = 1 };             /* the type of an extension */
enum { FFI_INSTANTIATE, FFI_PREPARE, FFI_INITIALIZE, FFI_EXECUTE }; /* stages of a call */
enum { FFI_BUFFER = 1 };                                            /* the type of an argument or result */
enum { FFI_ARRAY = 1, FFI_STRING = 4 };                             /* types of attributes */
enum { FFI_S32 = 4, FFI_S64 = 5 };                                  /* dtypes of array attributes */
enum { FFI_COMMAND_BUFFER_COMPATIBLE = 1 };                         /* a trait: a CUDA graph may record the call */
enum { FFI_CANCELLED = 1, FFI_INVALID_ARGUMENT = 3, FFI_FAILED_PRECONDITION = 9, FFI_UNIMPLEMENTED = 12,
       FFI_INTERNAL = 13 }; /* codes of errors */

typedef struct FfiError FfiError;

typedef struct FfiExtension { size_t size; int type; struct FfiExtension *next; } FfiExtension;

typedef struct { size_t size; FfiExtension *extensions; int major, minor; } FfiVersion;

typedef struct { size_t size; FfiVersion version; uint32_t traits; } FfiMetadata;

typedef struct { FfiExtension base; FfiMetadata *metadata; } FfiMetadataExtension;

typedef struct { size_t size; FfiExtension *extensions; const char *message; int code; } FfiErrorCreate;

typedef struct { size_t size; FfiExtension *extensions; FfiError *error; } FfiErrorDestroy;

typedef struct { size_t size; FfiExtension *extensions; FfiError *error; const char *message; } FfiErrorMessage;

typedef struct { size_t size; FfiExtension *extensions; void *context, *stream; } FfiStreamGet;

typedef struct { /* the start of the table of XLA's functions */
    size_t size;
    FfiExtension *extensions;
    FfiVersion version;
    const void *internal;
    FfiError *(*error_create)(FfiErrorCreate *);
    void (*error_message)(FfiErrorMessage *);
    void (*error_destroy)(FfiErrorDestroy *);
    void *handler_register;
    FfiError *(*stream_get)(FfiStreamGet *);
} FfiApi;

typedef struct { const char *text; size_t length; } FfiSpan;

typedef struct { int dtype; size_t size; void *data; } FfiArray;

typedef struct { size_t size; FfiExtension *extensions; int dtype; void *data; int64_t rank, *dims; } FfiBuffer;

typedef struct { size_t size; FfiExtension *extensions; int64_t count; int *types; void **items; } FfiBuffers;

typedef struct { size_t size; FfiExtension *extensions; int64_t count; int *types; FfiSpan **names; void **items; }
    FfiAttributes;

typedef struct {
    size_t size;
    FfiExtension *extensions;
    const FfiApi *api;
    void *context;
    int stage;
    FfiBuffers arguments, results;
    FfiAttributes attributes;
} FfiCall;

#endif
