"""The variants of an operator say the same: function, method, aliases, in-place and out=."""

import warnings

import pytest
from operands import LETTER, Operand, Sample
from package_under_test import F
from row_cases import (
    PUBLIC,
    SAMPLED,
    assert_same_tensor,
    attribute,
    callable_of,
    cases,
    check_samples,
    dtype_name,
    method_of,
    result_fits,
    results,
    row_cases,
    row_id,
    to_array,
)
from samples import samples_of, spread

BOTH_FORMS = [r for r in SAMPLED if r.function and r.method]
ALIASED = [r for r in SAMPLED if r.aliases]
IN_PLACE = [r for r in SAMPLED if r.inplace]
WITH_OUT = [r for r in SAMPLED if r.out and r.function and r in PUBLIC]
# One dtype of each kind, and those that are computed in another one.
SOME = ("bool", "uint8", "int64", "bfloat16", "float32", "complex64")


def some_samples(row, dtype, key, at_most=8):
    return spread(samples_of(row, dtype), at_most, f"{row_id(row)}:{dtype}:{key}")


def assert_same_results(row, actual, expected, what):
    actual, expected = results(actual), results(expected)
    assert len(actual) == len(expected), f"{what}: {len(actual)} results, not {len(expected)}"
    for got, wanted in zip(actual, expected, strict=True):
        assert_same_tensor(got, wanted, what)


@pytest.mark.parametrize("row", row_cases(PUBLIC))
def test_every_variant_exists(row):
    """What the row promises can be found under each of its names."""
    for name in (row.python, *row.aliases):
        last = name.rpartition(".")[2]
        if row.function:
            assert callable(attribute(F, name))
        if "." in name and name != row.python:  # a function of a namespace, and nothing else
            continue
        if row.method:
            assert callable(getattr(F.Tensor, last))
        if row.inplace:
            assert callable(getattr(F.Tensor, last + "_"))


@pytest.mark.parametrize(("row", "dtype"), cases(BOTH_FORMS, only=SOME))
def test_method_matches_the_function(row, dtype):
    position = [a.name for a in row.schema.args].index("self")

    def check(sample: Sample) -> None:
        if not isinstance(sample.args[position], Operand):
            return  # a number has no methods
        args, kwargs = sample.tensors(F)
        expected = attribute(F, row.python)(*args, **kwargs)
        this = args.pop(position)
        assert_same_results(row, method_of(row)(this, *args, **kwargs), expected, "method")

    check_samples(row, "method", dtype, some_samples(row, dtype, "method"), check)


@pytest.mark.parametrize("row", row_cases(r for r in SAMPLED if r in PUBLIC and r.function))
def test_arguments_may_be_given_by_name(row):
    """Every argument by its name in the schema; PyTorch's functions call the first one input."""
    dtype = "float32" if "float32" in _dtypes(row) else _dtypes(row)[0]
    names = [a.name for a in row.schema.args]

    def check(sample: Sample) -> None:
        args, kwargs = sample.tensors(F)
        function = attribute(F, row.python)
        expected = function(*args, **kwargs)
        named = dict(zip(names, args, strict=False)) | kwargs
        if "self" in named:
            named["input"] = named.pop("self")
        assert_same_results(row, function(**named), expected, "by name")

    check_samples(row, "method", dtype, some_samples(row, dtype, "names", 3), check)


def _dtypes(row):
    return [case.values[1] for case in cases([row])]


@pytest.mark.parametrize("row", row_cases(ALIASED))
def test_alias_matches_its_operator(row):
    dtype = "float32" if "float32" in _dtypes(row) else _dtypes(row)[0]

    def check(sample: Sample) -> None:
        args, kwargs = sample.tensors(F)
        expected = callable_of(row)(*args, **kwargs)
        for alias in row.aliases:
            if row.function:
                got = attribute(F, alias)(*args, **kwargs)
                assert_same_results(row, got, expected, alias)
            if row.method and "." not in alias:
                got = method_of(row, alias)(*args, **kwargs)
                assert_same_results(row, got, expected, f"method {alias}")

    check_samples(row, "method", dtype, some_samples(row, dtype, "alias", 4), check)


# ---- in-place


