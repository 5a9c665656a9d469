"""Special functions: ``facula.special`` and those that stand in ``facula`` itself."""

from gen.rows import composite, elementwise, op

_ROOT_HALF, _ROOT_TWO_PI = 0.7071067811865476, 2.5066282746310002


def _special(name, grad, ref, words, shown, *, at="0.5000", domain="special", f=None, aliases=(), **options):
    """A function of one real variable that only stands in ``facula.special``."""
    op(f"special_{name}(Tensor self) -> Tensor", elementwise("f", promote="Float", **options),
       f=f or f"{name}(a)", grad=grad, ref=ref, python=f"special.{name}", method=False, inplace=False,
       aliases=tuple(f"special.{a}" for a in aliases), samples=domain, doc=words,
       example=f">>> facula.special.{name}(facula.tensor([{at}]))\ntensor([{shown}])")


# ---- error functions and the normal distribution

_special("erfcx", "(self * result * 2 - 1.1283791670955126) * grad", "erfcx",
         "``exp(x**2) * erfc(x)``, which neither over- nor underflows for large positive ``x``.", "0.6157")
_special("ndtr", f"grad * exp(self * self * -0.5) * {1 / _ROOT_TWO_PI!r}", "ndtr",
         "The distribution function of the standard normal distribution.", "0.6915")
_special("log_ndtr", f"grad / special_erfcx(self * -{_ROOT_HALF}) * 0.7978845608028654", "log_ndtr",
         "The logarithm of ``ndtr``, precise far in the lower tail.", "-0.3689")
_special("ndtri", f"grad * exp(result * result * 0.5) * {_ROOT_TWO_PI!r}", "ndtri",
         "The inverse of ``ndtr``: quantiles of the standard normal distribution.", "0.2533", at="0.6000",
         domain="special_probability")
_special("entr", "grad * -(log(self) + 1)", "entr",
         "The entropy ``-x * log(x)``; 0 at 0 and ``-inf`` below.", "0.3466", domain="special_positive")
op("special_xlog1py(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", numbers=True),
   f="xlog1py(a, b)", python="special.xlog1py", method=False, inplace=False, samples="positive_second",
   grad=dict(self="where(logical_and(eq(self, 0), le(other, -1)), 0, special_xlog1py(grad, other))",
             other="grad * self / (other + 1)"),
   ref="xlog1py", doc="``self * log1p(other)``, 0 where ``self`` is 0.",
   example=">>> facula.special.xlog1py(facula.tensor([0., 2.]), facula.tensor([-1., 1.]))\ntensor([0.0000, 1.3863])")
op("logit(Tensor self, float? eps=None) -> Tensor", elementwise("f", promote="Float"), f="logit(a, eps)",
   grad="_logit_grad(grad, self, eps)", aliases=("special.logit",), samples="logit",
   doc="``log(x / (1 - x))``, the inverse of ``sigmoid``. With ``eps``, ``x`` is first limited to\n"
       "``[eps, 1 - eps]``.",
   example=">>> facula.logit(facula.tensor([0.5000, 0.7500]))\ntensor([0.0000, 1.0986])")
op("_logit_grad(Tensor grad, Operand self, float? eps) -> Tensor", composite())
op("sinc(Tensor self) -> Tensor", elementwise("fc", promote="Float"), f="sinc(a)",
   grad="grad * conj(_sinc_derivative(self, 1))", ref="sinc", aliases=("special.sinc",),
   doc="``sin(pi * x) / (pi * x)``, 1 at 0.",
   example=">>> facula.sinc(facula.tensor([0.0000, 0.5000]))\ntensor([1.0000, 0.6366])")
op("_sinc_derivative(Tensor self, int order) -> Tensor", elementwise("fc", shortcut="first_order"), f="sinc_derivative(a, order)",
   grad=dict(self="grad * conj(_sinc_derivative(self, order + 1))"))
op("_sinc_slope(Tensor self) -> Tensor", elementwise("f"), f="sinc_slope(a)")

