"""What a run of a bundle should show, and why: EXPECTED.md."""

from tracekit.repro.model import Repro
from tracekit.repro.readme import plain
from tracekit.units import duration


def expected(repro: Repro) -> str:
    """``EXPECTED.md``."""
    lost = repro.loss.lost_ns
    if lost is not None and lost > 0:
        what = f"""\
On the traced GPU (`{plain(repro.gpu.name)}`) `./run.sh` should end with exit code 10 and a ratio
graph / graph-serial above 1.02. The trace shows {duration(repro.loss.wall_ns)} side by side for work that takes
{duration(repro.loss.solo_ns)} one after another: about {duration(lost)} more than the serial graph, of a span of
{duration(repro.span_ns)}.

Why: the graph's edges leave nodes free to run at once, and where they did, each was slowed by more than what running
at once saved. With an edge from each node to the one before it (`graph-serial`) nothing runs at once. The same nodes
launched on the traced streams without a graph (`eager-multi-stream`) tell whether it is the graph or the
concurrency."""
    elif lost is not None:
        what = """\
The traced launch lost nothing by running kernels side by side, so `./run.sh` should end with exit code 0."""
    else:
        what = """\
What running side by side cost in the trace is unknown: there are no solo durations of its kernels, or nothing ran
side by side. What `./run.sh` ends with is open."""
    return f"""\
# What to expect

{what}

| mode | what it is | expected |
|---|---|---|
| alone | each kernel by itself | each as long as in the trace alone, within 5 % |
| eager-single-stream | one launch after another on one stream | about the sum of `alone`, and gaps |
| eager-multi-stream | the traced streams, events between them | as the trace's streams allow |
| graph | the traced edges, all nodes | {duration(repro.span_ns)}, as traced |
| graph-kernels-only | the same without copies, sets and other nodes | as `graph`, unless they matter |
| graph-serial | an edge from each node to the one before it | about the sum of `alone` |
| graph-per-node | a graph for each node | about the sum of `alone`, and launches |
"""
