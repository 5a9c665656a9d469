"""Reductions and normalisations of the elements that a mask keeps.

``mask`` is a boolean tensor that broadcasts to the input; elements where it is False do not count.
Without a mask every element counts. A reduction over elements that are all masked out gives its
identity (0 for a sum, 1 for a product, ``-inf`` for a maximum), or NaN where it has none.

Example::

    >>> x = facula.tensor([[1., 2.], [3., 4.]])
    >>> facula.masked.sum(x, 1, mask=facula.tensor([[True, False], [True, True]]))
    tensor([1., 7.])
"""

from facula.masked._normalizations import (
    cumprod,
    cumsum,
    log_softmax,
    normalize,
    softmax,
    softmin,
)
from facula.masked._reductions import (
    amax,
    amin,
    argmax,
    argmin,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)
from facula.masked._tensor import (
    MaskedTensor,
    as_masked_tensor,
    is_masked_tensor,
    masked_tensor,
)

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
