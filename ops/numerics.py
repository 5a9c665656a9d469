"""Finite differences, integrals of samples, and combinations. The kernels are in
csrc/kernels/numerics.cpp."""

from gen.rows import composite, op

op("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
   composite(), samples="diff",
   doc="The differences of neighbours along a dimension, ``n`` times over; ``prepend`` and "
       "``append`` are joined to the input first.",
   example=">>> facula.diff(facula.tensor([1, 4, 9]))\ntensor([3, 5])")

_EDGES = "int[1]? dim=None, int edge_order=1) -> Tensor[]"
_GRADIENT = dict(method=False, out=False)
op(f"gradient(Tensor self, *, Scalar? spacing=None, {_EDGES}", composite(), **_GRADIENT,
   samples="gradient",
   doc="The derivative of a sampled function along each dimension, by central differences; at the "
       "ends one-sided ones of order ``edge_order``. ``spacing`` is the distance of samples.",
   example=">>> facula.gradient(facula.tensor([1., 2., 4., 8.]))\n"
           "(tensor([1.0000, 1.5000, 3.0000, 4.0000]),)")
op(f"gradient.coordinates(Tensor self, *, Tensor[] spacing, {_EDGES}", composite(), **_GRADIENT,
   samples="gradient_coordinates",
   doc="With the coordinates of the samples along each dimension.",
   example=">>> facula.gradient(facula.tensor([1., 2., 4.]), spacing=[facula.tensor([0., 1., 3.])])\n"
           "(tensor([1., 1., 1.]),)")
op(f"gradient.each(Tensor self, *, float[] spacing, {_EDGES}", composite(), **_GRADIENT,
   samples="gradient_each", doc="With a distance for each dimension.",
   example=">>> facula.gradient(facula.tensor([1., 2., 4.]), spacing=[0.5])\n"
           "(tensor([2., 3., 4.]),)")


def _integral(name, alias, doc, shown):
    op(f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", composite(), aliases=alias,
       method=False, out=False, samples="samples_at",
       doc=f"{doc}; ``x`` holds where the samples were taken.",
       example=f">>> y, x = facula.tensor([1., 2., 4.]), facula.tensor([0., 1., 3.])\n"
               f">>> facula.{name}(y, x)\ntensor({shown[0]})")
    op(f"{name}(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", composite(), aliases=alias,
       method=False, out=False, samples="samples",
       doc=f"{doc}; ``dx`` is the distance of samples.",
       example=f">>> facula.{name}(facula.tensor([1., 2., 4.]))\ntensor({shown[1]})")


_integral("trapezoid", ("trapz",), "The integral of samples along a dimension, by the trapezoidal rule",
          ("7.5000", "4.5000"))
_integral("cumulative_trapezoid", (), "The integral from the first sample to each further one",
          ("[1.5000, 7.5000]", "[1.5000, 4.5000]"))

op("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", composite(),
   method=False, out=False, samples="combinations",
   doc="All ways to choose ``r`` elements of a vector, one row each, in the order of positions.",
   example=">>> facula.combinations(facula.tensor([1, 2, 3]))\n"
           "tensor([[1, 2],\n        [1, 3],\n        [2, 3]])")
