"""Compiles the templates of indexing, order, scans and random numbers with NVRTC; needs no GPU."""

import pytest
from test_cuda_kernels_compile import ITEM_SIZE, compile_kernel, needs_nvrtc

WALK = {"FACULA_NAME": "facula_test", "FACULA_NDIM": 3, "FACULA_INDEX": "uint32"}
WIDE_WALK = {"FACULA_NAME": "facula_test", "FACULA_NDIM": 16, "FACULA_INDEX": "uint64"}
PLAIN = {"FACULA_NAME": "facula_test"}

pytestmark = needs_nvrtc


def device(dtype):
    return dtype if dtype == "bool" else f"facula::{dtype}"


def key_of(dtype):
    return f"uint{8 * ITEM_SIZE[dtype]}"


def compiles(file, macros, arch=90):
    assert compile_kernel(file, macros, arch)[:4] == b"\x7fELF"


# ---- random numbers


@pytest.mark.parametrize(
    "dtype, draw, body",
    [
        ("bool", 0, "return x <= p0;"),
        ("float32", 0, "return x * p1 + p0;"),
        ("int64", 1, "return ceil(log(x) / log1p(-p0));"),
        ("bfloat16", 2, "return exp(x * p1 + p0);"),
        ("float64", 3, "return x * p1 + p0;"),
        ("uint8", 4, "return int64(uint64(base) + x % uint32(range));"),
        ("float16", 5, "return int64(uint64(base) + (range ? x % range : x));"),
    ],
)
def test_random_template(dtype, draw, body):
    macros = {"FACULA_OUT": device(dtype), "FACULA_DRAW": draw, "FACULA_BODY": body}
    compiles("random.cuh", WALK | macros | {"FACULA_DENSE": draw % 2})


@pytest.mark.parametrize(
    "dtype, kind", [("float32", 0), ("float16", 1), ("float64", 2), ("bfloat16", 3)]
)
def test_sample_template(dtype, kind):
    macros = {f"FACULA_{name}": device(dtype) for name in ("OUT", "FIRST", "SECOND")}
    compiles("sample.cuh", WALK | macros | {"FACULA_SAMPLED": kind})


@pytest.mark.parametrize("beta", [0, 1])
def test_sample_gradient_template(beta):
    macros = {f"FACULA_{name}": device("float32") for name in ("OUT", "FIRST", "SECOND", "THIRD")}
    compiles("sample_gradient.cuh", WALK | macros | {"FACULA_BETA": beta})


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_dropout_template(dtype):
    compiles("dropout.cuh", PLAIN | {"FACULA_TYPE": device(dtype)})


def test_place_of_a_replay():
    compiles("graph_place.cuh", PLAIN)


# ---- points


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(
    "item, walk, points", [("uint8", WALK, 1), ("complex128", WALK, 2), ("uint32", WIDE_WALK, 3)]
)
def test_points_template(item, walk, points, arch):
    macros = {"FACULA_POINTS": points, "FACULA_ITEM": device(item), "FACULA_WRITE": points % 2}
    compiles("points.cuh", walk | macros, arch)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int16", "int64", "float32", "float64", "complex64"],
)
def test_combine_points_template(dtype):
    for combine in (1, 2) if dtype == "complex64" else (1, 3):
        macros = {"FACULA_POINTS": 1, "FACULA_TYPE": device(dtype), "FACULA_COMBINE": combine}
        compiles("combine_points.cuh", WALK | macros | {"FACULA_ALPHA": combine % 2})


@pytest.mark.parametrize("dtype", ["bool", "float16", "complex128"])
@pytest.mark.parametrize("stage", [0, 1])
def test_combine_sorted_template(dtype, stage):
    macros = {"FACULA_POINTS": 2, "FACULA_TYPE": device(dtype), "FACULA_COMBINE": 2}
    compiles("combine_sorted.cuh", WALK | macros | {"FACULA_ALPHA": 1, "FACULA_STAGE": stage})


