"""Wrong calls of every operator: the right exception, a text that helps, and nothing changed."""

import subprocess
import sys

import pytest
from operands import LETTER, Operand, dtypes_of
from package_under_test import IS_FACULA, F
from row_cases import (
    PUBLIC,
    REFUSE_IN_PLACE,
    SAMPLED,
    attribute,
    callable_of,
    check_samples,
    method_of,
    row_cases,
    row_id,
    skips_allowed,
    to_array,
)
from samples import all_samples, sampled_dtypes, samples_of

CALLED = [r for r in SAMPLED if r in PUBLIC]
FUNCTIONS = [r for r in CALLED if r.function]
ELEMENTWISE = [r for r in CALLED if r.is_elementwise]
DIMS = ("dim", "dim0", "dim1", "dim2", "start_dim", "end_dim", "dimension", "source", "dims")


def first_sample(row):
    dtype = "float32" if "float32" in sampled_dtypes(row) else sampled_dtypes(row)[0]
    return all_samples(row, dtype)[0], dtype


@pytest.mark.parametrize("row", row_cases(FUNCTIONS))
def test_missing_arguments_raise_type_error(row):
    with pytest.raises(TypeError, match=row.python.rpartition(".")[2]):
        attribute(F, row.python)()


@pytest.mark.parametrize("row", row_cases(FUNCTIONS))
def test_unknown_keyword_raises_type_error(row):
    sample, _ = first_sample(row)
    args, kwargs = sample.tensors(F)
    with pytest.raises(TypeError):
        attribute(F, row.python)(*args, **kwargs, no_such_argument=1)


@pytest.mark.parametrize("row", row_cases(CALLED))
def test_text_instead_of_a_tensor_raises_type_error(row):
    sample, _ = first_sample(row)
    args, kwargs = sample.tensors(F)
    for i, argument in enumerate(row.schema.args[: len(args)]):
        if not argument.is_tensor or (i == 0 and not row.function):
            continue
        wrong = [*args]
        wrong[i] = "text"
        with pytest.raises(TypeError):
            callable_of(row)(*wrong, **kwargs)


@pytest.mark.parametrize("row", row_cases(CALLED))
def test_none_instead_of_a_required_tensor_raises_type_error(row):
    sample, _ = first_sample(row)
    args, kwargs = sample.tensors(F)
    for i, argument in enumerate(row.schema.args[: len(args)]):
        if argument.type != "Tensor" or (i == 0 and not row.function):
            continue
        wrong = [*args]
        wrong[i] = None
        with pytest.raises(TypeError):
            callable_of(row)(*wrong, **kwargs)


@pytest.mark.parametrize(
    "row",
    row_cases(
        # The dims of tile are counts. narrow_copy raises a RuntimeError for one past the last.
        r
        for r in CALLED
        if any(a.name in DIMS for a in r.schema.args) and r.name not in ("tile", "narrow_copy")
    ),
)
def test_dimension_out_of_range_raises_index_error(row):
    """For every sample with a dimension: one past the last, and one before the first."""
    names = [a.name for a in row.schema.args]
    types = {a.name: a.type for a in row.schema.args}
    _, dtype = first_sample(row)

    def check(sample):
        for name in DIMS:
            given = [*names[: len(sample.args)], *sample.kwargs]
            if name not in given or not types[name].startswith("int"):
                continue
            for wrong in (99, -99):
                args, kwargs = sample.tensors(F)
                if name in kwargs:
                    kwargs[name] = _replaced(kwargs[name], wrong)
                else:
                    place = names.index(name)
                    args[place] = _replaced(args[place], wrong)
                with pytest.raises(IndexError, match=r"-?99"):
                    callable_of(row)(*args, **kwargs)

    samples = [s for s in samples_of(row, dtype) if s.operands()[0].values.ndim > 0]
    check_samples(row, "error", dtype, samples[:6], check)


def _replaced(value, wrong):
    if isinstance(value, (tuple, list)):
        return type(value)([wrong, *value[1:]])
    return wrong


@pytest.mark.parametrize(
    "row", row_cases(r for r in ELEMENTWISE if sum(a.operand for a in r.schema.args) > 1)
)
def test_shapes_that_do_not_broadcast_raise_runtime_error(row):
    sample, _ = first_sample(row)
    args, kwargs = sample.tensors(F)
    last = next(i for i in reversed(range(len(args))) if isinstance(args[i], F.Tensor))
    args[last] = F.ones(4, 7, dtype=args[last].dtype)
    with skips_allowed(row, "error", "broadcast"):
        with pytest.raises(RuntimeError, match=r"size of tensor|broadcast|shape") as caught:
            callable_of(row)(*args, **kwargs)
        assert "7" in str(caught.value), "the text does not say which sizes met"
        if IS_FACULA:
            assert row.name in str(caught.value), "the text does not name the operator"


