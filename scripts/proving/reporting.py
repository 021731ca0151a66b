"""What a run of the proof found, as tables for people and as ``docs/accuracy.md``."""

from collections.abc import Sequence
from statistics import fmean

from rich.console import Console
from rich.table import Table

from proving.harness import FURTHER, Loss, Nothing, Shown
from proving.judging import Judged
from proving.random_plans import LAW_NAMES, LEAST_LOSS, MOST_LOSS
from proving.scenario import SCENARIOS
from proving.targets import Target, median_width

COMMAND = "python scripts/prove.py"


def print_report(
    shown: Sequence[Shown], losses: Sequence[Loss], nothings: Sequence[Nothing], met: Sequence[Target]
) -> None:
    """Tables on stdout: scenarios, then all that is wrong, then targets."""
    console = Console(highlight=False)
    console.print(_table(["scenario", "phase", "to name", "right"], _right_by_phase(shown)))
    for line in (*_wrong(shown), *_missed(losses), *_claimed(nothings)):
        console.print(line, soft_wrap=True)
    console.print()
    rows = [[target.what, target.found, target.asked, "met" if target.met else "MISSED"] for target in met]
    console.print(_table(["asked", "found", "wanted", ""], rows))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(*header, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _right_by_phase(shown: Sequence[Shown]) -> list[list[str]]:
    """Scenario, phase, what is to be named, in how many seeds the answer was right."""
    return [[name, rows[0].phase, rows[0].expected, _counted(rows)] for name, rows in _by_phase(shown)]


def _by_phase(shown: Sequence[Shown]) -> list[tuple[str, list[Judged]]]:
    """Each scenario and phase with what was judged of it, by seed."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for each in shown:
        for row in each.judged:
            found.setdefault((each.name, row.phase), []).append(row)
    return [(name, rows) for (name, _), rows in found.items()]


def _counted(rows: Sequence[Judged]) -> str:
    return f"{sum(not row.wrong for row in rows)} of {len(rows)}"


def _wrong(shown: Sequence[Shown]) -> list[str]:
    return [
        f"{each.name}, seed {each.seed}, {row.phase}: {row.wrong} (truth {row.truth}; said {row.said})"
        for each in shown
        for row in each.judged
        if row.wrong
    ]


def _missed(losses: Sequence[Loss]) -> list[str]:
    return [
        f"loss, seed {loss.seed}, {loss.law}: planted {loss.planted:,.0f} ns, "
        + ("no interval" if loss.low is None or loss.high is None else f"stated [{loss.low:,.0f}, {loss.high:,.0f}]")
        for loss in losses
        if not loss.covered
    ]


def _claimed(nothings: Sequence[Nothing]) -> list[str]:
    return [f"no effect, seed {each.seed}, {each.law}: {'; '.join(each.claimed)}" for each in nothings if each.claimed]


def accuracy_page(
    shown: Sequence[Shown], losses: Sequence[Loss], nothings: Sequence[Nothing], met: Sequence[Target]
) -> str:
    """The page, in Markdown."""
    sections = [
        _ABOUT,
        "## What was asked, what was found\n",
        _markdown(["", "found", "asked"], [[t.what, t.found, f"{t.asked}{'' if t.met else ' (missed)'}"] for t in met]),
        f"The command is `{COMMAND} --seeds {len(losses)} --write`; seeds are 0 to {len(losses) - 1}, every other one "
        "under each law. `make test` runs all scenarios and 10 seeds.\n",
        _METHOD,
        "## Planted loss\n",
        "The planted loss is that of the recorded instances. The usual loss is the mean over "
        f"{FURTHER} further recordings of the same graph, which tracekit does not see.\n",
        _coverage(losses),
        "## Scenarios\n",
        "Truth is what the model's own accounts say of an instance of the phase, b minus a, and said is what `tracekit "
        "diff` names, largest first; both for the first seed.\n",
        _markdown(["scenario", "phase", "truth", "said", "right, by seed"], _scenario_rows(shown)),
        _LIMITS,
    ]
    return "\n".join(sections)


def _coverage(losses: Sequence[Loss]) -> str:
    rows = []
    for law in LAW_NAMES:
        of_law = [loss for loss in losses if loss.law == law]
        known = [loss.estimate / loss.planted - 1 for loss in of_law if loss.estimate is not None]
        rows.append(
            [
                law,
                f"{sum(loss.covered for loss in of_law)} of {len(of_law)}",
                f"{sum(loss.usual_covered for loss in of_law)} of {len(of_law)}",
                f"{median_width(of_law):.1%}",
                f"{fmean(known):+.2%}",
            ]
        )
    header = [
        "law",
        "planted loss inside the interval",
        "usual loss inside it",
        "median width of the interval / loss",
        "mean error of the estimate",
    ]
    return _markdown(header, rows)


def _scenario_rows(shown: Sequence[Shown]) -> list[list[str]]:
    return [
        [f"`{name}`: {SCENARIOS[name].about}", rows[0].phase, rows[0].truth, rows[0].said, _counted(rows)]
        for name, rows in _by_phase(shown)
    ]


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


_ABOUT = """# Accuracy

Generated by `python scripts/prove.py --write`. How right tracekit is, measured where the truth is known: on a model
of a GPU that runs kernels side by side, writes exports as nsys does, and keeps its own accounts of where time went.
Nothing here was recorded on a GPU.
"""

_METHOD = f"""## Method

A discrete-event simulation runs a host thread and a GPU. The host launches kernels one by one, or graphs of them, with
the cost of each call; graphs have edges and branches; kernels begin when what they wait for has ended, after a pause.
Between two events every running kernel progresses at a constant rate, which a contention law gives from who runs
beside it. Two laws, unlike each other, are used:

- **shared bandwidth**: kernels ask for shares of memory bandwidth and of arithmetic. Where they ask for more than there
  is, the memory-bound ones are slowed in proportion; several of them break up each other's open memory pages, so that
  the device yields less in all.
- **waves and cache**: blocks of kernels fill multiprocessors in waves, which are dealt out anew when a kernel begins or
  ends. Where the working sets together exceed the last-level cache every kernel slows down, and those whose lines were
  thrown out stay slower afterwards, also when they run alone again.

Kernel instances of one key differ (noise, one in a hundred held up by up to 20 %, several shapes under one key), phase
instances differ, recordings differ in clock and in the strength of contention, and the eager arm, from which solo
durations are measured, has the same noise. Five blocks a side are recorded unless a scenario says otherwise, and every
block holds six instances of a prefill, or eight of a decode phase, the first of them warm-up.

The planted loss of a phase instance is the wall time of each cluster of kernels connected by overlap, less the sum of
the true solo durations of exactly these instances on the clock of their recording. It is taken from the simulation, not
from the export, and by another rule than tracekit's: no episodes, no medians, no share of overlapped time. Graphs for
the seeds are drawn at random and kept when, without noise, they lose {LEAST_LOSS:.0%} to {MOST_LOSS:.0%} of solo time.

Judged is the public answer: `compare`'s verdicts, waterfall, explanations and kernel statuses, as `--format json` has
them. An explanation counts as named when its outcome is "carries" or "contributes"; the dominant one has to come first.
"""

_LIMITS = """## What the model cannot show

- It is a model. Real contention has more causes than bandwidth, waves and one cache; how large losses are on your GPU
  is not in here, only whether tracekit measures those it meets.
- Real noise has longer tails and memory: clocks that creep, neighbours on the machine, thermal states. The model has
  states and drift where a scenario says so, and independent noise otherwise.
- Tracing nodes one by one changes what runs side by side on a real GPU. The model's exports are free of that; compare
  with unprofiled times.
- One device, one process, one launching thread; graphs of some dozens of nodes.
- Where launches and durations both differ, a part belongs to both causes. tracekit counts it with the launches, the
  model's accounts halve it, so that a second cause near the tenth of the difference that is told may be missed.
- The seeds cover graphs that lose a quarter of their solo time or more. A smaller loss has a wider interval, as a share
  of it.
"""
