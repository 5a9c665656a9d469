"""The text of tensors: golden strings, the print options, and a comparison with PyTorch.

The strings are PyTorch 2.13's, with ``facula.`` for ``torch.``; ``FACULA_TEST_PACKAGE=torch``
runs the same tests on PyTorch itself, which proves the strings.
"""

import importlib
import math
import os
import random
from math import inf, nan

import pytest

F = importlib.import_module(os.environ.get("FACULA_TEST_PACKAGE", "facula"))
printing = importlib.import_module(f"{F.__name__}._tensor_str")


def text(tensor):
    return repr(tensor).replace("torch.", "facula.")


def lines(*parts):
    return "\n".join(parts)


def cases(transcript):
    """Parametrise a test over a transcript: a ``# name``, statements after ``>>>``, their text."""
    names, params = [], []
    for case in transcript.strip().removeprefix("# ").split("\n# "):
        name, *rest = case.split("\n")
        code = [line.removeprefix(">>> ") for line in rest if line.startswith(">>> ")]
        names.append(name)
        params.append((code, "\n".join(rest[len(code) :])))
    return pytest.mark.parametrize("code, expected", params, ids=names)


def run(code):
    """Run the statements of a case and return the value of the last one."""
    results = [eval(line, {"F": F, "inf": inf, "nan": nan}) for line in code]
    return results[-1]


@pytest.fixture(autouse=True)
def default_print_options():
    F.set_printoptions(profile="default")
    yield
    F.set_printoptions(profile="default")


WHOLE_NUMBERS = """
# int64 has no suffix
>>> F.tensor([1, 2, 3])
tensor([1, 2, 3])
# int32 names its dtype
>>> F.tensor([1, 2, 3], dtype=F.int32)
tensor([1, 2, 3], dtype=facula.int32)
# int8
>>> F.tensor([-128, 127], dtype=F.int8)
tensor([-128,  127], dtype=facula.int8)
# int16
>>> F.tensor([-32768, 32767], dtype=F.int16)
tensor([-32768,  32767], dtype=facula.int16)
# uint8
>>> F.tensor([0, 7, 255], dtype=F.uint8)
tensor([  0,   7, 255], dtype=facula.uint8)
# uint16
>>> F.tensor([0, 65535], dtype=F.uint16)
tensor([    0, 65535], dtype=facula.uint16)
# uint32
>>> F.tensor([0, 4294967295], dtype=F.uint32)
tensor([         0, 4294967295], dtype=facula.uint32)
# uint64 above the range of int64
>>> F.tensor([1, 18446744073709551615], dtype=F.uint64)
tensor([                   1, 18446744073709551615], dtype=facula.uint64)
# int64 extremes
>>> F.tensor([-9223372036854775808, 9223372036854775807])
tensor([-9223372036854775808,  9223372036854775807])
# columns align to the right
>>> F.tensor([[1, -20], [300, 4]])
tensor([[  1, -20],
        [300,   4]])
# bool is padded as text
>>> F.tensor([[True, False], [True, True]])
tensor([[ True, False],
        [ True,  True]])
# all true needs no padding
>>> F.tensor([True, True])
tensor([True, True])
"""


@cases(WHOLE_NUMBERS)
def test_integers_and_bools(code, expected):
    assert text(run(code)) == expected


