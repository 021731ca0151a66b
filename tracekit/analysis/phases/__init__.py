"""Phases: which work is whose, what each instance cost, and what two arms took."""
