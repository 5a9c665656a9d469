"""Reading and writing by index and mask, sorting, searching and counting.

The kernels are in csrc/kernels: indexing.cpp, index_slices.cpp, scatter.cpp, masking.cpp,
diagonals.cpp, sorting.cpp, counting.cpp and scans.cpp; the loops in csrc/cpu/index_*.cpp.
"""

from gen.reference import np
from gen.rows import composite, kernel, op


def _kernel(schema, batch="dims", **row):
    op(schema, kernel(own_out=True), batch=batch, **row)


# ---- brackets: an undefined tensor in the list stands for a full slice
op("index(Tensor self, Tensor?[] indices) -> Tensor", kernel(), batch="index", jvp="linear", python="", samples="index",
   grad="_index_grad(grad, self.sizes(), indices)")
op("_index_grad(Tensor grad, int[] sizes, Tensor?[] indices) -> Tensor", composite())
_kernel("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        batch="index_put", jvp="linear", grad=dict(self="grad if accumulate else "
                       "index_put(grad, indices, new_zeros(grad, []), False)",
                  values="index(grad, indices)"),
        inplace=True, out=False, samples="index_put",
        doc="Writes ``values`` where the tensors in ``indices`` point; adds them with "
            "``accumulate=True``.",
        example=">>> facula.zeros(4).index_put((facula.tensor([2, 1]),), facula.tensor([1., 2.]))\n"
                "tensor([0., 2., 1., 0.])")

# ---- along one dimension, one index per element
_kernel("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
        batch="gather", jvp="linear", grad="_gather_grad(grad, self.sizes(), dim, index)", samples="gather",
        doc="``out[i][j] = self[i][index[i][j]]`` for ``dim=1``, and likewise along other "
            "dimensions.",
        example=">>> x = facula.tensor([[1, 2], [3, 4]])\n"
                ">>> facula.gather(x, 1, facula.tensor([[0, 0], [1, 0]]))\n"
                "tensor([[1, 1],\n        [4, 3]])")
op("_gather_grad(Tensor grad, int[] sizes, int dim, Tensor index) -> Tensor", composite())
op("_fit_to_source(Tensor grad, int[] sizes) -> Tensor", composite())
_kernel("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        jvp="linear", grad=dict(self="scatter_value(grad, dim, index, 0)",
                  src="_fit_to_source(gather(grad, dim, index), src.sizes())"),
        inplace=True, samples="scatter",
        doc="A copy with ``self[i][index[i][j]] = src[i][j]`` for ``dim=1``; the last of equal "
            "indices wins.",
        example=">>> facula.zeros(3).scatter(0, facula.tensor([2, 0]), facula.tensor([1., 2.]))\n"
                "tensor([2., 0., 1.])")
_kernel("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
        grad="scatter_value(grad, dim, index, 0)", inplace=True, samples="scatter_value",
        doc="A copy with one value at every index.",
        example=">>> facula.zeros(3).scatter(0, facula.tensor([2]), 5)\ntensor([0., 0., 5.])")
op("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
   composite(), inplace=True, samples="none",
   doc="Adds (``reduce='add'``) or multiplies (``'multiply'``) instead of replacing.",
   example=">>> index, src = facula.tensor([0, 0]), facula.tensor([2., 3.])\n"
           ">>> facula.ones(2).scatter(0, index, src, reduce='add')\ntensor([6., 1.])")
op("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) "
   "-> Tensor", composite(), inplace=True, samples="none", doc="Adds or multiplies by one value.",
   example=">>> facula.ones(2).scatter(0, facula.tensor([0]), 5, reduce='multiply')\n"
           "tensor([5., 1.])")
_kernel("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        jvp="linear", grad=dict(self="grad", src="_fit_to_source(gather(grad, dim, index), src.sizes())"),
        inplace=True, samples="scatter",
        doc="A copy with ``self[i][index[i][j]] += src[i][j]`` for ``dim=1``.",
        example=">>> index = facula.tensor([0, 0, 2])\n"
                ">>> facula.zeros(3).scatter_add(0, index, facula.tensor([1., 2., 3.]))\n"
                "tensor([3., 0., 3.])")
_kernel("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
        "bool include_self=True) -> Tensor",
        grad=dict(self="_scatter_reduce_self_grad(grad, self, dim, index, src, reduce, "
                       "include_self, result)",
                  src="_scatter_reduce_src_grad(grad, self, dim, index, src, reduce, "
                      "include_self, result)"),
        inplace=True, samples="scatter_reduce",
        doc="Combines the elements of ``src`` that go to one place by 'sum', 'prod', 'mean', "
            "'amax' or 'amin'; what was there before counts too unless ``include_self=False``.",
        example=">>> index, src = facula.tensor([0, 0, 1]), facula.tensor([5., 3., 1.])\n"
                ">>> facula.tensor([1., 2.]).scatter_reduce(0, index, src, 'amax')\n"
                "tensor([5., 2.])")
