"""Attention whose scores a function of the program's own changes, or masks.

The functions are written for one score and are run for all of them at once by ``vmap``. Scores
are computed as a whole; a call without ``score_mod`` is ``scaled_dot_product_attention`` with
a mask.

Example::

    >>> from facula.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q = k = v = facula.eye(3).expand(1, 2, 3, 3)
    >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 3, 3)
    >>> flex_attention(q, k, v, block_mask=causal)[0, 0, 0]
    tensor([1., 0., 0.])
    >>> def nearest(score, b, h, q, k):
    ...     return score - 1000 * (q - k).abs()
    >>> flex_attention(q, k, v, score_mod=nearest)[0, 0, 2]
    tensor([0., 0., 1.])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypedDict

import facula
from facula import Tensor
from facula.nn.attention._block_mask import (
    DEFAULT_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE,
)
from facula.nn.attention._block_mask import (
    BlockMask,
    MaskFunction,
    block_sizes,
    dense_blocks,
    noop_mask,
    ordered_blocks,
)
from facula.nn.attention._scores import attend_to_scores

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

ScoreFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(TypedDict, total=False):
    """Settings of PyTorch's kernels that programs pass; they change no results."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]


class AuxRequest(NamedTuple):
    """What ``flex_attention`` returns beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with an :class:`AuxRequest`; None for the rest.

    ``lse`` is the logarithm of the sum of the exponentials of each query's scores, ``max_scores``
    the largest of them; both have the shape (batch, heads, queries).
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _for_all_scores(function: Callable[..., Tensor], takes_score: bool) -> Callable[..., Tensor]:
    """The function, for every batch, head, query and key."""
    first = (0,) if takes_score else ()
    for place in (3, 2, 1, 0):
        dims = first + tuple(0 if i == place else None for i in range(4))
        function = facula.vmap(function, in_dims=dims, randomness="different")
    return function


def _places(sizes: tuple[int, int, int, int], device: Any) -> list[Tensor]:
    return [facula.arange(size, device=device) for size in sizes]


def _takes_score(function: Callable[..., Tensor]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    required = sum(p.kind in kinds and p.default is p.empty for p in parameters)
    if required not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {required}")
    return required == 5


def create_mask(
    mod_fn: ScoreFunction | MaskFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """What a function says of every score, (B, H, Q_LEN, KV_LEN).

    A function of four arguments is one for masks. One of five changes scores; then the result is
    True where it leaves a score of 0 above minus infinity.

    Example::

        >>> from facula.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 3)
        tensor([[[[ True, False, False],
                  [ True,  True, False]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = _places(sizes, device)
    if _takes_score(mod_fn):
        zeros = facula.zeros(sizes, device=device)
        scores = _for_all_scores(mod_fn, takes_score=True)(zeros, *places)
        return facula.where(scores.isneginf(), False, True)
    return _for_all_scores(mod_fn, takes_score=False)(*places)


def create_block_mask(
    mask_mod: MaskFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The mask of ``flex_attention`` that a function describes.

    Args:
        mask_mod: takes the numbers of a batch, a head, a query and a key, and returns True where
            the query may look at the key.
        B: the batches; None if the mask is the same for all.
        H: the heads of the queries; None if the mask is the same for all.
        Q_LEN: how many queries.
        KV_LEN: how many keys.
        device: where the mask lies.
        BLOCK_SIZE: of queries and keys.
        separate_full_blocks: list blocks without a masked score apart.

    The other arguments are settings of PyTorch's kernels and change nothing.

    Example::

        >>> from facula.nn.attention.flex_attention import create_block_mask
        >>> near = lambda b, h, q, k: (q - k).abs() <= 1
        >>> create_block_mask(near, None, None, 6, 6, BLOCK_SIZE=2).to_dense()[0, 0]
        tensor([[1, 1, 0],
                [1, 1, 1],
                [0, 1, 1]], dtype=facula.int32)
    """
    if not callable(mask_mod):
        raise TypeError(f"{mask_mod!r} is not a callable object")
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype != facula.bool:
        raise AssertionError(f"mask.dtype must be facula.bool, got {mask.dtype}")
    rows, columns = block_sizes(BLOCK_SIZE)
    below, beside = -Q_LEN % rows, -KV_LEN % columns
    mask = facula.nn.functional.pad(mask, (0, beside, 0, below))
    # (B, H, Q blocks, rows, K blocks, columns): how many scores of each block are seen.
    counts = mask.unflatten(-1, (-1, columns)).unflatten(2, (-1, rows)).sum((3, 5))
    full = counts == rows * columns
    if not separate_full_blocks:
        full = facula.zeros_like(full)
    lists = (*ordered_blocks((counts > 0) & ~full), *ordered_blocks(full))
    return BlockMask.from_kv_blocks(
        *(lists if separate_full_blocks else lists[:2]),
        BLOCK_SIZE=(rows, columns),
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )


def _check_masks(masks: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")


def and_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """The mask function that is True where all of ``mask_mods`` are."""
    _check_masks(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=facula.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """The mask function that is True where any of ``mask_mods`` is."""
    _check_masks(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=facula.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _check(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, others = query.shape[1], key.shape[1]
    if not gqa and heads != others:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if gqa and heads % others:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={others}."
        )
    batches = query.shape[0], key.shape[0]
    if batches[0] != batches[1] and mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, Bq={batches[0]}, and Bkv={batches[1]}."
        )
    if batches[0] != batches[1] and batches[1] != 1:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or Bkv=1, "
            f"but got Bq={batches[0]} and Bkv={batches[1]}."
        )
    if query.shape[3] != key.shape[3]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.shape[3]} and E={key.shape[3]}."
        )
    if mask is None:
        return
    lengths = query.shape[2], key.shape[2]
    if lengths == tuple(mask.seq_lengths):
        return
    made = (
        f"block_mask was created for block_mask.shape={mask.shape} but got q_len={lengths[0]} and "
        f"kv_len={lengths[1]}. As the block mask was created for a "
    )
    if lengths[0] > mask.seq_lengths[0] or lengths[1] > mask.seq_lengths[1]:
        raise ValueError(
            f"{made}smaller length than you're using it for, you likely need to create a new "
            "block mask."
        )
    raise ValueError(
        f"{made}larger length than you're using it for, you can either 1. create a new block mask "
        "with the correct length, or 2. 'adjust' the existing block mask to the correct length by "
        "calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to "
        "the upper left corner, which does not work for all mask_mods!"
    )


def _allowed(mask: BlockMask, query: Tensor) -> Tensor:
    """True where a query may look, (B or 1, H or 1, queries, keys)."""
    batch, heads = (mask.shape[-4], mask.shape[-3]) if len(mask.shape) >= 4 else (1, 1)
    sizes = (query.shape[0] if batch != 1 else 1, query.shape[1] if heads != 1 else 1)
    places = _places((*sizes, *mask.seq_lengths), query.device)

    def of_blocks(blocks: Tensor) -> Tensor:
        for dim in (-2, -1):
            blocks = blocks.repeat_interleave(mask.BLOCK_SIZE[dim], dim)
        return blocks[..., : mask.seq_lengths[0], : mask.seq_lengths[1]].bool()

    partial = of_blocks(dense_blocks(mask.kv_num_blocks, mask.kv_indices))
    allowed = _for_all_scores(mask.mask_mod, takes_score=False)(*places) & partial
    if mask.full_kv_num_blocks is None or mask.full_kv_indices is None:
        return allowed
    return allowed | of_blocks(dense_blocks(mask.full_kv_num_blocks, mask.full_kv_indices))


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreFunction | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]:
    """Attention with scores that ``score_mod`` changes and ``block_mask`` masks.

    A query that may look at no key has an output of zeros, and minus infinity as its ``lse``.

    Args:
        query: (B, heads, queries, E).
        key: (B, heads, keys, E).
        value: (B, heads, keys, Ev).
        score_mod: takes a score and the numbers of its batch, head, query and key, and returns
            the score to use. Gradients flow to the tensors it closes over.
        block_mask: which scores count, from :func:`create_block_mask`.
        scale: of the products; 1 / sqrt(E) by default.
        enable_gqa: the heads of key and value may be fewer; each serves as many of query.
        return_lse: return the logarithms of the sums of exponentials of scores as well.
        kernel_options: accepted, and without an effect.
        return_aux: what else to return, as an :class:`AuxOutput`.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
    allowed = None if block_mask is None else _allowed(block_mask, query)
    wanted = AuxRequest(lse=return_lse) if return_aux is None else return_aux
    same = query.dtype == key.dtype == value.dtype
    if score_mod is None and not any(wanted) and same and query.is_floating_point():
        output = facula.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, scale=scale, enable_gqa=enable_gqa
        )
        return output if return_aux is None else (output, AuxOutput())

    change = None
    if score_mod is not None:
        per_score = _for_all_scores(score_mod, takes_score=True)

        def change(scores: Tensor) -> Tensor:
            return per_score(scores, *_places(tuple(scores.shape), scores.device))

    output, lse, largest = attend_to_scores(query, key, value, scale, allowed, change)
    if return_lse:
        return output, lse
    if return_aux is None:
        return output
    return output, AuxOutput(
        lse=lse if wanted.lse else None, max_scores=largest if wanted.max_scores else None
    )
