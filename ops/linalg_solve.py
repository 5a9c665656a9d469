"""Dense linear algebra: factorisations and the linear systems solved with them.

The kernels are in csrc/kernels/linalg_*.cpp, on the LAPACK of csrc/cpu/lapack.h. Every operator takes
batches: leading dimensions, which broadcast where there are several operands.
"""

from gen.rows import composite, kernel, op


def _linalg(schema, family, **row):
    """A function of ``facula.linalg``: the row's name without its prefix."""
    public = schema.partition("(")[0].removeprefix("linalg_")
    op(schema, family, python=f"linalg.{public}", method=False, **row)


def _factorise(schema, batch="leading", **row):
    _linalg(schema, kernel(), batch=batch, **row)


_GRAD = dict(python="", out=False)

# ---- Cholesky
_factorise("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
           grad="_cholesky_grad(grad_L, L, upper)", samples="positive_definite",
           doc="The Cholesky factor, and for each matrix 0 or the order of the first leading minor that is not\n"
               "positive. With ``check_errors=True`` such a matrix raises.",
           example=">>> facula.linalg.cholesky_ex(facula.tensor([[1., 2.], [2., 1.]])).info\ntensor(2, dtype=facula.int32)")
op("_cholesky_grad(Tensor grad, Tensor L, bool upper) -> Tensor", composite(), **_GRAD)
_linalg("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", composite(), samples="positive_definite",
        doc="The lower triangular ``L`` with ``L @ L.mH == self``, or with ``upper=True`` the upper triangular ``U``\n"
            "with ``U.mH @ U == self``, of symmetric or Hermitian positive-definite matrices. Only that triangle of\n"
            "``self`` is read. Other matrices raise :class:`facula.linalg.LinAlgError`.",
        example=">>> facula.linalg.cholesky(facula.tensor([[4., 2.], [2., 5.]]))\ntensor([[2., 0.],\n        [1., 2.]])")
op("cholesky(Tensor self, bool upper=False) -> Tensor", composite(kernel="linalg_cholesky"), samples="positive_definite",
   doc="The older name of :func:`facula.linalg.cholesky`.",
   example=">>> facula.cholesky(facula.tensor([[4., 2.], [2., 5.]]))\ntensor([[2., 0.],\n        [1., 2.]])")
op("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", kernel(), batch="leading",
   grad=dict(self="cholesky_solve(grad, input2, upper)", input2="_cholesky_solve_grad(grad, result, input2, upper)"),
   samples="cholesky_solve",
   doc="The solution of ``A @ X == self`` from ``input2``, the Cholesky factor of ``A`` (lower triangular, or upper\n"
       "with ``upper=True``).",
   example=">>> L = facula.linalg.cholesky(facula.tensor([[4., 2.], [2., 5.]]))\n"
           ">>> facula.cholesky_solve(facula.tensor([[8.], [12.]]), L)\ntensor([[1.],\n        [2.]])")
op("_cholesky_solve_grad(Tensor grad, Tensor result_in, Tensor L, bool upper) -> Tensor", composite(), **_GRAD)
op("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", kernel(), batch="leading",
   grad="_cholesky_inverse_grad(grad, result, self, upper)", samples="cholesky_inverse",
   doc="The inverse of a matrix from its Cholesky factor ``self``.",
   example=">>> facula.cholesky_inverse(facula.tensor([[2., 0.], [2., 1.]]))\n"
           "tensor([[ 1.2500, -1.0000],\n        [-1.0000,  1.0000]])")
op("_cholesky_inverse_grad(Tensor grad, Tensor result_in, Tensor L, bool upper) -> Tensor", composite(), **_GRAD)

# ---- LU
_factorise("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
           "-> (Tensor LU, Tensor pivots, Tensor info)",
           grad=dict(A="_lu_factor_grad(grad_LU, LU, pivots)"), nondifferentiable=("pivots", "info"), samples="lu_factor",
           doc="The LU factors, and for each matrix 0 or the first zero on the diagonal of ``U``, 1-based.",
           example=">>> facula.linalg.lu_factor_ex(facula.zeros(2, 2)).info\ntensor(1, dtype=facula.int32)")
