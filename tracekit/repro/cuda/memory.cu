// ---- Memory ---------------------------------------------------------------------------------------------------------

constexpr unsigned long long kUnit = 16;               // bytes
constexpr unsigned long long kControlUnits = 1 << 20;  // the control reads and writes 16 MiB
constexpr double kShareOfMemory = 0.8;                 // of the free memory: the rest is left to others

struct Knobs {
  unsigned long long bytes;
  unsigned iterations;
};

struct Stamp {
  unsigned long long first, last;
};

// How much all threads read of a kernel's source together: its traffic over the accesses for each unit read.
unsigned long long units_of(Body body, unsigned long long bytes) {
  const unsigned accesses = body == Body::copy ? 2 : body == Body::elementwise ? 3 : 1;
  return std::max(1ull, bytes / (kUnit * accesses));
}

unsigned long long threads_of(const Node& node) {
  unsigned long long threads = 1;
  for (int i = 0; i < 3; ++i) threads *= static_cast<unsigned long long>(node.grid[i]) * node.block[i];
  return threads;
}

unsigned long long output_units(const Node& node, const Knobs& knobs) {
  if (node.kind == Kind::memcpy || node.kind == Kind::memset) return std::max(1ull, (node.bytes + kUnit - 1) / kUnit);
  if (node.kind != Kind::kernel) return 0;
  const Body body = kVariants[node.variant].body;
  const bool writes_all = body == Body::copy || body == Body::elementwise;
  return writes_all ? units_of(body, knobs.bytes) : threads_of(node);
}

// A stretch of device memory that grows, its content numbers that are harmless to calculate with.
class Pool {
 public:
  void reserve(unsigned long long units) {
    if (units <= units_) return;
    units += units_ / 4;  // so that it does not grow in small steps
    if (memory_) CUDA(cudaFree(memory_));
    memory_ = nullptr;
    CUDA(cudaMalloc(&memory_, units * kUnit));
    units_ = units;
    fill();
  }
  char* at(unsigned long long unit) const { return static_cast<char*>(memory_) + unit * kUnit; }
  unsigned long long units() const { return units_; }

 private:
  void fill() {
    std::vector<std::uint32_t> noise(std::min(units_, 1ull << 18) * 4);
    std::uint32_t state = 1;
    for (auto& word : noise) {
      state = state * 1664525u + 1013904223u;  // Knuth's linear congruential generator: the same on every machine
      word = (state >> 8 & 0x80ff80ffu) | 0x3f003f00u;
    }
    unsigned long long done = noise.size() * sizeof(noise[0]);
    CUDA(cudaMemcpy(memory_, noise.data(), done, cudaMemcpyHostToDevice));
    for (; done < units_ * kUnit; done *= 2) {
      const auto rest = std::min(done, units_ * kUnit - done);
      CUDA(cudaMemcpy(at(0) + done, memory_, rest, cudaMemcpyDeviceToDevice));
    }
  }
  void* memory_ = nullptr;
  unsigned long long units_ = 0;
};

// Where every node reads and writes. Weights are each node's own as far as the GPU has room; outputs always are.
class Memory {
 public:
  Memory() : knobs(kNodes), works(kNodes + 1), weights_at_(kNodes), output_at_(kNodes) {
    for (int i = 0; i < kNodes; ++i) knobs[i] = {NODES[i].bytes, std::max(1u, NODES[i].iterations)};
    CUDA(cudaMalloc(&stamps, sizeof(Stamp) * (kNodes + 1)));
    CUDA(cudaMalloc(&sum_, sizeof(*sum_)));
    CUDA(cudaMallocHost(&fresh, sizeof(Stamp) * (kNodes + 1)));
    std::fill_n(fresh, kNodes + 1, Stamp{~0ull, 0});
    unsigned long long copied = 1;
    for (const Node& node : NODES) {
      if (node.kind == Kind::memcpy && node.copy_kind != 8) copied = std::max(copied, node.bytes);
    }
    CUDA(cudaMallocHost(&host, copied));
    find_feeding();
  }

  // Give these nodes their places, by their knobs, and tell the kernels.
  void lay_out(const std::vector<int>& nodes) {
    placed_.assign(kNodes, false);
    unsigned long long weights = kControlUnits, outputs = kControlUnits;
    for (int i : nodes) {
      placed_[i] = true;
      weights_at_[i] = weights;
      weights += source_units(i);
      output_at_[i] = outputs;
      outputs += output_units(NODES[i], knobs[i]);
    }
    needed = weights * kUnit;
    outputs_.reserve(outputs);
    if (weights > weights_.units()) {
      std::size_t free = 0, total = 0;
      CUDA(cudaMemGetInfo(&free, &total));
      const auto room = static_cast<unsigned long long>((free + weights_.units() * kUnit) * kShareOfMemory) / kUnit;
      weights_.reserve(std::max(kControlUnits, std::min(weights, room)));
    }
    held = std::min(needed, weights_.units() * kUnit);
    for (int i : nodes) works[i] = work_of(i);
    works[kNodes] = control();
  }

