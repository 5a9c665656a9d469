"""Types that signatures speak of."""

from __future__ import annotations

from facula import _C

Number = bool | int | float | complex
Device = _C.device | str | int
