"""Which blocks of an attention's scores are needed: the mask of ``flex_attention``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import Tensor

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

DEFAULT_BLOCK_SIZE = 128


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function that lets every query look at every key."""
    return batch.new_ones((), dtype=facula.bool)


def _of_a_part(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    # The function counts from the start of the whole mask; where a part of it begins is not known.
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def block_sizes(size: int | tuple[int, int]) -> tuple[int, int]:
    """The sizes of a block of queries and of one of keys."""
    return (size, size) if isinstance(size, int) else tuple(size)


def ordered_blocks(needed: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are needed, and all of its blocks, the needed ones first."""
    needed = needed.to(facula.int32)
    counts = needed.sum(-1)
    order = facula.argsort(needed, dim=-1, descending=True, stable=True)
    return counts.to(facula.int32).contiguous(), order.to(facula.int32).contiguous()


def dense_blocks(counts: Tensor, indices: Tensor, columns: int | None = None) -> Tensor:
    """A mark for each block that is among the first ``counts`` of its row of ``indices``."""
    columns = indices.shape[-1] if columns is None else columns
    listed = facula.arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    # What is not listed goes to a column of its own, which is cut off.
    places = facula.where(listed, indices.long(), columns)
    marks = facula.zeros(
        (*indices.shape[:-1], columns + 1), dtype=facula.int32, device=counts.device
    )
    return marks.scatter_(-1, places, 1)[..., :columns].contiguous()


def _turned(counts: Tensor | None, indices: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The same blocks, listed by their columns."""
    if counts is None or indices is None:
        return None, None
    return ordered_blocks(dense_blocks(counts, indices).transpose(-2, -1))


class BlockMask:
    """The blocks of scores that attention computes, and the function that masks within them.

    A row of blocks lists the *partial* blocks, in which the mask function is asked, and the *full*
    ones, which are taken as they are. Make one with :func:`create_block_mask`, or from such lists
    with :meth:`from_kv_blocks`.

    Example::

        >>> from facula.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2)
        >>> mask.to_dense()
        tensor([[[[1, 0],
                  [1, 1]]]], dtype=facula.int32)
        >>> mask.sparsity()
        25.0
    """

    _TENSOR_ATTRS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
        "dq_write_order",
        "dq_write_order_full",
        "dq_kv_order",
    )

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),
        mask_mod: MaskFunction = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for counts, indices, name in (
            (full_kv_num_blocks, full_kv_indices, "full_kv"),
            (q_num_blocks, q_indices, "q"),
            (full_q_num_blocks, full_q_indices, "full_q"),
        ):
            if (counts is None) != (indices is None):
                raise AssertionError(
                    f"{name}_num_blocks and {name}_indices must be both provided or omitted"
                )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
        mask_mod: MaskFunction | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
    ) -> BlockMask:
        """A mask of which the blocks of keys are given for each block of queries.

        Args:
            kv_num_blocks: how many partial blocks each block of queries has, (..., Q blocks).
            kv_indices: which, the first so many of the last dimension, (..., Q blocks, K blocks).
            full_kv_num_blocks: the same of full blocks.
            full_kv_indices: the same of full blocks.
            BLOCK_SIZE: of queries and keys.
            mask_mod: says within partial blocks what may be seen; everything by default.
            seq_lengths: how many queries and keys; whole blocks by default.
            compute_q_blocks: list the blocks of queries of each block of keys as well.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        sizes = block_sizes(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        queries: tuple[Any, ...] = (None, None, None, None)
        if compute_q_blocks:
            queries = (
                *_turned(kv_num_blocks, kv_indices),
                *_turned(full_kv_num_blocks, full_kv_indices),
            )
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *queries,
            BLOCK_SIZE=sizes,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Everything the mask consists of, with pairs taken apart if ``flatten``."""
        lengths: tuple[Any, ...] = (self.seq_lengths,)
        sizes: tuple[Any, ...] = (self.BLOCK_SIZE,)
        if flatten:
            lengths, sizes = self.seq_lengths, self.BLOCK_SIZE
        tensors = [getattr(self, name) for name in self._TENSOR_ATTRS]
        return (*lengths, *tensors, self.dq_kv_order_spt, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores: batch, heads, queries, keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are, masked ones included."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparsity(self) -> float:
        """The percentage of scores that are not computed; negative where blocks stick out."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """A 1 for each block that is computed, (..., Q blocks, K blocks)."""
        marks = dense_blocks(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return marks
        return marks | dense_blocks(self.full_kv_num_blocks, self.full_kv_indices)

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor | None]:
        tensors = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        return {name: None if t is None else change(t) for name, t in tensors.items()}

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and blocks of queries; its dimensions stay.

        The mask function of the result raises, since it would count from the wrong places: give
        the result one of its own before it is used.
        """
        index = index if isinstance(index, tuple) else (index,)
        # A number keeps its dimension, as a slice of one.
        index = tuple(
            slice(i, i + 1 if i != -1 else None) if isinstance(i, int) else i for i in index
        )
        full_counts, full_indices = self.full_kv_num_blocks, self.full_kv_indices
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[index],
            self.kv_indices[index],
            None if full_counts is None else full_counts[index],
            None if full_indices is None else full_indices[index],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_of_a_part,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of fewer queries and keys."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def cut(counts: Tensor | None, indices: Tensor | None) -> tuple[Any, Any]:
            if counts is None or indices is None:
                return None, None
            return ordered_blocks(dense_blocks(counts, indices)[..., :rows, :columns])

        partial = cut(self.kv_num_blocks, self.kv_indices)
        full = cut(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(
            *partial,
            *full,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
            compute_q_blocks=self.q_indices is not None,
        )

    def to(self, device: facula.device | str) -> BlockMask:
        """The mask with its lists on ``device``; what its function reads stays where it is."""
        return BlockMask(
            self.seq_lengths,
            **self._mapped(lambda t: t.to(device)),  # type: ignore[arg-type]
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            dq_kv_order_spt=self.dq_kv_order_spt,
        )

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the blocks: dark ones are computed, of light ones a part is.

        Args:
            grid_size: the most rows and columns to draw; -1 draws every block.
            limit: the most drawings, each of one batch and head.
        """
        dense = self.to_dense()
        rows, columns = dense.shape[-2:]
        most = block_sizes(grid_size)
        if grid_size == -1:
            most = (rows, columns)
        step = [max(1, -(-size // m)) for size, m in zip((rows, columns), most, strict=True)]

        def draw(blocks: Tensor) -> str:
            lines = []
            for top in range(0, rows, step[0]):
                line = ""
                for left in range(0, columns, step[1]):
                    share = blocks[top : top + step[0], left : left + step[1]].float().mean().item()
                    line += {0.0: "  ", 1.0: "██"}.get(share, "░░")
                lines.append(line + "\n")
            return "".join(lines)

        drawings = []
        places = facula.cartesian_prod(*[facula.arange(n) for n in dense.shape[:-2]])
        for number, place in enumerate(places.reshape(-1, max(1, dense.dim() - 2)).tolist()):
            if number == limit:
                drawings.append(
                    "...\nTo print out more, set BlockMask.to_string(limit=N)\nYou can also index "
                    "(BlockMask[batch, head]) to choose a specific batch or head"
                )
                break
            drawings.append(f"{tuple(place)}\n{draw(dense[tuple(place)])}")
        return "\n".join(drawings)

    def __str__(self) -> str:
        drawing = self.to_string().rstrip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{drawing}\n)"

    def __repr__(self) -> str:
        lines = []
        for name in self._TENSOR_ATTRS[:8]:
            tensor = getattr(self, name)
            lines.append(f"    {name}={None if tensor is None else tensor.shape},\n")
        function = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines.append(f"    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n")
        lines.append(f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={function}\n")
        return f"BlockMask(\n{''.join(lines)})"
