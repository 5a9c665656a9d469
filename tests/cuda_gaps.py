"""Rows that have no CUDA kernel yet, each with a reason; MOST_GAPS only ever goes down.

test_cuda_rows.py expects these, and only these, to raise NotImplementedError on a CUDA tensor, and
asks for the removal of an entry that works.
"""

from __future__ import annotations

NO_KERNEL: dict[str, str] = {}

MOST_GAPS = len(NO_KERNEL)

# (row, kind): reason. The row works on both devices, and its results may differ.
NOT_COMPARABLE: dict[tuple[str, str], str] = {}
