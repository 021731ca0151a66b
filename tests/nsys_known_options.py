"""Options of ``nsys profile`` by version, as the programs' own --help or the user guide of that version lists them.

Left out are options that have nothing to do with launching and recording a CUDA workload.
"""

_ALWAYS = """
--backtrace --capture-range --command-file --cpuctxsw --cuda-flush-interval --cuda-memory-usage --cudabacktrace --delay
--duration --env-var --export --force-overwrite --ftrace --gpuctxsw --help --inherit-environment --kill --mpi-impl
--nvtx-capture --osrt-threshold --output --sample --sampling-period --session-new --show-output --stats --stop-on-exit
--trace --trace-fork-before-exec --wait
"""

_SINCE_2022_4 = """
--capture-range-end --cpu-core-events --cuda-graph-trace --cuda-um-cpu-page-faults --cuda-um-gpu-page-faults
--event-sample --gpu-metrics-frequency --gpu-metrics-set --nic-metrics --resolve-symbols --run-as
--samples-per-backtrace
"""

_SINCE_2023_4 = "--flush-on-cudaprofilerstop --python-backtrace --python-sampling --start-later"

_SINCE_2026_2 = """
--after-collection-start --after-report-ready --cuda-event-trace --cuda-trace-all-apis --cuda-trace-scope
--discard-environment --flush-on --pytorch --syscall
"""


def _names(*parts: str) -> frozenset[str]:
    return frozenset(" ".join(parts).split())


KNOWN = {
    (2020, 4, 3): _names(_ALWAYS, "--stop-on-range-end --verbose --hotkey-control"),
    (2022, 4, 2): _names(_ALWAYS, _SINCE_2022_4, "--gpu-metrics-device"),
    (2023, 4, 4): _names(_ALWAYS, _SINCE_2022_4, _SINCE_2023_4, "--gpu-metrics-device"),
    (2024, 7, 1): _names(_ALWAYS, _SINCE_2022_4, _SINCE_2023_4, "--gpu-metrics-devices"),
    (2026, 2, 0): _names(_ALWAYS, _SINCE_2022_4, _SINCE_2023_4, _SINCE_2026_2, "--gpu-metrics-devices"),
}