  void wipe_outputs(const std::vector<int>& nodes) {
    for (int i : nodes) {
      if (NODES[i].kind == Kind::kernel) CUDA(cudaMemset(output(i), 0x3f, works[i].output_units * kUnit));
    }
    CUDA(cudaDeviceSynchronize());
  }

  unsigned long long checksum_of(int i) {
    CUDA(cudaMemset(sum_, 0, sizeof(*sum_)));
    const auto* output = reinterpret_cast<const uint4*>(outputs_.at(output_at_[i]));
    checksum<<<256, 256>>>(output, works[i].output_units, sum_);
    CUDA(cudaGetLastError());
    unsigned long long sum = 0;
    CUDA(cudaMemcpy(&sum, sum_, sizeof(sum), cudaMemcpyDeviceToHost));
    return sum;
  }

  void* output(int i) const { return outputs_.at(output_at_[i]); }
  void* weights() const { return weights_.at(0); }

  std::vector<Knobs> knobs;
  std::vector<Work> works;  // the last one is the control's
  Stamp *stamps = nullptr, *fresh = nullptr;
  char* host = nullptr;                     // pinned; what copies from and to the host use
  unsigned long long needed = 0, held = 0;  // bytes of weights: were all distinct, and as they are

 private:
  // The kernels whose outputs reach each node, through copies and the like.
  void find_feeding() {
    std::vector<std::set<int>> reaching(kNodes);
    for (int i = 0; i < kNodes; ++i) {
      std::set<int> found;
      for (int before : waits_for(i)) found.insert(reaching[before].begin(), reaching[before].end());
      feeding_.emplace_back(found.begin(), found.end());
      reaching[i] = NODES[i].kind == Kind::kernel ? std::set<int>{i} : found;
    }
  }

  unsigned long long source_units(int i) const {
    const Node& node = NODES[i];
    if (node.kind == Kind::memcpy) return node.copy_kind == 1 ? 0 : output_units(node, knobs[i]);
    if (node.kind != Kind::kernel) return 0;
    return units_of(kVariants[node.variant].body, knobs[i].bytes);
  }

  // A node's own weights; nodes share where the GPU has too little memory for all.
  const void* weights_of(int i, unsigned long long& units) const {
    units = std::min(source_units(i), weights_.units());
    const auto room = weights_.units() - units;
    return weights_.at(weights_at_[i] <= room ? weights_at_[i] : weights_at_[i] % (room + 1));
  }

  Work work_of(int i) const {
    Work w = {};
    w.first = &stamps[i].first;
    w.last = &stamps[i].last;
    w.node = static_cast<unsigned>(i);
    w.source = weights_of(i, w.source_units);
    w.output = output(i);
    w.output_units = output_units(NODES[i], knobs[i]);
    w.iterations = knobs[i].iterations;
    w.shared_bytes = NODES[i].dynamic_shared;
    if (NODES[i].kind != Kind::kernel) return w;
    const Body body = kVariants[NODES[i].variant].body;
    w.units = units_of(body, knobs[i].bytes);
    for (std::size_t k = 0; k < WORK_INPUTS; ++k) {
      const bool fed = k < feeding_[i].size() && placed_[feeding_[i][k]];
      const int from = fed ? feeding_[i][k] : i;
      w.inputs[k] = fed ? output(from) : w.source;
      w.input_units[k] = fed ? output_units(NODES[from], knobs[from]) : w.source_units;
    }
    // Matmul and matvec stream weights; the others stream what the kernel before them wrote.
    if (body != Body::matmul && body != Body::matvec) {
      w.source = w.inputs[0];
      w.source_units = w.input_units[0];
    }
    return w;
  }

  Work control() const {
    Work w = {};
    w.first = &stamps[kNodes].first;
    w.last = &stamps[kNodes].last;
    w.node = kNodes;
    w.source = weights_.at(0);
    w.output = outputs_.at(0);
    w.source_units = w.output_units = w.units = kControlUnits;
    w.iterations = 1;
    for (std::size_t k = 0; k < WORK_INPUTS; ++k) {
      w.inputs[k] = w.source;
      w.input_units[k] = kControlUnits;
    }
    return w;
  }

  Pool weights_, outputs_;
  std::vector<unsigned long long> weights_at_, output_at_;
  std::vector<std::vector<int>> feeding_;  // the kernels whose outputs each node reads
  std::vector<bool> placed_;
  unsigned long long* sum_ = nullptr;
};