op("_lu_factor_grad(Tensor grad, Tensor LU, Tensor pivots) -> Tensor", composite(), **_GRAD)
_linalg("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", composite(), samples="lu_factor",
        doc="The factors of ``A == P @ L @ U`` in one matrix (``L`` below the diagonal, its unit diagonal left out) and\n"
            "the rows that were exchanged, 1-based. A zero on the diagonal of ``U`` raises.",
        example=">>> LU, pivots = facula.linalg.lu_factor(facula.tensor([[1., 2.], [2., 8.]]))\n"
                ">>> LU\ntensor([[ 2.0000,  8.0000],\n        [ 0.5000, -2.0000]])\n"
                ">>> pivots\ntensor([2, 2], dtype=facula.int32)")
_linalg("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", composite(), samples="lu_factor",
        nondifferentiable=("P",),
        doc="A permutation ``P``, a unit lower triangular ``L`` and an upper triangular ``U`` with ``A == P @ L @ U``.",
        example=">>> P, L, U = facula.linalg.lu(facula.tensor([[1., 2.], [2., 8.]]))\n"
                ">>> P @ L @ U\ntensor([[1., 2.],\n        [2., 8.]])")
op("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
   "-> (Tensor P, Tensor L, Tensor U)", composite(), method=False, samples="lu_unpack",
   nondifferentiable=("P",),
   doc="``P``, ``L`` and ``U`` from what :func:`facula.linalg.lu_factor` returns; those not asked for are empty.",
   example=">>> LU, pivots = facula.linalg.lu_factor(facula.tensor([[1., 2.], [2., 8.]]))\n"
           ">>> facula.lu_unpack(LU, pivots).P\ntensor([[0., 1.],\n        [1., 0.]])")
op("_lu_order(Tensor pivots, int rows, bool inverse) -> Tensor", kernel(), batch="leading", **_GRAD)
_factorise("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
           batch="core 2 1 2", grad=dict(LU="_lu_solve_grad(grad, LU, pivots, result, left, adjoint)",
                     B="linalg_lu_solve(LU, pivots, grad, left, not adjoint)"), samples="lu_solve",
           doc="The solution of ``A @ X == B`` (``X @ A == B`` with ``left=False``) from the factors of ``A``; with\n"
               "``adjoint=True`` of the system with ``A.mH``.",
           example=">>> LU, pivots = facula.linalg.lu_factor(facula.tensor([[1., 2.], [2., 8.]]))\n"
                   ">>> facula.linalg.lu_solve(LU, pivots, facula.tensor([[3.], [10.]]))\ntensor([[1.],\n        [1.]])")
op("_lu_solve_grad(Tensor grad, Tensor LU, Tensor pivots, Tensor X, bool left, bool adjoint) -> Tensor", composite(), **_GRAD)
op("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", composite(), samples="legacy_lu_solve",
   doc="The older form of :func:`facula.linalg.lu_solve`, with the right-hand sides first.",
   example=">>> LU, pivots = facula.linalg.lu_factor(facula.tensor([[1., 2.], [2., 8.]]))\n"
           ">>> facula.lu_solve(facula.tensor([[3.], [10.]]), LU, pivots)\ntensor([[1.],\n        [1.]])")

# ---- systems and inverses
op("_linalg_solve_ex(Tensor A, Tensor B, bool left, bool check_errors) "
   "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)", kernel(), batch="leading",
   grad=dict(A="_solve_grad_A(grad_result, A, result, LU, pivots, left)", B="_solve_grad_B(grad_result, A, LU, pivots, left)"),
   nondifferentiable=("LU", "pivots", "info"), **_GRAD)
