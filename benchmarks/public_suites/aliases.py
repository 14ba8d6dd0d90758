"""Let a program's imports of one package be answered by another: `autograd` by `pullback.compat.autograd`."""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class AliasFinder(MetaPathFinder, Loader):
    """Answers imports of a package and of everything below it with modules of another name."""

    def __init__(self, alias: str, target: str) -> None:
        self._alias = alias
        self._target = target
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Claim the alias and what is below it."""
        del path, target
        mine = fullname == self._alias or fullname.startswith(f"{self._alias}.")
        return ModuleSpec(fullname, self, is_package=True) if mine else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of the other name, the same object."""
        module = importlib.import_module(self._target + spec.name.removeprefix(self._alias))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: give the module back the spec that the import put its own in place of."""
        assert module.__spec__ is not None  # noqa: S101 (importlib's own invariant)
        module.__spec__ = self._specs[module.__spec__.name]


def install(alias: str, target: str) -> None:
    """Answer imports of `alias` with `target` from here on, in this process."""
    sys.meta_path.insert(0, AliasFinder(alias, target))
