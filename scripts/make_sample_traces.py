"""Generate the synthetic sample traces and ``truth.json``, the answers planted in them.

Usage: python scripts/make_sample_traces.py [OUTDIR]

Nothing here was recorded. The figures are shaped on public ones for one GPU, phases at a tenth of their
length, so the traces exercise an analysis and are no evidence about any real GPU.
"""

import json
import sys
from pathlib import Path
from typing import Any

from nsys_export import Export
from sample_models import MODELS, PUBLISHED_MS, THREE_AT_ONCE
from sample_oddities import ODDITIES
from sample_recording import ARMS, Recording

_STEPS = 24
_PREFILLS_BEFORE_DECODE = (5, 1)

ABOUT = {
    "scope": "Synthetic traces: generated, not recorded. All times in ns on a trace's own clock.",
    "exactness": "Times, counts and sums of durations are exact. solo_ns, planted_ns and stretch are the "
    "plan before noise of 0.6 % a kernel (5 % for copies in a train), so medians come within 1 % (5 %). "
    "episodes.wall_ns and count are exact; solo_ns and gain_ns take planned solo durations, so an analysis "
    "that measures them in the eager arm agrees on both within 1 % of solo_ns.",
    "busy_ns, summed_ns, overlapped_ns, depth_ns": "Kernels only, of the one device; depth_ns by depth.",
    "episodes": "count, wall W, solo work S in them and gain S - W, from the plan of each group.",
    "sets": "The same by planned set: kernels that run at once, by short name and grid.",
    "calls": "CUDA API calls by name; launches made while a stream is captured own no kernel.",
    "planted_gap_ns": "Mean gap before a kernel that waits for the one before: eager, or inside a graph.",
    "phases": "Work belongs to the range of its launch. instances: the range, the last GPU completion of "
    "the work it launched, and time_ns: range start to that completion (prefill), or the completion before "
    "to this one (decode; null for the first step of a sequence). The first warm_up instances and those "
    "without a time are left out of counted and median_ns.",
    "tenth_of_published_ms": "What median_ns was shaped to meet, within 0.5 %; null: nothing published.",
    "kernels": "By short name and grid. operators: range open at launch, or at the creation of the node "
    "that was last updated into the executable. beside: every kernel planned side by side with it.",
    "rows_by_reason": "Rows with impossible times: zero_start (start 0, whatever the end), negative, "
    "zero_length, before_launch (starts before its launch call does).",
}


def main(out: Path) -> None:
    """Write every trace and ``truth.json`` into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    truth: dict[str, Any] = {}
    for name, (export, facts) in _all_traces():
        export.write(out / f"{name}.sqlite")
        truth[f"{name}.sqlite"] = facts
    text = json.dumps({"_about": ABOUT, "files": truth}, indent=1)
    (out / "truth.json").write_text(text + "\n", encoding="utf-8")


def _all_traces() -> list[tuple[str, tuple[Export, dict[str, Any]]]]:
    models = [(f"{model}-graphs-{arm}", _model_trace(model, arm)) for model, arm in PUBLISHED_MS]
    three = [(f"three-at-once-graphs-{arm}", _three_at_once(arm)) for arm in ("on", "off")]
    return [*models, *three, *((name, plant()) for name, plant in ODDITIES.items())]


def _model_trace(model_name: str, arm: str) -> tuple[Export, dict[str, Any]]:
    model = MODELS[model_name]
    recording = Recording(f"{model_name}-{arm}", ARMS[arm], model.eager_gap_ns)
    for prefills in _PREFILLS_BEFORE_DECODE:
        for _ in range(prefills):
            recording.prefill(model.prefill)
        recording.decode(model.decode, _STEPS)
    facts = recording.report()
    for phase, published in zip(("prefill", "decode"), PUBLISHED_MS[model_name, arm], strict=True):
        facts["phases"][phase]["tenth_of_published_ms"] = published
    return recording.export, facts


def _three_at_once(arm: str) -> tuple[Export, dict[str, Any]]:
    recording = Recording(f"three-at-once-{arm}", ARMS[arm], {"prefill": 10_000})
    for _ in range(8):
        recording.prefill(THREE_AT_ONCE)
    return recording.export, recording.report()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "sample_traces")
