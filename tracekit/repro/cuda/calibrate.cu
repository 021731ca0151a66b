// ---- Calibration ----------------------------------------------------------------------------------------------------

constexpr double kTolerance = 0.05;        // of the traced duration
constexpr int kTrials = 24, kSamples = 7;  // at most so many settings of a knob, each timed so often
constexpr unsigned kMostIterations = 1u << 24;

struct Fit {
  double target_us, alone_us;  // how long the node should take alone, and how long it does
  bool fitted;
};

double median_alone(Bench& bench, int i) {
  std::vector<double> times;
  bench.run_alone(i);
  for (int k = 0; k < kSamples; ++k) times.push_back(bench.run_alone(i));
  return middle(times).median;
}

// What the kernel was alone in the trace, else what it took in the traced launch, which others may have stretched.
double target_of(const Node& node) { return node.alone_us > 0 ? node.alone_us : node.traced_us; }

// Turn the knob that the kernel's kind has (matmul: steps along K; else bytes) until the node takes its time alone.
Fit fit(int i, const std::vector<int>& nodes, Memory& memory, Bench& bench) {
  const double target = target_of(NODES[i]);
  const bool by_steps = kVariants[NODES[i].variant].body == Body::matmul;
  const double tolerance = std::max(kTolerance * target, bench.clock_step());
  const double least = by_steps ? 1 : static_cast<double>(kUnit * 3);
  double low = 0, high = 0, best_knob = 0, best_time = 0;
  double knob = by_steps ? memory.knobs[i].iterations : static_cast<double>(memory.knobs[i].bytes);
  for (int trial = 0; trial < kTrials; ++trial) {
    if (by_steps) {
      memory.knobs[i].iterations = static_cast<unsigned>(knob);
    } else {
      memory.knobs[i].bytes = static_cast<unsigned long long>(knob);
      memory.lay_out(nodes);
    }
    memory.works[i].iterations = memory.knobs[i].iterations;
    const double time = median_alone(bench, i);
    if (best_knob == 0 || std::abs(time - target) < std::abs(best_time - target)) best_knob = knob, best_time = time;
    if (std::abs(time - target) <= tolerance || (time > target && knob <= least)) break;
    (time > target ? high : low) = knob;
    // Proportional steps find the range, halving it closes in: the time grows with the knob, after a fixed part.
    const double next = low > 0 && high > 0 ? std::sqrt(low * high) : knob * std::clamp(target / time, 1.0 / 16, 16.0);
    knob = std::clamp(std::floor(next), least, by_steps ? kMostIterations : 1e12);
    if (knob == low || knob == high) break;
  }
  if (by_steps) {
    memory.knobs[i].iterations = static_cast<unsigned>(best_knob);
  } else {
    memory.knobs[i].bytes = static_cast<unsigned long long>(best_knob);
  }
  memory.lay_out(nodes);
  return {target, best_time, std::abs(best_time - target) <= tolerance};
}

std::map<int, Fit> calibrate(const std::vector<int>& nodes, Memory& memory, Bench& bench) {
  std::map<int, Fit> fits;
  for (int i : nodes) {
    if (NODES[i].kind == Kind::kernel && target_of(NODES[i]) > 0) fits[i] = fit(i, nodes, memory, bench);
  }
  return fits;
}

// A line a node, after a line that says which GPU and which graph the knobs were fitted for.
std::string calibration_head(const char* gpu) {
  return std::string("# ") + gpu + ", graph " + GRAPH_DIGEST + ": node, bytes, iterations";
}

void save_calibration(const std::string& file, const char* gpu, const Memory& memory) {
  std::ofstream out(file);
  out << calibration_head(gpu) << "\n";
  for (int i = 0; i < kNodes; ++i) {
    out << i << " " << memory.knobs[i].bytes << " " << memory.knobs[i].iterations << "\n";
  }
  if (!out.flush()) fail(kUsage, "%s cannot be written: name another file with --calibration", file.c_str());
}

// Take over knobs fitted earlier; false where there are none for this GPU and this graph.
bool load_calibration(const std::string& file, const char* gpu, Memory& memory) {
  std::ifstream in(file);
  std::string head;
  if (!std::getline(in, head) || head != calibration_head(gpu)) return false;
  std::vector<Knobs> knobs(memory.knobs);
  for (int i = 0; i < kNodes; ++i) {
    int node = -1;
    if (!(in >> node >> knobs[i].bytes >> knobs[i].iterations) || node != i || !knobs[i].iterations) return false;
  }
  memory.knobs = knobs;
  return true;
}
