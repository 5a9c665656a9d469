"""The kernels of matrix factorisations compile (NVRTC, no GPU)."""

import pytest
from test_cuda_kernels_compile import MAIN_ARCHITECTURES, compile_kernel, needs_nvrtc


@needs_nvrtc
@pytest.mark.parametrize("arch", MAIN_ARCHITECTURES)
@pytest.mark.parametrize("inverse", [0, 1])
def test_orders_of_rows_compile(inverse, arch):
    macros = {"FACULA_NAME": "facula_test", "FACULA_INVERSE": inverse}
    assert compile_kernel("lu_order.cuh", macros, arch)[:4] == b"\x7fELF"
