"""Reductions over runs of elements."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor

_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("mean", float("nan")),
    "prod": ("prod", 1.0),
    "max": ("amax", float("-inf")),
    "amax": ("amax", float("-inf")),
    "min": ("amin", float("inf")),
    "amin": ("amin", float("inf")),
}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduces runs of elements along a dimension, one after the other.

    Args:
        data: the numbers.
        reduce: "sum", "mean", "prod", "max" or "min".
        lengths: how long the runs are; its last dimension stands for ``axis``, those before are
            those of ``data``.
        indices: not supported, as in PyTorch; None.
        offsets: instead of lengths, where the runs begin, and where the last one ends.
        axis: the dimension of the runs.
        unsafe: True does not check that the runs cover the dimension.
        initial: what each run begins with; an empty run gives it.

    Example::

        >>> facula.segment_reduce(facula.arange(6.), "sum", lengths=facula.tensor([2, 0, 4]))
        tensor([ 1.,  0., 14.])
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"segment_reduce(): reduce must be sum, prod, mean, max or min, got {reduce!r}"
        )
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices are not supported, pass lengths or offsets")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): either lengths or offsets must be given")
    if not data.is_floating_point():
        raise RuntimeError(f"segment_reduce(): data must be floating-point, got {data.dtype}")
    if lengths is None:
        starts = offsets
        lengths = starts.diff(dim=-1)
    else:
        starts = facula.nn.functional.pad(lengths.cumsum(-1), (1, 0))
    axis = axis + data.dim() if axis < 0 else axis
    if lengths.dim() - 1 != axis or lengths.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            "segment_reduce(): axis must be the last dimension of lengths or offsets, and those "
            f"before it those of data; got axis={axis}, {tuple(lengths.shape)} runs and data of "
            f"shape {tuple(data.shape)}"
        )
    n = data.shape[axis]
    if not unsafe:
        if bool((lengths < 0).any()):
            raise RuntimeError("segment_reduce(): a run has a negative length")
        if bool((starts[..., 0] != 0).any()) or bool((starts[..., -1] != n).any()):
            raise RuntimeError(
                f"segment_reduce(): the runs must cover the {n} elements along dimension {axis}"
            )
    # The run of each position: how many runs have ended there or before.
    positions = facula.arange(n, device=data.device).expand(*data.shape[:axis], n)
    ends = starts[..., 1:].contiguous()
    runs = facula.searchsorted(ends, positions.contiguous(), right=True)
    runs = runs.reshape(runs.shape + (1,) * (data.dim() - axis - 1)).expand(data.shape)
    kind, empty = _REDUCTIONS[reduce]
    shape = (*data.shape[:axis], lengths.shape[-1], *data.shape[axis + 1 :])
    start = empty if initial is None else float(initial)
    if kind == "mean":
        zero = data.new_zeros(shape)
        total = zero.scatter_reduce(axis, runs, data, "sum")
        count = lengths.reshape(lengths.shape + (1,) * (data.dim() - axis - 1)).expand(shape)
        offset = 0.0 if initial is None else start
        return facula.where(count > 0, (total + offset) / count.clamp(min=1), start)
    return data.new_full(shape, start).scatter_reduce(axis, runs, data, kind)
