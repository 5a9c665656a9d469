"""Products of vectors, matrices and tensors that are made of the matrix products."""

from gen.reference import np
from gen.rows import composite, op

op("einsum(str equation, Tensor[] tensors) -> Tensor", composite(), python="_einsum", function=True, method=False,
   out=False, samples="einsum",
   doc="The sum of products that the equation describes.")
op("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", composite(),
   python="_tensordot", function=True, method=False, samples="tensordot",
   doc="The sum of products over pairs of dimensions.")
op("inner(Tensor self, Tensor other) -> Tensor", composite(), samples="inner", ref=np.inner,
   doc="The sum of products over the last dimension of both tensors.",
   example=">>> facula.inner(facula.tensor([1, 2, 3]), facula.tensor([0, 2, 1]))\ntensor(7)")
op("vdot(Tensor self, Tensor other) -> Tensor", composite(), samples="dot", ref=np.vdot,
   doc="The inner product of two vectors, the first one conjugated.",
   example=">>> facula.vdot(facula.tensor([1j, 2]), facula.tensor([1j, 1]))\ntensor(3.+0.j)", node="VdotBackward0")
op("kron(Tensor self, Tensor other) -> Tensor", composite(), samples="kron", ref=np.kron,
   doc="The Kronecker product: every element of ``self`` times all of ``other``.",
   example=">>> facula.kron(facula.eye(2), facula.tensor([[1., 2.]]))\ntensor([[1., 2., 0., 0.],\n        [0., 0., 1., 2.]])")
op("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", composite(),
   inplace=True, samples="addmv", doc="``beta * self + alpha * (mat @ vec)``.",
   example=">>> facula.addmv(facula.ones(1), facula.ones(1, 2), facula.ones(2))\ntensor([3.])")
op("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", composite(),
   inplace=True, samples="addbmm",
   doc="``beta * self + alpha * sum(batch1[i] @ batch2[i] for all i)``.",
   example=">>> facula.addbmm(facula.ones(1, 1), facula.ones(2, 1, 3), facula.ones(2, 3, 1))\ntensor([[7.]])")
op("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", composite(),
   inplace=True, samples="addr", doc="``beta * self + alpha * outer(vec1, vec2)``.",
   example=">>> facula.addr(facula.ones(1, 2), facula.ones(1), facula.tensor([1., 2.]))\ntensor([[2., 3.]])", node="AddrBackward0")
op("chain_matmul(Tensor[] matrices) -> Tensor", composite(), python="_chain_matmul", function=True, method=False,
   samples="chain", doc="The product of several matrices.")
op("linalg_multi_dot(Tensor[] tensors) -> Tensor", composite(), python="linalg.multi_dot", samples="multi_dot",
   doc="The product of two or more matrices, in the order of multiplications that costs least.\n\n"
       "The first and the last tensor may be vectors.",
   example=">>> facula.linalg.multi_dot([facula.ones(1, 2), facula.ones(2, 3), facula.ones(3)])\ntensor([6.])")
op("linalg_matmul(Tensor self, Tensor other) -> Tensor", composite(), python="linalg.matmul", method=False,
   samples="matmul", ref=np.matmul, doc="The same as ``matmul``.",
   example=">>> facula.linalg.matmul(facula.ones(2, 3), facula.ones(3))\ntensor([3., 3.])")
op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", composite(), python="linalg.vecdot", method=False,
   samples="vecdot", doc="Inner products along a dimension, the first tensor conjugated.",
   example=">>> facula.linalg.vecdot(facula.ones(2, 3), facula.ones(3))\ntensor([3., 3.])")
op("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", composite(), python="linalg.cross",
   method=False, samples="linalg_cross", doc="Cross products of vectors of three elements along a dimension.",
   example=">>> facula.linalg.cross(facula.tensor([1., 0., 0.]), facula.tensor([0., 1., 0.]))\ntensor([0., 0., 1.])")
op("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", composite(), samples="cross",
   doc="Cross products along ``dim``, by default the first dimension of size 3.",
   example=">>> facula.cross(facula.tensor([1., 0., 0.]), facula.tensor([0., 1., 0.]), dim=0)\ntensor([0., 0., 1.])", node="LinalgCrossBackward0")
op("block_diag(Tensor[] tensors) -> Tensor", composite(), python="_block_diag", function=True, method=False,
   out=False, samples="block_diag", doc="A matrix with the given ones along its diagonal.", node="BlockDiagBackward0")
op("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", composite(),
   python="linalg.diagonal", method=False, out=False, samples="linalg_diagonal",
   doc="A view of the diagonals, of the last two dimensions by default.",
   example=">>> facula.linalg.diagonal(facula.ones(3, 2, 2)).shape\nfacula.Size([3, 2])")
op("linalg_vander(Tensor x, *, int? N=None) -> Tensor", composite(), python="linalg.vander", method=False,
   out=False, samples="linalg_vander",
   doc="The powers 0 to N - 1 (by default, as many as there are elements) of each element.",
   example=">>> facula.linalg.vander(facula.tensor([1, 2, 3]))\ntensor([[1, 1, 1],\n        [1, 2, 4],\n        [1, 3, 9]])")
op("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", composite(), method=False, out=False,
   samples="vander",
   doc="The powers N - 1 to 0 of each element, or 0 to N - 1 with ``increasing=True``.",
   example=">>> facula.vander(facula.tensor([1, 2, 3]))\ntensor([[1, 1, 1],\n        [4, 2, 1],\n        [9, 3, 1]])")
