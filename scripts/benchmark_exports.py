"""Write an export of any size for benchmarks: one workload, launched eagerly or half of it as CUDA graphs.

Usage: python scripts/benchmark_exports.py PATH KERNELS SEED {graphs,eager,dynamic}

``dynamic`` is the eager one with a grid of its own for nearly every launch, as where shapes follow the data.
Every export has the same requests, each a prefill and its decode steps; a seed varies durations and the
order of rows. Nothing here was recorded on a GPU.
"""

import sys
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from nsys_export import Export, base_name, global_id

NAMES, LAUNCH_KEYS = 300, 1500
STEP = 400
"""Kernels of a prefill or of a decode step: one NVTX range."""
REQUEST = 50 * STEP
GRAPH_NODES = 200
"""Nodes of a graph launch: the second half of each step, where graphs are used."""

_WORKLOAD_SEED = 20
_PID = 4242
_FIRST_STREAM, _COPY_STREAM = 7, 30
_KERNELS_PER_COPY = 50
_LAUNCH_LATENCY, _CALL_TIME, _LANE_DELAY = 6000, 900, 2500
_STEP_PAUSE, _EAGER_PAUSE, _NODE_PAUSE = 30_000, 4000, 1200

Times = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Spelling(NamedTuple):
    """A C++ name as nsys shows it, and as the compiler stores it."""

    demangled: str
    mangled: str


_VALUES = (
    *(Spelling(f"(int){n}", f"Li{n}E") for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    *(Spelling(f"(bool){n}", f"Lb{n}E") for n in (0, 1)),
    Spelling("float", "f"),
    Spelling("unsigned int", "j"),
    Spelling("__half", "6__half"),
    Spelling("__nv_bfloat16", "13__nv_bfloat16"),
)
_SPACES = ("engine", "engine::detail", "tensor::native", "tile", "tile::gemm::collective", "attention", "moe")
_WORDS = ["async", "bias", "copy", "decode", "fused", "gather", "masked", "quantized", "softmax", "transform"]


def _template(draw: Random, arguments: list[Spelling]) -> Spelling:
    """A class or function template; what the mangled name says twice is a back reference, as in C++ ABIs."""
    path = [*draw.choice(_SPACES).split("::"), "_".join(draw.sample(_WORDS, draw.randint(2, 3)))]
    spelt = [
        f"S{arguments.index(argument)}_"
        if argument in arguments[:place] and len(argument.mangled) > 4
        else argument.mangled
        for place, argument in enumerate(arguments)
    ]
    return Spelling(
        f"{'::'.join(path)}<{', '.join(argument.demangled for argument in arguments)}>",
        f"N{''.join(f'{len(part)}{part}' for part in path)}I{''.join(spelt)}EE",
    )


def _kernel_name(draw: Random) -> Spelling:
    """A library's plain name, or templates nested up to five deep: ten to some thousand characters."""
    depth = draw.choices(range(6), (15, 20, 25, 22, 14, 4))[0]
    if depth == 0:
        tile = "x".join(str(draw.choice((16, 32, 64, 128, 256))) for _ in range(3))
        plain = f"{draw.choice(_WORDS)}_{draw.choice(('bf16', 'f16', 'f32', 'e4m3'))}_{tile}"
        return Spelling(plain, plain)
    known = draw.sample(_VALUES, 6)
    for _ in range(depth):
        inner = [*draw.choices(known, k=draw.randint(1, 4)), known[-1]]
        known.append(_template(draw, inner))
    kernel = known[-1]
    return Spelling(f"void {kernel.demangled}(T1, T2 *, const T2 *, int)", f"_Z{kernel.mangled}vT_PT0_PKS1_i")


def kernel_names() -> list[Spelling]:
    """``NAMES`` kernels of no real library, the same at every call, in lengths that real libraries have."""
    draw = Random(_WORKLOAD_SEED)
    names: dict[str, Spelling] = {}
    while len(names) < NAMES:
        name = _kernel_name(draw)
        names[name.demangled] = name
    return list(names.values())


def _launch_keys(export: Export, draw: np.random.Generator) -> pl.DataFrame:
    """The workload's launch configurations, in columns of the kernel table, and the ``usual`` ns of each."""
    names = pl.DataFrame(
        [
            (export.string(demangled), export.string(base_name(demangled)), export.string(mangled))
            for demangled, mangled in kernel_names()
        ],
        schema=["demangledName", "shortName", "mangledName"],
        orient="row",
    )
    return names[np.arange(LAUNCH_KEYS) % NAMES].with_columns(
        gridX=draw.integers(1, 20_000, LAUNCH_KEYS),
        gridY=draw.choice([1, 1, 1, 2, 32], LAUNCH_KEYS),
        blockX=draw.choice([64, 128, 256, 384, 1024], LAUNCH_KEYS),
        dynamicSharedMemory=draw.choice([0, 0, 0, 8192, 65_536], LAUNCH_KEYS),
        registersPerThread=draw.integers(16, 256, LAUNCH_KEYS),
        usual=draw.lognormal(np.log(8000), 1.2, LAUNCH_KEYS),
    )


def _request(draw: np.random.Generator) -> tuple[Times, Times]:
    """Launch key and lane of each kernel of a request; few keys make most launches.

    Kernels in lanes 1 to 3 run beside the one in lane 0 before them.
    """
    share = np.arange(1, LAUNCH_KEYS + 1) ** -0.7
    keys = draw.choice(draw.permutation(LAUNCH_KEYS), REQUEST, p=share / share.sum())
    at_once = draw.choice([1, 2, 3, 4], REQUEST, p=[0.8, 0.14, 0.03, 0.03])
    lanes = np.concatenate([np.arange(size) for size in at_once])[:REQUEST]
    lanes[::GRAPH_NODES] = 0
    return keys, lanes


def _starts(durations: Times, lanes: Times, in_graph: Flags) -> Times:
    """Start of each kernel: lane 0 waits for all before it, the others follow it shortly."""
    delays = lanes * _LANE_DELAY
    first = np.flatnonzero(lanes == 0)
    walls = np.maximum.reduceat(delays + durations, first)
    pauses = np.where(in_graph[first], _NODE_PAUSE, _EAGER_PAUSE)
    pauses[first % STEP == 0] = _STEP_PAUSE
    begins = 1_000_000_000 + np.cumsum(pauses + walls) - walls
    return np.asarray(begins[np.cumsum(lanes == 0) - 1] + delays)


def write_export(path: Path, kernels: int, seed: int, launched: str) -> Path:
    """Write an export of ``kernels`` kernel rows, in no order as nsys does since 2025.6, and return ``path``.

    The same arguments give the same rows. What was at ``path`` is replaced once the new file is whole.
    """
    export = Export()
    export.gpu(0, "Synthetic GPU (generated, not recorded)", pid=_PID)
    workload, noise = np.random.default_rng(_WORKLOAD_SEED), np.random.default_rng(seed)
    keys = _launch_keys(export, workload)
    request_keys, request_lanes = _request(workload)
    index = np.arange(kernels)
    used, lanes = request_keys[index % REQUEST], request_lanes[index % REQUEST]
    in_graph = (launched == "graphs") & (index % STEP >= STEP - GRAPH_NODES)
    usual = keys["usual"].to_numpy()[used]
    durations = np.maximum(1000, usual * noise.lognormal(0, 0.12, kernels)).astype(np.int64)
    starts = _starts(durations, lanes, in_graph)
    launches = ~in_graph | (index % GRAPH_NODES == 0)

    grids = {"gridX": noise.integers(1, 65_536, kernels), "gridY": noise.integers(1, 65, kernels)}

    rows = {
        "CUPTI_ACTIVITY_KIND_KERNEL": keys.drop("usual")[used].with_columns(
            start=starts,
            end=starts + durations,
            streamId=_FIRST_STREAM + lanes,
            correlationId=np.cumsum(launches),
            gridId=index + 1,
            **_graph_columns(index, in_graph),
            **(grids if launched == "dynamic" else {}),
        ),
        "CUPTI_ACTIVITY_KIND_MEMCPY": _copies(starts[::_KERNELS_PER_COPY], kernels, noise),
        "NVTX_EVENTS": _ranges(export, starts, starts + durations),
    }
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"] = pl.concat(
        [
            _calls(export, "cudaLaunchKernel_v7000", rows["CUPTI_ACTIVITY_KIND_KERNEL"].filter(~in_graph)),
            _calls(
                export,
                "cudaGraphLaunch_v10000",
                rows["CUPTI_ACTIVITY_KIND_KERNEL"].filter(launches & in_graph),
            ),
            _calls(export, "cudaMemcpyAsync_v3020", rows["CUPTI_ACTIVITY_KIND_MEMCPY"]),
        ]
    )
    for table, frame in rows.items():
        shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
        export.bulk(table, shuffled.columns, shuffled.iter_rows())
    unfinished = path.with_suffix(".part")
    export.write(unfinished)
    return unfinished.replace(path)


