"""Tables of device time, shared by ``summary`` and ``overlap``."""

from collections.abc import Sequence

from tracekit.analysis.results import Device
from tracekit.report.document import Section
from tracekit.units import duration


def device_section(devices: Sequence[Device]) -> Section:
    """One row a device."""
    return Section(
        "Devices",
        ["device", "kernels", "span", "busy", "copy", "idle", "summed", "overlapped", "max depth"],
        [
            [
                str(line.device),
                str(line.kernel_rows),
                duration(line.span_ns),
                _seen(line, line.busy_ns),
                duration(line.copy_ns),
                _or_withheld(line.idle_ns),
                _seen(line, line.summed_ns),
                _seen(line, line.overlapped_ns),
                "withheld" if line.max_depth is None else f"{_least(line)}{line.max_depth}",
            ]
            for line in devices
        ],
    )


def gap_section(devices: Sequence[Device]) -> Section:
    """Histogram of the pauses in which a device did nothing."""
    rows = [
        [
            str(line.device),
            f"{duration(gap.from_ns)} to {duration(gap.to_ns)}" if gap.to_ns else f"{duration(gap.from_ns)} and more",
            str(gap.count),
            duration(gap.total_ns),
        ]
        for line in devices
        for gap in line.gaps or []
        if gap.count
    ]
    return Section("Pauses with neither kernel nor copy", ["device", "length", "count", "time"], rows, text_columns=2)


def _least(line: Device) -> str:
    """Where idle time alone is withheld, graphs traced as a whole hide more of everything."""
    return "at least " if line.idle_ns is None and line.busy_ns is not None else ""


def _seen(line: Device, ns: int | None) -> str:
    return "withheld" if ns is None else _least(line) + duration(ns)


def _or_withheld(ns: int | None) -> str:
    return "withheld" if ns is None else duration(ns)
