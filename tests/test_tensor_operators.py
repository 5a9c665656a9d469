"""Python's operators on tensors: forward, reflected, in-place, comparisons."""

import math
import operator

import pytest
from package_under_test import F


@pytest.mark.parametrize(
    "op, left, right, expected",
    [
        (operator.add, [1, 2], 3, [4, 5]),
        (operator.add, 3, [1, 2], [4, 5]),
        (operator.sub, [1, 2], 3, [-2, -1]),
        (operator.sub, 3, [1, 2], [2, 1]),
        (operator.mul, [1, 2], 3, [3, 6]),
        (operator.mul, 3, [1, 2], [3, 6]),
        (operator.truediv, [1, 2], 4, [0.25, 0.5]),
        (operator.truediv, 1, [2, 4], [0.5, 0.25]),
        (operator.floordiv, [7, -7], 2, [3, -4]),
        (operator.floordiv, 7, [2, -2], [3, -4]),
        (operator.floordiv, [7.0, -7.0], 2, [3.0, -4.0]),
        (operator.mod, [7, -7], 3, [1, 2]),
        (operator.mod, 7, [2, -2], [1, -1]),
        (operator.mod, [-7.5], 2, [0.5]),
        (operator.pow, [2, 3], 2, [4, 9]),
        (operator.pow, 2, [1, 2, 3], [2, 4, 8]),
        (operator.pow, 2.0, [1, 2], [2.0, 4.0]),
        (operator.pow, [4.0], 0.5, [2.0]),
        (operator.pow, -2, [1, 2], [-2, 4]),
        (operator.lshift, [1, 2], 3, [8, 16]),
        (operator.lshift, 1, [3], [8]),
        (operator.rshift, [16, -16], 2, [4, -4]),
        (operator.rshift, 256, [3], [32]),
        (operator.and_, [6, 5], 3, [2, 1]),
        (operator.and_, 6, [3], [2]),
        (operator.or_, [6], 3, [7]),
        (operator.or_, 6, [3], [7]),
        (operator.xor, [6], 3, [5]),
        (operator.xor, 6, [3], [5]),
        (operator.and_, [True, False], True, [True, False]),
        (operator.xor, [True, False], True, [False, True]),
        (operator.lt, [1, 2, 3], 2, [True, False, False]),
        (operator.le, [1, 2, 3], 2, [True, True, False]),
        (operator.gt, [1, 2, 3], 2, [False, False, True]),
        (operator.ge, [1, 2, 3], 2, [False, True, True]),
        (operator.eq, [1, 2, 3], 2, [False, True, False]),
        (operator.ne, [1, 2, 3], 2, [True, False, True]),
        (operator.lt, 2, [1, 2, 3], [False, False, True]),
        (operator.ge, 2, [1, 2, 3], [True, True, False]),
        (operator.eq, 2, [1, 2, 3], [False, True, False]),
    ],
)
def test_binary_operator_with_a_python_number(op, left, right, expected):
    left, right = (F.tensor(v) if isinstance(v, list) else v for v in (left, right))
    result = op(left, right)
    assert isinstance(result, F.Tensor)
    assert result.tolist() == expected
    assert result.dtype == F.tensor(expected).dtype


def test_unary_operators():
    x = F.tensor([1, -2])
    assert (-x).tolist() == [-1, 2]
    assert (+x).tolist() == [1, -2]
    assert abs(x).tolist() == [1, 2]
    assert (~x).tolist() == [-2, 1]
    assert (~F.tensor([True, False])).tolist() == [False, True]
    assert (-F.tensor([1], dtype=F.uint8)).tolist() == [255]
    with pytest.raises(TypeError, match="integer and Boolean"):
        ~F.tensor([1.0])
    with pytest.raises(RuntimeError, match="bool"):
        -F.tensor([True])


def test_matmul_operator():
    a, b = F.tensor([[1, 2], [3, 4]]), F.tensor([5, 6])
    assert (a @ b).tolist() == [17, 39]
    assert (b @ a).tolist() == [23, 34]
    assert (b @ b).tolist() == 61
    assert (a @ a).tolist() == [[7, 10], [15, 22]]
    with pytest.raises(TypeError):
        1 @ a
    with pytest.raises(RuntimeError):
        a @ F.tensor(2)


@pytest.mark.parametrize(
    "op, value, expected",
    [
        (operator.iadd, 2, [8.0, -3.0]),
        (operator.isub, 2, [4.0, -7.0]),
        (operator.imul, 2, [12.0, -10.0]),
        (operator.itruediv, 2, [3.0, -2.5]),
        (operator.ifloordiv, 2, [3.0, -3.0]),
        (operator.imod, 4, [2.0, 3.0]),
        (operator.ipow, 2, [36.0, 25.0]),
    ],
)
def test_augmented_assignment_writes_in_place(op, value, expected):
    x = F.tensor([6.0, -5.0])
    alias, pointer = x, x.data_ptr()
    x = op(x, value)
    assert x is alias
    assert x.data_ptr() == pointer
    assert alias.tolist() == expected


