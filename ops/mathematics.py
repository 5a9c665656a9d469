"""Functions of one variable, and a few of two."""

from gen.reference import np
from gen.rows import composite, elementwise, kernel, op, view


def _unary(name, grad, ref, words, *, types="fc", f=None, shown, aliases=(), domain="real", node="", **options):
    op(f"{name}(Tensor self) -> Tensor", elementwise(types, promote="Float", **options), f=f or f"{name}(a)",
       grad=grad, ref=ref, aliases=aliases, samples=None if domain == "real" else domain,
       doc=words, example=f">>> facula.{name}(facula.tensor([0.5000, 0.2500]))\n{shown}", node=node)


_unary("exp", "grad * conj(result)", np.exp, "e raised to each element.", shown="tensor([1.6487, 1.2840])")
_unary("exp2", "grad * conj(result) * 0.6931471805599453", np.exp2, "2 raised to each element.",
       aliases=("special.exp2",), shown="tensor([1.4142, 1.1892])")
_unary("expm1", "grad * conj(result + 1)", np.expm1, "``exp(x) - 1``, precise near 0.",
       aliases=("special.expm1",), shown="tensor([0.6487, 0.2840])")
_unary("log", "grad / conj(self)", np.log, "The natural logarithm.", domain="positive",
       shown="tensor([-0.6931, -1.3863])")
_unary("log2", "grad / conj(self * 0.6931471805599453)", np.log2, "The logarithm to base 2.",
       domain="positive", shown="tensor([-1., -2.])")
_unary("log10", "grad / conj(self * 2.302585092994046)", np.log10, "The logarithm to base 10.",
       domain="positive", shown="tensor([-0.3010, -0.6021])")
_unary("log1p", "grad / conj(self + 1)", np.log1p, "``log(1 + x)``, precise near 0.", domain="positive",
       aliases=("special.log1p",), node="Log1PBackward0", shown="tensor([0.4055, 0.2231])")
_unary("sqrt", "grad / conj(result * 2)", np.sqrt, "The square root.", domain="positive", halves=True,
       shown="tensor([0.7071, 0.5000])")
_unary("rsqrt", "grad * conj(result * result * result * -0.5)", lambda x: 1 / np.sqrt(x),
       "1 over the square root.", domain="positive", halves=True, shown="tensor([1.4142, 2.0000])")
_unary("sin", "grad * conj(cos(self))", np.sin, "The sine.", shown="tensor([0.4794, 0.2474])",
       fallback={"f": ("angle_in_range(a)", "sin_full_range(a)")})
_unary("cos", "-grad * conj(sin(self))", np.cos, "The cosine.", shown="tensor([0.8776, 0.9689])",
       fallback={"f": ("angle_in_range(a)", "cos_full_range(a)")})
_unary("tan", "grad * conj(result * result + 1)", np.tan, "The tangent.", domain="unit",
       shown="tensor([0.5463, 0.2553])", fallback={"f": ("angle_in_range(a)", "tan_full_range(a)")})
_unary("asin", "grad * conj(rsqrt(1 - self * self))", np.arcsin, "The inverse sine.", domain="unit",
       aliases=("arcsin",), shown="tensor([0.5236, 0.2527])")
_unary("acos", "-grad * conj(rsqrt(1 - self * self))", np.arccos, "The inverse cosine.", domain="unit",
       aliases=("arccos",), shown="tensor([1.0472, 1.3181])")
_unary("atan", "grad / conj(self * self + 1)", np.arctan, "The inverse tangent.", aliases=("arctan",),
       shown="tensor([0.4636, 0.2450])")
_unary("sinh", "grad * conj(cosh(self))", np.sinh, "The hyperbolic sine.",
       shown="tensor([0.5211, 0.2526])")
_unary("cosh", "grad * conj(sinh(self))", np.cosh, "The hyperbolic cosine.",
       shown="tensor([1.1276, 1.0314])")
_unary("tanh", "_tanh_grad(grad, result)", np.tanh, "The hyperbolic tangent.",
       shown="tensor([0.4621, 0.2449])")
_unary("asinh", "grad * conj(rsqrt(self * self + 1))", np.arcsinh, "The inverse hyperbolic sine.",
       aliases=("arcsinh",), shown="tensor([0.4812, 0.2475])")
_unary("acosh", "grad * conj(rsqrt(self - 1) * rsqrt(self + 1))", np.arccosh,
       "The inverse hyperbolic cosine.", aliases=("arccosh",), domain="above_one",
       shown="tensor([nan, nan])")
_unary("atanh", "grad / conj(1 - self * self)", np.arctanh, "The inverse hyperbolic tangent.",
       aliases=("arctanh",), domain="unit", shown="tensor([0.5493, 0.2554])")