@pytest.mark.parametrize("dtype", ["bool", "float16", "complex64"])
def test_compact_template(dtype):
    for stage, dims in [(0, 0), (1, 0), (1, 3)]:
        macros = {"FACULA_IN": device(dtype), "FACULA_STAGE": stage, "FACULA_DIMS": dims}
        compiles("compact.cuh", PLAIN | macros)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_searchsorted_template(dtype):
    for count, flag in [("int32", 0), ("int64", 1)]:
        macros = {"FACULA_TYPE": device(dtype), "FACULA_COUNT": device(count)}
        compiles("searchsorted.cuh", PLAIN | macros | {"FACULA_RIGHT": flag, "FACULA_SORTER": flag})


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_embedding_templates(dtype):
    compiles("sum_rows.cuh", PLAIN | {"FACULA_TYPE": device(dtype)})
    for mode in (0, 1, 2):
        macros = {"FACULA_MODE": mode, "FACULA_FACTORS": int(mode == 0)}
        compiles("bags.cuh", PLAIN | macros | {"FACULA_TYPE": device(dtype)})


@pytest.mark.parametrize("item", ["uint8", "uint64", "complex128"])
def test_cat_template(item):
    compiles("cat.cuh", PLAIN | {"FACULA_ITEM": device(item), "FACULA_PARTS": 128})


# ---- order


SORTED = ["bool", "int16", "bfloat16", "float64"]


@pytest.mark.parametrize("dtype", SORTED)
def test_short_sort_template(dtype):
    wide = ITEM_SIZE[dtype] == 8
    for lanes, items, threads in [(8, 4, 256), (256, 8 if wide else 16, 256)]:
        macros = {"FACULA_TYPE": device(dtype), "FACULA_WIDE_KEY": int(wide)}
        macros |= {"FACULA_LANES": lanes, "FACULA_ITEMS": items, "FACULA_THREADS": threads}
        compiles("sort_rows.cuh", WALK | macros)


@pytest.mark.parametrize("dtype", SORTED)
def test_selection_template(dtype):
    compiles("select_rows.cuh", WALK | {"FACULA_TYPE": device(dtype), "FACULA_KEPT": 1024})


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_radix_template(dtype, stage):
    for first, name in [(1, dtype), (0, key_of(dtype))]:
        macros = {"FACULA_TYPE": device(name), "FACULA_FIRST": first, "FACULA_STAGE": stage}
        compiles("radix.cuh", PLAIN | macros)


# ---- scans


@pytest.mark.parametrize(
    "given, result, compute, kind",
    [
        ("float16", "float16", "float32", 0),
        ("bool", "int64", "int64", 0),
        ("complex64", "complex64", "complex64", 1),
        ("float32", "float32", "float32", 2),
        ("complex128", "complex128", "complex128", 2),
        ("bfloat16", "bfloat16", "float32", 3),
        ("int64", "int64", "int64", 4),
    ],
)
@pytest.mark.parametrize("lanes, stage", [(1, 0), (256, 2)])
def test_scan_template(given, result, compute, kind, lanes, stage):
    macros = {"FACULA_IN": device(given), "FACULA_OUT": device(result)}
    macros |= {"FACULA_COMPUTE": device(compute), "FACULA_SCAN": kind, "FACULA_LANES": lanes}
    vector = int(lanes > 1 and ITEM_SIZE[given] <= 8)
    compiles("scan.cuh", WALK | macros | {"FACULA_STAGE": stage, "FACULA_VECTOR": vector})


# ---- rows of sparse matrices


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(
    "dtype, vector",
    [
        ("float32", 4),
        ("bfloat16", 8),
        ("float16", 1),
        ("complex128", 1),
        ("int8", 16),
        ("int64", 2),
    ],
)
def test_sparse_rows_template(dtype, vector, arch):
    for kind in (0, 1):
        macros = {"FACULA_TYPE": device(dtype), "FACULA_VECTOR": vector, "FACULA_KIND": kind}
        compiles("sparse_rows.cuh", PLAIN | macros, arch)
