"""One graph as DOT source for graphviz: from top to bottom what waits for what is above, coloured by time."""

import math

from tracekit.analysis.results import GraphAnswer, GraphNode, GraphShape
from tracekit.report.document import printable
from tracekit.report.views.names import dimensions
from tracekit.units import duration, percent, shortened

_HEAD = """digraph graphs {
  graph [fontname="Helvetica", labelloc=t, labeljust=l, ranksep=0.35, nodesep=0.25, nslimit=4, nslimit1=4];
  node [fontname="Helvetica", fontsize=11, shape=box, style="filled,rounded", margin="0.12,0.06", color="#666666"];
  edge [color="#777777", arrowsize=0.6];
"""


def dot_source(answer: GraphAnswer) -> str:
    """The graph shown in detail, each node with its kernel and median; a darker one took more of the time."""
    detail = answer.detail
    shape = answer.graphs[detail.graph - 1]
    most = max((node.share or 0 for node in detail.nodes), default=0)
    lines = [f'{_HEAD}  label="{_quoted(_title(answer, shape))}";']
    lines += [_node(node, most) for node in detail.nodes]
    style = "" if shape.order == "dump" else " [style=dashed]"
    lines += [f"  n{before} -> n{node.node}{style};" for node in detail.nodes for before in node.after]
    return "\n".join([*lines, "}", ""])


def _title(answer: GraphAnswer, shape: GraphShape) -> str:
    order = f"edges of {shape.dump}" if shape.order == "dump" else f"order inferred from {shape.launches} replays"
    return (
        f"graph {shape.graph} of {answer.traces[0].path}: {shape.nodes} nodes, {shape.launches} launches of "
        f"{duration(shape.span_ns)}; {order}"
    )


def _node(node: GraphNode, most: float) -> str:
    name = "copy or set" if node.kind == "copy" else shortened(node.short_name or node.name or "(unnamed)")
    size = "" if node.grid is None else f" {dimensions(node.grid)}"
    label = f"{_quoted(name + size)}\\n{duration(node.median_ns)}, {percent(node.share)}"
    # Areas of colour are told apart by their square root better than by themselves.
    strength = math.sqrt((node.share or 0) / most) if most else 0
    fill = f"0.06 {0.85 * strength:.3f} {1 - 0.12 * strength:.3f}"
    return f'  n{node.node} [label="{label}", fillcolor="{fill}", tooltip="{_quoted(node.name or name)}"];'


def _quoted(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
