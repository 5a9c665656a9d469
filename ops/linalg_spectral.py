"""Singular values, eigenvalues and what is computed from them."""

from gen.rows import composite, kernel, op

# ---- singular values

op("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", kernel(),
   python="linalg.svd", method=False, samples="svd", batch="leading", jvp="by vjp at 0",
   grad=dict(A="_svd_grad(given_U, given_S, given_Vh, U, S, Vh)"),
   doc="The singular value decomposition ``A = U @ diag(S) @ Vh`` of matrices, with ``S`` in descending order.\n\n"
       "With ``full_matrices=False``, ``U`` and ``Vh`` have as many columns and rows as there are singular values.",
   example=">>> facula.linalg.svd(facula.tensor([[3., 0.], [0., 2.]])).S\ntensor([3., 2.])")
op("_svd_grad(Tensor? grad_U, Tensor? grad_S, Tensor? grad_Vh, Tensor U, Tensor S, Tensor Vh) -> Tensor", composite())
op("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", kernel(), python="linalg.svdvals", method=False,
   samples="svdvals", batch="leading", grad=dict(A="_svdvals_grad(grad, A)"),
   doc="The singular values of matrices, in descending order.",
   example=">>> facula.linalg.svdvals(facula.tensor([[3., 0.], [0., 2.]]))\ntensor([3., 2.])")
op("_svdvals_grad(Tensor grad, Tensor A) -> Tensor", composite())
op("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", composite(),
   samples="legacy_svd",
   doc="The singular value decomposition ``self = U @ diag(S) @ V.mH``; see ``linalg.svd``.\n\n"
       "``U`` and ``V`` are complete with ``some=False`` and zeros with ``compute_uv=False``.",
   example=">>> facula.svd(facula.tensor([[3., 0.], [0., 2.]])).S\ntensor([3., 2.])")

# ---- eigenvalues

op("linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)", kernel(),
   python="linalg.eigh", method=False, samples="eigh", batch="leading", jvp="by vjp at 0",
   grad="_eigh_grad(given_eigenvalues, given_eigenvectors, eigenvalues, eigenvectors)",
   doc="Eigenvalues, in ascending order, and orthonormal eigenvectors (columns) of symmetric or Hermitian matrices.\n\n"
       "Only the triangle that ``UPLO`` names, ``'L'`` or ``'U'``, is read.",
   example=">>> facula.linalg.eigh(facula.tensor([[2., 1.], [1., 2.]])).eigenvalues\ntensor([1., 3.])")
op("_eigh_grad(Tensor? grad_values, Tensor? grad_vectors, Tensor values, Tensor vectors) -> Tensor", composite())
op("linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", kernel(), python="linalg.eigvalsh", method=False,
   samples="eigh", batch="leading", grad="_eigvalsh_grad(grad, self, UPLO)",
   doc="The eigenvalues of symmetric or Hermitian matrices, in ascending order.",
   example=">>> facula.linalg.eigvalsh(facula.tensor([[2., 1.], [1., 2.]]))\ntensor([1., 3.])")
op("_eigvalsh_grad(Tensor grad, Tensor self, str UPLO) -> Tensor", composite())
op("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", kernel(), python="linalg.eig",
   method=False, samples="eig", batch="leading", jvp="by vjp at 0",
   grad="_eig_grad(given_eigenvalues, given_eigenvectors, eigenvalues, eigenvectors)",
   doc="Eigenvalues and eigenvectors (columns of length 1) of square matrices; complex, and in no order.",
   example=">>> facula.linalg.eig(facula.tensor([[0., 1.], [1., 0.]])).eigenvalues.real.sort().values\ntensor([-1.,  1.])")
op("_eig_grad(Tensor? grad_values, Tensor? grad_vectors, Tensor values, Tensor vectors) -> Tensor", composite())
op("linalg_eigvals(Tensor self) -> Tensor", kernel(), python="linalg.eigvals", method=False, samples="eig", batch="leading", grad="_eigvals_grad(grad, self)",
   doc="The eigenvalues of square matrices; complex, and in no order.",
   example=">>> facula.linalg.eigvals(facula.tensor([[0., -1.], [1., 0.]])).imag.sort().values\ntensor([-1.,  1.])")
op("_eigvals_grad(Tensor grad, Tensor self) -> Tensor", composite())
op("_refuse_phase(Tensor phase, str decomposition, str vectors) -> Tensor", kernel(), batch="leading")

# ---- functions of singular values

_PINV_DOC = ("The pseudo-inverse: singular values up to ``max(atol, rtol * the largest)`` count as 0.\n\n"
             "With ``hermitian=True`` the matrices are taken as Hermitian, which is faster.")
