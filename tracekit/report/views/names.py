"""Kernel names and shapes for a person's eye."""

from collections import Counter
from collections.abc import Sequence

from tracekit.analysis.results import Dimensions, Kernel, Number, TraceLine, Warn
from tracekit.units import duration, shortened


def dimensions(value: Dimensions | None) -> str:
    """``4352x1x1``; ``-`` where not recorded or grouped away."""
    return "-" if value is None else "x".join("?" if each is None else str(each) for each in value)


def ratio_interval(bounds: tuple[Number, Number] | None, decimals: int = 3) -> str:
    """``0.463-0.465``; ``-`` for none."""
    return "-" if bounds is None else f"{bounds[0]:.{decimals}f}-{bounds[1]:.{decimals}f}"


def time_interval(bounds: tuple[Number, Number] | None) -> str:
    """``4.38 ms - 4.42 ms``; ``-`` for none."""
    return "-" if bounds is None else f"{duration(bounds[0])} - {duration(bounds[1])}"


def kernel_names(kernels: Sequence[Kernel]) -> list[str]:
    """Base names; where they and the shape do not tell two kernels apart, the whole demangled name."""
    keys = [(kernel.short_name, kernel.grid, kernel.block) for kernel in kernels]
    count = Counter(keys)
    return [
        shortened(kernel.name or kernel.short_name or "(unnamed)")
        if count[key] > 1 or not kernel.short_name
        else shortened(kernel.short_name)
        for kernel, key in zip(kernels, keys, strict=True)
    ]


def trace_notes(lines: list[TraceLine]) -> list[str]:
    """What each input is and how it was traced, one line each."""
    how = {
        "node": "graph nodes traced one by one",
        "graph": "graphs traced as a whole",
        "none": "no graph launched",
        "unknown": "graph tracing unknown",
    }
    return [
        f"{line.path}: {', '.join(dict.fromkeys(line.gpus)) or 'GPU not recorded'}; "
        f"nsys {line.nsys_version or 'unknown'}; "
        f"{line.kernel_rows} kernels, {line.graph_kernel_rows} of them in graphs; {how[line.granularity]}"
        for line in lines
    ]


def warning_lines(warnings: list[Warn]) -> list[str]:
    """The warnings' messages."""
    return [warning.message for warning in warnings]
