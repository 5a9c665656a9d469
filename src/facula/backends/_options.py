"""Modules whose settings are attributes: assigning one checks its type."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class OptionsModule(ModuleType):
    """A module with settings. ``_options`` has the value of each, ``_types`` what it may be."""

    _options: dict[str, Any]
    _types: dict[str, tuple[type, ...]]
    _apply: Callable[[dict[str, Any]], None]

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__.get("_options", {})
        if name in options:
            return options[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_options", {}):
            self._set(name, value)
        else:
            super().__setattr__(name, value)

    def _set(self, name: str, value: Any) -> None:
        accepted = self._types[name]
        if type(value) not in accepted:
            names = " or ".join("None" if t is type(None) else t.__name__ for t in accepted)
            raise RuntimeError(
                f"{self.__name__}.{name} must be {names}, got {type(value).__name__}"
            )
        self._options[name] = value
        self._apply(self._options)

    @contextmanager
    def _changed(self, **values: Any) -> Iterator[None]:
        """Sets options for a block."""
        before = dict(self._options)
        try:
            for name, value in values.items():
                self._set(name, value)
            yield
        finally:
            self._options.update(before)
            self._apply(self._options)


def _kept(options: dict[str, Any]) -> None:
    """Of settings that change nothing."""


def make_options(
    module: str, apply: Callable[[dict[str, Any]], None] = _kept, **options: Any
) -> OptionsModule:
    """Turns a module into one with settings, whose types are those of the defaults.

    A default of None takes an int or None. ``apply`` is called with all settings after a change.
    """
    self: Any = sys.modules[module]
    self.__class__ = OptionsModule
    self.__dict__["_options"] = dict(options)
    self.__dict__["_apply"] = apply
    self.__dict__["_types"] = {
        name: (int, type(None)) if value is None else (type(value),)
        for name, value in options.items()
    }
    return self
