"""Formulas with a number in the place of an operand compile (NVRTC, no GPU)."""

import pytest
from test_cuda_kernels_compile import DTYPES, compile_kernel, needs_nvrtc, row_macros, table_rows

LETTERS = "abcdefg"


def with_number(row, dtype: str, place: int) -> dict[str, object] | None:
    """The kernel that csrc/cuda/elementwise.cpp makes when operand `place` is a number."""
    macros = row_macros(row, dtype)
    if macros is None or macros["FACULA_INPUTS"] < 2:
        return None
    inputs, params = macros["FACULA_INPUTS"], macros["FACULA_PARAMS"]
    kinds = [(macros[f"FACULA_IN{k}"], macros[f"FACULA_ARG{k}"]) for k in range(inputs)]
    for k in range(inputs):
        del macros[f"FACULA_IN{k}"], macros[f"FACULA_ARG{k}"]
    rest = [k for k in range(inputs) if k != place]
    for at, k in enumerate(rest):
        macros[f"FACULA_IN{at}"], macros[f"FACULA_ARG{at}"] = kinds[k]
        macros[f"FACULA_INPUT_NAME_{at}"] = LETTERS[k]
    compute = DTYPES[dtype][1]
    kind = "bool" if kinds[place][1] == "bool" or compute == "bool" else f"facula::{compute}"
    macros |= {
        "FACULA_INPUTS": inputs - 1,
        "FACULA_PARAMS": params + 1,
        f"FACULA_SLOT{params}": kind,
        f"FACULA_P{params}": kind,
        f"FACULA_PARAM_NAME{params}": LETTERS[place],
    }
    return macros


ROWS = [
    row
    for row in table_rows("elementwise")
    if sum(1 for argument in row.schema.args if argument.operand) > 1
]


@needs_nvrtc
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_operand_may_be_a_number(row):
    for dtype in ("float32", "int64", "complex64"):
        operands = sum(1 for argument in row.schema.args if argument.operand)
        macros = with_number(row, dtype, operands - 1)
        if macros is not None:
            assert compile_kernel("elementwise.cuh", macros)[:4] == b"\x7fELF"
            break  # one type shows whether the names fit


@needs_nvrtc
def test_the_first_operand_may_be_a_number():
    for name in ("sub", "div", "pow", "where", "lerp"):
        for row in ROWS:
            if row.name == name:
                macros = with_number(row, "float32", 0)
                assert compile_kernel("elementwise.cuh", macros)[:4] == b"\x7fELF"
