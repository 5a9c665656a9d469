"""Choices of how modules convert their parameters that may once become the default."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether ``Module.to`` and its kin put new parameters into a module.

    Otherwise the parameters stay the objects that they are, and get other data.

    Example::

        >>> m = facula.nn.Linear(2, 2)
        >>> weight = m.weight
        >>> m.double().weight is weight
        True
        >>> facula.__future__.set_overwrite_module_params_on_conversion(True)
        >>> m.float().weight is weight
        False
        >>> facula.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What :func:`set_overwrite_module_params_on_conversion` chose; False at first."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether ``Module.to`` and ``load_state_dict`` use :func:`facula.utils.swap_tensors`.

    A parameter then stays the same object whatever it is converted to, and ``load_state_dict`` asks
    ``Tensor.module_load`` what takes the place of each tensor, which subclasses may override.
    """
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What :func:`set_swap_module_params_on_conversion` chose; False at first."""
    return _swap
