"""Which tensors may go to one call of a ``_foreach`` function, as optimizers ask."""

from __future__ import annotations

from collections.abc import Sequence

import facula
from facula import Tensor

Lists = list[list[Tensor | None]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[facula.device, facula.dtype], tuple[Lists, list[int]]]:
    """Splits lists of the same length by device and dtype of the first list's tensors; empty lists
    stay empty. ``with_indices`` adds where each tensor stood.

    Example::

        >>> from facula.utils._foreach_utils import _group_tensors_by_device_and_dtype
        >>> pair = [facula.ones(1), facula.ones(1, dtype=facula.float64)]
        >>> groups = _group_tensors_by_device_and_dtype([pair], with_indices=True)
        >>> [(dtype, indices) for (_, dtype), (_, indices) in groups.items()]
        [(facula.float32, [0]), (facula.float64, [1])]
    """
    first = tensorlistlist[0]
    for tensors in tensorlistlist:
        if tensors and len(tensors) != len(first):
            raise RuntimeError(
                "_group_tensors_by_device_and_dtype(): the lists must be as long as the first, "
                f"which has {len(first)} tensors, or empty; one has {len(tensors)}"
            )
    groups: dict[tuple[facula.device, facula.dtype], tuple[Lists, list[int]]] = {}
    for index, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(
                f"_group_tensors_by_device_and_dtype(): tensor {index} of the first list is None"
            )
        key = (tensor.device, tensor.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for part, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                part.append(tensors[index])
        if with_indices:
            indices.append(index)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices, besides the host, on which a list is one call.

    Example::

        >>> from facula.utils import _foreach_utils
        >>> _foreach_utils._get_foreach_kernels_supported_devices()
        ['cuda']
    """
    return ["cuda"]


def _device_has_foreach_support(device: facula.device) -> bool:
    """Whether lists are worthwhile on a device, which they are on the host, too.

    Example::

        >>> from facula.utils import _foreach_utils
        >>> _foreach_utils._device_has_foreach_support(facula.device("cpu"))
        True
    """
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: facula.device) -> bool:
    """Whether the tensors may be one list: nothing but tensors, on such a device.

    Example::

        >>> from facula.utils import _foreach_utils
        >>> _foreach_utils._has_foreach_support([facula.ones(1)], facula.device("cpu"))
        True
    """
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in (Tensor, facula.nn.Parameter) for t in tensors
    )