@pytest.mark.parametrize(("row", "dtype"), cases(IN_PLACE, only=(*SOME, "float64")))
def test_in_place_writes_what_the_function_returns(row, dtype):
    def check(sample: Sample) -> None:
        first = sample.args[0]
        if not isinstance(first, Operand):
            return
        args, kwargs = sample.tensors(F)
        expected = callable_of(row)(*args, **kwargs)
        args, kwargs = sample.tensors(F)
        this, rest = args[0], args[1:]
        write = method_of(row, row.python.rpartition(".")[2] + "_")
        if first.overlaps or not result_fits(row, first, expected):
            before = to_array(this)
            with pytest.raises(RuntimeError):
                write(this, *rest, **kwargs)
            assert (to_array(this) == before).all(), "a refused call has changed the tensor"
            return
        version, strides = this._version, this.stride()
        returned = write(this, *rest, **kwargs)
        assert returned is this
        assert this._version > version, "the version was not counted up"
        assert this.stride() == strides
        assert_same_tensor(this, expected.to(this.dtype), "in-place", strides=False)

    check_samples(row, "in-place", dtype, some_samples(row, dtype, "in-place"), check)


@pytest.mark.parametrize(("row", "dtype"), cases(IN_PLACE, only=("float32", "int64", "bool")))
def test_in_place_leaves_the_rest_of_the_storage_alone(row, dtype):
    def check(sample: Sample) -> None:
        first = sample.args[0]
        if not isinstance(first, Operand) or first.offset == 0 or first.values.size == 0:
            return
        args, kwargs = sample.tensors(F)
        if not result_fits(row, first, callable_of(row)(*args, **kwargs)):
            return
        args, kwargs = sample.tensors(F)
        this, *others = args
        everything = this.as_strided((len(first._storage()),), (1,), 0)
        before = to_array(everything).copy()
        method_of(row, row.python.rpartition(".")[2] + "_")(this, *others, **kwargs)
        after = to_array(everything)
        places = F.arange(len(before)).as_strided(first.shape, first.strides, first.offset)
        rest = set(range(len(before))) - set(places.reshape(-1).tolist())
        written = [place for place in rest if before[place] != after[place]]
        assert not written, f"elements {written} of the storage were written"

    check_samples(row, "in-place", dtype, samples_of(row, dtype), check)


@pytest.mark.parametrize(("row", "dtype"), cases(IN_PLACE, only=("float64",)))
def test_in_place_gradient_matches_the_function(row, dtype):
    write = method_of(row, row.python.rpartition(".")[2] + "_")

    def gradients(sample, call):
        asking = []

        def convert(operand):
            tensor = operand.tensor(F)
            if operand.is_differentiable and not operand.overlaps:
                asking.append(tensor.requires_grad_())
            return tensor

        args, kwargs = sample.map(convert)
        result = call(args[0], *args[1:], **kwargs)
        if not result.requires_grad:
            return None
        weights = F.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
        return F.autograd.grad(result, asking, weights, allow_unused=True)

    def check(sample: Sample) -> None:
        first = sample.args[0]
        if not isinstance(first, Operand) or first.overlaps:
            return
        args, kwargs = sample.tensors(F)
        result = callable_of(row)(*args, **kwargs)
        if not result_fits(row, first, result) or not result.is_floating_point():
            return
        expected = gradients(sample, callable_of(row))
        # * 1, because a leaf must not be written to.
        got = gradients(sample, lambda this, *rest, **kwargs: write(this * 1, *rest, **kwargs))
        for i, ours in enumerate(got or ()):
            wanted = expected[i] if expected else None
            if ours is None or wanted is None:
                # What was overwritten by a value without derivative gets a gradient of zero.
                for some in (ours, wanted):
                    assert some is None or not to_array(some).any(), f"gradient {i} is {some}"
            else:
                assert_same_tensor(ours, wanted, f"gradient {i}", strides=False)
        assert expected is None or got is not None, "the in-place form has lost the graph"

    samples = [s for s in samples_of(row, dtype) if s.smooth]
    check_samples(row, "in-place", dtype, spread(samples, 6, row_id(row)), check)


# ---- out=


def outs_like(expected, make):
    outs = tuple(make(e) for e in results(expected))
    return outs if len(outs) > 1 else outs[0]


