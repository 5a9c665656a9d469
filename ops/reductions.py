"""Sums and other folds over dimensions."""

from gen.reference import np
from gen.rows import composite, elementwise, kernel, op, reduction

_SUM = dict(combine="a + b", init="0", integers="Int64")
op("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", reduction("bifc", **_SUM), jvp="linear",
   grad="expand(grad, self.sizes())", ref=np.sum, out=False,
   doc="The sum of all elements; integers are added as int64.",
   example=">>> facula.sum(facula.tensor([1, 2, 3]))\ntensor(6)")
op("sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   reduction("bifc", **_SUM), jvp="linear", grad="_expand_reduced(grad, self.sizes(), dim, keepdim)", ref=np.sum,
   doc="The sum over the given dimensions.",
   example=">>> facula.sum(facula.ones(2, 3), 1)\ntensor([3., 3.])")
op("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
   reduction("bifc", combine="a * b", init="1", integers="Int64"),
   grad="_prod_grad(grad, self, result)", ref=np.prod, out=False,
   doc="The product of all elements.", example=">>> facula.prod(facula.tensor([1., 2., 3.]))\ntensor(6.)")
op("prod.dim(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   reduction("bifc", combine="a * b", init="1", integers="Int64"),
   grad="_prod_dim_grad(grad, self, dim, keepdim, result)", ref=np.prod,
   doc="The product over one dimension.",
   example=">>> facula.prod(facula.tensor([[1., 2.], [3., 4.]]), 1)\ntensor([ 2., 12.])")
op("_prod_grad(Tensor grad, Tensor self, Tensor result) -> Tensor", composite())
op("_prod_dim_grad(Tensor grad, Tensor self, int dim, bool keepdim, Tensor result) -> Tensor", composite())
op("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
   reduction("bif", combine="maximum(a, b)", init="lowest", empty=False),
   grad="_share_ties(grad, self, result, dim, keepdim)", ref=np.amax,
   doc="The largest value over the given dimensions (all by default); ties share the gradient.",
   example=">>> facula.amax(facula.tensor([[1., 5.], [7., 2.]]), 1)\ntensor([5., 7.])")
op("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
   reduction("bif", combine="minimum(a, b)", init="highest", empty=False),
   grad="_share_ties(grad, self, result, dim, keepdim)", ref=np.amin,
   doc="The smallest value over the given dimensions (all by default); ties share the gradient.",
   example=">>> facula.amin(facula.tensor([[1., 5.], [7., 2.]]), 1)\ntensor([1., 2.])")
op("_share_ties(Tensor grad, Tensor self, Tensor result, int[] dim, bool keepdim, bool nan_has_shares=False) -> Tensor", composite())
op("any(Tensor self) -> Tensor", reduction("b", combine="a | b", init="False", result="Bool"),
   ref=np.any, doc="True if any element is true.",
   example=">>> facula.any(facula.tensor([False, True]))\ntensor(True)")
op("any.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
   reduction("b", combine="a | b", init="False", result="Bool"), ref=np.any,
   doc="Over the given dimensions.",
   example=">>> facula.any(facula.tensor([[0, 0], [0, 1]]), 1)\ntensor([False,  True])")
op("all(Tensor self) -> Tensor", reduction("b", combine="a & b", init="True", result="Bool"),
   ref=np.all, doc="True if every element is true.",
   example=">>> facula.all(facula.tensor([False, True]))\ntensor(False)")
op("all.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
   reduction("b", combine="a & b", init="True", result="Bool"), ref=np.all,
   doc="Over the given dimensions.",
   example=">>> facula.all(facula.tensor([[1, 1], [0, 1]]), 1)\ntensor([ True, False])")

op("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", kernel(own_out=True), batch="all", jvp="linear",
   grad="_mean_grad(grad, self.sizes(), None, False)", ref=np.mean, samples="floating",
   doc="The mean of all elements.", example=">>> facula.mean(facula.tensor([1., 2., 6.]))\ntensor(3.)")
op("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   kernel(own_out=True), batch="reduction", jvp="linear", grad="_mean_grad(grad, self.sizes(), dim, keepdim)", ref=np.mean,
   samples="floating_dim", doc="The mean over the given dimensions.",
   example=">>> facula.mean(facula.tensor([[1., 3.], [5., 7.]]), 1)\ntensor([2., 6.])")
op("_mean_grad(Tensor grad, int[] sizes, int[]? dim, bool keepdim) -> Tensor", composite())
op("_expand_reduced(Tensor grad, int[] sizes, int[]? dim, bool keepdim) -> Tensor", composite())
op("sum_to_size(Tensor self, int[] size) -> Tensor", composite(), function=False, out=False,
   samples="sum_to_size", doc="Sums over the dimensions that broadcasting to ``self`` would have made.",
   example=">>> facula.ones(2, 3).sum_to_size(1, 3)\ntensor([[2., 2., 2.]])")
op("var(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
   composite(), samples="floating_dim",
   doc="The variance; divides by ``n - correction`` (1 by default).",
   example=">>> facula.var(facula.tensor([1., 2., 3.]))\ntensor(1.)", node="VarBackward0")
op("var.unbiased(Tensor self, bool unbiased) -> Tensor", composite(), out=False, samples="none",
   doc="With ``unbiased=False``, divides by n.",
   example=">>> facula.var(facula.tensor([1., 2., 3.]), False)\ntensor(0.6667)", node="VarBackward0")
op("var.unbiased_dim(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> Tensor", composite(), samples="none",
   doc="Over the given dimensions.",
   example=">>> facula.var(facula.tensor([[1., 2., 3.]]), 1, False)\ntensor([0.6667])", node="VarBackward0")
