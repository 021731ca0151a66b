"""What a bundle says of itself: README.md, and the text of an issue."""

from tracekit.report import markdown
from tracekit.report.document import Document, Section
from tracekit.report.views.names import dimensions
from tracekit.repro.building import architecture
from tracekit.repro.kinds import RULES
from tracekit.repro.model import Repro, ReproNode
from tracekit.repro.recording import Recording
from tracekit.units import duration, percent, shortened

MOST_ROWS = 40
"""Nodes shown in a text; summary.csv has all."""

NOT_CONFIRMED = (
    "No GPU has run this bundle yet: that it builds, and that its kernels have the traced registers and shared memory, "
    "is checked by compilers; that it shows the slowdown is for your run to tell (exit code 10, results.json)."
)


def readme(repro: Repro, recording: Recording) -> str:
    """``README.md``."""
    arch = architecture(repro.gpu.compute_capability)
    return (
        "\n\n".join(
            [
                "# A CUDA graph that is slower than its nodes one after another"
                if _is_loss(repro)
                else "# A CUDA graph",
                _what(repro),
                _observed(repro),
                f"""## Build and run

    ./build.sh && ./run.sh        # exit code 10: reproduced, 0: not reproduced, others: an error

Built for {arch}, the traced GPU; `./build.sh native` builds for the GPU at hand. It needs nvcc (CUDA 12.4 or later)
and a driver; no framework, no Python, no model. The first run fits each kernel to the time that the traced one took
alone, within 5 %, and says where it cannot. Then:

    ./run.sh --bisect             # the fewest nodes that are still slower as a graph
    ./run.sh --sweep              # graphs of which at most 1, 2, 4, ... nodes can run at once
    ./repro --only 3,7 --modes graph,graph-serial
    compute-sanitizer ./repro --runs 1 --warm-up 0

To report what it shows, send `results.json` and, as root, `nvidia-bug-report.sh`, which writes
`nvidia-bug-report.log.gz` (look through it first: it holds host and user names).""",
                f"## Does it reproduce?\n\n{NOT_CONFIRMED}\n\n"
                "`tracekit repro --verify . results.json` compares a run with the trace.",
                _how_it_is_made(repro),
                _recorded(recording),
            ]
        )
        + "\n"
    )


def _is_loss(repro: Repro) -> bool:
    return (repro.loss.lost_ns or 0) > 0


def _what(repro: Repro) -> str:
    lines = [
        f"One launch of a CUDA graph ({len(repro.nodes)} nodes, {len(repro.edges)} edges, up to {repro.max_depth} "
        f"nodes at once) took {duration(repro.span_ns)} on {plain(repro.gpu.name)}. {_chosen(repro)}"
    ]
    lost = repro.loss.lost_ns
    if lost is not None:
        word = "more" if lost > 0 else "less"
        lines.append(
            f"Its kernels ran side by side for {duration(repro.loss.wall_ns)}. Alone, one after another, the same work "
            f"takes {duration(repro.loss.solo_ns)}: {duration(abs(lost))} {word} in the graph. Of "
            f"{repro.known_launches} launches of this graph {repro.slower_launches} lost time so "
            f"(median {duration(repro.median_lost_ns)})."
        )
    return "\n\n".join(lines)


def _chosen(repro: Repro) -> str:
    return f"It is launch {repro.launch} of the trace, taken because, {repro.chosen}."


def observed(repro: Repro) -> Document:
    """The traced launch: its sums, and its kernels with the time they took alone and in the graph."""
    sums = [
        ["span of the launch", duration(repro.span_ns)],
        ["time in which any node ran", duration(repro.busy_ns)],
        ["sum of the nodes' durations", duration(repro.summed_ns)],
        ["side by side", duration(repro.loss.side_by_side_ns)],
        ["of it, that whose cost is known", percent(repro.loss.coverage)],
        ["the same work alone, one after another", duration(repro.loss.solo_ns)],
        ["lost by running side by side", duration(repro.loss.lost_ns)],
    ]
    by_length = sorted(repro.kernels, key=lambda i: (-(repro.nodes[i].duration_ns or 0), i))
    rows = [_row(i, repro.nodes[i]) for i in sorted(by_length[:MOST_ROWS])]
    columns = ["kernel", "grid", "block", "node", "starts at", "in the graph", "alone", "p25-p75 alone", "stretch"]
    more = len(by_length) - len(rows)
    notes = [f"the {len(rows)} longest of {len(by_length)} kernels; summary.csv has all"] if more > 0 else []
    return Document(
        f"Observed: launch {repro.launch} on {plain(repro.gpu.name)}",
        [Section("", ["", "time"], sums), Section("Kernels", columns, rows, text_columns=3, notes=notes)],
        [],
    )


