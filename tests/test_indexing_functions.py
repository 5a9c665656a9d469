"""gather, scatter, take, where, nonzero and the other named forms of indexing."""

import math

import pytest
from package_under_test import F

I = F.tensor  # noqa: E741 - short, because the table below is made of them


def m():
    return F.arange(12).reshape(3, 4)


VALUES = [
    # gather and its relatives
    (lambda: m().gather(1, I([[0, 1], [3, 2], [0, 0]])), [[0, 1], [7, 6], [8, 8]]),
    (lambda: m().gather(0, I([[0, 1, 2, 0]])), [[0, 5, 10, 3]]),
    (lambda: m().gather(-1, I([[3]])), [[3]]),
    (lambda: I(5).gather(0, I(0)), 5),
    (lambda: m().gather(1, F.zeros(3, 0, dtype=F.int64)), [[], [], []]),
    (lambda: m().index_select(0, I([2, 0])), [[8, 9, 10, 11], [0, 1, 2, 3]]),
    (lambda: m().index_select(1, I([2, 0], dtype=F.int32)), [[2, 0], [6, 4], [10, 8]]),
    (lambda: m().index_select(0, F.zeros(0, dtype=F.int64)), []),
    (lambda: I(5).index_select(0, I([0])), 5),
    (lambda: m().take(I([[0, 5], [-1, 11]])), [[0, 5], [11, 11]]),
    (lambda: m().t().take(I([1])), [4]),  # positions count in the tensor's own order
    (lambda: F.take_along_dim(m(), I([[3], [2], [1]]), 1), [[3], [6], [9]]),
    (lambda: F.take_along_dim(m(), I([[3, 0]]), 1), [[3, 0], [7, 4], [11, 8]]),
    (lambda: F.take_along_dim(m(), I([5, 3])), [5, 3]),
    (lambda: m().masked_select(m() > 8), [9, 10, 11]),
    (lambda: m().masked_select(I([True, False, False, False])), [0, 4, 8]),
    (lambda: m().masked_select(I([[False], [False], [True]])), [8, 9, 10, 11]),
    (lambda: F.masked_select(I([1, 2]), I([[True, False], [True, True]])), [1, 1, 2]),
    # scatter and its relatives
    (
        lambda: F.zeros(3, 4).scatter(1, I([[0, 1], [3, 2]]), F.arange(4.0).view(2, 2)),
        [[0, 1, 0, 0], [0, 0, 3, 2], [0, 0, 0, 0]],
    ),
    (lambda: F.zeros(2, 3).scatter(1, I([[0, 1]]), 5), [[5, 5, 0], [0, 0, 0]]),
    (lambda: F.zeros(2, 3).scatter(0, I([[1, 0, 1]]), 5), [[0, 5, 0], [5, 0, 5]]),
    (lambda: F.ones(3).scatter(0, I([0, 2]), 5, reduce="add"), [6, 1, 6]),
    (lambda: F.full((3,), 2.0).scatter(0, I([0, 2]), 5, reduce="multiply"), [10, 2, 10]),
    (lambda: F.zeros(3).scatter_add(0, I([0, 0, 2]), I([1.0, 2.0, 3.0])), [3, 0, 3]),
    (lambda: F.ones(3).scatter_reduce(0, I([0, 0, 1]), I([5.0, 3.0, 2.0]), "sum"), [9, 3, 1]),
    (lambda: F.ones(3).scatter_reduce(0, I([0, 0, 1]), I([5.0, 3.0, 2.0]), "prod"), [15, 2, 1]),
    (lambda: F.ones(3).scatter_reduce(0, I([0, 0, 1]), I([5.0, 3.0, 2.0]), "mean"), [3, 1.5, 1]),
    (
        lambda: F.zeros(3).scatter_reduce(
            0, I([0, 0, 1]), I([-5.0, -3.0, 2.0]), "amax", include_self=False
        ),
        [-3, 2, 0],
    ),
    (lambda: F.zeros(3).scatter_reduce(0, I([0, 1]), I([-5.0, 2.0]), "amin"), [-5, 0, 0]),
    # index_*
    (lambda: F.zeros(4).index_put((I([2, 1]),), I([1.0, 2.0])), [0, 2, 1, 0]),
    (
        lambda: F.zeros(4).index_put((I([0, 0, 1]),), I([1.0, 2.0, 3.0]), accumulate=True),
        [3, 3, 0, 0],
    ),
    (lambda: F.zeros(2, 2).index_put((I([0, 1]), I([1, 0])), I(5.0)), [[0, 5], [5, 0]]),
    (lambda: F.zeros(3).index_put((I([True, False, True]),), I([1.0, 2.0])), [1, 0, 2]),
    (lambda: F.zeros(3, 1).index_add(0, I([0, 0, 2]), F.ones(3, 1), alpha=2), [[4], [0], [2]]),
    (lambda: F.zeros(3).index_copy(0, I([2, 0]), I([1.0, 2.0])), [2, 0, 1]),
    (lambda: F.zeros(2, 3).index_fill(1, I([1]), 7), [[0, 7, 0], [0, 7, 0]]),
    (lambda: F.zeros(3).put(I([0, -1]), I([1.0, 2.0])), [1, 0, 2]),
    (lambda: F.zeros(3).put(I([0, 0]), I([1.0, 2.0]), accumulate=True), [3, 0, 0]),
    # masks
    (lambda: m().masked_fill(m() % 2 == 0, -1)[0], [-1, 1, -1, 3]),
    (lambda: m().masked_fill(m() > 0, 1.5)[0], [0, 1, 1, 1]),
    (lambda: F.zeros(2, 2).masked_fill(I([True, False]), I(3.0)), [[3, 0], [3, 0]]),
    (lambda: I([1, 2, 3]).masked_scatter(I([True, False, True]), I([8, 9, 10])), [8, 2, 9]),
    # where and nonzero
    (lambda: F.where(m() > 9, m(), 0)[2], [0, 0, 10, 11]),
    (lambda: F.where(I([True, False]), I([[1], [2]]), I(3)), [[1, 3], [2, 3]]),
    (lambda: I([1, -2]).where(I([False, True]), 0), [0, -2]),
    (lambda: F.nonzero(I([[1, 0], [0, 2]])), [[0, 0], [1, 1]]),
    (lambda: F.nonzero(F.zeros(2, 3)), []),
    (lambda: F.argwhere(I([0, 3])), [[1]]),
    (lambda: I([1.0, math.nan, 0.0]).nonzero(), [[0], [1]]),
    (lambda: F.count_nonzero(I([[1, 0], [2, 3]]), dim=0), [2, 1]),
    (lambda: F.count_nonzero(I([[1, 0], [2, 3]])), 3),
    # copies with one part replaced
    (lambda: F.zeros(2, 2).select_scatter(I([1.0, 2.0]), 0, 1), [[0, 0], [1, 2]]),
    (lambda: F.zeros(4).slice_scatter(I([1.0, 2.0]), 0, 1, 3), [0, 1, 2, 0]),
    (lambda: F.zeros(2, 2).diagonal_scatter(I([1.0, 2.0])), [[1, 0], [0, 2]]),
    (lambda: F.zeros(2, 2).fill_diagonal_(3), [[3, 0], [0, 3]]),
    # orders
    (lambda: m().flip(0, 1)[0], [11, 10, 9, 8]),
    (lambda: m().flip((1,))[0], [3, 2, 1, 0]),
    (lambda: F.arange(5).roll(2), [3, 4, 0, 1, 2]),
    (lambda: m().roll(1)[0], [11, 0, 1, 2]),
    (lambda: m().roll((1, -1), (0, 1))[0], [9, 10, 11, 8]),
    (lambda: F.arange(2).repeat(2, 2), [[0, 1, 0, 1], [0, 1, 0, 1]]),
    (lambda: F.arange(2).tile((2, 1)), [[0, 1], [0, 1]]),
    (lambda: F.arange(3).repeat_interleave(2), [0, 0, 1, 1, 2, 2]),
    (lambda: F.arange(3).repeat_interleave(I([1, 0, 2])), [0, 2, 2]),
    # joins
    (lambda: F.cat([I([1]), I([2.5])]), [1.0, 2.5]),
    (lambda: F.cat([m()[:1], m()[2:]], dim=-2), [[0, 1, 2, 3], [8, 9, 10, 11]]),
    (lambda: F.cat([F.zeros(0), F.ones(1, 2)]), [[1, 1]]),  # an empty vector joins anything
    (lambda: F.concat([I([1]), I([2])], axis=0), [1, 2]),
    (lambda: F.stack([I(1), I(2)]), [1, 2]),
    (lambda: F.stack([I([1, 2]), I([3, 4])], -1), [[1, 3], [2, 4]]),
    (lambda: F.hstack([I([1]), I([2])]), [1, 2]),
    (lambda: F.vstack([I([1]), I([2])]), [[1], [2]]),
    (lambda: F.column_stack([I([1, 2]), I([3, 4])]), [[1, 3], [2, 4]]),
]


