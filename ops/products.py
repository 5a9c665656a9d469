"""Matrix products."""

from gen.reference import np
from gen.rows import composite, kernel, op

op("mm(Tensor self, Tensor mat2) -> Tensor", kernel(own_out=True), batch="mm", jvp="each",
   grad=dict(self="mm(grad, conj(t(mat2)))", mat2="mm(conj(t(self)), grad)"), samples="mm", ref=np.matmul,
   doc="The product of two matrices.", example=">>> facula.mm(facula.ones(1, 2), facula.ones(2, 1))\ntensor([[2.]])")
op("bmm(Tensor self, Tensor mat2) -> Tensor", kernel(own_out=True), batch="mm", jvp="each",
   grad=dict(self="bmm(grad, conj(transpose(mat2, 1, 2)))", mat2="bmm(conj(transpose(self, 1, 2)), grad)"),
   samples="bmm", ref=np.matmul, doc="Products of two batches of matrices.",
   example=">>> facula.bmm(facula.ones(1, 1, 2), facula.ones(1, 2, 1))\ntensor([[[2.]]])")
op("mv(Tensor self, Tensor vec) -> Tensor", kernel(own_out=True), batch="mv", jvp="each",
   grad=dict(self="unsqueeze(grad, 1) * conj(unsqueeze(vec, 0))", vec="mv(conj(t(self)), grad)"), samples="mv", ref=np.matmul,
   doc="A matrix times a vector.", example=">>> facula.mv(facula.ones(2, 2), facula.ones(2))\ntensor([2., 2.])")
op("dot(Tensor self, Tensor tensor) -> Tensor", kernel(own_out=True), batch="dot", jvp="each",
   grad=dict(self="grad * conj(tensor)", tensor="grad * conj(self)"), samples="dot", ref=np.dot,
   doc="The inner product of two vectors.", example=">>> facula.dot(facula.tensor([1., 2.]), facula.tensor([3., 4.]))\ntensor(11.)")
op("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", kernel(own_out=True), batch="addmm",
   grad=dict(self="_scale_back(grad, beta)", mat1="_scale_back(mm(grad, conj(t(mat2))), alpha)",
             mat2="_scale_back(mm(conj(t(mat1)), grad), alpha)"), inplace=True, samples="addmm",
   doc="``beta * self + alpha * (mat1 @ mat2)``.",
   example=">>> facula.addmm(facula.ones(1, 1), facula.ones(1, 2), facula.ones(2, 1))\ntensor([[3.]])")
op("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", kernel(own_out=True), batch="addmm",
   grad=dict(self="_scale_back(grad, beta)", batch1="_scale_back(bmm(grad, conj(transpose(batch2, 1, 2))), alpha)",
             batch2="_scale_back(bmm(conj(transpose(batch1, 1, 2)), grad), alpha)"), inplace=True, samples="baddbmm",
   doc="``beta * self + alpha * (batch1 @ batch2)``.",
   example=">>> facula.baddbmm(facula.ones(1, 1, 1), facula.ones(1, 1, 2), facula.ones(1, 2, 1))\ntensor([[[3.]]])")
op("matmul(Tensor self, Tensor other) -> Tensor", composite(), samples="matmul", ref=np.matmul,
   doc="The matrix product with PyTorch's rules for vectors, matrices and batches.",
   example=">>> facula.matmul(facula.ones(2, 3), facula.ones(3))\ntensor([3., 3.])")
op("outer(Tensor self, Tensor vec2) -> Tensor", composite(), samples="outer", aliases=("ger",), ref=np.outer,
   doc="All products of two vectors' elements.", example=">>> facula.outer(facula.tensor([1, 2]), facula.tensor([3, 4]))\ntensor([[3, 4],\n        [6, 8]])")