_unary("sigmoid", "_sigmoid_grad(grad, result)", lambda x: 1 / (1 + np.exp(-x)),
       "``1 / (1 + exp(-x))``.", aliases=("special.expit",), shown="tensor([0.6225, 0.5622])")
_unary("erf", "grad * exp(-(self * self)) * 1.1283791670955126", "erf", "The error function.",
       types="f", aliases=("special.erf",), shown="tensor([0.5205, 0.2763])")
_unary("erfc", "grad * exp(-(self * self)) * -1.1283791670955126", "erfc",
       "1 minus the error function, precise for large arguments.", types="f",
       aliases=("special.erfc",), shown="tensor([0.4795, 0.7237])")
_unary("erfinv", "grad * exp(square(erfinv(self))) * 0.8862269254527579", "erfinv",
       "The inverse of the error function.", types="f", domain="unit",
       aliases=("special.erfinv",), shown="tensor([0.4769, 0.2253])")
_unary("lgamma", "grad * digamma(self)", "lgamma", "The logarithm of the gamma function.", types="f",
       domain="positive", aliases=("special.gammaln",), shown="tensor([0.5724, 1.2880])")
op("_reciprocal_or_zero(Tensor self) -> Tensor", elementwise("f"), f="0 if a == 0 else 1 / a",
   grad="-grad * result * result")
op("digamma(Tensor self) -> Tensor", elementwise("f", promote="Float"), f="digamma(a)", ref="digamma",
   grad="grad * polygamma(1, self)", aliases=("special.digamma", "special.psi"),
   samples="positive", doc="The derivative of ``lgamma``.",
   example=">>> facula.digamma(facula.tensor([1.]))\ntensor([-0.5772])")

# Derivatives in one pass; the second derivatives are written out below them.
op("_tanh_grad(Tensor grad_out, Tensor result_in) -> Tensor", elementwise("fc", halves=True),
   jvp="by vjp if complex", f=dict(f="a * (1 - b * b)", c="a * conj(1 - b * b)"),
   grad=dict(grad_out="grad * (1 - result_in * result_in)",
             result_in="conj(grad * conj(grad_out) * result_in * -2)"))
op("_sigmoid_grad(Tensor grad_out, Tensor result_in) -> Tensor", elementwise("fc", halves=True),
   jvp="by vjp if complex", f=dict(f="a * (1 - b) * b", c="a * conj((1 - b) * b)"),
   grad=dict(grad_out="grad * (1 - result_in) * result_in",
             result_in="conj(grad * conj(grad_out) * (1 - result_in * 2))"))


def _rounding(name, ref, words, shown, aliases=()):
    refused = dict(refuses=("c", "NotImplemented", f"{name} is not supported for complex inputs")) if name != "round" else {}
    op(f"{name}(Tensor self) -> Tensor", elementwise("if", halves=True, **refused), f=dict(i="a", f=f"{name}(a)"),
       grad="zeros_like(grad)", ref=ref, doc=words, aliases=aliases,
       example=f">>> facula.{name}(facula.tensor([-1.5000, 0.5000, 2.7000]))\n{shown}")


_rounding("floor", np.floor, "Rounds down.", "tensor([-2.,  0.,  2.])")
_rounding("ceil", np.ceil, "Rounds up.", "tensor([-1.,  1.,  3.])")
_rounding("trunc", np.trunc, "Rounds towards zero.", "tensor([-1.,  0.,  2.])", ("fix",))
_rounding("round", np.round, "Rounds to the nearest integer, halves to even.", "tensor([-2.,  0.,  3.])",
          ("special.round",))
op("frac(Tensor self) -> Tensor", elementwise("f", halves=True), f="frac(a)", grad="grad",
   ref=lambda a: a - np.trunc(a), doc="The fractional part, with the sign of the number.",
   example=">>> facula.frac(facula.tensor([-1.5, 2.25]))\ntensor([-0.5000,  0.2500])")

op("atan2(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", numbers=False), f="atan2(a, b)",
   grad=dict(self="grad * other * _reciprocal_or_zero(self * self + other * other)",
             other="-grad * self * _reciprocal_or_zero(self * self + other * other)"),
   ref=np.arctan2, aliases=("arctan2",),
   doc="The angle of the point (other, self), between -pi and pi.",
   example=">>> facula.atan2(facula.tensor([1.]), facula.tensor([-1.]))\ntensor([2.3562])")
op("hypot(Tensor self, Tensor other) -> Tensor", elementwise("f", numbers=False), f="hypot(a, b)",
   grad=dict(self="grad * self / result", other="grad * other / result"), ref=np.hypot,
   doc="``sqrt(self**2 + other**2)`` without overflow.",
   example=">>> facula.hypot(facula.tensor([3.]), facula.tensor([4.]))\ntensor([5.])")
