"""Calls functions with modules of other packages, once these are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # not at run time: importlib.abc takes half of the time of `import iceberg_pyspark`
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec

Hook = Callable[[ModuleType], None]


def when_imported(module: str, hook: Hook) -> None:
    """Call `hook` with a module: now if it is imported, and after each later import of it."""
    finder = next((f for f in sys.meta_path if type(f) is _Finder), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.hooks.setdefault(module, []).append(hook)
    loaded = sys.modules.get(module)
    if loaded is not None:
        hook(loaded)


class _Finder:
    """Finds modules as the finders after it do, and lets their loader call the hooks."""

    def __init__(self) -> None:
        self.hooks: dict[str, list[Hook]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.hooks:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    wrapped: Any = _Loader(spec.loader, self.hooks[fullname])
                    spec.loader = wrapped
                return spec
        return None


class _Loader:
    """Loads a module by another loader, which the module also names as its own."""

    def __init__(self, loader: Loader, hooks: Sequence[Hook]) -> None:
        self._loader = loader
        self._hooks = hooks

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for hook in self._hooks:
            hook(module)
