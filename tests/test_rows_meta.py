"""The meta device computes shape, dtype and strides without data: the same as with data."""

import pytest
from operands import Operand, Sample
from package_under_test import F
from row_cases import (
    REFUSE_IN_PLACE,
    SAMPLED,
    callable_of,
    cases,
    check_samples,
    result_fits,
    results,
    row_id,
)
from samples import samples_of
from skips import DATA_DEPENDENT

DTYPES = ("bool", "int64", "bfloat16", "float32", "complex64")
FIXED_SHAPE = [r for r in SAMPLED if row_id(r) not in DATA_DEPENDENT]


def needs_data(row, sample):
    """Brackets with a mask: as many positions as it has true elements."""
    return row.name in ("index", "index_put") and any(o.role == "mask" for o in sample.operands())


@pytest.mark.parametrize(("row", "dtype"), cases(FIXED_SHAPE, only=DTYPES))
def test_meta_result_has_the_layout_of_the_real_one(row, dtype):
    function = callable_of(row)

    def check(sample: Sample) -> None:
        if needs_data(row, sample):
            return
        args, kwargs = sample.tensors(F)
        real = results(function(*args, **kwargs))
        args, kwargs = sample.tensors(F, device="meta")
        meta = results(function(*args, **kwargs))
        assert len(meta) == len(real)
        for got, wanted in zip(meta, real, strict=True):
            assert got.device.type == "meta"
            assert got.dtype == wanted.dtype, f"{got.dtype}, not {wanted.dtype}"
            assert got.shape == wanted.shape, f"{got.shape}, not {wanted.shape}"
            assert got.stride() == wanted.stride(), f"{got.stride()}, not {wanted.stride()}"

    check_samples(row, "meta", dtype, samples_of(row, dtype), check)


@pytest.mark.parametrize(
    ("row", "dtype"),
    cases(
        [r for r in FIXED_SHAPE if r.inplace and row_id(r) not in REFUSE_IN_PLACE],
        only=("float32", "int64"),
    ),
)
def test_meta_in_place_keeps_the_tensor(row, dtype):
    def check(sample: Sample) -> None:
        if not isinstance(sample.args[0], Operand) or needs_data(row, sample):
            return
        args, kwargs = sample.tensors(F)
        expected = callable_of(row)(*args, **kwargs)
        if sample.args[0].overlaps or not result_fits(row, sample.args[0], expected):
            return
        args, kwargs = sample.tensors(F, device="meta")
        before = args[0].shape, args[0].stride(), args[0].dtype
        assert getattr(args[0], row.python + "_")(*args[1:], **kwargs) is args[0]
        assert (args[0].shape, args[0].stride(), args[0].dtype) == before

    check_samples(row, "meta", dtype, samples_of(row, dtype, at_most=3), check)
