"""Kernels side by side: who beside whom, for how long, and what it gained or lost."""