op("std(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
   composite(), samples="floating_dim", doc="The standard deviation: the square root of ``var``.",
   example=">>> facula.std(facula.tensor([1., 2., 3.]))\ntensor(1.)", node="StdBackward0")
op("std.unbiased(Tensor self, bool unbiased) -> Tensor", composite(), out=False, samples="none",
   doc="With ``unbiased=False``, divides by n.",
   example=">>> facula.std(facula.tensor([1., 2., 3.]), False)\ntensor(0.8165)", node="StdBackward0")
op("std.unbiased_dim(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> Tensor", composite(), samples="none",
   doc="Over the given dimensions.",
   example=">>> facula.std(facula.tensor([[1., 2., 3.]]), 1, False)\ntensor([0.8165])", node="StdBackward0")

op("max(Tensor self) -> Tensor", reduction("bif", combine="maximum(a, b)", init="lowest", empty=False),
   grad="_share_ties(grad, self, result, [], False, True)", ref=np.max,
   doc="The largest element.", example=">>> facula.max(facula.tensor([1, 3, 2]))\ntensor(3)", node="MaxBackward1")
op("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", kernel(own_out=True), batch="dims",
   grad="_put_along(grad_values, indices, dim, keepdim, self.sizes())", nondifferentiable=("indices",),
   samples="one_dim", doc="The largest values along a dimension and where they are.",
   example=">>> facula.max(facula.tensor([[1, 3], [5, 4]]), 1).indices\ntensor([1, 0])", node="MaxBackward0")
op("max.other(Tensor self, Tensor other) -> Tensor", composite(), samples="none",
   doc="The same as ``maximum``.",
   example=">>> facula.max(facula.tensor([1, 5]), facula.tensor([3, 2]))\ntensor([3, 5])")
op("min(Tensor self) -> Tensor", reduction("bif", combine="minimum(a, b)", init="highest", empty=False),
   grad="_share_ties(grad, self, result, [], False, True)", ref=np.min,
   doc="The smallest element.", example=">>> facula.min(facula.tensor([1, 3, 2]))\ntensor(1)", node="MinBackward1")
op("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", kernel(own_out=True), batch="dims",
   grad="_put_along(grad_values, indices, dim, keepdim, self.sizes())", nondifferentiable=("indices",),
   samples="one_dim", doc="The smallest values along a dimension and where they are.",
   example=">>> facula.min(facula.tensor([[1, 3], [5, 4]]), 1).indices\ntensor([0, 1])", node="MinBackward0")
op("min.other(Tensor self, Tensor other) -> Tensor", composite(), samples="none",
   doc="The same as ``minimum``.",
   example=">>> facula.min(facula.tensor([1, 5]), facula.tensor([3, 2]))\ntensor([1, 2])")
op("_put_along(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor", composite())
op("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kernel(own_out=True), batch="dims", ref="argmax",
   samples="arg_reduce", doc="Where the largest element is (in the flattened tensor without ``dim``).",
   example=">>> facula.argmax(facula.tensor([1, 3, 2]))\ntensor(1)")
op("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kernel(own_out=True), batch="dims", ref="argmin",
   samples="arg_reduce", doc="Where the smallest element is (in the flattened tensor without ``dim``).",
   example=">>> facula.argmin(facula.tensor([2, 1, 3]))\ntensor(1)")
op("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", kernel(own_out=True), batch="dims", jvp="linear",
   grad="flip(cumsum(flip(grad, [dim]), dim), [dim])", inplace=True, samples="scan", ref=np.cumsum,
   doc="Running sums along a dimension.",
   example=">>> facula.cumsum(facula.tensor([1, 2, 3]), 0)\ntensor([1, 3, 6])")
op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", composite(),
   samples="floating_dims", aliases=("special.logsumexp",),
   doc="``log(sum(exp(self)))`` without overflow.",
   example=">>> facula.logsumexp(facula.tensor([100., 100.]), 0)\ntensor(100.6931)", node="LogsumexpBackward0")
op("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", composite(), out=False, samples="floating_dim_only",
   doc="How many elements are not zero.",
   example=">>> facula.count_nonzero(facula.tensor([0, 1, 2]))\ntensor(2)")
op("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", composite(), samples="softmax", aliases=("special.softmax",),
   doc="Exponentials that sum to 1 along a dimension.",
   example=">>> facula.softmax(facula.tensor([0., 0.]), 0)\ntensor([0.5000, 0.5000])")
op("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", composite(), samples="softmax", aliases=("special.log_softmax",),
   doc="The logarithm of ``softmax``, computed without loss.",
   example=">>> facula.log_softmax(facula.tensor([0., 0.]), 0)\ntensor([-0.6931, -0.6931])")
op("_softmax(Tensor self, int dim) -> Tensor", kernel(), batch="dims", grad="_softmax_grad(grad, result, dim)", node="SoftmaxBackward0")
op("_log_softmax(Tensor self, int dim) -> Tensor", kernel(), batch="dims", grad="_log_softmax_grad(grad, result, dim)", node="LogSoftmaxBackward0")
op("_softmax_grad(Tensor grad, Tensor result, int dim) -> Tensor", composite())
op("_log_softmax_grad(Tensor grad, Tensor result, int dim) -> Tensor", composite())
# A square root whose derivative at 0 is 0, for deviations of equal elements.
op("_safe_sqrt(Tensor self) -> Tensor", elementwise("f"), f="sqrt(a)", samples="none",
   grad="where(eq(result, 0), 0, grad / (result * 2))")