REALS = """
# whole values end in a point
>>> F.tensor([1.0, 2.0, -3.0])
tensor([ 1.,  2., -3.])
# one fraction gives all four digits
>>> F.tensor([1.0, 2.5])
tensor([1.0000, 2.5000])
# digits are rounded
>>> F.tensor([0.12345678, 0.99999])
tensor([0.1235, 1.0000])
# float64 names its dtype
>>> F.tensor([0.1, 0.2], dtype=F.float64)
tensor([0.1000, 0.2000], dtype=facula.float64)
# float16 prints its rounded value
>>> F.tensor([0.1, 1000.5], dtype=F.float16)
tensor([9.9976e-02, 1.0005e+03], dtype=facula.float16)
# bfloat16 prints its rounded value
>>> F.tensor([0.1, 3.3], dtype=F.bfloat16)
tensor([0.1001, 3.2969], dtype=facula.bfloat16)
# float8_e4m3fn
>>> F.tensor([0.5, 448.0]).to(F.float8_e4m3fn)
tensor([  0.5000, 448.0000], dtype=facula.float8_e4m3fn)
# float8_e5m2
>>> F.tensor([1.0, 57344.0]).to(F.float8_e5m2)
tensor([1.0000e+00, 5.7344e+04], dtype=facula.float8_e5m2)
# ratio of 1000 stays fixed
>>> F.tensor([1000.0, 1.0])
tensor([1000.,    1.])
# ratio above 1000 turns scientific
>>> F.tensor([1001.0, 1.0])
tensor([1.0010e+03, 1.0000e+00])
# ratio ignores zero
>>> F.tensor([1001.5, 0.0])
tensor([1001.5000,    0.0000])
# 1e8 stays fixed
>>> F.tensor([1.0e8])
tensor([100000000.])
# above 1e8 turns scientific
>>> F.tensor([1.0e8 + 8])
tensor([1.0000e+08])
# below 1e-4 turns scientific
>>> F.tensor([9.0e-5])
tensor([9.0000e-05])
# float32 1e-4 lies below 1e-4
>>> F.tensor([1.0e-4])
tensor([1.0000e-04])
# float64 1e-4 does not lie below it
>>> F.tensor([1.0e-4], dtype=F.float64)
tensor([0.0001], dtype=facula.float64)
# negative scientific
>>> F.tensor([-1.5e10, 2.25])
tensor([-1.5000e+10,  2.2500e+00])
# three digit exponents
>>> F.tensor([1.0e300, 1.0e-300], dtype=F.float64)
tensor([1.0000e+300, 1.0000e-300], dtype=facula.float64)
# smallest subnormal
>>> F.tensor([5e-324], dtype=F.float64)
tensor([4.9407e-324], dtype=facula.float64)
"""


@cases(REALS)
def test_reals_choose_one_notation_for_all_elements(code, expected):
    assert text(run(code)) == expected


SPECIAL_VALUES = """
# nan beside whole values
>>> F.tensor([1.0, nan])
tensor([1., nan])
# nan beside fractions is padded
>>> F.tensor([1.5, nan, -inf])
tensor([1.5000,    nan,   -inf])
# nan beside scientific is padded
>>> F.tensor([1.0e10, 1.0, nan])
tensor([1.0000e+10, 1.0000e+00,        nan])
# nothing but nan and inf
>>> F.tensor([nan, inf, -inf])
tensor([nan, inf, -inf])
# negative zero keeps its sign
>>> F.tensor([-0.0, 0.0])
tensor([-0., 0.])
# negative zero among fractions
>>> F.tensor([-0.0, 0.5])
tensor([-0.0000, 0.5000])
# zeros have no say in the width
>>> F.tensor([-0.0, 1.0, nan])
tensor([-0., 1., nan])
"""


@cases(SPECIAL_VALUES)
def test_nan_inf_and_signed_zero(code, expected):
    assert text(run(code)) == expected


SCALARS = """
# int
>>> F.tensor(7)
tensor(7)
# bool
>>> F.tensor(False)
tensor(False)
# whole float
>>> F.tensor(2.0)
tensor(2.)
# fraction
>>> F.tensor(2.5)
tensor(2.5000)
# large float
>>> F.tensor(1.0e10)
tensor(1.0000e+10)
# small float
>>> F.tensor(1.5e-5)
tensor(1.5000e-05)
# negative zero
>>> F.tensor(-0.0)
tensor(-0.)
# nan
>>> F.tensor(nan)
tensor(nan)
# minus inf
>>> F.tensor(-inf)
tensor(-inf)
# complex
>>> F.tensor(1.5 + 3j)
tensor(1.5000+3.j)
# with dtype
>>> F.tensor(2.5, dtype=F.float64)
tensor(2.5000, dtype=facula.float64)
"""


