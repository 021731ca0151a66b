"""DOT dumps as ``cudaGraphDebugDotPrint`` writes them, from nodes and edges."""

from collections.abc import Sequence

Edges = Sequence[tuple[int, int]]


def cluster(nodes: Sequence[str], edges: Edges, graph: int = 1) -> str:
    """A graph, from the whole label statements of its nodes."""
    lines = [f"subgraph cluster_{graph} {{", f'label="graph_{graph}" graph[style="dashed"];']
    lines += [f'"graph_{graph}_node_{i}"[{node}];\n' for i, node in enumerate(nodes)]
    lines += [f'"graph_{graph}_node_{one}" -> "graph_{graph}_node_{other}";' for one, other in edges]
    return "\n".join([*lines, "}"])


def digraph(*clusters: str) -> str:
    """A whole dump."""
    return "\n".join(["digraph dot {", *clusters, "}", ""])


def kernel(number: int, name: str) -> str:
    """A kernel, flags 0."""
    return f'style="bold" shape="octagon" label="{number}\n{name}\n"'


def other(number: int, what: str) -> str:
    """Any other node, flags 0: MEMCPY, EMPTY, or the child graph it stands for."""
    return f'style="solid" shape="rectangle" label="{number}\n{what}\n"'


def verbose_kernel(number: int, name: str, launch: str = "\\{16,10,4\\},128,0") -> str:
    """A kernel, verbose."""
    return (
        f'style="bold" shape="record" label="{{KERNEL\n'
        f"| {{ID | {number} (topoId: 6) | {name}\\<\\<\\<{launch}\\>\\>\\>}}\n"
        '| {{node handle | func handle} | {0x00007FC44A2F36D0 | 0x000000000D55C270}}\n| {cooperative | 0}\n}"'
    )


def plain_dump(names: Sequence[str], edges: Edges) -> str:
    """One graph of kernels, flags 0."""
    return digraph(cluster([kernel(i, name) for i, name in enumerate(names)], edges))
