"""Every operator against its reference, for every dtype and layout."""

import pytest
from free_results import comparable
from operands import Sample
from package_under_test import F
from row_cases import (
    SAMPLED,
    assert_values,
    callable_of,
    cases,
    check_samples,
    dtype_name,
    expected_dtype,
    expected_results,
    has_reference,
    results,
    row_id,
    to_array,
)
from samples import samples_of

WITH_REFERENCE = [r for r in SAMPLED if has_reference(r)]


# Their references add up series and integrals, number by number: few numbers, of the usual dtypes.
NUMERICAL = {r.schema.cpp_name for r in WITH_REFERENCE if r.module == "special"} | {
    *("polygamma", "mvlgamma", "igamma", "igammac", "i0", "special_i0")
}


def affordable(row, dtype):
    samples = samples_of(row, dtype)
    if row.schema.cpp_name not in NUMERICAL:
        return samples
    if dtype not in ("float32", "float64"):
        return []
    return [s for s in samples if sum(o.values.size for o in s.operands()) <= 100]


@pytest.mark.parametrize(("row", "dtype"), cases(WITH_REFERENCE))
def test_result_matches_the_reference(row, dtype):
    function = callable_of(row)

    def check(sample: Sample) -> None:
        expected = expected_results(row, sample)
        args, kwargs = sample.tensors(F)
        actual = results(function(*args, **kwargs))
        assert len(actual) == len(expected), f"{len(actual)} results, not {len(expected)}"
        for got, wanted in zip(actual, expected, strict=True):
            name = expected_dtype(row, sample, wanted)
            assert dtype_name(got) == name, f"the result is {dtype_name(got)}, not {name}"
            assert tuple(got.shape) == wanted.shape, f"shape {tuple(got.shape)}, not {wanted.shape}"
        actual, expected = comparable(row_id(row), actual), comparable(row_id(row), expected)
        for got, wanted in zip(actual, expected, strict=True):
            # The dtype that was computed in says how exact the result can be.
            assert_values(row, to_array(got), wanted, dtype_name(got))

    check_samples(row, "forward", dtype, affordable(row, dtype), check)


@pytest.mark.parametrize(("row", "dtype"), cases())
def test_arguments_are_left_alone(row, dtype):
    """Only in-place variants write to what they are given."""
    function = callable_of(row)

    def check(sample: Sample) -> None:
        before, _ = sample.tensors(F)
        args, kwargs = sample.tensors(F)
        function(*args, **kwargs)
        for ours, kept in zip(args, before, strict=True):
            if isinstance(ours, F.Tensor):
                assert ours._version == kept._version == 0
                assert ours.tolist() == kept.tolist() or F.isnan(ours).any()

    check_samples(row, "forward", dtype, samples_of(row, dtype, at_most=2)[:2], check)
