"""Tensors as Python values: numbers, lists, lengths, truth, formats, hashes."""

import math
import operator
import weakref

import pytest
from package_under_test import F

# ---- one element -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype, value, type_",
    [
        ("bool", True, bool),
        ("uint8", 255, int),
        ("int8", -128, int),
        ("int64", -(2**63), int),
        ("uint64", 2**64 - 1, int),
        ("float16", 1.5, float),
        ("bfloat16", -2.0, float),
        ("float32", 0.5, float),
        ("float64", 0.1, float),
        ("complex64", 1 + 2j, complex),
        ("complex128", 0.1 - 2j, complex),
        ("float8_e4m3fn", 448.0, float),
        ("float8_e5m2", 0.25, float),
    ],
)
def test_item_and_tolist_give_python_numbers(dtype, value, type_):
    x = F.tensor([value], dtype=getattr(F, dtype))
    for result in (x.item(), x.tolist()[0], x[0].tolist(), x.reshape(1, 1, 1).item()):
        assert type(result) is type_
        assert result == value


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 3)])
def test_item_needs_exactly_one_element(shape):
    count = math.prod(shape)
    with pytest.raises(RuntimeError, match=f"{count} elements cannot be converted to Scalar"):
        F.zeros(shape).item()


def test_int_float_complex():
    assert int(F.tensor(3.7)) == 3
    assert int(F.tensor(-3.7)) == -3
    assert int(F.tensor([[3]])) == 3
    assert type(int(F.tensor(True))) is int
    assert float(F.tensor(3)) == 3.0
    assert type(float(F.tensor(3))) is float
    assert complex(F.tensor(3)) == 3 + 0j
    assert complex(F.tensor(1 + 2j)) == 1 + 2j
    assert math.isinf(float(F.tensor(float("inf"))))


@pytest.mark.facula_only
def test_int_of_a_large_uint64():
    assert int(F.tensor(2**64 - 1, dtype=F.uint64)) == 2**64 - 1
    assert operator.index(F.tensor(2**64 - 1, dtype=F.uint64)) == 2**64 - 1


def test_numbers_that_python_cannot_make():
    with pytest.raises(ValueError, match="NaN"):
        int(F.tensor(float("nan")))
    with pytest.raises(OverflowError, match="infinity"):
        int(F.tensor(float("inf")))
    for convert in (int, float):
        with pytest.raises(RuntimeError):
            convert(F.tensor(3j))
        with pytest.raises((ValueError, RuntimeError)):
            convert(F.zeros(2))


def test_index_is_for_single_integers():
    letters = ["a", "b", "c"]
    assert letters[F.tensor(1)] == "b"
    assert letters[F.tensor([[2]], dtype=F.uint8)] == "c"
    assert letters[F.tensor(True)] == "b"
    assert range(F.tensor(3)) == range(3)
    assert hex(F.tensor(255)) == "0xff"
    assert operator.index(F.tensor(2**62)) == 2**62
    for bad in (F.tensor(1.0), F.tensor([1, 2]), F.tensor(1j)):
        with pytest.raises(TypeError, match="only integer tensors of a single element"):
            letters[bad]


def test_tensors_of_one_integer_serve_as_sizes_and_dims():
    n = F.tensor(2)
    assert F.zeros(n, 3).shape == (2, 3)
    assert F.zeros((n, n)).shape == (2, 2)
    assert F.zeros(2, 3).sum(F.tensor(1)).shape == (2,)
    assert F.arange(6).view(n, -1).shape == (2, 3)


def test_truth():
    assert bool(F.tensor(1))
    assert bool(F.tensor([[0.5]]))
    assert bool(F.tensor(float("nan")))
    assert bool(F.tensor(1j))
    assert not F.tensor(0)
    assert not F.tensor([-0.0])
    assert not F.tensor(False)
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(F.zeros(0))
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(F.ones(2))


def test_rounding_from_the_math_module():
    assert math.floor(F.tensor(2.5)) == 2
    assert math.ceil(F.tensor(2.5)) == 3
    assert math.sqrt(F.tensor(9)) == 3.0
    assert abs(F.tensor(-2)).item() == 2
    assert abs(F.tensor(3 + 4j)).item() == 5.0


# ---- many elements ---------------------------------------------------------------------------


def test_tolist_of_any_layout():
    x = F.arange(6).reshape(2, 3)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.t().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x[:, ::2].tolist() == [[0, 2], [3, 5]]
    assert x[0].expand(2, 3).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert F.tensor(7).tolist() == 7
    assert F.zeros(0, 3).tolist() == []
    assert F.zeros(3, 0).tolist() == [[], [], []]