@cases(SCALARS)
def test_zero_dimensional_tensors_have_no_brackets(code, expected):
    assert text(run(code)) == expected


COMPLEX = """
# whole
>>> F.tensor([1 + 2j, -3 - 4j])
tensor([ 1.+2.j, -3.-4.j])
# parts choose their notation apart
>>> F.tensor([1.5 + 2j, -0.5 - 4j])
tensor([ 1.5000+2.j, -0.5000-4.j])
# one part scientific
>>> F.tensor([1 + 2.0e9j, 2 + 0.5j])
tensor([1.+2.0000e+09j, 2.+5.0000e-01j])
# only the real column is padded
>>> F.tensor([1 + 20j, -1 - 2j, 100 + 0j])
tensor([  1.+20.j,  -1.-2.j, 100.+0.j])
# nan and inf parts
>>> F.tensor([complex(nan, 1), complex(1.5, -inf), complex(inf, nan)])
tensor([   nan+1.j, 1.5000-infj,    inf+nanj])
# negative zero parts
>>> F.tensor([complex(-0.0, -0.0), complex(1, 1)])
tensor([-0.-0.j, 1.+1.j])
# complex128 names its dtype
>>> F.tensor([1j], dtype=F.complex128)
tensor([0.+1.j], dtype=facula.complex128)
# lines are filled by both parts
>>> F.full((12,), 0.25 - 1j)
tensor([0.2500-1.j, 0.2500-1.j, 0.2500-1.j, 0.2500-1.j, 0.2500-1.j, 0.2500-1.j,
        0.2500-1.j, 0.2500-1.j, 0.2500-1.j, 0.2500-1.j, 0.2500-1.j, 0.2500-1.j])
"""


@cases(COMPLEX)
def test_complex_parts_are_formatted_apart(code, expected):
    assert text(run(code)) == expected


LAYOUT = """
# matrix
>>> F.arange(6).reshape(2, 3)
tensor([[0, 1, 2],
        [3, 4, 5]])
# three dimensions are set apart by blank lines
>>> F.arange(8).reshape(2, 2, 2)
tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]])
# four dimensions
>>> F.arange(4).reshape(2, 1, 2, 1)
tensor([[[[0],
          [1]]],


        [[[2],
          [3]]]])
# long row is broken
>>> F.arange(30)
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])
# long rows of a matrix are broken
>>> F.arange(40.0).reshape(2, 20)
tensor([[ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
         14., 15., 16., 17., 18., 19.],
        [20., 21., 22., 23., 24., 25., 26., 27., 28., 29., 30., 31., 32., 33.,
         34., 35., 36., 37., 38., 39.]])
# line of fractions
>>> F.full((10,), 0.5)
tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000,
        0.5000])
# transposed view
>>> F.arange(6).reshape(2, 3).t()
tensor([[0, 3],
        [1, 4],
        [2, 5]])
# expanded view
>>> F.tensor([1, 2]).expand(2, 2)
tensor([[1, 2],
        [1, 2]])
# one element in many dimensions
>>> F.tensor([[[[5]]]])
tensor([[[[5]]]])
"""


@cases(LAYOUT)
def test_brackets_and_line_breaks(code, expected):
    assert text(run(code)) == expected


