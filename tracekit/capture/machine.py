"""The machine a run was recorded on: its GPUs and their state, versions, and the variables that matter."""

import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import metadata
from xml.etree import ElementTree

import msgspec

import tracekit
from tracekit.capture.outside import ask

SECONDS = 20.0
"""How long nvidia-smi may take to answer."""

PACKAGES = (
    "mlx", "mlx-lm", "mlx-cuda-12", "mlx-cuda-13", "torch", "vllm", "sglang", "tensorrt-llm", "jax",
    "llama-cpp-python", "exllamav2", "mistralrs", "nvtx",
)  # fmt: skip

_KEPT = re.compile(
    r"(?:MLX|CUDA|GGML|LLAMA|OLLAMA|XLA|JAX|VLLM|SGLANG|SGL|TRTLLM|TLLM|EXLLAMA|MISTRALRS|NCCL|CUDNN|CUBLAS|TORCH|"
    r"PYTORCH|TRITON)_\w+|NVIDIA_(?:VISIBLE_DEVICES|TF32_OVERRIDE)|OMP_NUM_THREADS"
)
_NEVER = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH|HOST|URL|USER")

_SECRET = r"(?:api[-_]?key|(?:^|[-_])token|secret|passw(?:or)?d)"
NOT_KEPT = "(not kept)"


class Gpu(msgspec.Struct, frozen=True):
    """One GPU; null where nvidia-smi does not say."""

    name: str
    compute_capability: str | None = None


class GpuState(msgspec.Struct, frozen=True):
    """What one GPU was doing at a moment; clocks in MHz, power in W, temperature in degrees Celsius."""

    sm_clock: float | None
    sm_clock_max: float | None
    memory_clock: float | None
    power: float | None
    power_limit: float | None
    temperature: float | None
    throttle_reasons: list[str]


class Machine(msgspec.Struct):
    """Driver, highest CUDA version it supports, and the GPUs in nvidia-smi's order; empty where there is none.

    ``before`` and ``after`` are their states at the beginning and at the end of a run.
    """

    driver: str | None = None
    cuda: str | None = None
    gpus: list[Gpu] = []
    before: list[GpuState] = []
    after: list[GpuState] = []


def examine() -> Machine:
    """The machine as it is now."""
    log = _log()
    if log is None:
        return Machine()
    capabilities = ask(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], SECONDS)
    names = [_text(gpu, "product_name") or "unknown" for gpu in log.iter("gpu")]
    found = re.findall(r"^\d+\.\d+$", capabilities.out, re.MULTILINE)
    known: Sequence[str | None] = found if len(found) == len(names) else [None] * len(names)
    return Machine(
        driver=_text(log, "driver_version"),
        cuda=_text(log, "cuda_version"),
        gpus=[Gpu(name, capability) for name, capability in zip(names, known, strict=True)],
        before=[_state(gpu) for gpu in log.iter("gpu")],
    )


def gpu_states() -> list[GpuState]:
    """The state of each GPU now."""
    log = _log()
    return [] if log is None else [_state(gpu) for gpu in log.iter("gpu")]


def _log() -> ElementTree.Element | None:
    """nvidia-smi's whole answer: asked for single values, it refuses all where it does not know one."""
    if shutil.which("nvidia-smi") is None:
        return None
    reply = ask(["nvidia-smi", "-q", "-x"], SECONDS)
    try:
        return ElementTree.fromstring(reply.out)
    except ElementTree.ParseError:
        return None


def _state(gpu: ElementTree.Element) -> GpuState:
    # Names of these parts differ from driver to driver.
    reasons = (part for part in gpu.iter() if re.match(r"clocks_(?:throttle|event)_reason", part.tag))
    return GpuState(
        sm_clock=_number(gpu, "clocks/sm_clock"),
        sm_clock_max=_number(gpu, "max_clocks/sm_clock"),
        memory_clock=_number(gpu, "clocks/mem_clock"),
        power=_number(
            gpu, "gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"
        ),
        power_limit=_number(
            gpu, "gpu_power_readings/current_power_limit", "gpu_power_readings/power_limit",
            "power_readings/enforced_power_limit", "power_readings/power_limit",
        ),
        temperature=_number(gpu, "temperature/gpu_temp"),
        throttle_reasons=[
            re.sub(r"^clocks_(?:throttle|event)_reason_", "", part.tag)
            for part in reasons
            if (part.text or "").strip() == "Active"
        ],
    )  # fmt: skip


def _text(element: ElementTree.Element, path: str) -> str | None:
    found = (element.findtext(path) or "").strip()
    return None if found in ("", "N/A", "[N/A]") else found


def _number(element: ElementTree.Element, *paths: str) -> float | None:
    """The first of these that has a value."""
    for path in paths:
        if found := re.match(r"\d+(?:\.\d+)?", _text(element, path) or ""):
            return float(found[0])
    return None


def versions(*, of_packages: bool) -> dict[str, str]:
    """tracekit's version and, where the workload sees the same packages, theirs."""
    known = {"tracekit": tracekit.__version__}
    for package in PACKAGES if of_packages else ():
        try:
            known[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return known


def kept_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of frameworks and of CUDA, by name and sorted; none that may hold a secret or a place."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if _KEPT.fullmatch(name) and not _NEVER.search(name.upper())
    }


def without_secret_values(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Variables that were asked for by name, the values of secret ones left out."""
    return {name: NOT_KEPT if value and _NEVER.search(name.upper()) else value for name, value in environment.items()}


def without_secrets(command: Sequence[str]) -> list[str]:
    """A command line whose ``--api-key VALUE``, ``--token=VALUE`` and the like have lost their values."""
    kept = []
    follows = False
    for word in command:
        shown = NOT_KEPT if follows else re.sub(rf"(?i)({_SECRET}=).*", rf"\1{NOT_KEPT}", word, flags=re.DOTALL)
        kept.append(shown)
        follows = word.startswith("-") and re.search(rf"(?i){_SECRET}$", word) is not None
    return kept
