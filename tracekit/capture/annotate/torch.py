"""PyTorch: calls of models."""

import functools
from types import ModuleType
from typing import Any

from tracekit.capture.annotate.import_hooks import Hook
from tracekit.capture.annotate.module_calls import ModuleCalls
from tracekit.capture.annotate.thread_phases import ThreadPhases


def torch_hooks(mode: str, phases: ThreadPhases) -> dict[str, Hook]:
    """What to do to which module of PyTorch in a mode of annotation."""

    def mark_modules(module: ModuleType) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]

        def settle(_: object) -> None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()

        calls = ModuleCalls(
            phases,
            lazy=False,
            every=mode != "phases",
            settle=settle if mode == "sync-modules" else None,
        )
        unmarked = module.Module.__call__
        marked = calls.marked(unmarked)

        @functools.wraps(unmarked)
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            # A compiler that traces this call would stumble over ranges. Old versions have no such question.
            compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
            return (unmarked if compiling and compiling() else marked)(self, *args, **kwargs)

        module.Module.__call__ = __call__

    return {"torch.nn.modules.module": mark_modules}