SUMMARIES = """
# vector
>>> F.arange(1001)
tensor([   0,    1,    2,  ...,  998,  999, 1000])
# matrix
>>> F.arange(10000).reshape(100, 100)
tensor([[   0,    1,    2,  ...,   97,   98,   99],
        [ 100,  101,  102,  ...,  197,  198,  199],
        [ 200,  201,  202,  ...,  297,  298,  299],
        ...,
        [9700, 9701, 9702,  ..., 9797, 9798, 9799],
        [9800, 9801, 9802,  ..., 9897, 9898, 9899],
        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])
# short dimensions are not cut
>>> F.arange(4000.0).reshape(2, 2000)
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,
         1.9990e+03],
        [2.0000e+03, 2.0010e+03, 2.0020e+03,  ..., 3.9970e+03, 3.9980e+03,
         3.9990e+03]])
# long first dimension
>>> F.arange(2002).reshape(1001, 2)
tensor([[   0,    1],
        [   2,    3],
        [   4,    5],
        ...,
        [1996, 1997],
        [1998, 1999],
        [2000, 2001]])
# three dimensions
>>> F.arange(1800).reshape(10, 2, 90)
tensor([[[   0,    1,    2,  ...,   87,   88,   89],
         [  90,   91,   92,  ...,  177,  178,  179]],

        [[ 180,  181,  182,  ...,  267,  268,  269],
         [ 270,  271,  272,  ...,  357,  358,  359]],

        [[ 360,  361,  362,  ...,  447,  448,  449],
         [ 450,  451,  452,  ...,  537,  538,  539]],

        ...,

        [[1260, 1261, 1262,  ..., 1347, 1348, 1349],
         [1350, 1351, 1352,  ..., 1437, 1438, 1439]],

        [[1440, 1441, 1442,  ..., 1527, 1528, 1529],
         [1530, 1531, 1532,  ..., 1617, 1618, 1619]],

        [[1620, 1621, 1622,  ..., 1707, 1708, 1709],
         [1710, 1711, 1712,  ..., 1797, 1798, 1799]]])
# hidden elements have no say in the notation
>>> F.cat([F.ones(500), F.full((10,), 1.0e9), F.ones(500)])
tensor([1., 1., 1.,  ..., 1., 1., 1.])
# shown elements decide the notation
>>> F.cat([F.ones(1000), F.full((1,), 1.0e9)])
tensor([1.0000e+00, 1.0000e+00, 1.0000e+00,  ..., 1.0000e+00, 1.0000e+00,
        1.0000e+09])
# bool
>>> F.ones(2000, dtype=F.bool)
tensor([True, True, True,  ..., True, True, True])
# complex
>>> F.full((1500,), 1.5 - 2j)
tensor([1.5000-2.j, 1.5000-2.j, 1.5000-2.j,  ..., 1.5000-2.j, 1.5000-2.j,
        1.5000-2.j])
"""


@cases(SUMMARIES)
def test_large_tensors_are_summarised(code, expected):
    assert text(run(code)) == expected


EMPTY = """
# vector shows no size
>>> F.empty(0)
tensor([])
# matrix shows its size
>>> F.empty(0, 3)
tensor([], size=(0, 3))
# inner dimension of zero
>>> F.empty(2, 0)
tensor([], size=(2, 0))
# int64 must be named
>>> F.empty(0, dtype=F.int64)
tensor([], dtype=facula.int64)
# bool must be named
>>> F.empty(0, 2, dtype=F.bool)
tensor([], size=(0, 2), dtype=facula.bool)
# complex64 must be named
>>> F.empty(0, dtype=F.complex64)
tensor([], dtype=facula.complex64)
# float64 with size
>>> F.empty(0, 3, dtype=F.float64)
tensor([], size=(0, 3), dtype=facula.float64)
"""


@cases(EMPTY)
def test_tensors_without_elements(code, expected):
    assert text(run(code)) == expected


META = """
# float
>>> F.empty(2, 3, device="meta")
tensor(..., device='meta', size=(2, 3))
# int64 must be named
>>> F.empty(2, dtype=F.int64, device="meta")
tensor(..., device='meta', size=(2,), dtype=facula.int64)
# scalar
>>> F.empty((), device="meta")
tensor(..., device='meta', size=())
# empty
>>> F.empty(0, device="meta")
tensor(..., device='meta', size=(0,))
# requires grad
>>> F.empty(2, device="meta", requires_grad=True)
tensor(..., device='meta', size=(2,), requires_grad=True)
"""


@cases(META)
def test_meta_tensors_show_their_size_only(code, expected):
    assert text(run(code)) == expected


