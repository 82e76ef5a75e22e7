// Launches the exported kernel with the driver API alone, and compares every element with the host's own softmax.
//
//     ./softmax softmax.cubin

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include <cuda.h>

#include "softmax.h"

static void ask(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS) return;
    const char *text = nullptr;
    cuGetErrorString(result, &text);
    std::fprintf(stderr, "%s: %s\n", what, text ? text : "unknown error");
    std::exit(1);
}
#define ASK(call) ask(call, #call)

static double largest_error(const std::vector<float> &x, const std::vector<float> &y, int rows, int cols, int pitch,
                            double sharpness) {
    double worst = 0;
    for (int i = 0; i < rows; ++i) {
        const float *row = &x[static_cast<size_t>(i) * pitch];
        double top = row[0], sum = 0;
        for (int j = 1; j < cols; ++j) top = std::fmax(top, row[j]);
        for (int j = 0; j < cols; ++j) sum += std::exp((row[j] - top) * sharpness);
        for (int j = 0; j < cols; ++j) {
            const double want = std::exp((row[j] - top) * sharpness) / sum;
            const double error = std::fabs(y[static_cast<size_t>(i) * pitch + j] - want);
            if (!(error <= worst)) worst = error;  // NaN counts
        }
    }
    return worst;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s softmax.cubin\n", argv[0]);
        return 2;
    }
    const int rows = 777, cols = 1000, pitch = 1004;  // a row of 1000 and 4 that are never touched
    const float sharpness = 0.75f;
    const size_t bytes = sizeof(float) * rows * pitch;
    std::vector<float> x(static_cast<size_t>(rows) * pitch), y(x.size(), -7.0f);
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 3.0f);
    for (float &v : x) v = normal(random);

    CUdevice device;
    CUcontext context;
    ASK(cuInit(0));
    ASK(cuDeviceGet(&device, 0));
    ASK(cuDevicePrimaryCtxRetain(&context, device));
    ASK(cuCtxSetCurrent(context));

    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr dx, dy;
    ASK(cuModuleLoad(&module, argv[1]));
    ASK(cuModuleGetFunction(&function, module, SOFTMAX_SYMBOL));
    ASK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASK(cuMemAlloc(&dx, bytes));
    ASK(cuMemAlloc(&dy, bytes));
    ASK(cuMemcpyHtoD(dx, x.data(), bytes));
    ASK(cuMemcpyHtoD(dy, y.data(), bytes));

    softmax_arguments arguments = {};
    arguments.x = dx;
    arguments.y = dy;
    arguments.x_size[0] = arguments.y_size[0] = rows;
    arguments.x_size[1] = arguments.y_size[1] = cols;
    arguments.x_stride[0] = arguments.y_stride[0] = pitch;
    arguments.x_stride[1] = arguments.y_stride[1] = 1;
    arguments.sharpness = sharpness;
    if (const char *promise = softmax_broken(&arguments)) {
        std::fprintf(stderr, "the arguments break what the kernel was compiled for: %s\n", promise);
        return 1;
    }
    void *pointers[SOFTMAX_ARGUMENTS];
    softmax_pointers(&arguments, pointers);
    ASK(cuLaunchKernel(function, rows, 1, 1, 1, 1, 1, 0, stream, pointers, nullptr));
    ASK(cuStreamSynchronize(stream));
    ASK(cuMemcpyDtoH(y.data(), dy, bytes));

    bool whole = true;  // nothing was written beyond the rows
    for (int i = 0; i < rows; ++i)
        for (int j = cols; j < pitch; ++j) whole = whole && y[static_cast<size_t>(i) * pitch + j] == -7.0f;
    const double error = largest_error(x, y, rows, cols, pitch, sharpness), allowed = 1e-6;
    const bool ok = whole && error <= allowed;
    std::printf("C++, driver API: softmax of %d x %d, largest error %.2e (allowed %.0e)%s: %s\n", rows, cols, error,
                allowed, whole ? "" : ", wrote beyond its rows", ok ? "ok" : "WRONG");

    ASK(cuMemFree(dx));
    ASK(cuMemFree(dy));
    ASK(cuStreamDestroy(stream));
    ASK(cuModuleUnload(module));
    ASK(cuDevicePrimaryCtxRelease(device));
    return ok ? 0 : 1;
}
