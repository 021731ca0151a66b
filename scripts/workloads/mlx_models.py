"""What the MLX workloads share: the command line that names a model, and the line of figures."""

import argparse
import json
from collections.abc import Sequence
from importlib.metadata import version
from statistics import median

import mlx.core as mx  # type: ignore[import-not-found, unused-ignore]

from tracekit.bench.models import TINY, Model, prompt, real_model, tiny_model

__all__ = ["TINY", "build", "count", "parser", "prompt", "report"]


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


def build(arguments: argparse.Namespace) -> Model:
    """The model that the command line names, its weights in memory."""
    return real_model(arguments.model) if arguments.model else tiny_model(arguments.tiny)


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
