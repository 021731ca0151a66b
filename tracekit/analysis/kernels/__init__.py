"""Kernels: how long they took, alone and otherwise, which is which, and what launched them."""
