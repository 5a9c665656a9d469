"""Factorisations and linear systems: errors that name their cause, batches, sizes of zero, pivots,
drivers, and derivatives where the samples of the rows do not reach."""

import numpy as np
import pytest
from package_under_test import IS_FACULA, F, facula_module
from row_cases import to_array

linalg = F.linalg
gradcheck = facula_module("autograd.gradcheck").gradcheck
only_facula = pytest.mark.skipif(not IS_FACULA, reason="the texts are Facula's")
DTYPES = [F.float32, F.float64, F.complex64, F.complex128]


def near(actual, expected, tolerance=1e-4):
    np.testing.assert_allclose(to_array(actual), to_array(expected), rtol=tolerance, atol=tolerance)


def spread_matrices(*shape, dtype=F.float64):
    """Invertible, and the same every time."""
    random = np.random.default_rng(sum(shape))
    values = random.uniform(-1, 1, shape) + 3 * np.eye(shape[-2], shape[-1])
    return F.tensor(values.tolist(), dtype=dtype)


# ---- singular and indefinite matrices


def test_singular_matrix_raises_linalg_error_with_its_batch_index():
    batch = F.eye(3).repeat(4, 1, 1)
    batch[2, 1, 1] = 0
    assert issubclass(linalg.LinAlgError, RuntimeError)
    for function in (linalg.inv, F.inverse, lambda a: linalg.solve(a, F.ones(4, 3, 1))):
        with pytest.raises(linalg.LinAlgError, match=r"Batch element 2.*singular"):
            function(batch)
    with pytest.raises(RuntimeError, match=r"Batch element 2.*U\[2,2\] is zero"):
        linalg.lu_factor(batch)


@only_facula
def test_singular_matrix_in_several_batch_dimensions_is_located():
    batch = F.eye(2).repeat(2, 3, 1, 1)
    batch[1, 2] = 0
    with pytest.raises(linalg.LinAlgError, match=r"Batch element 5, at \[1, 2\]"):
        linalg.inv(batch)


@only_facula
@pytest.mark.parametrize("size", [2, 4, 5, 20])
def test_zero_pivot_is_named(size):
    matrix = F.eye(size)
    matrix[size - 1, size - 1] = 0
    with pytest.raises(linalg.LinAlgError, match=rf"diagonal element {size} is zero"):
        linalg.inv(matrix)
    with pytest.raises(linalg.LinAlgError, match=rf"pivot in row {size} "):
        linalg.solve(matrix, F.ones(size))


@pytest.mark.parametrize("size", [3, 6])
def test_indefinite_matrix_names_its_leading_minor(size):
    matrix = F.eye(size)
    matrix[1, 1] = -1
    with pytest.raises(linalg.LinAlgError, match=r"leading minor of order 2 is not positive"):
        linalg.cholesky(matrix)
    with pytest.raises(linalg.LinAlgError, match="order 2"):
        F.cholesky(matrix, upper=True)
    assert linalg.cholesky_ex(matrix).info.item() == 2


def test_not_a_number_is_not_positive_definite():
    for size in (2, 6):
        assert linalg.cholesky_ex(F.full((size, size), float("nan"))).info.item() > 0


def test_ex_functions_report_instead_of_raising():
    batch = F.stack([F.eye(2), F.zeros(2, 2)])
    assert linalg.inv_ex(batch).info.tolist() == [0, 1]
    assert linalg.solve_ex(batch, F.ones(2, 2, 1)).info.tolist() == [0, 1]
    assert linalg.lu_factor_ex(batch).info.tolist() == [0, 1]
    assert linalg.ldl_factor_ex(batch).info.tolist() == [0, 1]
    assert linalg.inv_ex(batch).inverse[0].tolist() == [[1, 0], [0, 1]]
    for function in (linalg.inv_ex, linalg.lu_factor_ex, linalg.cholesky_ex):
        with pytest.raises(RuntimeError, match="Batch element 1"):
            function(batch, check_errors=True)


