"""Products of groups of rows with a matrix each, as mixtures of experts need them."""

from __future__ import annotations

import facula
from facula import Tensor

__all__ = ["grouped_mm"]


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: facula.dtype | None = None,
) -> Tensor:
    """Products of matrices by groups. What has two dimensions is cut at ``offs``, the ends of the
    groups; what has three has one matrix for each group.

    * (M, K) and (G, K, N): rows are cut, the result is (M, N); rows after the last group are 0;
    * (G, M, K) and (K, N): columns of the second are cut, the result is (M, N);
    * (M, K) and (K, N): what is summed over is cut, the result is (G, M, N);
    * (G, M, K) and (G, K, N): nothing is cut.

    Args:
        mat_a: the first matrices.
        mat_b: the second matrices.
        offs: where each group ends.
        bias: must be None, as in PyTorch.
        out_dtype: the dtype of the result.

    Example::

        >>> rows, experts = facula.ones(3, 2), facula.stack([facula.eye(2), 2 * facula.eye(2)])
        >>> facula.nn.functional.grouped_mm(rows, experts, offs=facula.tensor([1, 3]))
        tensor([[1., 1.],
                [2., 2.],
                [2., 2.]])
    """
    if bias is not None:
        raise RuntimeError("grouped_mm(): bias is not supported; add it to the result")
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(
            f"grouped_mm(): matrices have 2 or 3 dimensions, got {mat_a.dim()} and {mat_b.dim()}"
        )
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            f"grouped_mm(): inner sizes differ, got shapes {tuple(mat_a.shape)} and "
            f"{tuple(mat_b.shape)}"
        )
    if (mat_a.dim() == mat_b.dim() == 3) != (offs is None):
        raise RuntimeError("grouped_mm(): offs are needed exactly when a matrix has 2 dimensions")
    if offs is None:
        result = facula.bmm(mat_a, mat_b)
    else:
        result = _by_ends(mat_a, mat_b, offs)
    return result if out_dtype is None else result.to(out_dtype)


def _by_ends(a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    ends = offs.tolist()
    cut = a.shape[0] if b.dim() == 3 else b.shape[1] if a.dim() == 3 else a.shape[1]
    groups = next((m.shape[0] for m in (a, b) if m.dim() == 3), len(ends))
    starts = [0, *ends[:-1]]
    if len(ends) != groups or any(e < s for s, e in zip(starts, ends, strict=True)):
        raise RuntimeError(
            f"grouped_mm(): offs should be {groups} numbers that do not decrease, got {ends}"
        )
    if ends and ends[-1] > cut:
        raise RuntimeError(f"grouped_mm(): the last group ends at {ends[-1]} of {cut}")
    spans = [slice(s, e) for s, e in zip(starts, ends, strict=True)]
    if a.dim() == 2 and b.dim() == 2:
        return facula.stack([a[:, s] @ b[s] for s in spans])
    last = ends[-1] if ends else 0
    if b.dim() == 3:
        parts = [a[s] @ m for s, m in zip(spans, b, strict=True)]
        rest = a.new_zeros(a.shape[0] - last, b.shape[2])
        return facula.cat([*parts, rest])
    parts = [m @ b[:, s] for s, m in zip(spans, a, strict=True)]
    return facula.cat([*parts, b.new_zeros(a.shape[1], b.shape[1] - last)], 1)
