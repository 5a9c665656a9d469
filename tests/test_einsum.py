"""einsum against NumPy, in its three ways of being called, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from package_under_test import IS_FACULA, F, assert_close, leaf

LETTERS = "abcdeXY"


@st.composite
def contractions(draw):
    """(equation, shapes): one to four operands, letters shared, repeated, summed and kept."""
    sizes = {letter: draw(st.integers(0 if letter == "e" else 1, 3)) for letter in LETTERS}
    subscripts = draw(
        st.lists(st.text(LETTERS, min_size=0, max_size=4), min_size=1, max_size=4).filter(
            lambda parts: all(parts)
        )
    )
    used = sorted(set("".join(subscripts)))
    equation = ",".join(subscripts)
    if draw(st.booleans()):
        kept = draw(st.permutations(used).map(lambda p: p[: draw(st.integers(0, len(used)))]))
        equation += "->" + "".join(kept)
    return equation, [tuple(sizes[c] for c in part) for part in subscripts]


@settings(max_examples=150, deadline=None)
@given(contractions(), st.integers(0, 2**32 - 1))
def test_agrees_with_numpy(contraction, seed):
    equation, shapes = contraction
    random = np.random.default_rng(seed)
    arrays = [random.standard_normal(shape) for shape in shapes]
    result = F.einsum(equation, *map(F.from_numpy, arrays))
    assert_close(result, F.from_numpy(np.asarray(np.einsum(equation, *arrays))), 1e-9, 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_ellipsis_broadcasts_as_in_numpy(left, right, seed):
    random = np.random.default_rng(seed)
    batch = (2, 3)
    a = random.standard_normal((*batch[2 - left :], 2, 4))
    b = random.standard_normal((*batch[2 - right :], 4, 3))
    for equation in ("...ij,...jk->...ik", "...ij,...jk->ik...", "...ij,...jk"):
        result = F.einsum(equation, F.from_numpy(a), F.from_numpy(b))
        assert_close(result, F.from_numpy(np.einsum(equation, a, b)), 1e-9, 1e-9)


def test_dimensions_of_size_one_broadcast():
    a, b = F.ones(1, 3), F.arange(6.0).reshape(2, 3)
    assert F.einsum("ij,ij->ij", a, b).tolist() == b.tolist()
    assert F.einsum("ij,ij->i", a, b).tolist() == [3, 12]
    assert F.einsum("ij->ij", F.ones(1, 1)).shape == (1, 1)


def test_lists_of_numbers_stand_for_letters():
    a, b = F.arange(6.0).reshape(2, 3), F.arange(12.0).reshape(3, 4)
    assert F.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == (a @ b).tolist()
    assert F.einsum(a, [0, 1], b, [1, 2]).tolist() == (a @ b).tolist()
    assert F.einsum(a, [..., 51], [51, ...]).tolist() == a.T.tolist()


def test_operands_may_come_in_a_list():
    a, b = F.arange(6.0).reshape(2, 3), F.arange(3.0)
    assert F.einsum("ij,j->i", [a, b]).tolist() == F.einsum("ij,j->i", a, b).tolist()


def test_blanks_are_ignored():
    a = F.arange(6.0).reshape(2, 3)
    assert F.einsum(" i j -> j i ", a).tolist() == a.T.tolist()


def test_transpose_and_diagonal_are_views():
    a = F.zeros(3, 3)
    F.einsum("ij->ji", a)[0, 1] = 5
    F.einsum("ii->i", a)[2] = 7
    assert a.tolist() == [[0, 0, 0], [5, 0, 0], [0, 0, 7]]
    same = F.einsum("ij", a)
    assert same is not a
    assert same.data_ptr() == a.data_ptr()


@pytest.mark.parametrize(
    ("equation", "shapes", "layers"),
    [
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)], 1),
        ("ij,jk->ik", [(2, 3), (3, 4)], 1),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)], 2),
    ],
)
def test_contraction_is_a_matrix_product(equation, shapes, layers):
    """One bmm or mm for each pair of operands: nothing is expanded and summed."""
    names = []

    def walk(node):
        if node is not None:
            names.append(node.name())
            for following, _ in node.next_functions:
                walk(following)

    walk(F.einsum(equation, *(F.ones(s, requires_grad=True) for s in shapes)).grad_fn)
    products = [n for n in names if n.startswith(("BmmBackward", "MmBackward"))]
    assert len(products) == layers
    assert not any(n.startswith(("SumBackward", "MulBackward")) for n in names)


@pytest.mark.skipif(not IS_FACULA, reason="PyTorch needs opt_einsum for this")
def test_cheap_pairs_are_contracted_first():
    """The matrix-vector product, although it stands last: no product of two matrices."""
    a, b, v = F.ones(200, 200), F.ones(200, 200), F.ones(200, requires_grad=True)
    result = F.einsum("ij,jk,k->i", a, b, v)
    sizes = []

    def walk(node):
        if node is None:
            return
        if node.name().startswith("MmBackward"):
            sizes.append(node)
        for following, _ in node.next_functions:
            walk(following)

    walk(result.grad_fn)
    assert len(sizes) == 2
    assert result[0].item() == 40000


def test_gradients_of_all_operands():
    a, b, c = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([5.0, 6.0]), leaf([7.0, 8.0])
    F.einsum("ij,i,j->", a, b, c).backward()
    assert_close(a.grad, F.outer(b, c).detach())
    assert_close(b.grad, (a @ c).detach())
    assert_close(c.grad, (b @ a).detach())


@pytest.mark.parametrize(
    ("equation", "shapes", "words"),
    [
        ("ij", [(2,)], "number of subscripts"),
        ("i", [(2, 3)], "number of subscripts"),
        ("...ijk", [(2, 3)], "number of"),
        ("ij,jk", [(2, 3)], "fewer operands"),
        ("ij", [(2, 3), (3, 4)], "more operands"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "does not broadcast|broadcast"),
        ("ii->i", [(2, 3)], "repeated"),
        ("ij->ijj", [(2, 3)], "more than once"),
        ("ij->k", [(2, 3)], "does not appear"),
        ("i.j", [(2, 3)], "ellipsis"),
        ("......", [(2, 3)], "ellipsis"),
        ("i#", [(2, 3)], "subscript"),
        ("ij->i->j", [(2, 3)], "subscript|->"),
    ],
)
def test_wrong_equation_is_refused(equation, shapes, words):
    with pytest.raises(RuntimeError, match=words) as caught:
        F.einsum(equation, *(F.ones(s) for s in shapes))
    if IS_FACULA:
        assert str(caught.value).startswith("einsum(): ")


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="must specify the equation"):
        F.einsum("ij")
    with pytest.raises(ValueError, match=r"\[0, 52\)"):
        F.einsum(F.ones(2), [52])
    with pytest.raises(TypeError):
        F.einsum("i", "not a tensor")


# ---- tensordot and chains


def test_tensordot_takes_a_number_or_lists():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 3, 4)), random.standard_normal((3, 4, 5))
    ours = F.tensordot(F.from_numpy(a), F.from_numpy(b), dims=2)
    assert_close(ours, F.from_numpy(np.tensordot(a, b, 2)), 1e-12, 1e-12)
    ours = F.tensordot(F.from_numpy(a), F.from_numpy(b), dims=([2, 1], [1, 0]))
    assert_close(ours, F.from_numpy(np.tensordot(a, b, ([2, 1], [1, 0]))), 1e-12, 1e-12)
    assert F.tensordot(F.ones(2), F.ones(3), dims=0).shape == (2, 3)


def test_tensordot_refuses_what_does_not_fit():
    with pytest.raises(RuntimeError, match="contracted dimensions need to match"):
        F.tensordot(F.ones(2, 3), F.ones(4, 2), dims=1)
    with pytest.raises(RuntimeError, match="dims"):
        F.tensordot(F.ones(2, 3), F.ones(3), dims=2)
    with pytest.raises(RuntimeError, match="dims >= 0"):
        F.tensordot(F.ones(2, 3), F.ones(3), dims=-1)


def test_multi_dot_multiplies_in_the_cheapest_order():
    """(10, 1000) x (1000, 5) first: the order from the right would cost 40 times as much."""
    shapes = [(10, 1000), (1000, 5), (5, 800)]
    matrices = [F.ones(s, requires_grad=True) for s in shapes]
    result = F.linalg.multi_dot(matrices)
    assert result.shape == (10, 800)
    assert result[0, 0].item() == 5000
    if IS_FACULA:
        inner, outer = (f for f, _ in result.grad_fn.next_functions)
        assert inner.name().startswith("MmBackward")
        assert outer.name().endswith("AccumulateGrad")


def test_integer_products_cut_the_factors():
    """alpha and beta of integer products are cut to integers, as in PyTorch."""
    a, m = F.ones(2, 2, dtype=F.int64), F.full((2, 2), 3)
    assert F.addmm(a, m, m, beta=1.9, alpha=2.9).tolist() == [[37, 37], [37, 37]]
    assert F.addmm(a, m, m, beta=0.2, alpha=0.6).tolist() == [[0, 0], [0, 0]]