@only_facula
def test_inverse_of_a_singular_matrix_is_not_a_number():
    for size in (2, 6):
        assert linalg.inv_ex(F.zeros(size, size)).inverse.isnan().all()


@only_facula
def test_singular_ldl_raises_linalg_error():
    with pytest.raises(linalg.LinAlgError, match=r"D\[1,1\] is zero"):
        linalg.ldl_factor(F.zeros(2, 2))


def test_failed_call_leaves_out_as_it_was():
    out = F.full((2, 2), 7.0)
    with pytest.raises(linalg.LinAlgError):
        linalg.inv(F.zeros(2, 2), out=out)
    assert out.tolist() == [[7, 7], [7, 7]]


# ---- wrong arguments


SQUARE = [
    linalg.inv,
    linalg.det,
    linalg.slogdet,
    linalg.cholesky,
    linalg.ldl_factor,
    F.logdet,
    F.cholesky_inverse,
    lambda a: linalg.matrix_power(a, 2),
    lambda a: linalg.solve(a, F.ones(2, 2)),
    lambda a: linalg.solve_triangular(a, F.ones(2, 2), upper=True),
]


@pytest.mark.parametrize("function", SQUARE)
def test_matrix_that_is_not_square_is_refused(function):
    with pytest.raises(RuntimeError, match="square matrices, but they are 2 by 3"):
        function(F.ones(2, 3))
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        function(F.ones(3))


@pytest.mark.parametrize("function", [*SQUARE[:7], linalg.qr, linalg.lu_factor, F.geqrf])
def test_integers_and_half_precision_are_refused(function):
    with pytest.raises(RuntimeError, match=r"floating point|not implemented for 'Long'"):
        function(F.eye(2, dtype=F.int64))
    with pytest.raises(RuntimeError, match=r"[Ll]ow precision|not implemented for 'Half'"):
        function(F.eye(2, dtype=F.float16))


@only_facula
def test_two_dtypes_are_refused():
    a, b = F.eye(2), F.ones(2, 1, dtype=F.float64)
    for call in (
        lambda: linalg.solve(a, b),
        lambda: linalg.solve_triangular(a, b, upper=True),
        lambda: F.cholesky_solve(b, a),
        lambda: linalg.lstsq(a, b),
        lambda: linalg.lu_solve(*linalg.lu_factor(a), b),
    ):
        with pytest.raises(RuntimeError, match=r"same dtype.*float32.*float64|float64.*float32"):
            call()


def test_right_hand_sides_of_another_size_are_refused():
    with pytest.raises(RuntimeError, match=r"Incompatible shapes.*AX = B.*3x3 and 2x1"):
        linalg.solve(F.eye(3), F.ones(2, 1))
    with pytest.raises(RuntimeError, match=r"XA = B.*3x3 and 1x2"):
        linalg.solve(F.eye(3), F.ones(1, 2), left=False)
    with pytest.raises(RuntimeError, match="must match"):
        linalg.solve(F.eye(3).expand(2, 3, 3), F.ones(4, 3, 1))


@only_facula
def test_error_names_operator_and_shape():
    with pytest.raises(RuntimeError, match=r"linalg\.inv: .*shape \[2, 3\]"):
        linalg.inv(F.ones(2, 3))


def test_pivots_that_belong_to_no_matrix_are_refused():
    lu, b = F.eye(3), F.ones(3, 1)
    for pivots in ([1, 2, 9], [0, 1, 2]):
        with pytest.raises(RuntimeError, match="pivots"):
            F.lu_unpack(lu, F.tensor(pivots, dtype=F.int32))
    with pytest.raises(RuntimeError, match=r"[Pp]ivots"):
        linalg.lu_solve(lu, F.tensor([1, 2, 9], dtype=F.int32), b)
    with pytest.raises(RuntimeError, match=r"int32"):
        linalg.lu_solve(lu, F.tensor([1, 2, 3]), b)
    with pytest.raises(RuntimeError, match=r"[Nn]umber of pivots"):
        linalg.lu_solve(lu, F.tensor([1, 2], dtype=F.int32), b)