op("_scatter_reduce_self_grad(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, "
   "str reduce, bool include_self, Tensor result) -> Tensor", composite())
op("_scatter_reduce_src_grad(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, "
   "str reduce, bool include_self, Tensor result) -> Tensor", composite())

# ---- whole slices along one dimension, one index per slice
_kernel("index_select(Tensor self, int dim, Tensor index) -> Tensor",
        batch="index_select", jvp="linear", grad="_index_select_grad(grad, self.sizes(), dim, index)", samples="index_select",
        doc="The slices along a dimension that a vector of positions names, in its order.",
        example=">>> facula.index_select(facula.tensor([[1, 2], [3, 4]]), 1, facula.tensor([1]))\n"
                "tensor([[2],\n        [4]])")
op("_index_select_grad(Tensor grad, int[] sizes, int dim, Tensor index) -> Tensor", composite())
_kernel("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
        batch="index_add", jvp="linear", grad=dict(self="grad", source="_scale_back(index_select(grad, dim, index), alpha)"),
        inplace=True, samples="index_add",
        doc="Adds ``alpha`` times each slice of ``source`` to the slice that ``index`` names.",
        example=">>> facula.zeros(3).index_add(0, facula.tensor([0, 0, 2]), facula.ones(3))\n"
                "tensor([2., 0., 1.])")
_kernel("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
        batch="index_copy", jvp="linear", grad=dict(self="index_fill(grad, dim, index, 0)", source="index_select(grad, dim, index)"),
        inplace=True, samples="index_copy",
        doc="Replaces the slices that ``index`` names by those of ``source``.",
        example=">>> index, source = facula.tensor([2, 0]), facula.tensor([1., 2.])\n"
                ">>> facula.zeros(3).index_copy(0, index, source)\ntensor([2., 0., 1.])")
_kernel("index_fill(Tensor self, int dim, Tensor index, Operand value) -> Tensor",
        batch="index_fill", grad=dict(self="index_fill(grad, dim, index, 0)",
                  value="sum(grad * index_fill(zeros_like(grad), dim, index, 1))"),
        inplace=True, out=False, samples="index_fill",
        doc="Sets the slices that ``index`` names to one value.",
        example=">>> facula.zeros(3).index_fill(0, facula.tensor([1]), 7)\ntensor([0., 7., 0.])")

# ---- positions in the flattened tensor
_kernel("take(Tensor self, Tensor index) -> Tensor", batch="take", jvp="linear", grad="_take_grad(grad, self.sizes(), index)",
        samples="take", ref=np.take,
        doc="The elements at positions of the flattened tensor, in the shape of ``index``.",
        example=">>> facula.tensor([[1, 2], [3, 4]]).take(facula.tensor([0, -1]))\ntensor([1, 4])")
op("_take_grad(Tensor grad, int[] sizes, Tensor index) -> Tensor", composite())
_kernel("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
        batch="put", jvp="linear", grad=dict(self="grad if accumulate else "
                       "put(grad, index, new_zeros(grad, index.sizes()), False)",
                  source="reshape(take(grad, index), source.sizes())"),
        inplace=True, out=False, function=True, samples="put",
        doc="Writes (or adds) the elements of ``source`` at positions of the flattened tensor.",
        example=">>> facula.zeros(3).put(facula.tensor([0, -1]), facula.tensor([1., 2.]))\n"
                "tensor([1., 0., 2.])")
op("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", composite(),
   samples="take_along_dim", ref=np.take_along_axis,
   doc="``gather`` with broadcasting; without ``dim``, positions in the flattened tensor.",
   example=">>> x = facula.tensor([[3, 1], [0, 2]])\n"
           ">>> facula.take_along_dim(x, facula.tensor([[1], [0]]), 1)\n"
           "tensor([[1],\n        [0]])")

# ---- masks
_kernel("masked_select(Tensor self, Tensor mask) -> Tensor",
        batch="masked_select", jvp="linear", grad="_masked_select_grad(grad, self.sizes(), mask)", samples="masked_select",
        doc="The elements where ``mask`` is true, as one dimension.",
        example=">>> x = facula.tensor([1, 2, 3])\n>>> facula.masked_select(x, x != 2)\n"
                "tensor([1, 3])")
