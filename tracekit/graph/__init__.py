"""The shape of CUDA graphs: from DOT dumps, or from the order in which their nodes ran."""
