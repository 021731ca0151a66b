"""MLX and mlx_lm: evaluation, model calls and token generation."""

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import closing
from types import ModuleType
from typing import Any

from tracekit.capture.annotate.import_hooks import Hook
from tracekit.capture.annotate.markers import marker
from tracekit.capture.annotate.module_calls import ModuleCalls
from tracekit.capture.annotate.notices import harmless, say
from tracekit.capture.annotate.thread_phases import Generation, ThreadPhases

EVALUATION = "tracekit.mlx"
"""NVTX domain of the ranges round evaluation."""

LAZINESS = "module ranges time how MLX builds its graph, not its kernels: those are launched when it is evaluated"
SETTLING = "sync-modules evaluates at the end of each module: layers can be told apart, the run as a whole is another"


Tokens = Generator[Any, None, None]


def mlx_hooks(mode: str, phases: ThreadPhases) -> dict[str, Hook]:
    """What to do to which module of MLX in a mode of annotation."""

    def mark_modules(layers: ModuleType) -> None:
        import mlx.core as mx  # type: ignore[import-not-found, unused-ignore]

        if mode != "phases":
            say(SETTLING if mode == "sync-modules" else LAZINESS)
        settle = _evaluate(mx) if mode == "sync-modules" else None
        _mark_subclasses(layers.Module, ModuleCalls(phases, lazy=True, every=mode != "phases", settle=settle))

    return {
        "mlx.core": lambda core: _mark_evaluation(core, phases),
        "mlx.nn.layers.base": mark_modules,
        "mlx_lm.generate": lambda generate: _mark_generation(generate, phases),
    }


def _evaluate(core: Any) -> Callable[[Any], object]:  # noqa: ANN401
    evaluate: Callable[[Any], object] = getattr(core.eval, "__wrapped__", core.eval)
    return evaluate


def _mark_evaluation(core: Any, phases: ThreadPhases) -> None:  # noqa: ANN401
    evaluating = {core: ("eval", "async_eval", "synchronize"), core.array: ("item", "tolist")}
    for owner, names in evaluating.items():
        prefix = "mx" if owner is core else "mx.array"
        for name in names:
            setattr(owner, name, _marked_evaluation(getattr(owner, name), f"{prefix}.{name}", phases))


def _marked_evaluation(evaluate: Callable[..., Any], name: str, phases: ThreadPhases) -> Callable[..., Any]:
    around = marker(EVALUATION, name)

    @functools.wraps(evaluate)
    def marked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with around:
            result = evaluate(*args, **kwargs)
        phases.work_launched()
        return result

    return marked


def _mark_subclasses(module: Any, calls: ModuleCalls) -> None:  # noqa: ANN401
    """Every class of modules brings its own ``__call__``, so each is marked where it is defined."""

    def defined(cls: Any, /, **kwargs: object) -> None:  # noqa: ANN401
        super(module, cls).__init_subclass__(**kwargs)
        if "__call__" in cls.__dict__:
            cls.__call__ = calls.marked(cls.__dict__["__call__"])

    module.__init_subclass__ = classmethod(defined)


def _mark_generation(generate: Any, phases: ThreadPhases) -> None:  # noqa: ANN401
    for name in ("generate_step", "speculative_generate_step"):
        if function := getattr(generate, name, None):
            setattr(generate, name, _marked_generation(function, phases))


def _marked_generation(function: Callable[..., Tokens], phases: ThreadPhases) -> Callable[..., Tokens]:
    """A step begins with a call of the model and ends where its token before is given out.

    The generator launches a step before it gives out the token of the step before: a phase that ends with
    each token holds the launches of exactly one step.
    """
    signature = inspect.signature(function)

    @harmless
    def begun(*args: Any, **kwargs: Any) -> Generation:  # noqa: ANN401
        given = signature.bind(*args, **kwargs).arguments
        embeddings = given.get("input_embeddings")
        return Generation(given["model"], len(given["prompt"] if embeddings is None else embeddings))

    @functools.wraps(function)
    def marked(*args: Any, **kwargs: Any) -> Tokens:  # noqa: ANN401
        generation = begun(*args, **kwargs)
        with closing(function(*args, **kwargs)) as steps:
            while True:
                with phases.within(generation):
                    token = next(steps, _END)
                if token is _END:
                    return
                yield token

    return marked


_END = object()
