"""The files of a bundle."""

import csv
import io
from typing import Any

import msgspec

from tracekit.repro.building import RUN, architecture, build_script, cmake
from tracekit.repro.expected import expected
from tracekit.repro.model import Repro, ReproNode
from tracekit.repro.program import source
from tracekit.repro.readme import readme
from tracekit.repro.recording import Recording
from tracekit.repro.tables import digest, graph_tables

PLAN = "expected.json"
"""The traced launch as data, which results are compared with."""


class Expected(msgspec.Struct, frozen=True):
    """The launch that a bundle reproduces, and the digest by which results name its graph."""

    graph: str
    launch: Repro


def bundle_files(repro: Repro, recording: Recording) -> dict[str, bytes]:
    """Name -> content of everything a bundle always holds; equal input gives equal bytes."""
    arch = architecture(repro.gpu.compute_capability)
    texts = {
        "repro.cu": source(),
        "graph.inc": graph_tables(repro),
        "build.sh": build_script(arch),
        "run.sh": RUN,
        "CMakeLists.txt": cmake(arch),
        "README.md": readme(repro, recording),
        "EXPECTED.md": expected(repro),
        "env.json": _json(recording),
        PLAN: _json(Expected(digest(repro), repro)),
        "summary.csv": _summary(repro),
    }
    return {name: text.encode() for name, text in texts.items()}


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _summary(repro: Repro) -> str:
    """A row a node, times in ns."""
    out = io.StringIO()
    rows = [_row(i, node) for i, node in enumerate(repro.nodes)]
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(i: int, node: ReproNode) -> dict[str, Any]:
    kernel = node.kernel
    launch = {
        name: "x".join(map(str, getattr(kernel, name))) if kernel else "" for name in ("grid", "block", "cluster")
    }
    rest = ("dynamic_smem", "static_smem", "registers", "local", "body", "why")
    return {
        "node": i,
        "name": node.name,
        "kind": node.kind,
        "stream": node.stream,
        "child": node.child,
        "start_ns": node.start_ns,
        "duration_ns": node.duration_ns,
        "solo_ns": node.solo_ns,
        **launch,
        **{name: getattr(kernel, name) if kernel else None for name in rest},
        "copied_bytes": node.bytes if node.kind in ("memcpy", "memset") else None,
    }
