"""The kernels over lists of tensors compile (NVRTC, no GPU)."""

import pytest
from test_cuda_kernels_compile import ITEM_SIZE, MAIN_ARCHITECTURES, compile_kernel, needs_nvrtc

# rule -> (flags that change its text, operands with these flags)
RULES = {
    "SgdUpdate": [(0, 2), (1, 2), (5, 3), (13, 3)],
    "AdamUpdate": [(0, 4), (2, 4), (5, 5)],
    "AdamaxUpdate": [(1, 4)],
    "NAdamUpdate": [(0, 4), (2, 4)],
    "RAdamUpdate": [(0, 4), (4, 4)],
    "AdagradUpdate": [(1, 3)],
    "AdadeltaUpdate": [(1, 4)],
    "RmsPropUpdate": [(0, 3), (4, 4), (8, 4), (13, 5)],
    "RpropUpdate": [(0, 4)],
    "AsgdUpdate": [(0, 3), (5, 3)],
}


def list_macros(operands: int) -> dict[str, object]:
    capacity = (4096 - 160 - 16) // (12 + 8 * operands)
    return {"FACULA_OPERANDS": operands, "FACULA_TENSORS": capacity, "FACULA_CHUNK": 8192}


def optim_macros(rule, flags, operands, param, compute, state=None) -> dict[str, object]:
    state = state or param
    widest = max(ITEM_SIZE[param], ITEM_SIZE[state])
    return list_macros(operands) | {
        "FACULA_NAME": "facula_test",
        "FACULA_RULE": rule,
        "FACULA_FLAGS": flags,
        "FACULA_COMPUTE": f"facula::{compute}",
        "FACULA_PARAM": f"facula::{param}",
        "FACULA_GRAD": f"facula::{param}",
        **{f"FACULA_STATE{i}": f"facula::{state}" for i in range(3)},
        "FACULA_VECTOR": 16 // widest,
        "FACULA_COUNTED": 0,
        "FACULA_EITHER": 0,
    }


@needs_nvrtc
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_compiles_with_all_its_terms(rule):
    for flags, operands in RULES[rule]:
        macros = optim_macros(rule, flags, operands, "float32", "float32")
        assert compile_kernel("optim.cuh", macros)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("rule", RULES)
def test_steps_with_counts_on_the_device_compile(rule):
    flags, operands = RULES[rule][-1]
    either = 4 if rule in ("RAdamUpdate", "AsgdUpdate") else 0
    macros = optim_macros(rule, flags & ~either, operands + 1, "float32", "float32")
    macros |= {"FACULA_COUNTED": 1, "FACULA_EITHER": either}
    assert compile_kernel("optim.cuh", macros)[:4] == b"\x7fELF"
    scalars = {"SgdUpdate": 0, "NAdamUpdate": 2, "AsgdUpdate": 3}.get(rule, 1)
    macros = list_macros(max(scalars, 1)) | {
        "FACULA_NAME": "facula_test",
        "FACULA_RULE": rule.removesuffix("Update"),
        "FACULA_FLAGS": flags & ~either,
        "FACULA_SCALAR": "facula::float32",
        "FACULA_SCALARS": scalars,
    }
    assert compile_kernel("optim_prepare.cuh", macros)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("arch", MAIN_ARCHITECTURES)
@pytest.mark.parametrize(
    ("param", "compute", "state"),
    [
        ("float16", "float32", "float16"),
        ("bfloat16", "float32", "float32"),
        ("float64", "float64", "float64"),
    ],
)
def test_steps_compile_for_every_dtype(param, compute, state, arch):
    macros = optim_macros("AdamUpdate", 6, 5, param, compute, state)
    assert compile_kernel("optim.cuh", macros, arch)[:4] == b"\x7fELF"


@needs_nvrtc
def test_steps_move_16_bytes_at_once_and_stay_in_single_precision():
    macros = optim_macros("AdamUpdate", 2, 4, "float32", "float32")
    ptx = compile_kernel("optim.cuh", macros, ptx=True).decode()
    assert ptx.count("ld.global.v4.") >= 4
    assert ".f64" not in ptx


@needs_nvrtc
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_scaling_and_norms_compile(dtype):
    compute = "float32" if ITEM_SIZE[dtype] == 2 else dtype
    common = list_macros(1) | {
        "FACULA_NAME": "facula_test",
        "FACULA_DTYPE": f"facula::{dtype}",
        "FACULA_VECTOR": 16 // ITEM_SIZE[dtype],
    }
    for check in (0, 1):
        macros = common | {"FACULA_COMPUTE": f"facula::{compute}", "FACULA_CHECK": check}
        macros["FACULA_FACTOR"] = "facula::float32"
        assert compile_kernel("scale_list.cuh", macros)[:4] == b"\x7fELF"
    real = "float64" if dtype in ("float64", "complex128") else "float32"
    for order in range(4):
        macros = common | {"FACULA_COMPUTE": f"facula::{real}", "FACULA_ORDER": order}
        assert compile_kernel("norm_list.cuh", macros)[:4] == b"\x7fELF"


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize(
    ("inputs", "number", "body"),
    [
        (1, 0, "sqrt(a)"),
        (1, 0, "abs(a)"),
        (2, 0, "a != a ? a : b != b ? b : a > b ? a : b"),
        (2, 1, "abs(p) < T(0.5) ? a + p * (b - a) : b - (b - a) * (T(1) - p)"),
        (3, 1, "a + p * b / c"),
    ],
)
def test_formulas_over_lists_compile(dtype, inputs, number, body):
    macros = list_macros(1 + inputs + number) | {
        "FACULA_NAME": "facula_test",
        "FACULA_DTYPE": f"facula::{dtype}",
        "FACULA_COMPUTE": "facula::float64" if dtype == "float64" else "facula::float32",
        "FACULA_INPUTS": inputs,
        "FACULA_NUMBER": number,
        "FACULA_BODY": body,
        "FACULA_VECTOR": 16 // ITEM_SIZE[dtype],
    }
    assert compile_kernel("formula_list.cuh", macros)[:4] == b"\x7fELF"
