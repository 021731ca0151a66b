// ---- Graphs ---------------------------------------------------------------------------------------------------------

// Nodes to run, in an order in which every edge leads onward, and for each of all nodes those it waits for.
struct Plan {
  std::vector<int> order;
  std::vector<std::vector<int>> after;
};

Plan whole_plan() {
  Plan plan;
  for (int i = 0; i < kNodes; ++i) {
    plan.order.push_back(i);
    plan.after.push_back(waits_for(i));
  }
  return plan;
}

// Some of the nodes; those left out pass on what they waited for.
Plan subset(const Plan& plan, const std::vector<bool>& keep) {
  Plan kept;
  kept.after.resize(kNodes);
  std::vector<std::set<int>> stands_for(kNodes);
  for (int i : plan.order) {
    std::set<int> before;
    for (int j : plan.after[i]) before.insert(stands_for[j].begin(), stands_for[j].end());
    if (keep[i]) {
      kept.order.push_back(i);
      kept.after[i].assign(before.begin(), before.end());
      before = {i};
    }
    stands_for[i] = std::move(before);
  }
  return kept;
}

Plan kernels_only(const Plan& plan) {
  std::vector<bool> keep(kNodes);
  for (int i = 0; i < kNodes; ++i) keep[i] = NODES[i].kind == Kind::kernel;
  return subset(plan, keep);
}

// An edge to each node from the one `width` places before it: those that share a place modulo `width` form a chain, so
// that at most `width` nodes can run at once (Dilworth). A width of 1 is the serial graph.
Plan limited(Plan plan, std::size_t width) {
  for (std::size_t k = width; k < plan.order.size(); ++k) {
    auto& after = plan.after[plan.order[k]];
    const int before = plan.order[k - width];
    if (std::find(after.begin(), after.end(), before) == after.end()) after.push_back(before);
  }
  return plan;
}

cudaMemcpyKind direction(const Node& node) {
  return node.copy_kind == 1   ? cudaMemcpyHostToDevice
         : node.copy_kind == 2 ? cudaMemcpyDeviceToHost
                               : cudaMemcpyDeviceToDevice;
}
void* copy_target(const Memory& memory, int i) {
  return NODES[i].copy_kind == 2 ? static_cast<void*>(memory.host) : memory.output(i);
}
const void* copy_source(const Memory& memory, int i) {
  return NODES[i].copy_kind == 1 ? static_cast<const void*>(memory.host) : memory.works[i].source;
}
// As traced, unless the GPU has too little memory for that much to copy from.
unsigned long long copy_size(const Memory& memory, int i) {
  const auto bytes = std::max(1ull, NODES[i].bytes);
  return NODES[i].copy_kind == 1 ? bytes : std::min(bytes, memory.works[i].source_units * kUnit);
}

void host_work(void*) {}  // what the traced host nodes did is not known

dim3 size_of(const unsigned (&size)[3]) { return dim3(size[0], size[1], size[2]); }
bool has_cluster(const Node& node) { return node.cluster[0] * node.cluster[1] * node.cluster[2] > 1; }

cudaLaunchAttribute cluster_of(const Node& node) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = node.cluster[0];
  attribute.val.clusterDim.y = node.cluster[1];
  attribute.val.clusterDim.z = node.cluster[2];
  return attribute;
}

cudaGraphNode_t add_node(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after, Memory& memory, int i) {
  const Node& node = NODES[i];
  cudaGraphNode_t added = nullptr;
  switch (node.kind) {
    case Kind::kernel: {
      void* arguments[] = {&memory.works[i]};
      cudaKernelNodeParams params = {};
      params.func = const_cast<void*>(kVariants[node.variant].function);
      params.gridDim = size_of(node.grid);
      params.blockDim = size_of(node.block);
      params.sharedMemBytes = node.dynamic_shared;
      params.kernelParams = arguments;
      CUDA(cudaGraphAddKernelNode(&added, graph, after.data(), after.size(), &params));
      if (has_cluster(node)) {
        const auto cluster = cluster_of(node);
        CUDA(cudaGraphKernelNodeSetAttribute(added, cluster.id, &cluster.val));
      }
      break;
    }
    case Kind::memcpy:
      CUDA(cudaGraphAddMemcpyNode1D(&added, graph, after.data(), after.size(), copy_target(memory, i),
                                    copy_source(memory, i), copy_size(memory, i), direction(node)));
      break;
    case Kind::memset: {
      cudaMemsetParams params = {};
      params.dst = memory.output(i);
      params.value = node.value;
      params.elementSize = 1;
      params.width = std::max(1ull, node.bytes);
      params.height = 1;
      CUDA(cudaGraphAddMemsetNode(&added, graph, after.data(), after.size(), &params));
      break;
    }
    case Kind::host: {
      cudaHostNodeParams params = {};
      params.fn = host_work;
      CUDA(cudaGraphAddHostNode(&added, graph, after.data(), after.size(), &params));
      break;
    }
    case Kind::empty:
      CUDA(cudaGraphAddEmptyNode(&added, graph, after.data(), after.size()));
      break;
  }
  return added;
}

using Handles = std::vector<cudaGraphNode_t>;

// Add nodes [begin, end) of the plan's order, a child graph's nodes as a child graph node unless this is one.
void add_nodes(cudaGraph_t graph, const Plan& plan, std::size_t begin, std::size_t end, bool children, Memory& memory,
               Handles& handles) {
  for (std::size_t at = begin; at < end;) {
    const int child = children ? NODES[plan.order[at]].child : -1;
    std::size_t next = at + 1;
    while (child >= 0 && next < end && NODES[plan.order[next]].child == child) ++next;
    std::set<cudaGraphNode_t> after;
    for (std::size_t k = at; k < next; ++k) {
      for (int before : plan.after[plan.order[k]]) {
        if (handles[before]) after.insert(handles[before]);
      }
    }
    const std::vector<cudaGraphNode_t> dependencies(after.begin(), after.end());
    if (child < 0) {
      handles[plan.order[at]] = add_node(graph, dependencies, memory, plan.order[at]);
    } else {
      cudaGraph_t inner = nullptr;
      cudaGraphNode_t added = nullptr;
      Handles inside(kNodes, nullptr);
      CUDA(cudaGraphCreate(&inner, 0));
      add_nodes(inner, plan, at, next, false, memory, inside);
      CUDA(cudaGraphAddChildGraphNode(&added, graph, dependencies.data(), dependencies.size(), inner));
      CUDA(cudaGraphDestroy(inner));
      for (std::size_t k = at; k < next; ++k) handles[plan.order[k]] = added;
    }
    at = next;
  }
}

// An executable graph of a plan. `children`: child graphs are nodes of their own, as traced, and not put in place.
class Executable {
 public:
  Executable(const Plan& plan, bool children, Memory& memory) {
    cudaGraph_t graph = nullptr;
    Handles handles(kNodes, nullptr);
    CUDA(cudaGraphCreate(&graph, 0));
    add_nodes(graph, plan, 0, plan.order.size(), children, memory, handles);
    CUDA(cudaGraphInstantiate(&executable_, graph, 0));
    CUDA(cudaGraphDestroy(graph));
  }
  ~Executable() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  Executable(Executable&& other) noexcept : executable_(other.executable_) { other.executable_ = nullptr; }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  void launch(cudaStream_t stream) const { CUDA(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};
