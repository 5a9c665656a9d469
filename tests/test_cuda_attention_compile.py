"""Compiles the kernels of attention for compute capability 9.0, as csrc/cuda/attention.cpp does."""

import pytest
from test_cuda_kernels_compile import ARCHITECTURES, compile_kernel, needs_nvrtc

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(90 not in ARCHITECTURES, reason="this NVRTC does not compile for sm_90"),
]


@pytest.mark.parametrize("width, dtype", [(64, "bfloat16"), (128, "float16")])
@pytest.mark.parametrize("causal, mask", [(1, 0), (0, 1), (0, 2)])
@pytest.mark.parametrize("file", ["forward", "query_grad", "key_grad"])
def test_attention_by_groups(file, causal, mask, width, dtype):
    macros = {
        "FACULA_NAME": "facula_test",
        "FACULA_ITEM": dtype,
        "FACULA_WIDTH": width,
        "FACULA_TILES": 1,
        "FACULA_STEP": 64,
        "FACULA_SPLIT": 1,
        "FACULA_GROUPS": 2,
        "FACULA_CAUSAL": causal,
        "FACULA_MASK": mask,
        "FACULA_ALIGNED": 1,
    }
    assert compile_kernel(f"attention_{file}_groups.cuh", macros, "90a")[:4] == b"\x7fELF"
