// ---- Output ---------------------------------------------------------------------------------------------------------

// JSON, written as it comes; commas come by themselves.
class Json {
 public:
  Json& open(char bracket) {
    separate();
    text += bracket;
    first_ = true;
    return *this;
  }
  Json& close(char bracket) {
    text += bracket;
    first_ = false;
    return *this;
  }
  Json& key(const char* name) {
    value(name);
    text += ": ";
    first_ = true;
    return *this;
  }
  Json& value(const char* words) {
    separate();
    text += '"';
    for (const char* c = words; *c; ++c) {
      if (*c == '"' || *c == '\\') text += '\\';
      text += static_cast<unsigned char>(*c) < 0x20 ? '?' : *c;
    }
    text += '"';
    return *this;
  }
  Json& value(const std::string& words) { return value(words.c_str()); }
  Json& value(double number) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.6g", number);
    return raw(std::isfinite(number) ? digits : "null");
  }
  Json& value(bool truth) { return raw(truth ? "true" : "false"); }
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  Json& value(Integer number) {
    return raw(std::to_string(number).c_str());
  }
  Json& value(const Middle& m) { return open('[').value(m.median).value(m.low).value(m.high).close(']'); }

  std::string text;

 private:
  Json& raw(const char* word) {
    separate();
    text += word;
    return *this;
  }
  void separate() {
    if (!first_) text += ", ";
    first_ = false;
  }
  bool first_ = true;
};

double traced_occupancy(const Node& node, const cudaDeviceProp& gpu) {
  // CUDA C++ Programming Guide, "Compute Capabilities": registers are given to warps by 256, shared memory by 128
  // bytes, of which each block takes some for the system.
  if (node.registers < 0 || node.static_shared < 0) return NAN;
  const unsigned threads = node.block[0] * node.block[1] * node.block[2], warps = (threads + 31) / 32;
  const auto of_warp = static_cast<unsigned>((std::max(node.registers, 1) * 32 + 255) / 256 * 256);
  const auto registers = static_cast<unsigned>(gpu.regsPerMultiprocessor) / (of_warp * warps);
  const auto bytes = (node.dynamic_shared + static_cast<unsigned>(node.static_shared) +
                      static_cast<unsigned>(gpu.reservedSharedMemPerBlock) + 127) /
                     128 * 128;
  const auto shared = bytes ? static_cast<unsigned>(gpu.sharedMemPerMultiprocessor) / bytes : ~0u;
  const auto by_threads = static_cast<unsigned>(gpu.maxThreadsPerMultiProcessor) / (warps * 32);
  return std::min({registers, shared, by_threads, static_cast<unsigned>(gpu.maxBlocksPerMultiProcessor)});
}

struct Footprint {
  int registers, static_shared, local, blocks;  // of the stand-in, and how many of its blocks fit on an SM
  double traced_blocks;                         // how many of the traced kernel's did, by its registers and memory
};

Footprint footprint(const Node& node, const cudaDeviceProp& gpu) {
  const void* function = kVariants[node.variant].function;
  cudaFuncAttributes attributes = {};
  CUDA(cudaFuncGetAttributes(&attributes, function));
  int blocks = 0;
  const auto threads = static_cast<int>(node.block[0] * node.block[1] * node.block[2]);
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, node.dynamic_shared));
  return {attributes.numRegs, static_cast<int>(attributes.sharedSizeBytes), static_cast<int>(attributes.localSizeBytes),
          blocks, traced_occupancy(node, gpu)};
}

// Everything that was found.
struct Results {
  cudaDeviceProp gpu;
  int driver, runtime;
  std::string calibration;
  std::map<int, Fit> fits;
  std::map<Mode, Measured> modes;
  std::vector<double> control;
  Nvml::State before, after;
  bool clocks_known;
  double clock_step;
  Middle ratio = {NAN, NAN, NAN};
  bool compared = false, reproduced = false;
  std::vector<Width> widths;
  bool bisected = false;
  std::vector<int> smallest;
  int tests = 0;
  Middle smallest_ratio = {NAN, NAN, NAN};
};

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

