"""Statistics: moments, quantiles, covariance and histograms.

The kernels are in csrc/kernels: moments.cpp, quantiles.cpp and histograms.cpp.
"""

from gen.reference import np
from gen.rows import composite, elementwise, kernel, op

# ---- moments; var and std are in reductions.py


def _with_mean(name, words, shown):
    """name: std or var; shown: its value for 1, 2, 3 with and without the correction."""
    values, of = "facula.tensor([1., 2., 3.])", f"The {words} and the mean"
    node = f"{name.capitalize()}MeanBackward0"
    op(f"{name}_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
       "bool keepdim=False) -> (Tensor, Tensor)", composite(), method=False, out=False,
       samples="floating_dim", doc=f"{of}; divides by ``n - correction`` (1 by default).",
       example=f">>> facula.{name}_mean({values})\n(tensor({shown[0]}), tensor(2.))", node=node)
    op(f"{name}_mean.unbiased(Tensor self, bool unbiased) -> (Tensor, Tensor)", composite(),
       method=False, out=False, samples="none", doc=f"{of}; with ``unbiased=False``, divides by n.",
       example=f">>> facula.{name}_mean({values}, False)[0]\ntensor({shown[1]})", node=node)
    op(f"{name}_mean.unbiased_dim(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) "
       "-> (Tensor, Tensor)", composite(), method=False, out=False, samples="none",
       doc=f"{of} over the given dimensions.",
       example=f">>> facula.{name}_mean({values}, 0, False)[0]\ntensor({shown[1]})", node=node)


_with_mean("var", "variance", ("1.", "0.6667"))
_with_mean("std", "standard deviation", ("1.", "0.8165"))
op("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), samples="with_nan", ref=np.nansum, doc="The sum, with NaN counted as 0.",
   example=">>> facula.nansum(facula.tensor([1., float('nan'), 2.]))\ntensor(3.)", node="NansumBackward0")
op("_without_nan(Tensor self) -> Tensor", elementwise("f"), f="0 if isnan(a) else a")
op("_nansum(Tensor self, int[] dim, bool keepdim) -> Tensor", kernel(), batch="dims", node="NansumBackward0",
   grad="masked_fill(_expand_reduced(grad, self.sizes(), dim, keepdim), isnan(self), 0)")
op("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   composite(), samples="with_nan", ref=np.nanmean, doc="The mean of the elements that are not NaN.",
   example=">>> facula.nanmean(facula.tensor([1., float('nan'), 2.]))\ntensor(1.5000)")
op("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
   kernel(own_out=True), batch="dims", samples="aminmax",
   grad="_aminmax_grad(grad_min, grad_max, self, min, max, dim, keepdim)",
   doc="The smallest and the largest elements, of all or along a dimension; ties share the "
       "gradient.",
   example=">>> facula.aminmax(facula.tensor([3., 1., 2.])).max\ntensor(3.)")

op("_aminmax_grad(Tensor grad_min, Tensor grad_max, Tensor self, Tensor min, Tensor max, int? dim, "
   "bool keepdim) -> Tensor", composite())

# ---- covariance
op("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
   composite(), out=False, samples="cov",
   doc="The covariances of variables (rows) over observations (columns). An observation counts "
       "``fweights`` times, with the relative importance ``aweights``.",
   example=">>> facula.cov(facula.tensor([[0., 1., 2.], [2., 1., 0.]]))\n"
           "tensor([[ 1., -1.],\n        [-1.,  1.]])")
op("corrcoef(Tensor self) -> Tensor", composite(), out=False, samples="corrcoef", ref=np.corrcoef,
   doc="Pearson's correlation of variables (rows) over observations (columns).",
   example=">>> facula.corrcoef(facula.tensor([[0., 1., 2.], [4., 2., 0.]]))\n"
           "tensor([[ 1., -1.],\n        [-1.,  1.]])")
op("_frequencies(Tensor self) -> Tensor", elementwise("if", check="weights_not_negative"), f="a",
   grad="grad", samples="none")
op("_weight_total(Tensor self) -> Tensor", elementwise("if", check="total_not_zero"), f="a",
   grad="grad", samples="none")

# ---- quantiles
_WAYS = "'linear', 'lower', 'higher', 'midpoint' or 'nearest'"
for _name, _words, _ref, _values in (
        ("quantile", "", np.quantile, "facula.arange(5.)"),
        ("nanquantile", ", not counting NaN", np.nanquantile,
         "facula.tensor([0., 1., 2., 3., 4., float('nan')])")):
    op(f"{_name}(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, "
       "str interpolation='linear') -> Tensor", composite(), samples="quantile", ref=_ref,
       doc=f"The ``q``-quantiles along a dimension, or of all elements{_words}; several ``q`` make "
           f"a first dimension. Between two elements ``interpolation`` decides: {_WAYS}.",
       example=f">>> facula.{_name}({_values}, facula.tensor([0.25, 0.625]))\n"
               "tensor([1.0000, 2.5000])")
    op(f"{_name}.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, "
       "str interpolation='linear') -> Tensor", composite(), samples="quantile_scalar", ref=_ref,
       doc="One quantile.",
       example=f">>> facula.{_name}({_values}, 0.5)\ntensor(2.)")
op("_quantile_levels(Tensor self) -> Tensor", elementwise("f", check="levels_in_range"), f="a",
   grad="grad", samples="none")

# ---- histograms
_HISTOGRAM = "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)"
op(f"histogram.edges(Tensor self, Tensor bins, *, {_HISTOGRAM}", kernel(own_out=True),
   samples="histogram_edges", batch="loop",
   doc="How many elements lie between neighbouring ``bins``, the last of which is included, or the "
       "sum of their weights; with ``density``, so that the integral is 1.",
   example=">>> facula.histogram(facula.tensor([1., 2., 4.]), facula.tensor([0., 2., 4.])).hist\n"
           "tensor([1., 2.])")
op(f"histogram(Tensor self, int bins=100, *, float[]? range=None, {_HISTOGRAM}",
   kernel(own_out=True), samples="histogram", batch="loop",
   doc="Over ``bins`` equal intervals of ``range``, or of the data when it is not given.",
   example=">>> facula.histogram(facula.tensor([1., 2., 4.]), 3, range=(0., 6.)).hist\n"
           "tensor([1., 1., 1.])")
# The counts, then the edges of each dimension; the public functions make a tuple of two.
op("_histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, "
   "bool density=False) -> Tensor[]", kernel(), python="_histogramdd", method=False, samples="none",
   batch="loop")
op("_histogramdd.edges(Tensor self, Tensor[] bins, Tensor? weight=None, bool density=False) "
   "-> Tensor[]", kernel(), python="_histogramdd_edges", method=False, samples="none",
   batch="loop")
