// ---- Command line ---------------------------------------------------------------------------------------------------

const char kHelp[] =
    "usage: ./repro [options]\n"
    "  --modes LIST        of alone, eager-single-stream, eager-multi-stream, graph, graph-kernels-only,\n"
    "                      graph-serial, graph-per-node; all by default\n"
    "  --runs N            timed runs of each (20)      --warm-up N   runs before them (3)\n"
    "  --threshold PERCENT the graph has to be slower than graph-serial by this (2)\n"
    "  --only LIST         only these nodes, such as 3,7-9; edges through others are kept\n"
    "  --drop LIST         all but these nodes\n"
    "  --sweep             also graphs of which at most 1, 2, 4, ... nodes can run at once\n"
    "  --bisect            also look for the fewest nodes that are still slow\n"
    "  --calibrate         first fit each kernel to the time the traced one took alone, and keep that in the file\n"
    "  --calibration FILE  the file (calibration.txt); used whenever it is there\n"
    "  --json FILE         write everything measured\n"
    "  --list              print nodes and edges, and end\n";

std::vector<int> parse_nodes(const std::string& list) {
  std::vector<int> nodes;
  std::stringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = -1, last = -1, end = 0, end_of_range = 0;
    const char* text = part.c_str();
    if (std::sscanf(text, "%d%n-%d%n", &first, &end, &last, &end_of_range) < 2) last = first, end_of_range = end;
    if (first < 0 || last < first || last >= kNodes || text[end_of_range]) {
      fail(kUsage, "'%s' names no nodes: write numbers from 0 to %d, such as 3,7-9", text, kNodes - 1);
    }
    for (int i = first; i <= last; ++i) nodes.push_back(i);
  }
  return nodes;
}

std::vector<Mode> parse_modes(const std::string& list) {
  std::vector<Mode> modes;
  std::stringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto found = std::find(kModeNames, kModeNames + kModes, part);
    if (found == kModeNames + kModes) fail(kUsage, "there is no mode '%s': see --help", part.c_str());
    modes.push_back(static_cast<Mode>(found - kModeNames));
  }
  return modes;
}

double parse_number(const char* option, const std::string& text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value >= least && value <= 1e6)) {
    fail(kUsage, "%s %s: write a number from %g on", option, text.c_str(), least);
  }
  return value;
}

void list_graph() {
  const char* const kinds[] = {"kernel", "memcpy", "memset", "host", "empty"};
  for (int i = 0; i < kNodes; ++i) {
    const Node& n = NODES[i];
    std::printf("%d %s %s", i, kinds[static_cast<int>(n.kind)], n.name);
    if (n.kind == Kind::kernel) {
      std::printf(" grid %ux%ux%u block %ux%ux%u shared %u", n.grid[0], n.grid[1], n.grid[2], n.block[0], n.block[1],
                  n.block[2], n.dynamic_shared);
    }
    std::printf(" after");
    for (int before : waits_for(i)) std::printf(" %d", before);
    std::printf("\n");
  }
}

Options parse(int count, char** words) {
  Options options;
  for (int mode = 0; mode < kModes; ++mode) options.modes.push_back(static_cast<Mode>(mode));
  for (int k = 1; k < count; ++k) {
    const std::string option = words[k];
    const auto value = [&]() -> std::string {
      if (++k == count) fail(kUsage, "%s needs a value: see --help", option.c_str());
      return words[k];
    };
    if (option == "--help") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    } else if (option == "--list") {
      list_graph();
      std::exit(0);
    } else if (option == "--modes") {
      options.modes = parse_modes(value());
    } else if (option == "--runs") {
      options.runs = static_cast<int>(parse_number("--runs", value(), 1));
    } else if (option == "--warm-up") {
      options.warm_up = static_cast<int>(parse_number("--warm-up", value(), 0));
    } else if (option == "--threshold") {
      options.threshold = parse_number("--threshold", value(), 0) / 100;
    } else if (option == "--only") {
      options.keep.assign(kNodes, false);
      for (int i : parse_nodes(value())) options.keep[i] = true;
    } else if (option == "--drop") {
      for (int i : parse_nodes(value())) options.keep[i] = false;
    } else if (option == "--sweep") {
      options.sweep = true;
    } else if (option == "--bisect") {
      options.bisect = true;
    } else if (option == "--calibrate") {
      options.calibrate = true;
    } else if (option == "--calibration") {
      options.calibration = value();
    } else if (option == "--json") {
      options.json = value();
    } else {
      fail(kUsage, "there is no option %s: see --help", option.c_str());
    }
  }
  if (std::none_of(options.keep.begin(), options.keep.end(), [](bool kept) { return kept; })) {
    fail(kUsage, "no node is left: name fewer with --drop, or more with --only");
  }
  return options;
}

