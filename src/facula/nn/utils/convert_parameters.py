"""All parameters of a model as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import facula
from facula import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _on_one_device(parameters: Iterable[Tensor]) -> Iterator[Tensor]:
    device = None
    for p in parameters:
        if device is not None and p.device != device:
            raise TypeError(
                "Found two parameters on different devices, this is currently not supported: "
                f"{device} and {p.device}."
            )
        device = p.device
        yield p


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other.

    Example::

        >>> facula.nn.utils.parameters_to_vector([facula.ones(2), facula.zeros(1, 1)])
        tensor([1., 1., 0.])
    """
    return facula.cat([p.view(-1) for p in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of pieces of a vector.

    Example::

        >>> p = facula.nn.Parameter(facula.zeros(2))
        >>> facula.nn.utils.vector_to_parameters(facula.tensor([1., 2.]), [p])
        >>> p.detach()
        tensor([1., 2.])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected facula.Tensor, but got: {facula.typename(vec)}")
    offset = 0
    for p in _on_one_device(parameters):
        n = p.numel()
        p.data = vec[offset : offset + n].view_as(p).data
        offset += n
