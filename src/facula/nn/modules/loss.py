"""Losses as modules."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from facula import Tensor
from facula.nn import _reduction, functional
from facula.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _reduction.legacy_get_string(size_average, reduce, stacklevel=5)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.weight: Tensor | None


class L1Loss(_Loss):
    """The absolute differences. ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.L1Loss()
        >>> loss(facula.tensor([1., 2.]), facula.tensor([1., 4.]))
        tensor(1.)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The negative of logarithms of probabilities at the target classes, see
    :func:`facula.nn.functional.nll_loss`.

    Shape: input (N, C), (N, C, d1, ...) or (C,), target (N,), (N, d1, ...) or ().

    Example::

        >>> loss = facula.nn.NLLLoss()
        >>> loss(facula.tensor([[-1., -2.]]), facula.tensor([1]))
        tensor(2.)
    """

    __constants__ = ["ignore_index", "reduction"]
    ignore_index: int

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """The older name of :class:`NLLLoss` for images.

    Example::

        >>> loss = facula.nn.NLLLoss()
        >>> loss(-facula.ones(1, 2, 1, 1), facula.zeros(1, 1, 1).long())
        tensor(1.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of Poisson counts, see
    :func:`facula.nn.functional.poisson_nll_loss`.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.PoissonNLLLoss()
        >>> loss(facula.zeros(1), facula.ones(1))
        tensor(1.)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]
    log_input: bool
    full: bool
    eps: float

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return functional.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log likelihood of normal numbers with given variances, see
    :func:`facula.nn.functional.gaussian_nll_loss`.

    Shape: input and target of one shape, var of the same, or one number for each row.

    Example::

        >>> loss = facula.nn.GaussianNLLLoss()
        >>> loss(facula.zeros(1), facula.ones(1), facula.ones(1))
        tensor(0.5000)
    """

    __constants__ = ["full", "eps", "reduction"]
    full: bool
    eps: float

    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return functional.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """The divergence of distributions from the one whose logarithms are given, see
    :func:`facula.nn.functional.kl_div`. ``reduction="batchmean"`` is the mathematical one.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.KLDivLoss(reduction="sum")
        >>> loss(facula.zeros(1), facula.ones(1))
        tensor(0.)
    """

    __constants__ = ["reduction"]
    log_target: bool

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )


class MSELoss(_Loss):
    """The squared differences. ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.MSELoss()
        >>> loss(facula.tensor([1., 2.]), facula.tensor([1., 4.]))
        tensor(2.)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """The cross entropy of probabilities of two outcomes, see
    :func:`facula.nn.functional.binary_cross_entropy`.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.BCELoss()
        >>> loss(facula.tensor([0.5]), facula.tensor([1.]))
        tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy(
            input, target, weight=self.weight, reduction=self.reduction
        )


class BCEWithLogitsLoss(_Loss):
    """:class:`BCELoss` of ``sigmoid(input)`` without loss of digits; the terms of positive targets
    are multiplied with ``pos_weight``.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.BCEWithLogitsLoss()
        >>> loss(facula.zeros(1), facula.ones(1))
        tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)
        self.weight: Tensor | None
        self.pos_weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """Distances of similar pairs (target 1), and what is missing to ``margin`` of others (target
    -1).

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.HingeEmbeddingLoss()
        >>> loss(facula.tensor([2.]), facula.tensor([1.]))
        tensor(2.)
    """

    __constants__ = ["margin", "reduction"]
    margin: float

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.hinge_embedding_loss(
            input, target, margin=self.margin, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """The margin between several labels and the other classes, see
    :func:`facula.nn.functional.multilabel_margin_loss`.

    Shape: (N, C) or (C,), target of the same shape: labels that end with -1.

    Example::

        >>> loss = facula.nn.MultiLabelMarginLoss()
        >>> loss(facula.tensor([[0.1, 0.2, 0.8]]), facula.tensor([[2, -1, 0]]))
        tensor(0.2333)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squares of differences below ``beta``, absolute ones above.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.SmoothL1Loss()
        >>> loss(facula.tensor([1., 2.]), facula.tensor([1., 4.]))
        tensor(0.7500)
    """

    __constants__ = ["reduction"]
    beta: float

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squares of differences up to ``delta``, absolute ones above, times ``delta``.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.HuberLoss()
        >>> loss(facula.tensor([1., 2.]), facula.tensor([1., 4.]))
        tensor(0.7500)
    """

    __constants__ = ["reduction", "delta"]
    delta: float

    def __init__(
        self,
        reduction: str = "mean",
        delta: float = 1.0,
    ) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """``log(1 + exp(-target * input))`` for targets 1 and -1.

    Shape: input and target of one shape.

    Example::

        >>> loss = facula.nn.SoftMarginLoss()
        >>> loss(facula.zeros(1), facula.ones(1))
        tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy between logits and classes or probabilities of them, see
    :func:`facula.nn.functional.cross_entropy`.

    Shape: input (N, C), (N, C, d1, ...) or (C,), target (N,), (N, d1, ...) or ();
    or a target of the shape of the input with probabilities.

    Example::

        >>> loss = facula.nn.CrossEntropyLoss()
        >>> loss(facula.zeros(1, 4), facula.tensor([2]))
        tensor(1.3863)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]
    ignore_index: int
    label_smoothing: float

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """:class:`CrossEntropyLoss` of the results of a linear layer, which belongs to the module.

    Args:
        in_features: size of the last dimension of the input.
        num_classes: the number of classes C.
        out_features: further dimensions of the logits, (C, *out_features).
        bias: whether the layer has a bias.
        options: accepted; the logits are computed at once.

    Shape: (N, in_features) or (in_features,), target as of :class:`CrossEntropyLoss`.

    Example::

        >>> loss = facula.nn.LinearCrossEntropyLoss(3, 4)
        >>> loss(facula.zeros(1, 3), facula.tensor([2]))
        tensor(1.3863, grad_fn=<NllLossBackward0>)
    """

    __constants__ = [
        "num_classes",
        "out_features",
        "reduction",
        "ignore_index",
        "label_smoothing",
    ]
    num_classes: int
    out_features: tuple[int, ...]
    ignore_index: int | None
    label_smoothing: float

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        from facula.nn.modules.linear import Linear

        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, None, None, reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        width = num_classes * math.prod(out_features)
        self.linear = Linear(in_features, width, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, -1),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of :class:`BCEWithLogitsLoss`.

    Shape: (N, C), target of the same shape.

    Example::

        >>> loss = facula.nn.MultiLabelSoftMarginLoss()
        >>> loss(facula.zeros(1, 2), facula.ones(1, 2))
        tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """How far pairs of vectors are from one direction (target 1), or nearer than ``margin`` to one
    (target -1).

    Shape: two inputs (N, D) or (D,), target (N,) or ().

    Example::

        >>> loss = facula.nn.CosineEmbeddingLoss()
        >>> loss(facula.ones(1, 2), -facula.ones(1, 2), facula.ones(1))
        tensor(2.)
    """

    __constants__ = ["margin", "reduction"]
    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return functional.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """How much is missing to ``margin`` in the order of pairs: the first is larger (target 1) or
    smaller (target -1).

    Shape: three tensors of one shape.

    Example::

        >>> loss = facula.nn.MarginRankingLoss()
        >>> loss(facula.zeros(1), facula.ones(1), facula.ones(1))
        tensor(1.)
    """

    __constants__ = ["margin", "reduction"]
    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return functional.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """The margin between the class and all others, see
    :func:`facula.nn.functional.multi_margin_loss`.

    Shape: (N, C) or (C,), target (N,) or ().

    Example::

        >>> loss = facula.nn.MultiMarginLoss()
        >>> loss(facula.tensor([[0.1, 0.2, 0.8]]), facula.tensor([2]))
        tensor(0.2333)
    """

    __constants__ = ["p", "margin", "reduction"]
    p: int
    margin: float

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, "
                f"got {weight.dim()}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginLoss(_Loss):
    """How much is missing to ``margin`` between the distances of an anchor to a positive and to a
    negative example, see :func:`facula.nn.functional.triplet_margin_loss`.

    Shape: three tensors (N, D) or (D,).

    Example::

        >>> x = facula.zeros(1, 2)
        >>> facula.nn.TripletMarginLoss()(x, x, x)
        tensor(1.)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]
    margin: float
    p: float
    eps: float
    swap: bool

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with a distance of one's own, by default
    :class:`PairwiseDistance`.

    Shape: three tensors that ``distance_function`` takes.

    Example::

        >>> loss = facula.nn.TripletMarginWithDistanceLoss(
        ...     distance_function=lambda a, b: (a - b).abs().sum(-1)
        ... )
        >>> loss(facula.zeros(1, 2), facula.ones(1, 2), facula.zeros(1, 2))
        tensor(3.)
    """

    __constants__ = ["margin", "swap", "reduction"]
    margin: float
    swap: bool

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                f"got {margin} instead"
            )
        if distance_function is None:
            from facula.nn.modules.distance import PairwiseDistance

            distance_function = PairwiseDistance()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """The connectionist temporal classification loss, see :func:`facula.nn.functional.ctc_loss`.

    Shape: log_probs (T, N, C) or (T, C), targets (N, S) or (sum of target_lengths,), lengths (N,).

    Example::

        >>> p = facula.log_softmax(facula.zeros(3, 1, 2), 2)
        >>> facula.nn.CTCLoss()(p, facula.tensor([[1]]), (3,), (1,))
        tensor(0.2877)
    """

    __constants__ = ["blank", "reduction"]
    blank: int
    zero_infinity: bool

    def __init__(
        self,
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return functional.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
