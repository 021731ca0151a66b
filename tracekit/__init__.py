"""Did CUDA graphs help or hurt, where, and by how much: evidence from nsys traces."""

from tracekit.capture.phase import phase

__version__ = "0.1.0"

__all__ = ["__version__", "phase"]
