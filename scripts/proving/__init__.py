"""A GPU model with known truth, scenarios played on it, and the judging of what tracekit says about them."""
