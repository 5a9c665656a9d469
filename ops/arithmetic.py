"""Arithmetic with two operands, and the unary operators that belong to it."""

from gen.reference import np
from gen.rows import composite, elementwise, op


def _by_float_division(name: str) -> dict[str, tuple[str, str]]:
    """Quotients of floats serve floats and integers while they have few bits enough."""
    return dict.fromkeys("if", ("quotient_in_range(a, b)", f"{name}_full_range(a, b)"))


op("add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", elementwise(numbers="all", number_loops=True, halves=True),
   f=dict(b="a | (alpha & b)", **{"": "a + alpha * b"}),
   grad=dict(self="grad", other="_scale_back(grad, alpha)"),
   ref=lambda a, b: np.add(a, b),
   doc="Adds ``other``, scaled by ``alpha``, to ``self``, elementwise with broadcasting.",
   example=">>> facula.add(facula.tensor([1., 2.]), 10)\ntensor([11., 12.])")
op("sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", elementwise("ifc", numbers="all", number_loops=True, check="no_bool_difference", halves=True),
   f="a - alpha * b", grad=dict(self="grad", other="_scale_back(-grad, alpha)"), ref=np.subtract,
   aliases=("subtract",),
   doc="Subtracts ``other``, scaled by ``alpha``, from ``self``.",
   example=">>> facula.sub(facula.tensor([1, 2]), 1)\ntensor([0, 1])")
op("rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", elementwise("ifc", check="no_bool_difference"),
   f="b - alpha * a", grad=dict(self="_scale_back(-grad, alpha)", other="grad"),
   ref=lambda a, b: np.subtract(b, a),
   doc="Computes ``other - alpha * self``.",
   example=">>> facula.rsub(facula.tensor([1, 2]), 10)\ntensor([9, 8])", inplace=False)
op("mul(Tensor self, Tensor other) -> Tensor", elementwise(numbers="all", number_loops=True, halves=True),
   f=dict(b="a & b", **{"": "a * b"}),
   grad=dict(self="grad * conj(other)", other="grad * conj(self)"), ref=np.multiply,
   aliases=("multiply",),
   doc="Multiplies elementwise.", example=">>> facula.mul(facula.tensor([1, 2]), 3)\ntensor([3, 6])")
op("div(Tensor self, Tensor other) -> Tensor", elementwise("fc", promote="Float", numbers="all", number_loops=True, halves=True), f="a / b",
   grad=dict(self="grad / conj(other)", other="-grad * conj(self / other / other)"), ref=np.true_divide,
   aliases=("divide", "true_divide"),
   doc="Divides elementwise; integers give the default floating-point type.",
   example=">>> facula.div(facula.tensor([1, 2]), 2)\ntensor([0.5000, 1.0000])")
op("div.mode(Operand self, Operand other, *, str? rounding_mode) -> Tensor", composite(numbers="all"),
   aliases=("divide",), inplace=True,
   doc="Divides and rounds: ``rounding_mode`` is None, 'trunc' (towards zero) or 'floor'.",
   example=">>> facula.div(facula.tensor([-7, 7]), 2, rounding_mode='floor')\ntensor([-4,  3])")
op("floor_divide(Tensor self, Tensor other) -> Tensor", elementwise("if", numbers="all", check="divisor_not_zero", fallback=_by_float_division("floor_divide")), f="floor_divide(a, b)",
   ref=np.floor_divide, doc="Divides and rounds down.",
   example=">>> facula.floor_divide(facula.tensor([-7, 7]), 2)\ntensor([-4,  3])")
op("_div_floor(Tensor self, Tensor other) -> Tensor", elementwise("if", check="divisor_not_zero", fallback=_by_float_division("floor_divide")),
   f="floor_divide(a, b)", grad=dict(self="zeros_like(grad)", other="zeros_like(grad)"), node="DivBackward1")
op("_div_trunc(Tensor self, Tensor other) -> Tensor", elementwise("if", check="divisor_not_zero"),
   f="trunc_divide(a, b)", grad=dict(self="zeros_like(grad)", other="zeros_like(grad)"), node="DivBackward1")
op("_trunc_divide(Tensor self, Tensor other) -> Tensor", elementwise("if", check="divisor_not_zero"), f="trunc_divide(a, b)")
op("remainder(Tensor self, Tensor other) -> Tensor", elementwise("if", numbers=True, check="divisor_not_zero", fallback=_by_float_division("remainder")), f="remainder(a, b)",
   grad=dict(self="grad", other="-grad * floor_divide(self, other)"), ref=np.remainder,
   doc="The remainder with the sign of the divisor, as Python's ``%``.",
   example=">>> facula.remainder(facula.tensor([-3, 3]), 2)\ntensor([1, 1])")
