"""Times a model in this process, with the variables it was started with: ``python -m tracekit.bench.generation``.

Reads a request as JSON on stdin and writes what it measured as a last line of JSON.
"""

import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any, Literal

import msgspec

WIDTH_REPEATS = 5
"""Forward passes of each width in a run, the widths in turn."""


class Request(msgspec.Struct, frozen=True):
    """What to time. ``widths`` are the tokens of one forward pass; ``runs`` are counted, one before them is not."""

    phase: Literal["decode", "prefill"]
    model: str | None
    tiny: str | None
    prompt: int
    tokens: int
    widths: list[int]
    runs: int


class Times(msgspec.Struct, frozen=True):
    """Times (ns) by workload, one a run, the warm-up first; and what a time of each is of, in tokens."""

    device: str
    versions: dict[str, str]
    ns: dict[str, list[float]]
    tokens: dict[str, int]


def timed(request: Request) -> Times:
    """Load the model and run it."""
    from tracekit.bench.answer import device_name
    from tracekit.bench.models import prompt, real_model, tiny_model
    from tracekit.capture.machine import versions

    model = real_model(request.model) if request.model else tiny_model(request.tiny or "")
    run = {"decode": _decode, "prefill": _prefill}[request.phase]
    ns: dict[str, list[float]] = {}
    tokens: dict[str, int] = {}
    for _ in range(1 + request.runs):
        for workload, size, value in run(model, prompt(request.prompt + 1), request):
            ns.setdefault(workload, []).append(value)
            tokens[workload] = size
    known = {name: version for name, version in versions(of_packages=True).items() if name.startswith(("mlx", "trace"))}
    return Times(device_name(), known, ns, tokens)


Timed = Iterator[tuple[str, int, float]]
"""Workload, its tokens, its time (ns)."""


def _prefill(model: Any, ids: Any, request: Request) -> Timed:  # noqa: ANN401
    begin = time.perf_counter_ns()
    _filled(model, ids[:-1])
    yield "prefill", request.prompt, time.perf_counter_ns() - begin


def _decode(model: Any, ids: Any, request: Request) -> Timed:  # noqa: ANN401
    """Steps as mlx_lm launches them, one ahead; then forward passes of several widths, as speculation needs them."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step

    cache = _filled(model, ids[:-1])
    steps = generate_step(ids[-1:], model, max_tokens=request.tokens + 1, prompt_cache=cache)
    next(steps)  # launches two
    times = []
    for _ in range(request.tokens):
        begin = time.perf_counter_ns()
        next(steps)
        times.append(time.perf_counter_ns() - begin)
    mx.synchronize()
    yield "decode step", 1, median(times)
    yield "decode", request.tokens, sum(times)
    for width, times in _widths(model, ids, request).items():
        yield f"forward S={width}", width, median(times)


def _widths(model: Any, ids: Any, request: Request) -> dict[int, list[int]]:  # noqa: ANN401
    """A pass of each width in turn into one cache, which every pass makes a little longer."""
    import mlx.core as mx

    cache = _filled(model, ids[:-1])
    times: dict[int, list[int]] = {width: [] for width in request.widths}
    for _ in range(WIDTH_REPEATS):
        for width, found in times.items():
            begin = time.perf_counter_ns()
            mx.eval(model(mx.broadcast_to(ids[-1:], (1, width)), cache=cache))
            found.append(time.perf_counter_ns() - begin)
    return times


def _filled(model: Any, ids: Any) -> list[Any]:  # noqa: ANN401
    """A cache with these tokens in it."""
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    cache: list[Any] = make_prompt_cache(model)
    model(ids[None], cache=cache)
    mx.eval([layer.state for layer in cache])
    return cache


if __name__ == "__main__":
    found = timed(msgspec.json.decode(sys.stdin.buffer.read(), type=Request))
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(found) + b"\n")