@pytest.mark.parametrize("call, expected", VALUES)
def test_values(call, expected):
    assert call().tolist() == expected


def test_where_and_nonzero_as_tuples():
    for found in (F.where(m() > 9), F.nonzero(m() > 9, as_tuple=True)):
        assert type(found) is tuple
        assert [part.tolist() for part in found] == [[2, 2], [2, 3]]
        assert m()[found].tolist() == [10, 11]
    assert F.nonzero(I(5)).shape == (1, 0)
    assert F.nonzero(I(0)).shape == (0, 0)
    assert F.nonzero(F.zeros(2, 3)).shape == (0, 2)


def test_where_promotes():
    condition = I([True, False])
    assert F.where(condition, I([1, 2]), 1.5).dtype is F.float32
    assert F.where(condition, I([1, 2]), I([1.0, 2.0], dtype=F.float64)).dtype is F.float64
    assert F.where(condition, 1, 0).dtype is F.int64
    assert F.where(condition, 1.0, 0.0).dtype is F.float32


@pytest.mark.parametrize(
    "name, args",
    [
        ("scatter", (0, I([0, 2]), I([1.0, 2.0]))),
        ("scatter_add", (0, I([0, 2]), I([1.0, 2.0]))),
        ("index_put", ((I([0, 2]),), I([1.0, 2.0]))),
        ("index_add", (0, I([0, 2]), I([1.0, 2.0]))),
        ("index_copy", (0, I([0, 2]), I([1.0, 2.0]))),
        ("index_fill", (0, I([0, 2]), 3.0)),
        ("masked_fill", (I([True, False, True]), 3.0)),
        ("masked_scatter", (I([True, False, True]), I([1.0, 2.0]))),
    ],
)
def test_inplace_forms_write_the_tensor_and_the_others_do_not(name, args):
    x = F.zeros(3)
    y = getattr(x, name)(*args)
    assert x.tolist() == [0, 0, 0]
    assert y.tolist() != [0, 0, 0]
    assert getattr(x, name + "_")(*args) is x
    assert x.tolist() == y.tolist()