@only_facula
@pytest.mark.parametrize("pivots", [[1, 2, 9], [0, 1, 2], [1, 2, -3], [-2, 2, 3], [-1, -9, 3]])
def test_ldl_pivots_that_belong_to_no_matrix_are_refused(pivots):
    with pytest.raises(RuntimeError, match="pivot"):
        linalg.ldl_solve(F.eye(3), F.tensor(pivots, dtype=F.int32), F.ones(3, 1))


def test_unknown_modes_and_drivers_are_refused():
    with pytest.raises(RuntimeError, match=r"mode 'full'.*'reduced'"):
        linalg.qr(F.eye(2), "full")
    with pytest.raises(RuntimeError, match=r"driver.*gelsy"):
        linalg.lstsq(F.eye(2), F.ones(2, 1), driver="qr")
    with pytest.raises(RuntimeError, match="pivoting"):
        linalg.lu_factor(F.eye(2), pivot=False)


def test_reflectors_of_wrong_sizes_are_refused():
    with pytest.raises(RuntimeError, match=r"input.shape\[-2\]"):
        linalg.householder_product(F.ones(2, 3), F.ones(2))
    with pytest.raises(RuntimeError, match=r"tau.shape\[-1\]"):
        linalg.householder_product(F.ones(3, 2), F.ones(3))
    with pytest.raises(RuntimeError, match=r"tau.shape\[-1\]"):
        F.ormqr(F.ones(3, 3), F.ones(2), F.ones(3, 3))
    with pytest.raises(RuntimeError, match=r"other.shape\[-2\]"):
        F.ormqr(F.ones(4, 3), F.ones(3), F.ones(3, 3))


def test_tensors_that_are_no_square_maps_are_refused():
    with pytest.raises(RuntimeError, match=r"4 != 6"):
        linalg.tensorinv(F.ones(2, 3, 4))
    with pytest.raises(RuntimeError, match="strictly positive"):
        linalg.tensorinv(F.ones(2, 2), 0)
    with pytest.raises(RuntimeError, match=r"7 != 6"):
        linalg.tensorsolve(F.ones(2, 3, 7), F.ones(2, 3))
    with pytest.raises(IndexError):
        linalg.tensorsolve(F.ones(2, 3, 6), F.ones(2, 3), dims=(5,))


# ---- values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 40])
def test_inverse_and_solution_undo_the_matrix(size, dtype):
    """Sizes up to 4 have code of their own."""
    a = spread_matrices(2, size, size, dtype=dtype)
    eye = F.eye(size, dtype=dtype).expand(2, size, size)
    near(linalg.inv(a) @ a, eye)
    near(linalg.solve(a, a), eye)
    near(linalg.solve(a, a, left=False), eye)
    lu, pivots = linalg.lu_factor(a)
    b = spread_matrices(2, size, 3, dtype=dtype)
    near(a.transpose(-2, -1).conj() @ linalg.lu_solve(lu, pivots, b, adjoint=True), b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 40])
def test_cholesky_factors_multiply_to_the_matrix(size, dtype):
    a = spread_matrices(2, size, size, dtype=dtype)
    a = a @ a.transpose(-2, -1).conj()
    lower, upper = linalg.cholesky(a), linalg.cholesky(a, upper=True)
    near(lower @ lower.transpose(-2, -1).conj(), a)
    near(upper.transpose(-2, -1).conj() @ upper, a)
    assert (lower.triu(1) == 0).all() and (upper.tril(-1) == 0).all()


def test_cholesky_reads_one_triangle():
    a = F.tensor([[4.0, 99.0], [2.0, 5.0]])
    assert linalg.cholesky(a).tolist() == [[2, 0], [1, 2]]
    assert linalg.cholesky(a.T.contiguous(), upper=True).tolist() == [[2, 1], [0, 2]]


def test_lu_exchanges_rows():
    a = F.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 1.0], [2.0, 5.0, 1.0]])
    lu, pivots = linalg.lu_factor(a)
    assert pivots.dtype == F.int32
    assert pivots.tolist() == [2, 3, 3]
    p, lower, upper = linalg.lu(a)
    assert p.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    near(p @ lower @ upper, a)
    assert F.lu_unpack(lu, pivots).P.tolist() == p.tolist()