def _row(i: int, node: ReproNode) -> list[str]:
    kernel = node.kernel
    assert kernel is not None
    quartiles = f"{duration(node.solo_p25_ns)} - {duration(node.solo_p75_ns)}" if node.solo_ns else "-"
    stretch = f"{(node.duration_ns or 0) / node.solo_ns:.2f}" if node.solo_ns else "unknown"
    return [
        shortened(node.name),
        dimensions(kernel.grid),
        dimensions(kernel.block),
        str(i),
        duration(node.start_ns),
        duration(node.duration_ns),
        duration(node.solo_ns) if node.solo_ns else "unknown",
        quartiles,
        stretch,
    ]


def _observed(repro: Repro) -> str:
    return "## Observed\n\n" + markdown.render(observed(repro)).strip()


def _how_it_is_made(repro: Repro) -> str:
    kinds = sorted({node.kernel.body for node in repro.nodes if node.kernel})
    rules = dict(RULES)
    stands = "\n".join(
        f"- `{kind}`: {_names_of(repro, kind)}" + (f" (name matches `{rules[kind]}`)" if kind in rules else "")
        for kind in kinds
    )
    notes = "\n".join(f"- {note}" for note in repro.notes)
    edges = "the graph's own, from its DOT dump" if repro.order == "dump" else "inferred from the trace"
    return f"""## How it is made

`repro.cu` builds the graph of `graph.inc` node by node: nodes with the traced grid, block, cluster, registers and
shared memory; edges {edges}; copies, sets, host, empty and child-graph nodes as they were. A kernel's place is taken
by one of its kind, chosen by its name:

{stands}

Matrix kernels have weights of their own; activations flow along the edges, and every mode has to compute the same.

{notes}"""


def _names_of(repro: Repro, kind: str) -> str:
    names = dict.fromkeys(node.name for node in repro.nodes if node.kernel and node.kernel.body == kind)
    shown = [f"`{plain(shortened(name))}`" for name in list(names)[:8]]
    return ", ".join(shown) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def plain(text: str) -> str:
    """A recorded name without what would open or close code or start a line."""
    return "".join(each if each.isprintable() and each != "`" else "_" for each in text)


def _recorded(recording: Recording) -> str:
    facts = {
        "GPU": f"{plain(recording.gpu)}, compute capability {recording.compute_capability or 'unknown'}",
        "driver": recording.driver,
        "CUDA of the driver": recording.cuda,
        "nsys": recording.nsys,
        "framework": recording.framework,
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(recording.packages.items())),
        "variables": ", ".join(f"{name}={value}" for name, value in sorted(recording.environment.items())),
    }
    lines = "\n".join(f"- {name}: {value or 'not recorded'}" for name, value in facts.items())
    return f"## The recording\n\n{lines}\n\nRecorded with\n\n    {recording.command}"


def issue(repro: Repro, recording: Recording) -> str:
    """The markdown of an issue to NVIDIA or a framework, with the observed table."""
    title = (
        f"CUDA graph runs {duration(repro.loss.lost_ns)} slower than the same nodes one after another"
        if _is_loss(repro)
        else "CUDA graph: behaviour of concurrent nodes"
    )
    return (
        "\n\n".join(
            [
                f"# {title} ({plain(repro.gpu.name)})",
                _what(repro),
                markdown.render(observed(repro)).strip(),
                "**To reproduce**\n\nUnpack the attached bundle, then `./build.sh && ./run.sh`: exit code 10 is "
                "reproduced, 0 is not. "
                "`./run.sh --bisect` finds the fewest nodes that show it.",
                f"**Confirmed**\n\n{NOT_CONFIRMED}",
                _recorded(recording).replace("## The recording", "**Environment**"),
                "\n".join(f"- {note}" for note in repro.notes),
            ]
        )
        + "\n"
    )
