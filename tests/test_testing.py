"""facula.testing: what assert_close accepts, what it says, and what make_tensor makes."""

import math

import numpy as np
import pytest
from package_under_test import IS_FACULA, F

assert_close, make_tensor = F.testing.assert_close, F.testing.make_tensor
pytestmark = pytest.mark.usefixtures("keep_random_state")
nan, inf = math.nan, math.inf


def t(values, dtype=None):
    return F.tensor(values, dtype=dtype)


ACCEPTED = [
    (t([1.0, 2.0]), t([1.0, 2.0 + 1e-7]), {}),
    (t([1.0]), t([1.0], F.float64), {"check_dtype": False}),
    (F.ones(2, 3), F.ones(3, 2).T, {}),
    ((1,), [1], {}),
    ({"a": [1, None]}, {"a": [1, None]}, {}),
    (None, None, {}),
    (inf, inf, {}),
    (nan, nan, {"equal_nan": True}),
    (t([nan]), t([nan]), {"equal_nan": True}),
    (t([1]), t([2]), {"rtol": 0.0, "atol": 2.0}),
    ([], [], {}),
    (F.ones(0), F.ones(0), {}),
    (np.array([1.0]), np.array([1.0]), {}),
    (True, True, {}),
    (F.ones(2, dtype=F.bfloat16), F.ones(2, dtype=F.bfloat16) * 1.01, {}),
]


@pytest.mark.parametrize("actual, expected, options", ACCEPTED)
def test_close(actual, expected, options):
    assert_close(actual, expected, **options)


SCALARS = (
    "Scalars are not {}!\n\nExpected {} but got {}.\nAbsolute difference: {}"
    "\nRelative difference: {}"
)
TENSORS = (
    "Tensor-likes are not {}!\n\nMismatched elements: {}\nGreatest absolute difference: {}"
    "\nGreatest relative difference: {}"
)
REFUSED = [
    (
        t([[1.0, 2.0], [3.0, 4.0]]),
        t([[1.0, 2.1], [5.0, 4.0]]),
        {},
        TENSORS.format(
            "close",
            "2 / 4 (50.0%)",
            "2.0 at index (1, 0) (up to 1e-05 allowed)",
            "0.4000000059604645 at index (1, 0) (up to 1.3e-06 allowed)",
        ),
    ),
    (
        t([1, 2]),
        t([1, 3]),
        {},
        TENSORS.format(
            "equal", "1 / 2 (50.0%)", "1 at index (1,)", "0.3333333432674408 at index (1,)"
        ),
    ),
    (
        t([True, False]),
        t([True, True]),
        {},
        TENSORS.format("equal", "1 / 2 (50.0%)", "1 at index (1,)", "1.0 at index (1,)"),
    ),
    (
        t([1.0, inf]),
        t([1.0, 2.0]),
        {},
        TENSORS.format(
            "close",
            "1 / 2 (50.0%)",
            "inf at index (1,) (up to 1e-05 allowed)",
            "inf at index (1,) (up to 1.3e-06 allowed)",
        ),
    ),
    (
        t([1.0]),
        t([2.0]),
        {"rtol": 0, "atol": 1e-3},
        TENSORS.format(
            "close",
            "1 / 1 (100.0%)",
            "1.0 at index (0,) (up to 0.001 allowed)",
            "0.5 at index (0,) (up to 0 allowed)",
        ),
    ),
    (1, 2, {}, SCALARS.format("equal", 2, 1, 1, 0.5)),
    (
        t(1.0),
        t(2.0),
        {},
        SCALARS.format(
            "close", 2.0, 1.0, "1.0 (up to 1e-05 allowed)", "0.5 (up to 1.3e-06 allowed)"
        ),
    ),
    (
        1 + 1j,
        1 + 2j,
        {},
        SCALARS.format(
            "close",
            "(1+2j)",
            "(1+1j)",
            "1.0 (up to 1e-07 allowed)",
            "0.4472135954999579 (up to 1e-07 allowed)",
        ),
    ),
    (
        nan,
        nan,
        {},
        SCALARS.format("close", nan, nan, "nan (up to 1e-07 allowed)", "nan (up to 1e-07 allowed)"),
    ),
    (True, False, {}, "Booleans mismatch: True is not False"),
    (1, 1.5, {}, "The (d)types do not match: <class 'int'> != <class 'float'>."),
    (None, 1, {}, "None mismatch: None is not 1"),
    ([1, 2], [1, 2, 3], {}, "The length of the sequences mismatch: 2 != 3"),
    (
        {"a": 1},
        {"b": 1},
        {},
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']",
    ),
    (
        [1, [2, {"k": 3}]],
        [1, [2, {"k": 4}]],
        {},
        SCALARS.format("equal", 4, 3, 1, 0.25) + "\n\nThe failure occurred for item [1][1]['k']",
    ),
    (t(1.0), t(2.0), {"msg": "other"}, "other"),
]


@pytest.mark.parametrize("actual, expected, options, text", REFUSED)
def test_the_report_says_what_differs(actual, expected, options, text):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **options)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "actual, expected, options, attribute",
    [
        (F.ones(2), F.ones(3), {}, "shape"),
        (t([1.0]), t([1.0], F.float64), {}, "dtype"),
        (F.ones(1), F.ones(1, device="meta"), {}, "device"),
        (F.ones(2, 3), F.ones(3, 2).T, {"check_stride": True}, r"stride\(\)"),
    ],
)
def test_attributes_are_compared(actual, expected, options, attribute):
    with pytest.raises(AssertionError, match=f"attribute '{attribute}' do not match"):
        assert_close(actual, expected, **options)


