"""NumPy by name: rows point at reference functions, and the build must not need NumPy."""

from __future__ import annotations

from typing import Any


class Reference:
    """``np.add`` without importing NumPy; the import happens when it is called, in the tests."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Reference:
        if name.startswith("__"):
            raise AttributeError(name)
        return Reference(f"{self.path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import numpy

        f: Any = numpy
        for part in self.path.split(".")[1:]:
            f = getattr(f, part)
        return f(*args, **kwargs)


np = Reference("numpy")
