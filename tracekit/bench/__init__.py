"""Times operations of MLX three ways: as a dependent chain, batched in a queue, and evaluated call by call."""

from tracekit.bench.protocol import Call, Case, link

__all__ = ["Call", "Case", "link"]
