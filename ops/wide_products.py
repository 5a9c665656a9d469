"""Matrix products with a result that is wider than the factors."""

from gen.rows import composite, op

_DOC = ("The sum is taken, and the result left, in ``out_dtype``: float32 for half and bfloat16 factors, else their\n"
        "own dtype. PyTorch has this on CUDA devices alone.")
_ROW = dict(method=False, inplace=False, samples="none")

op("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", composite(), **_ROW, doc=f"The product of two matrices. {_DOC}",
   example=">>> x = facula.ones(1, 2, dtype=facula.bfloat16)\n>>> facula.mm(x, x.T, out_dtype=facula.float32)\ntensor([[2.]])")
op("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", composite(), **_ROW,
   doc=f"Products of two batches of matrices. {_DOC}",
   example=">>> x = facula.ones(1, 1, 1, dtype=facula.half)\n>>> facula.bmm(x, x, out_dtype=facula.float32)\ntensor([[[1.]]])")
op("addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor", composite(),
   **_ROW, doc=f"``beta * self + alpha * (mat1 @ mat2)``. {_DOC}",
   example=">>> x = facula.ones(1, 2, dtype=facula.half)\n>>> facula.addmm(facula.ones(1), x, x.T, out_dtype=facula.float32)\ntensor([[3.]])")
op("baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   composite(), **_ROW, doc=f"``beta * self + alpha * (batch1 @ batch2)``. {_DOC}",
   example=">>> x = facula.ones(1, 1, 1, dtype=facula.half)\n"
           ">>> facula.baddbmm(facula.ones(1), x, x, out_dtype=facula.float32)\ntensor([[[2.]]])")
