"""Drawings that graphviz makes."""

import shutil
import tempfile
from pathlib import Path

from tracekit.errors import OutsideProgramFailed

SECONDS = 120
"""Longest that a drawing may take: graphviz needs a few seconds for 2,000 nodes."""


def check_graphviz() -> None:
    """Raise OutsideProgramFailed where graphviz is not installed."""
    if shutil.which("dot") is None:
        raise OutsideProgramFailed("--svg needs graphviz: install it (apt install graphviz, brew install graphviz)")


def svg_of(source: str) -> str:
    """The SVG of a DOT source. Raises OutsideProgramFailed where graphviz does not do it in time."""
    from tracekit.capture.outside import ask

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "graph.dot")
        file.write_text(source, encoding="utf-8")
        reply = ask(["dot", "-Tsvg", file], SECONDS)
    if reply.code != 0:
        raise OutsideProgramFailed(
            f"graphviz (dot) {reply.ending}: leave --svg out, or draw a smaller graph (--launch)"
        )
    return reply.out
