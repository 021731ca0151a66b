"""Layers of two matrix products and their sum, in PyTorch: as a CUDA graph, or one kernel after another.

PyTorch has no switch for graphs, so this workload brings one: with GRAPHS=0 in the environment every
kernel is launched by itself, on one stream; else the layers are captured, the two products of each side by side.
"""

import json
import os
import time
from statistics import median

import torch  # type: ignore[import-not-found, unused-ignore]

from tracekit import phase

LAYERS, TOKENS, WIDTH, RUNS = 16, 512, 2048, 40


def layers(x: torch.Tensor, weights: torch.Tensor, side: torch.cuda.Stream) -> torch.Tensor:
    """All layers: two matrices of ``weights`` each, the product with the second one on the stream ``side``."""
    here = torch.cuda.current_stream()
    for gate, up in weights:
        side.wait_stream(here)
        with torch.cuda.stream(side):
            raised = x @ up
        gated = x @ gate
        here.wait_stream(side)
        x = torch.nn.functional.silu(gated) + raised
    return x


def main() -> None:
    """Time each pass through the layers to its last kernel."""
    torch.manual_seed(0)
    device = torch.device("cuda")
    x = torch.randn(TOKENS, WIDTH, device=device, dtype=torch.bfloat16)
    weights = torch.randn(LAYERS, 2, WIDTH, WIDTH, device=device, dtype=torch.bfloat16) * WIDTH**-0.5
    here = torch.cuda.current_stream()
    graphs = os.environ.get("GRAPHS") != "0"
    layers(x, weights, here)
    torch.cuda.synchronize()
    if graphs:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            layers(x, weights, torch.cuda.Stream())

    seconds = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        with phase("layers"):
            if graphs:
                graph.replay()
            else:
                layers(x, weights, here)
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"workload": "torch_graph", "graphs": graphs, "median_s": median(seconds[1:])}))


if __name__ == "__main__":
    main()
