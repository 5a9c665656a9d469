"""Comparisons, logic and bits."""

import operator

from gen.reference import np
from gen.rows import composite, elementwise, op


def _compare(name, symbol, ref, types, words, alias):
    shown = [f"{getattr(operator, name)(v, 2)!s:>5}" for v in (1, 2, 3)]
    op(f"{name}(Tensor self, Tensor other) -> Tensor", elementwise(types, out="Bool"),
       f=f"a {symbol} b", ref=ref, aliases=(alias,) if alias else (),
       doc=f"True where ``self`` is {words} ``other``, elementwise.",
       example=f">>> facula.{name}(facula.tensor([1, 2, 3]), 2)\n"
               f"tensor([{', '.join(shown)}])")


_compare("eq", "==", np.equal, "bifc", "equal to", "")
_compare("ne", "!=", np.not_equal, "bifc", "different from", "not_equal")
_compare("lt", "<", np.less, "bif", "less than", "less")
_compare("le", "<=", np.less_equal, "bif", "less than or equal to", "less_equal")
_compare("gt", ">", np.greater, "bif", "greater than", "greater")
_compare("ge", ">=", np.greater_equal, "bif", "greater than or equal to", "greater_equal")

op("logical_and(Tensor self, Tensor other) -> Tensor", elementwise(out="Bool", numbers=False), f="(a != 0) & (b != 0)",
   ref=np.logical_and, doc="Elementwise *and* of truth values.",
   example=">>> facula.logical_and(facula.tensor([0, 1]), facula.tensor([1, 2]))\ntensor([False,  True])")
op("logical_or(Tensor self, Tensor other) -> Tensor", elementwise(out="Bool", numbers=False), f="(a != 0) | (b != 0)",
   ref=np.logical_or, doc="Elementwise *or* of truth values.",
   example=">>> facula.logical_or(facula.tensor([0, 0]), facula.tensor([0, 2]))\ntensor([False,  True])")
op("logical_xor(Tensor self, Tensor other) -> Tensor", elementwise(out="Bool", numbers=False), f="(a != 0) != (b != 0)",
   ref=np.logical_xor, doc="Elementwise exclusive *or* of truth values.",
   example=">>> facula.logical_xor(facula.tensor([0, 1]), facula.tensor([1, 2]))\ntensor([ True, False])")
op("logical_not(Tensor self) -> Tensor", elementwise(out="Bool"), f="a == 0",
   ref=np.logical_not, doc="Elementwise negation of truth values.",
   example=">>> facula.logical_not(facula.tensor([0, 1]))\ntensor([ True, False])")


def _bits(name, symbol, ref):
    op(f"bitwise_{name}(Tensor self, Tensor other) -> Tensor", elementwise("bi", numbers=True), f=f"a {symbol} b",
       ref=ref, doc=f"Elementwise bitwise *{name}* of integers or booleans.",
       example=f">>> facula.bitwise_{name}(facula.tensor([12]), facula.tensor([10]))\n"
               f"tensor([{getattr(operator, name + '_' * (name != 'xor'))(12, 10)}])")


_bits("and", "&", np.bitwise_and)
_bits("or", "|", np.bitwise_or)
_bits("xor", "^", np.bitwise_xor)
op("bitwise_not(Tensor self) -> Tensor", elementwise("bi"), f=dict(b="not a", i="~a"),
   ref=np.bitwise_not, doc="Flips every bit; negates booleans.",
   example=">>> facula.bitwise_not(facula.tensor([0, 5]))\ntensor([-1, -6])")
op("bitwise_left_shift(Tensor self, Tensor other) -> Tensor", elementwise("i", numbers=True, number_loops=True), f="left_shift(a, b)",
   ref=np.left_shift, samples="shift", doc="Shifts bits to the left.",
   example=">>> facula.bitwise_left_shift(facula.tensor([1, 2]), 3)\ntensor([ 8, 16])")
op("bitwise_right_shift(Tensor self, Tensor other) -> Tensor", elementwise("i", numbers=True, number_loops=True), f="right_shift(a, b)",
   ref=np.right_shift, samples="shift", doc="Shifts bits to the right, keeping the sign.",
   example=">>> facula.bitwise_right_shift(facula.tensor([8, -8]), 2)\ntensor([ 2, -2])")

op("isnan(Tensor self) -> Tensor", elementwise(out="Bool"), f=dict(b="False", i="False", **{"": "isnan(a)"}), inplace=False, out=False,
   ref=np.isnan, doc="True where not a number.",
   example=">>> facula.isnan(facula.tensor([1., float('nan')]))\ntensor([False,  True])")
op("isinf(Tensor self) -> Tensor", elementwise(out="Bool"), f=dict(b="False", i="False", **{"": "isinf(a)"}), inplace=False, out=False,
   ref=np.isinf, doc="True where infinite.",
   example=">>> facula.isinf(facula.tensor([1., float('inf')]))\ntensor([False,  True])")
op("isfinite(Tensor self) -> Tensor", elementwise(out="Bool"), f=dict(b="True", i="True", **{"": "isfinite(a)"}), inplace=False, out=False,
   ref=np.isfinite, doc="True where neither infinite nor NaN.",
   example=">>> facula.isfinite(facula.tensor([1., float('inf')]))\ntensor([ True, False])")
op("signbit(Tensor self) -> Tensor", elementwise("bif", out="Bool"), f=dict(b="False", **{"": "signbit(a)"}),
   inplace=False, ref=np.signbit, doc="True where the sign bit is set, so also for -0.",
   example=">>> facula.signbit(facula.tensor([-0.0, 1.]))\ntensor([ True, False])")
op("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
   composite(), out=False, samples="isclose",
   doc="True where ``|self - other| <= atol + rtol * |other|``.",
   example=">>> facula.isclose(facula.tensor([1., 2.]), facula.tensor([1. + 1e-9, 3.]))\ntensor([ True, False])")
