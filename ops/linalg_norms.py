"""Norms of vectors and matrices, and distances."""

from gen.rows import composite, elementwise, kernel, op

# What is added up (or compared) in a norm; loops of reductions.
op("_abs_power(Tensor self, float exponent) -> Tensor", elementwise("f"), f="pow(abs(a), exponent)")
op("_nonzero_count(Tensor self) -> Tensor", elementwise("f"), f="0 if a == 0 else 1")

op("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), python="linalg.vector_norm", method=False, samples="vector_norm",
   doc="The norm of all elements, or over the given dimensions.\n\n"
       "``ord`` is any number: ``sum(abs(x) ** ord) ** (1 / ord)``, the largest and smallest magnitude for\n"
       "inf and -inf, and the number of elements that are not zero for 0.",
   example=">>> facula.linalg.vector_norm(facula.tensor([3., 4.]))\ntensor(5.)")
op("_vector_norm(Tensor self, float ord, int[] dim, bool keepdim) -> Tensor", kernel(),
   grad="_vector_norm_grad(grad, self, result, ord, dim, keepdim)", node="LinalgVectorNormBackward0", batch="dims")
op("_vector_norm_grad(Tensor grad, Tensor self, Tensor result, float ord, int[] dim, bool keepdim) -> Tensor", composite())
op("linalg_matrix_norm.number(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), python="linalg.matrix_norm", method=False, samples="matrix_norm",
   doc="A norm of matrices: 2 and -2 are the largest and smallest singular value, 1 and -1 the largest and\n"
       "smallest sum of a column's magnitudes, inf and -inf of a row's.",
   example=">>> facula.linalg.matrix_norm(facula.tensor([[1., 2.], [3., 4.]]), 1)\ntensor(6.)")
op("linalg_matrix_norm.name(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), python="linalg.matrix_norm", method=False, samples="named_matrix_norm",
   doc="``'fro'``, the root of the sum of squares, or ``'nuc'``, the sum of the singular values.",
   example=">>> facula.linalg.matrix_norm(facula.ones(2, 2))\ntensor(2.)")
op("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), python="linalg.norm", method=False, samples="linalg_norm",
   doc="``vector_norm``, or ``matrix_norm`` where ``ord`` is given for two dimensions.",
   example=">>> facula.linalg.norm(facula.tensor([[3., 0.], [0., 4.]]))\ntensor(5.)")
op("linalg_norm.name(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), python="linalg.norm", method=False, samples="named_linalg_norm",
   doc="``'fro'`` or ``'nuc'`` of matrices.",
   example=">>> facula.linalg.norm(facula.tensor([[3., 0.], [0., 4.]]), 'nuc')\ntensor(7.)")
op("frobenius_norm(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", composite(), method=False,
   samples="frobenius_norm", doc="The root of the sum of squares over one or two dimensions.",
   example=">>> facula.frobenius_norm(facula.tensor([[3., 4.]]), 1)\ntensor([5.])")
op("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", composite(), method=False, samples="nuclear_norm", doc="The sum of the singular values of a matrix.",
   example=">>> facula.nuclear_norm(facula.eye(3))\ntensor(3.)")
op("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", composite(), method=False,
   samples="nuclear_norm_dim", doc="Of the matrices in two dimensions.",
   example=">>> facula.nuclear_norm(facula.ones(2, 1, 1), (1, 2))\ntensor([1., 1.])")
op("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", composite(), method=False, out=False,
   samples="norm_except_dim", doc="Norms over all dimensions but one, which keep their place.",
   example=">>> facula.norm_except_dim(facula.tensor([[3., 4.], [6., 8.]]))\ntensor([[ 5.],\n        [10.]])")

op("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", composite(), out=False, samples="dist",
   doc="The p-norm of the difference.",
   example=">>> facula.dist(facula.tensor([1., 5.]), facula.tensor([4., 1.]))\ntensor(5.)", node="DistBackward0")