def _graph_columns(index: Times, in_graph: Flags) -> dict[str, pl.Series]:
    """Graph and node of each kernel: each step of a request has a graph, launched again by every request."""
    graph = index % REQUEST // STEP + 1
    node = graph << 32 | index % GRAPH_NODES
    frame = pl.DataFrame({"graphId": graph, "graphNodeId": node, "in_graph": in_graph})
    return frame.select(pl.when("in_graph").then(pl.col("graphId", "graphNodeId"))).to_dict()


def _copies(starts: Times, kernels: int, noise: np.random.Generator) -> pl.DataFrame:
    """Copies on a stream of their own, each beginning just after one of ``starts``."""
    sizes = noise.lognormal(np.log(200_000), 1.0, starts.size).astype(np.int64)
    begins = starts + _CALL_TIME
    return pl.DataFrame(
        {
            "start": begins,
            "end": begins + 1000 + sizes // 100,
            "bytes": sizes,
            "streamId": np.full(starts.size, _COPY_STREAM),
            "correlationId": kernels + np.arange(1, starts.size + 1),
        }
    )


def _calls(export: Export, name: str, launched: pl.DataFrame) -> pl.DataFrame:
    """The calls that launched each of these pieces of GPU work."""
    begin = pl.col("start") - _LAUNCH_LATENCY
    thread, called = pl.lit(global_id(_PID, _PID)), pl.lit(export.string(name))
    return launched.select(
        start=begin, end=begin + _CALL_TIME, correlationId="correlationId", globalTid=thread, nameId=called
    )


def _ranges(export: Export, starts: Times, ends: Times) -> pl.DataFrame:
    """The range of each step, from before its first launch until its kernels are complete."""
    first = np.arange(0, starts.size, STEP)
    domain = export.domain(0, "tracekit", pid=_PID)
    prefill, decode = export.string("prefill"), export.string("decode")
    return pl.DataFrame(
        {
            "start": starts[first] - _LAUNCH_LATENCY - 1000,
            "end": np.maximum.reduceat(ends, first) + 5000,
            "textId": np.where(first % REQUEST == 0, prefill, decode),
        }
    ).with_columns(domainId=pl.lit(domain), globalTid=pl.lit(global_id(_PID, _PID)))


if __name__ == "__main__":
    _path, _kernels, _seed, _launched = sys.argv[1:]
    write_export(Path(_path), int(_kernels), int(_seed), _launched)