AUTOGRAD = """
# leaf
>>> F.tensor([1.0, 2.0], requires_grad=True)
tensor([1., 2.], requires_grad=True)
# leaf with dtype
>>> F.tensor([1.5], dtype=F.float64, requires_grad=True)
tensor([1.5000], dtype=facula.float64, requires_grad=True)
# result names its node
>>> F.tensor([1.0, 2.0], requires_grad=True) + 1
tensor([2., 3.], grad_fn=<AddBackward0>)
# view of a leaf
>>> F.ones(2, 2, requires_grad=True).view(-1)
tensor([1., 1., 1., 1.], grad_fn=<ViewBackward0>)
# scalar result
>>> F.ones(3, requires_grad=True).sum()
tensor(3., grad_fn=<SumBackward0>)
# detached
>>> (F.ones(2, requires_grad=True) * 2).detach()
tensor([2., 2.])
# empty result
>>> F.empty(2, 0, requires_grad=True) + 1
tensor([], size=(2, 0), grad_fn=<AddBackward0>)
# complex
>>> F.tensor([1j], requires_grad=True) * 2
tensor([0.+2.j], grad_fn=<MulBackward0>)
"""


@cases(AUTOGRAD)
def test_autograd_suffixes(code, expected):
    assert text(run(code)) == expected


OPTIONS = """
# precision
>>> F.set_printoptions(precision=2)
>>> F.tensor([1.23456, 2.0])
tensor([1.23, 2.00])
# precision of scientific
>>> F.set_printoptions(precision=2)
>>> F.tensor([1.0e10, 1.0])
tensor([1.00e+10, 1.00e+00])
# precision does not touch whole values
>>> F.set_printoptions(precision=8)
>>> F.tensor([1.0, 2.0])
tensor([1., 2.])
# precision zero
>>> F.set_printoptions(precision=0)
>>> F.tensor([1.5, 2.25])
tensor([2, 2])
# precision ten
>>> F.set_printoptions(precision=10)
>>> F.tensor([0.1], dtype=F.float64)
tensor([0.1000000000], dtype=facula.float64)
# sci mode on
>>> F.set_printoptions(sci_mode=True)
>>> F.tensor([1.0, -2.5])
tensor([ 1.0000e+00, -2.5000e+00])
# sci mode on has no effect on zeros
>>> F.set_printoptions(sci_mode=True)
>>> F.tensor([0.0, inf])
tensor([0., inf])
# sci mode off
>>> F.set_printoptions(sci_mode=False)
>>> F.tensor([1.5e10, 2.25])
tensor([15000000512.0000,           2.2500])
# sci mode off hides small values
>>> F.set_printoptions(sci_mode=False)
>>> F.tensor([1.0e-7, 1.0])
tensor([0.0000, 1.0000])
# threshold
>>> F.set_printoptions(threshold=6)
>>> F.arange(7)
tensor([0, 1, 2,  ..., 4, 5, 6])
# threshold met but not exceeded
>>> F.set_printoptions(threshold=7)
>>> F.arange(7)
tensor([0, 1, 2, 3, 4, 5, 6])
# threshold of rows too short to cut
>>> F.set_printoptions(threshold=3)
>>> F.arange(4).reshape(2, 2)
tensor([[0, 1],
        [2, 3]])
# edgeitems
>>> F.set_printoptions(threshold=5, edgeitems=1)
>>> F.arange(12).reshape(3, 4)
tensor([[ 0,  ...,  3],
        ...,
        [ 8,  ..., 11]])
# edgeitems zero shows the size
>>> F.set_printoptions(threshold=3, edgeitems=0)
>>> F.arange(8).reshape(2, 4)
tensor([...], size=(2, 4))
# edgeitems zero below the threshold
>>> F.set_printoptions(edgeitems=0)
>>> F.arange(3)
tensor([0, 1, 2], size=(3,))
# linewidth
>>> F.set_printoptions(linewidth=30)
>>> F.arange(12)
tensor([ 0,  1,  2,  3,  4,
         5,  6,  7,  8,  9,
        10, 11])
# linewidth breaks suffixes
>>> F.set_printoptions(linewidth=20)
>>> F.ones(2, dtype=F.float64, requires_grad=True)
tensor([1., 1.],
       dtype=facula.float64,
       requires_grad=True)
# linewidth below one element
>>> F.set_printoptions(linewidth=1)
>>> F.tensor([1.5, 2.5])
tensor([1.5000,
        2.5000])
# wide line
>>> F.set_printoptions(linewidth=90)
>>> F.arange(38)
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
        20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37])
# profile short
>>> F.set_printoptions(profile="short")
>>> F.arange(1001.0) / 8
tensor([  0.00,   0.12,  ..., 124.88, 125.00])
# profile with an option that overrides
>>> F.set_printoptions(profile="short", precision=3)
>>> F.tensor([0.5])
tensor([0.500])
# complex with precision
>>> F.set_printoptions(precision=1)
>>> F.tensor([1.25 + 0.75j])
tensor([1.2+0.8j])
"""


