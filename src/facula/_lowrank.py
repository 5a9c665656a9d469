"""Decompositions of which only a part is computed: randomised SVD and PCA, and LOBPCG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import facula
from facula import _C
from facula.autograd import Function

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]

_ops = _C._operators


# ---- randomised range finding (Halko, Martinsson and Tropp, 2009)


def _approximate_basis(A: Any, q: int, niter: int) -> Any:
    """An orthonormal basis of q columns that nearly spans the range of A (..., m, n)."""
    size = min(q, *A.shape[-2:]) if A.numel() == 0 else q
    random = facula.randn(A.shape[-1], size, dtype=A.dtype, device=A.device)
    Q = _ops["linalg.qr"](A @ random).Q
    for _ in range(niter):  # powers of A A^H make the singular values fall faster
        Q = _ops["linalg.qr"](A.mH @ Q).Q
        Q = _ops["linalg.qr"](A @ Q).Q
    return Q


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """An approximate singular value decomposition ``A - M = U @ diag(S) @ V.mH`` of rank ``q``.

    It projects on a random subspace, so that its cost goes with ``q`` and not with the smaller
    side; ``niter`` steps of power iteration make it more exact.

    Example::

        >>> A = facula.outer(facula.tensor([1., 2.]), facula.tensor([3., 4., 0.]))
        >>> U, S, V = facula.svd_lowrank(A, q=1)
        >>> S
        tensor([11.1803])
    """
    if _C._has_torch_function((A, M)):
        return _C._handle_torch_function(
            svd_lowrank, (A, M), (A,), {"q": q, "niter": niter, "M": M}
        )
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A = A.mH
    Q = _approximate_basis(A, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = _ops["linalg.svd"](Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Principal components of the rows of ``A``: ``svd_lowrank`` of the columns without their mean.

    ``V``'s columns are the principal directions, ``A @ V`` the data in these coordinates.

    Example::

        >>> data = facula.tensor([[1., 1.], [2., 2.], [3., 3.]])
        >>> round(facula.pca_lowrank(data, q=1)[1].item(), 4)
        2.0
    """
    if _C._has_torch_function((A,)):
        given = {"q": q, "center": center, "niter": niter}
        return _C._handle_torch_function(pca_lowrank, (A,), (A,), given)
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    if A.layout is not _C.strided:
        if A.dim() != 2:
            raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
        return svd_lowrank(A, q, niter=niter, M=A.sum(0, keepdim=True).to_dense() / m)
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True), q, niter=niter)


# ---- LOBPCG (Knyazev, 2001)


