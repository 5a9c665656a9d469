"""Compiles the kernels of attention by groups of warps and of float32 (csrc/cuda/attention.cpp)."""

import pytest
from test_cuda_kernels_compile import ARCHITECTURES, compile_kernel, needs_nvrtc

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(90 not in ARCHITECTURES, reason="this NVRTC does not compile for sm_90"),
]


@pytest.mark.parametrize("width, dtype", [(64, "bfloat16"), (128, "float16")])
@pytest.mark.parametrize("causal, mask", [(1, 0), (0, 1), (0, 2)])
@pytest.mark.parametrize("file", ["forward_groups", "grad_begin", "grad_groups", "grad_end"])
def test_attention_by_groups(file, causal, mask, width, dtype):
    forward = file == "forward_groups"
    if file in ("grad_begin", "grad_end") and (causal or mask == 2):
        pytest.skip("they know of neither")
    macros = {
        "FACULA_NAME": "facula_test",
        "FACULA_ITEM": dtype,
        "FACULA_SINGLE": 0,
        "FACULA_WIDTH": width,
        "FACULA_TILES": 1,
        "FACULA_STEP": (64 if mask else 128) if forward else 64 * 128 // width,
        "FACULA_SPLIT": 1,
        "FACULA_GROUPS": 3 if forward and width == 64 and not mask else 2,
        "FACULA_STAGES": 3 if not forward else 4 if mask or width == 64 else 2,
        "FACULA_CAUSAL": causal,
        "FACULA_MASK": mask,
        "FACULA_ALIGNED": 1,
    }
    assert compile_kernel(f"attention_{file}.cuh", macros, "90a")[:4] == b"\x7fELF"


@pytest.mark.parametrize("width, causal, mask, aligned", [(32, 0, 1, 0), (64, 1, 0, 1)])
@pytest.mark.parametrize("file", ["forward", "query_grad", "key_grad"])
def test_attention_of_float32(file, width, causal, mask, aligned):
    macros = {
        "FACULA_NAME": "facula_test",
        "FACULA_ITEM": "float32",
        "FACULA_SINGLE": 1,
        "FACULA_WIDTH": width,
        "FACULA_TILES": 1,
        "FACULA_STEP": 64 if file == "forward" else 32,
        "FACULA_SPLIT": 1,
        "FACULA_GROUPS": 0,
        "FACULA_CAUSAL": causal,
        "FACULA_MASK": mask,
        "FACULA_ALIGNED": aligned,
    }
    arch = 80 if 80 in ARCHITECTURES else 90
    assert compile_kernel(f"attention_{file}.cuh", macros, arch)[:4] == b"\x7fELF"