op("linalg_pinv(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", composite(),
   python="linalg.pinv", method=False, samples="pinv", doc=_PINV_DOC,
   example=">>> facula.linalg.pinv(facula.tensor([[2., 0.], [0., 0.]]))\ntensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])")
op("linalg_pinv.numbers(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
   composite(), python="linalg.pinv", method=False, samples="pinv_numbers", doc="With numbers as tolerances.",
   example=">>> facula.linalg.pinv(facula.tensor([[2., 0.], [0., 1.]]), atol=1.5)\ntensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])")
op("linalg_pinv.rcond(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", composite(),
   python="linalg.pinv", method=False, samples="pinv_rcond_tensor", doc="``rcond`` is ``rtol``.",
   example=">>> facula.linalg.pinv(facula.tensor([[2., 0.], [0., 1.]]), facula.tensor(0.6))\ntensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])")
op("linalg_pinv.rcond_number(Tensor self, float rcond, bool hermitian=False) -> Tensor", composite(),
   python="linalg.pinv", method=False, samples="pinv_rcond", doc="``rcond`` is ``rtol``.",
   example=">>> facula.linalg.pinv(facula.tensor([[2., 0.], [0., 1.]]), 0.6)\ntensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])")
op("pinverse(Tensor self, float rcond=1e-15) -> Tensor", composite(), out=False, samples="pinv_rcond",
   doc="The same as ``linalg.pinv(self, rcond)``.",
   example=">>> facula.pinverse(facula.tensor([[2., 0.], [0., 0.]]))\ntensor([[0.5000, 0.0000],\n        [0.0000, 0.0000]])")
op("_pinv(Tensor self, Tensor atol, Tensor rtol, bool hermitian) -> Tensor", kernel(), batch="leading",
   grad=dict(self="_pinv_grad(grad, result, self)"), node="LinalgPinvBackward0")
op("_pinv_grad(Tensor grad, Tensor result, Tensor self) -> Tensor", composite())

_RANK_DOC = "How many singular values are above ``max(atol, rtol * the largest)``."
op("linalg_matrix_rank(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
   composite(), python="linalg.matrix_rank", method=False, samples="pinv", doc=_RANK_DOC,
   example=">>> facula.linalg.matrix_rank(facula.ones(3, 3))\ntensor(1)")
op("linalg_matrix_rank.numbers(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
   composite(), python="linalg.matrix_rank", method=False, samples="pinv_numbers",
   doc="With numbers as tolerances.", example=">>> facula.linalg.matrix_rank(facula.eye(3), atol=2.)\ntensor(0)")
op("linalg_matrix_rank.tol(Tensor self, Tensor tol, bool hermitian=False) -> Tensor", composite(),
   python="linalg.matrix_rank", method=False, samples="pinv_rcond_tensor", doc="``tol`` is ``atol``.",
   example=">>> facula.linalg.matrix_rank(facula.eye(3), facula.tensor(2.))\ntensor(0)")
op("linalg_matrix_rank.tol_number(Tensor self, float tol, bool hermitian=False) -> Tensor", composite(),
   python="linalg.matrix_rank", method=False, samples="pinv_rcond", doc="``tol`` is ``atol``.",
   example=">>> facula.linalg.matrix_rank(facula.eye(3), 2.)\ntensor(0)")
op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", composite(), python="linalg.cond", method=False,
   samples="cond",
   doc="The condition number: the ratio of the largest and the smallest singular value (``p=None`` or 2, the\n"
       "reverse for -2), or ``matrix_norm(self, p) * matrix_norm(inv(self), p)``.",
   example=">>> facula.linalg.cond(facula.tensor([[4., 0.], [0., 2.]]))\ntensor(2.)")
op("linalg_cond.name(Tensor self, str p) -> Tensor", composite(), python="linalg.cond", method=False,
   samples="named_cond", doc="With the norm ``'fro'`` or ``'nuc'``.",
   example=">>> facula.linalg.cond(facula.eye(2), 'nuc')\ntensor(4.)")

# ---- the exponential

op("matrix_exp(Tensor self) -> Tensor", kernel(), samples="matrix_exp", out=False, batch="leading",
   grad="_matrix_exp_grad(grad, self)", doc="The exponential of square matrices: the sum of ``self**k / k!`` over all k.",
   example=">>> facula.matrix_exp(facula.zeros(2, 2))\ntensor([[1., 0.],\n        [0., 1.]])", node="LinalgMatrixExpBackward0")
op("_matrix_exp_grad(Tensor grad, Tensor self) -> Tensor", composite())
op("linalg_matrix_exp(Tensor self) -> Tensor", composite(), python="linalg.matrix_exp", method=False,
   samples="matrix_exp", doc="The same as ``matrix_exp``.", out=False,
   example=">>> facula.linalg.matrix_exp(facula.zeros(2, 2))\ntensor([[1., 0.],\n        [0., 1.]])")
