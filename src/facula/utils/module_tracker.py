"""Which modules are being run, in the forward and in the backward pass."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

import facula
from facula import _C
from facula.autograd.graph import register_multi_grad_hook
from facula.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from facula.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]

_logger = logging.getLogger(__name__)


class ModuleTracker:
    """A context that knows the modules around whatever runs.

    A module is called by its class, those in it by their dotted name: ``"Net.layers.0"``. In the
    backward pass a module begins with the gradient of its results and ends with those of its
    arguments; where no argument needs one, it ends with the pass.

    Attributes:
        parents: the names of all modules that are being run, and ``"Global"``.
        is_bw: whether this is the backward pass.

    Example::

        >>> from facula.utils.module_tracker import ModuleTracker
        >>> model = facula.nn.Sequential(facula.nn.ReLU())
        >>> with ModuleTracker() as tracker:
        ...     _ = model[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
        ...     _ = model(facula.ones(1))
        ['Global', 'Sequential', 'Sequential.0']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._pass_is_watched = False

    @property
    def is_bw(self) -> bool:
        return bool(_C._current_graph_task_id() != -1)

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _name(self, module: Module) -> str:
        if module not in self._names:
            own = type(module).__name__
            for inner, part in [(m, n) for n, m in module.named_modules()]:
                self._names.setdefault(inner, f"{own}.{part}" if part else own)
        return self._names[module]

    def _enter(self, name: str) -> None:
        if name in self.parents:
            _logger.info(
                "%s was entered again before it was left: a module that calls itself, or one that "
                "is used several times in a backward pass, is tracked as one",
                name,
            )
        self.parents.add(name)

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self._enter(name)
        self._watch(args, "all", lambda: self.parents.discard(name))

    def _after(self, module: Module, args: Any, result: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)

        def enter() -> None:
            self._end_with_the_pass()
            self._enter(name)

        self._watch(result, "any", enter)

    def _watch(self, values: Any, mode: str, call: Callable[[], None]) -> None:
        """Calls a function once the gradients of all, or of any, of the tensors are known."""
        if self.is_bw or not facula.is_grad_enabled():
            return
        tensors = [t for t in tree_leaves(values) if isinstance(t, facula.Tensor)]
        tensors = [t for t in tensors if t.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, lambda _: call(), mode=mode))

    def _end_with_the_pass(self) -> None:
        if self._pass_is_watched:
            return

        def end() -> None:
            self.parents = {"Global"}
            self._pass_is_watched = False

        _C._queue_callback(end)
        self._pass_is_watched = True