class LOBPCG:
    """One run of the method on one matrix; a tracker sees it after every step.

    tvars has the tensors that trackers may watch (E, X, S, R, rerr), ivars the counters istep and
    converged_count, and setting bvars["force_stop"] ends the run.
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        X: Any,
        iK: Any,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[LOBPCG], None] | None,
    ) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.E = facula.zeros(X.shape[-1], dtype=X.dtype, device=X.device)
        self.R = facula.zeros_like(X)
        self.S: Any = None
        self.ivars: dict[str, int] = {"istep": 1, "converged_count": 0}
        self.fvars: dict[str, float] = {
            "A_norm": float(_ops["linalg.vector_norm"](A)),
            "B_norm": 1.0 if B is None else float(_ops["linalg.vector_norm"](B)),
        }
        self.bvars: dict[str, bool] = {"force_stop": False}
        self.tvars: dict[str, Any] = {}

    def _times_B(self, X: Any) -> Any:
        return X if self.B is None else self.B @ X

    def _orthonormal(self, S: Any) -> Any:
        """A basis of the span of S with S^H B S = I; directions that depend on others go."""
        for _ in range(2):  # the second time removes what rounding left
            lengths = (S * self._times_B(S)).sum(0).clamp_min(0).sqrt()
            S = S[:, lengths > 0] / lengths[lengths > 0]
            values, vectors = _ops["linalg.eigh"](S.mH @ self._times_B(S))
            kept = values > values[-1] * S.shape[0] * facula.finfo(S.dtype).eps
            S = S @ (vectors[:, kept] / values[kept].sqrt())
        return S

    def _rayleigh_ritz(self, S: Any) -> None:
        values, vectors = _ops["linalg.eigh"](S.mH @ (self.A @ S))
        count = min(self.iparams["n"], values.shape[0])
        if self.bparams["largest"]:
            values, vectors = values.flip(0), vectors.flip(1)
        self.E, self.X = values[:count], S @ vectors[:, :count]

    def _update_residual(self) -> None:
        BX = self._times_B(self.X)
        self.R = self.A @ self.X - BX * self.E
        scale = self.X.norm(2, 0) * (self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"])
        errors = self.R.norm(2, 0) / scale
        count = 0
        for error in errors[: self.iparams["k"]].tolist():
            if not error <= self.fparams["tol"]:
                break
            count += 1
        self.ivars["converged_count"] = count
        self.tvars.update(E=self.E, X=self.X, S=self.S, R=self.R, rerr=errors)

    def _track(self) -> None:
        if self.tracker is not None:
            self.tracker(self)

    def run(self) -> None:
        self.S = self._orthonormal(self.X)
        self._rayleigh_ritz(self.S)
        self._update_residual()
        self._track()
        previous = None
        niter = self.iparams["niter"]
        while not self.bvars["force_stop"] and self.ivars["converged_count"] < self.iparams["k"]:
            if 0 <= niter <= self.ivars["istep"]:
                break
            self.ivars["istep"] += 1
            W = self.R if self.iK is None else self.iK @ self.R
            parts = [self.X, W] if previous is None else [self.X, W, previous]
            self.S = self._orthonormal(facula.cat(parts, 1))
            X = self.X
            self._rayleigh_ritz(self.S)
            # The part of the step that leaves the old subspace is the next search direction.
            previous = self.X - X @ (X.mH @ self._times_B(self.X))
            self._update_residual()
            self._track()


class _PartialEigh(Function):
    """The eigenpairs that LOBPCG found, with the derivative of the complete decomposition."""

    @staticmethod
    def forward(ctx: Any, A: Any, B: Any, E: Any, X: Any) -> tuple[Any, Any]:
        ctx.has_B = B is not None
        ctx.save_for_backward(A, E, X, *(() if B is None else (B,)))
        return E.clone(), X.clone()

    @staticmethod
    def backward(ctx: Any, grad_E: Any, grad_X: Any) -> tuple[Any, ...]:
        A, E, X, *rest = ctx.saved_tensors
        if A.layout is not _C.strided:
            raise ValueError(
                "lobpcg.backward does not support sparse input yet. "
                "Note that lobpcg.forward does though."
            )
        if ctx.needs_input_grad[1]:
            raise ValueError(
                "lobpcg.backward does not support differentiation with respect to the B input yet."
            )
        if rest:  # the problem without B is that of L^-1 A L^-H, with the vectors L^H X
            L = _ops["linalg.cholesky"](rest[0])
            inverse = _ops["linalg.inv"](L)
            A, X, grad_X = inverse @ A @ inverse.mH, L.mH @ X, inverse @ grad_X
        values, vectors = _ops["linalg.eigh"](A)
        difference = E.unsqueeze(-2) - values.unsqueeze(-1)
        # Pairs of equal eigenvalues: the vector itself, which does not move along itself.
        scale = values.abs().amax(-1, keepdim=True).unsqueeze(-1)
        same = difference.abs() <= scale * facula.finfo(E.dtype).eps ** 0.5
        weights = facula.where(same, 0, 1 / facula.where(same, 1, difference))
        inner = vectors @ (weights * (vectors.mH @ grad_X)) + X * grad_E.unsqueeze(-2)
        grad_A = inner @ X.mH
        if rest:
            grad_A = inverse.mH @ grad_A @ inverse
        return (grad_A + grad_A.mH) / 2, None, None, None


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[LOBPCG], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> Any:
    """The ``k`` largest (or smallest) eigenvalues and vectors of ``A x = lambda B x``.

    ``A`` (..., m, m) is symmetric, ``B`` symmetric and positive definite. ``X`` is a first
    approximation of the vectors, random with ``n`` columns by default, ``iK`` a preconditioner. The
    run ends when the relative residuals are below ``tol`` or after ``niter`` steps.

    Example::

        >>> A = facula.diag(facula.arange(1., 13.))
        >>> E, X = facula.lobpcg(A, k=1)
        >>> E.round(decimals=1)
        tensor([12.])
    """
    if _C._has_torch_function((A, B, X, iK)):
        given = {"k": k, "B": B, "X": X, "n": n, "iK": iK, "niter": niter, "tol": tol}
        given |= {"largest": largest, "method": method, "tracker": tracker}
        return _C._handle_torch_function(lobpcg, (A, B, X, iK), (A,), given)
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"lobpcg: A must be a batch of square matrices, got {tuple(A.shape)}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than "
            f"3 x the number of requested eigenpairs (={n})"
        )
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    default_tol = facula.finfo(A.dtype).eps ** 0.5
    fparams = {"tol": default_tol if tol is None else tol, **(ortho_fparams or {})}
    bparams = {"largest": True if largest is None else largest, **(ortho_bparams or {})}
    iparams |= ortho_iparams or {}

    batch = A.shape[:-2]

    def matrices(given: Any) -> list[Any]:
        count = facula.Size(batch).numel() if batch else 1
        if given is None:
            return [None] * count
        given = given.detach()
        if given.dim() == 2:  # also a sparse matrix
            return [given] * count
        return list(given.expand(*batch, *given.shape[-2:]).reshape(-1, *given.shape[-2:]))

    starts = matrices(X)
    values, vectors = [], []
    for a, b, x, preconditioner in zip(matrices(A), matrices(B), starts, matrices(iK), strict=True):
        if x is None:
            x = facula.randn(m, n, dtype=A.dtype, device=A.device)
        worker = LOBPCG(
            a, b, x, preconditioner, dict(iparams), fparams, bparams, method or "ortho", tracker
        )
        worker.run()
        values.append(worker.E[:k])
        vectors.append(worker.X[:, :k])
    E = facula.stack(values).reshape(*batch, k)
    V = facula.stack(vectors).reshape(*batch, m, k)
    if facula.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad)):
        return _PartialEigh.apply(A, B, E, V)
    return E, V
