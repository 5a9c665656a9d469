"""Comparing modules with PyTorch's: the same seed, the same weights, results and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from package_under_test import F


def flat(result: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if hasattr(result, "shape"):
        return [result]
    return [t for part in result if part is not None for t in flat(part)]


def to_facula(value: Any, requires_grad: bool = False) -> Any:
    """A tensor of PyTorch as one of Facula; also within tuples."""
    if isinstance(value, tuple):
        return tuple(to_facula(v, requires_grad) for v in value)
    if not hasattr(value, "detach"):
        return value
    tensor = F.from_numpy(value.detach().numpy().copy())
    return tensor.requires_grad_(requires_grad) if tensor.is_floating_point() else tensor


def same_values(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(
        ours.detach().double().numpy(),
        theirs.detach().double().numpy(),
        rtol=tolerance,
        atol=tolerance,
    )


def twins(torch: Any, name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The module of both packages, made with the same seed; they must be the same."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **kwargs)
    F.manual_seed(0)
    ours = getattr(F.nn, name)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        same_values(mine, other, 1e-6)
    return ours, theirs


def same_training(torch: Any, ours: Any, theirs: Any, *inputs: Any, **options: Any) -> None:
    """Results, gradients of the inputs and of the parameters."""
    given = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    mine = [to_facula(t, requires_grad=True) for t in given]
    expected = flat(theirs(*given, **options))
    converted = {k: to_facula(v) for k, v in options.items()}
    actual = flat(ours(*mine, **converted))
    assert len(actual) == len(expected)
    generator = torch.Generator().manual_seed(1)
    loss_theirs, loss_ours = 0, 0
    for a, e in zip(actual, expected, strict=True):
        same_values(a, e)
        if e.requires_grad:
            weight = torch.randn(e.shape, generator=generator, dtype=e.dtype)
            loss_theirs = loss_theirs + (e * weight).sum()
            loss_ours = loss_ours + (a * to_facula(weight)).sum()
    loss_theirs.backward()
    loss_ours.backward()
    for a, e in zip(mine, given, strict=True):
        if e.grad is not None:
            same_values(a.grad, e.grad, 1e-4)
    for a, e in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (a.grad is None) == (e.grad is None)
        if e.grad is not None:
            same_values(a.grad, e.grad, 1e-4)
