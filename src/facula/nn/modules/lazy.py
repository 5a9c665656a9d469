"""Modules whose parameters get their shape from the first input."""

from __future__ import annotations

from typing import Any

from facula.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a module out of one whose parameters have no shape yet.

    A subclass registers :class:`facula.nn.UninitializedParameter` and has a method
    ``initialize_parameters(*inputs)`` that gives them their shapes. It is called before the first
    ``forward``; afterwards the module is one of the class ``cls_to_become``, when that is set. A
    state dict of a module that has shapes can be loaded before the first call as well.

    Example::

        >>> layer = facula.nn.LazyLinear(3)
        >>> layer.has_uninitialized_params()
        True
        >>> layer(facula.ones(2, 5)).shape
        facula.Size([2, 3])
        >>> layer
        Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become: type[Any] | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._load_hook = module._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = module.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        # A tensor without a shape cannot be detached: it is kept as it is.
        hidden = self._non_persistent_buffers_set
        held = [
            *self._parameters.items(),
            *((n, b) for n, b in self._buffers.items() if n not in hidden),
        ]
        for name, tensor in held:
            if tensor is not None:
                as_is = keep_vars or is_lazy(tensor)
                destination[prefix + name] = tensor if as_is else tensor.detach()

    def _lazy_load_hook(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        """Gives tensors the shapes of what is about to be loaded into them."""
        import facula

        for name, tensor in [*self._parameters.items(), *self._buffers.items()]:
            given = state_dict.get(prefix + name)
            if given is not None and tensor is not None and is_lazy(tensor) and not is_lazy(given):
                with facula.no_grad():
                    tensor.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their shapes, from the arguments of ``forward``."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether any parameter or buffer of the module itself still has no shape."""
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _get_name(self) -> str:
        return type(self).__name__

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )
