"""Turn the shared selecting options into a Selection."""

import re

from tracekit.analysis.results.what_if import CRITICAL_PATH, NO_OVERLAP_OF, SERIAL
from tracekit.analysis.wanted import Selection
from tracekit.commands.options import By
from tracekit.errors import WrongUsage
from tracekit.units import parse_time


def selection(
    by: By,
    top: int | None,
    sort: str,
    kernel: str | None,
    phase: str | None,
    device: int | None,
    stream: int | None,
    begin: str | None,
    finish: str | None,
) -> Selection:
    """Check and convert; raises WrongUsage with what to write instead."""
    window = (_time(begin, "--from"), _time(finish, "--to"))
    if window[0] is not None and window[1] is not None and window[0] >= window[1]:
        raise WrongUsage(f"--from {begin} is not before --to {finish}: nothing can lie between")
    return Selection(
        kernel=checked_pattern(kernel, "--kernel"),
        phase=phase,
        device=device,
        stream=stream,
        begin=window[0],
        finish=window[1],
        by=by.value,
        sort=sort,
        top=top,
    )


def checked_pattern(pattern: str | None, option: str) -> str | None:
    """A regular expression that both Python and polars understand."""
    if pattern is None:
        return None
    import polars as pl

    try:
        re.compile(pattern)
        pl.Series([""]).str.contains(pattern)
    except (re.error, pl.exceptions.ComputeError) as error:
        reason = str(error).splitlines()[0]
        raise WrongUsage(f"{option} {pattern!r} is not a regular expression ({reason})") from error
    return pattern


def checked_question(text: str) -> str:
    """What ``--what-if`` asks; raises WrongUsage with what can be asked."""
    kind, _, pattern = text.strip().partition(" ")
    if kind in (SERIAL, CRITICAL_PATH) and not pattern:
        return kind
    if kind == NO_OVERLAP_OF and pattern.strip():
        return f"{kind} {checked_pattern(pattern.strip(), f'--what-if {kind}')}"
    raise WrongUsage(f"--what-if {text!r}: ask '{SERIAL}', '{CRITICAL_PATH}' or '{NO_OVERLAP_OF} PATTERN'")


def _time(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise WrongUsage(f"{option}: {error}") from error
