"""Versions that compare with strings and tuples."""

from __future__ import annotations

import re
from typing import Any

from facula.version import __version__ as internal_version

__all__ = ["TorchVersion"]

_BEFORE_RELEASE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1}


def _key(version: Any) -> tuple[Any, ...]:
    """Numbers without zeros at the end, then where it stands before or after the release."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = re.fullmatch(
        r"v?(\d+(?:\.\d+)*)[._-]?(?:(dev|alpha|a|beta|b|rc|c|post)[._-]?(\d*))?(?:\+(.*))?",
        str(version).strip().lower(),
    )
    if not found:
        raise ValueError(f"{version!r} is not a version")
    numbers = [int(n) for n in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    stage = 1 if found[2] == "post" else _BEFORE_RELEASE.get(found[2] or "", 0)
    return (tuple(numbers), stage, int(found[3] or 0), found[4] or "")


class TorchVersion(str):
    """A version as a string that compares as one, also with tuples of numbers.

    Example::

        >>> from facula.torch_version import TorchVersion
        >>> TorchVersion("1.10.0") > "1.9", TorchVersion("1.10.0a") >= (1, 10)
        (True, False)
    """

    __hash__ = str.__hash__

    def _compare(self, other: Any) -> tuple[Any, Any] | None:
        try:
            return _key(self), _key(other)
        except ValueError:
            return None

    def __eq__(self, other: object) -> bool:
        keys = self._compare(other)
        return str.__eq__(self, str(other)) if keys is None else keys[0] == keys[1]

    def __lt__(self, other: Any) -> bool:
        keys = self._compare(other)
        return str.__lt__(self, str(other)) if keys is None else bool(keys[0] < keys[1])

    # All of them: str has its own.
    def __le__(self, other: Any) -> bool:
        return self < other or self == other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __ne__(self, other: object) -> bool:
        return not self == other


__version__ = TorchVersion(internal_version)
