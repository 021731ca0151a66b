"""What the MLX workloads share: a model of random weights or a real one, a prompt, and the line of figures."""

import argparse
import importlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from statistics import median
from typing import Any

import mlx.core as mx  # type: ignore[import-not-found, unused-ignore]
import mlx.nn as nn  # type: ignore[import-not-found, unused-ignore]
from mlx_lm import load  # type: ignore[import-not-found, unused-ignore]

VOCABULARY = 1024

_COMMON = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
# Three of qwen3_5's four layers are linear: where MLX has no kernel for them, they loop over the tokens.
_GATED_DELTA = {
    "full_attention_interval": 4,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_conv_kernel_dim": 4,
}
TINY: dict[str, dict[str, Any]] = {
    "llama": _COMMON,
    "qwen3": _COMMON,
    "qwen3_5": {**_COMMON, **_GATED_DELTA},
}
"""Configurations by mlx_lm's name of the architecture."""


def parser(description: str) -> argparse.ArgumentParser:
    """A command line that names the model; each workload adds its own counts."""
    arguments = argparse.ArgumentParser(description=description)
    model = arguments.add_mutually_exclusive_group(required=True)
    model.add_argument("--model", metavar="PATH", help="a model that mlx_lm loads: a folder, or a repository's name")
    model.add_argument("--tiny", choices=TINY, help="a small model with random 4-bit weights: nothing is downloaded")
    return arguments


def count(text: str) -> int:
    """A whole number of one or more. Raises ValueError for others."""
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def build(arguments: argparse.Namespace) -> Any:  # noqa: ANN401
    """The model that the command line names, its weights in memory."""
    if arguments.model:
        return load(arguments.model)[0]
    architecture = importlib.import_module(f"mlx_lm.models.{arguments.tiny}")
    mx.random.seed(0)
    configuration = {"model_type": arguments.tiny, **TINY[arguments.tiny]}
    model = architecture.Model(architecture.ModelArgs.from_dict(configuration))
    if mx.default_device() == mx.gpu:
        # What real models run with; on the CPU it takes many times as long as the float32 they are made with.
        model.set_dtype(mx.bfloat16)
    nn.quantize(model, group_size=64, bits=4)  # type: ignore[attr-defined, unused-ignore]
    mx.eval(model.parameters())
    return model


def prompt(tokens: int) -> Any:  # noqa: ANN401
    """So many token ids that every vocabulary has, the same in each run."""
    return mx.arange(tokens) * 389 % 1000


def report(workload: str, arguments: argparse.Namespace, seconds: Sequence[float], **figures: object) -> None:
    """Print the figures as a line of JSON.

    ``seconds`` holds every repetition in order. ``median_s`` leaves out the first, which warms up, unless it is alone.
    """
    line = {
        "workload": workload,
        "model": arguments.model or f"tiny {arguments.tiny}",
        "device": mx.default_device().type.name,
        "mlx": version("mlx"),
        **figures,
        "median_s": round(median(seconds[1:] or seconds), 6),
        "seconds": [round(each, 6) for each in seconds],
    }
    print(json.dumps(line))
