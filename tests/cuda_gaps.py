"""Rows that have no CUDA kernel yet, each with a reason; MOST_GAPS only ever goes down.

test_cuda_rows.py lets these, and only these, raise NotImplementedError on a CUDA tensor, and asks
for the removal of an entry that works. ``FACULA_CUDA_REPORT=file`` makes it write the rows that
raised.
"""

from __future__ import annotations

NO_KERNEL: dict[str, str] = {}
MOST_GAPS = 0

# Single samples may lack a kernel: row -> (words of the error, reason).
REFUSED: dict[str, tuple[str, str]] = {
    "linalg_lstsq": ("other than `gels`", "cuSOLVER has no other driver, as in PyTorch"),
    "linalg_ldl_factor": ("Hermitian", "cuSOLVER factors symmetric matrices only"),
    "linalg_ldl_factor_ex": ("Hermitian", "cuSOLVER factors symmetric matrices only"),
    "linalg_ldl_solve": ("Hermitian", "cuSOLVER factors symmetric matrices only"),
}

# (row, kind): reason. The row works on both devices, and its results may differ.
NOT_COMPARABLE: dict[tuple[str, str], str] = {
    ("linalg_lstsq", "forward"): "the default driver is another one, as in PyTorch",
    ("linalg_lstsq", "gradient"): "the default driver of the host gives no residuals",
    ("linalg_lu", "gradient"): "which row becomes the pivot is a matter of rounding",
    ("geqrf", "forward"): "signs of reflectors are free",
}