std::vector<double> of_node(const std::vector<std::vector<double>>& runs, int i) {
  std::vector<double> values;
  for (const auto& run : runs) values.push_back(run[i]);
  return values;
}

void put_state(Json& json, const char* name, const Nvml::State& state) {
  json.key(name).open('{').key("sm_mhz").value(state.sm_mhz).key("memory_mhz").value(state.memory_mhz);
  json.key("celsius").value(state.celsius).key("throttle").value(throttle_reasons(state.throttle)).close('}');
}

void put_mode(Json& json, const Measured& found, const Plan& plan) {
  const auto typical = found.typical();
  json.open('{').key("runs").value(found.event.size());
  json.key("event_us").value(middle(found.event)).key("span_us").value(middle(found.span)).key("nodes").open('[');
  for (int i : plan.order) {
    if (NODES[i].kind != Kind::kernel || !std::isfinite(found.took[0][i])) continue;
    json.open('{').key("node").value(i).key("took_us").value(middle(of_node(found.took, i)));
    json.key("start_us").value(found.start[typical][i]).key("took_there_us").value(found.took[typical][i]).close('}');
  }
  json.close(']').close('}');
}

std::string as_json(const Results& r, const Plan& plan, const Memory& memory, const Options& options) {
  Json json;
  json.open('{').key("repro").value(1).key("graph").value(GRAPH_DIGEST).key("gpu").value(r.gpu.name);
  json.key("compute_capability").value(std::to_string(r.gpu.major) + "." + std::to_string(r.gpu.minor));
  json.key("sms").value(r.gpu.multiProcessorCount).key("driver_cuda").value(version(r.driver));
  json.key("runtime_cuda").value(version(r.runtime)).key("timer_step_us").value(r.clock_step);
  json.key("calibration").value(r.calibration).key("threshold").value(options.threshold);
  json.key("weights_bytes").value(memory.needed).key("weights_bytes_held").value(memory.held);
  json.key("control_us").value(middle(r.control));
  if (r.clocks_known) {
    put_state(json, "before", r.before);
    put_state(json, "after", r.after);
  }
  json.key("nodes").open('[');
  for (int i : plan.order) {
    if (NODES[i].kind != Kind::kernel) continue;
    const auto f = footprint(NODES[i], r.gpu);
    json.open('{').key("node").value(i).key("name").value(NODES[i].name).key("registers").value(f.registers);
    json.key("static_shared").value(f.static_shared).key("local").value(f.local).key("blocks_per_sm").value(f.blocks);
    json.key("traced_blocks_per_sm").value(f.traced_blocks).key("bytes").value(memory.knobs[i].bytes);
    json.key("iterations").value(memory.knobs[i].iterations);
    if (const auto fit = r.fits.find(i); fit != r.fits.end()) {
      json.key("target_us").value(fit->second.target_us).key("fitted_us").value(fit->second.alone_us);
      json.key("fitted").value(fit->second.fitted);
    }
    json.close('}');
  }
  json.close(']').key("modes").open('{');
  for (const auto& [mode, found] : r.modes) {
    json.key(name_of(mode));
    put_mode(json, found, plan);
  }
  json.close('}');
  if (r.compared) json.key("graph_over_serial").value(r.ratio).key("reproduced").value(r.reproduced);
  if (!r.widths.empty()) {
    json.key("sweep").open('[');
    for (const auto& w : r.widths) json.open('{').key("width").value(w.width).key("event_us").value(w.event).close('}');
    json.close(']');
  }
  if (r.bisected) {
    json.key("bisect").open('{').key("tests").value(r.tests).key("nodes").open('[');
    for (int i : r.smallest) json.value(i);
    json.close(']').key("graph_over_serial").value(r.smallest_ratio).close('}');
  }
  return json.close('}').text + "\n";
}

