"""Tensors without data that claim a device: Facula's meta tensors say what they are, so there are
none. Libraries ask before they look at values."""

from __future__ import annotations

from typing import Any

from facula import Tensor

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor(Tensor):
    """The type of such tensors, for ``isinstance``."""

    def __new__(cls, *args: Any, **kwargs: Any) -> FakeTensor:
        raise TypeError('FakeTensor: make a tensor with device="meta" for shapes without data')


def is_fake(x: Any) -> bool:
    """False.

    Example::

        >>> from facula._subclasses.fake_tensor import is_fake
        >>> is_fake(facula.ones(1))
        False
    """
    return isinstance(x, FakeTensor)
