"""``graph.inc``: the traced launch as C++ tables."""

import re
from collections.abc import Sequence
from hashlib import sha256

from tracekit.repro.footprint import variant_of
from tracekit.repro.model import Repro, ReproNode, Size

_UNSAFE = re.compile(r'[^ -~]|["\\?]')
"""Not in a string literal: what is no printable ASCII, what ends or escapes it, and question marks (trigraphs)."""

LONGEST_NAME = 120


def digest(repro: Repro) -> str:
    """Tells graphs apart: results are compared, and calibrations used, only for the graph that they are of."""
    return sha256(_body(repro).encode()).hexdigest()[:12]


def graph_tables(repro: Repro) -> str:
    """The text of ``graph.inc``."""
    return (
        "// The traced graph launch, generated. The types are in repro.cu.\n"
        f'#define GRAPH_DIGEST "{digest(repro)}"\n' + _body(repro)
    )


def _body(repro: Repro) -> str:
    variants = list(dict.fromkeys(variant_of(node.kernel) for node in repro.nodes if node.kernel))
    number = {variant: i for i, variant in enumerate(variants)}
    rows = [_node(node, number[variant_of(node.kernel)] if node.kernel else -1) for node in repro.nodes]
    # A table of no edges is no C++: the edge of none to none is left out where edges are read.
    edges = repro.edges or [(len(rows), len(rows))]
    return "\n".join(
        [
            "",
            "// body, most registers a thread, registers held live at once, static shared bytes",
            "#define VARIANTS(X) \\",
            *(f"  X({v.body}, {v.most}, {v.held}, {v.static_smem}) \\" for v in variants),
            "",
            "// name, kind, variant, grid, block, cluster, dynamic shared bytes, traced registers, static shared,",
            "// stream, child graph, us alone, us in the traced launch, bytes, iterations, kind of copy, memset value",
            "static const Node NODES[] = {",
            *(f"    {row},  // {i}" for i, row in enumerate(rows)),
            "};",
            "",
            "// from, to",
            "static const int EDGES[][2] = {",
            *(f"    {line}" for line in _lines([f"{{{one}, {other}}}," for one, other in edges])),
            "};",
            "",
        ]
    )


def _node(node: ReproNode, variant: int) -> str:
    kernel = node.kernel
    none: Size = (0, 0, 0)
    sizes = (kernel.grid, kernel.block, kernel.cluster) if kernel else (none, none, none)
    fields = [
        literal(node.name),
        f"Kind::{node.kind}",
        str(variant),
        *map(_size, sizes),
        str(kernel.dynamic_smem if kernel else 0),
        str(-1 if kernel is None or kernel.registers is None else kernel.registers),
        str(-1 if kernel is None or kernel.static_smem is None else kernel.static_smem),
        str(node.stream),
        str(-1 if node.child is None else node.child),
        f"{(node.solo_ns or 0) / 1000:.3f}",
        f"{(node.duration_ns or 0) / 1000:.3f}",
        f"{kernel.bytes if kernel else node.bytes}ull",
        str(kernel.iterations if kernel else 0),
        str(node.copy_kind),
        str(node.value),
    ]
    return f"{{{', '.join(fields)}}}"


def _size(size: Size) -> str:
    return f"{{{', '.join(map(str, size))}}}"


def literal(text: str) -> str:
    """A C string literal; what cannot stand in one becomes an underscore."""
    return f'"{_UNSAFE.sub("_", text)[:LONGEST_NAME]}"'


def _lines(words: Sequence[str], width: int = 12) -> list[str]:
    return [" ".join(words[i : i + width]) for i in range(0, len(words), width)]