def test_legacy_lu_returns_a_pair_or_a_triple():
    a = F.tensor([[1.0, 2.0], [2.0, 8.0]])
    lu, pivots = F.lu(a)
    assert lu.tolist() == [[2, 8], [0.5, -2]] and pivots.tolist() == [2, 2]
    assert [t.tolist() for t in a.lu(get_infos=True)][2] == 0
    with pytest.raises(RuntimeError, match=r"U\[1,1\]"):
        F.lu(F.zeros(2, 2))
    assert F.lu(F.zeros(2, 2), get_infos=True)[2].item() == 1
    out = (F.empty(2, 2), F.empty(2, dtype=F.int32))
    assert F.lu(a, out=out)[0] is out[0]
    assert out[0].tolist() == lu.tolist()


def test_determinant_of_a_singular_matrix_is_zero():
    a = F.ones(2, 3, 3)
    assert linalg.det(a).tolist() == [0, 0]
    sign, logarithm = linalg.slogdet(a)
    assert sign.tolist() == [0, 0] and logarithm.tolist() == [float("-inf")] * 2
    assert F.logdet(a).tolist() == [float("-inf")] * 2


def test_determinants_count_exchanges():
    for order in ([0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]):
        expected = round(float(np.linalg.det(np.eye(3)[order])))
        assert F.det(F.eye(3)[order]).item() == expected
        assert F.slogdet(F.eye(3)[order]).sign.item() == expected


def test_slogdet_does_not_overflow():
    a = F.eye(300, dtype=F.float32) * 1e10
    assert linalg.det(a).item() == float("inf")
    assert linalg.slogdet(a).logabsdet.item() == pytest.approx(300 * np.log(1e10))


def test_zero_sizes():
    empty = F.empty(0, 0)
    assert linalg.det(empty).item() == 1
    assert [t.item() for t in linalg.slogdet(empty)] == [1, 0]
    assert linalg.det(F.empty(2, 0, 0)).tolist() == [1, 1]
    assert linalg.inv(F.empty(0, 3, 3)).shape == (0, 3, 3)
    assert linalg.solve(empty, F.empty(0, 4)).shape == (0, 4)
    assert linalg.qr(F.empty(3, 0), "complete").Q.tolist() == F.eye(3).tolist()
    assert linalg.lstsq(F.empty(0, 3), F.empty(0, 2)).solution.tolist() == [[0, 0]] * 3
    assert linalg.householder_product(F.ones(3, 2), F.empty(0)).tolist() == F.eye(3, 2).tolist()
    assert linalg.matrix_power(F.ones(2, 2), 0).tolist() == F.eye(2).tolist()


def test_result_of_vectors_keeps_their_shape():
    a, b = spread_matrices(2, 3, 3), spread_matrices(2, 3)
    assert linalg.solve(a, b[0]).shape == (2, 3)
    near(linalg.solve(a, b), F.stack([linalg.solve(a[i], b[i]) for i in range(2)]))
    assert linalg.lstsq(a, b).solution.shape == (2, 3)
    with pytest.raises(RuntimeError):
        linalg.solve(a[0], b[0], left=False)


def test_batches_equal_their_elements():
    a, b = spread_matrices(3, 2, 5, 5), spread_matrices(2, 5, 4)
    for function in (
        lambda a, b: linalg.solve(a, b),
        lambda a, b: linalg.solve_triangular(a, b, upper=False),
        lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b),
        lambda a, b: linalg.ldl_solve(*linalg.ldl_factor(a), b),
        lambda a, b: linalg.inv(a),
        lambda a, b: linalg.qr(a).Q,
        lambda a, b: linalg.det(a),
    ):
        together = function(a, b)
        for i in range(3):
            for j in range(2):
                near(together[i, j], function(a[i, j], b[j]), 1e-12)


