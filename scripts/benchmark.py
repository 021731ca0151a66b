"""Time tracekit as a user meets it: whole processes, beside nsys stats, and at several sizes of trace.

Prints figures and judges none. The commands of a section take turns, so that what slows the machine for a
while slows all of them. Exports are generated; those that the folder already holds are used again.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmark_phase import phase_costs

from tracekit import __version__
from tracekit.capture.nsys import find_nsys

SUMMARY_SIZES, DIFF_SIZES = [100_000, 1_000_000, 5_000_000], [100_000, 1_000_000]
COMPARED_SIZE = 1_000_000
"""Kernels of the trace that is compared with nsys and read from the cache, or the size nearest to it."""

STARTUP_RUNS = 5
"""So many times the runs for processes that only start."""

GENERATOR = Path(__file__).with_name("benchmark_exports.py")
TRACEKIT = [sys.executable, "-m", "tracekit"]

MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass
class Command:
    """A process to time, and what it took each time.

    It reads ``kernels`` rows, and an answer of fewer than ``least_lines`` is a failure.
    """

    name: str
    argv: list[str]
    kernels: int = 0
    least_lines: int = 10
    prepare: Callable[[], None] | None = None
    seconds: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)

    def run(self, environment: dict[str, str]) -> None:
        """Run it once more; SystemExit when it fails."""
        if self.prepare:
            self.prepare()
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
            begin = time.perf_counter()
            process = subprocess.Popen(self.argv, stdout=answer, stderr=errors, env=environment)
            # The peak counts from the memory of the process that starts it, so this one loads nothing large.
            _, status, usage = os.wait4(process.pid, 0)
            self.seconds.append(time.perf_counter() - begin)
            self.peak_mib.append(usage.ru_maxrss * MAXRSS_UNIT / 2**20)
            process.returncode = os.waitstatus_to_exitcode(status)
            answer.seek(0)
            errors.seek(0)
            # nsys ends with 0 also when it could not answer.
            if process.returncode or sum(1 for _ in answer) < self.least_lines:
                said = errors.read().decode(errors="replace").strip()
                sys.exit(f"{self.name}: no answer, exit code {process.returncode}: {said[-500:]}")


@dataclass
class Section:
    """Commands to compare with the first of them."""

    title: str
    commands: list[Command]

    def run(self, runs: int, environment: dict[str, str]) -> None:
        """Run the commands in turn, ``runs`` times each."""
        for _ in range(runs):
            for command in self.commands:
                command.run(environment)

    def rows(self) -> list[dict[str, Any]]:
        """Medians of each command, what they are of the first one's, and every single run."""
        first = self.commands[0]
        return [
            {
                "name": command.name,
                "kernels": command.kernels or None,
                "seconds": median(command.seconds),
                "seconds_of_first": median(command.seconds) / median(first.seconds),
                "peak_mib": median(command.peak_mib),
                "peak_of_first": median(command.peak_mib) / median(first.peak_mib),
                "seconds_per_million": median(command.seconds) / command.kernels * 1e6 if command.kernels else None,
                "runs": {"seconds": command.seconds, "peak_mib": command.peak_mib},
            }
            for command in self.commands
        ]


