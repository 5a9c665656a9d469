"""The types of results that have names: ``facula.return_types.max(values=..., indices=...)``."""

from __future__ import annotations

from typing import Any

from facula import _C


class histogramdd(tuple[Any, ...]):
    """What :func:`facula.histogramdd` returns: made of one sequence, like all of these types."""

    __slots__ = ()
    n_fields = n_sequence_fields = 2
    n_unnamed_fields = 0

    def __new__(cls, parts: Any) -> histogramdd:
        parts = tuple(parts)
        if len(parts) != 2:
            raise TypeError(
                f"facula.return_types.histogramdd() takes a 2-sequence ({len(parts)}-sequence "
                "given)"
            )
        return super().__new__(cls, parts)

    hist = property(lambda self: self[0], doc="The counts.")
    bin_edges = property(lambda self: self[1], doc="The edges of the cells, by dimension.")

    def __repr__(self) -> str:
        return (
            f"facula.return_types.histogramdd(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"
        )


def __getattr__(name: str) -> Any:
    found = _C._result_type(name)
    if found is None:
        raise AttributeError(f"module 'facula.return_types' has no attribute {name!r}")
    globals()[name] = found
    return found