op("_masked_select_grad(Tensor grad, int[] sizes, Tensor mask) -> Tensor", composite())
_kernel("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
        batch="masked_scatter", jvp="linear", grad=dict(self="where(mask, 0, grad)",
                  source="_masked_scatter_source_grad(grad, mask, source.sizes())"),
        inplace=True, out=False, function=True, samples="masked_scatter",
        doc="Copies the elements of ``source``, in order, to where ``mask`` is true.",
        example=">>> x = facula.tensor([1, 2, 3])\n"
                ">>> x.masked_scatter(x != 2, facula.tensor([8, 9]))\ntensor([8, 2, 9])")
op("_masked_scatter_source_grad(Tensor grad, Tensor mask, int[] sizes) -> Tensor", composite())
_kernel("nonzero(Tensor self) -> Tensor", batch="dynamic", samples="unary", ref=np.argwhere,
        doc="The positions of elements that are not zero, one row each.",
        example=">>> facula.nonzero(facula.tensor([[1, 0], [0, 2]]))\n"
                "tensor([[0, 0],\n        [1, 1]])")
op("argwhere(Tensor self) -> Tensor", composite(), out=False, samples="unary", ref=np.argwhere,
   doc="The same as ``nonzero``.",
   example=">>> facula.argwhere(facula.tensor([0, 3]))\ntensor([[1]])")

# ---- a copy with one view replaced
op("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", kernel(), batch="select_scatter", jvp="linear",
   grad=dict(self="select_scatter(grad, zeros_like(select(grad, dim, index)), dim, index)",
             src="select(grad, dim, index)"),
   out=False, samples="select_scatter", doc="A copy with one slice replaced by ``src``.",
   example=">>> facula.zeros(2, 2).select_scatter(facula.tensor([1., 2.]), 0, 1)\n"
           "tensor([[0., 0.],\n        [1., 2.]])")
op("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
   "int step=1) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad=dict(self="slice_scatter(grad, zeros_like(slice(grad, dim, start, end, step)), "
                  "dim, start, end, step)",
             src="slice(grad, dim, start, end, step)"),
   samples="slice_scatter",
   doc="A copy with a range along a dimension replaced by ``src``.",
   example=">>> facula.zeros(4).slice_scatter(facula.tensor([1., 2.]), 0, 1, 3)\n"
           "tensor([0., 1., 2., 0.])")
op("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
   kernel(), batch="dims", jvp="linear",
   grad=dict(self="diagonal_scatter(grad, zeros_like(diagonal(grad, offset, dim1, dim2)), "
                  "offset, dim1, dim2)",
             src="diagonal(grad, offset, dim1, dim2)"),
   out=False, samples="diagonal_scatter", doc="A copy with a diagonal replaced by ``src``.",
   example=">>> facula.zeros(2, 2).diagonal_scatter(facula.tensor([1., 2.]))\n"
           "tensor([[1., 0.],\n        [0., 2.]])")

# ---- diagonals
op("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", kernel(), batch="new dims", jvp="linear",
   grad="diagonal(grad, offset, dim1, dim2)", out=False, samples="diag_embed",
   doc="Matrices with the last dimension of ``self`` on a diagonal and zeros elsewhere.",
   example=">>> facula.diag_embed(facula.tensor([1, 2]))\ntensor([[1, 0],\n        [0, 2]])")
op("diag(Tensor self, int diagonal=0) -> Tensor", composite(), samples="diag", ref=np.diag,
   doc="A vector becomes a matrix with that diagonal; of a matrix, a copy of its diagonal.",
   example=">>> facula.diag(facula.tensor([[1, 2], [3, 4]]))\ntensor([1, 4])")
op("diagflat(Tensor self, int offset=0) -> Tensor", composite(), out=False, samples="diag",
   ref=np.diagflat, doc="A matrix with all elements on its diagonal.",
   example=">>> facula.diagflat(facula.tensor([1, 2]))\ntensor([[1, 0],\n        [0, 2]])")
op("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", kernel(), batch="fill_diagonal",
   grad=dict(self="_fill_diagonal(grad, 0, wrap)"), samples="none",
   doc="Sets the main diagonal; with ``wrap=True`` it starts again below the end of a tall matrix.",
   example=">>> facula.zeros(2, 2).fill_diagonal_(3)\ntensor([[3., 0.],\n        [0., 3.]])")
