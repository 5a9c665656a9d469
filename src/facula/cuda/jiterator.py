"""Elementwise operators from CUDA source text, as PyTorch has them, do not exist here.

``facula.library`` adds operators that are written in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__: list[str] = []


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "facula.cuda.jiterator: operators from CUDA source text are not supported; write them in "
        "terms of others, or add one with facula.library"
    )


def _create_jit_fn(code_string: str, **kwargs: Any) -> Callable[..., Any]:
    """Raises: operators from CUDA source text are not supported."""
    _refuse()


def _create_multi_output_jit_fn(
    code_string: str, num_outputs: int, **kwargs: Any
) -> Callable[..., Any]:
    """Raises: operators from CUDA source text are not supported."""
    _refuse()