def test_many_small_matrices_in_any_layout():
    """More than one piece of work for the thread pool."""
    a = spread_matrices(5000, 3, 3)
    eye = F.eye(3, dtype=F.float64).expand(5000, 3, 3)
    for matrices in (a, a.transpose(-2, -1), a.flip(0), a[::2]):
        near(linalg.inv(matrices) @ matrices, eye[: len(matrices)], 1e-10)
        near(linalg.det(matrices) * linalg.det(linalg.inv(matrices)), F.ones(len(matrices)), 1e-10)


def test_ldl_takes_blocks_and_hermitian_matrices():
    a = F.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 1.0]], dtype=F.float64)
    ld, pivots = linalg.ldl_factor(a)
    assert (pivots < 0).any()
    b = spread_matrices(3, 2)
    near(a @ linalg.ldl_solve(ld, pivots, b), b, 1e-12)
    c = F.tensor([[1, 2j, 0], [-2j, 1, 1], [0, 1, 3]], dtype=F.complex128)
    x = linalg.ldl_solve(*linalg.ldl_factor(c, hermitian=True), b.to(c.dtype), hermitian=True)
    near(c @ x, b.to(c.dtype), 1e-12)


def test_matrix_power_takes_integers_and_large_exponents():
    a = F.tensor([[1, 1], [1, 0]])
    assert linalg.matrix_power(a, 30)[0, 1].item() == 832040
    near(
        linalg.matrix_power(spread_matrices(3, 3), -2),
        linalg.inv(spread_matrices(3, 3)) @ linalg.inv(spread_matrices(3, 3)),
    )


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_shapes(mode):
    for m, n in ((5, 3), (3, 5), (4, 4)):
        q, r = linalg.qr(spread_matrices(m, n), mode)
        inner = m if mode == "complete" else min(m, n)
        assert r.shape == (inner, n)
        assert q.shape == ((0,) if mode == "r" else (m, inner))
        if mode != "r":
            near(q @ r, spread_matrices(m, n), 1e-12)
            near(q.transpose(0, 1) @ q, F.eye(inner, dtype=F.float64), 1e-12)


def test_reflectors_multiply_to_q():
    a = spread_matrices(2, 5, 3)
    reflectors, tau = F.geqrf(a)
    q, r = linalg.qr(a)
    near(linalg.householder_product(reflectors, tau), q, 1e-12)
    near(reflectors[:, :3].triu(), r, 1e-12)
    whole, _ = linalg.qr(a, "complete")
    b = spread_matrices(2, 5, 4)
    near(F.ormqr(reflectors, tau, b), whole @ b, 1e-12)
    near(F.ormqr(reflectors, tau, b, transpose=True), whole.transpose(-2, -1) @ b, 1e-12)


# ---- least squares


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_drivers_agree(driver):
    a, b = spread_matrices(2, 6, 3), spread_matrices(2, 6, 2)
    solution, residuals, rank, values = linalg.lstsq(a, b, driver=driver)
    normal = a.transpose(-2, -1)
    near(solution, linalg.solve(normal @ a, normal @ b), 1e-10)
    if driver != "gelsy":
        near(residuals, ((a @ solution - b) ** 2).sum(-2), 1e-10)
    assert residuals.shape == ((0,) if driver == "gelsy" else (2, 2))
    assert rank.tolist() == ([] if driver == "gels" else [3, 3])
    assert values.shape == ((2, 3) if driver in ("gelsd", "gelss") else (0,))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_underdetermined_system_gets_its_smallest_solution(driver):
    a, b = spread_matrices(2, 4), spread_matrices(2, 1)
    x = linalg.lstsq(a, b, driver=driver).solution
    near(x, a.T @ linalg.solve(a @ a.T, b), 1e-10)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_rank_is_found(driver):
    a = F.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=F.float64)
    result = linalg.lstsq(a, F.ones(3, 1, dtype=F.float64), driver=driver)
    assert result.rank.item() == 1
    assert result.residuals.shape == (0,)
    near(result.solution[1], 2 * result.solution[0], 1e-12)
    nearly = F.tensor([[1.0, 0.0], [0.0, 1e-3]], dtype=F.float64)
    assert linalg.lstsq(nearly, F.ones(2, 1, dtype=F.float64), driver=driver).rank.item() == 2
    few = linalg.lstsq(nearly, F.ones(2, 1, dtype=F.float64), rcond=0.1, driver=driver)
    assert few.rank.item() == 1


