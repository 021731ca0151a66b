"""Doing something to a module right after it is imported, whenever the script imports it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tracekit.capture.annotate.notices import harmless

Hook = Callable[[ModuleType], None]


class _HookFinder(MetaPathFinder):
    """Finds the modules that have a hook as the other finders do, and has their loader call the hook."""

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._hooks = dict(hooks)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        hook = self._hooks.get(fullname)
        if hook is None:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec and spec.loader:
            load, call = spec.loader.exec_module, harmless(hook)

            def exec_module(module: ModuleType) -> None:
                load(module)
                call(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def hook_imports(hooks: Mapping[str, Hook]) -> None:
    """Call each hook with the module of its name: now where it is imported already, else once it is."""
    for name in hooks.keys() & sys.modules.keys():
        harmless(hooks[name])(sys.modules[name])
    sys.meta_path.insert(0, _HookFinder({name: hook for name, hook in hooks.items() if name not in sys.modules}))
