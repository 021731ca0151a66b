"""What a trace can answer, and whether a comparison can be trusted."""
