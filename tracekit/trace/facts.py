"""What an export says of itself: versions, GPUs, recording options, row counts."""

import msgspec
import polars as pl

from tracekit.trace import schema
from tracekit.trace.tables import Export


class Gpu(msgspec.Struct, frozen=True):
    """One NVIDIA GPU of the recording machine."""

    device: int
    name: str
    compute_capability: str | None
    sm_count: int | None


class Facts(msgspec.Struct, frozen=True):
    """Recorded facts; null where the export does not hold them. Environment, host and user are never read."""

    nsys_version: str | None
    schema_version: str | None
    platform: str | None
    driver_version: str | None
    cuda_version: str | None
    graph_trace_mode: str | None
    gpus: tuple[Gpu, ...]
    recorded: tuple[str, ...]
    renamed: dict[str, str]


def read_facts(export: Export) -> Facts:
    """Collect the facts by name, from the few tables that hold them."""
    about = _values(export, "META_DATA_EXPORT", ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", "EXPORT_PLATFORM"))
    capture = _values(export, "META_DATA_CAPTURE", ("CUDA_GRAPH_TRACE_OPTIONS:MODE",))
    system = _values(export, "TARGET_INFO_SYSTEM_ENV", ("NvDriverVersion", "CudaDriverVersion"))
    tables = {
        "kernels": schema.KERNEL_TABLE,
        "copies": schema.COPY_TABLES["copy"],
        "sets": schema.COPY_TABLES["set"],
        "calls": schema.CALL_TABLE,
        "graph executions": schema.GRAPH_EXECUTION_TABLE,
        "ranges": schema.RANGE_TABLE,
    }
    recorded = tuple(name for name, table in tables.items() if export.find(table))
    return Facts(
        nsys_version=about.get("EXPORT_PRODUCT_VERSION"),
        schema_version=about.get("EXPORT_SCHEMA_VERSION"),
        platform=about.get("EXPORT_PLATFORM"),
        driver_version=_version(system.get("NvDriverVersion")),
        cuda_version=_cuda_version(system.get("CudaDriverVersion")),
        graph_trace_mode=capture.get("CUDA_GRAPH_TRACE_OPTIONS:MODE"),
        gpus=_gpus(export),
        recorded=recorded,
        renamed=dict(sorted(export.renamed.items())),
    )


def _values(export: Export, table: str, names: tuple[str, ...]) -> dict[str, str]:
    frame = export.read(table, {"name": pl.String, "value": pl.String})
    frame = frame.filter(pl.col("name").is_in(names)).drop_nulls().sort("name", "value")
    return dict(zip(frame["name"], frame["value"], strict=True))


def _version(text: str | None) -> str | None:
    return text if text and text != "0" else None


def _cuda_version(text: str | None) -> str | None:
    """13000 is 13.0, by the rule of cuDriverGetVersion: 1000 x major + 10 x minor."""
    if not text or not text.isdecimal() or not int(text):
        return None
    return f"{int(text) // 1000}.{int(text) % 1000 // 10}"


def _gpus(export: Export) -> tuple[Gpu, ...]:
    """NVIDIA GPUs by device; other display adapters have no compute capability."""
    current = export.read(
        "TARGET_INFO_GPU",
        {
            "id": pl.Int64,
            "name": pl.String,
            "computeMajor": pl.Int64,
            "computeMinor": pl.Int64,
            "smCount": pl.Int64,
        },
    ).rename({"id": "device", "computeMajor": "major", "computeMinor": "minor", "smCount": "sms"})
    older = export.read(
        "TARGET_INFO_CUDA_GPU",
        {
            "deviceId": pl.Int64, "name": pl.String, "computeCapabilityMajor": pl.Int64,
            "computeCapabilityMinor": pl.Int64, "numMultiprocessors": pl.Int64,
        },
    ).rename(
        {
            "deviceId": "device", "computeCapabilityMajor": "major",
            "computeCapabilityMinor": "minor", "numMultiprocessors": "sms",
        }
    )  # fmt: skip
    rows = pl.concat([current, older]).drop_nulls(["device", "name"])
    rows = rows.filter(pl.col("major").is_null() | (pl.col("major") > 0))
    rows = rows.sort(pl.all(), nulls_last=True).unique("device", keep="first", maintain_order=True)
    return tuple(
        Gpu(
            device=row["device"],
            name=row["name"],
            compute_capability=None if row["major"] is None else f"{row['major']}.{row['minor'] or 0}",
            sm_count=row["sms"] or None,
        )
        for row in rows.iter_rows(named=True)
    )
