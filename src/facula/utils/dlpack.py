"""Tensors shared with other libraries through DLPack.

Example::

    >>> import numpy
    >>> from facula.utils import dlpack
    >>> dlpack.from_dlpack(numpy.arange(3))
    tensor([0, 1, 2])
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import facula
from facula import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """The kinds of devices that DLPack numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the memory of a tensor, which can be consumed once.

    Example::

        >>> from facula.utils import dlpack
        >>> dlpack.from_dlpack(dlpack.to_dlpack(facula.ones(2)))
        tensor([1., 1.])
    """
    return tensor.__dlpack__()


class _Capsule:
    """An old capsule with the methods that importers ask for."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DLDeviceType.kDLCPU, 0)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object with ``__dlpack__``, or of a capsule.

    Args:
        ext_tensor: the object.
        device: where the tensor shall be; None leaves it where it is.
        copy: True copies always, False never, None when needed.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    return facula.from_dlpack(ext_tensor, device=device, copy=copy)
