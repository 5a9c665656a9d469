"""Kernels for flash attention that other packages bring along.

Facula's attention has no dispatcher into which they could go: what is registered here is kept, run
when it is chosen, and reported. PyTorch's own ``FA3`` and ``FA4`` are not among them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

_registered: dict[str, Callable[..., Any]] = {}
_active: tuple[str, Any] | None = None  # the name, and what keeps its state alive


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Keeps ``register_fn`` under a name, to be called when that is activated.

    Example::

        >>> from facula.nn import attention
        >>> attention.register_flash_attention_impl("mine", register_fn=lambda: None)
        >>> "mine" in attention.list_flash_attention_impls()
        True
    """
    _registered[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Calls what was registered under a name.

    Example::

        >>> from facula.nn import attention
        >>> attention.register_flash_attention_impl("mine", register_fn=lambda: None)
        >>> attention.activate_flash_attention_impl("mine")
        >>> attention.current_flash_attention_impl()
        'mine'
        >>> attention.restore_flash_attention_impl()
    """
    global _active
    if impl not in _registered:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    restore_flash_attention_impl(_raise_warn=False)
    _active = impl, _registered[impl]()


def list_flash_attention_impls() -> list[str]:
    """The names that were registered.

    Example::

        >>> from facula.nn import attention
        >>> isinstance(attention.list_flash_attention_impls(), list)
        True
    """
    return sorted(_registered)


def current_flash_attention_impl() -> str | None:
    """The name that is active, if any.

    Example::

        >>> from facula.nn import attention
        >>> attention.current_flash_attention_impl() is None
        True
    """
    return None if _active is None else _active[0]


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Goes back to Facula's own kernels.

    Example::

        >>> from facula.nn import attention
        >>> attention.register_flash_attention_impl("mine", register_fn=lambda: None)
        >>> attention.activate_flash_attention_impl("mine")
        >>> attention.restore_flash_attention_impl()
        >>> attention.current_flash_attention_impl() is None
        True
    """
    global _active
    if _active is None:
        if _raise_warn:
            logging.getLogger(__name__).warning("no flash attention impl was activated")
        return
    handle, _active = _active[1], None
    remove = getattr(handle, "remove", None)
    if remove is not None:
        remove()
