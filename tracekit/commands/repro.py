"""``tracekit repro``."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracekit.commands import options, output
from tracekit.errors import UnusableInput, WrongUsage
from tracekit.report.views.repro import document, verification

if TYPE_CHECKING:
    from tracekit.analysis.results import Warn
    from tracekit.repro.inputs import Inputs
    from tracekit.trace.reader import Trace


def repro(
    trace: Annotated[
        str,
        typer.Argument(
            help="A trace of a run with graphs on, or a run folder; with --verify what ./repro --json wrote.",
            metavar="TRACE|RUN|RESULTS",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(help="An eager run of the same work, to know how long each kernel takes alone.", metavar="TRACE"),
    ] = None,
    dot: options.DotOption = None,
    launch: Annotated[
        int | None, typer.Option(help="The graph launch to reproduce, counted from 1 by time.", min=1)
    ] = None,
    worst: Annotated[bool, typer.Option("--worst", help="The graph launch that lost most: the default.")] = False,
    phase: Annotated[str | None, typer.Option(help="Choose among the launches of this phase.", metavar="NAME")] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder to write, and FOLDER.tar.gz (NAME-repro).", metavar="FOLDER"),
    ] = None,
    with_traces: Annotated[
        bool, typer.Option("--with-traces", help="Put scrubbed copies of the traces into the bundle.")
    ] = False,
    issue: Annotated[
        bool, typer.Option("--issue", help="Print the text of an issue; write the bundle only with -o.")
    ] = False,
    verify: Annotated[
        Path | None,
        typer.Option(help="Compare results of a run with the trace that this bundle is of.", metavar="BUNDLE"),
    ] = None,
    form: options.FormatOption = options.Format.table,
    force: options.ForceOption = False,
    no_cache: options.NoCacheOption = False,
) -> None:
    """Write a CUDA program with the shape of a slow graph, to hand to NVIDIA: no framework, no model, no Python.

    It has every node of one graph launch with its grid, block, cluster, registers and shared memory, and every edge,
    from a DOT dump or else inferred. Its own kernels take the place of the traced ones, fitted on the machine at hand
    to take as long alone. It exits with 10 where the graph is slower than the same nodes one after another.
    """
    if verify is not None:
        _verify(verify, Path(trace), form)
        return
    if launch is not None and (worst or phase is not None):
        raise WrongUsage("--launch names one launch; --worst and --phase choose one: give either")
    from tracekit.repro.inputs import Inputs, inputs_of_run

    given = Inputs(trace, baseline, list(dot or []))
    if (Path(trace) / "run.json").is_file():
        of_run = inputs_of_run(Path(trace))
        given = of_run._replace(baseline=baseline or of_run.baseline, dumps=given.dumps or of_run.dumps)
    _write(given, Path(trace), launch, phase, folder, with_traces, issue, form, force, cached=not no_cache)


def _write(
    given: "Inputs",
    asked: Path,
    launch: int | None,
    phase: str | None,
    folder: Path | None,
    with_traces: bool,
    issue: bool,
    form: options.Format,
    force: bool,
    *,
    cached: bool,
) -> None:
    from tracekit.graph.dumps import dump_files, read_dumps
    from tracekit.repro import readme
    from tracekit.repro.answers import repro_answer
    from tracekit.repro.archive import archive_of, check_place, write_bundle
    from tracekit.repro.bundle import bundle_files
    from tracekit.repro.planning import plan_repro
    from tracekit.repro.recording import recording_of
    from tracekit.trace.source import open_trace

    target = folder or Path(f"{asked.name.removesuffix('.gz').rsplit('.', 1)[0]}-repro")
    if folder or not issue:
        check_place(target, force)
    with ExitStack() as stack, output.progress(f"reading {given.graph}"):
        names = [given.graph, *([given.baseline] if given.baseline else [])]
        traces = [stack.enter_context(open_trace(name, cached=cached)) for name in names]
        dumps = read_dumps(dump_files(given.dumps))
        plan = plan_repro(traces[0], traces[1] if given.baseline else None, dumps, launch, phase)
        recording = recording_of(traces[0], plan.gpu, given.manifest, given.arm)
        if folder or not issue:
            files = bundle_files(plan, recording)
            more, warnings = _more(traces, asked if given.manifest else None, with_traces)
            write_bundle(files | more, target)
            answer = repro_answer(plan, traces, str(target), str(archive_of(target)), [*files, *more], warnings)
    if issue:
        typer.echo(readme.issue(plan, recording), nl=False)
    else:
        output.write_answer(answer, document, form, None)


def _more(traces: "list[Trace]", run: Path | None, with_traces: bool) -> "tuple[dict[str, bytes], list[Warn]]":
    """What a bundle holds on demand or where it exists."""
    import tempfile

    from tracekit.analysis.results import Warn
    from tracekit.capture.scrub import scrub
    from tracekit.repro.inputs import REPORT, public_report

    files, warnings = {}, []
    if run is not None:
        report, why_not = public_report(run, traces[0])
        if report is not None:
            files[REPORT] = report
        if why_not is not None:
            warnings.append(Warn("report_left_out", why_not, 1))
    if with_traces:
        with tempfile.TemporaryDirectory() as name:
            for trace, what in zip(traces, ("graph", "eager"), strict=False):
                scrubbed = Path(name, f"{what}.sqlite")
                scrub(trace, scrubbed)
                files[f"traces/{what}.sqlite"] = scrubbed.read_bytes()
    return files, warnings


def _verify(bundle: Path, results: Path, form: options.Format) -> None:
    import msgspec

    from tracekit.repro.answers import verify_answer
    from tracekit.repro.bundle import PLAN, Expected
    from tracekit.repro.verify import read_results, verify

    try:
        expected = msgspec.json.decode((bundle / PLAN).read_bytes(), type=Expected)
    except OSError as error:
        raise UnusableInput(f"{bundle}: is no bundle of tracekit repro ({PLAN}: {error.strerror})") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{bundle / PLAN}: is damaged ({error}): unpack the bundle again") from error
    try:
        text = results.read_bytes()
    except OSError as error:
        raise UnusableInput(f"{results}: cannot be read ({error.strerror}): check the path") from error
    measured = read_results(text, str(results))
    output.write_answer(verify_answer(expected, measured, verify(expected, measured)), verification, form, None)
