"""Results that are not unique, and what of them is.

Signs, phases and the order of eigenvectors are free. For such rows a form says what to compare
instead of the results: it takes and gives NumPy arrays or tensors of either package, and it can be
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _svd(u: Any, s: Any, vh: Any) -> list[Any]:
    """Vectors up to phases; those beyond the singular values are free altogether."""
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return [abs(u), s, abs(vh), (u * s[..., None, :]) @ vh]


def _legacy_svd(u: Any, s: Any, v: Any) -> list[Any]:
    k = s.shape[-1]
    return [abs(u[..., :k]), s, abs(v[..., :k])]


def _eigh(values: Any, vectors: Any) -> list[Any]:
    return [values, abs(vectors)]


def _power_sums(values: Any) -> list[Any]:
    """Functions of the eigenvalues that do not depend on their order."""
    return [values.sum(-1), (values * values).sum(-1), (values * values * values).sum(-1)]


def _eig(values: Any, vectors: Any) -> list[Any]:
    sizes = (vectors * vectors.conj()).real  # smooth also where an element is 0
    return [*_power_sums(values), (sizes * values[..., None, :]).sum(-1), sizes.sum(-1)]


FORMS: dict[str, Callable[..., list[Any]]] = {
    "linalg_svd": _svd,
    "svd": _legacy_svd,
    "linalg_eigh": _eigh,
    "linalg_eig": _eig,
    "linalg_eigvals": _power_sums,
}


def comparable(row_id: str, results: list[Any]) -> list[Any]:
    """The results, or what is unique of them."""
    return FORMS[row_id](*results) if row_id in FORMS else results