# ---- gamma functions

op("polygamma(int n, Tensor self) -> Tensor", elementwise("f", promote="Float", check="order_not_negative", shortcut="low_order"),
   f="polygamma(n, a)", grad=dict(self="grad * polygamma(n + 1, self)"),
   aliases=("special.polygamma",), samples="polygamma",
   doc="The ``n``-th derivative of ``digamma``.",
   example=">>> facula.polygamma(1, facula.tensor([1.]))\ntensor([1.6449])")
# The loop that polygamma takes for n = 1, as it takes digamma's for n = 0.
op("_trigamma(Tensor self) -> Tensor", elementwise("f"), f="trigamma(a)", grad="grad * polygamma(2, self)")
op("polygamma.method(Tensor self, int n) -> Tensor", composite(), function=False, inplace=True, samples="none",
   doc="The ``n``-th derivative of ``digamma``.",
   example=">>> facula.tensor([1.]).polygamma(1)\ntensor([1.6449])")
op("mvlgamma(Tensor self, int p) -> Tensor", composite(), inplace=True, aliases=("special.multigammaln",),
   samples="mvlgamma",
   doc="The logarithm of the multivariate gamma function of dimension ``p``.",
   example=">>> facula.mvlgamma(facula.tensor([3.]), 2)\ntensor([1.5502])")
_DENSITY = "grad * {sign}exp((self - 1) * log(other) - other - lgamma(self))"
op("igamma(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", numbers=False), f="igamma(a, b)",
   grad=dict(self='_no_derivative("igamma", "input")', other=_DENSITY.format(sign="")),
   ref="igamma", aliases=("special.gammainc",), samples="two_positive",
   doc="The regularised lower incomplete gamma function of ``self`` at ``other``.",
   example=">>> facula.igamma(facula.tensor([2.]), facula.tensor([1.]))\ntensor([0.2642])")
op("igammac(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", numbers=False), f="igammac(a, b)",
   grad=dict(self='_no_derivative("igammac", "input")', other=_DENSITY.format(sign="-")),
   ref="igammac", aliases=("special.gammaincc",), samples="two_positive",
   doc="The regularised upper incomplete gamma function of ``self`` at ``other``.",
   example=">>> facula.igammac(facula.tensor([2.]), facula.tensor([1.]))\ntensor([0.7358])")
op("special_zeta(Tensor self, Tensor other) -> Tensor", elementwise("f", promote="Float", numbers=True),
   f="zeta(a, b)", python="special.zeta", method=False, inplace=False,
   grad=dict(self='_no_derivative("special.zeta", "input")',
             other="-(grad * self) * special_zeta(self + 1, other)"),
   ref="zeta", samples="zeta", doc="The Hurwitz zeta function: the sum of ``(other + k)**-self`` over k = 0, 1, 2 ...",
   example=">>> facula.special.zeta(facula.tensor([2.]), 1)\ntensor([1.6449])")
op("_no_derivative(str name, str argument) -> Tensor", composite())

# ---- Bessel and Airy functions

op("i0(Tensor self) -> Tensor", elementwise("f", promote="Float"), f="i0(a)", grad="grad * special_i1(self)",
   ref="i0", aliases=("special.i0", "special.modified_bessel_i0"), samples="special",
   doc="The modified Bessel function of the first kind of order 0.",
   example=">>> facula.i0(facula.tensor([1.]))\ntensor([1.2661])")
_special("i0e", "grad * (special_i1e(self) - sign(self) * result)", "i0e",
         "``exp(-abs(x)) * i0(x)``.", "0.6450")
_special("i1", "_i1_grad(grad, self, result)", "i1",
         "The modified Bessel function of the first kind of order 1.", "0.2579", aliases=("modified_bessel_i1",))
