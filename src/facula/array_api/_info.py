"""What this implementation of the standard can do."""

from __future__ import annotations

from typing import Any

import facula
from facula.array_api._dtypes import KINDS

_STANDARD = (
    "bool",
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


class NamespaceInfo:
    """Answers programs that ask what dtypes and devices there are.

    Example::

        >>> import facula.array_api as xp
        >>> info = xp.__array_namespace_info__()
        >>> info.default_dtypes()["integral"]
        facula.int64
        >>> info.default_device()
        device(type='cpu')
    """

    def capabilities(self) -> dict[str, Any]:
        """Which optional behaviours there are."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> facula.device:
        """Where new arrays are."""
        return facula.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, facula.dtype]:
        """The dtypes of new arrays."""
        real = facula.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": facula.complex128 if real is facula.float64 else facula.complex64,
            "integral": facula.int64,
            "indexing": facula.int64,
        }

    def devices(self) -> list[facula.device]:
        """All devices that arrays may be on."""
        count = facula.cuda.device_count() if facula.cuda.is_available() else 0
        return [
            facula.device("cpu"),
            *(facula.device("cuda", i) for i in range(count)),
            facula.device("meta"),
        ]

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, facula.dtype]:
        """The dtypes of the standard, all of them or those of a kind."""
        kinds = (kind,) if isinstance(kind, str) else kind
        for k in kinds or ():
            if k not in KINDS:
                raise ValueError(f"unknown kind {k!r}; the kinds are {', '.join(KINDS)}")
        found = {name: getattr(facula, name) for name in _STANDARD}
        if kinds is None:
            return found
        return {n: d for n, d in found.items() if any(d in KINDS[k] for k in kinds)}


def __array_namespace_info__() -> NamespaceInfo:
    """What dtypes and devices there are.

    Example::

        >>> import facula.array_api as xp
        >>> sorted(xp.__array_namespace_info__().dtypes(kind="complex floating"))
        ['complex128', 'complex64']
    """
    return NamespaceInfo()