@pytest.mark.parametrize(
    "op, expected",
    [
        (operator.iand, [2, 1]),
        (operator.ior, [7, 7]),
        (operator.ixor, [5, 6]),
        (operator.ilshift, [48, 40]),
        (operator.irshift, [0, 0]),
    ],
)
def test_augmented_bit_operators(op, expected):
    x = F.tensor([6, 5])
    alias = x
    x = op(x, 3)
    assert x is alias
    assert alias.tolist() == expected


def test_comparisons_with_other_types():
    x = F.tensor([1, 2])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    assert (x != "a") is True
    for op in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError, match="not supported between"):
            op(x, "a")


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.parametrize("other", [None, "a", {}, object()])
def test_arithmetic_with_other_types_is_a_type_error(op, other):
    with pytest.raises(TypeError):
        op(F.tensor([1.0]), other)
    with pytest.raises(TypeError):
        op(other, F.tensor([1.0]))


def test_lists_do_not_become_tensors():
    with pytest.raises(TypeError):
        F.tensor([1, 2]) + [1, 2]


class Money:
    """A type that knows how to add itself to a tensor."""

    def __add__(self, other):
        return "money first"

    def __radd__(self, other):
        return "money last"


def test_operators_give_way_to_the_other_operand():
    assert F.ones(2) + Money() == "money last"
    assert Money() + F.ones(2) == "money first"


def test_integer_division_by_zero_raises_and_float_division_does_not():
    for op in (operator.floordiv, operator.mod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            op(F.tensor([1]), 0)
    assert (F.tensor([1.0, -1.0]) / 0).tolist() == [float("inf"), -float("inf")]
    assert (F.tensor([1]) / 0).tolist() == [float("inf")]
    assert (F.tensor([1.0]) // 0).tolist() == [float("inf")]
    assert (F.tensor([1.0]) % 0).isnan().item()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", [F.float32, F.float64])
def test_angles_of_any_size(name, dtype):
    angles = [0.5, -3.0, 1e5, -1e13, 2.0**46, -1e20, 1e30, 3e38] + [0.25] * 2000
    x = F.tensor(angles, dtype=dtype)
    expected = [getattr(math, name)(v) for v in x.tolist()]
    y = getattr(F, name)(x).tolist()
    assert all(math.isclose(a, b, rel_tol=2e-5) for a, b in zip(y, expected, strict=True))
    strided = getattr(F, name)(F.stack([x, x])[:, ::3]).tolist()
    assert strided == [y[::3], y[::3]]
    assert getattr(F, name)(F.tensor([math.inf, -math.inf, math.nan], dtype=dtype)).isnan().all()


@pytest.mark.facula_only
def test_integer_division_by_zero_leaves_the_destination_alone():
    for divisor in (0, F.tensor([1, 0]), F.tensor([[3, 0], [7, 0]])[:, 1], F.tensor(0)):
        for name in ("floor_divide_", "remainder_", "fmod_"):
            x = F.tensor([8, 8])
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                getattr(x, name)(divisor)
            assert x.tolist() == [8, 8]


def test_no_elements_can_be_divided_by_zero():
    x = F.zeros(0, 3, dtype=F.int64)
    assert (x // 0).shape == (x % F.zeros(3, dtype=F.int64)).shape == (0, 3)


def test_a_divisor_that_is_zero_in_the_dtype_of_the_division():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        F.tensor([1], dtype=F.int8) // F.tensor(256)


def test_integer_powers():
    with pytest.raises(RuntimeError, match="negative integer powers"):
        F.tensor([1, 2]) ** -1
    assert (F.tensor([1.0, 2.0]) ** -1).tolist() == [1.0, 0.5]
    assert (F.tensor([3]) ** 0).tolist() == [1]
    assert (F.tensor([2], dtype=F.int8) ** 7).tolist() == [-128]


def test_bitwise_operators_refuse_floats():
    for op in (operator.and_, operator.or_, operator.xor):
        with pytest.raises((RuntimeError, NotImplementedError), match="bitwise"):
            op(F.tensor([1.0]), F.tensor([1.0]))


def test_nan_comparisons():
    nan = F.tensor([float("nan")])
    assert [bool(op(nan, nan)) for op in (operator.eq, operator.lt, operator.ge)] == [False] * 3
    assert bool(nan != nan)


def test_broadcasting_of_operators():
    column, row = F.tensor([[1], [2]]), F.tensor([10, 20, 30])
    assert (column + row).tolist() == [[11, 21, 31], [12, 22, 32]]
    assert (row - column).tolist() == [[9, 19, 29], [8, 18, 28]]
    assert (F.zeros(0, 1) + F.ones(3)).shape == (0, 3)
    assert (F.ones(1) + F.zeros(0)).shape == (0,)
    with pytest.raises(RuntimeError):
        F.zeros(2, 3) + F.zeros(2)
    with pytest.raises(RuntimeError):
        F.zeros(3).add_(F.zeros(2, 3))


@pytest.mark.parametrize("exponent", [-1, 0.5, -0.5])
def test_simple_powers_of_complex_numbers_are_as_exact_as_the_functions(exponent):
    z = F.tensor([1j, -1, 2, 3 - 4j, -0.5 + 0j])
    function = {-1: F.reciprocal, 0.5: F.sqrt, -0.5: F.rsqrt}[exponent]
    assert F.equal(z**exponent, function(z))
    assert F.equal(F.pow(z.to(F.complex128), exponent), function(z.to(F.complex128)))
