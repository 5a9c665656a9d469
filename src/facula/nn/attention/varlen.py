"""Attention within sequences of different lengths that lie one after the other in one tensor."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import facula
from facula import Tensor
from facula.nn.attention._scores import attend_to_scores

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What ``varlen_attn`` returns beside its output."""

    lse: bool = False


def _window(queries: int, keys: int, size: tuple[int, int], like: Tensor) -> Tensor | None:
    """True where a query may look; the last query stands at the last key."""
    left, right = size
    if left < 0 and right < 0:
        return None
    ends = facula.arange(queries, device=like.device).unsqueeze(1) + (keys - queries)
    distance = facula.arange(keys, device=like.device) - ends
    allowed = facula.ones_like(distance, dtype=facula.bool)
    if left >= 0:
        allowed &= distance >= -left
    if right >= 0:
        allowed &= distance <= right
    return allowed


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention within each of N sequences that lie one after the other.

    Args:
        query: (queries of all sequences, heads, E).
        key: (keys of all sequences, heads, E), or pages of keys with ``block_table``.
        value: like ``key``.
        cu_seq_q: where each sequence of queries begins, and the end, (N + 1).
        cu_seq_k: the same of keys. None if ``block_table`` says where they are.
        max_q: how long a sequence of queries is at most.
        max_k: how long a sequence of keys is at most.
        return_aux: asks for the logarithms of the sums of exponentials of scores, too.
        scale: of the products; 1 / sqrt(E) by default.
        window_size: how many keys before and after its own place a query sees; -1 for all.
            The last query of a sequence stands at the last key.
        enable_gqa: the heads of key and value may be fewer; each serves as many of query.
        seqused_k: how many keys of each sequence count, (N).
        block_table: the pages of each sequence, (N, pages); ``key`` and ``value`` are then
            (pages, size of a page, heads, E).
        num_splits: accepted, and without an effect.

    Returns:
        The output, (queries of all sequences, heads, E), and (queries, heads) of ``lse`` if asked.

    Example::

        >>> from facula.nn.attention.varlen import varlen_attn
        >>> x = facula.eye(4).unsqueeze(1)
        >>> starts = facula.tensor([0, 1, 4], dtype=facula.int32)
        >>> varlen_attn(x, x, x, starts, starts, 3, 3, window_size=(0, 0)).equal(x)
        True
    """
    heads, others = query.shape[1], key.shape[-2]
    if not enable_gqa and heads != others:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if heads % others:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={others}."
        )
    if block_table is not None and seqused_k is None:
        raise ValueError("block_table needs seqused_k, the number of keys of each sequence")
    if block_table is None and cu_seq_k is None:
        raise ValueError("cu_seq_k may be None only with block_table")

    starts_q = cu_seq_q.tolist()
    starts_k = None if cu_seq_k is None else cu_seq_k.tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    outputs, sums = [query.new_empty((0, heads, value.shape[-1]))], []
    for i, (begin, end) in enumerate(itertools.pairwise(starts_q)):
        if block_table is not None:
            keys, values = (t[block_table[i].long()].flatten(0, 1) for t in (key, value))
        else:
            assert starts_k is not None
            keys, values = (t[starts_k[i] : starts_k[i + 1]] for t in (key, value))
        if used is not None:
            keys, values = keys[: used[i]], values[: used[i]]
        # (heads, T, E), as attention wants it
        q, k, v = (t.transpose(0, 1) for t in (query[begin:end], keys, values))
        allowed = _window(q.shape[1], k.shape[1], window_size, query)
        if return_aux is not None and return_aux.lse:
            output, lse, _ = attend_to_scores(q, k, v, scale, allowed)
            sums.append(lse.transpose(0, 1))
        else:
            output = facula.nn.functional.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=allowed, scale=scale, enable_gqa=enable_gqa
            )[0]
        outputs.append(output.transpose(0, 1))
    output = facula.cat(outputs)
    if return_aux is not None and return_aux.lse:
        return output, facula.cat(sums)
    return output


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`varlen_attn` that writes its output to ``out``, and returns it."""
    result = varlen_attn(
        query,
        key,
        value,
        cu_seq_q,
        cu_seq_k,
        max_q,
        max_k,
        return_aux=return_aux,
        scale=scale,
        window_size=window_size,
        enable_gqa=enable_gqa,
        seqused_k=seqused_k,
        block_table=block_table,
        num_splits=num_splits,
    )
    if isinstance(result, tuple):
        return out.copy_(result[0]), result[1]
    return out.copy_(result)
