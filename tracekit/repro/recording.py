"""How the trace was recorded, as far as it may be published: versions and switches, from allow-lists."""

import re

import msgspec

from tracekit.capture.machine import PACKAGES, kept_environment
from tracekit.capture.nsys_options import OPTIONS
from tracekit.capture.private_names import replacements
from tracekit.capture.run_folder import Manifest
from tracekit.repro.model import Gpu
from tracekit.trace.reader import Trace

OWN_OPTIONS = {"--output", "--export", "--session-new", "--show-output"}
"""Options of nsys that only say where things go."""

GENERIC = "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --sample=none --cpuctxsw=none"
"""How to record where the trace is not of a run that tracekit recorded."""

_PLAIN = re.compile(r"[\w.,@-]*")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_PACKAGE_VERSION = re.compile(r"\d[\w.+!-]*")


class Recording(msgspec.Struct, frozen=True):
    """What a stranger may know of the recording; null where it is not known. ``command`` has WORKLOAD in place of
    what was run."""

    gpu: str
    compute_capability: str | None
    sms: int | None
    driver: str | None
    cuda: str | None
    nsys: str | None
    schema: str | None
    framework: str | None
    packages: dict[str, str]
    environment: dict[str, str]
    command: str


def recording_of(trace: Trace, gpu: Gpu, manifest: Manifest | None, arm: str | None) -> Recording:
    """Facts of a trace and, where it is of a run, of the run's manifest, with the switches of this arm."""
    facts = trace.facts
    machine = manifest.machine if manifest else None
    environment = dict(manifest.environment) if manifest else {}
    for each in manifest.arms if manifest else []:
        if each.name == arm:
            environment |= {name: value for name, value in each.environment.items() if value is not None}
    return Recording(
        gpu=gpu.name,
        compute_capability=gpu.compute_capability,
        sms=gpu.sms,
        driver=_version(facts.driver_version) or _version(machine.driver if machine else None),
        cuda=_version(facts.cuda_version) or _version(machine.cuda if machine else None),
        nsys=_version(facts.nsys_version),
        schema=_version(facts.schema_version),
        framework=manifest.framework if manifest else None,
        packages=_packages(manifest.packages) if manifest else {},
        environment=_public(kept_environment(environment)),
        command=_command(manifest.nsys.arguments) if manifest else f"{GENERIC} WORKLOAD",
    )


def _version(text: str | None) -> str | None:
    return text if text and _VERSION.fullmatch(text) else None


def _packages(packages: dict[str, str]) -> dict[str, str]:
    known = (*PACKAGES, "tracekit")
    return {
        name: version for name, version in packages.items() if name in known and _PACKAGE_VERSION.fullmatch(version)
    }


def _public(environment: dict[str, str]) -> dict[str, str]:
    """Variables whose values are plain words or numbers: others may hold a place or a name."""
    private = replacements(dict.fromkeys(environment.values(), False), frozenset())
    return {name: value for name, value in environment.items() if value not in private and _PLAIN.fullmatch(value)}


def _command(arguments: list[str]) -> str:
    """The nsys command line; options that tracekit does not know are left out, values that may tell something too."""
    words = ["nsys", "profile"]
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in OPTIONS and name not in OWN_OPTIONS:
            words.append(f"{name}{equals}{value if _PLAIN.fullmatch(value) else '...'}")
    return " ".join([*words, "WORKLOAD"])
