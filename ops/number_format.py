"""Numbers and how they are stored: scaling, rounding, neighbours, non-finite values, divisors, hashes."""

from gen.reference import np
from gen.rows import composite, elementwise, op, reduction

op("deg2rad(Tensor self) -> Tensor", elementwise("f", promote="Float", halves=True), f="a * 0.017453292519943295",
   grad="grad * 0.017453292519943295", ref=np.deg2rad, doc="Degrees as radians.",
   example=">>> facula.deg2rad(facula.tensor([180.]))\ntensor([3.1416])")
op("rad2deg(Tensor self) -> Tensor", elementwise("f", promote="Float", halves=True), f="a * 57.29577951308232",
   grad="grad * 57.29577951308232", ref=np.rad2deg, doc="Radians as degrees.",
   example=">>> facula.rad2deg(facula.tensor([3.1415927]))\ntensor([180.])")
op("round.decimals(Tensor self, *, int decimals) -> Tensor", composite(own_out=True), inplace=True,
   aliases=("special.round",), samples="decimals",
   doc="Rounds to a number of decimals; to tens, hundreds and so on when it is negative.",
   example=">>> facula.round(facula.tensor([1.2346, 128.]), decimals=2)\ntensor([  1.2300, 128.0000])")
op("_round_scaled(Tensor self, float scale, bool multiples) -> Tensor", elementwise("f"),
   f="round_scaled(a, scale, multiples)", grad=dict(self="zeros_like(grad)"))
op("logaddexp2(Tensor self, Tensor other) -> Tensor", elementwise("f", numbers=False), f="logaddexp2(a, b)",
   grad=dict(self="grad * sigmoid((self - other) * 0.6931471805599453)",
             other="grad * sigmoid((other - self) * 0.6931471805599453)"),
   ref=np.logaddexp2, inplace=False, doc="``log2(2**self + 2**other)`` without overflow.",
   example=">>> facula.logaddexp2(facula.tensor([3.]), facula.tensor([3.]))\ntensor([4.])")
op("float_power(Operand self, Operand exponent) -> Tensor", composite(own_out=True), inplace=True,
   samples="float_power", doc="Raises to a power in double precision (complex128 for complex numbers).",
   example=">>> facula.float_power(facula.tensor([2, 3]), -1)\ntensor([0.5000, 0.3333], dtype=facula.float64)")
op("heaviside(Tensor self, Tensor values) -> Tensor", elementwise("bif", numbers=False, check="same_dtypes",
   refuses=("c", "Runtime", "heaviside is not yet implemented for complex tensors.")), f="heaviside(a, b)",
   grad=dict(self="zeros_like(grad)", values="where(eq(self, 0), grad, 0)"), ref="heaviside", samples="one_dtype",
   doc="0 below zero, 1 above, and ``values`` at zero.",
   example=">>> facula.heaviside(facula.tensor([-1., 0., 2.]), facula.tensor([0.5]))\ntensor([0.0000, 0.5000, 1.0000])")
op("gcd(Tensor self, Tensor other) -> Tensor", elementwise("i", numbers=False), f="gcd(a, b)", ref="gcd",
   doc="The greatest common divisor of integers; that of 0 and 0 is 0.",
   example=">>> facula.gcd(facula.tensor([12, 18]), facula.tensor([8]))\ntensor([4, 2])")
op("lcm(Tensor self, Tensor other) -> Tensor", elementwise("i", numbers=False), f="lcm(a, b)", ref="lcm",
   doc="The least common multiple of integers; 0 with 0.",
   example=">>> facula.lcm(facula.tensor([4, 6]), facula.tensor([10]))\ntensor([20, 30])")

# ---- the format of floating-point numbers

op("ldexp(Tensor self, Tensor other) -> Tensor", elementwise("fc", promote="Float", numbers=False), f="ldexp(a, b)",
   grad=dict(self="ldexp(grad, conj(other))", other="grad * conj(result) * 0.6931471805599453"),
   ref="ldexp", doc="``self * 2**other``.",
   example=">>> facula.ldexp(facula.tensor([0.7500]), facula.tensor([3]))\ntensor([6.])")
