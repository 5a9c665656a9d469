"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import facula
from facula import Tensor
from facula.nn.modules.module import Module
from facula.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module: Module, name: str) -> Tensor:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


# ---- orthogonal matrices


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    identity = facula.eye(k, dtype=q.dtype, device=q.device)
    return facula.allclose(q.mH @ q, identity, atol=10.0 * n * facula.finfo(q.dtype).eps)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The orthogonal factor of a matrix, with the signs that make it unique."""
    x, tau = facula.geqrf(a)
    q = facula.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Any matrix to one with orthonormal columns, or rows when it is wide."""

    base: Tensor

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            # The map is taken around this matrix; it comes with the first assignment.
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map is _OrthMaps.householder:
            a = x.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = facula.linalg.householder_product(a, tau)
            # The diagonal of x holds only signs.
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                fill = x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)
                x = facula.cat([x, fill], dim=-1)
            a = x - x.mH
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                q = facula.matrix_exp(a)
            else:
                identity = facula.eye(n, dtype=a.dtype, device=a.device)
                q = facula.linalg.solve(
                    facula.add(identity, a, alpha=-0.5), facula.add(identity, a, alpha=0.5)
                )
            q = q[..., :k] if n != k else q
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    @facula.no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {q.shape}."
            )
        given = q
        wide = q.size(-2) < q.size(-1)
        q = q.mT if wide else q
        n, k = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            a, tau = facula.geqrf(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            # A reflector with tau = 0 is the identity, whose diagonal has the other sign.
            diagonal[tau == 0.0] *= -1
            return a.mT if wide else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        else:
            rest = facula.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _make_orthogonal(facula.cat([q, rest], dim=-1))
        self.base = q
        # -1 on the diagonal: the exponential and Cayley maps take it to the identity, and for
        # Householder products it holds the signs.
        start = facula.zeros_like(given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a matrix, or a batch of them, orthogonal or unitary.

    Args:
        module: the module.
        name: the name of its parameter.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the exponential for
            square and complex matrices, Householder products for others.
        use_trivialization: whether the map is taken around the first value, which makes
            assignments possible and training easier.

    Returns:
        The module.

    Example::

        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.tensor([[1., 2.], [3., 4.]]))
        >>> _ = facula.nn.utils.parametrizations.orthogonal(m)
        >>> facula.allclose(m.weight.T @ m.weight, facula.eye(2), atol=1e-6)
        True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    made = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


# ---- weight norm


class _WeightNorm(Module):
    """A size and a direction to their product."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / facula.norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return facula.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a weight into its norm and its direction, which are trained apart.

    The state dict has ``parametrizations.<name>.original0`` (the norm) and ``original1``; state
    dicts of the older ``nn.utils.weight_norm`` are accepted.

    Args:
        module: the module.
        name: the name of its parameter.
        dim: the dimension that keeps norms of its own; None for one norm of everything.

    Returns:
        The module.

    Example::

        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.tensor([[3., 4.]]))
        >>> _ = facula.nn.utils.parametrizations.weight_norm(m)
        >>> m.parametrizations.weight.original0.detach()
        tensor([[5.]])
        >>> m.weight.detach()
        tensor([[3., 4.]])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ---- spectral norm


def _normalized(x: Tensor, eps: float) -> Tensor:
    return x / x.norm().clamp_min(eps)


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, estimated by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but "
                f"got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight.detach())
            u = matrix.new_empty(matrix.size(0)).normal_(0, 1)
            v = matrix.new_empty(matrix.size(1)).normal_(0, 1)
            self.register_buffer("_u", _normalized(u, eps))
            self.register_buffer("_v", _normalized(v, eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).flatten(1)

    @facula.no_grad()
    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        # In place, so that copies of the module on other devices share the vectors.
        for _ in range(n_power_iterations):
            self._u.copy_(_normalized(facula.mv(matrix, self._v), self.eps))
            self._v.copy_(_normalized(facula.mv(matrix.H, self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return _normalized(weight, self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # The vectors change in the next call, which may come before the backward pass.
        u, v = self._u.clone(), self._v.clone()
        return weight / facula.vdot(u, facula.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by its spectral norm.

    Args:
        module: the module.
        name: the name of its parameter.
        n_power_iterations: how many power iterations each forward pass in training does.
        eps: the smallest norm that is divided by.
        dim: the dimension of the outputs; 1 for transposed convolutions and 0 for others by
            default.

    Returns:
        The module.

    Example::

        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.tensor([[3., 0.], [0., 4.]]))
        >>> _ = facula.nn.utils.parametrizations.spectral_norm(m)
        >>> bool((facula.linalg.matrix_norm(m.weight, 2) - 1).abs() < 1e-3)
        True
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if is_transposed_convolution(module) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


def is_transposed_convolution(module: Module) -> bool:
    """True for the convolutions whose weight has the outputs in its second dimension."""
    return any(
        kind.__name__ in ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
        for kind in type(module).__mro__
    )