ERRORS = [
    (lambda: m().gather(1, I([[0, -1]])), RuntimeError, "index -1 is out of bounds.* 1 .*size 4"),
    (lambda: m().gather(1, I([[4]])), RuntimeError, "index 4 is out of bounds.* 1 .*size 4"),
    (lambda: m().gather(0, I([0])), RuntimeError, "same number of dimensions"),
    (lambda: m().gather(1, I([[0]] * 4)), RuntimeError, r"index \[4, 1\].*self \[3, 4\]"),
    (lambda: m().gather(1, I([[0.0]])), RuntimeError, "gather.*int64"),
    (lambda: m().gather(2, I([[0]])), IndexError, r"\[-2, 1\], but got 2"),
    (lambda: F.zeros(2, 3).scatter(1, I([[0, 9]]), 5), RuntimeError, "index 9 is out of bounds"),
    (lambda: F.zeros(2, 3).scatter(1, I([[0, 1]]), F.ones(1, 1)), RuntimeError, r"src \[1, 1\]"),
    (lambda: F.zeros(2).scatter(0, I([0]), I([1])), RuntimeError, "scatter.*dtype"),
    (lambda: F.ones(2).scatter_reduce(0, I([0]), I([1.0]), "bad"), RuntimeError, "sum.*prod.*bad"),
    (lambda: m().index_select(1, I([4])), (RuntimeError, IndexError), "out of"),
    (lambda: m().index_select(1, I([-1])), (RuntimeError, IndexError), "out of"),
    (lambda: m().index_select(1, I([[0]])), IndexError, "index_select.*vector"),
    (lambda: m().index_select(1, I([0.0])), RuntimeError, "index_select.*int64"),
    (lambda: m().take(I([12])), IndexError, "index 12 on a tensor of 12 elements"),
    (lambda: m().take(I([0.0])), RuntimeError, "take.*long"),
    (lambda: F.take_along_dim(m(), I([1]), 1), RuntimeError, "same number of dimensions"),
    (lambda: m().masked_select(I([1, 0, 1, 0])), RuntimeError, "masked_select.*[Bb]ool"),
    (lambda: m().masked_select(I([True, False])), RuntimeError, r"size|broadcast"),
    (lambda: m().masked_fill(m() > 8, I([-1])), RuntimeError, "0-dimensional value"),
    (lambda: m().masked_fill(m(), 0), RuntimeError, "bool"),
    (lambda: m().masked_scatter(m() > 8, I([-1])), RuntimeError, "source"),
    (lambda: F.where(m(), m(), m()), RuntimeError, "condition.*bool"),
    (lambda: F.zeros(4).index_put((I([4]),), I(1.0)), IndexError, "index 4 is out of bounds"),
    (lambda: F.zeros(4).index_put((I([0]),), I([1])), RuntimeError, "dtypes match"),
    (lambda: F.zeros(3).index_add(0, I([3]), F.ones(1)), (RuntimeError, IndexError), "out of"),
    (lambda: F.zeros(3).index_add(0, I([0]), F.ones(2)), RuntimeError, r"Number of indices \(1\)"),
    (lambda: m().flip(0, 0), RuntimeError, "multiple times"),
    (lambda: m().repeat(2), RuntimeError, "can not be smaller"),
    (lambda: F.cat([]), (ValueError, RuntimeError), "non-empty"),
    (lambda: F.stack([]), RuntimeError, "non-empty"),
    (lambda: F.cat([I(1), I(2)]), RuntimeError, "zero-dimensional.*cannot be concatenated"),
    (lambda: F.cat([F.zeros(2), F.zeros(2, 2)]), RuntimeError, "same number of dim.* 1 and 2"),
    (lambda: F.stack([F.zeros(2), F.zeros(3)]), RuntimeError, r"equal size.*\[2\].*\[3\]"),
    (lambda: F.stack([F.zeros(2)], 2), IndexError, r"\[-2, 1\], but got 2"),
]