op("_fill_diagonal(Tensor self, Scalar fill_value, bool wrap) -> Tensor", composite())
op("trace(Tensor self) -> Tensor", kernel(), batch="trace", jvp="linear", grad="_trace_grad(grad, self.sizes())", out=False,
   samples="matrix", ref=np.trace, doc="The sum of the main diagonal of a matrix.",
   example=">>> facula.trace(facula.tensor([[1, 2], [3, 4]]))\ntensor(5)")
op("_trace_grad(Tensor grad, int[] sizes) -> Tensor", composite())

# ---- order; NaN counts as larger than any number, and equal elements keep their order
_PAIR = "-> (Tensor values, Tensor indices)"
_PUT_BACK = "_put_along(grad_values, indices, dim, True, self.sizes())"
_kernel(f"sort(Tensor self, int dim=-1, bool descending=False) {_PAIR}", grad=_PUT_BACK,
        nondifferentiable=("indices",), samples="sort",
        doc="The elements along a dimension in order, and where each came from. The sort is "
            "stable.",
        example=">>> facula.sort(facula.tensor([3, 1, 2])).indices\ntensor([1, 2, 0])")
_kernel(f"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) {_PAIR}",
        grad=_PUT_BACK, nondifferentiable=("indices",), samples="none",
        doc="Every sort here is stable.",
        example=">>> facula.sort(facula.tensor([1, 0, 1]), stable=True).indices\ntensor([1, 0, 2])")
op("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", composite(), out=False,
   samples="sort", doc="The positions that would sort a dimension.",
   example=">>> facula.argsort(facula.tensor([3, 1, 2]))\ntensor([1, 2, 0])")
op("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
   composite(), out=False, samples="none", doc="Every sort here is stable.",
   example=">>> facula.argsort(facula.tensor([1, 0, 1]), stable=True)\ntensor([1, 0, 2])")
op("msort(Tensor self) -> Tensor", composite(), samples="unary", ref="msort",
   doc="The values of ``sort`` along the first dimension.",
   example=">>> facula.msort(facula.tensor([3, 1, 2]))\ntensor([1, 2, 3])")
_kernel(f"topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) {_PAIR}",
        grad=_PUT_BACK, nondifferentiable=("indices",), samples="topk",
        doc="The ``k`` largest (or smallest) elements along a dimension, in order, and where "
            "they are.",
        example=">>> facula.topk(facula.tensor([3, 1, 2]), 2).values\ntensor([3, 2])")
_PUT_ONE = "_put_along(grad_values, indices, dim, keepdim, self.sizes())"
_kernel(f"kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) {_PAIR}", grad=_PUT_ONE,
        nondifferentiable=("indices",), samples="kthvalue",
        doc="The ``k``-th smallest element along a dimension, counted from 1, and where it is.",
        example=">>> facula.kthvalue(facula.tensor([3, 1, 2]), 2).values\ntensor(2)")
op("median(Tensor self) -> Tensor", kernel(), batch="all", grad="_share_ties(grad, self, result, [], False, True)",
   out=False, samples="floating",
   doc="The middle element, the lower of two; NaN if any element is NaN.",
   example=">>> facula.median(facula.tensor([3., 1., 2., 9.]))\ntensor(2.)")
_kernel(f"median.dim(Tensor self, int dim, bool keepdim=False) {_PAIR}", grad=_PUT_ONE,
        nondifferentiable=("indices",), samples="one_dim",
        doc="The middle elements along a dimension and where they are.",
        example=">>> facula.median(facula.tensor([[3, 1, 2]]), 1).values\ntensor([2])")
op("nanmedian(Tensor self) -> Tensor", kernel(), batch="all", grad="_share_ties(grad, self, result, [], False, True)",
   out=False, samples="floating", ref="nanmedian",
   doc="The middle of the elements that are not NaN.",
   example=">>> facula.nanmedian(facula.tensor([3., float('nan'), 2.]))\ntensor(2.)")
_kernel(f"nanmedian.dim(Tensor self, int dim, bool keepdim=False) {_PAIR}", grad=_PUT_ONE,
        nondifferentiable=("indices",), samples="one_dim",
        doc="The middle of the elements along a dimension that are not NaN, and where it is.",
        example=">>> facula.nanmedian(facula.tensor([[3., float('nan'), 2.]]), 1).indices\n"
                "tensor([2])")
_kernel(f"mode(Tensor self, int dim=-1, bool keepdim=False) {_PAIR}", grad=_PUT_ONE,
        nondifferentiable=("indices",), samples="one_dim",
        doc="The most frequent element along a dimension, the smallest of several, and its last "
            "position.",
        example=">>> facula.mode(facula.tensor([1, 2, 2, 1, 3])).values\ntensor(1)")