op("_solve_grad_A(Tensor grad, Tensor A, Tensor result_in, Tensor LU, Tensor pivots, bool left) -> Tensor", composite(), **_GRAD)
op("_solve_grad_B(Tensor grad, Tensor A, Tensor LU, Tensor pivots, bool left) -> Tensor", composite(), **_GRAD)
_linalg("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", composite(), samples="solve",
        doc="The solution ``X`` of ``A @ X == B``, or of ``X @ A == B`` with ``left=False``. ``B`` may be a matrix, a\n"
            "vector, or a vector for each matrix of a batch. A singular matrix raises\n"
            ":class:`facula.linalg.LinAlgError`.",
        example=">>> facula.linalg.solve(facula.tensor([[1., 2.], [2., 8.]]), facula.tensor([3., 10.]))\ntensor([1., 1.])")
_linalg("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
        composite(), samples="solve",
        doc="The solution as :func:`facula.linalg.solve` gives it, and for each matrix 0 or its first zero pivot.",
        example=">>> facula.linalg.solve_ex(facula.eye(2), facula.ones(2, 1)).info\ntensor(0, dtype=facula.int32)")
_factorise("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
           grad=dict(A="_inverse_grad(grad_inverse, inverse)"), samples="invertible",
           doc="The inverse, NaN for singular matrices, and for each matrix 0 or its first zero pivot.",
           example=">>> facula.linalg.inv_ex(facula.tensor([[2., 0.], [0., 0.]])).info\ntensor(2, dtype=facula.int32)")
op("_inverse_grad(Tensor grad, Tensor inverse) -> Tensor", composite(), **_GRAD)
_linalg("linalg_inv(Tensor A) -> Tensor", composite(), samples="invertible",
        doc="The inverse of a square matrix. A singular matrix raises :class:`facula.linalg.LinAlgError`. To multiply\n"
            "with an inverse, :func:`facula.linalg.solve` is faster and more exact.",
        example=">>> facula.linalg.inv(facula.tensor([[2., 0.], [1., 1.]]))\n"
                "tensor([[ 0.5000,  0.0000],\n        [-0.5000,  1.0000]])")
op("inverse(Tensor self) -> Tensor", composite(kernel="linalg_inv"), samples="invertible",
   doc="The same as :func:`facula.linalg.inv`.",
   example=">>> facula.inverse(facula.tensor([[2., 0.], [0., 4.]]))\ntensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")
_linalg("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", composite(), samples="tensorinv",
        doc="The inverse of the linear map that ``tensordot(self, ., ind)`` is: ``self`` is seen as a matrix with its\n"
            "first ``ind`` dimensions as rows.",
        example=">>> facula.linalg.tensorinv(facula.eye(6).reshape(2, 3, 6)).shape\nfacula.Size([6, 2, 3])")
_linalg("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", composite(), samples="tensorsolve",
        doc="The ``X`` with ``tensordot(self, X, X.ndim) == other``; ``dims`` are moved to the end of ``self`` first.",
        example=">>> facula.linalg.tensorsolve(facula.eye(6).reshape(2, 3, 6), facula.ones(2, 3))\n"
                "tensor([1., 1., 1., 1., 1., 1.])")
_linalg("linalg_matrix_power(Tensor self, int n) -> Tensor", composite(), samples="matrix_power",
        doc="The ``n``-th power of a square matrix, of its inverse for negative ``n``.",
        example=">>> facula.linalg.matrix_power(facula.tensor([[1., 1.], [0., 1.]]), 5)\ntensor([[1., 5.],\n        [0., 1.]])")
op("matrix_power(Tensor self, int n) -> Tensor", composite(kernel="linalg_matrix_power"), samples="matrix_power",
   doc="The same as :func:`facula.linalg.matrix_power`.",
   example=">>> facula.tensor([[1., 1.], [0., 1.]]).matrix_power(5)\ntensor([[1., 5.],\n        [0., 1.]])")

# ---- determinants
op("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", kernel(), batch="leading",
   grad=dict(A="_det_grad(grad_result, A, result, LU, pivots)"), nondifferentiable=("LU", "pivots"), **_GRAD)