// Shared memory beyond 48 KiB, and clusters of more than 8 blocks, have to be asked for.
void allow_launches(const cudaDeviceProp& gpu) {
  for (const Node& node : NODES) {
    if (node.kind != Kind::kernel) continue;
    const void* function = kVariants[node.variant].function;
    cudaFuncAttributes attributes = {};
    CUDA(cudaFuncGetAttributes(&attributes, function));
    if (node.dynamic_shared + attributes.sharedSizeBytes > gpu.sharedMemPerBlockOptin) {
      fail(kNoGpu, "%s needs %zu bytes of shared memory a block, %s has %zu: run it on the GPU of the trace", node.name,
           node.dynamic_shared + attributes.sharedSizeBytes, gpu.name, gpu.sharedMemPerBlockOptin);
    }
    if (static_cast<int>(node.dynamic_shared) > attributes.maxDynamicSharedSizeBytes) {
      CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(node.dynamic_shared)));
    }
    if (node.cluster[0] * node.cluster[1] * node.cluster[2] > 8) {
      CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    }
  }
}

int main(int count, char** words) {
  const Options options = parse(count, words);
  const int device = 0;
  Results r = {};
  CUDA(cudaSetDevice(device));
  CUDA(cudaGetDeviceProperties(&r.gpu, device));
  CUDA(cudaDriverGetVersion(&r.driver));
  CUDA(cudaRuntimeGetVersion(&r.runtime));
  std::printf("%s, sm_%d%d, %d SMs; CUDA driver %s, runtime %s; %d nodes\n", r.gpu.name, r.gpu.major, r.gpu.minor,
              r.gpu.multiProcessorCount, version(r.driver).c_str(), version(r.runtime).c_str(), kNodes);
  allow_launches(r.gpu);

  const Plan plan = subset(whole_plan(), options.keep);
  print_footprints(r, plan);
  Memory memory;
  Queues queues;
  Bench bench(memory, queues);
  const bool loaded = !options.calibrate && load_calibration(options.calibration, r.gpu.name, memory);
  memory.lay_out(plan.order);
  if (options.calibrate) {
    r.fits = calibrate(plan.order, memory, bench);
    save_calibration(options.calibration, r.gpu.name, memory);
    print_fits(r);
  }
  r.calibration = options.calibrate ? "fitted" : loaded ? "loaded" : "none";
  if (r.calibration == "none") std::printf("not calibrated for this GPU: durations are guesses; add --calibrate\n");
  if (memory.held < memory.needed) {
    std::printf("nodes share weights: all of their own would take %.1f GiB, %.1f GiB are held\n",
                static_cast<double>(memory.needed) / (1 << 30), static_cast<double>(memory.held) / (1 << 30));
  }

  std::vector<Prepared> modes;
  for (const Mode mode : options.modes) modes.emplace_back(mode, plan, memory, queues);
  const Nvml nvml(device);
  r.clocks_known = nvml.known;
  compare_outputs(modes, memory, bench);
  std::printf("outputs: the same in all modes\n");
  r.before = nvml.now();
  r.modes = measure(modes, options, bench, r.control);
  r.after = nvml.now();
  if (options.sweep) r.widths = sweep(plan, options, memory, queues, bench);
  if (options.bisect) {
    Bisection bisection(plan, options, memory, queues, bench);
    r.bisected = true;
    r.smallest = bisection.smallest();
    r.smallest_ratio = bisection.smallest_ratio;
    r.tests = bisection.tests;
  }
  r.clock_step = bench.clock_step();
  r.compared = r.modes.count(Mode::graph) && r.modes.count(Mode::graph_serial);
  if (r.compared) {
    r.ratio = paired_ratio(r.modes[Mode::graph].event, r.modes[Mode::graph_serial].event);
    r.reproduced = r.ratio.low > 1 + options.threshold;
  }

  print_table(r, plan);
  if (r.clocks_known) {
    std::printf("clocks: SM %u MHz before, %u MHz after; held back by: %s\n", r.before.sm_mhz, r.after.sm_mhz,
                throttle_reasons(r.after.throttle).c_str());
  }
  print_findings(r, options);
  if (!options.json.empty()) {
    std::ofstream out(options.json);
    out << as_json(r, plan, memory, options);
    if (!out.flush()) fail(kUsage, "%s cannot be written: name another file with --json", options.json.c_str());
  }
  return r.reproduced ? kReproduced : kNotReproduced;
}
