"""Decode one token after another, launched as mlx_lm launches it: a step ahead of the token that is waited for."""

import time

import mlx.core as mx  # type: ignore[import-not-found, unused-ignore]
from mlx_lm.generate import generate_step  # type: ignore[import-not-found, unused-ignore]
from mlx_lm.models.cache import make_prompt_cache  # type: ignore[import-not-found, unused-ignore]
from mlx_models import build, count, parser, prompt, report

from tracekit import phase


def main() -> None:
    """Time each token from the one before it."""
    command_line = parser(__doc__)
    command_line.add_argument(
        "--tokens", type=count, default=64, help="tokens to decode (default 64; the first one warms up)"
    )
    command_line.add_argument("--prompt", type=count, default=128, help="tokens already in the cache (default 128)")
    arguments = command_line.parse_args()
    model = build(arguments)
    ids = prompt(arguments.prompt + 1)

    cache = make_prompt_cache(model)
    with phase("prefill"):
        model(ids[None, :-1], cache=cache)
        mx.eval([layer.state for layer in cache])
    # The last token is left to the generator, which then starts with a decode step. Its first turn launches two.
    steps = generate_step(ids[-1:], model, max_tokens=arguments.tokens, prompt_cache=cache)
    decoded, seconds = [], []
    for _ in range(arguments.tokens):
        begin = time.perf_counter()
        with phase("decode"):
            token, _ = next(steps)
        seconds.append(time.perf_counter() - begin)
        decoded.append(token)
    # One step more than tokens was launched: it must not run into whatever comes next.
    mx.synchronize()
    report("mlx_decode", arguments, seconds, prompt=arguments.prompt, tokens=arguments.tokens, decoded=decoded)


if __name__ == "__main__":
    main()
