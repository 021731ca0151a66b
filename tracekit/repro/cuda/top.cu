// A CUDA graph taken from an Nsight Systems trace, rebuilt without the application that launched it.
//
// The graph has the traced nodes and edges. Each kernel node launches a stand-in with the traced grid, block, cluster,
// registers and shared memory; what it computes is made up, but of the traced kernel's kind, and --calibrate fits it
// until it takes as long alone as the traced kernel did alone. README.md says what was slow and how to run this.
//
//   nvcc -std=c++17 -O3 -arch=native -o repro repro.cu && ./repro --calibrate --json results.json
//
// Exit codes: 0 the graph is not slower than the same nodes one after another, 10 it is (reproduced),
// 2 wrong usage, 3 no usable GPU or driver, 4 out of memory, 5 outputs differ between modes, 6 a CUDA call failed.

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

enum Exit { kNotReproduced = 0, kReproduced = 10, kUsage = 2, kNoGpu = 3, kNoMemory = 4, kDiffers = 5, kFailed = 6 };

[[noreturn]] __attribute__((format(printf, 2, 3))) void fail(Exit code, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("repro: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::exit(code);
}

void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  const char* text = cudaGetErrorString(error);
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
      fail(kNoGpu, "no usable GPU or driver (%s): run it where nvidia-smi lists a GPU", text);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      fail(kNoGpu, "built for another GPU (%s): build with ./build.sh native", text);
    case cudaErrorMemoryAllocation:
      fail(kNoMemory, "out of memory (line %d, %s): leave nodes out with --drop, or use a larger GPU", line, call);
    default:
      fail(kFailed, "line %d: %s: %s (%s)", line, call, cudaGetErrorName(error), text);
  }
}
#define CUDA(call) check((call), #call, __LINE__)
