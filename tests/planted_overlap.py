"""One kernel alone and beside others, planted, against an eager run of the same kernels."""

from pathlib import Path

from field_notation import Kernel as Planned
from field_notation import diff_of, steps

from tracekit.analysis.results import Diff


def planted(stretch: dict[str, float], times: int = 1) -> list[Planned]:
    """Kernel v alone and then beside each set of kernels (letters), where it takes so many times as long."""
    kernels: list[Planned] = [(0, 1000, 7, "v")]
    at = 10_000
    for beside, factor in list(stretch.items()) * times:
        kernels += [(at, at + 8000, 8 + stream, name) for stream, name in enumerate(beside)]
        kernels.append((at + 1000, at + 1000 + round(1000 * factor), 7, "v"))
        at += 10_000
    return kernels


def one_by_one(names: str) -> list[Planned]:
    """The eager run: every kernel alone."""
    lengths = {"v": 1000}
    return [(20_000 * i, 20_000 * i + lengths.get(name, 8000), 7, name) for i, name in enumerate(dict.fromkeys(names))]


def compared(stretch: dict[str, float], folder: Path) -> Diff:
    eager = steps(one_by_one("v" + "".join(stretch)), graphs=False)
    return diff_of(eager, steps(planted(stretch), graphs=True), folder)
