"""Options of ``tracekit bench``, by what they are about."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SHAPE, METHOD, MODEL, RESULT = "What to time", "How to time it", "Models (decode, prefill)", "Results"


class What(StrEnum):
    """What is timed."""

    matmul = "matmul"
    qmm = "qmm"
    gather_qmm = "gather_qmm"
    rms_norm = "rms_norm"
    sdpa = "sdpa"
    copy = "copy"
    decode = "decode"
    prefill = "prefill"


class Mode(StrEnum):
    """MLX's formats of quantised weights."""

    affine = "affine"
    nvfp4 = "nvfp4"
    mxfp4 = "mxfp4"
    mxfp8 = "mxfp8"


class Dtype(StrEnum):
    """Types of inputs, and of weights that are not quantised."""

    bf16 = "bf16"
    f16 = "f16"
    f32 = "f32"


class Link(StrEnum):
    """How an operation whose output has another size than its input is chained."""

    pair = "pair"
    projection = "projection"


WhatArgument = Annotated[
    What | None,
    typer.Argument(
        help="The operation; or the model's phase. Left out with --op and --compare.",
        metavar="OPERATION",
        show_default=False,
    ),
]
OpOption = Annotated[
    str | None,
    typer.Option(
        "--op",
        help="Your own operation instead, by the protocol in docs/benchmarking.md.",
        metavar="MODULE:FUNCTION",
        rich_help_panel=SHAPE,
    ),
]
VsOption = Annotated[
    str | None,
    typer.Option(
        "--vs",
        help="Time this one too, or another of the operations, and look for the crossover.",
        metavar="MODULE:FUNCTION",
        rich_help_panel=SHAPE,
    ),
]
MOption = Annotated[
    str, typer.Option("--m", help="Rows of the input (for sdpa queries), several by commas.", rich_help_panel=SHAPE)
]
KOption = Annotated[int, typer.Option("--k", help="Values in a row of the input.", min=1, rich_help_panel=SHAPE)]
NOption = Annotated[
    int | None,
    typer.Option(
        "--n", help="Values in a row of the output, if not --k.", min=1, show_default=False, rich_help_panel=SHAPE
    ),
]
BitsOption = Annotated[
    int | None,
    typer.Option(
        help="Bits of a weight: 4, for mxfp8 8, if not given.", min=1, max=8, show_default=False, rich_help_panel=SHAPE
    ),
]
GroupOption = Annotated[
    int | None,
    typer.Option(
        help="Weights that share a scale: 64, for mxfp4 and mxfp8 32, for nvfp4 16, if not given.",
        min=1,
        show_default=False,
        rich_help_panel=SHAPE,
    ),
]
ModeOption = Annotated[Mode, typer.Option(help="Format of quantised weights.", rich_help_panel=SHAPE)]
DtypeOption = Annotated[Dtype, typer.Option(help="Type of the values.", rich_help_panel=SHAPE)]
ExpertsOption = Annotated[int, typer.Option(help="gather_qmm: experts.", min=1, rich_help_panel=SHAPE)]
TopKOption = Annotated[int, typer.Option(help="gather_qmm: experts of a row.", min=1, rich_help_panel=SHAPE)]
HeadsOption = Annotated[int, typer.Option(help="sdpa: heads of the queries.", min=1, rich_help_panel=SHAPE)]
KvHeadsOption = Annotated[int, typer.Option(help="sdpa: heads of the keys and values.", min=1, rich_help_panel=SHAPE)]
HeadDimOption = Annotated[int, typer.Option(help="sdpa: values of a head.", min=1, rich_help_panel=SHAPE)]
ContextOption = Annotated[int, typer.Option(help="sdpa: tokens in the cache.", min=1, rich_help_panel=SHAPE)]

MethodsOption = Annotated[
    str, typer.Option(help="chain, batched, per-call; several by commas.", rich_help_panel=METHOD)
]
WeightsOption = Annotated[
    str,
    typer.Option(
        help="hot (one set of weights), cold (going round over twice the last-level cache) or both by commas.",
        rich_help_panel=METHOD,
    ),
]
BlockOption = Annotated[
    str,
    typer.Option(
        help="bare, norm-residual (an RMS norm before, a residual after) or both by commas.", rich_help_panel=METHOD
    ),
]
LinkOption = Annotated[
    Link,
    typer.Option(
        help="Where N is not K: chain K to N and N to K in turn, or K to N alone through a small operation whose own "
        "time is measured and subtracted.",
        rich_help_panel=METHOD,
    ),
]
LengthOption = Annotated[
    str, typer.Option(help="Operations in a chain, or auto: until time and interval settle.", rich_help_panel=METHOD)
]
BatchOption = Annotated[
    int, typer.Option(help="Operations in one evaluation of the batched loop.", min=8, rich_help_panel=METHOD)
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        help="Samples of each time, after one round of warm-up: 15. For models: processes of each arm: 5.",
        min=1,
        show_default=False,
        rich_help_panel=METHOD,
    ),
]
CompileOption = Annotated[
    bool,
    typer.Option(
        "--compile", help="Make each loop one function of mx.compile: cheaper to build.", rich_help_panel=METHOD
    ),
]
SeedOption = Annotated[int, typer.Option(help="Of values, codes and order.", min=0, rich_help_panel=METHOD)]
CacheOption = Annotated[
    float | None,
    typer.Option(
        help="Last-level cache in MiB, if not found right.", min=0, show_default=False, rich_help_panel=METHOD
    ),
]
BandwidthOption = Annotated[
    float | None,
    typer.Option(
        help="Memory bandwidth in GB/s; measured by a copy, if not given.",
        min=0,
        show_default=False,
        rich_help_panel=METHOD,
    ),
]

ProfileOption = Annotated[
    bool,
    typer.Option(
        "--profile",
        help="CUDA: run once more under nsys and show the kernels and their overlap.",
        rich_help_panel=METHOD,
    ),
]

ModelOption = Annotated[
    str | None,
    typer.Option(
        help="A model that mlx_lm loads: a folder, or a repository's name.", metavar="PATH", rich_help_panel=MODEL
    ),
]
TinyOption = Annotated[
    str | None,
    typer.Option(
        help="A small model of random 4-bit weights instead: llama, qwen3, qwen3_5.",
        metavar="NAME",
        rich_help_panel=MODEL,
    ),
]
ArmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        help="One more arm, by its variables, beside the default; may be repeated. None on a machine with an NVIDIA "
        "GPU: serial graphs and graphs off.",
        metavar="NAME:ENV=VALUE,...",
        rich_help_panel=MODEL,
    ),
]
PromptOption = Annotated[
    int | None,
    typer.Option(
        help="Tokens of the prompt: 128 for decode, 2048 for prefill.",
        min=1,
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
TokensOption = Annotated[int, typer.Option(help="decode: tokens decoded in a run.", min=1, rich_help_panel=MODEL)]
WidthsOption = Annotated[
    str, typer.Option(help="decode: tokens of one forward pass, as speculation verifies them.", rich_help_panel=MODEL)
]

CompareOption = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--compare",
        help="Compare two results instead, each a number that was kept or a JSON file.",
        metavar="OLD NEW",
        show_default=False,
        rich_help_panel=RESULT,
    ),
]
FigureOption = Annotated[
    Path | None,
    typer.Option(help="Draw time over M into this SVG file too.", metavar="FILE", rich_help_panel=RESULT),
]
