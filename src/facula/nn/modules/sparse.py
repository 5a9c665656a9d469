"""Tables of vectors that are looked up by index."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.nn import functional, init
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What both tables have: a weight of rows, one of which may stand for padding."""

    num_embeddings: int
    embedding_dim: int
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    padding_idx: int | None
    sparse: bool
    weight: Tensor

    def _set_padding(self, padding_idx: int | None) -> None:
        if padding_idx is not None:
            rows = self.num_embeddings
            if not -rows <= padding_idx < max(rows, 1):
                raise AssertionError(
                    f"Padding_idx must be within num_embeddings: got {padding_idx} with {rows} rows"
                )
            padding_idx %= max(rows, 1)
        self.padding_idx = padding_idx

    def _make_weight(self, given: Tensor | None, trained: bool, device: Any, dtype: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            fresh = facula.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(fresh, requires_grad=trained)
            self.reset_parameters()
        elif tuple(given.shape) != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: expected "
                f"{shape}, got {tuple(given.shape)}"
            )
        else:
            self.weight = Parameter(given, requires_grad=trained)

    def reset_parameters(self) -> None:
        """Draws a new table of standard normal numbers; the padding row is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with facula.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _options(self) -> list[str]:
        """How the norm and the gradient are treated, where that is not the default."""
        named = []
        if self.max_norm is not None:
            named.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            named.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            named.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        return named


def _rows_and_columns(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(
            "Embeddings parameter is expected to be 2-dimensional, got shape "
            f"{tuple(embeddings.shape)}"
        )
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(_Table):
    """A table of ``num_embeddings`` vectors of size ``embedding_dim``, looked up by index.

    Args:
        padding_idx: a row that starts as zeros and gets no gradient.
        max_norm: rows that are looked up are scaled down in place to this ``norm_type``-norm.
        scale_grad_by_freq: divides gradients by how often their row is in the batch.
        sparse: whether the gradient of the weight is a sparse tensor, with the rows looked up.

    Shape: indices (*) to (*, embedding_dim). ``weight`` is (num_embeddings, embedding_dim),
    standard normal.

    Example::

        >>> table = facula.nn.Embedding(10, 3, padding_idx=0)
        >>> table(facula.tensor([[0, 2]]))[0, 0]
        tensor([0., 0., 0.], grad_fn=<SelectBackward0>)
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    freeze: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self._set_padding(padding_idx)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_weight(_weight, not _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return functional.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        parts += self._options()
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """A table with given rows, which are not trained unless ``freeze`` is ``False``.

        Example::

            >>> table = facula.nn.Embedding.from_pretrained(facula.tensor([[1., 2.], [3., 4.]]))
            >>> table(facula.tensor([1]))
            tensor([[3., 4.]])
        """
        rows, columns = _rows_and_columns(embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima over bags of a table's rows, without making the rows.

    Args:
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        include_last_offset: the last offset is the end of the last bag instead of its start.
        padding_idx: a row that is left out of every bag.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in :class:`Embedding`.

    Shape: indices (bags, size), or a vector with ``offsets`` (bags,), to (bags, embedding_dim).
    ``per_sample_weights``, in the shape of the indices, scales the rows of a sum.

    Example::

        >>> bags = facula.nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(facula.tensor([1, 2, 4, 5]), facula.tensor([0, 3])).shape
        facula.Size([2, 3])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]
    mode: str
    include_last_offset: bool

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_padding(padding_idx)
        self._make_weight(_weight, True, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}", *self._options()]
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:
        """A table with given rows, which are not trained unless ``freeze`` is ``False``.

        Example::

            >>> rows = facula.tensor([[1., 2.], [3., 4.]])
            >>> bags = facula.nn.EmbeddingBag.from_pretrained(rows)
            >>> bags(facula.tensor([[0, 1]]))
            tensor([[2., 3.]])
        """
        rows, columns = _rows_and_columns(embeddings)
        bags = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bags.weight.requires_grad = not freeze
        return bags
