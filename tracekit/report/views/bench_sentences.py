"""What the times of a benchmark say, in sentences."""

from collections.abc import Iterator, Sequence

from tracekit.analysis.results import Bench, Number
from tracekit.analysis.results.bench import BenchRow, Cell, Contrast, Crossover, Flip, SizeStep
from tracekit.units import percent


def disagreements(answer: Bench) -> Iterator[str]:
    """What the methods say of each other, and which to believe."""
    for each in answer.contrasts:
        if each.kind == "method" and each.b.method == "batched":
            yield _method(each)
    yield from map(_flip, answer.flips)
    yield from _causes(answer.rows)
    if any(row.method == "chain" for row in answer.rows) and any(row.method == "batched" for row in answer.rows):
        yield "believe the chain for decoding, where each operation waits for the one before it"
        yield "believe the batched loop for prefill and other work with many independent calls at once"
    if any("at-floor" in row.marks for row in answer.rows):
        yield "do not compare per-call times at the floor: they measure the wait"


def _method(each: Contrast) -> str:
    where = _where(each.a, "candidate", "m", "weights", "block")
    if not each.decided:
        return f"{where}: batched and chained are not told apart ({_ratio(each.ratio, each.ci95)})"
    if each.ratio < 1:
        return f"{where}: batching hides {percent(1 - each.ratio, 0)} of the chain's time"
    return f"{where}: batched takes {_ratio(each.ratio, each.ci95)} the chain's time: its calls hinder each other"


def _causes(rows: Sequence[BenchRow]) -> Iterator[str]:
    """Overlap in the trace where batching hides time."""
    chains = {_like(row): row for row in rows if row.method == "chain"}
    for row in rows:
        chain = chains.get(_like(row))
        if "batching-hides" not in row.marks or not row.in_trace or row.in_trace.overlapped_share is None:
            continue
        beside = percent(chain.in_trace.overlapped_share, 0) if chain and chain.in_trace else "-"
        yield (
            f"{_where(row, 'candidate', 'm', 'weights', 'block')}: in the trace "
            f"{percent(row.in_trace.overlapped_share, 0)} of the batched loop's busy time has two kernels or more at "
            f"once, {beside} of the chain's: overlap is the cause"
        )


def _like(row: BenchRow) -> tuple[object, ...]:
    return row.candidate, row.m, row.weights, row.block


def _flip(flip: Flip) -> str:
    a, b = flip.a, flip.b
    other = flip.other
    if flip.between == "candidates":
        return (
            f"M={a.m}, {a.weights}, {a.block}: the ranking flips with the method: {b.candidate} takes "
            f"{flip.chain_ratio:.2f}x the time of {a.candidate} as a chain, {flip.other_ratio:.2f}x {other}"
        )
    where = f"{a.candidate} from M={a.m} to M={b.m}, {a.weights}, {a.block}"
    if flip.other_ratio < 1:
        cause = (
            "overlap of independent calls, not a faster kernel" if other == "batched" else "the wait, not the kernel"
        )
        return (
            f"{where}: {other} falls to {flip.other_ratio:.2f}x while the chain rises to {flip.chain_ratio:.2f}x: "
            f"the fall is {cause}"
        )
    return f"{where}: the chain falls to {flip.chain_ratio:.2f}x while {other} rises to {flip.other_ratio:.2f}x"


def over_m(answer: Bench) -> Iterator[str]:
    """Crossovers of two candidates, steps of one."""
    yield from map(_crossover, answer.crossovers)
    candidates = {row.candidate for row in answer.rows}
    if len(candidates) > 1 and not answer.crossovers and len({row.m for row in answer.rows}) > 1:
        yield "no crossover: no method sees the faster candidate change within the M measured"
    if len(candidates) == 1:
        yield from map(_step, answer.steps)


def _crossover(each: Crossover) -> str:
    between = "" if each.low is None or each.high is None else f", between {each.low:.1f} and {each.high:.1f}"
    trust = "this is what decoding pays" if each.method == "chain" else f"as {each.method} sees it"
    return (
        f"{each.method}, {each.weights}, {each.block}: crossover at M={each.m:.1f}{between}: below it "
        f"{each.faster_below} is faster, above it {each.faster_above}; {trust}"
    )


def _step(step: SizeStep) -> str:
    return (
        f"step of {_where(step.a, 'candidate', 'method', 'weights', 'block')}: from M={step.a.m} to M={step.b.m} "
        f"({step.b.m / step.a.m:.2f}x the rows) time goes to {_ratio(step.ratio, step.ci95)}"
    )


def lessons(answer: Bench) -> Iterator[str]:
    """How long a chain, with or without its block, hot or cold: answered from these figures."""
    needed = [row.needed_length for row in answer.rows if row.method == "chain" and row.needed_length]
    if needed:
        yield (
            f"length: from {max(needed)} operations on, a chain's time divided by its length is within 2 %; "
            "with the overhead subtracted, as here, any length does that settles"
        )
    for kind, one, other in (
        ("weights", "one set of weights (hot)", "going round over more than the cache (cold)"),
        ("block", "the bare operation", "the block with norm and residual"),
    ):
        found = [each for each in answer.contrasts if each.kind == kind and each.a.method == "chain"]
        if found:
            yield from (_lesson(each, other) for each in found)
        elif kind == "weights" and any(row.weights == "hot" for row in answer.rows):
            yield f"{one} may sit in a cache: add --weights hot,cold to see what that is worth"


def _lesson(each: Contrast, other: str) -> str:
    where = _where(each.a, "candidate", "m", "block" if each.kind == "weights" else "weights")
    if not each.decided:
        return f"{where}: {other} makes no difference that shows ({_ratio(each.ratio, each.ci95)})"
    meaning = {
        "weights": "one set of weights overstates how much the cache holds" if each.ratio > 1 else "",
        "block": "the difference is norm and residual" if each.ratio > 1 else "",
    }[each.kind]
    return f"{where}: {other} takes {_ratio(each.ratio, each.ci95)}" + (f": {meaning}" if meaning else "")


def _where(cell: Cell, *fields: str) -> str:
    told = {"candidate": cell.candidate, "m": f"M={cell.m}", "method": cell.method}
    told |= {"weights": cell.weights, "block": cell.block}
    return ", ".join(told[field] for field in fields)


def _ratio(ratio: float, interval: tuple[Number, Number] | None) -> str:
    return f"{ratio:.2f}x" + ("" if interval is None else f", 95 % {interval[0]:.2f}-{interval[1]:.2f}")
