// ---- The graph ------------------------------------------------------------------------------------------------------

enum class Kind { kernel, memcpy, memset, host, empty };

// What a stand-in does, by the kind of the traced kernel.
enum class Body { matmul, matvec, copy, reduce, elementwise };

// One node. Times are microseconds, 0 where the trace does not tell.
struct Node {
  const char* name;
  Kind kind;
  int variant;  // which of VARIANTS it launches
  unsigned grid[3], block[3], cluster[3];
  unsigned dynamic_shared;
  int registers, static_shared;  // as traced, -1 where the trace does not tell
  int stream;                    // the traced streams, numbered from 0
  int child;                     // number of the child graph that holds it, -1 for none
  double alone_us;               // how long the traced kernel took alone
  double traced_us;              // how long it took in the traced launch
  unsigned long long bytes;      // a kernel's memory traffic (first guess; --calibrate fits it), a copy's size
  unsigned iterations;           // first guess of the same
  int copy_kind;                 // of a memcpy, as CUPTI numbers it: 1 to the device, 2 from it, 8 within it
  unsigned value;                // of a memset
};

// VARIANTS(X) calls X(body, most registers, held registers, static shared bytes) for each variant; NODES and EDGES
// are the tables. Nodes stand in an order in which every edge leads onward, those of a child graph together.
#include "graph.inc"

constexpr int kNodes = sizeof(NODES) / sizeof(NODES[0]);

// The nodes that a node waits for.
const std::vector<int>& waits_for(int node) {
  static const auto waits = [] {
    std::vector<std::vector<int>> found(kNodes);
    for (const auto& edge : EDGES) {
      if (edge[1] < kNodes) found[edge[1]].push_back(edge[0]);
    }
    return found;
  }();
  return waits[node];
}