_special("i1e", "_i1e_grad(grad, self, result)", "i1e", "``exp(-abs(x)) * i1(x)``.", "0.1564")
op("_i1_grad(Tensor grad, Operand self, Tensor result) -> Tensor", composite())
op("_i1e_grad(Tensor grad, Operand self, Tensor result) -> Tensor", composite())
_special("modified_bessel_k0", "-grad * special_modified_bessel_k1(self)", "k0",
         "The modified Bessel function of the second kind of order 0.", "0.9244", domain="special_positive")
_special("modified_bessel_k1", "-grad * (special_modified_bessel_k0(self) + result / self)", "k1",
         "The modified Bessel function of the second kind of order 1.", "1.6564", domain="special_positive")
_special("scaled_modified_bessel_k0", "grad * (result - special_scaled_modified_bessel_k1(self))", "k0e",
         "``exp(x) * modified_bessel_k0(x)``.", "1.5241", domain="special_positive")
_special("scaled_modified_bessel_k1",
         "grad * (result - special_scaled_modified_bessel_k0(self) - result / self)", "k1e",
         "``exp(x) * modified_bessel_k1(x)``.", "2.7310", domain="special_positive")


def _bessel(name, grad, ref, words, shown, domain="special"):
    _special(name, grad, ref, words, shown, domain=domain,
             fallback={"f": ("bessel_in_range(a)", f"{name}_full_range(a)")})


_bessel("bessel_j0", "-grad * special_bessel_j1(self)", "j0", "The Bessel function of the first kind of order 0.", "0.9385")
_bessel("bessel_j1", "_bessel_j1_grad(grad, self, result)", "j1",
        "The Bessel function of the first kind of order 1.", "0.2423")
op("_bessel_j1_grad(Tensor grad, Operand self, Tensor result) -> Tensor", composite())
_bessel("bessel_y0", "-grad * special_bessel_y1(self)", "y0",
        "The Bessel function of the second kind of order 0.", "-0.4445", "special_positive")
_bessel("bessel_y1", "grad * (special_bessel_y0(self) - result / self)", "y1",
        "The Bessel function of the second kind of order 1.", "-1.4715", "special_positive")
_bessel("spherical_bessel_j0",
        "grad * _sinc_derivative(self * 0.3183098861837907, 1) * 0.3183098861837907", "spherical_j0",
        "The spherical Bessel function of the first kind of order 0, ``sin(x) / x``.", "0.9589")
_special("airy_ai", '_no_derivative("special.airy_ai", "input")', "airy_ai", "The Airy function Ai.", "0.2317")

# ---- orthogonal polynomials


def _polynomial(name, words, shown):
    op(f"special_{name}(Tensor x, Tensor n) -> Tensor", elementwise("f", promote="Float"), f=f"{name}(a, b)",
       grad=dict(x=f'_no_derivative("special.{name}", "x")', n=f'_no_derivative("special.{name}", "n")'),
       ref=name, python=f"special.{name}", samples="polynomial", doc=words,
       example=f">>> facula.special.{name}(facula.tensor([0.5000]), 3)\ntensor([{shown}])")


for _letter, _kind, _shown, _shifted in (("t", "first", "-1.", "-0."), ("u", "second", "-1.", "-0."),
                                         ("v", "third", "-1.", "1."), ("w", "fourth", "-1.", "-1.")):
    _polynomial(f"chebyshev_polynomial_{_letter}",
                f"The Chebyshev polynomial of the {_kind} kind and degree ``n`` at ``x``.", _shown)
    _polynomial(f"shifted_chebyshev_polynomial_{_letter}",
                f"The Chebyshev polynomial of the {_kind} kind and degree ``n`` at ``2 * x - 1``.", _shifted)
_polynomial("hermite_polynomial_h", "The physicists' Hermite polynomial of degree ``n`` at ``x``.", "-5.")
_polynomial("hermite_polynomial_he", "The probabilists' Hermite polynomial of degree ``n`` at ``x``.", "-1.3750")
_polynomial("laguerre_polynomial_l", "The Laguerre polynomial of degree ``n`` at ``x``.", "-0.1458")
_polynomial("legendre_polynomial_p", "The Legendre polynomial of degree ``n`` at ``x``.", "-0.4375")