def test_a_function_makes_the_message():
    with pytest.raises(AssertionError, match="mine: Scalars are not close"):
        assert_close(1.0, 2.0, msg=lambda text: "mine: " + text)


@pytest.mark.parametrize(
    "actual, expected",
    [("a", "a"), (object(), 1), (t(1.0), 1.0), (np.ones(1), F.ones(1)), ({"a": 1}, [1])],
)
def test_what_cannot_be_compared_is_a_type_error(actual, expected):
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close(actual, expected)


def test_subclasses_and_tolerances():
    parameter = F.nn.Parameter(F.ones(1))
    assert_close(parameter, F.ones(1))
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(parameter, F.ones(1), allow_subclasses=False)
    with pytest.raises(ValueError, match="got no atol"):
        assert_close(1.0, 1.0, rtol=1.0)


MADE = [
    *[((3,), {"dtype": d}) for d in (
        "float32", "float64", "float16", "bfloat16", "complex64", "int64", "int32", "uint8", "int8",
        "bool", "uint16", "float8_e5m2",
    )],
    ((3,), {"dtype": "float32", "low": 2, "high": 3}),
    ((2, 3), {"dtype": "float32", "noncontiguous": True}),
    ((2,), {"dtype": "float32", "requires_grad": True}),
    ((2,), {"dtype": "float32", "low": 3, "high": 3}),
    ((6,), {"dtype": "int64", "low": 0, "high": 2, "exclude_zero": True}),
    ((2,), {"dtype": "uint8", "low": -5, "high": 300}),
    ((), {"dtype": "float32"}),
    ((2,), {"dtype": "float32", "low": -inf, "high": inf}),
    ((2,), {"dtype": "int64", "low": 2.5, "high": 4.2}),
    ((0, 3), {"dtype": "float32", "noncontiguous": True}),
]  # fmt: skip


@pytest.mark.skipif(not IS_FACULA, reason="compares Facula with PyTorch")
@pytest.mark.parametrize("shape, options", MADE)
def test_made_tensors_are_those_of_torch(shape, options):
    torch = pytest.importorskip("torch")
    made = []
    for package in (F, torch):
        package.manual_seed(0)
        named = {**options, "dtype": getattr(package, options["dtype"]), "device": "cpu"}
        made.append(package.testing.make_tensor(shape, **named))
    mine, theirs = made
    assert mine.tolist() == theirs.tolist()
    assert tuple(mine.stride()) == tuple(theirs.stride())
    assert mine.requires_grad == theirs.requires_grad


def test_made_tensors_keep_their_limits():
    made = make_tensor(1000, dtype=F.int64, device="cpu", low=-3, high=4)
    assert set(made.tolist()) == set(range(-3, 4))
    last = make_tensor((1, 2, 3, 3), dtype=F.float32, device="cpu", memory_format=F.channels_last)
    assert last.is_contiguous(memory_format=F.channels_last)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"dtype": F.int64, "requires_grad": True}, "not supported for boolean and integral"),
        ({"dtype": F.int64, "low": 3, "high": 2}, "must be less than"),
        ({"dtype": F.float32, "low": nan}, "cannot be NaN"),
        (
            {"dtype": F.float32, "noncontiguous": True, "memory_format": F.channels_last},
            "mutually exclusive",
        ),
    ],
)
def test_senseless_requests_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        make_tensor(2, device="cpu", **options)


def test_make_tensor_refuses_limits_that_no_bool_lies_between():
    with pytest.raises(ValueError, match="only supports"):
        F.testing.make_tensor(3, dtype=F.bool, device="cpu", low=2, high=5)


def test_sparse_tensors_are_compared_by_their_parts():
    def close(a, b):
        F.testing.assert_close(a, b)

    a = F.tensor([[0, 1.0], [2, 0]])
    b = F.tensor([[1.0, 0], [0, 2]])
    close(a.to_sparse(), a.to_sparse())
    with pytest.raises(AssertionError, match="Sparse COO values are not close!"):
        close(a.to_sparse(), (2 * a).to_sparse())
    with pytest.raises(AssertionError, match="Sparse COO indices are not equal!"):
        close(a.to_sparse(), b.to_sparse())
    with pytest.raises(AssertionError, match="sparse COO tensors does not match: 2 != 4"):
        close(a.to_sparse(), F.ones(2, 2).to_sparse())
    for name, kind in (("csr", "col"), ("csc", "row")):
        first, second = (getattr(t, f"to_sparse_{name}")() for t in (a, b))
        close(first, first.clone())
        with pytest.raises(AssertionError, match=f"Sparse {name.upper()} {kind}_indices"):
            close(first, second)
    blocks = F.eye(4).to_sparse_bsr((2, 2))
    close(blocks, F.eye(4).to_sparse_bsr((2, 2)))
    with pytest.raises(AssertionError, match="sparse BSR tensors does not match: 2 != 4"):
        close(blocks, F.eye(4).to_sparse_bsr((1, 1)))
    twice = F.sparse_coo_tensor([[0, 0], [0, 0]], [1.0, 2.0], (2, 2))
    with pytest.raises(AssertionError, match="does not match: 2 != 1"):
        close(twice, twice.coalesce())
    F.testing.assert_close(a.to_sparse(), a, check_layout=False)
