// ---- Measuring ------------------------------------------------------------------------------------------------------

struct Middle {
  double median, low, high;  // the median and a 95 % interval of it
};

// The interval between order statistics holds the median with a probability that needs no distribution (binomial,
// in its normal form): ranks n / 2 -+ 0.98 sqrt(n).
Middle middle(std::vector<double> values) {
  if (values.empty()) return {NAN, NAN, NAN};
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto rank = [&](double at) { return values[static_cast<std::size_t>(std::clamp(at, 0.0, n - 1))]; };
  const auto half = values.size() / 2;
  const double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, rank(std::floor(n / 2 - 0.98 * std::sqrt(n))), rank(std::ceil(n / 2 + 0.98 * std::sqrt(n) - 1))};
}

// Everything measured of one mode. Times are microseconds.
struct Measured {
  std::vector<double> event, span;               // of each run: between events, and first to last stamp
  std::vector<std::vector<double>> start, took;  // of each kernel node in each run, by its stamps

  // The run whose span is the median: it shows what ran beside what.
  std::size_t typical() const {
    std::vector<std::size_t> runs(span.size());
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = i;
    std::sort(runs.begin(), runs.end(), [&](auto a, auto b) { return span[a] < span[b]; });
    return runs[runs.size() / 2];
  }
};

class Bench {
 public:
  Bench(Memory& memory, Queues& queues) : memory_(memory), queues_(queues), stamps_(kNodes + 1) {}

  // One run; returns the time between its events.
  double run(const Prepared& prepared) {
    return timed([&] { prepared.launch(); });
  }

  // One node by itself, by its stamps.
  double run_alone(int i) {
    timed([&] { launch_eagerly(memory_, i, queues_.main); });
    return took(i);
  }

  double run_control() {
    timed([&] {
      void* arguments[] = {&memory_.works[kNodes]};
      CUDA(cudaLaunchKernel(kVariants[kControl].function, dim3(1024), dim3(256), arguments, 0, queues_.main));
    });
    return took(kNodes);
  }

  void run_into(const Prepared& prepared, Measured& found) {
    std::vector<double> start(kNodes, NAN), took_now(kNodes, NAN);
    double event = 0, span = 0;
    if (prepared.mode == Mode::alone) {
      for (int i : prepared.plan.order) {
        const double time = timed([&] { launch_eagerly(memory_, i, queues_.main); });
        event += time;
        if (NODES[i].kind != Kind::kernel) continue;
        took_now[i] = took(i);
        span += took_now[i];
      }
    } else {
      event = run(prepared);
      auto first = ~0ull, last = 0ull;
      for (int i : prepared.plan.order) {
        if (NODES[i].kind != Kind::kernel) continue;
        first = std::min(first, stamps_[i].first);
        last = std::max(last, stamps_[i].last);
      }
      for (int i : prepared.plan.order) {
        if (NODES[i].kind != Kind::kernel) continue;
        start[i] = static_cast<double>(stamps_[i].first - first) / 1e3;
        took_now[i] = took(i);
      }
      span = last > first ? static_cast<double>(last - first) / 1e3 : 0;
    }
    found.event.push_back(event);
    found.span.push_back(span);
    found.start.push_back(start);
    found.took.push_back(took_now);
  }

  // What all stamps so far are multiples of: the step of the GPU's timer in microseconds.
  double clock_step() const { return static_cast<double>(step_) / 1e3; }

 private:
  template <class Launch>
  double timed(Launch launch) {
    const std::size_t bytes = sizeof(Stamp) * stamps_.size();
    CUDA(cudaMemcpyAsync(memory_.stamps, memory_.fresh, bytes, cudaMemcpyHostToDevice, queues_.main));
    CUDA(cudaEventRecord(queues_.begin, queues_.main));
    launch();
    CUDA(cudaEventRecord(queues_.end, queues_.main));
    CUDA(cudaStreamSynchronize(queues_.main));
    CUDA(cudaMemcpy(stamps_.data(), memory_.stamps, bytes, cudaMemcpyDeviceToHost));
    float milliseconds = 0;
    CUDA(cudaEventElapsedTime(&milliseconds, queues_.begin, queues_.end));
    return milliseconds * 1e3;
  }

  double took(int i) {
    const auto duration = stamps_[i].last - stamps_[i].first;
    step_ = std::gcd(step_, duration);
    return static_cast<double>(duration) / 1e3;
  }

  Memory& memory_;
  Queues& queues_;
  std::vector<Stamp> stamps_;
  unsigned long long step_ = 0;
};

// What was asked for.
struct Options {
  std::vector<Mode> modes;
  std::vector<bool> keep = std::vector<bool>(kNodes, true);
  int runs = 20, warm_up = 3;
  double threshold = 0.02;
  bool sweep = false, bisect = false, calibrate = false;
  std::string calibration = "calibration.txt", json;
};

// How many times longer one took than the other, round by round: what drifts in the machine drifts in both.
Middle paired_ratio(const std::vector<double>& one, const std::vector<double>& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) ratios.push_back(one[i] / other[i]);
  return middle(ratios);
}

// Run the modes in turn, so that all see the same state of the machine, each round beginning with another one.
std::map<Mode, Measured> measure(const std::vector<Prepared>& modes, const Options& options, Bench& bench,
                                 std::vector<double>& control) {
  std::map<Mode, Measured> found;
  for (int round = -options.warm_up; round < options.runs; ++round) {
    const double time = bench.run_control();
    if (round >= 0) control.push_back(time);
    for (std::size_t k = 0; k < modes.size(); ++k) {
      const Prepared& mode = modes[(k + static_cast<std::size_t>(round + options.warm_up)) % modes.size()];
      Measured warming;
      bench.run_into(mode, round < 0 ? warming : found[mode.mode]);
    }
  }
  return found;
}

// Every mode has to compute the same. Outputs are wiped before each, so that a node which does not wait for what it
// reads, or does not run, shows.
void compare_outputs(const std::vector<Prepared>& modes, Memory& memory, Bench& bench) {
  std::map<int, std::pair<Mode, unsigned long long>> known;
  for (const Prepared& prepared : modes) {
    memory.wipe_outputs(prepared.plan.order);
    Measured ignored;
    bench.run_into(prepared, ignored);
    for (int i : prepared.plan.order) {
      if (NODES[i].kind != Kind::kernel) continue;
      const auto sum = memory.checksum_of(i);
      const auto [first, is_new] = known.emplace(i, std::make_pair(prepared.mode, sum));
      if (!is_new && first->second.second != sum) {
        fail(kDiffers, "node %d (%s) computes one thing in %s and another in %s: an ordering is broken", i,
             NODES[i].name, name_of(first->second.first), name_of(prepared.mode));
      }
    }
  }
}