@cases(OPTIONS)
def test_options_shape_the_text(code, expected):
    assert text(run(code)) == expected


def test_str_is_repr():
    tensor = F.tensor([[1.0, 2.5]])
    assert str(tensor) == repr(tensor)


def test_zeros_overrun_the_line_as_in_pytorch():
    # Zeros have no say in the width, so that PyTorch takes them to be one column wide.
    assert text(F.zeros(25)) == lines("tensor([" + "0., " * 23 + "0.,", "        0.])")


def test_1000_elements_are_all_shown():
    shown = text(F.arange(1000))
    assert "..." not in shown
    assert shown.count(",") == 999


def test_full_profile_shows_every_element():
    F.set_printoptions(profile="full")
    shown = text(F.arange(3000))
    assert "..." not in shown
    assert shown.count(",") == 2999


def test_huge_tensor_is_read_at_its_edges_only():
    # 10**12 elements in the memory of one: reading them all would never end.
    huge = F.tensor([1.5]).expand(10**6, 10**6)
    row = "[1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000]"
    rows = ",\n        ".join([row] * 3 + ["..."] + [row] * 3)
    assert text(huge) == f"tensor([{rows}])"


def test_long_suffixes_go_to_a_line_of_their_own():
    leaf = F.full((9,), 0.5, dtype=F.float64, requires_grad=True)
    assert text(leaf) == lines(
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],",
        "       dtype=facula.float64, requires_grad=True)",
    )


def test_suffix_stays_on_the_last_line_where_it_fits():
    assert text(F.full((11,), 0.5, requires_grad=True)) == lines(
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000,",
        "        0.5000, 0.5000], requires_grad=True)",
    )


def test_default_dtype_is_the_one_left_out():
    before = F.get_default_dtype()
    F.set_default_dtype(F.float64)
    try:
        assert text(F.tensor([1.0])) == "tensor([1.])"
        assert text(F.tensor([1j])) == "tensor([0.+1.j])"
        assert text(F.empty(0)) == "tensor([])"
        assert text(F.tensor([1.0], dtype=F.float32)) == "tensor([1.], dtype=facula.float32)"
        assert text(F.tensor([1j], dtype=F.complex64)) == "tensor([0.+1.j], dtype=facula.complex64)"
    finally:
        F.set_default_dtype(before)


