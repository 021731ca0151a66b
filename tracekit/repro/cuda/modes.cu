// ---- Ways of running the nodes --------------------------------------------------------------------------------------

enum class Mode {
  alone,
  eager_single_stream,
  eager_multi_stream,
  graph,
  graph_kernels_only,
  graph_serial,
  graph_per_node
};

const char* const kModeNames[] = {"alone",         "eager-single-stream", "eager-multi-stream",
                                  "graph",         "graph-kernels-only",  "graph-serial",
                                  "graph-per-node"};
constexpr int kModes = sizeof(kModeNames) / sizeof(kModeNames[0]);
const char* name_of(Mode mode) { return kModeNames[static_cast<int>(mode)]; }

cudaEvent_t new_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  CUDA(cudaEventCreateWithFlags(&event, flags));
  return event;
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// The GPU's queues: the main stream, the traced ones, and events to time by and to order by.
struct Queues {
  cudaStream_t main = new_stream();
  std::map<int, cudaStream_t> traced;
  cudaEvent_t begin = new_event(cudaEventDefault), end = new_event(cudaEventDefault);
  std::vector<cudaEvent_t> done;

  Queues() {
    for (const Node& node : NODES) {
      if (!traced.count(node.stream)) traced[node.stream] = new_stream();
      done.push_back(new_event(cudaEventDisableTiming));
    }
  }
};

void launch_eagerly(Memory& memory, int i, cudaStream_t stream) {
  const Node& node = NODES[i];
  switch (node.kind) {
    case Kind::kernel: {
      void* arguments[] = {&memory.works[i]};
      auto cluster = cluster_of(node);
      cudaLaunchConfig_t config = {};
      config.gridDim = size_of(node.grid);
      config.blockDim = size_of(node.block);
      config.dynamicSmemBytes = node.dynamic_shared;
      config.stream = stream;
      config.attrs = &cluster;
      config.numAttrs = has_cluster(node) ? 1 : 0;
      CUDA(cudaLaunchKernelExC(&config, kVariants[node.variant].function, arguments));
      break;
    }
    case Kind::memcpy:
      CUDA(cudaMemcpyAsync(copy_target(memory, i), copy_source(memory, i), copy_size(memory, i), direction(node),
                           stream));
      break;
    case Kind::memset:
      CUDA(cudaMemsetAsync(memory.output(i), static_cast<int>(node.value), std::max(1ull, node.bytes), stream));
      break;
    case Kind::host:
      CUDA(cudaLaunchHostFunc(stream, host_work, nullptr));
      break;
    case Kind::empty:
      break;
  }
}

// A plan made ready to run in one mode.
class Prepared {
 public:
  Prepared(Mode mode, const Plan& plan, Memory& memory, Queues& queues)
      : mode(mode),
        plan(mode == Mode::graph_kernels_only ? kernels_only(plan) : plan),
        memory_(memory),
        queues_(queues) {
    switch (mode) {
      case Mode::graph:
      case Mode::graph_kernels_only:
        executables_.emplace_back(this->plan, true, memory);
        break;
      case Mode::graph_serial:
        executables_.emplace_back(limited(plan, 1), false, memory);
        break;
      case Mode::graph_per_node:
        for (int i : plan.order) {
          Plan one;
          one.order = {i};
          one.after.resize(kNodes);
          executables_.emplace_back(one, false, memory);
        }
        break;
      default:
        break;
    }
  }
  // A graph of which at most `width` nodes can run at once.
  Prepared(const Plan& plan, std::size_t width, Memory& memory, Queues& queues)
      : mode(Mode::graph), plan(plan), memory_(memory), queues_(queues) {
    executables_.emplace_back(limited(plan, width), false, memory);
  }

  // Put one run into the main stream, which nothing else runs beside.
  void launch() const {
    for (const auto& executable : executables_) executable.launch(queues_.main);
    if (mode == Mode::eager_single_stream) {
      for (int i : plan.order) launch_eagerly(memory_, i, queues_.main);
    } else if (mode == Mode::eager_multi_stream) {
      launch_on_traced_streams();
    }
  }

  Mode mode;
  Plan plan;

 private:
  void launch_on_traced_streams() const {
    std::set<int> used;
    for (int i : plan.order) {
      const int number = NODES[i].stream;
      const cudaStream_t stream = queues_.traced.at(number);
      if (used.insert(number).second) CUDA(cudaStreamWaitEvent(stream, queues_.begin, 0));
      for (int before : plan.after[i]) {
        if (NODES[before].stream != number) CUDA(cudaStreamWaitEvent(stream, queues_.done[before], 0));
      }
      launch_eagerly(memory_, i, stream);
      CUDA(cudaEventRecord(queues_.done[i], stream));
    }
    for (int i : plan.order) CUDA(cudaStreamWaitEvent(queues_.main, queues_.done[i], 0));
  }

  Memory& memory_;
  Queues& queues_;
  std::vector<Executable> executables_;
};