@pytest.mark.parametrize("call, error, text", ERRORS)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_bad_index_leaves_the_destination_alone():
    x = F.zeros(3)
    for write in (
        lambda: x.scatter_(0, I([0, 7]), 1.0),
        lambda: x.index_add_(0, I([0, 7]), F.ones(2)),
        lambda: x.index_put_((I([0, 7]),), F.ones(2)),
        lambda: x.index_copy_(0, I([0, 7]), F.ones(2)),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            write()
    if F.__name__ == "facula":  # PyTorch finds the bad index half-way
        assert x.tolist() == [0, 0, 0]


def test_gradients_of_gather_and_scatter():
    x = F.zeros(2, 3, requires_grad=True)
    weights = I([[1.0, 10.0], [100.0, 1000.0]])
    (x.gather(1, I([[0, 0], [2, 1]])) * weights).sum().backward()
    assert x.grad.tolist() == [[11, 0, 0], [0, 1000, 100]]
    y = F.zeros(2, requires_grad=True)
    F.ones(3).scatter(0, I([2, 0]), y).mul(I([1.0, 2.0, 4.0])).sum().backward()
    assert y.grad.tolist() == [4, 1]
    z = F.zeros(3, requires_grad=True)
    F.where(I([True, False, True]), z, 5.0).sum().backward()
    assert z.grad.tolist() == [1, 0, 1]


def test_unique_elements_have_no_derivative():
    x = F.tensor([2.0, 1.0, 2.0], requires_grad=True)
    for call in (
        lambda: F.unique(x),
        lambda: F.unique(x, dim=0),
        lambda: F.unique_consecutive(x),
        lambda: F.unique_consecutive(x, dim=0),
    ):
        found = call()
        assert found.requires_grad
        with pytest.raises(NotImplementedError, match="unique"):
            found.sum().backward()
    _, inverse, counts = F.unique(x, return_inverse=True, return_counts=True)
    assert not inverse.requires_grad and not counts.requires_grad


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("dim", [0, -1, 5])
def test_a_number_has_no_slices(name, dim):
    with pytest.raises(IndexError, match="no dimensions"):
        getattr(F, name)(F.tensor(2.0), dim=dim)
    assert getattr(F, name)(F.tensor(2.0)).tolist() == [2.0]


def test_sorting_may_write_over_its_argument():
    for out in (lambda x: x, lambda x: x[:]):
        x = F.tensor([3.0, 1.0, 2.0])
        indices = F.empty(0, dtype=F.int64)
        F.sort(x, descending=True, out=(out(x), indices))
        assert x.tolist() == [3.0, 2.0, 1.0]
        assert indices.tolist() == [0, 2, 1]
    x = F.tensor([1.0, 3.0, 2.0])
    F.topk(x, 3, out=(x, indices))
    assert x.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.facula_only
def test_selecting_fewer_does_not_shrink_its_argument():
    x = F.tensor([1.0, 3.0, 2.0])
    with pytest.raises(RuntimeError, match="single memory location"):
        F.topk(x, 2, out=(x, F.empty(0, dtype=F.int64)))
    assert x.tolist() == [1.0, 3.0, 2.0]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_scans_may_write_over_their_argument(name):
    x = F.tensor([[3.0, 1.0], [2.0, 4.0]]).t()
    expected = getattr(F, name)(x, 0)
    assert getattr(F, name)(x, 0, out=x) is x
    assert F.equal(x, expected)


def test_masked_fill_gives_a_contiguous_copy():
    x = F.arange(24.0).view(2, 3, 4).transpose(1, 2)
    filled = x.masked_fill(x > 20, -1)
    assert filled.stride() == (12, 3, 1)
    assert filled.view(-1).tolist() == [-1 if v > 20 else v for v in x.reshape(-1).tolist()]
    image = F.ones(2, 3, 4, 5).contiguous(memory_format=F.channels_last)
    assert image.masked_fill(image > 0, 2).is_contiguous()
    assert image.masked_fill_(image > 0, 2).stride() == (60, 1, 15, 3)


@pytest.mark.parametrize("n", [1, 31, 32, 100])
@pytest.mark.parametrize("bad", [-1, 10, 2**62, -(2**63)])
def test_an_index_outside_is_found_wherever_it_stands(n, bad):
    for at in {0, n // 2, n - 1}:
        index = F.zeros(n, dtype=F.int64)
        index[at] = bad
        with pytest.raises(RuntimeError, match="out of bounds"):
            F.zeros(10).gather(0, index)