op("logaddexp(Tensor self, Tensor other) -> Tensor", elementwise("fc", numbers=False), f="logaddexp(a, b)",
   grad=dict(self="grad * conj(sigmoid(self - other))", other="grad * conj(sigmoid(other - self))"),
   ref="logaddexp", inplace=False,
   doc="``log(exp(self) + exp(other))`` without overflow.",
   example=">>> facula.logaddexp(facula.tensor([100.]), facula.tensor([100.]))\ntensor([100.6931])")
op("copysign(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", halves=True), f="copysign(a, b)",
   grad=dict(self="grad * where(eq(self, 0), 0, result / self)", other="zeros_like(grad)"),
   ref=np.copysign, doc="The magnitude of ``self`` with the sign of ``other``.",
   example=">>> facula.copysign(facula.tensor([1., 2.]), -1)\ntensor([-1., -2.])")
op("xlogy(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", numbers=True), f="xlogy(a, b)",
   grad=dict(self="where(logical_and(eq(self, 0), le(other, 0)), 0, xlogy(grad, other))",
             other="grad * self / other"),
   ref="xlogy", samples="positive_second", aliases=("special.xlogy",), doc="``self * log(other)``, 0 where ``self`` is 0.",
   example=">>> facula.xlogy(facula.tensor([0., 2.]), facula.tensor([0., 1.]))\ntensor([0., 0.])")
op("conj_physical(Tensor self) -> Tensor", composite(), samples="unary", ref=np.conj,
   doc="The complex conjugate, computed at once; real tensors are returned as they are.",
   example=">>> facula.conj_physical(facula.tensor([1 + 2j]))\ntensor([1.-2.j])")
op("angle(Tensor self) -> Tensor", elementwise("fc", promote="Float", out="Real"), f="angle(a)",
   ref=np.angle, inplace=False, grad="_angle_grad(grad, self)",
   doc="The angle of complex numbers; 0 or pi for real ones.",
   example=">>> facula.angle(facula.tensor([1j, -1 + 0j]))\ntensor([1.5708, 3.1416])")
op("_angle_grad(Tensor grad, Operand self) -> Tensor", composite())
op("conj_physical_(Tensor(a!) self) -> Tensor(a!)", composite(), samples="none",
   doc="Conjugates this tensor.",
   example=">>> facula.tensor([1 + 2j]).conj_physical_()\ntensor([1.-2.j])")
op("_conj_physical(Tensor self) -> Tensor", elementwise("bifc"), f=dict(c="conj(a)", **{"": "a"}),
   grad="conj(grad)", node="ConjPhysicalBackward0")
op("conj(Operand self) -> Tensor", composite(), out=False,
   doc="The complex conjugate; real tensors are returned as they are.",
   example=">>> facula.conj(facula.tensor([1 + 2j]))\ntensor([1.-2.j])")
op("real(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", grad="_from_real(grad)", ref=np.real, method=False, samples="complex_or_real",
   doc="The real part, as a view.", example=">>> facula.real(facula.tensor([1 + 2j]))\ntensor([1.])", node="SelectBackward0")
op("imag(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", grad="_from_imag(grad)", ref=np.imag, method=False, samples="complex",
   doc="The imaginary part, as a view.", example=">>> facula.imag(facula.tensor([1 + 2j]))\ntensor([2.])", node="SelectBackward0")
op("_from_real(Tensor grad) -> Tensor", composite())
op("_from_imag(Tensor grad) -> Tensor", composite())
op("complex(Tensor real, Tensor imag) -> Tensor", kernel(own_out=True), batch="leading", jvp="linear", grad=dict(real="real(grad)", imag="imag(grad)"),
   samples="two_real", ref=lambda a, b: a + 1j * b,
   doc="Complex numbers from real and imaginary parts.",
   example=">>> facula.complex(facula.tensor([1.]), facula.tensor([2.]))\ntensor([1.+2.j])")
op("polar(Tensor abs, Tensor angle) -> Tensor", composite(), samples="two_real",
   doc="Complex numbers from magnitude and angle.",
   example=">>> facula.polar(facula.tensor([2.]), facula.tensor([0.]))\ntensor([2.+0.j])")
op("view_as_real(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", grad="view_as_complex(contiguous(grad))", samples="complex",
   doc="Complex numbers seen as pairs in a last dimension of size 2.",
   example=">>> facula.view_as_real(facula.tensor([1 + 2j]))\ntensor([[1., 2.]])")
op("view_as_complex(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", grad="view_as_real(contiguous(grad))", samples="pairs",
   doc="The reverse of ``view_as_real``.",
   example=">>> facula.view_as_complex(facula.tensor([[1., 2.]]))\ntensor([1.+2.j])")