class Exports:
    """Generated exports in a folder, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, kernels: int, launched: str = "graphs") -> str:
        """The export of so many kernels, launched as ``graphs`` (half of them), ``eager`` or ``dynamic``."""
        path = self._folder / f"{launched}-{kernels}.sqlite"
        if not path.exists():
            print(f"generating {path.name}", file=sys.stderr)
            seed = "2" if launched == "eager" else "1"
            subprocess.run([sys.executable, GENERATOR, path, str(kernels), seed, launched], check=True)
        return str(path)


def beside_nsys(exports: Exports, kernels: int, launched: str, nsys: Path, copy: Path) -> Section:
    """One summary against the two of nsys that come nearest to it."""
    shutil.copyfile(exports.path(kernels, launched), copy)
    reports = ("cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum")
    return Section(
        f"summary beside nsys stats, {launched}",
        [
            Command("tracekit summary --no-cache", [*TRACEKIT, "summary", "--no-cache", str(copy)], kernels),
            *(
                Command(
                    f"nsys stats {report}",
                    [str(nsys), "stats", "-q", "-r", report, "-f", "csv", str(copy)],
                    kernels,
                )
                for report in reports
            ),
        ],
    )


def cached(exports: Exports, kernels: int, cache: Path) -> Section:
    """The first question about a trace, another one, and the first one again."""
    first = summary("first summary", exports, kernels)
    first.prepare = lambda: shutil.rmtree(cache, ignore_errors=True)
    other = summary("summary --by name after it", exports, kernels, "--by", "name")
    return Section("cache", [first, other, summary("first summary again", exports, kernels)])


def summary(name: str, exports: Exports, kernels: int, *options: str) -> Command:
    """``tracekit summary`` of one trace."""
    argv = [*TRACEKIT, "summary", *options, exports.path(kernels)]
    return Command(name, argv, kernels)


def summary_growth(exports: Exports, sizes: list[int]) -> Section:
    """Summaries of ever larger traces."""
    return Section("summary --no-cache, by size", [summary("summary", exports, size, "--no-cache") for size in sizes])


def diff_growth(exports: Exports, sizes: list[int]) -> Section:
    """Comparisons of ever larger pairs of traces; ``kernels`` are those of both."""
    pairs = [(size, exports.path(size, "eager"), exports.path(size, "graphs")) for size in sizes]
    return Section(
        "diff --no-cache of an eager trace and one with graphs, by size of both",
        [Command("diff", [*TRACEKIT, "diff", "--no-cache", eager, graphs], 2 * size) for size, eager, graphs in pairs],
    )


def startup() -> Section:
    """What a process costs before it does anything."""
    python = [sys.executable, "-c"]
    return Section(
        "start",
        [
            Command("python -c pass", [*python, "pass"], least_lines=0),
            Command("from tracekit import phase", [*python, "from tracekit import phase"], least_lines=0),
            Command("tracekit --help", [*TRACEKIT, "--help"]),
        ],
    )


def table(rows: list[dict[str, Any]]) -> str:
    """The figures of a section under aligned headings."""
    lines = [f"{'':32}{'kernels':>10}{'s':>9}{'of first':>10}{'MiB':>9}{'of first':>10}{'s/million':>11}"]
    for row in rows:
        kernels, growth = row["kernels"] or "", row["seconds_per_million"]
        lines.append(
            f"{row['name']:32}{kernels:>10}{row['seconds']:9.3f}{row['seconds_of_first']:9.2f}x"
            f"{row['peak_mib']:9.0f}{row['peak_of_first']:9.2f}x" + (f"{growth:11.2f}" if growth else "")
        )
    return "\n".join(lines)


def main() -> None:
    """Parse the command line, run every section, print and write what came out."""
    options = parsed_options()
    nsys = options.nsys or find_nsys()
    summary_sizes, diff_sizes = options.kernels or SUMMARY_SIZES, options.kernels or DIFF_SIZES
    compared = min(summary_sizes, key=lambda size: abs(size - COMPARED_SIZE))
    about = {
        "tracekit": __version__,
        "nsys": nsys_version(nsys) if nsys else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "runs": options.runs,
    }
    print(", ".join(f"{what} {value}" for what, value in about.items() if value))
    report: dict[str, Any] = {**about, "sections": []}
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        aside = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        environment = {**os.environ, "TRACEKIT_CACHE": str(aside / "cache")}
        exports = Exports(folder)

        def show(section: Section, runs: int = options.runs) -> None:
            section.run(runs, environment)
            rows = section.rows()
            report["sections"].append({"title": section.title, "rows": rows})
            print(f"\n{section.title}\n{table(rows)}", flush=True)

        show(startup(), STARTUP_RUNS * options.runs)
        report["seconds_a_phase"] = costs = phase_costs(nsys)
        print("\ntracekit.phase, us: " + ", ".join(f"{cost * 1e6:.2f} {where}" for where, cost in costs.items()))
        if nsys:
            # nsys may write beside what it reads.
            for launched in ("graphs", "dynamic"):
                show(beside_nsys(exports, compared, launched, nsys, aside / "for-nsys.sqlite"))
        else:
            print("\nno nsys found: tracekit is not compared with it (--nsys PATH names one)")
        show(cached(exports, compared, aside / "cache"))
        show(summary_growth(exports, summary_sizes))
        show(diff_growth(exports, diff_sizes))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def parsed_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--kernels",
        type=sizes,
        metavar="N,N",
        help="sizes of trace (default: 100000,1000000,5000000, the largest for summary only)",
    )
    parser.add_argument("--folder", type=Path, help="keep the exports here, about 1 GiB (default: nowhere)")
    parser.add_argument("--nsys", type=Path, metavar="PATH", help="the nsys program (default: searched for)")
    parser.add_argument("--runs", type=int, default=3, help="times each command runs (default: 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure here")
    return parser.parse_args()


def sizes(text: str) -> list[int]:
    """Whole numbers with commas between."""
    return [int(size) for size in text.split(",")]


def nsys_version(nsys: Path) -> str:
    """What nsys says it is."""
    said = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[-1]


if __name__ == "__main__":
    main()
