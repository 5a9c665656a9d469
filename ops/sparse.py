"""Sparse tensors: what they are made of, and the products of their rows. See csrc/sparse."""

from gen.rows import composite, kernel, op

_LOOP = "loop: positions are the same for a whole batch, values are not"

# ---- from parts to tensors and back; all that is done to sparse tensors is made of these.
# layout: 1 COO, 2 CSR, 3 CSC, 4 BSR, 5 BSC, as facula.layout counts them.
op("_sparse_make(Tensor indices, Tensor? plain, Tensor values, int[] size, int layout, bool sorted) -> Tensor",
   kernel(), python="_sparse_make", function=True, method=False, out=False, batch=_LOOP, samples="none", node="SparseCooTensorWithDimsAndTensorsBackward0",
   grad=dict(values="_sparse_gather_at(grad, indices, plain, values.sizes(), size, layout)"))
op("_sparse_gather_at(Tensor self, Tensor indices, Tensor? plain, int[] values_size, int[] size, int layout) -> Tensor", composite(), out=False, samples="none")
op("_sparse_values(Tensor self) -> Tensor", composite(), python="_sparse_values", function=True, method=False, out=False, samples="none")
# `pattern` has the positions of self, for the derivative: self may be written to in the meantime.
op("_sparse_elements(Tensor self, Tensor pattern) -> Tensor", kernel(), out=False, batch=_LOOP, samples="none", node="ValuesBackward0",
   grad=dict(self="_sparse_like(pattern, grad)"))
# Indices of COO (0), where rows begin (0) and columns (1) of the compressed layouts.
op("_sparse_indices(Tensor self, int part) -> Tensor", kernel(), python="_sparse_indices", function=True, method=False, out=False, batch=_LOOP, samples="none")
op("_sparse_gather(Tensor self, Tensor pattern) -> Tensor", composite(), python="_sparse_gather", function=True, method=False, out=False, samples="none")
op("_sparse_like(Tensor pattern, Tensor values) -> Tensor", composite(), python="_sparse_like", function=True, method=False, out=False, samples="none")
op("_sparse_coalesce(Tensor self) -> Tensor", composite(), python="_sparse_coalesce", function=True, method=False, out=False, samples="none")
op("_sparse_to_dense(Tensor self) -> Tensor", composite(), python="_sparse_to_dense", function=True, method=False, out=False, samples="none")
op("_sparse_convert(Tensor self, int layout, int sparse_dim, int[] blocksize) -> Tensor", composite(), python="_sparse_convert", function=True, method=False, out=False, samples="none")
op("_sparse_mask(Tensor self, Tensor mask) -> Tensor", composite(), python="_sparse_mask", function=True, method=False, out=False, samples="none")
op("_sparse_softmax(Tensor self, int dim, bool logarithm) -> Tensor", composite(), python="_sparse_softmax", function=True, method=False, out=False, samples="none")
op("_sparse_sum(Tensor self, int[] dim) -> Tensor", composite(), python="_sparse_sum", function=True, method=False, out=False, samples="none")

# ---- products of rows: (rows, columns) in CSR form, with matrices that are dense
op("_csr_mm(Tensor starts, Tensor columns, Tensor values, Tensor matrix) -> Tensor", kernel(), python="_csr_mm", function=True, method=False, out=False, batch=_LOOP, samples="none",
   jvp="each", grad=dict(values="_csr_sampled(starts, columns, grad, conj(matrix))",
                         matrix="_csr_mm_turned(starts, columns, conj(values), grad, matrix.sizes())"))
op("_csr_mm_turned(Tensor starts, Tensor columns, Tensor values, Tensor matrix, int[] size) -> Tensor", composite(), out=False, samples="none")
# out[k] = the inner product of row i of a and row j of b, where element k is at (i, j).
op("_csr_sampled(Tensor starts, Tensor columns, Tensor a, Tensor b) -> Tensor", kernel(), python="_csr_sampled", function=True, method=False, out=False, batch=_LOOP, samples="none",
   jvp="each", grad=dict(a="_csr_mm(starts, columns, grad, conj(b))",
                         b="_csr_mm_turned(starts, columns, grad, conj(a), b.sizes())"))