void print_footprints(const Results& r, const Plan& plan) {
  std::size_t kernels = 0, other = 0;
  for (int i : plan.order) {
    if (NODES[i].kind != Kind::kernel) continue;
    ++kernels;
    const auto f = footprint(NODES[i], r.gpu);
    if (!std::isfinite(f.traced_blocks) || f.blocks == static_cast<int>(f.traced_blocks)) continue;
    if (!other++) std::printf("occupancy differs from that of the traced kernels:\n");
    std::printf("  node %d %s: %d blocks on an SM (%d registers), traced %.0f (%d registers)\n", i, NODES[i].name,
                f.blocks, f.registers, f.traced_blocks, NODES[i].registers);
  }
  std::printf("occupancy: %zu of %zu kernels fit as many blocks on an SM as the traced ones\n", kernels - other,
              kernels);
}

void print_fits(const Results& r) {
  std::size_t missed = 0;
  for (const auto& [i, fit] : r.fits) {
    if (fit.fitted) continue;
    if (!missed++) std::printf("calibration could not reach these within 5 %%:\n");
    std::printf("  node %d %s: %.2f us alone, wanted %.2f us\n", i, NODES[i].name, fit.alone_us, fit.target_us);
  }
  if (!r.fits.empty())
    std::printf("calibrated: %zu of %zu kernels within 5 %%\n", r.fits.size() - missed, r.fits.size());
}

void print_table(const Results& r, const Plan& plan) {
  std::printf("\n%-20s %12s %26s %12s\n", "mode", "median us", "95 % interval", "span us");
  for (const auto& [mode, found] : r.modes) {
    const Middle event = middle(found.event);
    std::printf("%-20s %12.2f %12.2f - %11.2f %12.2f\n", name_of(mode), event.median, event.low, event.high,
                middle(found.span).median);
  }
  const Middle control = middle(r.control);
  std::printf("%-20s %12.2f %12.2f - %11.2f\n", "(control: a copy)", control.median, control.low, control.high);
  const auto graph = r.modes.find(Mode::graph), alone = r.modes.find(Mode::alone);
  if (graph == r.modes.end()) return;
  std::printf("\n%5s %-36s %12s %12s %8s %8s\n", "node", "kernel", "alone us", "in graph us", "stretch", "traced");
  for (int i : plan.order) {
    if (NODES[i].kind != Kind::kernel) continue;
    const double took = middle(of_node(graph->second.took, i)).median;
    const double by_itself = alone == r.modes.end() ? NAN : middle(of_node(alone->second.took, i)).median;
    const double traced = NODES[i].alone_us > 0 ? NODES[i].traced_us / NODES[i].alone_us : NAN;
    std::printf("%5d %-36.36s %12.2f %12.2f %8.2f %8.2f\n", i, NODES[i].name, by_itself, took, took / by_itself,
                traced);
  }
}

void print_findings(const Results& r, const Options& options) {
  for (const auto& w : r.widths) {
    std::printf("at most %zu at once: %.2f us (%.2f - %.2f)\n", w.width, w.event.median, w.event.low, w.event.high);
  }
  if (r.bisected && r.smallest.empty()) {
    std::printf("bisect: the graph is not slower than the serial graph by %.1f %%: nothing to shrink\n",
                options.threshold * 100);
  } else if (r.bisected) {
    std::printf("bisect: %zu nodes are enough (%d tests), graph / graph-serial %.3f (%.3f - %.3f):\n",
                r.smallest.size(), r.tests, r.smallest_ratio.median, r.smallest_ratio.low, r.smallest_ratio.high);
    std::string list;
    for (int i : r.smallest) {
      std::printf("  node %d %s\n", i, NODES[i].name);
      list += (list.empty() ? "" : ",") + std::to_string(i);
    }
    std::printf("  run them alone: ./repro --only %s\n", list.c_str());
  }
  if (r.compared) {
    std::printf("\ngraph / graph-serial: %.3f (95 %% interval %.3f - %.3f, n = %d): %s\n", r.ratio.median, r.ratio.low,
                r.ratio.high, options.runs,
                r.reproduced ? "REPRODUCED: the graph is slower than its nodes one after another" : "not reproduced");
  }
}
