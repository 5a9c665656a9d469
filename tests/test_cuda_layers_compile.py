"""Compiles the templates of layers with NVRTC, with macros as csrc/cuda writes them."""

import pytest
from test_cuda_kernels_compile import MAIN_ARCHITECTURES, compile_kernel, needs_nvrtc

pytestmark = needs_nvrtc

ELF = b"\x7fELF"
SMALL = ("float16", "bfloat16")


def compute_of(dtype):
    return "double" if dtype == "float64" else "float"


def compiled(file, arch=90, **macros):
    full = {"FACULA_NAME": "facula_test"} | {f"FACULA_{name}": v for name, v in macros.items()}
    assert compile_kernel(file, full, arch)[:4] == ELF


# dtype, columns, lanes, beside, vector, items
LINES = [
    ("float32", 0, 1, 256, 1, 1),
    ("float32", 0, 32, 8, 4, 4),
    ("bfloat16", 0, 256, 1, 8, 4),
    ("float32", 0, 1024, 1, 4, 0),
    ("float16", 1, 8, 32, 1, 8),
    ("float64", 1, 32, 32, 1, 0),
]


def line_macros(dtype, columns, lanes, beside, vector, items):
    return {
        "COLUMNS": columns,
        "LANES": lanes,
        "BESIDE": beside,
        "VECTOR": vector,
        "ITEMS": items,
        "COMPUTE": compute_of(dtype),
        "ITEM": dtype,
    }


@pytest.mark.parametrize("line", LINES, ids=str)
@pytest.mark.parametrize("kind", [0, 1])
def test_softmax(line, kind):
    for file in ("softmax.cuh", "softmax_grad.cuh"):
        compiled(file, KIND=kind, **line_macros(*line))


@pytest.mark.parametrize("line", LINES, ids=str)
def test_cross_entropy(line):
    for file in ("cross_entropy.cuh", "cross_entropy_grad.cuh"):
        compiled(file, WEIGHTED=0, SMOOTH=0, **line_macros(*line))
        compiled(file, WEIGHTED=1, SMOOTH=1, **line_macros(*line))


@pytest.mark.parametrize("kind", [0, 1])
def test_nll_loss(kind):
    for dtype in ("float32", "bfloat16", "float64"):
        macros = {"ITEM": dtype, "COMPUTE": compute_of(dtype), "KIND": kind}
        compiled("nll_loss.cuh", WEIGHTED=1, **macros)
        compiled("multilabel_margin.cuh", **macros)


@pytest.mark.parametrize("line", [line for line in LINES if not line[1]], ids=str)
@pytest.mark.parametrize("grouped", [0, 1, 2])
def test_normalised_rows(line, grouped):
    macros = line_macros(*line) | {
        "GRAD": line[0],
        "PARAMETER": "float32" if line[0] in SMALL else line[0],
        "WEIGHT": int(line[2] != 32),
        "BIAS": int(line[2] > 32),
        "CENTRED": int(grouped > 0 or line[2] > 32),
        "GROUPED": grouped,
    }
    compiled("norm_rows.cuh", **macros)
    compiled("norm_rows_grad.cuh", **macros)
    if grouped:
        compiled("norm_line_sums.cuh", **line_macros(*line))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_sums_of_columns_and_channels(dtype):
    macros = {"ITEM": dtype, "GRAD": dtype, "COMPUTE": compute_of(dtype)}
    for kind in range(4):
        for vector in (1, 2):
            compiled("column_sums.cuh", KIND=kind, VECTOR=vector, **macros)
    for kind in range(2):
        for index in ("uint32", "uint64"):
            compiled("channel_sums.cuh", KIND=kind, VECTOR=2, INDEX=index, **macros)
        compiled("channel_moments.cuh", KIND=kind, WEIGHT=1, PARAMETER=dtype, **macros)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint64", "float8_e4m3fn"])
def test_products(dtype):
    compute = "float" if "float" in dtype else dtype
    compiled(
        "gemm.cuh", ITEM=dtype, COMPUTE=f"facula::{compute}" if compute != "float" else compute
    )


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_convolution(dtype, kind):
    compute = compute_of(dtype) if "float" in dtype else f"facula::{dtype}"
    compiled("convolution.cuh", ITEM=dtype, COMPUTE=compute, KIND=kind)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_depthwise(dtype):
    for down, across, step, rows in ((3, 3, 1, 8), (7, 5, 2, 4), (1, 3, 1, 1)):
        compiled(
            "depthwise.cuh",
            ITEM=dtype,
            COMPUTE=compute_of(dtype),
            DOWN=down,
            ACROSS=across,
            STEP=step,
            ROWS=rows,
        )


@pytest.mark.parametrize("width", [32, 64, 128, 256])
@pytest.mark.parametrize("file", ["forward", "query_grad", "key_grad"])
def test_attention(file, width):
    narrow = width <= (64 if file == "key_grad" else 128)
    compiled(
        f"attention_{file}.cuh",
        80 if width == 64 and 80 in MAIN_ARCHITECTURES else 90,
        ITEM="bfloat16" if width >= 64 else "float16",
        WIDTH=width,
        TILES=2 if narrow else 1,
        STEP=64 if file == "forward" and width <= 128 else 32,
        SPLIT=2 if file == "key_grad" and width == 256 else 1,
        CAUSAL=int(width >= 128),
        MASK={32: 1, 256: 2}.get(width, 0),
        ALIGNED=int(width != 32),
    )


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bfloat16", "float32", "float64"])
def test_images(dtype):
    real = dtype if "float" in dtype else "float32"
    for kind in range(4):
        compiled("max_pool.cuh", ITEM=dtype, TAP="uint8" if kind % 2 else "int32", KIND=kind)
    for kind in range(2):
        compiled("window_max.cuh", ITEM=dtype, KIND=kind, NARROW=int(dtype != "float64"))
        compiled("positions.cuh", ITEM=dtype, KIND=kind)
        compiled("patches.cuh", ITEM=dtype, KIND=kind)
        compiled("sum_by_positions.cuh", ITEM=real, COMPUTE=compute_of(real), KIND=kind)
    compiled("resample.cuh", ITEM=dtype, COMPUTE=compute_of(dtype))


def test_images_of_complex_numbers():
    for kind in range(2):
        compiled("positions.cuh", ITEM="complex64", KIND=kind)
        compiled("patches.cuh", ITEM="complex64", KIND=kind)


@pytest.mark.parametrize("cell", range(4))
@pytest.mark.parametrize("kind", [0, 1])
def test_recurrent_steps(cell, kind):
    for compute in ("float", "double"):
        compiled("recurrent.cuh", COMPUTE=compute, CELL=cell, KIND=kind)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_grid_sample(mode, padding):
    for kind in range(3):
        compiled("grid_sample.cuh", COMPUTE="float", KIND=kind, DIMS=2 + (mode == 0), MODE=mode,
                 PADDING=padding, CORNERS=kind % 2, ALONG=padding % 2)  # fmt: skip


def test_distances_and_alignments():
    for compute in ("float", "double"):
        for norm in range(5):
            for kind in range(2):
                compiled("distances.cuh", COMPUTE=compute, NORM=norm, KIND=kind)
        for kind in range(3):
            compiled("ctc.cuh", COMPUTE=compute, KIND=kind)