op("_det_grad(Tensor grad, Tensor A, Tensor result_in, Tensor LU, Tensor pivots) -> Tensor", composite(), **_GRAD)
_linalg("linalg_det(Tensor A) -> Tensor", composite(), samples="determinant",
        doc="The determinant of a square matrix. Its gradient is that of a polynomial: it exists for singular matrices.",
        example=">>> facula.linalg.det(facula.tensor([[2., 1.], [4., 4.]]))\ntensor(4.)")
op("det(Tensor self) -> Tensor", composite(kernel="linalg_det"), samples="determinant",
   doc="The same as :func:`facula.linalg.det`.",
   example=">>> facula.det(facula.tensor([[2., 1.], [4., 4.]]))\ntensor(4.)")
op("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", kernel(), batch="leading",
   grad=dict(A="_slogdet_grad(grad_sign, grad_logabsdet, A, sign, LU, pivots)"), nondifferentiable=("LU", "pivots"), **_GRAD)
op("_slogdet_grad(Tensor grad_of_sign, Tensor grad_of_logabsdet, Tensor A, Tensor sign, Tensor LU, Tensor pivots) -> Tensor",
   composite(), **_GRAD)
_linalg("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", composite(), samples="determinant",
        doc="The sign of the determinant (a complex number of modulus 1 for complex matrices) and the logarithm of its\n"
            "absolute value: 0 and -inf for singular matrices.",
        example=">>> facula.linalg.slogdet(facula.tensor([[1., 2.], [3., 4.]])).sign\ntensor(-1.)")
op("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", composite(kernel="linalg_slogdet"), samples="determinant",
   doc="The same as :func:`facula.linalg.slogdet`.",
   example=">>> facula.slogdet(facula.tensor([[1., 2.], [3., 4.]])).sign\ntensor(-1.)")
op("logdet(Tensor self) -> Tensor", composite(), samples="logdet", out=False,
   doc="The logarithm of the determinant: NaN when it is negative, -inf when it is zero.",
   example=">>> facula.logdet(facula.eye(3))\ntensor(0.)")

# ---- triangular systems
_factorise("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
           grad=dict(self="_solve_triangular_grad(grad, self, result, upper, left, unitriangular)",
                     B="linalg_solve_triangular(_adjoint(self), grad, not upper, left, unitriangular)"),
           samples="solve_triangular",
           doc="The solution of ``self @ X == B`` (``X @ self == B`` with ``left=False``) for a triangular matrix, of which\n"
               "only the triangle that ``upper`` names is read; with ``unitriangular=True`` its diagonal counts as ones.",
           example=">>> A = facula.tensor([[2., 1.], [0., 4.]])\n"
                   ">>> facula.linalg.solve_triangular(A, facula.tensor([[4.], [8.]]), upper=True)\n"
                   "tensor([[1.],\n        [2.]])")
op("_adjoint(Tensor self) -> Tensor", composite(), **_GRAD)
op("_solve_triangular_grad(Tensor grad, Tensor A, Tensor X, bool upper, bool left, bool unitriangular) -> Tensor", composite(), **_GRAD)
op("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
   "-> (Tensor solution, Tensor cloned_coefficient)", composite(), samples="triangular_solve",
   doc="The solution of ``A @ X == self`` (``A.mT @ X == self`` with ``transpose=True``) and a copy of ``A``. New code\n"
       "uses :func:`facula.linalg.solve_triangular`.",
   example=">>> A = facula.tensor([[2., 1.], [0., 4.]])\n"
           ">>> facula.triangular_solve(facula.tensor([[4.], [8.]]), A).solution\ntensor([[1.],\n        [2.]])")

# ---- QR
op("_linalg_qr(Tensor A, str mode) -> (Tensor Q, Tensor R)", kernel(), batch="leading",
   grad=dict(A="_qr_grad(grad_Q, grad_R, Q, R, mode)"), **_GRAD)
