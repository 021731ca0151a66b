"""Small exports that each show one way a recording can mislead, with what is planted in them."""

from collections.abc import Callable
from typing import Any

from nsys_export import Export
from sample_plan import Noise

Oddity = tuple[Export, dict[str, Any]]

_MS = 1_000_000
_QMM = "void mlx::core::cu::qmm_sm80<__nv_bfloat16, 128, 128, 64, 4, true>(mlx::core::cu::qmm_sm80_params)"
_COPY = "void mlx::core::cu::copy_gg_nd<__nv_bfloat16, __nv_bfloat16, int, 3, 4>(mlx::core::cu::copy_params)"
_DEQUANT = "void mlx::core::cu::dequant<__nv_bfloat16, 64, 4>(mlx::core::cu::dequant_params)"


def _gpus(export: Export, *processes: int) -> None:
    for device, pid in enumerate(processes):
        export.gpu(device, "Synthetic GPU (generated, not recorded)", pid=pid)


def granularity_graph() -> Oddity:
    """Graphs recorded as a whole: ten kernels of 1 us seen, fifty graph launches of 20 us opaque."""
    export = Export(graph_mode="Graph")
    _gpus(export, 1)
    now = _MS
    for _ in range(10):
        correlation = export.launch(now, now + 3000)
        export.kernel(now + 5000, now + 6000, name=_DEQUANT, correlation=correlation)
        now += 20_000
    export.graph_event(now, 1)
    export.graph_event(now + 1000, 1, executable=2)
    for _ in range(50):
        correlation = export.launch(now, now + 5000, "cudaGraphLaunch_v10000")
        export.graph_trace(now + 8000, now + 28_000, correlation)
        now += 40_000
    export.range(0, now, "prefill", domain="tracekit")
    return export, {
        "graph_mode": "Graph",
        "kernel_rows": 10,
        "graph_launches": 50,
        "opaque_ns": 50 * 20_000,
        "opaque_share": round(1_000_000 / 1_010_000, 6),
    }


def lost_records() -> Oddity:
    """Ten launches of one executable graph of twelve nodes, of which one has its kernels."""
    export = Export()
    _gpus(export, 1)
    for node in range(12):
        export.graph_node(1000 + node * 1000, 1 << 32 | node)
    export.graph_event(20_000, 1, executable=2)
    for node in range(12):
        export.graph_node(21_000 + node * 1000, 2 << 32 | node)
        export.graph_node(21_500 + node * 1000, 2 << 32 | node, 1 << 32 | node)
    now = _MS
    for launch in range(10):
        correlation = export.launch(now, now + 5000, "cudaGraphLaunch_v10000")
        for node in range(12 if launch == 0 else 0):
            start = now + 10_000 + node * 60_000
            export.kernel(
                start,
                start + 50_000,
                name=_QMM,
                grid=(4352, 1, 1),
                correlation=correlation,
                node=2 << 32 | node,
                graph=2,
            )
        now += _MS
    return export, {
        "graph_mode": "Node",
        "kernel_rows": 12,
        "graph_launches": 10,
        "graph_launches_without_kernels": 9,
        "kernels_expected": 120,
        "coverage": 0.1,
        "median_ns": 50_000,
    }


def two_processes() -> Oddity:
    """Processes 11 and 12 on a GPU each, with the same correlation ids; process 13 has no kernels."""
    export = Export()
    _gpus(export, 11, 12)
    for index in range(40):
        now = _MS + index * 100_000
        for device, (pid, duration) in enumerate(((11, 60_000), (12, 80_000))):
            export.api(now, now + 4000, "cudaLaunchKernel_v7000", 500 + index, pid=pid)
            export.kernel(now + 6000, now + 6000 + duration, 7, _QMM, pid=pid, device=device, correlation=500 + index)
    for index in range(100):
        now = _MS + index * 10_000
        export.api(now, now + 4000, "cudaLaunchKernel_v7000", 500 + index, pid=13)
    return export, {
        "graph_mode": "Node",
        "kernel_rows": 80,
        "launches_by_process": {"11": 40, "12": 40, "13": 100},
        "kernels_by_process": {"11": 40, "12": 40, "13": 0},
        "busy_ns_by_device": {"0": 40 * 60_000, "1": 40 * 80_000},
        "overlapped_ns_by_device": {"0": 0, "1": 0},
    }


def same_stream() -> Oddity:
    """Programmatic dependent launch: in twenty pairs on one stream the second starts inside the first."""
    export = Export()
    _gpus(export, 1)
    for index in range(20):
        now = _MS + index * 200_000
        for name, start, end in ((_QMM, 5000, 105_000), (_COPY, 95_000, 125_000)):
            correlation = export.launch(now, now + 2000, "cudaLaunchKernelExC_v11060")
            export.kernel(now + start, now + end, name=name, correlation=correlation)
            now += 2500
    return export, {
        "graph_mode": "Node",
        "kernel_rows": 40,
        "kernels_started_inside_predecessor": 20,
        "same_stream_overlap_ns": 20 * 7500,
        "stream_overlap_ns": 0,
        "busy_ns": 20 * 122_500,
        "summed_ns": 20 * 130_000,
    }


def mixed_shapes() -> Oddity:
    """One kernel key whose instances take 2 ms or 6 ms, by a shape the key does not hold; no overlap."""
    export = Export()
    _gpus(export, 1)
    noise = Noise("mixed-shapes")
    now = _MS
    for index in range(60):
        correlation = export.launch(now, now + 3000)
        end = now + 5000 + noise((2 if index % 2 else 6) * _MS)
        export.kernel(now + 5000, end, name=_QMM, grid=(4352, 1, 1), correlation=correlation)
        now = end + 10_000
    return export, {
        "graph_mode": "Node",
        "kernel_rows": 60,
        "mixture_ns": [2 * _MS, 6 * _MS],
        "overlapped_ns": 0,
    }


def bad_times() -> Oddity:
    """Thirty sound kernels of 10 us among rows that cannot be: by reason below."""
    export = Export()
    _gpus(export, 1)
    for index in range(30):
        now = _MS + index * 20_000
        correlation = export.launch(now, now + 3000)
        export.kernel(now + 5000, now + 15_000, name=_QMM, correlation=correlation)
    impossible = {
        "zero_start": ((0, 0), (0, 50_000)),
        "negative": ((2_000_100, 2_000_090), (2_010_000, 2_000_000), (2_020_001, 2_020_000)),
        "zero_length": ((2_100_000, 2_100_000),) * 4,
    }
    for times in impossible.values():
        for start, end in times:
            export.kernel(start, end, name=_QMM, correlation=export.launch(1_900_000, 1_903_000))
    export.kernel(2_200_000, 2_210_000, name=_QMM, correlation=export.launch(2_300_000, 2_303_000))
    return export, {
        "graph_mode": "Node",
        "kernel_rows": 40,
        "sound_rows": 30,
        "rows_by_reason": {"before_launch": 1} | {reason: len(times) for reason, times in impossible.items()},
    }


ODDITIES: dict[str, Callable[[], Oddity]] = {
    "granularity-graph": granularity_graph,
    "lost-records": lost_records,
    "two-processes": two_processes,
    "same-stream": same_stream,
    "mixed-shapes": mixed_shapes,
    "bad-times": bad_times,
}
