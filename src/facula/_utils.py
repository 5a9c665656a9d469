"""What code that exchanges gradients and errors is written with."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import facula
from facula import Tensor

__all__: list[str] = []


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements in one dimension, tensor after tensor."""
    return facula.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of ``flat`` with the shapes of ``tensors``."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one type that have no more than ``size_limit`` bytes together, or are
    alone. Tensors of a type stay in their order."""
    chunks: dict[str, list[Tensor]] = {}
    totals: dict[str, int] = {}
    for t in tensors:
        parts = (t._indices(), t._values()) if t.is_sparse else (t,)
        size = sum(part.numel() * part.element_size() for part in parts)
        kind = t.type()
        if chunks.get(kind) and totals[kind] + size > size_limit:
            yield chunks.pop(kind)
            totals[kind] = 0
        chunks.setdefault(kind, []).append(t)
        totals[kind] = totals.get(kind, 0) + size
    yield from chunks.values()


def _get_all_device_indices() -> list[int] | None:
    """The indices of all CUDA devices; None where there are none."""
    return list(range(facula.cuda.device_count())) if facula.cuda.is_available() else None


class KeyErrorMessage(str):
    """The text of a KeyError, which would be shown in quotes and on one line."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception of another thread or process, with its traceback as text.

    Args:
        exc_info: what ``sys.exc_info()`` returned; by default it is asked now.
        where: for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info if exc_info is not None else sys.exc_info()
        self.exc_type = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raises an exception of the same type whose text has the first one's traceback."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        try:
            if getattr(self.exc_type, "message", None):
                error = self.exc_type(message=text)
            else:
                error = self.exc_type(text)
        except Exception:  # it is made of other things than a text
            error = RuntimeError(text)
        raise error from None