op("fmod(Tensor self, Tensor other) -> Tensor", elementwise("if", check="divisor_not_zero", fallback=_by_float_division("fmod")), f="fmod(a, b)",
   grad=dict(self="grad", other="-grad * _trunc_divide(self, other)"), ref=np.fmod,
   doc="The remainder with the sign of the dividend, as C's ``fmod``.",
   example=">>> facula.fmod(facula.tensor([-3., 3.]), 2)\ntensor([-1.,  1.])")
op("pow(Tensor self, Tensor exponent) -> Tensor", elementwise("ifc", numbers=True, check="exponent_not_negative", shortcut="common_exponent"),
   f="pow(a, b)",
   grad=dict(self="_pow_grad_self(grad, self, exponent)",
             exponent="_pow_grad_exponent(grad, self, exponent, result)"),
   ref=np.power, samples="pow",
   doc="Raises to a power, elementwise.",
   example=">>> facula.pow(facula.tensor([1., 2., 3.]), 2)\ntensor([1., 4., 9.])")
# The loops that pow takes for common exponents.
op("_square(Tensor self) -> Tensor", elementwise("ifc", halves=True), f="a * a")
op("_cube(Tensor self) -> Tensor", elementwise("ifc"), f="a * a * a")
op("_inverse_square(Tensor self) -> Tensor", elementwise("f"), f="reciprocal(a) * reciprocal(a)")
op("_pow_grad_self(Tensor grad, Operand self, Operand exponent) -> Tensor", composite())
op("_pow_grad_exponent(Tensor grad, Operand self, Operand exponent, Tensor result) -> Tensor", composite())
op("_scale(Operand self, Scalar factor) -> Tensor", composite())
op("_scale_back(Tensor grad, Scalar factor) -> Tensor", composite())
op("neg(Tensor self) -> Tensor", elementwise("ifc", check="no_bool_negation", halves="a ^ 32768"), f="-a", grad="-grad", ref=np.negative,
   aliases=("negative",), doc="Changes the sign.", example=">>> facula.neg(facula.tensor([1, -2]))\ntensor([-1,  2])")
op("abs(Tensor self) -> Tensor", elementwise("bifc", out="Real", halves="a & 32767"),
   f=dict(b="a", **{"": "abs(a)"}), grad="grad * sgn(self)", ref=np.abs,
   aliases=("absolute",), doc="The absolute value; the modulus of complex numbers.",
   example=">>> facula.abs(facula.tensor([-1, 2]))\ntensor([1, 2])")
op("sign(Tensor self) -> Tensor",
   elementwise("bif", refuses=("c", "NotImplemented", "Unlike NumPy, torch.sign is not intended to support complex "
                               "numbers. Please use sgn instead")), f=dict(b="a", **{"": "sign(a)"}),
   grad="zeros_like(grad)", ref=np.sign,
   doc="-1, 0 or 1 by sign.", example=">>> facula.sign(facula.tensor([-2., 0., 3.]))\ntensor([-1.,  0.,  1.])")
op("sgn(Tensor self) -> Tensor", elementwise("bifc"), jvp="by vjp", f=dict(b="a", **{"": "sgn(a)"}),
   grad="_sgn_grad(grad, self, result)", ref="sgn",
   doc="The sign; of complex numbers, the direction ``z / |z|``.",
   example=">>> facula.sgn(facula.tensor([3 + 4j]))\ntensor([0.6000+0.8000j])")
op("_sgn_grad(Tensor grad, Operand self, Tensor result) -> Tensor", composite())
op("reciprocal(Tensor self) -> Tensor", elementwise("fc", promote="Float", halves=True), f="reciprocal(a)",
   grad="-grad * conj(result * result)", ref=lambda a: 1 / a,
   doc="1 over each element.", example=">>> facula.reciprocal(facula.tensor([2., 4.]))\ntensor([0.5000, 0.2500])")
op("square(Tensor self) -> Tensor", composite(), inplace=True, samples="unary", ref=np.square, doc="Each element times itself.",
   example=">>> facula.square(facula.tensor([2., 3.]))\ntensor([4., 9.])")
op("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   elementwise("ifc", halves=True), f="a + value * b * c",
   grad=dict(self="grad", tensor1="grad * conj(_scale(tensor2, value))",
             tensor2="grad * conj(_scale(tensor1, value))"),
   ref=lambda a, b, c: a + b * c,
   doc="``self + value * tensor1 * tensor2``.",
   example=">>> facula.addcmul(facula.ones(2), facula.tensor([1., 2.]), facula.tensor([3., 4.]))\ntensor([4., 9.])")