op("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", composite(), samples="floating",
   doc="Mantissa (from 1/2 to 1) and exponent: ``self == mantissa * 2**exponent``.",
   example=">>> mantissa, exponent = facula.frexp(facula.tensor([6.]))\n"
           ">>> mantissa, exponent\n(tensor([0.7500]), tensor([3], dtype=facula.int32))")
op("_frexp_mantissa(Tensor self) -> Tensor", elementwise("f"), f="frexp_mantissa(a)",
   grad="ldexp(grad, -_frexp_exponent(self))")
op("_frexp_exponent(Tensor self) -> Tensor", elementwise("f"), f="frexp_exponent(a)")
op("nextafter(Tensor self, Tensor other) -> Tensor", composite(own_out=True), inplace=True, samples="nextafter",
   doc="The number next to ``self`` on the way to ``other``, in their dtype.",
   example=">>> facula.nextafter(facula.tensor([0.]), facula.tensor([1.]))\ntensor([1.4013e-45])")
_STEP = dict(self="where(ne(self, other), grad, 0)", other="zeros_like(grad)")
op("_nextafter(Tensor self, Tensor other) -> Tensor", elementwise("f"), f="nextafter(a, b)", grad=_STEP)
# Half precision is computed as float32, whose neighbours are nearer.
op("_nextafter_coarse(Tensor self, Tensor other, int digits, int lowest_exponent) -> Tensor", elementwise("f"),
   f="nextafter_coarse(a, b, digits, lowest_exponent)", grad=_STEP)

# ---- infinities, NaN, signs

op("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
   composite(own_out=True), inplace=True, samples="nan_to_num",
   doc="Replaces NaN (by 0), infinity and minus infinity (by the largest and smallest number of the dtype).",
   example=">>> facula.nan_to_num(facula.tensor([float('nan'), float('inf'), 1.]), posinf=9.)\ntensor([0., 9., 1.])")
op("_nan_to_num(Tensor self, float for_nan, float for_posinf, float for_neginf) -> Tensor",
   elementwise("bifc"), f=dict(b="a", i="a", **{"": "replace_nonfinite(a, for_nan, for_posinf, for_neginf)"}),
   grad="grad * isfinite(self)")
op("isposinf(Tensor self) -> Tensor",
   elementwise("bif", out="Bool", refuses=("c", "Runtime", "isposinf does not support complex inputs.")),
   f=dict(b="False", i="False", f="isinf(a) and a > 0"), inplace=False, ref="isposinf",
   doc="True where infinite and positive.",
   example=">>> facula.isposinf(facula.tensor([-float('inf'), float('inf')]))\ntensor([False,  True])")
op("isneginf(Tensor self) -> Tensor",
   elementwise("bif", out="Bool", refuses=("c", "Runtime", "isneginf does not support complex inputs.")),
   f=dict(b="False", i="False", f="isinf(a) and a < 0"), inplace=False, ref="isneginf",
   doc="True where infinite and negative.",
   example=">>> facula.isneginf(facula.tensor([-float('inf'), float('inf')]))\ntensor([ True, False])")
op("isreal(Tensor self) -> Tensor", composite(), out=False, samples="unary", ref=np.isreal,
   doc="True where the imaginary part is zero.",
   example=">>> facula.isreal(facula.tensor([1j, 2 + 0j]))\ntensor([False,  True])")
op("positive(Tensor self) -> Tensor", composite(), out=False, samples="numbers", ref=np.positive,
   doc="The tensor itself, as ``+x`` gives it; booleans have no sign.",
   example=">>> facula.positive(facula.tensor([-1., 2.]))\ntensor([-1.,  2.])")

op("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", composite(),
   samples="hash_tensor",
   doc="A hash over the given dimensions (all by default): the exclusive *or* of the bits of the elements,\n"
       "seen as 64-bit integers, after a conversion to float64 or int64.",
   example=">>> facula.hash_tensor(facula.tensor([1, 2, 4]))\ntensor(7, dtype=facula.uint64)")
op("_xor_bits(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
   reduction("i", combine="a ^ b", init="0", empty=False))
