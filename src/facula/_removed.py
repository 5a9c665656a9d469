"""Functions that PyTorch has taken away, which say what is to be called instead."""

from __future__ import annotations

from typing import Any, NoReturn

from facula import _C

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]


def _raise(advice: str) -> NoReturn:
    raise RuntimeError(
        f"This function was deprecated since version 1.9 and is now removed. {advice}"
    )


def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Any:
    """Removed; see :func:`facula.linalg.matrix_rank`.

    Example::

        >>> facula.linalg.matrix_rank(facula.eye(2))
        tensor(2)
    """
    _raise("Use linalg.matrix_rank, where 'symmetric' is called 'hermitian'.")


def solve(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed; see :func:`facula.linalg.solve`.

    Example::

        >>> facula.linalg.solve(facula.eye(2) * 2, facula.ones(2))
        tensor([0.5000, 0.5000])
    """
    _raise(
        "Use linalg.solve, which has the matrix first, solve(A, B), and returns the solution "
        "alone; linalg.lu_factor gives the factors."
    )


def lstsq(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed; see :func:`facula.linalg.lstsq`.

    Example::

        >>> facula.linalg.lstsq(facula.eye(2), facula.ones(2, 1)).solution.flatten()
        tensor([1., 1.])
    """
    _raise(
        "Use linalg.lstsq, which has the matrix first, lstsq(A, B), and returns residuals in a "
        "field of their own; linalg.qr gives the decomposition."
    )


def eig(input: Any, eigenvectors: bool = False, *, out: Any = None) -> Any:
    """Removed; see :func:`facula.linalg.eig`.

    Example::

        >>> facula.linalg.eigvals(facula.eye(2))
        tensor([1.+0.j, 1.+0.j])
    """
    _raise("Use linalg.eigvals, or linalg.eig with eigenvectors=True; their results are complex.")


def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> Any:
    """Removed; see :func:`facula.linalg.eigh`.

    Example::

        >>> facula.linalg.eigvalsh(facula.eye(2))
        tensor([1., 1.])
    """
    _raise(
        "Use linalg.eigvalsh, or linalg.eigh with eigenvectors=True. They read the lower triangle; "
        "UPLO='U' reads the upper one, as symeig did by default."
    )


def _as_method(name: str, *parameters: str) -> None:
    """Methods of the same names; ``parameters`` are those that must be given."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        missing = [p for p in parameters[len(args) :] if p not in kwargs]
        if missing:
            raise TypeError(
                f"Tensor.{name}() missing 1 required positional argument: '{missing[0]}'"
            )
        globals()[name](self, *(None for _ in parameters))

    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = globals()[name].__doc__
    setattr(_C.Tensor, name, method)


_as_method("symeig")
_as_method("eig")
_as_method("lstsq", "other")
_as_method("solve", "other")