op("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
   elementwise("fc", halves=True, check="no_integer_quotient"), f="a + value * b / c",
   grad=dict(self="grad", tensor1="grad * conj(_scale(reciprocal(tensor2), value))",
             tensor2="-grad * conj(_scale(tensor1 / (tensor2 * tensor2), value))"),
   ref=lambda a, b, c: a + b / c,
   doc="``self + value * tensor1 / tensor2``.",
   example=">>> facula.addcdiv(facula.ones(2), facula.tensor([1., 2.]), facula.tensor([2., 4.]))\ntensor([1.5000, 1.5000])")
op("lerp(Tensor self, Tensor end, Tensor weight) -> Tensor", elementwise("fc", halves=True, check="end_of_one_dtype"),
   f="a + c * (b - a) if abs(c) < 0.5 else b - (b - a) * (1 - c)",
   grad=dict(self="grad * conj(1 - weight)", end="grad * conj(weight)", weight="grad * conj(end - self)"),
   ref=lambda a, b, w: a + w * (b - a),
   doc="Linear interpolation from ``self`` (weight 0) to ``end`` (weight 1).",
   example=">>> facula.lerp(facula.tensor([0., 10.]), facula.tensor([10., 20.]), 0.5)\ntensor([ 5., 15.])")
op("maximum(Tensor self, Tensor other) -> Tensor", elementwise("bif", numbers=False, number_loops=True, halves=True),
   f=dict(b="a | b", **{"": "maximum(a, b)"}),
   grad=dict(self="_half_ties(grad, self, other)", other="_half_ties(grad, other, self)"),
   inplace=False, ref=np.maximum,
   doc="The larger of two, elementwise; NaN wins.",
   example=">>> facula.maximum(facula.tensor([1, 5]), facula.tensor([3, 2]))\ntensor([3, 5])")
op("minimum(Tensor self, Tensor other) -> Tensor", elementwise("bif", numbers=False, number_loops=True, halves=True),
   f=dict(b="a & b", **{"": "minimum(a, b)"}),
   grad=dict(self="_half_ties(grad, other, self)", other="_half_ties(grad, self, other)"),
   inplace=False, ref=np.minimum,
   doc="The smaller of two, elementwise; NaN wins.",
   example=">>> facula.minimum(facula.tensor([1, 5]), facula.tensor([3, 2]))\ntensor([1, 2])")
op("fmax(Tensor self, Tensor other) -> Tensor", elementwise("bif", numbers=False),
   f=dict(b="a | b", i="maximum(a, b)", f="fmax(a, b)"), inplace=False,
   grad=dict(self="where(logical_or(ge(self, other), isnan(other)), grad, 0)",
             other="where(logical_or(ge(self, other), isnan(other)), 0, grad)"),
   ref=np.fmax, doc="The larger of two, elementwise; a number wins over NaN.",
   example=">>> facula.fmax(facula.tensor([1., float('nan')]), facula.tensor([3., 2.]))\ntensor([3., 2.])")
op("fmin(Tensor self, Tensor other) -> Tensor", elementwise("bif", numbers=False),
   f=dict(b="a & b", i="minimum(a, b)", f="fmin(a, b)"), inplace=False,
   grad=dict(self="where(logical_or(le(self, other), isnan(other)), grad, 0)",
             other="where(logical_or(le(self, other), isnan(other)), 0, grad)"),
   ref=np.fmin, doc="The smaller of two, elementwise; a number wins over NaN.",
   example=">>> facula.fmin(facula.tensor([1., float('nan')]), facula.tensor([3., 2.]))\ntensor([1., 2.])")
op("_half_ties(Tensor grad, Operand self, Operand other) -> Tensor", composite())
op("clamp(Tensor self, Operand? min=None, Operand? max=None) -> Tensor", composite(), inplace=True,
   aliases=("clip",), samples="clamp",
   doc="Limits each element to the range from ``min`` to ``max``; either may be left out.",
   example=">>> facula.clamp(facula.tensor([-2., 0., 3.]), -1, 1)\ntensor([-1.,  0.,  1.])", node="ClampBackward1")
op("clamp_min(Tensor self, Tensor min) -> Tensor", elementwise("bif", number_loops=True, halves=True), f="maximum(a, b)",
   grad=dict(self="where(ge(self, min), grad, 0)", min="where(lt(self, min), grad, 0)"),
   ref=np.maximum, doc="Limits from below.",
   example=">>> facula.clamp_min(facula.tensor([-2., 3.]), 0)\ntensor([0., 3.])")
op("clamp_max(Tensor self, Tensor max) -> Tensor", elementwise("bif", number_loops=True, halves=True), f="minimum(a, b)",
   grad=dict(self="where(le(self, max), grad, 0)", max="where(gt(self, max), grad, 0)"),
   ref=np.minimum, doc="Limits from above.",
   example=">>> facula.clamp_max(facula.tensor([-2., 3.]), 0)\ntensor([-2.,  0.])")