@pytest.mark.parametrize(
    "row", row_cases(r for r in ELEMENTWISE if len(sampled_dtypes(r)) < len(LETTER))
)
def test_dtype_without_a_kernel_is_refused(row):
    """The text names the operator, the dtype and the accepted ones."""
    refused = [d for d in dtypes_of("bifc") if d not in sampled_dtypes(row)]
    with skips_allowed(row, "error", "dtype"):
        for dtype in refused if IS_FACULA else []:
            args = [F.ones(2, dtype=getattr(F, dtype)) for a in row.schema.args if a.operand]
            with pytest.raises((RuntimeError, TypeError)) as caught:
                callable_of(row)(*args)
            text = str(caught.value)
            assert row.name in text, f"{dtype}: the text does not name the operator: {text}"
            assert dtype in text, f"{dtype}: the text does not name the dtype: {text}"


@pytest.mark.parametrize(
    "row", row_cases(r for r in CALLED if r.inplace and row_id(r) not in REFUSE_IN_PLACE)
)
def test_in_place_on_a_leaf_that_requires_grad_is_refused(row):
    if "float32" not in sampled_dtypes(row):
        return
    sample, _ = first_sample(row)
    if not isinstance(sample.args[0], Operand):
        return
    args, kwargs = sample.tensors(F)
    this = args[0].clone().requires_grad_()
    before = to_array(this).copy()
    with pytest.raises(RuntimeError, match="leaf"):
        method_of(row, row.python.rpartition(".")[2] + "_")(this, *args[1:], **kwargs)
    assert (to_array(this) == before).all()


def test_in_place_on_a_leaf_that_is_a_view_is_refused():
    """A view of a tensor without gradients, made a leaf by requires_grad_."""
    for this in (F.ones(4)[:2], F.ones(4).reshape(2, 2), F.ones(4).as_strided((2,), (2,))):
        with pytest.raises(RuntimeError, match="leaf"):
            this.requires_grad_().add_(1)
        assert this.is_leaf
        assert to_array(this).tolist() == F.ones(this.shape).tolist()


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch lets some of these through")
@pytest.mark.parametrize(
    "row",
    row_cases(
        # Only the shape of the other tensor counts in view_as and the like.
        r
        for r in CALLED
        if sum(a.type == "Tensor" for a in r.schema.args) > 1 and not r.name.endswith("_as")
    ),
)
def test_tensors_on_two_devices_are_refused(row):
    sample, _ = first_sample(row)
    args, kwargs = sample.tensors(F)
    other, _ = sample.tensors(F, device="meta")
    places = [i for i, a in enumerate(sample.args) if isinstance(a, Operand) and a.shape]
    if len(places) < 2:
        return
    args[places[-1]] = other[places[-1]]
    with skips_allowed(row, "error", "device"):
        with pytest.raises(RuntimeError, match=r"device|meta") as caught:
            callable_of(row)(*args, **kwargs)
        name = row_id(row).partition(".")[0]
        assert name.replace("linalg_", "linalg.") in str(caught.value)


# Prints the rows that take a number without data as an int; run apart, because it must not crash.
_NUMBER_WITHOUT_DATA = """
import sys
sys.path[:0] = sys.argv[1:]
from row_cases import F, callable_of, row_id
from test_rows_errors import CALLED, first_sample

number = F.zeros((), dtype=F.int64, device="meta")
for row in CALLED:
    sample, _ = first_sample(row)
    for i, argument in enumerate(row.schema.args[: len(sample.args)]):
        if argument.type != "int" or argument.keyword_only:
            continue
        args, kwargs = sample.tensors(F)
        args[i] = number
        print("trying", row_id(row), argument.name, flush=True)
        try:
            callable_of(row)(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError):
            continue
        print("accepted", row_id(row), argument.name, flush=True)
"""


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch's parser is PyTorch's")
def test_number_without_data_as_an_int_argument_is_refused():
    """A 0-dim integer tensor may stand for an int, but on the meta device it has no value."""
    ran = subprocess.run(
        [sys.executable, "-c", _NUMBER_WITHOUT_DATA, *filter(None, sys.path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = ran.stdout.splitlines()
    assert lines, ran.stderr
    assert ran.returncode == 0, f"status {ran.returncode} after {lines[-1]!r}\n{ran.stderr[-500:]}"
    assert [line for line in lines if line.startswith("accepted")] == []