@only_facula
def test_driver_for_full_rank_refuses_others():
    a = F.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(linalg.LinAlgError, match=r"full rank.*gelsy"):
        linalg.lstsq(a, F.ones(3, 1), driver="gels")


@only_facula
def test_not_a_number_does_not_converge():
    for driver in ("gelsd", "gelss"):
        with pytest.raises(linalg.LinAlgError, match="converge"):
            linalg.lstsq(F.full((4, 3), float("nan")), F.ones(4, 1), driver=driver)


# ---- derivatives


@only_facula
@pytest.mark.parametrize(
    "values",
    [
        [[0.0]],
        [[1.0, 2.0], [2.0, 4.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]],
    ],
)
def test_gradient_of_the_determinant_of_singular_matrices(values):
    """The adjugate, transposed."""
    a = F.tensor(values, dtype=F.float64, requires_grad=True)
    assert gradcheck(linalg.det, (a,))
    small = F.tensor(values, requires_grad=True)
    (grad,) = F.autograd.grad(linalg.det(small * 1e-8), small)
    (exact,) = F.autograd.grad(linalg.det(a * 1e-8), a)
    near(grad * 1e8 ** len(values), exact * 1e8 ** len(values))


def test_what_has_no_derivative_says_so():
    a = F.eye(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        F.geqrf(a)[0].sum().backward()
    with pytest.raises(RuntimeError, match="not implemented"):
        linalg.ldl_factor(a)[0].sum().backward()
    with pytest.raises(RuntimeError, match=r"mode='r'"):
        linalg.qr(a, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="not differentiable"):
        linalg.qr(F.ones(4, 3, requires_grad=True), "complete").Q.sum().backward()


@only_facula
@pytest.mark.parametrize(
    ("dtype", "hermitian"), [(F.float64, False), (F.complex128, False), (F.complex128, True)]
)
def test_solving_with_ldl_factors_is_differentiable_by_the_right_hand_sides(dtype, hermitian):
    a, b = spread_matrices(3, 3, dtype=dtype), spread_matrices(3, 2, dtype=dtype)
    factors = linalg.ldl_factor(a + a.transpose(0, 1), hermitian=hermitian)
    solve = lambda b: linalg.ldl_solve(*factors, b, hermitian=hermitian)  # noqa: E731
    assert gradcheck(solve, (b.requires_grad_(),))


@only_facula
def test_gradient_of_a_product_of_singular_reflectors():
    """I - v v^H with |v| = 1 has no inverse; the derivative must not need one."""
    reflectors = F.zeros(3, 2, dtype=F.float64, requires_grad=True)
    tau = F.ones(2, dtype=F.float64, requires_grad=True)
    assert gradcheck(linalg.householder_product, (reflectors, tau))


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss", "gels"])
def test_least_squares_gradient_of_every_result(driver):
    for shape in ((5, 3), (2, 4)):
        a, b = spread_matrices(*shape).requires_grad_(), spread_matrices(shape[0], 2)
        b.requires_grad_()

        def results(a, b):
            solution, residuals, *_ = linalg.lstsq(a, b, driver=driver)
            return solution, residuals * 2

        assert gradcheck(results, (a, b))


@only_facula
def test_least_squares_gradient_at_a_constant_rank():
    """The rank stays 1 when the columns move together."""
    column, b = spread_matrices(3, 1).requires_grad_(), spread_matrices(3, 2).requires_grad_()

    def solution(column, b):
        return linalg.lstsq(
            column @ F.tensor([[1.0, 2.0]], dtype=F.float64), b, rcond=1e-6
        ).solution

    assert gradcheck(solution, (column, b))
