"""Wrapping the calls of modules: which are a model's, and where each module begins and ends."""

import functools
from collections.abc import Callable
from typing import Any

from tracekit.capture.annotate.markers import Range, marker
from tracekit.capture.annotate.notices import harmless
from tracekit.capture.annotate.thread_phases import ThreadPhases

MODULES = "tracekit.modules"
"""NVTX domain of the ranges of modules."""

Call = Callable[..., Any]


class ModuleCalls:
    """Marks the calls of one framework's modules.

    ``every`` gives each module a range named by its path; without, only calls that no other module
    made are looked at. ``settle`` is called with each module's result before its range ends. ``lazy``
    says that calls launch nothing themselves.
    """

    def __init__(
        self,
        phases: ThreadPhases,
        *,
        lazy: bool,
        every: bool = False,
        settle: Callable[[Any], object] | None = None,
    ) -> None:
        self._phases = phases
        self._lazy = lazy
        self._every = every
        self._settle = settle and harmless(settle)

    def marked(self, call: Call) -> Call:
        """The ``__call__`` of a module class, marked."""
        phases, every, settle = self._phases, self._every, self._settle

        @functools.wraps(call)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if phases.depth and not every:
                return call(module, *args, **kwargs)
            if not phases.depth:
                phases.model_called(module, args, kwargs)
            opened = self._open(module) if every else None
            phases.depth += 1
            try:
                result = call(module, *args, **kwargs)
                if settle:
                    settle(result)
                return result
            finally:
                phases.depth -= 1
                if opened:
                    opened.__exit__(None, None, None)
                if not self._lazy:
                    phases.work_launched()

        return __call__

    @harmless
    def _open(self, module: Any) -> Range:  # noqa: ANN401
        if not self._phases.depth and _PATH not in module.__dict__:
            for path, inner in module.named_modules():
                inner.__dict__[_PATH] = path or type(module).__name__
        opened = marker(MODULES, module.__dict__.get(_PATH) or type(module).__name__)
        opened.__enter__()
        return opened


_PATH = "_tracekit_path"
"""Kept on the module itself: it lives as long, and a module put in another's place has none."""
