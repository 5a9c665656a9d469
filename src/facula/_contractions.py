"""Products of several tensors whose arguments come in a form that only Python has."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from facula import _C

__all__ = ["block_diag", "chain_matmul", "einsum", "tensordot"]

_ops = _C._operators


def _subscripts(labels: Sequence[Any]) -> str:
    """The letters of a list of label numbers; 0 to 25 are A to Z, 26 to 51 are a to z."""
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
        elif isinstance(label, int) and 0 <= label < 52:
            text += chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)
        else:
            raise ValueError(
                f"einsum(): subscript {label!r} in subscript list is not within the valid range "
                "[0, 52)"
            )
    return text


def _equation_of_lists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    for position, labels in enumerate(args[1::2]):
        if not isinstance(labels, (list, tuple)):
            raise TypeError(
                f"einsum(): expected the subscripts of operand {position} as a list, but got "
                f"{type(labels).__name__}"
            )
    equation = ",".join(_subscripts(labels) for labels in args[1::2])
    if len(args) % 2 == 1:
        if not isinstance(args[-1], (list, tuple)):
            raise TypeError("einsum(): the last operand has no list of subscripts")
        return f"{equation}->{_subscripts(args[-1])}", args[:-1:2]
    return equation, args[::2]


def einsum(*args: Any) -> Any:
    """The sum of products of tensors that an equation describes.

    Every dimension of an operand has a letter; letters that do not appear behind ``->`` are summed
    over. Without ``->`` the result has the letters that appear once, in alphabetical order. ``...``
    stands for the remaining dimensions, which broadcast, and a letter that is repeated for one
    operand takes its diagonal. Lists of numbers may be given in place of letters:
    ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Example::

        >>> a, b = facula.ones(2, 3), facula.ones(3, 4)
        >>> facula.einsum('ij,jk->ik', a, b)
        tensor([[3., 3., 3., 3.],
                [3., 3., 3., 3.]])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], _C.Tensor):
        equation, operands = _equation_of_lists(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if _C._has_torch_function(operands):
        return _C._handle_torch_function(einsum, operands, (equation, *operands), {})
    return _ops["_einsum"](equation, operands)


def _contracted_dims(a: Any, b: Any, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims)
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2:
            raise RuntimeError(
                "tensordot expects dims to be an int or a pair of lists of dimensions, but got "
                f"dims={dims}"
            )
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
        return first, second
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError(
            f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims} for shapes "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    return list(range(-dims, 0)), list(range(dims))


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """The sum of products over the last ``dims`` dimensions of ``a`` and the first ones of ``b``.

    ``dims`` may also be a pair of lists: the dimensions of ``a`` and those of ``b``.

    Example::

        >>> facula.tensordot(facula.ones(2, 3), facula.ones(3, 2), dims=1)
        tensor([[3., 3.],
                [3., 3.]])
    """
    if _C._has_torch_function((a, b)):
        return _C._handle_torch_function(tensordot, (a, b), (a, b), {"dims": dims, "out": out})
    return _ops["_tensordot"](a, b, *_contracted_dims(a, b, dims), out=out)


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of several matrices; see :func:`facula.linalg.multi_dot`.

    Example::

        >>> facula.chain_matmul(facula.ones(1, 2), facula.ones(2, 3), facula.ones(3, 1))
        tensor([[6.]])
    """
    if _C._has_torch_function(matrices):
        return _C._handle_torch_function(chain_matmul, matrices, matrices, {"out": out})
    warnings.warn(
        "chain_matmul is deprecated and will be removed in a future release. Use linalg.multi_dot, "
        "which takes a list of tensors.",
        stacklevel=2,
    )
    return _ops["_chain_matmul"](matrices, out=out)


def block_diag(*tensors: Any) -> Any:
    """A matrix with the given ones along its diagonal; vectors count as rows, numbers as 1 x 1.

    Example::

        >>> facula.block_diag(facula.tensor([[1, 2]]), facula.tensor(3))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    if _C._has_torch_function(tensors):
        return _C._handle_torch_function(block_diag, tensors, tensors, {})
    return _ops["_block_diag"](tensors)