def check_out(row, sample, make_out, warns=False, keeps_strides=False):
    """Calls with out= of `make_out` of each result, and compares what was written."""
    args, kwargs = sample.tensors(F)
    function = attribute(F, row.python)
    expected = function(*args, **kwargs)
    out = outs_like(expected, make_out)
    strides = [o.stride() for o in results(out)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = function(*args, **kwargs, out=out)
    resized = [w for w in caught if "resized" in str(w.message)]
    assert bool(resized) == warns, f"warned: {[str(w.message) for w in caught]}"
    for i, (got, given, wanted) in enumerate(
        zip(results(returned), results(out), results(expected), strict=True)
    ):
        assert got is given, f"result {i} is not the tensor that was given"
        assert not keeps_strides or got.stride() == strides[i], "the layout of out has changed"
        assert_same_tensor(got, wanted.to(got.dtype), "out", strides=False)


@pytest.mark.parametrize(("row", "dtype"), cases(WITH_OUT, only=SOME))
def test_out_of_the_right_shape_is_written(row, dtype):
    def check(sample: Sample) -> None:
        check_out(row, sample, lambda e: F.empty(e.shape, dtype=e.dtype), keeps_strides=True)

    check_samples(row, "out", dtype, some_samples(row, dtype, "out", 4), check)


@pytest.mark.parametrize(("row", "dtype"), cases(WITH_OUT, only=("float32", "int64")))
def test_out_keeps_its_own_layout(row, dtype):
    def strided(e):
        whole = F.empty([2 * n for n in e.shape], dtype=e.dtype)
        return whole[tuple(slice(None, None, 2) for _ in e.shape)]

    def check(sample: Sample) -> None:
        check_out(row, sample, strided, keeps_strides=True)

    check_samples(row, "out", dtype, some_samples(row, dtype, "strided out", 4), check)


@pytest.mark.parametrize(("row", "dtype"), cases(WITH_OUT, only=("float32", "int64")))
def test_empty_out_is_resized_silently(row, dtype):
    def check(sample: Sample) -> None:
        check_out(row, sample, lambda e: F.empty(0, dtype=e.dtype))

    check_samples(row, "out", dtype, some_samples(row, dtype, "empty out", 4), check)


@pytest.mark.parametrize(("row", "dtype"), cases(WITH_OUT, only=("float32", "int64")))
def test_out_of_another_shape_is_resized_with_a_warning(row, dtype):
    def check(sample: Sample) -> None:
        check_out(row, sample, lambda e: F.empty([*e.shape, 3], dtype=e.dtype), warns=True)

    # Of a result without elements the resized tensor has none to lose.
    samples = [s for s in some_samples(row, dtype, "resized out", 6) if _has_elements(row, s)][:3]
    check_samples(row, "out", dtype, samples, check)


def _has_elements(row, sample):
    args, kwargs = sample.tensors(F)
    return all(e.numel() for e in results(attribute(F, row.python)(*args, **kwargs)))


# With dtype= in the signature, out says in which dtype to compute.
FIXED_DTYPE = [r for r in WITH_OUT if not any(a.name == "dtype" for a in r.schema.args)]


@pytest.mark.parametrize(("row", "dtype"), cases(FIXED_DTYPE, only=("float32",)))
def test_out_of_a_lower_kind_is_refused(row, dtype):
    def check(sample: Sample) -> None:
        args, kwargs = sample.tensors(F)
        function = attribute(F, row.python)
        expected = function(*args, **kwargs)
        if not any(e.is_floating_point() or e.is_complex() for e in results(expected)):
            return
        lower = {"f": F.int64, "c": F.float32}
        out = outs_like(
            expected,
            lambda e: F.zeros(e.shape, dtype=lower.get(LETTER[dtype_name(e)], e.dtype)),
        )
        with pytest.raises((RuntimeError, TypeError)):  # cat and stack raise the latter
            function(*args, **kwargs, out=out)
        assert not any(to_array(o).any() for o in results(out)), "a refused call has written"

    check_samples(row, "out", dtype, some_samples(row, dtype, "wrong out", 2), check)


@pytest.mark.parametrize(
    ("row", "dtype"), cases((r for r in WITH_OUT if r.is_elementwise), only=("float32",))
)
def test_out_of_an_elementwise_operator_may_be_wider(row, dtype):
    def check(sample: Sample) -> None:
        wider = {F.float32: F.float64, F.complex64: F.complex128}
        check_out(row, sample, lambda e: F.empty(e.shape, dtype=wider.get(e.dtype, e.dtype)))

    check_samples(row, "out", dtype, some_samples(row, dtype, "wider out", 3), check)


@pytest.mark.parametrize("row", row_cases(r for r in WITH_OUT if "float32" in _dtypes(r)))
def test_out_does_not_take_part_in_autograd(row):
    def check(sample: Sample) -> None:
        args, kwargs = sample.tensors(F)
        function = attribute(F, row.python)
        expected = function(*args, **kwargs)
        if not all(e.is_floating_point() for e in results(expected)):
            return
        out = outs_like(expected, lambda e: F.zeros(e.shape, dtype=e.dtype, requires_grad=True))
        with pytest.raises(RuntimeError, match=r"automatic differentiation|out="):
            function(*args, **kwargs, out=out)

    check_samples(row, "out", "float32", some_samples(row, "float32", "grad out", 1), check)
