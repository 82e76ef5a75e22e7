/* A CUDA driver that writes down what it is told. Streams are numbers: the GPU in bits 8 and up. */

#include <stdint.h>
#include <string.h>

enum { MOST = 4096 };
typedef struct { uint64_t function, stream, context, values[32]; unsigned grid[3]; int mode; } Launch;

Launch launches[MOST];
int launch_count, load_count, fails_load, fails_function, fails_launch, fails_stream, parameter_count;
int capability[2] = {9, 0};
char images[MOST][64], symbols[MOST][64];
int modes[MOST];
static _Thread_local uint64_t contexts[8];
static _Thread_local int depth, mode;

int context_depth(void) { return depth; }
int capture_mode(void) { return mode; }
int cuStreamGetCtx(uint64_t stream, uint64_t *out) { *out = 0x1000 + (stream >> 8); return fails_stream; }
int cuCtxGetCurrent(uint64_t *out) { *out = depth ? contexts[depth - 1] : 0; return 0; }
int cuCtxPushCurrent_v2(uint64_t context) { contexts[depth++] = context; return 0; }
int cuCtxPopCurrent_v2(uint64_t *out) { *out = contexts[--depth]; return 0; }
int cuCtxGetDevice(int *out) { *out = (int)(contexts[depth - 1] - 0x1000); return 0; }
int cuDeviceGetAttribute(int *out, int which, int device) { *out = capability[which - 75]; return 0; }

int cuThreadExchangeStreamCaptureMode(int *given)
{
    int before = mode;
    mode = *given;
    *given = before;
    return 0;
}

int cuModuleLoadData(uint64_t *out, const char *image)
{
    if (fails_load)
        return fails_load;
    int n = __atomic_fetch_add(&load_count, 1, __ATOMIC_SEQ_CST);
    strncpy(images[n], image, 63);
    modes[n] = mode;
    *out = n;
    return 0;
}

int cuModuleGetFunction(uint64_t *out, uint64_t module, const char *name)
{
    strncpy(symbols[module], name, 63);
    *out = 0x8000 + module;
    return fails_function;
}

int cuLaunchKernel(uint64_t function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, uint64_t stream, void **parameters, void **extra)
{
    if (fails_launch || bx != 1 || by != 1 || bz != 1 || shared != 0 || extra != 0)
        return fails_launch ? fails_launch : 1;
    Launch *l = &launches[__atomic_fetch_add(&launch_count, 1, __ATOMIC_SEQ_CST) % MOST];
    *l = (Launch){function, stream, depth ? contexts[depth - 1] : 0, {0}, {x, y, z}, mode};
    for (int i = 0; i < parameter_count; i++)
        memcpy(&l->values[i], parameters[i], 8);
    return 0;
}

int cuGetErrorName(int code, const char **out)
{
    *out = code == 200 ? "CUDA_ERROR_INVALID_IMAGE" : 0;
    return code != 200;
}

int cuGetErrorString(int code, const char **out)
{
    *out = code == 200 ? "device kernel image is invalid" : 0;
    return 0;
}