op("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", composite(), inplace=True, samples="renorm", doc="Slices along ``dim`` whose p-norm is larger than ``maxnorm`` are scaled down to it.",
   example=">>> facula.renorm(facula.tensor([[3., 4.], [0.3000, 0.4000]]), 2, 0, 1)\ntensor([[0.6000, 0.8000],\n        [0.3000, 0.4000]])", node="RenormBackward0")
op("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", composite(), method=False, aliases=("nn.functional.cosine_similarity",),
   out=False, samples="cosine_similarity", doc="The cosine of the angle between vectors along a dimension.",
   example=">>> facula.cosine_similarity(facula.tensor([[1., 0.]]), facula.tensor([[1., 1.]]))\ntensor([0.7071])")
op("cdist(Tensor x1, Tensor x2, float p=2, str compute_mode=\"use_mm_for_euclid_dist_if_necessary\") -> Tensor",
   composite(), method=False, out=False, samples="cdist",
   doc="The p-norm distances between all rows of ``x1`` and all rows of ``x2``.\n\n"
       "``compute_mode`` is ``'use_mm_for_euclid_dist'`` to compute Euclidean distances by a matrix product,\n"
       "which is fast and loses digits where points are close, ``'donot_use_mm_for_euclid_dist'``, or the\n"
       "default, which takes the product for more than 25 rows.",
   example=">>> facula.cdist(facula.tensor([[0., 0.]]), facula.tensor([[3., 4.], [0., 1.]]))\ntensor([[5., 1.]])")
op("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", kernel(), batch="leading",
   grad=dict(x1="_euclidean_dist_grad(grad, x1, x2, result)",
             x2="_euclidean_dist_grad(transpose(grad, -2, -1), x2, x1, transpose(result, -2, -1))"))
op("_euclidean_dist_grad(Tensor grad, Tensor x1, Tensor x2, Tensor distances) -> Tensor", composite())
op("_cdist(Tensor x1, Tensor x2, float p) -> Tensor", kernel(), node="CdistBackward0", batch="core 2 2",
   grad=dict(x1="_cdist_grad(grad, x1, x2, p, result)",
             x2="_cdist_grad(transpose(grad, -2, -1), x2, x1, p, transpose(result, -2, -1))"))
op("_cdist_grad(Tensor grad_out, Tensor x1, Tensor x2, float p, Tensor distances) -> Tensor", kernel(), batch="core 2 2 2 2",
   grad=dict(grad_out="_cdist_grad_by_grad(grad, x1, x2, p)", x1="_cdist_grad_by_x1(grad, grad_out, x1, x2, p)",
             x2="_cdist_grad_by_x2(grad, grad_out, x1, x2, p)"))
op("_cdist_grad_by_grad(Tensor grad, Tensor x1, Tensor x2, float p) -> Tensor", composite())
op("_cdist_grad_by_x1(Tensor grad, Tensor grad_out, Tensor x1, Tensor x2, float p) -> Tensor", composite())
op("_cdist_grad_by_x2(Tensor grad, Tensor grad_out, Tensor x1, Tensor x2, float p) -> Tensor", composite())
op("_pdist(Tensor self, float p) -> Tensor", kernel(), node="PdistBackward0", batch="leading",
   grad="_pdist_grad(grad, self, p, result)")
op("_pdist_grad(Tensor grad, Tensor self, float p, Tensor distances) -> Tensor", composite())
op("_square_of_pairs(Tensor self, int n) -> Tensor", kernel(), batch="leading", jvp="linear", grad="_pairs_of_square(grad)")
op("_pairs_of_square(Tensor square) -> Tensor", composite())
op("pdist(Tensor self, float p=2) -> Tensor", composite(), method=False, out=False, samples="pdist", aliases=("nn.functional.pdist",),
   doc="The p-norm distances between all pairs of rows, those of the first row first.",
   example=">>> facula.pdist(facula.tensor([[0., 0.], [3., 4.], [0., 1.]]))\ntensor([5.0000, 1.0000, 4.2426])", node="PdistBackward0")