# ---- distinct elements; the public functions unpack these triples
op("_unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
   "-> (Tensor output, Tensor inverse, Tensor counts)", kernel(), batch="dynamic", python="_unique", function=True,
   method=False, out=False, grad=dict(self='_no_derivative("unique", "input")'),
   nondifferentiable=("inverse", "counts"))
op("_unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, "
   "bool return_counts=False) -> (Tensor output, Tensor inverse, Tensor counts)", kernel(), batch="dynamic",
   python="_unique_dim", function=True, method=False, out=False, grad=dict(self='_no_derivative("unique", "input")'),
   nondifferentiable=("inverse", "counts"))
op("_unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
   "int? dim=None) -> (Tensor output, Tensor inverse, Tensor counts)", kernel(), batch="dynamic",
   python="_unique_consecutive", function=True, method=False, out=False, grad=dict(self='_no_derivative("unique_consecutive", "input")'),
   nondifferentiable=("inverse", "counts"))
op("isin(Operand elements, Operand test_elements, *, bool assume_unique=False, "
   "bool invert=False) -> Tensor", kernel(), batch="isin",
   samples="isin", method=False, doc="True where an element is one of ``test_elements``.",
   example=">>> facula.isin(facula.tensor([1, 2, 3]), facula.tensor([2, 5]))\n"
           "tensor([False,  True, False])")

# ---- search and counts
_kernel("searchsorted(Tensor sorted_sequence, Operand self, *, bool out_int32=False, "
        "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        batch="searchsorted", method=False, samples="searchsorted",
        doc="Where elements would be inserted into a sorted sequence (its last dimension) to "
            "keep it sorted.",
        example=">>> facula.searchsorted(facula.tensor([1, 3, 5]), facula.tensor([3, 6]))\n"
                "tensor([1, 3])")
_kernel("bucketize(Operand self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
        "-> Tensor", batch="bucketize", method=False, samples="bucketize",
        doc="The number of the interval, between the sorted ``boundaries``, that each element "
            "lies in.",
        example=">>> facula.bucketize(facula.tensor([0, 3, 9]), facula.tensor([1, 3, 5]))\n"
                "tensor([0, 1, 3])")
op("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", kernel(), batch="loop", out=False,
   samples="bincount", doc="How often each non-negative integer occurs, or the sum of its weights.",
   example=">>> facula.bincount(facula.tensor([0, 1, 1, 3]))\ntensor([1, 2, 0, 1])")
_kernel("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", batch="loop", samples="histc",
        doc="Counts of elements in ``bins`` equal intervals from ``min`` to ``max`` (of the data "
            "when both are 0).",
        example=">>> facula.histc(facula.tensor([1., 2., 2., 5.]), 4)\ntensor([1., 2., 0., 1.])")

# ---- running products and extrema
_kernel("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        grad="_cumprod_grad(grad, self, dim, result)", inplace=True, samples="scan", ref=np.cumprod,
        doc="Running products along a dimension.",
        example=">>> facula.cumprod(facula.tensor([1, 2, 3]), 0)\ntensor([1, 2, 6])")
op("_cumprod_grad(Tensor grad, Tensor self, int dim, Tensor result) -> Tensor", composite())
_kernel(f"cummax(Tensor self, int dim) {_PAIR}",
        grad="_gather_grad(grad_values, self.sizes(), dim, indices)",
        nondifferentiable=("indices",), samples="scan_real",
        doc="The largest element so far along a dimension and where it is.",
        example=">>> facula.cummax(facula.tensor([1, 3, 2]), 0).values\ntensor([1, 3, 3])")
_kernel(f"cummin(Tensor self, int dim) {_PAIR}",
        grad="_gather_grad(grad_values, self.sizes(), dim, indices)",
        nondifferentiable=("indices",), samples="scan_real",
        doc="The smallest element so far along a dimension and where it is.",
        example=">>> facula.cummin(facula.tensor([3, 1, 2]), 0).values\ntensor([3, 1, 1])")
_kernel("logcumsumexp(Tensor self, int dim) -> Tensor",
        grad="_logcumsumexp_grad(grad, self, dim, result)",
        samples="scan_floating", doc="``log(cumsum(exp(self)))`` without overflow.",
        example=">>> facula.logcumsumexp(facula.tensor([100., 100.]), 0)\n"
                "tensor([100.0000, 100.6931])")
op("_logcumsumexp_grad(Tensor grad, Tensor self, int dim, Tensor result) -> Tensor", composite())
