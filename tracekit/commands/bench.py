"""``tracekit bench``."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TypeVar

from tracekit.commands import bench_options as of
from tracekit.commands import options, output
from tracekit.commands.bench_answers import Wanted, compare_results, time_model, time_operation
from tracekit.commands.history import DatabaseOption
from tracekit.errors import UnusableInput, WrongUsage

GROUP_SIZES = {of.Mode.affine: 64, of.Mode.mxfp4: 32, of.Mode.mxfp8: 32, of.Mode.nvfp4: 16}
"""Weights that share a scale, by MLX's defaults."""

ROUNDS, PROCESSES = 15, 5
"""Samples of each time of an operation, and processes of each arm of a model, where not given."""

RUNS = 3
"""Counted runs in each process of an arm."""

W = TypeVar("W", bound=str)


def bench(
    what: of.WhatArgument = None,
    op: of.OpOption = None,
    vs: of.VsOption = None,
    m: of.MOption = "1",
    k: of.KOption = 4096,
    n: of.NOption = None,
    bits: of.BitsOption = None,
    group_size: of.GroupOption = None,
    mode: of.ModeOption = of.Mode.affine,
    dtype: of.DtypeOption = of.Dtype.bf16,
    experts: of.ExpertsOption = 64,
    top_k: of.TopKOption = 8,
    heads: of.HeadsOption = 32,
    kv_heads: of.KvHeadsOption = 8,
    head_dim: of.HeadDimOption = 128,
    context: of.ContextOption = 2048,
    methods: of.MethodsOption = "chain,batched,per-call",
    weights: of.WeightsOption = "hot,cold",
    block: of.BlockOption = "bare",
    link: of.LinkOption = of.Link.pair,
    chain_length: of.LengthOption = "auto",
    batch: of.BatchOption = 64,
    rounds: of.RoundsOption = None,
    compile_: of.CompileOption = False,
    seed: of.SeedOption = 0,
    cache_size: of.CacheOption = None,
    bandwidth: of.BandwidthOption = None,
    profile: of.ProfileOption = False,
    model: of.ModelOption = None,
    tiny: of.TinyOption = None,
    own_arms: of.ArmOption = None,
    prompt: of.PromptOption = None,
    tokens: of.TokensOption = 64,
    widths: of.WidthsOption = "1,2,3,4,5,6,7,8",
    compare: of.CompareOption = None,
    figure: of.FigureOption = None,
    db: DatabaseOption = None,
    form: options.FormatOption = options.Format.table,
    path: options.OutputOption = None,
    force: options.ForceOption = False,
) -> None:
    """Time an operation of MLX as a dependent chain, batched in a queue, and call by call; or the speed of a model.

    Decoding is a chain. Independent calls in one evaluation overlap on a GPU, which hides time that decoding pays;
    calls waited for one by one measure the waiting. Every result is kept and can be compared with a later one.
    """
    output.check_output(path, force)
    output.check_output(figure, force)
    wanted = Wanted(form, path, db)
    of_model = what in (of.What.decode, of.What.prefill)
    if sum((what is not None, op is not None, compare is not None)) != 1:
        raise WrongUsage("name one operation, such as qmm, or your own by --op, or two results by --compare")
    if (model is not None) + (tiny is not None) != of_model:
        raise WrongUsage("decode and prefill need a model: --model PATH or --tiny NAME; operations have none")
    if figure and (of_model or compare):
        raise WrongUsage("--figure draws the times of an operation over M: leave it out here")
    if vs is not None and vs in (op, what):
        raise WrongUsage(f"--vs {vs}: is the operation itself: name another one")
    if compare:
        compare_results(*compare, wanted)
        return
    if find_spec("mlx") is None:
        raise UnusableInput("MLX is not installed: pip install mlx, with CUDA 'mlx[cuda13]'")
    if of_model:
        from tracekit.bench.generation import Request

        request = Request(
            phase="decode" if what is of.What.decode else "prefill",
            model=model,
            tiny=_tiny(tiny),
            prompt=prompt or (128 if what is of.What.decode else 2048),
            tokens=tokens,
            widths=_numbers(widths, "--widths"),
            runs=RUNS,
        )
        time_model(request, own_arms or [], rounds or PROCESSES, wanted)
        return
    from tracekit.bench.answer import known_cache, named_candidate
    from tracekit.bench.cells import BLOCKS, METHODS, RESIDENCIES, Plan
    from tracekit.bench.protocol import Case

    cache, cache_basis = known_cache(round(cache_size * 2**20) if cache_size else None)
    plan = Plan(
        candidates=[named_candidate(name, pair=link is of.Link.pair) for name in (what or op, vs) if name],
        case=Case(
            k=k,
            n=n or k,
            dtype=dtype.value,
            bits=bits or (8 if mode is of.Mode.mxfp8 else 4),
            group_size=group_size or GROUP_SIZES[mode],
            mode=mode.value,
            experts=experts,
            top_k=top_k,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            context=context,
            seed=seed,
        ),
        sizes=_numbers(m, "--m"),
        methods=_words(methods, METHODS, "--methods"),
        weights=_words(weights, RESIDENCIES, "--weights"),
        blocks=_words(block, BLOCKS, "--block"),
        chain_length=None if chain_length == "auto" else _numbers(chain_length, "--chain-length")[0],
        batch=batch,
        rounds=rounds or ROUNDS,
        compile=compile_,
        cache=cache,
    )
    time_operation(plan, cache_basis, bandwidth, wanted, figure, profile=profile)


def _tiny(name: str | None) -> str | None:
    from tracekit.bench.models import TINY

    if name is not None and name not in TINY:
        raise WrongUsage(f"--tiny {name}: write one of {', '.join(TINY)}")
    return name


def _words(text: str, known: Sequence[W], option: str) -> list[W]:
    words = list(dict.fromkeys(text.split(",")))
    if unknown := [word for word in words if word not in known]:
        raise WrongUsage(f"{option} {unknown[0]}: write {', '.join(known)}, several by commas")
    return [word for word in known if word in words]


def _numbers(text: str, option: str) -> list[int]:
    try:
        numbers = sorted({int(word) for word in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        raise WrongUsage(f"{option} {text}: write whole numbers of one or more, several by commas")
    return numbers
