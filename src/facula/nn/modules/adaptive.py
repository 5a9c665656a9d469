"""The softmax over many classes by frequency (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import facula
from facula import Tensor
from facula.nn.modules.container import ModuleList, Sequential
from facula.nn.modules.linear import Linear
from facula.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of targets among many classes, of which few are frequent.

    Classes are numbered by decreasing frequency. The first ``cutoffs[0]`` are in the head; each
    further range between cutoffs is a cluster, which the head counts as one class and which has a
    projection of its own, smaller by ``div_value`` each time.

    Args:
        in_features: features of the input.
        n_classes: classes.
        cutoffs: increasing positions where clusters begin.
        div_value: by how much the projections shrink from cluster to cluster.
        head_bias: a bias in the head.

    ``forward(input, target)`` takes (N, in_features) and (N,), or (in_features,) and a single
    target, and returns ``output``, the log-probability of each target, and ``loss``, their negative
    mean.

    Example::

        >>> softmax = facula.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
        >>> output, loss = softmax(facula.ones(3, 8), facula.tensor([0, 6, 19]))
        >>> output.shape, loss.shape
        (facula.Size([3]), facula.Size([]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        limits = list(cutoffs)
        if not limits:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            any(int(c) != c for c in limits)
            or limits != sorted(set(limits))
            or limits[0] <= 0
            or limits[-1] > n_classes - 1
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                f"order, where each value is between 1 and n_classes-1, got {limits} with "
                f"{n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*limits, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **made),
                    Linear(hidden, size, bias=False, **made),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:  # type: ignore[attr-defined]
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        batched = target_.dim() > 0
        if target_.dim() > 1:
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported; got shape "
                f"{tuple(target_.shape)}"
            )
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but "
                f"found inputs with sizes {list(input_.shape)}."
            )
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension, got "
                f"{input_.shape[0]} and {target_.shape[0]}."
            )
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel():
            least, most = int(target.min()), int(target.max())
            if least < 0 or most >= self.n_classes:
                raise RuntimeError(
                    f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                    f"[{least}, {most}] were found. "
                )
        # A target in a cluster counts as the cluster in the head, and then within it.
        output = input.new_zeros(target.shape[0])
        in_head = target.clone()
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().flatten()
            if rows.numel() == 0:
                continue
            scores = facula.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            within = (target.index_select(0, rows) - low).unsqueeze(1)
            output = output.index_copy(0, rows, scores.gather(1, within).squeeze(1))
            in_head = in_head.index_fill(0, rows, self.shortlist_size + i)
        head = facula.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = facula.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            within = facula.log_softmax(cluster(input), dim=1)
            parts.append(within + head[:, self.shortlist_size + i].unsqueeze(1))
        return facula.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row; clusters are looked into only where they win."""
        head = self.head(input)
        best = facula.argmax(head, dim=1)
        rows = (best >= self.shortlist_size).nonzero().flatten()
        if rows.numel():
            full = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
            best = best.index_copy(0, rows, facula.argmax(full, dim=1))
        return best
