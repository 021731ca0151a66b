"""Prefill of a prompt, again and again, each time into an empty cache."""

import time

import mlx.core as mx  # type: ignore[import-not-found, unused-ignore]
from mlx_lm.models.cache import make_prompt_cache  # type: ignore[import-not-found, unused-ignore]
from mlx_models import build, count, parser, prompt, report

from tracekit import phase


def main() -> None:
    """Time each prefill from the first call of the model to the last byte of its cache."""
    command_line = parser(__doc__)
    command_line.add_argument("--tokens", type=count, default=2048, help="length of the prompt (default 2048)")
    command_line.add_argument("--runs", type=count, default=6, help="prefills (default 6; the first one warms up)")
    arguments = command_line.parse_args()
    model = build(arguments)
    ids = prompt(arguments.tokens)
    mx.eval(ids)

    seconds = []
    for _ in range(arguments.runs):
        cache = make_prompt_cache(model)
        begin = time.perf_counter()
        with phase("prefill"):
            model(ids[None], cache=cache)
            # As mlx_lm does: the logits of a prompt's tokens are of no use and are never computed.
            mx.eval([layer.state for layer in cache])
        seconds.append(time.perf_counter() - begin)
    report("mlx_prefill", arguments, seconds, tokens=arguments.tokens)


if __name__ == "__main__":
    main()
