// ---- Which part of the graph is slow --------------------------------------------------------------------------------

struct Width {
  std::size_t width;
  Middle event;
};

// Graphs of which 1, 2, 4, ... nodes at most can run at once, the last as wide as the graph itself.
std::vector<Width> sweep(const Plan& plan, const Options& options, Memory& memory, Queues& queues, Bench& bench) {
  std::vector<std::size_t> widths;
  for (std::size_t width = 1; width < plan.order.size(); width *= 2) widths.push_back(width);
  widths.push_back(plan.order.size());
  std::vector<Prepared> prepared;
  for (const auto width : widths) prepared.emplace_back(plan, width, memory, queues);
  std::vector<std::vector<double>> times(widths.size());
  for (int round = -options.warm_up; round < options.runs; ++round) {
    for (std::size_t k = 0; k < widths.size(); ++k) {
      const double time = bench.run(prepared[k]);
      if (round >= 0) times[k].push_back(time);
    }
  }
  std::vector<Width> found;
  for (std::size_t k = 0; k < widths.size(); ++k) found.push_back({widths[k], middle(times[k])});
  return found;
}

// Shrinks a set of nodes to one that is still slow, and from which no node can be left out (Zeller's ddmin, 2002).
class Bisection {
 public:
  Bisection(const Plan& plan, const Options& options, Memory& memory, Queues& queues, Bench& bench)
      : plan_(plan), options_(options), memory_(memory), queues_(queues), bench_(bench) {}

  std::vector<int> smallest() {
    std::vector<int> nodes = plan_.order;
    if (!is_slow(nodes)) return {};
    std::size_t parts = 2;
    while (parts <= nodes.size()) {
      std::size_t next = parts == nodes.size() ? parts + 1 : std::min(parts * 2, nodes.size());
      if (auto one = slow_part(nodes, parts, false); !one.empty()) {
        nodes = one;
        next = 2;
      } else if (auto rest = slow_part(nodes, parts, true); !rest.empty()) {
        nodes = rest;
        next = std::max<std::size_t>(parts - 1, 2);
      }
      parts = next;
    }
    smallest_ratio = ratio_of(nodes);
    return nodes;
  }

  int tests = 0;
  Middle smallest_ratio = {NAN, NAN, NAN};  // graph over graph-serial, of the smallest set

 private:
  // One of so many parts, or all but one of them (`rest`), that is still slow; nothing where none is.
  std::vector<int> slow_part(const std::vector<int>& nodes, std::size_t parts, bool rest) {
    for (std::size_t k = 0; k < parts; ++k) {
      const auto begin = k * nodes.size() / parts, end = (k + 1) * nodes.size() / parts;
      std::vector<int> chosen;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if ((i >= begin && i < end) != rest) chosen.push_back(nodes[i]);
      }
      if (!chosen.empty() && is_slow(chosen)) return chosen;
    }
    return {};
  }

  bool is_slow(const std::vector<int>& nodes) { return ratio_of(nodes).low > 1 + options_.threshold; }

  Middle ratio_of(const std::vector<int>& nodes) {
    ++tests;
    std::vector<bool> keep(kNodes);
    for (int i : nodes) keep[i] = true;
    const Plan plan = subset(plan_, keep);
    const Prepared graph(plan, plan.order.size(), memory_, queues_), serial(plan, 1, memory_, queues_);
    std::vector<double> one, other;
    for (int round = -options_.warm_up; round < options_.runs; ++round) {
      const double of_graph = bench_.run(graph), of_serial = bench_.run(serial);
      if (round < 0) continue;
      one.push_back(of_graph);
      other.push_back(of_serial);
    }
    return paired_ratio(one, other);
  }

  const Plan& plan_;
  const Options& options_;
  Memory& memory_;
  Queues& queues_;
  Bench& bench_;
};
