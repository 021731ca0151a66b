// Layers of two kernels and one that joins them: as a CUDA graph, or one kernel after another.
// With GRAPHS=0 in the environment every kernel is launched by itself, on one stream;
// else the layers are captured, the first two kernels of each side by side.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <nvtx3/nvToolsExt.h>

constexpr int kLayers = 16, kRuns = 40, kBlocks = 64, kThreads = 256, kRounds = 2000;

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "graph: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

__device__ float turned(float x, float by) {
  for (int round = 0; round < kRounds; ++round) x = fmaf(x, 0.999f, by);
  return x;
}

__global__ void gate(const float* x, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = turned(x[i], 0.001f);
}

__global__ void up(const float* x, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = turned(x[i], 0.002f);
}

__global__ void join(const float* a, const float* b, float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 0.5f * (a[i] + b[i]);
}

struct Buffers {
  float *x, *a, *b;
};

static void launch_layers(Buffers buffers, cudaStream_t main, cudaStream_t side) {
  cudaEvent_t forked, joined;
  check(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  for (int layer = 0; layer < kLayers; ++layer) {
    if (side != main) {
      check(cudaEventRecord(forked, main));
      check(cudaStreamWaitEvent(side, forked, 0));
    }
    up<<<kBlocks, kThreads, 0, side>>>(buffers.x, buffers.b);
    gate<<<kBlocks, kThreads, 0, main>>>(buffers.x, buffers.a);
    if (side != main) {
      check(cudaEventRecord(joined, side));
      check(cudaStreamWaitEvent(main, joined, 0));
    }
    join<<<kBlocks, kThreads, 0, main>>>(buffers.a, buffers.b, buffers.x);
    check(cudaGetLastError());
  }
  check(cudaEventDestroy(forked));
  check(cudaEventDestroy(joined));
}

static cudaGraphExec_t captured(Buffers buffers, cudaStream_t main) {
  cudaStream_t side;
  check(cudaStreamCreate(&side));
  cudaGraph_t graph;
  check(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
  launch_layers(buffers, main, side);
  check(cudaStreamEndCapture(main, &graph));
  cudaGraphExec_t exec;
  check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  return exec;
}

int main() {
  const char* asked = std::getenv("GRAPHS");
  const bool graphs = asked == nullptr || std::strcmp(asked, "0") != 0;
  const size_t bytes = sizeof(float) * kBlocks * kThreads;
  Buffers buffers;
  for (float** each : {&buffers.x, &buffers.a, &buffers.b}) {
    check(cudaMalloc(reinterpret_cast<void**>(each), bytes));
    check(cudaMemset(*each, 0, bytes));
  }
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  cudaGraphExec_t exec = graphs ? captured(buffers, stream) : nullptr;

  nvtxDomainHandle_t domain = nvtxDomainCreateA("tracekit");
  nvtxEventAttributes_t phase = {};
  phase.version = NVTX_VERSION;
  phase.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  phase.messageType = NVTX_MESSAGE_TYPE_ASCII;
  phase.message.ascii = "layers";

  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    nvtxDomainRangePushEx(domain, &phase);
    if (graphs) {
      check(cudaGraphLaunch(exec, stream));
    } else {
      launch_layers(buffers, stream, stream);
    }
    check(cudaStreamSynchronize(stream));
    nvtxDomainRangePop(domain);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin() + 1, seconds.end());
  std::printf("{\"workload\": \"graph\", \"graphs\": %s, \"median_s\": %.9f}\n", graphs ? "true" : "false",
              seconds[1 + (kRuns - 1) / 2]);
}