def test_custom_function_gives_its_name_to_the_node():
    class Twice(F.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    result = Twice.apply(F.ones(2, requires_grad=True))
    assert text(result) == "tensor([2., 2.], grad_fn=<TwiceBackward>)"


def test_view_with_an_outdated_history_is_marked_and_still_printed():
    base = F.ones(2, requires_grad=True).clone()
    with F.no_grad():
        view = base[:1]
    base.mul_(3)
    assert text(view) == "tensor([3.], grad_fn=<Invalid>)"


def test_dual_tensor_shows_its_tangent():
    forward_ad = pytest.importorskip(f"{F.__name__}.autograd.forward_ad")
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(F.ones(2), F.tensor([3.0, 4.0]))
        assert text(dual) == "tensor([1., 1.], tangent=tensor([3., 4.]))"


class Image(F.Tensor):
    pass


def test_subclass_prints_its_own_name():
    image = F.arange(30.0).reshape(2, 15).as_subclass(Image)
    assert text(image) == lines(
        "Image([[ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,",
        "        14.],",
        "       [15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27., 28.,",
        "        29.]])",
    )


def test_subclass_without_elements():
    assert text(F.empty(0, 2).as_subclass(Image)) == "Image([], size=(0, 2))"


def test_printing_does_not_call_back_into_a_subclass():
    class Recorded(F.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            cls.calls.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    recorded = F.arange(2000.0).as_subclass(Recorded)
    Recorded.calls.clear()
    assert text(recorded).startswith("Recorded([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970")
    assert len(Recorded.calls) <= 1  # repr itself


def test_parameter_announces_itself():
    parameter = pytest.importorskip(f"{F.__name__}.nn.parameter").Parameter
    assert text(parameter(F.ones(2))) == lines(
        "Parameter containing:",
        "tensor([1., 1.], requires_grad=True)",
    )


def test_parameter_made_of_a_subclass_names_both():
    parameter = pytest.importorskip(f"{F.__name__}.nn.parameter").Parameter
    wrapped = parameter(F.ones(2).as_subclass(Image))
    assert text(wrapped) == "Parameter(Image([1., 1.], requires_grad=True))"


def test_given_contents_replace_the_elements():
    tensor = F.ones(2, dtype=F.float64)
    shown = printing._str(tensor, tensor_contents="<two ones>").replace("torch.", "facula.")
    assert shown == "tensor(<two ones>, dtype=facula.float64)"


def test_profiles_set_four_options():
    F.set_printoptions(profile="short")
    assert printing.get_printoptions() == {
        "precision": 2,
        "threshold": 1000,
        "edgeitems": 2,
        "linewidth": 80,
        "sci_mode": None,
    }
    F.set_printoptions(profile="full")
    assert printing.get_printoptions()["threshold"] == inf
    F.set_printoptions(profile="default")
    assert printing.get_printoptions()["precision"] == 4


def test_options_left_out_keep_their_values_except_sci_mode():
    F.set_printoptions(precision=7, sci_mode=True)
    F.set_printoptions(linewidth=100)
    options = printing.get_printoptions()
    assert (options["precision"], options["linewidth"]) == (7, 100)
    assert options["sci_mode"] is None


def test_returned_options_are_a_copy():
    printing.get_printoptions()["precision"] = 9
    assert printing.get_printoptions()["precision"] == 4


def test_printoptions_restores_also_after_an_error():
    with pytest.raises(KeyError), printing.printoptions(precision=2, sci_mode=True):
        assert text(F.tensor([1.0])) == "tensor([1.00e+00])"
        raise KeyError
    assert text(F.tensor([1.5])) == "tensor([1.5000])"


def test_printoptions_restores_the_sci_mode_around_it():
    with printing.printoptions(sci_mode=True):
        with printing.printoptions(precision=2):
            assert printing.get_printoptions()["sci_mode"] is None
        assert printing.get_printoptions()["sci_mode"] is True


def test_printoptions_refuses_an_unknown_option():
    with pytest.raises(TypeError), printing.printoptions(digits=2):
        pass
    assert printing.get_printoptions()["precision"] == 4


@pytest.mark.skipif(F.__name__ == "torch", reason="PyTorch accepts these and fails when printing")
@pytest.mark.parametrize("option", ["precision", "edgeitems"])
@pytest.mark.parametrize("value", [-1, 2.5, "4"])
def test_option_that_could_not_be_printed_with_is_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} must be a non-negative int, but got {value!r}"):
        F.set_printoptions(**{option: value})
    assert text(F.tensor([1.5])) == "tensor([1.5000])"


def test_infinite_linewidth_never_breaks_a_row():
    if F.__name__ == "torch":
        pytest.skip("PyTorch fails on it")
    F.set_printoptions(linewidth=inf)
    assert "\n" not in text(F.arange(900))


# Comparison with PyTorch on random tensors, where it is installed.


def random_shape(rng):
    dims = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    longest = rng.choice(
        {0: [1], 1: [1, 9, 60, 1500], 2: [3, 9, 50], 3: [3, 8, 14], 4: [2, 7]}[dims]
    )
    smallest = 0 if rng.random() < 0.1 else 1
    return tuple(rng.randint(smallest, longest) for _ in range(dims))


def random_real(rng):
    """Return a function that draws reals of one character: whole, wide, near a limit, ..."""
    scale = 10.0 ** rng.randint(-6, 10)
    limits = [1.0, 1000.0, 1001.0, 0.5, 1.0e8, 1.0e8 + 1, 1.0e-4, 9.99e-5, 0.0]
    draw = rng.choice(
        [
            lambda: rng.gauss(0, 1),
            lambda: rng.random() * scale,
            lambda: float(rng.randint(-1000, 1000)),
            lambda: 10.0 ** rng.uniform(-4, 4),
            lambda: rng.choice(limits),
            lambda: 0.0,
        ]
    )
    special = rng.choice([0.0, 0.0, 0.1])
    return lambda: rng.choice([nan, inf, -inf, -0.0]) if rng.random() < special else draw()


def random_values(rng, torch, dtype, count):
    if dtype is torch.bool:
        return [rng.random() < 0.5 for _ in range(count)]
    if dtype.is_complex:
        real, imag = random_real(rng), random_real(rng)
        return [complex(real(), imag()) for _ in range(count)]
    if dtype.is_floating_point:
        real = random_real(rng)
        return [real() for _ in range(count)]
    limits = torch.iinfo(dtype)
    bound = 10 ** rng.randint(1, 20)
    low, high = max(limits.min, -bound), min(limits.max, bound)
    return [rng.randint(low, high) for _ in range(count)]


def random_options(rng):
    choices = {
        "profile": ["default", "short", "full"],
        "precision": range(13),
        "threshold": [0, 3, 10, 50, 200, inf],
        "edgeitems": range(7),
        "linewidth": [0, 5, 20, 40, 79, 81, 120, 1000],
        "sci_mode": [True, False],
    }
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.2}


