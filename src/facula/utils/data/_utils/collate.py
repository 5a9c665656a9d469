"""Samples into batches."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy

import facula
from facula import _C
from facula.utils.data._utils.known import is_named_tuple

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

np_str_obj_array_pattern = re.compile("[SaUO]")  # kinds of arrays that are no numbers
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

CollateFunctions = dict[Any, Callable[..., Any]]


def _has_convertible_dtype(array: Any) -> bool:
    return np_str_obj_array_pattern.search(array.dtype.str) is None


def _rebuilt(original: Any, items: Any, mutable: type) -> Any:
    """``items`` in a container like ``original``; a plain one where that cannot be made."""
    kind = type(original)
    with contextlib.suppress(TypeError):
        if isinstance(original, mutable):  # keeps what a subclass carries besides its items
            clone = copy.copy(original)
            if isinstance(items, dict):
                clone.update(items)
            else:
                for i, item in enumerate(items):  # deques have no slices
                    clone[i] = item
            return clone
        return kind(items)
    return items


def default_convert(data: Any) -> Any:
    """Arrays in ``data`` as tensors; what is no array stays.

    Example::

        >>> import numpy
        >>> facula.utils.data.default_convert({"a": numpy.array([1, 2]), "b": "text"})
        {'a': tensor([1, 2]), 'b': 'text'}
    """
    if isinstance(data, facula.Tensor):
        return data
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        if isinstance(data, numpy.ndarray) and not _has_convertible_dtype(data):
            return data
        if isinstance(data, (numpy.str_, numpy.bytes_)):
            return data
        return facula.as_tensor(data)
    if isinstance(data, Mapping):
        items = {key: default_convert(value) for key, value in data.items()}
        return _rebuilt(data, items, MutableMapping)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(d) for d in data], MutableSequence)
    return data


def _is_plain_container(kind: type, table: CollateFunctions) -> bool:
    """Whether to skip the table's base classes, all of which are known not to fit."""
    own = table is default_collate_fn_map and len(table) == _DEFAULT_ENTRIES
    return own and kind in (tuple, list, dict)


def collate(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """A batch of a list of samples, by a table of functions.

    Containers are gone into: a list of dicts becomes a dict of batches. Anything else is looked up
    in the table by its type, then by its base classes in the table's order.

    Args:
        batch: the samples, all of the same kind.
        collate_fn_map: type, or tuple of types, to a function of the samples with the keyword
            ``collate_fn_map``.

    Example::

        >>> from facula.utils.data._utils.collate import collate
        >>> collate(["a", "b"], collate_fn_map={str: lambda b, *, collate_fn_map: "".join(b)})
        'ab'
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None and not _is_plain_container(kind, collate_fn_map):
            for known, candidate in collate_fn_map.items():
                if isinstance(first, known):
                    function = candidate
                    break
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    if kind is not tuple and isinstance(first, Mapping):
        items = {
            key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in first
        }
        return _rebuilt(first, items, MutableMapping)
    if kind is tuple or isinstance(first, Sequence):
        sizes = set(map(len, batch))
        if len(sizes) > 1:
            raise RuntimeError(
                "each element in list of batch should be of equal size, but they have "
                f"{sorted(sizes)} parts"
            )
        parts = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]  # noqa: B905
        if isinstance(first, tuple):
            return kind(*parts) if hasattr(first, "_fields") else parts
        return _rebuilt(first, parts, MutableSequence)
    raise TypeError(default_collate_err_msg_format.format(kind))


_LARGE = 1 << 15  # bytes: batches from here on are stacked in shared memory


@contextlib.contextmanager
def results_in(slots: Any) -> Iterator[None]:
    """While it lasts, large batches of this thread are stacked in a worker's slots."""
    slots.lend_here(True)
    try:
        yield
    finally:
        slots.lend_here(False)


def gathered(tensor: facula.Tensor, where: facula.Tensor) -> facula.Tensor:
    """Rows of a tensor of the host, by a tensor of indices."""
    out = None
    if len(where) * tensor.nbytes >= _LARGE * len(tensor):
        out = _C._slot_tensor((len(where), *tensor.shape[1:]), tensor.dtype)
    return facula.index_select(tensor, 0, where, out=out)


def _destination(batch: Sequence[facula.Tensor]) -> Any:
    first = batch[0]
    shape, dtype = first.shape, first.dtype
    if len(batch) * first.nbytes < _LARGE or not _C._has_slots() or first.device.type != "cpu":
        return None
    for t in batch:
        plain = type(t) is facula.Tensor and t.dtype is dtype and t.shape == shape
        if not plain or t.requires_grad:
            return None
    return _C._slot_tensor((len(batch), *shape), dtype)


def collate_tensor_fn(
    batch: Sequence[facula.Tensor], *, collate_fn_map: CollateFunctions | None = None
) -> facula.Tensor:
    """Tensors of one shape stacked."""
    first = batch[0]
    if first.is_nested or first.layout is not _C.strided:
        kind = "nested" if first.is_nested else "sparse"
        raise RuntimeError(
            f"Batches of {kind} tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    return facula.stack(batch, 0, out=_destination(batch))


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Arrays of one shape stacked into a tensor."""
    if not _has_convertible_dtype(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([facula.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """NumPy's numbers as a tensor."""
    return facula.as_tensor(numpy.stack(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Floats as a float64 tensor."""
    return facula.tensor(batch, dtype=facula.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Ints as a tensor."""
    return facula.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Texts as they are."""
    return batch


default_collate_fn_map: CollateFunctions = {
    facula.Tensor: collate_tensor_fn,
    numpy.ndarray: collate_numpy_array_fn,
    (numpy.bool_, numpy.number, numpy.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}

_DEFAULT_ENTRIES = len(default_collate_fn_map)  # programs may add to the table


def _collate_by_table(batch: Any) -> Any:
    return collate(batch, collate_fn_map=default_collate_fn_map)


# What default_collate tells _C._collate: the table, what it was at first, and what does the rest.
DEFAULT_TABLES = (default_collate_fn_map, dict(default_collate_fn_map), _collate_by_table)


_KNOWN_KINDS = (facula.Tensor, numpy.ndarray, int, float, bool, str, bytes)


def _collate_known(batch: Any) -> Any:
    table, own, otherwise = DEFAULT_TABLES
    for kind in {*map(type, batch)}:
        if kind not in _KNOWN_KINDS and kind.__module__ != "numpy" and not is_named_tuple(kind):
            raise TypeError(f"{kind.__name__} may have code of its own")
    if table != own:
        raise TypeError("default_collate_fn_map may have code of the program")
    return otherwise(batch)


# The same for those who leave it to others to run code of the program, or to raise errors.
KNOWN_TABLES = (
    *DEFAULT_TABLES[:2],
    (frozenset(_KNOWN_KINDS), _collate_by_table, _collate_known),
)


def default_collate(batch: Any) -> Any:
    """A batch of a list of samples: numbers, arrays and tensors become tensors with a new first
    dimension, texts stay as they are, and containers of them become containers of batches.

    Example::

        >>> facula.utils.data.default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
        >>> facula.utils.data.default_collate([{"x": 0.5}, {"x": 1.5}])
        {'x': tensor([0.5000, 1.5000], dtype=facula.float64)}
    """
    return _C._collate(batch, *DEFAULT_TABLES)
