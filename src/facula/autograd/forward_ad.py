"""Forward-mode derivatives: dual tensors carry a tangent along with their value.

Example::

    >>> from facula.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(facula.tensor([1., 2.]), facula.tensor([1., 10.]))
    ...     value, tangent = forward_ad.unpack_dual(x ** 2)
    >>> tangent
    tensor([ 2., 40.])
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from facula import _C
from facula.autograd.grad_mode import _Mode

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_transforms = _C.transforms


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` returns: the value, and the tangent or None."""

    primal: Any
    tangent: Any


class _Entered(threading.local):
    """The levels of this thread, innermost last: users count them from 0."""

    def __init__(self) -> None:
        self.levels: list[int] = []


_entered = _Entered()


def _live_levels() -> list[int]:
    # A transform that ended with an error has ended the dual levels inside of it.
    live = {level for level, _ in _transforms.level_stack()}
    _entered.levels[:] = [level for level in _entered.levels if level in live]
    return _entered.levels


def is_dual_level(level: int) -> bool:
    """Whether a level of the transforms was entered here, and not by ``func.jvp``."""
    return level in _entered.levels


def inside_of_transforms() -> bool:
    """Whether a level of ``facula.func`` is live; dual levels do not count."""
    return any(level not in _entered.levels for level, _ in _transforms.level_stack())


def enter_dual_level() -> int:
    """Enters a level for dual tensors and returns its number; :class:`dual_level` also leaves it.

    Example::

        >>> from facula.autograd import forward_ad
        >>> forward_ad.enter_dual_level()
        0
        >>> forward_ad.exit_dual_level()
    """
    levels = _live_levels()
    levels.append(_transforms.push_level("jvp"))
    return len(levels) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the last level that was entered; its dual tensors become plain ones.

    Example::

        >>> from facula.autograd import forward_ad
        >>> level = forward_ad.enter_dual_level()
        >>> forward_ad.exit_dual_level(level=level)
    """
    levels = _live_levels()
    if not levels:
        raise RuntimeError("Trying to exit a forward AD level but no level exists.")
    last = len(levels) - 1
    if (last if level is None else level) != last or levels[-1] != _transforms.current_level():
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    _transforms.pop_level()
    levels.pop()


def _core_level(level: int | None) -> int | None:
    levels = _live_levels()
    if level is None:
        level = len(levels) - 1
    return levels[level] if 0 <= level < len(levels) else None


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A tensor with the value of ``tensor`` and a tangent.

    Args:
        tensor: the value; floating point or complex.
        tangent: of the same shape.
        level: the number of a level; by default the last one.

    Both can be differentiated through.

    Example::

        >>> from facula.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(facula.tensor(3.), facula.tensor(1.))
        ...     forward_ad.unpack_dual(x * x).tangent
        tensor(6.)
    """
    core_level = _core_level(level)
    if core_level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    return checked_dual(tensor, tangent, core_level)


def checked_dual(primal: Any, tangent: Any, level: int) -> Any:
    """A dual tensor of a level of the transforms, after checks of both parts."""
    for name, part in (("primal", primal), ("tangent", tangent)):
        if not isinstance(part, _C.Tensor):
            raise TypeError(f"make_dual: expected {name} to be a Tensor, got {type(part)}")
        if not (part.is_floating_point() or part.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {part.dtype}"
            )
    if primal.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(primal.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    if tangent.is_complex() and not primal.is_complex():
        raise RuntimeError(
            f"make_dual: the tangent of a {primal.dtype} tensor must be real, got {tangent.dtype}"
        )
    if primal.device != tangent.device:
        raise RuntimeError(
            f"make_dual: primal is on {primal.device} but its tangent is on {tangent.device}"
        )
    if _transforms.level_of(primal) == level:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level is not supported."
        )
    if _transforms.level_of(tangent) == level:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level is not "
            "supported."
        )
    return _dual(primal, tangent, level)


def _dual(primal: Any, tangent: Any, level: int) -> Any:
    inner = max(_transforms.level_of(primal), _transforms.level_of(tangent))
    if inner < level:
        return _transforms.make_dual(primal, tangent, level)
    # A transform that was entered after the level: its tensors stand for duals, not the reverse.
    return _under_vmap("make_dual", inner, lambda p, t: _dual(p, t, level), primal, tangent)


def _under_vmap(name: str, level: int, function: Any, *tensors: Any) -> Any:
    """``function`` of the values behind tensors that an inner vmap has batched."""
    kinds = {_transforms.kind_of(t) for t in tensors if _transforms.level_of(t) == level}
    if kinds != {"vmap"}:
        raise RuntimeError(
            f"{name}: the tensor belongs to a {kinds.pop()} transform that was entered after the "
            "dual level. Enter the dual level inside of the transformed function, or use "
            "func.jvp."
        )
    sizes = [_transforms.value_of(t).shape[0] for t in tensors if _transforms.level_of(t) == level]
    values = [_transforms.remove_batch_dim(t, level, sizes[0], 0) for t in tensors]
    results = function(*values)
    if not isinstance(results, tuple):
        return _transforms.add_batch_dim(results, 0, level)
    return tuple(None if r is None else _transforms.add_batch_dim(r, 0, level) for r in results)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a dual tensor; the tangent is None where there is none.

    Example::

        >>> from facula.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     forward_ad.unpack_dual(facula.tensor(3.))
        UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    core_level = _core_level(level)
    if core_level is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_unpacked(tensor, core_level))


def _unpacked(tensor: Any, level: int) -> Any:
    if _transforms.level_of(tensor) <= level:
        return _transforms.unpack_dual(tensor, level)
    inner = _transforms.level_of(tensor)
    if _transforms.kind_of(tensor) != "vmap" and not _holds_dual(tensor, level):
        return tensor, None
    return _under_vmap("unpack_dual", inner, lambda t: _unpacked(t, level), tensor)


def _holds_dual(tensor: Any, level: int) -> bool:
    while _transforms.level_of(tensor) > level:
        tensor = _transforms.value_of(tensor)
    return bool(_transforms.level_of(tensor) == level)


class dual_level(_Mode):
    """A context manager, or a decorator, that enters a level for dual tensors.

    Levels nest: each has tangents of its own.

    Example::

        >>> from facula.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     x = forward_ad.make_dual(facula.tensor(2.), facula.tensor(1.))
        ...     y = forward_ad.unpack_dual(x ** 3)
        >>> y
        UnpackedDualTensor(primal=tensor(8.), tangent=tensor(12.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


_is_fwd_grad_enabled = _transforms.is_forward_grad_enabled


class _set_fwd_grad_enabled(_Mode):
    """Sets at once whether tangents are computed; as a context manager, sets it back at the end."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = _is_fwd_grad_enabled()
        _transforms.set_forward_grad_enabled(mode)

    def clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)

    def __call__(self, function: Any) -> Any:
        _transforms.set_forward_grad_enabled(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        _transforms.set_forward_grad_enabled(self.mode)

    def __exit__(self, *exc: object) -> None:
        _transforms.set_forward_grad_enabled(self.prev)