_linalg("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", composite(), samples="qr",
        doc="A matrix ``Q`` with orthonormal columns and an upper triangular ``R`` with ``A == Q @ R``. With ``m`` rows\n"
            "and ``n`` columns, ``Q`` has ``min(m, n)`` columns in the mode ``'reduced'`` and ``m`` in ``'complete'``;\n"
            "with ``'r'`` it is left out.",
        example=">>> Q, R = facula.linalg.qr(facula.tensor([[3., 1.], [4., 2.]]))\n"
                ">>> R\ntensor([[-5.0000, -2.2000],\n        [ 0.0000,  0.4000]])")
op("_qr_grad(Tensor grad_of_Q, Tensor grad_of_R, Tensor Q, Tensor R, str mode) -> Tensor", composite(), **_GRAD)
op("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", composite(), samples="legacy_qr",
   doc="The older form of :func:`facula.linalg.qr`: ``'reduced'``, or ``'complete'`` with ``some=False``.",
   example=">>> facula.qr(facula.eye(2)).R.abs()\ntensor([[1., 0.],\n        [0., 1.]])")
op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", kernel(), batch="leading",
   grad="_refuse_derivative(grad_a, 'geqrf', 'differentiate facula.linalg.qr instead')", samples="geqrf",
   doc="The QR factorisation as LAPACK keeps it: ``R`` in the upper triangle of ``a``, reflectors below it, and their\n"
       "factors ``tau``. See :func:`facula.linalg.householder_product` and :func:`facula.ormqr`.",
   example=">>> facula.geqrf(facula.ones(3, 2)).tau.shape\nfacula.Size([2])")
op("_refuse_derivative(Tensor grad, str name, str advice) -> Tensor", composite(), **_GRAD)
_factorise("linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
           batch="core 2 1", grad=dict(input="_householder_grad_input(grad, input, tau)", tau="_householder_grad_tau(grad, input, tau)"),
           samples="householder_product",
           doc="The first columns of the product of the reflectors ``I - tau[i] * outer(v, v.conj())``, where ``v`` is the\n"
               "``i``-th column of ``input`` with zeros above the diagonal and 1 on it.",
           example=">>> facula.linalg.householder_product(*facula.geqrf(facula.eye(2))).abs()\n"
                   "tensor([[1., 0.],\n        [0., 1.]])")
op("_householder_grad_input(Tensor grad, Tensor input, Tensor tau) -> Tensor", composite(), **_GRAD)
op("_householder_grad_tau(Tensor grad, Tensor input, Tensor tau) -> Tensor", composite(), **_GRAD)
op("orgqr(Tensor self, Tensor input2) -> Tensor", composite(), samples="householder_product",
   doc="The same as :func:`facula.linalg.householder_product`.",
   example=">>> facula.orgqr(*facula.geqrf(facula.eye(2))).abs()\ntensor([[1., 0.],\n        [0., 1.]])")
op("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", kernel(), batch="core 2 1 2",
   grad=dict(self="_ormqr_grad_self(grad, self, input2, input3, left, transpose)",
             input2="_ormqr_grad_tau(grad, self, input2, input3, left, transpose)",
             input3="ormqr(self, input2, grad, left, not transpose)"), samples="ormqr",
   doc="``Q @ input3`` (``input3 @ Q`` with ``left=False``), where ``Q`` is the whole product of the reflectors that\n"
       ":func:`facula.geqrf` returns as ``self`` and ``input2``; with ``transpose=True`` its adjoint.",
   example=">>> a, tau = facula.geqrf(facula.tensor([[3., 1.], [4., 2.]]))\n"
           ">>> facula.ormqr(a, tau, facula.tensor([[3.], [4.]]), transpose=True)[0]\ntensor([-5.])")
op("_ormqr_grad_self(Tensor grad, Tensor self, Tensor tau, Tensor other, bool left, bool transpose) -> Tensor", composite(), **_GRAD)
op("_ormqr_grad_tau(Tensor grad, Tensor self, Tensor tau, Tensor other, bool left, bool transpose) -> Tensor", composite(), **_GRAD)

