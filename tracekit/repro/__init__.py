"""A standalone CUDA program with the shape of a traced graph, and the bundle it is handed over in."""
