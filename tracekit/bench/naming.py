"""What a cell is called: in a comparison of results, and as a phase in a trace."""

from tracekit.analysis.results.bench import Cell


def cell_name(cell: Cell) -> str:
    """All that tells a cell from another."""
    return f"{cell.candidate} M={cell.m} {cell.method} {cell.weights} {cell.block}"


def phase_name(cell: Cell) -> str:
    """The same without a number that stands by itself: phases that differ in such a number only are one."""
    return f"{cell.candidate} M{cell.m} {cell.method} {cell.weights} {cell.block}"