# ---- L D L^T
_NO_LDL = "'there is one for facula.linalg.cholesky and for facula.linalg.solve'"
_factorise("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
           "-> (Tensor LD, Tensor pivots, Tensor info)",
           grad=f"_refuse_derivative(grad_LD, 'linalg.ldl_factor', {_NO_LDL})", samples="ldl_factor",
           doc="The factors, and for each matrix 0 or the first zero on the diagonal of ``D``, 1-based.",
           example=">>> facula.linalg.ldl_factor_ex(facula.eye(2)).info\ntensor(0, dtype=facula.int32)")
_linalg("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", composite(), samples="ldl_factor",
        doc="The factors of a symmetric matrix ``L @ D @ L.mT`` (of a Hermitian one ``L @ D @ L.mH``) that need not be\n"
            "positive-definite, as LAPACK keeps them: ``D``, of 1 x 1 and 2 x 2 blocks, on the diagonal and ``L`` below it.\n"
            "The lower triangle of ``self`` is read.",
        example=">>> facula.linalg.ldl_factor(facula.tensor([[2., 1.], [1., 2.]])).LD\n"
                "tensor([[2.0000, 0.0000],\n        [0.5000, 1.5000]])")
_factorise("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
           batch="core 2 1 2", grad=dict(LD=f"_refuse_derivative(grad, 'linalg.ldl_solve', {_NO_LDL})",
                     B="_ldl_solve_grad(grad, LD, pivots, hermitian)"), samples="ldl_solve",
           doc="The solution of ``A @ X == B`` from what :func:`facula.linalg.ldl_factor` returns for ``A``.",
           example=">>> LD, pivots = facula.linalg.ldl_factor(facula.tensor([[2., 1.], [1., 2.]]))\n"
                   ">>> facula.linalg.ldl_solve(LD, pivots, facula.tensor([[3.], [3.]]))\ntensor([[1.],\n        [1.]])")
op("_ldl_solve_grad(Tensor grad, Tensor LD, Tensor pivots, bool hermitian) -> Tensor", composite(), **_GRAD)

# ---- least squares
op("_linalg_lstsq(Tensor A, Tensor B, float? rcond, str? driver) "
   "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)", kernel(), batch="leading",
   grad=dict(A="_lstsq_grad_A(grad_solution, grad_residuals, A, B, solution, rcond, driver)",
             B="_lstsq_grad_B(grad_solution, grad_residuals, A, B, solution, rcond, driver)"),
   nondifferentiable=("rank", "singular_values"), **_GRAD)
op("_lstsq_grad_A(Tensor grad_of_solution, Tensor grad_of_residuals, Tensor A, Tensor B, Tensor X, float? rcond, str? driver) -> Tensor",
   composite(), **_GRAD)
op("_lstsq_grad_B(Tensor grad_of_solution, Tensor grad_of_residuals, Tensor A, Tensor B, Tensor X, float? rcond, str? driver) -> Tensor",
   composite(), **_GRAD)
_linalg("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
        "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)", composite(), samples="lstsq",
        nondifferentiable=("rank", "singular_values"),
        doc="The ``X`` that makes ``norm(self @ X - b)`` least, and the smallest of several. ``driver`` is LAPACK's:\n"
            "``'gels'`` (QR, for matrices of full rank), ``'gelsy'`` (QR with pivots, the default), ``'gelsd'`` and\n"
            "``'gelss'`` (singular values). Singular values below ``rcond`` times the largest count as zero.\n"
            "``residuals`` are the squared norms of the columns of ``self @ X - b``; they are empty for ``'gelsy'``, for\n"
            "systems that are not overdetermined, and for matrices without full rank.",
        example=">>> A = facula.tensor([[1., 0.], [1., 1.], [1., 2.]])\n"
                ">>> facula.linalg.lstsq(A, facula.tensor([[1.], [2.], [3.]])).rank\ntensor(2)")
