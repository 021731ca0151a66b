"""Names that tell of a person, a machine, a place or a secret, and what stands in their place.

Names of NVTX ranges are free text, so they are judged by the strict rule; kernel names come from code and
are full of signs, so only a path or a recorded user or host name counts against them.
"""

import re
from collections.abc import Mapping
from itertools import count

import polars as pl

from tracekit.analysis.phases.assignment import normalised
from tracekit.frameworks import FRAMEWORK_RANGES, LIBRARY_DOMAINS
from tracekit.trace.tables import Export

_PATH_IN_CODE = re.compile(r"\\|(?<!operator)/[\w.~-]")
_PRIVATE = re.compile(
    r"[/\\=@]"  # paths, URLs, settings, accounts
    r"|[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}"  # digests, serial numbers, UUIDs
    r"|\b[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b"  # MAC and IP addresses
    r"|\b[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b"  # PCI bus ids
    r"|(?=[A-Z0-9+]*[a-z])(?=[a-z0-9+]*[A-Z])(?=[A-Za-z+]*\d)[A-Za-z0-9+]{24,}"  # base64
    r"|\b(?:hf|sk|gh[opsur]|github_pat|glpat|xox[abp])[_-]\w{8,}|\bAKIA\w{12,}|\beyJ\w{8,}"  # access tokens
    r"|(?i:passw|secret|credential|api.?key|bearer )"
)
_BEFORE_NUMBERS = re.compile(r" = (?=(?:\d+|\[[\d,()\[\] -]*\])(?:,|$))")
"""PyTorch writes ``aten::mul, seq = 46174, sizes = [[4, 4]]``; an equals sign there gives nothing away."""

_HOME = re.compile(r"(?:^|[/\\])(?:home|Users)[/\\]([^/\\;\n]+)")
_SAYS_WHO = re.compile(r"(?:^|[;\n])(?:USER|USERNAME|LOGNAME|HOSTNAME)=([^;\n]+)")
_WHO = re.compile(r"(?:^Hostname|_HOST|_USER|DEVICE_DISPLAY_NAME|USER_NAME)$")
_EVERYBODY = {"root", "user", "localhost"}


def private_words(export: Export) -> frozenset[str]:
    """User and host names that an export records, in lower case; those of fewer than three letters mean nothing."""
    words: set[str] = set()
    for table in ("META_DATA_CAPTURE", "META_DATA_EXPORT", "TARGET_INFO_SYSTEM_ENV"):
        facts = export.read(table, {"name": pl.String, "value": pl.String}).drop_nulls()
        for name, value in facts.iter_rows():
            words.update(_HOME.findall(value), _SAYS_WHO.findall(value))
            if _WHO.search(name):
                # A machine is also known by the first part of its full name.
                words.update((value, value.partition(".")[0]))
    return frozenset(word for each in words if len(word := each.strip().lower()) > 2) - _EVERYBODY


def replacements(names: Mapping[str, bool], words: frozenset[str]) -> dict[str, str]:
    """What stands in place of each name that must not be kept: ``(removed a)``, ``(removed b)``, ...

    ``names`` maps a name to whether it is a kernel's. Names that differ stay different, and names that differ
    in their numbers only do so afterwards (``(removed a 1)``), so that the same phases are found. What marks
    a framework's range (``aten::``) is kept. Letters depend on which names a file holds: they tell names
    apart within one file.
    """
    spoken = [re.escape(word) for word in sorted(words)]
    someone = re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(spoken)})(?![a-z])") if spoken else None
    removed = [
        name
        for name, of_kernel in names.items()
        if (someone and someone.search(name))
        or (_PATH_IN_CODE.search(name) if of_kernel else _PRIVATE.search(_BEFORE_NUMBERS.sub(" ", name)))
    ]
    forms = pl.DataFrame({"name": removed}, schema={"name": pl.String}).with_columns(form=normalised(pl.col("name")))
    stands: dict[str, str] = {}
    labels: dict[str, tuple[str, count[int]]] = {}
    for name, form in forms.sort("form", "name").iter_rows():
        label, numbers = labels.setdefault(form, (_letters(len(labels)), count(1)))
        number = f" {next(numbers)}" if "#" in form else ""
        stands[name] = _marked(name, f"(removed {label}{number})")
    return stands


def _marked(name: str, stand_in: str) -> str:
    mark = FRAMEWORK_RANGES.search(name) or LIBRARY_DOMAINS.search(name)
    if mark is None:
        return stand_in
    return f"{stand_in}{mark[0]}" if mark.start() else f"{mark[0]}{stand_in}"


def _letters(number: int) -> str:
    """0 is a, 25 is z, 26 is aa."""
    text = ""
    while number >= 0:
        number, letter = divmod(number, 26)
        text = chr(ord("a") + letter) + text
        number -= 1
    return text