INTEGRAL = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
DIFFERENTIABLE = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
DTYPES = [*INTEGRAL, *DIFFERENTIABLE, "float8_e4m3fn", "float8_e5m2"]


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    yield module
    module.set_printoptions(profile="default")


@pytest.mark.parametrize("name", DTYPES)
def test_random_pytorch_tensors_print_as_pytorch_prints_them(torch, name):
    ours = pytest.importorskip("facula._tensor_str")
    rng = random.Random(name)
    dtype = getattr(torch, name)
    for _ in range(150):
        shape = random_shape(rng)
        values = torch.tensor(random_values(rng, torch, dtype, math.prod(shape)), dtype=dtype)
        tensor = values.reshape(shape)
        if name in DIFFERENTIABLE:
            tensor.requires_grad_(rng.random() < 0.3)
            if rng.random() < 0.2:
                tensor = tensor * 1
        if tensor.dim() > 1 and rng.random() < 0.2:
            tensor = tensor.transpose(0, 1)
        options = random_options(rng)
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        expected = repr(tensor)
        with ours.printoptions(**{"profile": "default", **options}):
            assert ours._str(tensor) == expected, options


def without_suffix_break(shown):
    """Undo the break before a dtype: "facula." is longer than "torch.", and so breaks earlier."""
    return shown.replace("torch.", "facula.").replace(",\n       dtype=", ", dtype=")


@pytest.mark.parametrize("name", DTYPES)
def test_random_tensors_print_as_in_pytorch(torch, name):
    rng = random.Random(f"{name} built here")
    ours, theirs = getattr(F, name), getattr(torch, name)
    for _ in range(50):
        shape = random_shape(rng)
        values = random_values(rng, torch, theirs, math.prod(shape))
        expected = repr(torch.tensor(values, dtype=theirs).reshape(shape))
        shown = text(F.tensor(values, dtype=ours).reshape(shape))
        assert without_suffix_break(shown) == without_suffix_break(expected)