def test_len_and_iteration():
    x = F.arange(6).reshape(3, 2)
    rows = list(x)
    assert len(x) == 3
    assert [row.tolist() for row in rows] == [[0, 1], [2, 3], [4, 5]]
    rows[1][0] = 20  # rows are views
    assert x[1, 0].item() == 20
    first, *_, last = x
    assert (first.tolist(), last.tolist()) == ([0, 1], [4, 5])
    assert list(F.zeros(0, 3)) == []
    with pytest.raises(TypeError, match=r"len.* of a 0-d tensor"):
        len(F.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(F.tensor(1))


def test_unpacking_and_star_arguments():
    a, b = F.tensor([1, 2])
    assert (a.item(), b.item()) == (1, 2)
    assert max(*F.tensor([3, 9, 4])).item() == 9
    with pytest.raises(ValueError):
        a, b = F.tensor([1, 2, 3])


def test_reversed_flips_the_first_dimension():
    assert reversed(F.tensor([1, 2, 3])).tolist() == [3, 2, 1]


def test_contains_compares_elements():
    x = F.tensor([[1, 2], [3, 4]])
    assert 3 in x
    assert 5 not in x
    assert 3.0 in x
    assert F.tensor([1, 2]) in x
    assert F.tensor([7, 8]) not in x
    for bad in ("a", None, [1, 2]):
        with pytest.raises(RuntimeError, match="__contains__"):
            bad in x  # noqa: B015


def test_format():
    assert f"{F.tensor(3.14159):.2f}" == "3.14"
    assert f"{F.tensor(3):d}" == "3"
    assert f"{F.tensor(3.5):>10}" == "       3.5"
    assert f"{F.tensor([1, 2])}" == "tensor([1, 2])"
    assert f"{F.tensor(2)}" == "2"
    assert f"{F.tensor(2)!r}" == "tensor(2)"
    with pytest.raises(TypeError, match="format string"):
        f"{F.tensor([1, 2]):.2f}"


# ---- identity --------------------------------------------------------------------------------


def test_tensors_hash_by_identity():
    a, b = F.ones(2), F.ones(2)
    assert hash(a) == hash(a)
    assert len({a, b, a}) == 2
    assert {a: "first", b: "second"}[b] == "second"
    assert a in [a]


def test_the_same_tensor_object_comes_back():
    x = F.ones(2, requires_grad=True)
    x.tag = 1
    holder = [x]
    (x * 2).sum().backward()
    assert holder[0] is x
    assert x.grad is x.grad
    x.grad.tag = 2
    assert x.grad.tag == 2


def test_weak_references_die_with_the_tensor():
    x = F.ones(2)
    ref = weakref.ref(x)
    seen = []
    weakref.finalize(x, seen.append, "gone")
    assert ref() is x
    del x
    assert ref() is None
    assert seen == ["gone"]


def test_a_tensor_in_a_reference_cycle_is_collected():
    import gc

    x = F.ones(2)
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_array_priority_puts_tensors_before_arrays():
    assert F.ones(1).__array_priority__ == 1000


@pytest.mark.parametrize("number", [3, 2.5, True])
def test_copy_takes_a_number(number):
    x = F.zeros(2, 3)
    assert x.t().copy_(number).stride() == (1, 3)
    assert x.tolist() == [[float(number)] * 3] * 2


def test_copying_a_number_converts_as_a_tensor_does():
    assert F.zeros(2, dtype=F.int32).copy_(2.7).tolist() == [2, 2]
    assert F.zeros(2, dtype=F.bool).copy_(5).tolist() == [True, True]
    assert F.zeros(1, dtype=F.complex64).copy_(1j).tolist() == [1j]
    assert F.empty(2, device="meta").copy_(1).is_meta


def test_what_a_number_was_copied_over_gets_no_gradient():
    x = F.ones(3, requires_grad=True)
    y = x * 2
    y[1:].copy_(7)
    y.sum().backward()
    assert y.tolist() == [2.0, 7.0, 7.0]
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_a_number_is_copied_inside_of_transforms():
    assert F.func.vmap(lambda x: x.clone().copy_(3))(F.ones(2, 2)).tolist() == [[3.0] * 2] * 2
    value, tangent = F.func.jvp(lambda x: (x * 2).copy_(3), (F.ones(2),), (F.ones(2),))
    assert value.tolist() == [3.0, 3.0]
    assert tangent.tolist() == [0.0, 0.0]
